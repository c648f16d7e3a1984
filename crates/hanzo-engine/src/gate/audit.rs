//! Step 11: every call that came to the gate leaves an entry, readers and refusals included.

use hanzo_permissions::{AuditContext, AuditRecord, Decision};
use hanzo_protocol::ids::ThreadId;
use hanzo_store::AuditEntry;
use jiff::Timestamp;
use serde_json::{Value, json};

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
    let (mode, by, reason) = match verdict {
        Verdict::Allowed(consent) => {
            let why = match consent {
                Consent::Person(face) => format!("approved through {face}"),
                _ => explained.map(hanzo_permissions::Explanation::reason).unwrap_or_default(),
            };
            (Decision::Allow, consent.name(), why)
        }
        Verdict::Refused(refused) => {
            (Decision::Deny, refusal_name(refused.by), refused.error.message.clone())
        }
        Verdict::Mistake(message) => (Decision::Deny, "mistake", (*message).to_owned()),
    };
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
            tool_name: tool.clone(),
            action: action.clone(),
            mode,
            rule_matched: None,
            reason: None,
            subject: None,
        },
    };
    record.mode = mode;
    record.reason = Some(redact(&reason)).filter(|reason| !reason.is_empty());
    record.subject = record.subject.map(|subject| redact(&subject));
    record.rule_matched = record.rule_matched.map(|rule| redact(&rule));
    record.tool_name.clone_from(&tool);
    record.action.clone_from(&action);
    let mut everything = serde_json::to_value(&record).unwrap_or(Value::Null);
    if let Value::Object(fields) = &mut everything {
        fields.insert("by".to_owned(), json!(by));
        fields.insert("calledAs".to_owned(), json!(hanzo_hooks::plain_text(&call.name, 200)));
        fields.insert("posture".to_owned(), json!(step.posture));
        fields.insert("collaboration".to_owned(), json!(step.mode));
        fields.insert("attendance".to_owned(), json!(step.attendance));
        fields.insert("effect".to_owned(), json!(call.reach().map(|reach| reach.effect)));
        if let Some(taint) = step.taint {
            fields.insert("taint".to_owned(), json!(taint));
        }
        if let Some(policy) = explained {
            fields.insert("policy".to_owned(), json!(policy.decision));
            fields.insert("basis".to_owned(), json!(policy.basis));
        }
    }
    AuditEntry {
        at,
        thread,
        trace: call.trace,
        tool,
        action,
        decision: format!("{mode}:{by}"),
        rule: record.rule_matched,
        reason: record.reason,
        subject: record.subject,
        user: record.user,
        record: everything,
    }
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
