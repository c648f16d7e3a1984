//! Sets of actions that a thread can be confined to while it runs. The gate asks one beside the capabilities of the agent, so
//! that it takes away and never gives: what it leaves in still needs a rule or a person.

use std::sync::Arc;

use crate::item::ToolCallItem;
use crate::tool::Reach;

/// Says which calls are left in. It may change while the thread runs, so the gate asks it anew for every call.
pub trait Narrowing: Send + Sync {
    /// Whether a call with this reach is left in.
    fn check(&self, reach: &Reach) -> Result<(), Narrowed>;

    /// The tool whose calls change what is left in, when there is one. They are told again when the thread is opened again.
    fn recalls(&self) -> Option<&'static str> {
        None
    }

    /// A call of that tool succeeded earlier in the thread, before it was opened this time.
    fn recall(&self, call: &ToolCallItem) {
        let _ = call;
    }
}

/// A call that is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{action}` is left out by {by}: {reason}")]
pub struct Narrowed {
    /// The canonical action.
    pub action: String,
    /// What leaves it out, such as ``the mode `reviewer` ``.
    pub by: String,
    /// Why, and what to do instead.
    pub reason: String,
}

/// Leaves everything in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unnarrowed;

impl Narrowing for Unnarrowed {
    fn check(&self, _: &Reach) -> Result<(), Narrowed> {
        Ok(())
    }
}

/// Several at once: a call must be left in by all. A subagent has its parent's beside its own. None of them is told of earlier
/// calls here: whose they are is not known.
#[derive(Clone, Default)]
pub struct AllOf(pub Vec<Arc<dyn Narrowing>>);

impl Narrowing for AllOf {
    fn check(&self, reach: &Reach) -> Result<(), Narrowed> {
        self.0.iter().try_for_each(|one| one.check(reach))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Effect;

    struct Only(&'static str);

    impl Narrowing for Only {
        fn check(&self, reach: &Reach) -> Result<(), Narrowed> {
            if reach.action == self.0 {
                return Ok(());
            }
            Err(Narrowed { action: reach.action.clone(), by: "a test".into(), reason: "it says so".into() })
        }
    }

    #[test]
    fn a_call_must_be_left_in_by_all() {
        let read = Reach::new("fs.read", Effect::Read);
        assert_eq!(Unnarrowed.check(&read), Ok(()));
        assert_eq!(AllOf::default().check(&read), Ok(()));
        assert_eq!(AllOf(vec![Arc::new(Only("fs.read")), Arc::new(Unnarrowed)]).check(&read), Ok(()));
        let refused = AllOf(vec![Arc::new(Unnarrowed), Arc::new(Only("fs.stat"))]).check(&read).unwrap_err();
        assert_eq!(refused.to_string(), "`fs.read` is left out by a test: it says so");
    }
}
