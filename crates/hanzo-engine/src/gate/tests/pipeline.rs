//! Whole calls: questions, grants, names, limits, cancellation, audit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hanzo_protocol::engine::{ApprovalAnswer, Attendance, Mode, Posture};
use hanzo_protocol::envelope::{Envelope, ErrorCode};
use hanzo_protocol::item::{Taint, ToolCallStatus};
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::ToolCaller;
use serde_json::{Value, json};

use super::world::{Person, Saver, Watch, World, call, no, send, situations, yes};
use crate::gate::{Pace, Refusal};

fn bash(command: &str) -> ToolCall {
    call("bash", &json!({"effect": "execute", "command": command}))
}

fn write(path: &str) -> ToolCall {
    call("write_file", &json!({"effect": "write", "path": path}))
}

fn fetch() -> ToolCall {
    call("fetch", &json!({"effect": "network", "url": "https://example.com/x"}))
}

#[tokio::test]
async fn a_reader_runs_without_a_question_and_a_writer_with_one() {
    let person = yes();
    let gated = World::new().run(&call("fs", &json!({"action": "read", "path": "a.rs"})), &person).await;
    assert_eq!((gated.status, person.asked().len()), (ToolCallStatus::Completed, 0));
    let gated = World::new().run(&write("a.rs"), &person).await;
    assert_eq!((gated.status, gated.result.output.as_str()), (ToolCallStatus::Completed, "done"));
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn a_question_says_what_why_and_which_rules_could_be_granted() {
    let mut world = World { ask: vec!["Bash(git push*)"], ..World::new() };
    world.step.taint = Some(Taint::Network);
    let cases = [
        (
            bash("cargo test --all"),
            "Run `cargo test --all`",
            "No rule covers it",
            vec!["Bash(cargo test --all)", "Bash(cargo test:*)"],
        ),
        (write("src/a.rs"), "Write `src/a.rs`", "No rule covers it", vec!["Edit(src/a.rs)", "Edit"]),
        (
            write("/etc/hosts"),
            "Write `/etc/hosts`\nThis changes files outside the workspace.",
            "content from the network",
            vec![],
        ),
        (fetch(), "Reach https://example.com/x", "what was granted before does not cover it", vec![]),
        (
            bash("git push -f"),
            "Run `git push -f`",
            "It is asked about by the ask rule `Bash(git push*)`",
            vec![],
        ),
        (bash("$X push"), "Run `$X push`", "It cannot be told whether the ask rule", vec![]),
        (
            call("bash", &json!({"effect": "execute", "command": "make", "unconfined": true})),
            "Run `make`\nThis runs outside the sandbox: it can change every file you can, and reach the network.",
            "It asks to run outside the sandbox",
            vec![],
        ),
        (
            call("remember", &json!({"effect": "memory", "text": "likes\ntea"})),
            "Remember beyond this thread: effect: memory, text: likes tea",
            "approved each time",
            vec![],
        ),
        (
            call("exit_plan_mode", &json!({"effect": "write", "plan": "1. tea"})),
            "Accept the plan and begin to carry it out:\n1. tea",
            "This is for you to decide. A yes ends plan mode, and until this turn ends its calls run without being asked \
             about; what a rule denies, what leaves the sandbox and further plans still stop",
            vec![],
        ),
    ];
    for (call, summary, reason, scopes) in cases {
        let person = no();
        world.run(&call, &person).await;
        let asked = person.asked().remove(0);
        assert_eq!(asked.summary, summary);
        assert!(asked.reason.contains(reason), "{}", asked.reason);
        assert_eq!(asked.scopes, scopes, "{summary}");
    }
}

#[tokio::test]
async fn what_is_shown_cannot_fool_a_terminal_and_says_when_it_is_cut() {
    let person = no();
    World::new().run(&bash(&format!("echo \u{1b}[2J\u{202e}{}", "x".repeat(5_000))), &person).await;
    let summary = person.asked().remove(0).summary;
    assert!(!summary.contains('\u{1b}') && !summary.contains('\u{202e}'));
    assert!(summary.contains("more characters are not shown"), "{summary}");
}

#[tokio::test]
async fn a_grant_for_the_thread_covers_exactly_what_was_offered() {
    let world = World::new();
    let (gate, _) = world.gate();
    let (grant, refuse) = (Person::says(ApprovalAnswer::Session { rule: "Bash(cargo test:*)".into() }), no());
    let watch = Watch::default();
    assert_eq!(send(&gate, &world.step, &bash("cargo test -p a"), &grant, &watch).await.refusal, None);
    assert_eq!(send(&gate, &world.step, &bash("cargo test -p b"), &refuse, &watch).await.refusal, None);
    assert!(refuse.asked().is_empty());
    for other in ["cargo build", "cargo testx", "cargo test && curl x"] {
        assert_eq!(
            send(&gate, &world.step, &bash(other), &refuse, &watch).await.refusal,
            Some(Refusal::Person)
        );
    }
    assert!(world.saver.saved.lock().unwrap().is_empty(), "it is not kept beyond the thread");
}

#[tokio::test]
async fn a_rule_that_was_not_offered_is_not_granted() {
    for answer in [
        ApprovalAnswer::Session { rule: "Bash".into() },
        ApprovalAnswer::Always { rule: "*".into() },
        ApprovalAnswer::Always { rule: String::new() },
    ] {
        let world = World::new();
        let (gate, _) = world.gate();
        let watch = Watch::default();
        let gated = send(&gate, &world.step, &bash("cargo test"), &Person::says(answer), &watch).await;
        assert_eq!(gated.refusal, None, "the person did say yes");
        assert!(gated.notices[0].contains("not among those offered"), "{:?}", gated.notices);
        assert_eq!(
            send(&gate, &world.step, &bash("cargo test"), &no(), &watch).await.refusal,
            Some(Refusal::Person)
        );
        assert!(world.saver.saved.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn always_is_saved_and_what_cannot_be_saved_is_said() {
    for fails in [false, true] {
        let world = World { saver: Arc::new(Saver { fails, ..Saver::default() }), ..World::new() };
        let (gate, _) = world.gate();
        let watch = Watch::default();
        let always = Person::says(ApprovalAnswer::Always { rule: "Edit(src/a.rs)".into() });
        let gated = send(&gate, &world.step, &write("src/a.rs"), &always, &watch).await;
        assert_eq!(gated.refusal, None);
        let expected = if fails { vec![] } else { vec!["Edit(src/a.rs)".to_owned()] };
        assert_eq!(*world.saver.saved.lock().unwrap(), expected);
        assert_eq!(gated.notices.iter().any(|notice| notice.contains("could not be saved")), fails);
        assert_eq!(send(&gate, &world.step, &write("src/a.rs"), &no(), &watch).await.refusal, None);
        assert!(send(&gate, &world.step, &write("src/b.rs"), &no(), &watch).await.refusal.is_some());
    }
    // All editing is granted for a thread at most.
    let world = World::new();
    let (gate, _) = world.gate();
    let always = Person::says(ApprovalAnswer::Always { rule: "Edit".into() });
    let gated = send(&gate, &world.step, &write("src/a.rs"), &always, &Watch::default()).await;
    assert!(gated.notices[0].contains("too wide to be saved"), "{:?}", gated.notices);
    assert!(world.saver.saved.lock().unwrap().is_empty());
    assert_eq!(send(&gate, &world.step, &write("src/b.rs"), &no(), &Watch::default()).await.refusal, None);
}

#[tokio::test]
async fn a_grant_does_not_cover_the_edge_while_untrusted_content_is_about() {
    let world = World::new();
    let (gate, _) = world.gate();
    let watch = Watch::default();
    let rule = || ApprovalAnswer::Session { rule: "Net(https://example.com/*)".into() };
    let person = Person::says(rule());
    let gated = send(&gate, &world.step, &fetch(), &person, &watch).await;
    let offered = person.asked()[0].scopes.clone();
    assert!(gated.refusal.is_none());
    let person = Person::says(ApprovalAnswer::Session { rule: offered[0].clone() });
    send(&gate, &world.step, &fetch(), &person, &watch).await;
    assert_eq!(send(&gate, &world.step, &fetch(), &no(), &watch).await.refusal, None, "granted");
    let mut tainted = world.step.clone();
    tainted.taint = Some(Taint::Network);
    assert_eq!(send(&gate, &tainted, &fetch(), &no(), &watch).await.refusal, Some(Refusal::Person));
}

#[tokio::test]
async fn a_no_carries_its_reason_to_the_model() {
    let person = Person::says(ApprovalAnswer::Deny { reason: Some("use pnpm\u{1b}[0m".into()) });
    let gated = World::new().run(&bash("npm i"), &person).await;
    assert_eq!(gated.status, ToolCallStatus::Denied);
    let envelope: Envelope = serde_json::from_value(gated.result.envelope.unwrap()).unwrap();
    let error = envelope.outcome.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::Denied, "the user said no to this call: use pnpm[0m")
    );
    assert!(gated.result.is_error && gated.result.output.contains("use pnpm"));
}

#[tokio::test]
async fn a_denied_call_is_blocked_in_every_posture_whatever_it_is_called() {
    let deny = |rule| World { deny: vec![rule], ..World::new() };
    let cases = [
        ("fs.write", write("a.rs")),
        ("write_file", call("nickname", &json!({"effect": "write", "path": "a.rs"}))),
        ("nickname", call("nickname", &json!({"effect": "write", "path": "a.rs"}))),
        ("Edit(a.rs)", call("nickname", &json!({"effect": "write", "path": "a.rs"}))),
        // A file the rules would not have found in the arguments.
        ("Edit(a.rs)", call("nickname", &json!({"effect": "write", "odd_key": "a.rs"}))),
        ("fs.rm", call("fs", &json!({"action": "rm", "path": "a.rs"}))),
        ("bash", call("proc", &json!({"action": "exec", "effect": "execute", "command": "ls"}))),
        ("Bash(rm -rf*)", call("proc", &json!({"effect": "execute", "command": ["rm", "-rf", "/"]}))),
    ];
    for (rule, call) in cases {
        for posture in [Posture::Ask, Posture::Auto, Posture::Yolo] {
            let mut world = deny(rule);
            world.step.posture = posture;
            let gated = world.run(&call, &yes()).await;
            assert_eq!(gated.refusal, Some(Refusal::Rule), "{rule} {} {posture:?}", call.arguments);
            let text = gated.result.error.unwrap();
            assert!(text.contains("blocked") && text.contains(rule), "{text}");
        }
    }
}

#[tokio::test]
async fn an_allow_for_one_action_does_not_let_another_through_by_its_arguments() {
    // The tool says it reads, the arguments say `rm`: rules see both, and the allow covers only one.
    let mut world = World { allow: vec!["fs.read"], ..World::new() };
    world.step.attendance = Attendance::Headless;
    world.sandbox = hanzo_permissions::BoxState::Off;
    let sly = call("fs", &json!({"action": "rm", "path": "a.rs"}));
    assert_eq!(world.run(&sly, &yes()).await.refusal, Some(Refusal::NeedsPerson));
    let plain = call("fs", &json!({"action": "read", "path": "a.rs"}));
    assert_eq!(world.run(&plain, &yes()).await.refusal, None);
}

#[tokio::test]
async fn a_link_is_judged_by_where_it_leads() {
    let link = call("fs", &json!({"action": "read", "path": "link", "real": "/srv/secret"}));
    let plain = call("fs", &json!({"action": "read", "path": "link"}));
    let world = World { deny: vec!["Read(/srv/secret)"], ..World::new() };
    assert_eq!(world.run(&link, &yes()).await.refusal, Some(Refusal::Rule));
    assert_eq!(world.run(&plain, &yes()).await.refusal, None);
    // An allow must cover the name and where it leads.
    let write = |real| call("write_file", &json!({"effect": "write", "path": "link", "real": real}));
    let world = World { allow: vec!["Edit(link)"], ..World::new() };
    assert_eq!(world.run(&write("/w/link"), &no()).await.refusal, None);
    assert_eq!(world.run(&write("/w/other"), &no()).await.refusal, Some(Refusal::Person));
    // A file of the workspace can be denied by its whole path too.
    let world = World { deny: vec!["Read(/w/**)"], ..World::new() };
    assert_eq!(world.run(&plain, &yes()).await.refusal, Some(Refusal::Rule));
}

#[tokio::test]
async fn arguments_that_do_not_parse_are_never_run() {
    for (name, arguments, code) in [
        ("bash", "{\"command\": \"ls", "INVALID_ARGUMENTS"),
        ("bash", "[1]", "INVALID_ARGUMENTS"),
        ("bash", "\"ls\"", "INVALID_ARGUMENTS"),
        ("bash", "{} {}", "INVALID_ARGUMENTS"),
        ("nosuch\u{1b}", "{}", "UNKNOWN_TOOL"),
    ] {
        let world = World { allow: vec!["*"], ..World::new() };
        let broken = ToolCall { arguments: arguments.into(), ..call(name, &Value::Null) };
        let (gate, runs) = world.gate();
        let gated = send(&gate, &world.step, &broken, &yes(), &Watch::default()).await;
        assert_eq!((gated.status, gated.refusal), (ToolCallStatus::Failed, None));
        assert!(gated.result.is_error && gated.result.output.contains(code), "{}", gated.result.output);
        assert!(!gated.result.output.contains('\u{1b}'));
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        assert_eq!(gated.audit[0].decision, "deny:mistake");
    }
    // Nothing at all is no arguments.
    let none = ToolCall { arguments: String::new(), ..call("probe", &Value::Null) };
    assert_eq!(World::new().run(&none, &yes()).await.status, ToolCallStatus::Completed);
}

#[tokio::test]
async fn no_posture_answers_questions_or_accepts_a_plan() {
    for posture in [Posture::Ask, Posture::Auto, Posture::Yolo] {
        // Rules do not either: a rule that asks about everything must not turn into a posture's yes.
        for ask in [vec![], vec!["*"]] {
            let mut world = World { ask, allow: vec!["*"], ..World::new() };
            world.step.posture = posture;
            world.step.mode = Mode::Plan;
            let person = no();
            let gated = world.run(&call("exit_plan_mode", &json!({"effect": "write"})), &person).await;
            assert_eq!((gated.refusal, person.asked().len()), (Some(Refusal::Person), 1), "{posture:?}");
            let person = no();
            world.step.mode = Mode::Normal;
            let gated = world.run(&call("remember", &json!({"effect": "memory"})), &person).await;
            assert_eq!((gated.refusal, person.asked().len()), (Some(Refusal::Person), 1), "{posture:?}");
            // A question is put to the user by the tool itself, who answers it rather than approves it.
            let person = no();
            let gated = world.run(&call("ask", &json!({"effect": "write", "question": "?"})), &person).await;
            assert_eq!((gated.refusal, person.asked().len()), (None, 0), "{posture:?}");
        }
    }
}

#[tokio::test]
async fn an_accepted_plan_is_carried_out_without_questions_until_it_is_over() {
    let world = World { ask: vec!["Bash(git push*)"], deny: vec!["Bash(rm*)"], ..World::new() };
    let (gate, _) = world.gate();
    let watch = Watch::default();
    let step = |mode| crate::gate::GateStep { mode, ..world.step.clone() };
    let exit = call("exit_plan_mode", &json!({"effect": "write", "plan": "x"}));
    assert!(send(&gate, &step(Mode::Plan), &exit, &no(), &watch).await.refusal.is_some());
    assert!(
        send(&gate, &step(Mode::Normal), &bash("make"), &no(), &watch).await.refusal.is_some(),
        "not accepted"
    );

    send(&gate, &step(Mode::Plan), &exit, &yes(), &watch).await;
    for covered in [bash("make"), bash("git push"), write("a.rs")] {
        assert_eq!(send(&gate, &step(Mode::Normal), &covered, &no(), &watch).await.refusal, None);
    }
    assert_eq!(
        send(&gate, &step(Mode::Normal), &bash("rm x"), &yes(), &watch).await.refusal,
        Some(Refusal::Rule)
    );
    // Neither memory, nor leaving the sandbox, nor the next plan.
    let unconfined = call("bash", &json!({"effect": "execute", "command": "ls", "unconfined": true}));
    for fresh in [call("remember", &json!({"effect": "memory"})), unconfined, exit.clone()] {
        assert_eq!(
            send(&gate, &step(Mode::Normal), &fresh, &no(), &watch).await.refusal,
            Some(Refusal::Person)
        );
    }
    gate.end_plan();
    assert!(send(&gate, &step(Mode::Normal), &bash("make x"), &no(), &watch).await.refusal.is_some());
    send(&gate, &step(Mode::Plan), &exit, &yes(), &watch).await;
    gate.begin_turn();
    assert!(send(&gate, &step(Mode::Normal), &bash("make y"), &no(), &watch).await.refusal.is_some());
}

#[tokio::test]
async fn a_remote_caller_reads_the_workspace_only() {
    let mut world = World::new();
    world.step.caller = ToolCaller::Remote;
    let inside = world.run(&call("fs", &json!({"action": "read", "path": "a.rs"})), &yes()).await;
    assert_eq!(inside.refusal, None);
    let gated = world.run(&call("fs", &json!({"action": "read", "path": "/etc/passwd"})), &yes()).await;
    assert_eq!(gated.refusal, Some(Refusal::Sandbox));
    let envelope: Envelope = serde_json::from_value(gated.result.envelope.unwrap()).unwrap();
    let error = envelope.outcome.unwrap_err();
    assert_eq!((error.code, &error.details["path"]), (ErrorCode::SandboxDenied, &json!("/etc/passwd")));
    // Somebody who has not shown who they are may do nothing.
    world.remote = crate::capability::Capabilities::nothing();
    let gated = world.run(&call("fs", &json!({"action": "read", "path": "a.rs"})), &yes()).await;
    assert_eq!(gated.refusal, Some(Refusal::Capability));
}

#[tokio::test]
async fn a_write_outside_needs_a_consent_that_was_given_for_it() {
    use hanzo_permissions::{Decision, Policy};
    // Neither a mode of `allow`, nor `Edit` without a file, nor all editing granted in the thread.
    let anything = Policy { mode: Decision::Allow, ..Policy::default() };
    for (allow, policy) in
        [(vec!["Edit"], None), (vec!["fs.*"], None), (vec!["*"], None), (vec![], Some(anything))]
    {
        let world = World { allow, ..World::new() };
        let (gate, runs) = world.gate();
        let gate = match policy {
            Some(policy) => gate.with_policy(policy),
            None => gate,
        };
        let person = no();
        assert_eq!(send(&gate, &world.step, &write("a.rs"), &person, &Watch::default()).await.refusal, None);
        assert!(person.asked().is_empty());
        let gated = send(&gate, &world.step, &write("/etc/hosts"), &person, &Watch::default()).await;
        assert_eq!((gated.refusal, person.asked().len()), (Some(Refusal::Person), 1));
        let headless = crate::gate::GateStep { attendance: Attendance::Headless, ..world.step.clone() };
        let gated = send(&gate, &headless, &write("/etc/hosts"), &person, &Watch::default()).await;
        assert_eq!((gated.refusal, runs.load(Ordering::SeqCst)), (Some(Refusal::NeedsPerson), 1));
    }
    let named = World { allow: vec!["Edit(/etc/hosts)"], ..World::new() };
    assert_eq!(named.run(&write("/etc/hosts"), &no()).await.refusal, None);
}

#[test]
fn the_wall_stands_behind_all_consent_that_names_no_file() {
    use hanzo_protocol::tool::{Effect, Place, Reach, ReachedPath};

    use crate::gate::policy::Consent;
    use crate::gate::steps::wall;
    let path = ReachedPath { given: "x".into(), real: "/etc/x".into(), place: Place::Outside };
    let reach = Reach { paths: vec![path], ..Reach::new("fs.write", Effect::Write) };
    let step = World::new().step;
    for consent in [Consent::Reader, Consent::Mode, Consent::Question, Consent::Sandbox] {
        let refused = wall(&step, &reach, &consent).unwrap_err();
        assert_eq!(refused.error.code, ErrorCode::SandboxDenied);
        assert!(refused.error.message.contains("`/etc/x`"), "{}", refused.error.message);
    }
    for consent in [Consent::Rule, Consent::Person("test".into()), Consent::Posture(Posture::Auto)] {
        assert_eq!(wall(&step, &reach, &consent), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_ended_unless_it_keeps_its_own_time() {
    let world = World::new();
    let slow = |own| call("probe", &json!({"sleep_ms": 3_600_000, "own_time": own}));
    let begun = tokio::time::Instant::now();
    let gated = world.run(&slow(false), &yes()).await;
    assert_eq!(begun.elapsed(), Duration::from_mins(1));
    assert_eq!((gated.status, gated.duration), (ToolCallStatus::Failed, Some(Duration::from_mins(1))));
    assert!(gated.result.output.starts_with("error TIMEOUT:"), "{}", gated.result.output);
    let gated = world.run(&slow(true), &yes()).await;
    assert_eq!((gated.status, gated.duration), (ToolCallStatus::Completed, Some(Duration::from_hours(1))));
}

#[tokio::test]
async fn output_is_passed_on_while_a_call_runs() {
    let world = World::new();
    let (gate, _) = world.gate();
    let watch = Watch::default();
    send(&gate, &world.step, &call("probe", &json!({"stream": "a b c"})), &yes(), &watch).await;
    assert_eq!(*watch.output.lock().unwrap(), "abc");
    assert_eq!(*watch.statuses.lock().unwrap(), [ToolCallStatus::Running]);
}

#[tokio::test]
async fn a_long_result_is_cut_and_the_whole_is_kept() {
    let gated = World::new().run(&call("probe", &json!({"length": 60_000})), &yes()).await;
    assert_eq!(gated.result.output.chars().count(), 50_000);
    let full = gated.full_output.unwrap();
    assert!(gated.result.output.contains(full.as_str()));
    // Also with a note behind it.
    let world = World::new();
    let (gate, _) = world.gate();
    for _ in 0..7 {
        let long = call("probe", &json!({"length": 60_000}));
        let gated = send(&gate, &world.step, &long, &yes(), &Watch::default()).await;
        assert_eq!(gated.result.output.chars().count(), 50_000);
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_not_run() {
    let world = World::new();
    let (gate, runs) = world.gate();
    let watch = Watch { fails: true, ..Watch::default() };
    let gated = send(&gate, &world.step, &call("probe", &json!({})), &yes(), &watch).await;
    assert_eq!((gated.refusal, runs.load(Ordering::SeqCst)), (Some(Refusal::NotRecorded), 0));
    assert_eq!(gated.audit.len(), 1);
}

#[tokio::test]
async fn every_evaluation_leaves_exactly_one_entry_and_denials_say_why() {
    for (world, call) in situations() {
        let (gate, _) = world.gate();
        let watch = Watch::default();
        let gated = send(&gate, &world.step, &call, &no(), &watch).await;
        let mut entries = watch.audit.lock().unwrap().clone();
        assert_eq!(entries.is_empty(), gated.refusal.is_some());
        entries.extend(gated.audit);
        let [entry] = entries.as_slice() else { panic!("{} entries", entries.len()) };
        let allowed = entry.decision.starts_with("allow:");
        assert_eq!(allowed, gated.refusal.is_none());
        assert!(allowed || entry.reason.as_ref().is_some_and(|reason| !reason.is_empty()), "{entry:?}");
        assert_eq!(entry.user.as_deref(), Some("ada"));
        let record = entry.record.value();
        for key in ["timestamp", "toolName", "mode", "sessionId", "by", "posture"] {
            assert!(!record[key].is_null(), "{key} {record}");
        }
    }
}

#[tokio::test]
async fn no_secret_gets_into_the_audit() {
    let canary = "sk-canary0123456789abcdefABCDEF";
    let world = World { deny: vec!["Bash(curl*)"], ..World::new() };
    for command in
        [format!("curl -H 'Authorization: Bearer {canary}' https://x"), format!("TOKEN={canary} make")]
    {
        let (gate, _) = world.gate();
        let watch = Watch::default();
        let call = call("bash", &json!({"effect": "execute", "command": command, "stdin": canary}));
        let gated = send(&gate, &world.step, &call, &yes(), &watch).await;
        for entry in watch.audit.lock().unwrap().iter().chain(&gated.audit) {
            let text = serde_json::to_string(entry).unwrap();
            assert!(!text.contains(canary), "{text}");
        }
    }
}

#[tokio::test]
async fn repeating_what_comes_to_nothing_is_warned_refused_and_ends_the_turn() {
    let world = World { allow: vec!["Bash"], ..World::new() };
    let (gate, runs) = world.gate();
    let watch = Watch::default();
    let mut story = String::new();
    for _ in 0..7 {
        let gated = send(&gate, &world.step, &bash("make"), &no(), &watch).await;
        story.push(match (gated.pace, gated.refusal, gated.result.output.contains("note: the same call")) {
            (Pace::Stuck, Some(Refusal::LoopGuard), _) => '!',
            (Pace::Moving, Some(Refusal::LoopGuard), _) => 'x',
            (Pace::Moving, None, true) => 'w',
            (Pace::Moving, None, false) => 'r',
            other => panic!("{other:?}"),
        });
    }
    assert_eq!((story.as_str(), runs.load(Ordering::SeqCst)), ("rrwwxx!", 4));
    gate.begin_turn();
    assert_eq!(send(&gate, &world.step, &bash("make"), &no(), &watch).await.refusal, None);
    // To be refused again and again is no progress either: the user is not asked for ever.
    let person = no();
    for _ in 0..10 {
        send(&gate, &world.step, &write("a.rs"), &person, &watch).await;
    }
    assert_eq!(person.asked().len(), 4);
}

#[tokio::test]
async fn a_call_that_is_dropped_at_any_point_leaves_nothing_behind() {
    struct Never;
    impl crate::gate::Asker for Never {
        fn ask(
            &self,
            _: hanzo_protocol::item::Approval,
        ) -> hanzo_protocol::BoxFuture<'_, crate::gate::Answered> {
            Box::pin(std::future::pending())
        }
    }
    let world = World::new();
    let (gate, runs) = world.gate();
    let watch = Watch::default();
    let before = gate.policy();
    for _ in 0..30 {
        let classified = gate.classify(&bash("make"));
        let run = gate.run(&world.step, classified, &Never, &watch);
        assert!(tokio::time::timeout(Duration::from_millis(1), run).await.is_err());
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(*gate.policy(), *before);
    // Nothing counts as tried: the guard does not mind.
    assert_eq!(send(&gate, &world.step, &bash("make"), &yes(), &watch).await.refusal, None);
    // While the tool runs: its future is dropped with the call.
    let slow = gate.classify(&call("probe", &json!({"sleep_ms": 60_000, "says": "late"})));
    let run = gate.run(&world.step, slow, &Never, &watch);
    assert!(tokio::time::timeout(Duration::from_millis(20), run).await.is_err());
    let again = send(&gate, &world.step, &call("probe", &json!({})), &yes(), &watch).await;
    assert_eq!(again.status, ToolCallStatus::Completed);
}
