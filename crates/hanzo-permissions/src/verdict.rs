//! The answers the crate gives, and how they combine.

use serde::{Deserialize, Serialize};

/// What a policy says about a call. Ordered from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Run it.
    Allow,
    /// Ask the user first.
    #[default]
    #[serde(alias = "prompt")]
    Ask,
    /// Do not run it, in any mode.
    Deny,
}

impl Decision {
    /// The word used in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The strictest of several answers, `Allow` when there are none.
///
/// Layers of the gate combine this way: a hook that says allow cannot lift a deny.
///
/// ```
/// use hanzo_permissions::{Decision, strictest};
/// assert_eq!(strictest([Decision::Deny, Decision::Allow]), Decision::Deny);
/// ```
pub fn strictest(decisions: impl IntoIterator<Item = Decision>) -> Decision {
    decisions.into_iter().max().unwrap_or(Decision::Allow)
}

/// Whether a rule matches, when the text may leave that open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// It provably does not.
    No,
    /// Nothing proves that it does not.
    Unproven,
    /// It does.
    Yes,
}
