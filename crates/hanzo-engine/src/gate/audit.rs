//! Step 11: every call that came to the gate leaves an entry, readers and refusals included.

use hanzo_permissions::{AuditContext, AuditRecord, Basis, Decision};
use hanzo_protocol::engine::{Attendance, Mode, Posture};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::Effect;
use hanzo_store::{AuditEntry, JsonText};
use jiff::Timestamp;
use serde::Serialize;

use super::policy::{Consent, Ruling};
use super::redact::redact;
use super::refused::Refused;
use super::types::{Classified, GateStep, Refusal};

/// What became of a call, for the audit.
pub(super) enum Verdict<'a> {
    /// It was let through by this.
    Allowed(&'a Consent),
    /// It was refused.
    Refused(&'a Refused),
    /// It was no call that could be run.
    Mistake(&'a str),
}

/// The entry of a call. Values of arguments are not in it, save for what rules look at, and that without secrets.
pub(super) fn entry(
    thread: ThreadId,
    step: &GateStep,
    call: &Classified,
    ruling: Option<&Ruling>,
    verdict: &Verdict<'_>,
) -> AuditEntry {
    let at = Timestamp::now();
    // A name nobody knows is the model's own words.
    let shown = hanzo_hooks::plain_text(call.action(), 200);
    let (tool, action) = match shown.split_once('.') {
        Some((tool, action)) => (tool.to_owned(), Some(action.to_owned())),
        None => (shown, None),
    };
    let explained = ruling.map(|ruling| &ruling.explanation);
    let mut record = match explained {
        Some(explanation) => {
            let timestamp = at.to_string();
            let session = thread.to_string();
            let context =
                AuditContext { timestamp: &timestamp, session_id: &session, user: step.user.as_deref() };
            AuditRecord::new(&context, explanation)
        }
        // Refused before the rules were asked.
        None => AuditRecord {
            timestamp: at.to_string(),
            session_id: thread.to_string(),
            user: step.user.clone(),
            tool_name: String::new(),
            action: None,
            mode: Decision::Deny,
            rule_matched: None,
            reason: None,
            subject: None,
        },
    };
    let (mode, by) = match verdict {
        Verdict::Allowed(consent) => {
            if let Consent::Person(face) = consent {
                record.reason = Some(format!("approved through {face}"));
            }
            (Decision::Allow, consent.name())
        }
        Verdict::Refused(refused) => {
            record.reason = Some(refused.error.message.clone());
            (Decision::Deny, refusal_name(refused.by))
        }
        Verdict::Mistake(message) => {
            record.reason = Some((*message).to_owned());
            (Decision::Deny, "mistake")
        }
    };
    record.mode = mode;
    record.reason = record.reason.map(redact).filter(|reason| !reason.is_empty());
    record.subject = record.subject.map(redact);
    record.rule_matched = record.rule_matched.map(redact);
    (record.tool_name, record.action) = (tool, action);
    let everything = Everything {
        record: &record,
        by,
        called_as: &hanzo_hooks::plain_text(&call.name, 200),
        posture: step.posture,
        collaboration: step.mode,
        attendance: step.attendance,
        effect: call.reach().map(|reach| reach.effect),
        taint: step.taint,
        policy: explained.map(|policy| policy.decision),
        basis: explained.map(|policy| policy.basis),
    };
    let everything = JsonText::of(&everything);
    AuditEntry {
        at,
        thread,
        trace: call.trace,
        tool: record.tool_name,
        action: record.action,
        decision: format!("{mode}:{by}"),
        rule: record.rule_matched,
        reason: record.reason,
        subject: record.subject,
        user: record.user,
        record: everything,
    }
}

/// What is kept beside the columns of an entry.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Everything<'a> {
    #[serde(flatten)]
    record: &'a AuditRecord,
    by: &'a str,
    called_as: &'a str,
    posture: Posture,
    collaboration: Mode,
    attendance: Attendance,
    effect: Option<Effect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    taint: Option<Taint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<Basis>,
}

fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Capability => "capability",
        Refusal::PlanMode => "plan-mode",
        Refusal::LoopGuard => "loop-guard",
        Refusal::Rule => "rule",
        Refusal::Person => "person",
        Refusal::NeedsPerson => "nobody-to-ask",
        Refusal::Hook => "hook",
        Refusal::Sandbox => "sandbox",
        Refusal::NotRecorded => "not-recorded",
    }
}
