//! Step 5, consent: a person, or the rule for when nobody is there (*allowed inside the box, refused at its edge*).

use hanzo_permissions::{BoxState, Decision, Headless, Lifetime};
use hanzo_protocol::engine::{ApprovalAnswer, Attendance, Posture};
use hanzo_protocol::tool::ReachConfinement;

use super::edge::Edge;
use super::policy::{Consent, Outcome, Ruling};
use super::refused::Refused;
use super::types::{Answered, GateStep, Refusal};
use super::words::{Question, Scope};

/// Whether somebody can be asked.
pub(super) fn is_attended(step: &GateStep) -> bool {
    step.attendance == Attendance::Attended
}

/// Answers for the person who is not there. `allowed_by` tells the model what the user could do about it.
pub(super) fn headless(
    ruling: &Ruling,
    sandbox: BoxState,
    confinement: ReachConfinement,
    allowed_by: impl FnOnce() -> String,
) -> Result<Consent, Refused> {
    debug_assert_eq!(ruling.outcome, Outcome::Ask, "only what would be asked needs an answer");
    // The box does not hold for what asks to leave it.
    let sandbox = if confinement == ReachConfinement::Outside { BoxState::Off } else { sandbox };
    let refusal = match (ruling.edge.kind(), ruling.explanation.decision) {
        _ if ruling.nature.needs_a_person() => "this needs a person, and nobody can be asked",
        (None, _) if ruling.edge == Edge::Unconfined => {
            "this asks to run outside the sandbox and nobody can be asked"
        }
        (None, _) => "this would act on the screen and nobody can be asked",
        // The policy allows it, but not by itself: what makes it a question is not for the box to answer.
        (_, Decision::Allow) => "this needs a person, and nobody can be asked",
        (Some(kind), _) => match ruling.explanation.headless(Posture::Ask, sandbox, kind) {
            // With the network open it is inside the box, but not while something untrusted may be asking for it.
            Headless::Run if !ruling.exposed => return Ok(Consent::Sandbox),
            Headless::Run => "untrusted content has been read and nobody can be asked",
            Headless::Refuse(reason) => reason,
        },
    };
    Err(Refused::new(Refusal::NeedsPerson, format!("{refusal}. {}", allowed_by())))
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    /// Yes, and this is granted beyond.
    Yes {
        face: String,
        grant: Option<Grant>,
        notice: Option<String>,
    },
    No(Refused),
    /// Nobody answered after all.
    Nobody,
}

/// Something granted beyond the one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) rules: Vec<String>,
    pub(super) lifetime: Lifetime,
}

/// Reads an answer. Only what was offered can be granted, and only for as long as it was offered for.
pub(super) fn read(answered: Answered, question: &Question) -> Meaning {
    let Answered::By { answer, face } = answered else { return Meaning::Nobody };
    let offered = |rule: &str| question.scopes.iter().find(|scope| scope.text == rule);
    let grant = |scope: &Scope, lifetime| Some(Grant { rules: scope.rules.clone(), lifetime });
    let not_offered = |rule: &str| {
        Some(format!(
            "the call was run once; the rule `{}` was not among those offered and is not granted",
            hanzo_hooks::plain_text(rule, 200)
        ))
    };
    match answer {
        ApprovalAnswer::Once => Meaning::Yes { face, grant: None, notice: None },
        ApprovalAnswer::Session { rule } => match offered(&rule) {
            Some(scope) => Meaning::Yes { face, grant: grant(scope, Lifetime::Session), notice: None },
            None => Meaning::Yes { face, grant: None, notice: not_offered(&rule) },
        },
        ApprovalAnswer::Always { rule } => match offered(&rule) {
            Some(scope) => {
                let notice = (scope.lifetime == Lifetime::Session)
                    .then(|| format!("`{rule}` is too wide to be saved; it holds until the thread ends"));
                Meaning::Yes { face, grant: grant(scope, scope.lifetime), notice }
            }
            None => Meaning::Yes { face, grant: None, notice: not_offered(&rule) },
        },
        ApprovalAnswer::Deny { reason } => {
            let reason = reason
                .map(|reason| hanzo_hooks::plain_text(&reason, 4_000))
                .filter(|reason| !reason.is_empty());
            let message = match reason {
                Some(reason) => format!("the user said no to this call: {reason}"),
                None => "the user said no to this call. Do not try to reach the same effect in another way; choose a different approach or ask what they would like instead.".to_owned(),
            };
            Meaning::No(Refused::new(Refusal::Person, message))
        }
    }
}
