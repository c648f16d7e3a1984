//! Step 4, policy: deny > ask > allow > fallback, under the posture.
//!
//! What no posture and no grant covers:
//! * questions to the user and the acceptance of a plan: they *are* the user's decision;
//! * memory: a person approves each change;
//! * a tool that is no longer what it was when it was allowed ([`ReachConsent::Fresh`]): whatever was granted was granted to another;
//! * leaving the sandbox: rules say what may run, not that it may run unconfined. Posture `yolo` is the exception, because its promise is
//!   to ask nothing, unless the turn has seen untrusted content: the sandbox is what bounds that;
//! * writes outside the workspace, as far as a rule is concerned that names no file (`Edit`), or the policy's mode;
//! * while the turn has seen untrusted content, network, writes outside and the like are covered neither by posture `auto`, nor by an
//!   accepted plan, nor by what was granted in the thread.

use std::path::Path;

use hanzo_permissions::{APPROVED_PLAN, Basis, Decision, Explanation, Facts, Policy, Rule};
use hanzo_protocol::engine::Posture;
use hanzo_protocol::tool::{Effect, ReachConsent};

use super::call::{with_call, with_name};
use super::edge::{Edge, is_exposed};
use super::types::{GateStep, Target};

/// What lets a call run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Consent {
    /// An allow rule.
    Rule,
    /// It only looks.
    Reader,
    /// The policy's mode for writers is `allow`.
    Mode,
    /// The posture.
    Posture(Posture),
    /// The user accepted a plan, and this is part of carrying it out.
    Plan,
    /// It is a question to the user, who answers it rather than approves it.
    Question,
    /// A person, through this face.
    Person(String),
    /// Nobody was there, and it stays inside the sandbox.
    Sandbox,
}

impl Consent {
    /// Whether it was given with files outside the sandbox in view.
    pub(super) fn covers_outside(&self) -> bool {
        matches!(self, Self::Rule | Self::Posture(_) | Self::Plan | Self::Person(_))
    }

    /// The word in the audit.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Reader => "reader",
            Self::Mode => "mode",
            Self::Posture(_) => "posture",
            Self::Plan => "plan",
            Self::Question => "question",
            Self::Person(_) => "person",
            Self::Sandbox => "sandbox",
        }
    }
}

/// What the policy says, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruling {
    pub(super) explanation: Explanation,
    pub(super) outcome: Outcome,
    /// What the call is whatever rules say: a question to the user, something approved each time, or neither.
    pub(super) nature: Nature,
    pub(super) edge: Edge,
    /// Untrusted content is about and the call could carry out what it asks for.
    pub(super) exposed: bool,
}

/// What a call is whatever rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// A question to the user, who answers it.
    Question,
    /// A plan for the user to accept.
    Plan,
    /// A change of what is remembered, approved each time.
    Memory,
    /// Something that changed since it was allowed.
    Renewed,
    /// Anything else.
    Ordinary,
}

impl Nature {
    fn of(target: &Target, facts: &Facts<'_>) -> Self {
        if matches!(target.reach.consent, ReachConsent::Fresh(_)) {
            return Self::Renewed;
        }
        // No command is a question, and commands are what takes time to look at.
        if target.reach.effect == Effect::Execute {
            return Self::Ordinary;
        }
        match facts.basis() {
            Basis::UserDecision if facts.tool_id() == "ui.ask" => Self::Question,
            Basis::UserDecision => Self::Plan,
            Basis::FreshApproval => Self::Memory,
            _ if target.reach.effect == Effect::Memory => Self::Memory,
            _ => Self::Ordinary,
        }
    }

    /// Whether nobody but a person will do.
    pub(super) fn needs_a_person(self) -> bool {
        matches!(self, Self::Plan | Self::Memory | Self::Renewed)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Allowed(Consent),
    Ask,
    Denied,
}

/// What of a thread's state the policy depends on.
pub(super) struct Standing<'a> {
    /// The configured rules.
    pub(super) configured: &'a Policy,
    /// The same with what was granted in the thread.
    pub(super) granted: &'a Policy,
    /// Whether an accepted plan is being carried out.
    pub(super) plan_is_accepted: bool,
}

/// Judges a call called `name`.
pub(super) fn judge(
    step: &GateStep,
    standing: &Standing<'_>,
    workspace: &Path,
    name: &str,
    target: &Target,
    edge: Edge,
) -> Ruling {
    let exposed = is_exposed(step.taint, &target.reach, edge);
    let policy = if exposed { standing.configured } else { standing.granted };
    let (explanation, nature) = explain(policy, workspace, name, target);
    let outcome = settle(step, standing, target, edge, exposed, &explanation, nature);
    Ruling { explanation, outcome, nature, edge, exposed }
}

fn settle(
    step: &GateStep,
    standing: &Standing<'_>,
    target: &Target,
    edge: Edge,
    exposed: bool,
    explanation: &Explanation,
    nature: Nature,
) -> Outcome {
    if explanation.decision == Decision::Deny {
        return Outcome::Denied;
    }
    match nature {
        Nature::Question => return Outcome::Allowed(Consent::Question),
        Nature::Plan | Nature::Memory | Nature::Renewed => return Outcome::Ask,
        Nature::Ordinary => {}
    }
    let unconfined = edge == Edge::Unconfined;
    let posture = match step.posture {
        Posture::Auto if exposed => Posture::Ask,
        Posture::Yolo if exposed && unconfined => Posture::Ask,
        posture => posture,
    };
    if unconfined {
        // An allow rule is about what runs, not about where.
        return match (posture, explanation.under(posture)) {
            (Posture::Yolo, Decision::Allow) => Outcome::Allowed(Consent::Posture(posture)),
            _ => Outcome::Ask,
        };
    }
    if explanation.decision == Decision::Allow {
        let names_more_than_the_tool =
            explanation.rule.as_ref().is_some_and(|rule| rule.text.contains(['(', '=']));
        return match explanation.basis {
            // `Edit` is about editing the workspace; a file outside has to be named, by a rule or to a person.
            _ if edge == Edge::OutsideWrite && posture != Posture::Yolo && !names_more_than_the_tool => {
                Outcome::Ask
            }
            Basis::Rule => Outcome::Allowed(Consent::Rule),
            _ if target.reach.effect.is_read_only() => Outcome::Allowed(Consent::Reader),
            _ if edge == Edge::OutsideWrite => Outcome::Allowed(Consent::Posture(posture)),
            _ => Outcome::Allowed(Consent::Mode),
        };
    }
    if explanation.under(posture) == Decision::Allow {
        return Outcome::Allowed(Consent::Posture(posture));
    }
    let by_plan = standing.plan_is_accepted && !exposed;
    if by_plan && explanation.under(APPROVED_PLAN) == Decision::Allow {
        return Outcome::Allowed(Consent::Plan);
    }
    Outcome::Ask
}

/// The decision by the canonical action. A deny or ask rule counts as well when it is for the name that was called, or names a file of
/// the workspace by its whole path.
fn explain(policy: &Policy, workspace: &Path, name: &str, target: &Target) -> (Explanation, Nature) {
    let Target { reach, arguments, .. } = target;
    let (mut decided, nature) = with_call(reach, arguments, workspace, |_, facts| {
        (policy.explain_facts(facts), Nature::of(target, facts))
    });
    let tool = reach.action.split_once('.').map_or(reach.action.as_str(), |(tool, _)| tool);
    let mut also = |name: &str, workspace: Option<&Path>| {
        let other = with_name(name, reach, arguments, workspace, |_, facts| policy.explain_facts(facts));
        let by_rule = matches!(other.basis, Basis::Rule | Basis::UnprovenDeny | Basis::UnprovenAsk);
        if by_rule && other.decision > decided.decision {
            decided = Explanation { tool: std::mem::take(&mut decided.tool), ..other };
        }
    };
    if name != reach.action && name != tool {
        also(name, Some(workspace));
    }
    let names_whole_paths = |rule: &Rule| rule.text().contains("(/") || rule.text().contains("=/");
    if !reach.paths.is_empty() && policy.deny.iter().chain(&policy.ask).any(names_whole_paths) {
        also(&reach.action, None);
    }
    (decided, nature)
}
