//! What a thread may cost. A subagent has a share of its parent's money, and what it spends is spent by the parent too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hanzo_protocol::usage::Cost;

/// Money that can run out.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Option<Cost>,
    spent: AtomicU64,
    parent: Option<Arc<Budget>>,
}

impl Budget {
    /// At most `limit` from now on; no limit when absent.
    pub(crate) fn new(limit: Option<Cost>) -> Self {
        Self { limit, spent: AtomicU64::new(0), parent: None }
    }

    /// At most half of what is left of `parent`: a subagent that runs wild leaves its parent enough to react.
    pub(crate) fn share_of(parent: &Arc<Self>) -> Self {
        let limit = parent.left().map(|left| Cost::from_nano_usd(left.nano_usd() / 2));
        Self { limit, spent: AtomicU64::new(0), parent: Some(Arc::clone(parent)) }
    }

    /// Counts money that was spent.
    pub(crate) fn spend(&self, cost: Cost) {
        self.spent.fetch_add(cost.nano_usd(), Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.spend(cost);
        }
    }

    /// What was spent.
    pub(crate) fn spent(&self) -> Cost {
        Cost::from_nano_usd(self.spent.load(Ordering::Relaxed))
    }

    /// What is left; `None` when there is no limit.
    pub(crate) fn left(&self) -> Option<Cost> {
        let spent = self.spent.load(Ordering::Relaxed);
        let own = self.limit.map(|limit| Cost::from_nano_usd(limit.nano_usd().saturating_sub(spent)));
        let parents = self.parent.as_ref().and_then(|parent| parent.left());
        match (own, parents) {
            (Some(own), Some(parents)) => Some(own.min(parents)),
            (own, parents) => own.or(parents),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.left().is_some_and(|left| left == Cost::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_spends_its_parents_money_and_at_most_half_of_it() {
        let parent = Arc::new(Budget::new(Some(Cost::from_nano_usd(100))));
        parent.spend(Cost::from_nano_usd(20));
        let child = Budget::share_of(&parent);
        child.spend(Cost::from_nano_usd(39));
        assert!(!child.is_spent());
        child.spend(Cost::from_nano_usd(1));
        assert!(child.is_spent());
        assert_eq!(parent.left(), Some(Cost::from_nano_usd(40)));
        parent.spend(Cost::from_nano_usd(1000));
        assert!(parent.is_spent());
    }

    #[test]
    fn without_a_limit_nothing_runs_out() {
        let parent = Arc::new(Budget::new(None));
        let child = Budget::share_of(&parent);
        child.spend(Cost::from_nano_usd(u64::MAX));
        assert!(!child.is_spent() && !parent.is_spent());
    }
}
