//! What the tests of the gate share: a tool whose arguments say what it reaches, and surroundings that are told what to answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hanzo_hooks::{Captured, Hook, HookEnd, HookEvent, HookOutput, HookRun, HookSpawner, Hooks, StartError};
use hanzo_permissions::{BoxState, Policy, Rule};
use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::engine::{ApprovalAnswer, Attendance, Mode, Posture};
use hanzo_protocol::ids::{ThreadId, ToolCallId};
use hanzo_protocol::item::{Approval, Taint, ToolCallStatus};
use hanzo_protocol::message::{ToolCall, ToolSchema};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::tool::{
    Effect, Place, Reach, ReachConfinement, ReachedPath, TimeLimit, Tool, ToolCaller, ToolContext,
    ToolResult, ToolSet,
};
use hanzo_store::AuditEntry;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::capability::Capabilities;
use crate::gate::{
    Answered, Asker, CallOrigin, CallWatch, Gate, GateLimits, GateParts, GateStep, Gated, RuleSaver,
    SandboxState,
};

/// A tool that reaches what its arguments say and counts how often it ran.
pub(super) struct Probe {
    schema: ToolSchema,
    /// The canonical action, when the arguments name none.
    action: &'static str,
    pub(super) runs: Arc<AtomicUsize>,
}

impl Tool for Probe {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, arguments: &Value) -> Reach {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let effect = match text("effect") {
            Some("write") => Effect::Write,
            Some("execute") => Effect::Execute,
            Some("network") => Effect::Network,
            Some("screen") => Effect::Screen,
            Some("memory") => Effect::Memory,
            _ => Effect::Read,
        };
        let mut reach = Reach::new(text("canonical").unwrap_or(self.action), effect);
        if let Some(given) = text("path").or(text("odd_key")) {
            let place = if given.starts_with('/') { Place::Outside } else { Place::Inside };
            let real = if place == Place::Outside { given.to_owned() } else { format!("/w/{given}") };
            let real = text("real").map_or(real, str::to_owned);
            reach.paths = vec![ReachedPath { given: given.to_owned(), real: real.into(), place }];
        }
        if arguments["unconfined"] == true && arguments["stays_inside"] != true {
            reach.confinement = ReachConfinement::Outside;
        }
        if arguments["own_time"] == true {
            reach.time_limit = TimeLimit::Own;
        }
        reach
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.runs.fetch_add(1, Ordering::SeqCst);
            if let (Some(sink), Some(text)) = (&context.output, arguments["stream"].as_str()) {
                for word in text.split(' ') {
                    sink.push(word);
                    tokio::task::yield_now().await;
                }
            }
            if let Some(milliseconds) = arguments["sleep_ms"].as_u64() {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            }
            let mut result = ToolResult::success(arguments["says"].as_str().unwrap_or("done"));
            if let Some(length) = arguments["length"].as_u64() {
                result.output = "x".repeat(usize::try_from(length).unwrap());
            }
            if arguments["denial"].is_string() && arguments["unconfined"] != true {
                result = ToolResult::failure("it failed");
                result.denial = arguments["denial"].as_str().map(str::to_owned);
            }
            result
        })
    }
}

/// Answers with what it was told, and remembers what it was asked.
#[derive(Default)]
pub(super) struct Person {
    pub(super) answers: Mutex<Vec<Answered>>,
    pub(super) asked: Mutex<Vec<Approval>>,
}

impl Person {
    pub(super) fn says(answer: ApprovalAnswer) -> Self {
        let answered = Answered::By { answer, face: "test".into() };
        Self { answers: Mutex::new(vec![answered]), asked: Mutex::default() }
    }

    pub(super) fn asked(&self) -> Vec<Approval> {
        self.asked.lock().unwrap().clone()
    }
}

impl Asker for Person {
    fn ask(&self, approval: Approval) -> BoxFuture<'_, Answered> {
        self.asked.lock().unwrap().push(approval);
        let mut answers = self.answers.lock().unwrap();
        // The last answer holds for all that follow.
        let answered = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async move { answered })
    }
}

pub(super) fn yes() -> Person {
    Person::says(ApprovalAnswer::Once)
}

pub(super) fn no() -> Person {
    Person::says(ApprovalAnswer::Deny { reason: None })
}

/// Remembers what it saw.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) statuses: Mutex<Vec<ToolCallStatus>>,
    pub(super) output: Mutex<String>,
    pub(super) audit: Mutex<Vec<AuditEntry>>,
    pub(super) fails: bool,
}

impl CallWatch for Watch {
    fn about_to_run<'a>(&'a self, _: &'a Reach, audit: AuditEntry) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if self.fails {
                return Err("the disk is full".to_owned());
            }
            self.audit.lock().unwrap().push(audit);
            Ok(())
        })
    }

    fn status(&self, status: ToolCallStatus) {
        self.statuses.lock().unwrap().push(status);
    }

    fn output(&self, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }
}

pub(super) struct Sandbox {
    pub(super) state: BoxState,
    pub(super) network: bool,
}

impl SandboxState for Sandbox {
    fn state(&self) -> BoxState {
        self.state
    }

    fn level(&self) -> String {
        "full".to_owned()
    }

    fn network(&self) -> bool {
        self.network
    }
}

/// Keeps rules, or does not.
#[derive(Default)]
pub(super) struct Saver {
    pub(super) saved: Mutex<Vec<String>>,
    pub(super) fails: bool,
}

impl RuleSaver for Saver {
    fn save<'a>(&'a self, rule: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if self.fails {
                return Err("the settings cannot be written".to_owned());
            }
            self.saved.lock().unwrap().push(rule.to_owned());
            Ok(())
        })
    }
}

#[derive(Default)]
pub(super) struct Blobs(pub(super) Mutex<BTreeMap<String, Vec<u8>>>);

impl BlobStore for Blobs {
    fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
        let hash = ContentHash::of(content);
        self.0.lock().unwrap().insert(hash.as_str().to_owned(), content.to_vec());
        Box::pin(async move { Ok(hash) })
    }

    fn get<'a>(&'a self, hash: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
        let found = self.0.lock().unwrap().get(hash.as_str()).cloned();
        Box::pin(async move { Ok(found) })
    }
}

/// Ends every hook with the code its command is.
pub(super) struct Codes;

impl HookSpawner for Codes {
    fn run(&self, run: HookRun) -> hanzo_hooks::BoxFuture<'_, Result<HookOutput, StartError>> {
        let nothing = Captured::default;
        let end = run.command.parse().map_or(HookEnd::TimedOut, HookEnd::Exited);
        Box::pin(async move { Ok(HookOutput { end, stdout: nothing(), stderr: nothing() }) })
    }
}

pub(super) fn hooks(event: HookEvent, commands: &[&str]) -> Hooks {
    Hooks::new(commands.iter().map(|command| Hook::new(event, *command)).collect(), Arc::new(Codes))
}

/// Everything around a gate.
#[derive(Clone)]
pub(super) struct World {
    pub(super) allow: Vec<&'static str>,
    pub(super) ask: Vec<&'static str>,
    pub(super) deny: Vec<&'static str>,
    pub(super) capabilities: Capabilities,
    pub(super) remote: Capabilities,
    pub(super) hooks: Arc<Hooks>,
    pub(super) sandbox: BoxState,
    pub(super) network: bool,
    pub(super) saver: Arc<Saver>,
    pub(super) limits: GateLimits,
    pub(super) step: GateStep,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            capabilities: Capabilities::everything(),
            remote: Capabilities::everything(),
            hooks: Arc::new(Hooks::none()),
            sandbox: BoxState::On,
            network: false,
            saver: Arc::new(Saver::default()),
            limits: GateLimits::default(),
            step: GateStep {
                mode: Mode::Normal,
                posture: Posture::Ask,
                attendance: Attendance::Attended,
                caller: ToolCaller::Local,
                origin: CallOrigin::Agent,
                user: Some("ada".into()),
                taint: None,
            },
        }
    }

    pub(super) fn gate(&self) -> (Gate, Arc<AtomicUsize>) {
        let rules = |list: &[&str]| list.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
        let runs = Arc::new(AtomicUsize::new(0));
        let mut tools = ToolSet::default();
        for (name, action) in [
            ("probe", "probe"),
            ("bash", "proc.exec"),
            ("proc", "proc.exec"),
            ("write_file", "fs.write"),
            ("fs", "fs.read"),
            ("nickname", "fs.write"),
            ("ask", "ui.ask"),
            ("exit_plan_mode", "plan.exit"),
            ("remember", "memory.remember"),
            ("fetch", "net.request"),
        ] {
            let schema = ToolSchema {
                name: name.into(),
                description: String::new(),
                parameters: RawValue::from_string("{}".into()).unwrap(),
            };
            tools.insert(Arc::new(Probe { schema, action, runs: Arc::clone(&runs) }));
        }
        let gate = Gate::new(GateParts {
            narrowing: Arc::new(hanzo_protocol::narrowing::Unnarrowed),
            thread: ThreadId::new(),
            workspace: "/w".into(),
            tools,
            policy: Policy {
                allow: rules(&self.allow),
                ask: rules(&self.ask),
                deny: rules(&self.deny),
                ..Policy::default()
            },
            capabilities: self.capabilities.clone(),
            remote: self.remote.clone(),
            hooks: Arc::clone(&self.hooks),
            sandbox: Arc::new(Sandbox { state: self.sandbox, network: self.network }),
            rules: Arc::clone(&self.saver) as Arc<dyn RuleSaver>,
            blobs: Arc::new(Blobs::default()),
            limits: self.limits,
        });
        (gate, runs)
    }

    /// Takes one call through a fresh gate.
    pub(super) async fn run(&self, call: &ToolCall, person: &Person) -> Gated {
        let (gate, runs) = self.gate();
        let watch = Watch::default();
        let gated = send(&gate, &self.step, call, person, &watch).await;
        let ran = runs.load(Ordering::SeqCst) > 0;
        assert_eq!(gated.refusal.is_none() && gated.duration.is_some(), ran, "{gated:?}");
        gated
    }
}

pub(super) async fn send(
    gate: &Gate,
    step: &GateStep,
    call: &ToolCall,
    person: &Person,
    watch: &Watch,
) -> Gated {
    let gated = gate.run(step, gate.classify(call), person, watch).await;
    assert!(gated.status.is_final());
    gated
}

pub(super) fn call(name: &str, arguments: &Value) -> ToolCall {
    ToolCall { id: ToolCallId::new("c1"), name: name.into(), arguments: arguments.to_string() }
}

/// Calls of every sort.
pub(super) fn calls() -> Vec<ToolCall> {
    vec![
        call("fs", &json!({"action": "read", "path": "a.rs"})),
        call("fs", &json!({"action": "read", "path": "/etc/passwd"})),
        call("fs", &json!({"action": "write", "canonical": "fs.write", "effect": "write", "path": "a.rs"})),
        call("write_file", &json!({"effect": "write", "path": "/etc/hosts"})),
        call("bash", &json!({"effect": "execute", "command": "ls"})),
        call("bash", &json!({"effect": "execute", "command": "ls", "unconfined": true})),
        call("bash", &json!({"effect": "execute", "command": "rm -rf x"})),
        call("bash", &json!({"effect": "execute", "command": "$X -rf x"})),
        call("fetch", &json!({"effect": "network", "url": "https://example.com/"})),
        call("remember", &json!({"effect": "memory", "text": "likes tea"})),
        call("probe", &json!({"effect": "memory"})),
        call("probe", &json!({"effect": "screen"})),
        call("probe", &json!({})),
        call("probe", &json!({"effect": "write"})),
        call("ask", &json!({"effect": "write", "question": "tea?"})),
        call("exit_plan_mode", &json!({"effect": "write", "plan": "1. tea"})),
    ]
}

/// Every call in every world; in an ordinary run a sample in which each call meets worlds of every sort.
pub(super) fn situations() -> Vec<(World, ToolCall)> {
    let calls = calls();
    let all = worlds().len() * calls.len();
    let sample = usize::try_from(hanzo_testkit::scale::rounds(u32::try_from(all).unwrap())).unwrap();
    // One more than the calls, so that a walk in this stride meets all of them.
    let stride = if sample == all { 1 } else { calls.len() + 1 };
    let each = calls.len();
    let worlds = worlds().into_iter().flat_map(|world| std::iter::repeat_n(world, each));
    worlds.zip(calls.iter().cloned().cycle()).step_by(stride).collect()
}

/// Worlds of every sort: postures, attendance, sandbox, network, taint, mode and a few rules.
pub(super) fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for posture in [Posture::Ask, Posture::Auto, Posture::Yolo] {
        for attendance in [Attendance::Attended, Attendance::Headless] {
            for (sandbox, network) in [(BoxState::On, false), (BoxState::On, true), (BoxState::Off, false)] {
                for taint in [None, Some(Taint::Network)] {
                    for mode in [Mode::Normal, Mode::Plan] {
                        for rules in 0..3 {
                            let mut world = World { sandbox, network, ..World::new() };
                            world.step = GateStep { mode, posture, attendance, taint, ..world.step };
                            match rules {
                                0 => {}
                                1 => world.allow = vec!["Bash(ls)", "Edit", "fetch", "probe"],
                                _ => {
                                    world.ask = vec!["Bash(ls)"];
                                    world.deny = vec!["Bash(rm -rf*)"];
                                }
                            }
                            worlds.push(world);
                        }
                    }
                }
            }
        }
    }
    worlds
}
