//! What a gate remembers. It changes only between two awaits, so that a call that is cancelled leaves nothing half done.

use std::sync::Arc;

use hanzo_permissions::{Lifetime, Policy, Rule};
use hanzo_protocol::tool::ToolSet;

use super::consent::Grant;
use super::guard::Guard;

/// What a gate remembers.
pub(super) struct State {
    pub(super) tools: ToolSet,
    /// The configured rules, and those granted for good.
    pub(super) configured: Arc<Policy>,
    /// The same, with those granted for as long as the thread is open.
    pub(super) granted: Arc<Policy>,
    pub(super) guard: Guard,
    /// Whether an accepted plan is being carried out.
    pub(super) plan_is_accepted: bool,
}

impl State {
    pub(super) fn new(tools: ToolSet, policy: Policy) -> Self {
        let configured = Arc::new(policy);
        Self {
            tools,
            granted: Arc::clone(&configured),
            configured,
            guard: Guard::default(),
            plan_is_accepted: false,
        }
    }

    /// Adds what was granted. A rule that cannot be read grants nothing.
    pub(super) fn grant(&mut self, grant: &Grant) {
        let rules: Vec<Rule> = grant
            .rules
            .iter()
            .filter_map(|rule| Some(Rule::parse(rule).ok()?.with_origin("granted in this thread")))
            .collect();
        if grant.lifetime == Lifetime::Saved {
            Arc::make_mut(&mut self.configured).allow.extend(rules.iter().cloned());
        }
        Arc::make_mut(&mut self.granted).allow.extend(rules);
    }
}
