//! What happens around the policy: postures, runs without a person, plan mode, capabilities.
//!
//! Pure functions over decisions; each can be told apart in the order of the gate: capability, plan mode, policy,
//! posture, headless.

use std::collections::BTreeSet;

use hanzo_protocol::engine::Posture;

use crate::call::Call;
use crate::explain::Explanation;
use crate::policy::Basis;
use crate::tools::Access;
use crate::verdict::Decision;

/// The posture of the window that opens when the user accepts a plan: its steps run without further questions. It closes
/// with the plan; the next one waits again.
pub const APPROVED_PLAN: Posture = Posture::Yolo;

/// Whether the sandbox holds for this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoxState {
    /// The kernel confines it.
    On,
    /// Nothing does.
    Off,
}

/// Where a call ends up, seen from the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EdgeKind {
    /// Workspace writes and jailed commands.
    Inside,
    /// The network, where it is off.
    Network,
    /// Files outside.
    OutsideWrite,
    /// What the agent remembers about the user.
    Memory,
    /// A remote caller asks for more than its agent declares.
    BeyondCapabilities,
}

/// What becomes of a call when nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Headless {
    /// It runs.
    Run,
    /// It does not; the reason is for the model.
    Refuse(&'static str),
}

/// Answers for the person who is not there: allowed inside the box, refused at its edge.
///
/// Apply the posture first: with `--approve auto` or `yolo` the decision is no longer an ask.
pub fn headless(decision: Decision, sandbox: BoxState, edge: EdgeKind) -> Headless {
    match (decision, sandbox, edge) {
        (Decision::Deny, _, _) => Headless::Refuse("a rule denies this call"),
        (_, _, EdgeKind::Memory) => Headless::Refuse("memory changes need a person's approval every time"),
        (_, _, EdgeKind::BeyondCapabilities) => {
            Headless::Refuse("the calling agent has not declared this capability")
        }
        (Decision::Allow, _, _) | (Decision::Ask, BoxState::On, EdgeKind::Inside) => Headless::Run,
        (Decision::Ask, BoxState::On, EdgeKind::Network) => {
            Headless::Refuse("this would reach the network and nobody can be asked")
        }
        (Decision::Ask, BoxState::On, EdgeKind::OutsideWrite) => {
            Headless::Refuse("this would write outside the workspace and nobody can be asked")
        }
        (Decision::Ask, BoxState::Off, _) => {
            Headless::Refuse("this needs approval, nobody can be asked and the sandbox is off")
        }
    }
}

impl Explanation {
    /// What `posture` makes of the decision.
    ///
    /// No posture answers questions to the user, accepts a plan, or replaces the approval that some tools need every
    /// time. Nor does any lift a deny, also not one that may be hidden in a command that cannot be read.
    pub fn under(&self, posture: Posture) -> Decision {
        let explicit = matches!(self.basis, Basis::Rule | Basis::UnprovenAsk);
        let fallback = self.basis == Basis::ModeFallback;
        let approved = match posture {
            Posture::Ask => false,
            Posture::Auto => fallback,
            Posture::Yolo => fallback || explicit,
        };
        if self.decision == Decision::Ask && approved { Decision::Allow } else { self.decision }
    }

    /// [`headless`] for this decision after `posture`. What may be a hidden form of a denied command is refused even
    /// inside the box, since a deny holds in every mode.
    pub fn headless(&self, posture: Posture, sandbox: BoxState, edge: EdgeKind) -> Headless {
        match (self.under(posture), self.basis) {
            (Decision::Ask, Basis::UnprovenDeny) => {
                Headless::Refuse("nothing proves that this is not a denied command; spell it out plainly")
            }
            (Decision::Ask, Basis::FreshApproval | Basis::UserDecision) => {
                Headless::Refuse("this needs a person, and nobody can be asked")
            }
            (decision, _) => headless(decision, sandbox, edge),
        }
    }
}

/// Plan mode, which is checked before any rule: only readers run.
pub fn plan_mode(call: &Call<'_>) -> Decision {
    let facts = call.facts();
    let leaves_plan_mode = facts.ids().any(crate::tools::is_user_decision);
    if facts.access() == Access::Reader || leaves_plan_mode { Decision::Allow } else { Decision::Deny }
}

/// Who is calling, for the capability check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller<'a> {
    /// Nobody who has shown who they are.
    Unauthenticated,
    /// A known user and what they may do.
    User(&'a BTreeSet<String>),
}

/// The capability check, before any rule: the action must be among the tool's permissions and the user's.
pub fn capability(action: &str, tool_permissions: &BTreeSet<String>, caller: Caller<'_>) -> Decision {
    match caller {
        Caller::User(permissions) if permissions.contains(action) && tool_permissions.contains(action) => {
            Decision::Allow
        }
        Caller::User(_) | Caller::Unauthenticated => Decision::Deny,
    }
}
