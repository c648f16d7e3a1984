//! The pipeline itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hanzo_hooks::{HookEvent, HookReport, Notice, PreVerdict, ToolEvent};
use hanzo_permissions::{BoxState, Lifetime, Policy, names_of};
use hanzo_protocol::engine::Posture;
use hanzo_protocol::item::ToolCallStatus;
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::primitives::Ref;
use hanzo_protocol::tool::{Effect, ReachConfinement, ToolCaller, ToolResult, ToolSet};
use hanzo_store::AuditEntry;
use serde_json::Value;

use super::audit::{Verdict, entry};
use super::classify::classify;
use super::consent::{Grant, Meaning, headless, is_attended, read};
use super::edge::edge;
use super::execute::execute;
use super::guard::{CallKey, Noted};
use super::policy::{Consent, Nature, Outcome, Ruling, Standing, judge};
use super::refused::{Refused, error_result};
use super::state::State;
use super::steps;
use super::truncate::truncate;
use super::types::{
    Asker, CallOrigin, CallWatch, Classified, GateParts, GateStep, Gated, Pace, Refusal, Target,
};
use super::words::{Question, question, rules_for, way_to_allow};

/// The gate of one open thread: its rules, what was granted in it, and what it has seen.
pub struct Gate {
    parts: GateParts,
    state: Mutex<State>,
}

/// What is gathered on the way of one call.
#[derive(Default)]
struct Trail {
    ruling: Option<Ruling>,
    notices: Vec<String>,
}

/// A call that was let through, or not, and what came of it.
struct Passed {
    status: ToolCallStatus,
    result: ToolResult,
    full_output: Option<Ref>,
    duration: Option<Duration>,
    refusal: Option<Refusal>,
    /// The entry of what was refused.
    audit: Option<AuditEntry>,
    notices: Vec<String>,
}

/// Whether a call is tried for the first time, or again outside the sandbox that was in its way.
#[derive(Clone, Copy)]
enum Attempt<'a> {
    First,
    Outside { evidence: &'a str },
}

impl Gate {
    /// The gate of a thread.
    pub fn new(mut parts: GateParts) -> Self {
        let tools = std::mem::take(&mut parts.tools);
        let policy = std::mem::take(&mut parts.policy);
        Self { parts, state: Mutex::new(State::new(tools, policy)) }
    }

    /// The same gate with other rules; what was granted is forgotten.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        let tools = self.tools();
        Self { parts: self.parts, state: Mutex::new(State::new(tools, policy)) }
    }

    /// The tools that can be called.
    pub fn tools(&self) -> ToolSet {
        self.state().tools.clone()
    }

    /// Calls go to these tools from now on.
    pub fn set_tools(&self, tools: ToolSet) {
        self.state().tools = tools;
    }

    /// A turn begins: the loop guard starts anew, and what an accepted plan allowed is over.
    pub fn begin_turn(&self) {
        let mut state = self.state();
        state.guard = super::guard::Guard::default();
        state.plan_is_accepted = false;
    }

    /// Whether the user accepted a plan in this turn.
    pub fn plan_is_accepted(&self) -> bool {
        self.state().plan_is_accepted
    }

    /// The accepted plan has been carried out: from now on it allows nothing any more.
    pub fn end_plan(&self) {
        self.state().plan_is_accepted = false;
    }

    /// What a call is and what it is going to reach. Decides nothing and runs nothing.
    pub fn classify(&self, call: &ToolCall) -> Classified {
        classify(&self.state().tools, call, None)
    }

    /// The same for a call whose arguments are read already.
    pub fn classify_read(&self, call: &ToolCall, arguments: Value) -> Classified {
        classify(&self.state().tools, call, Some(arguments))
    }

    /// Takes a call through all steps. Dropping the future cancels the call.
    pub async fn run(
        &self,
        step: &GateStep,
        call: Classified,
        asker: &dyn Asker,
        watch: &dyn CallWatch,
    ) -> Gated {
        let target = match &call.target {
            Ok(target) => target,
            Err(mistake) => {
                let result = error_result(&call.name, call.trace, &mistake.error);
                let verdict = Verdict::Mistake(&mistake.error.message);
                let audit = entry(self.parts.thread, step, &call, None, &verdict);
                let key = Self::key(step, &call.name, &Value::Null);
                let passed = Passed::not_run(ToolCallStatus::Failed, result, None, audit, Vec::new());
                return self.conclude(key, Effect::Read, vec![passed]);
            }
        };
        let key = Self::key(step, &target.reach.action, &target.arguments);
        let first = self.pass(step, &call, target, key, asker, watch, Attempt::First).await;
        let mut passed = vec![first];
        if passed[0].result.denial.is_some() {
            // In a box, so that every other call does not carry the room for a second attempt about.
            let again = self.rerun_outside(step, &call, target, key, asker, watch, &mut passed);
            let again = Box::pin(again).await;
            passed.extend(again);
        }
        self.conclude(key, target.reach.effect, passed)
    }

    /// What the loop guard knows a call by; it looks at those of the agent only.
    fn key(step: &GateStep, action: &str, arguments: &Value) -> Option<CallKey> {
        (step.origin == CallOrigin::Agent).then(|| CallKey::new(action, arguments))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is whole at every moment, also when somebody panicked while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All steps for one attempt.
    #[expect(clippy::too_many_arguments, reason = "they are the call's whole surroundings, used once")]
    async fn pass(
        &self,
        step: &GateStep,
        call: &Classified,
        target: &Target,
        key: Option<CallKey>,
        asker: &dyn Asker,
        watch: &dyn CallWatch,
        attempt: Attempt<'_>,
    ) -> Passed {
        let mut trail = Trail::default();
        let admitted = self.admit(step, call, target, key, asker, watch, attempt, &mut trail).await;
        let thread = self.parts.thread;
        let consent = match admitted {
            Ok(consent) => consent,
            Err(refused) => {
                let result = error_result(&target.reach.action, call.trace, &refused.error);
                let audit = entry(thread, step, call, trail.ruling.as_ref(), &Verdict::Refused(&refused));
                return Passed::not_run(
                    ToolCallStatus::Denied,
                    result,
                    Some(refused.by),
                    audit,
                    trail.notices,
                );
            }
        };
        watch.status(ToolCallStatus::Running);
        let limit = self.parts.limits.timeout;
        let (mut result, duration) = execute(thread, step, call, target, limit, watch).await;
        let is_plan = trail.ruling.as_ref().is_some_and(|ruling| ruling.nature == Nature::Plan);
        if is_plan && !result.is_error && matches!(consent, Consent::Person(_)) {
            self.state().plan_is_accepted = true;
        }
        self.after(call, target, &result, &mut trail).await;
        let full_output = truncate(&mut result, self.parts.limits.output, self.parts.blobs.as_ref()).await;
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        Passed {
            status,
            result,
            full_output,
            duration: Some(duration),
            refusal: None,
            audit: None,
            notices: trail.notices,
        }
    }

    /// Steps 1 to 7: everything that can refuse the call.
    #[expect(clippy::too_many_arguments, reason = "they are the call's whole surroundings, used once")]
    async fn admit(
        &self,
        step: &GateStep,
        call: &Classified,
        target: &Target,
        key: Option<CallKey>,
        asker: &dyn Asker,
        watch: &dyn CallWatch,
        attempt: Attempt<'_>,
        trail: &mut Trail,
    ) -> Result<Consent, Refused> {
        let Target { reach, arguments, .. } = target;
        steps::capability(step, &self.parts.capabilities, &self.parts.remote, reach)?;
        steps::narrowed(self.parts.narrowing.as_ref(), reach)?;
        steps::plan(step, reach, arguments, &self.parts.workspace)?;
        if let (Attempt::First, Some(key)) = (attempt, key) {
            self.state().guard.check(key, reach.effect)?;
        }
        let consent = self.consent(step, call, target, asker, watch, attempt, trail).await?;
        self.before(call, target, trail).await?;
        steps::wall(step, reach, &consent)?;
        let audit = entry(self.parts.thread, step, call, trail.ruling.as_ref(), &Verdict::Allowed(&consent));
        watch.about_to_run(reach, audit).await.map_err(|reason| {
            Refused::new(
                Refusal::NotRecorded,
                format!("the call was not run because it could not be recorded: {reason}"),
            )
        })?;
        Ok(consent)
    }

    /// Steps 4 and 5: rules, and a person where they say so.
    #[expect(clippy::too_many_arguments, reason = "they are the call's whole surroundings, used once")]
    async fn consent(
        &self,
        step: &GateStep,
        call: &Classified,
        target: &Target,
        asker: &dyn Asker,
        watch: &dyn CallWatch,
        attempt: Attempt<'_>,
        trail: &mut Trail,
    ) -> Result<Consent, Refused> {
        let ruling = trail.ruling.insert(self.judge(step, call, target));
        let evidence = match attempt {
            Attempt::First => None,
            Attempt::Outside { evidence } => Some(evidence),
        };
        match (&ruling.outcome, evidence) {
            (Outcome::Denied, _) => return Err(self.denied(target, ruling)),
            // To leave the sandbox after it was in the way is a person's decision, whatever else would allow it.
            (Outcome::Allowed(consent), None) => return Ok(consent.clone()),
            (Outcome::Ask, _) | (Outcome::Allowed(_), Some(_)) => {}
        }
        if is_attended(step) {
            let asked = question(call, target, &self.parts.workspace, ruling, step.taint, evidence);
            watch.status(ToolCallStatus::AwaitingApproval);
            match self.ask(call, target, asker, asked).await {
                Meaning::Yes { face, grant, notice } => {
                    trail.notices.extend(notice);
                    if let Some(grant) = grant {
                        trail.notices.extend(self.keep(grant).await);
                    }
                    return Ok(Consent::Person(face));
                }
                Meaning::No(refused) => return Err(refused),
                Meaning::Nobody if evidence.is_some() => {
                    return Err(Refused::new(Refusal::NeedsPerson, "nobody answered"));
                }
                Meaning::Nobody => {}
            }
        }
        let sandbox = self.box_state();
        headless(ruling, sandbox, target.reach.confinement, || {
            way_to_allow(target, &self.parts.workspace, ruling)
        })
    }

    fn judge(&self, step: &GateStep, call: &Classified, target: &Target) -> Ruling {
        let (configured, granted, plan_is_accepted) = {
            let state = self.state();
            (state.configured.clone(), state.granted.clone(), state.plan_is_accepted)
        };
        let standing = Standing { configured: &configured, granted: &granted, plan_is_accepted };
        let edge = edge(&target.reach, self.parts.sandbox.network());
        judge(step, &standing, &self.parts.workspace, &call.name, target, edge)
    }

    /// The box is on where the kernel confines processes.
    fn box_state(&self) -> BoxState {
        self.parts.sandbox.state()
    }

    fn denied(&self, target: &Target, ruling: &Ruling) -> Refused {
        let blocked = ruling.explanation.blocked.clone();
        let message = blocked.unwrap_or_else(|| "blocked: a rule denies this call".to_owned());
        let way = match (&ruling.explanation.rule, rules_for(target, &self.parts.workspace).first()) {
            // No rule denies it, so one could allow it.
            (None, Some(scope)) => format!(" The user could allow it with the rule `{}`.", scope.text),
            _ => String::new(),
        };
        Refused::new(Refusal::Rule, format!("{}{way}", hanzo_hooks::plain_text(&message, 4_000)))
    }

    /// Asks a person; hooks are told beside, and their time is over with the answer.
    async fn ask(&self, call: &Classified, target: &Target, asker: &dyn Asker, asked: Question) -> Meaning {
        let session = self.parts.thread.to_string();
        let answered = if self.parts.hooks.has(HookEvent::Notification) {
            // What is remembered about the user is nobody else's business: hooks hear the tool's name only.
            let summary = (target.reach.effect != Effect::Memory).then_some(asked.approval.summary.as_str());
            let notice = Notice {
                tool: &target.reach.action,
                aliases: aliases(&call.name, &target.reach.action),
                session: &session,
                summary,
            };
            let tell = async {
                self.parts.hooks.notify(&notice).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                answered = asker.ask(asked.approval.clone()) => answered,
                () = tell => unreachable!("it waits for ever"),
            }
        } else {
            asker.ask(asked.approval.clone()).await
        };
        read(answered, &asked)
    }

    /// Keeps what was granted: saved first, where it is for good, so that what the thread goes by is never more than what was kept.
    async fn keep(&self, mut grant: Grant) -> Option<String> {
        let mut notice = None;
        if grant.lifetime == Lifetime::Saved {
            for rule in &grant.rules {
                if let Err(reason) = self.parts.rules.save(rule).await {
                    notice = Some(format!(
                        "the rule `{rule}` holds until the thread ends but could not be saved: {reason}"
                    ));
                    grant.lifetime = Lifetime::Session;
                    break;
                }
            }
        }
        self.state().grant(&grant);
        notice
    }

    /// Step 6: hooks before the call.
    async fn before(&self, call: &Classified, target: &Target, trail: &mut Trail) -> Result<(), Refused> {
        if !self.parts.hooks.has(HookEvent::PreToolUse) {
            return Ok(());
        }
        let session = self.parts.thread.to_string();
        let outcome = self.parts.hooks.pre(&event(call, target, &session)).await;
        trail.notices.extend(outcome.reports.iter().map(notice_of));
        match outcome.verdict {
            PreVerdict::Allow => Ok(()),
            PreVerdict::Deny { reason, hook } => Err(Refused::new(
                Refusal::Hook,
                format!("a hook of the user refused this call (`{hook}`): {reason}"),
            )),
        }
    }

    /// Step 9: hooks after the call.
    async fn after(&self, call: &Classified, target: &Target, result: &ToolResult, trail: &mut Trail) {
        if !self.parts.hooks.has(HookEvent::PostToolUse) {
            return;
        }
        let session = self.parts.thread.to_string();
        let reports = self.parts.hooks.post(&event(call, target, &session), &result.output).await;
        trail.notices.extend(reports.iter().map(notice_of));
    }

    /// After the sandbox was in the way of a command, offers once to run it outside, by the same way as every call.
    #[expect(clippy::too_many_arguments, reason = "they are the call's whole surroundings, used once")]
    async fn rerun_outside(
        &self,
        step: &GateStep,
        call: &Classified,
        target: &Target,
        key: Option<CallKey>,
        asker: &dyn Asker,
        watch: &dyn CallWatch,
        passed: &mut [Passed],
    ) -> Option<Passed> {
        let first = passed.last_mut()?;
        let evidence = first.result.denial.clone()?;
        let offered = is_attended(step)
            // It promised to ask nothing; the model reads what happened and can ask for it itself.
            && step.posture != Posture::Yolo
            && step.caller == ToolCaller::Local
            && target.reach.effect == Effect::Execute
            && target.reach.confinement == ReachConfinement::Inside;
        if !offered {
            return None;
        }
        let mut arguments = target.arguments.clone();
        arguments.as_object_mut()?.insert("unconfined".to_owned(), true.into());
        let reach = target.tool.reach(&arguments);
        // A tool that cannot run outside says so by reaching no further than before, and then there is nothing to offer.
        if reach.confinement != ReachConfinement::Outside || reach.action != target.reach.action {
            return None;
        }
        let outside = Target { tool: target.tool.clone(), arguments, reach };
        let again = self
            .pass(step, call, &outside, key, asker, watch, Attempt::Outside { evidence: &evidence })
            .await;
        if again.refusal.is_none() {
            return Some(again);
        }
        let why = again.result.error.as_deref().unwrap_or("it was refused");
        let note = format!("\n\nnote: it could be run outside the sandbox, but that was not done: {why}");
        append(&mut first.result.output, &note, self.parts.limits.output);
        // The first attempt stays the answer; the entry of the second one is kept beside it.
        Some(Passed {
            result: first.result.clone(),
            status: first.status,
            full_output: first.full_output.clone(),
            duration: first.duration,
            refusal: None,
            audit: again.audit,
            notices: again.notices,
        })
    }

    /// Puts the attempts together, and lets the loop guard take the outcome in.
    fn conclude(&self, key: Option<CallKey>, effect: Effect, passed: Vec<Passed>) -> Gated {
        let mut audit = Vec::with_capacity(passed.len());
        let mut notices = Vec::new();
        let mut taint = None;
        let mut last = None;
        for one in passed {
            taint = taint.or(one.result.taint);
            audit.extend(one.audit.clone());
            notices.extend(one.notices.iter().cloned());
            last = Some(one);
        }
        let Some(Passed { status, mut result, full_output, duration, refusal, .. }) = last else {
            unreachable!("a call is tried at least once")
        };
        result.taint = result.taint.or(taint);
        let noted = match key {
            Some(key) => self.state().guard.finish(key, effect, refusal, &result.output),
            None => Noted { warning: None, pace: Pace::Moving },
        };
        if let Some(warning) = noted.warning {
            append(&mut result.output, &format!("\n\n{warning}"), self.parts.limits.output);
        }
        Gated { status, result, full_output, duration, audit, refusal, pace: noted.pace, notices }
    }

    /// The rules in force, with what was granted in the thread; for showing them.
    pub fn policy(&self) -> std::sync::Arc<Policy> {
        self.state().granted.clone()
    }
}

impl Passed {
    fn not_run(
        status: ToolCallStatus,
        result: ToolResult,
        refusal: Option<Refusal>,
        audit: AuditEntry,
        notices: Vec<String>,
    ) -> Self {
        Self { status, result, full_output: None, duration: None, refusal, audit: Some(audit), notices }
    }
}

/// Adds a note to an output, which stays within its budget.
fn append(output: &mut String, note: &str, most: usize) {
    let room = most.saturating_sub(note.chars().count());
    if let Some((at, _)) = output.char_indices().nth(room) {
        output.truncate(at);
    }
    output.push_str(note);
}

/// Every other name a call could have been made by: a hook for one of them is a hook for all.
fn aliases<'a>(called: &'a str, action: &'a str) -> Vec<&'a str> {
    let mut names: Vec<&'a str> = names_of(action);
    names.push(called);
    names.extend(action.split_once('.').map(|(tool, _)| tool));
    names
}

fn event<'a>(call: &'a Classified, target: &'a Target, session: &'a str) -> ToolEvent<'a> {
    ToolEvent {
        tool: &target.reach.action,
        aliases: aliases(&call.name, &target.reach.action),
        input: &target.arguments,
        session,
    }
}

fn notice_of(report: &HookReport) -> String {
    format!("the hook `{}` ({}): {}", report.hook, report.event.name(), report.problem)
}
