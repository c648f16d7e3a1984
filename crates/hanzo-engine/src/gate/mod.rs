//! What every tool call passes, from whichever face, before and after it runs. One ordered pipeline; each step can only narrow:
//!
//! 1. [`capability`](crate::capability): is the action in the agent's set, and in the remote caller's?
//! 2. plan mode: no writers.
//! 3. the loop guard: no call that keeps coming to the same.
//! 4. policy: deny > ask > allow > fallback, under the posture and, while untrusted content is about, without what it could abuse.
//! 5. consent: a person, or the rule for when nobody is there.
//! 6. hooks before the call.
//! 7. the sandbox's wall.
//! 8. the run itself, under a time limit.
//! 9. hooks after the call.
//! 10. the output is cut to its budget, the whole kept behind a ref.
//! 11. the audit entry, for every call that came this way.
//!
//! Dropping [`Gate::run`] at any point cancels the call and leaves nothing half done: what the gate remembers changes only between
//! two awaits, when something is certain.

mod audit;
mod call;
mod classify;
mod consent;
mod edge;
mod execute;
mod guard;
mod policy;
mod redact;
mod refused;
mod run;
mod state;
mod steps;
#[cfg(test)]
mod tests;
mod truncate;
mod types;
mod words;

pub use run::Gate;
pub use types::{
    Answered, Asker, CallOrigin, CallWatch, Classified, GateLimits, GateParts, GateStep, Gated, Pace,
    Refusal, RuleSaver, SandboxState, Target, Unclassified,
};
