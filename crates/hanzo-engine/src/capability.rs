//! What an agent, or somebody who calls from elsewhere, may use at all. Agent manifests (`agents/*.toml`) declare it; the
//! gate asks it first, before any rule and any person.
//!
//! A set names canonical actions by pattern and may limit effects. Sets only ever narrow each other: a subagent has its
//! own set *and* its parent's, a remote caller its own *and* the agent's.
//!
//! ```
//! use hanzo_engine::capability::Capabilities;
//! use hanzo_protocol::tool::{Effect, Reach};
//!
//! let reviewer: Capabilities = toml::from_str(r#"
//!     tools = ["fs", "vcs.diff", "proc.exec"]
//!     without = ["fs.rm"]
//!     effects = ["read", "execute"]
//! "#).unwrap();
//! assert!(reviewer.check(&Reach::new("fs.read", Effect::Read)).is_ok());
//! assert!(reviewer.check(&Reach::new("fs.write", Effect::Write)).is_err());
//! assert!(reviewer.check(&Reach::new("net.request", Effect::Network)).is_err());
//! ```

use hanzo_hooks::Glob;
use hanzo_protocol::tool::{Effect, Reach};
use serde::{Deserialize, Serialize};

/// What an agent or a remote caller may use. The default is nothing; [`Capabilities::everything`] is the user's own agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// Patterns over canonical actions (`fs.read`, `fs.*`, `mcp__github__*`, `*`); a bare tool (`fs`) is all its actions.
    pub tools: Vec<String>,
    /// Patterns over actions that are left out again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The effects its calls may have; absent is every effect the tools have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// Sets that hold as well: those of the parent thread.
    #[serde(skip)]
    pub(crate) within: Vec<Capabilities>,
}

/// Why a call is beyond somebody's capabilities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// No pattern of the set covers the action.
    #[error("`{action}` is not among the tools it was given")]
    Tool {
        /// The action.
        action: String,
    },
    /// A pattern of the set leaves the action out.
    #[error("`{action}` is left out of its tools by `{pattern}`")]
    LeftOut {
        /// The action.
        action: String,
        /// The pattern.
        pattern: String,
    },
    /// The set does not have the call's effect.
    #[error("`{action}` would {} and it was not given that", .effect.verb())]
    Effect {
        /// The action.
        action: String,
        /// What it would do.
        effect: Effect,
    },
}

impl Capabilities {
    /// Everything there is.
    pub fn everything() -> Self {
        Self { tools: vec!["*".to_owned()], ..Self::default() }
    }

    /// Nothing at all: what a caller has who has not shown who they are.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The same set, within `other`: a call must be in both.
    #[must_use]
    pub fn within(mut self, other: &Self) -> Self {
        self.within.push(other.clone());
        self
    }

    /// Whether a call with this reach is in the set.
    pub fn check(&self, reach: &Reach) -> Result<(), Lack> {
        let action = reach.action.as_str();
        // What is left out is left out by any of its names.
        let leaves_out = |pattern: &String| {
            covers(pattern, action)
                || hanzo_permissions::names_of(action).iter().any(|name| covers(pattern, name))
        };
        if let Some(pattern) = self.without.iter().find(|pattern| leaves_out(pattern)) {
            return Err(Lack::LeftOut { action: action.to_owned(), pattern: pattern.clone() });
        }
        if !self.tools.iter().any(|pattern| covers(pattern, action)) {
            return Err(Lack::Tool { action: action.to_owned() });
        }
        if self.effects.as_ref().is_some_and(|effects| !effects.contains(&reach.effect)) {
            return Err(Lack::Effect { action: action.to_owned(), effect: reach.effect });
        }
        self.within.iter().try_for_each(|outer| outer.check(reach))
    }

    /// Whether some action of the tool called `tool` may be in the set, so that it is worth showing to a model. Effects are not
    /// looked at: a tool of which only the readers may be used is worth it too.
    pub fn may_use(&self, tool: &str) -> bool {
        let shown = |pattern: &String| {
            covers(pattern, tool)
                || pattern.split_once('.').is_some_and(|(own, _)| Glob::new(own).matches(tool))
        };
        // Only a pattern that takes the whole tool away hides it.
        let hidden =
            self.without.iter().any(|pattern| covers(pattern, tool) || *pattern == format!("{tool}.*"));
        self.tools.iter().any(shown) && !hidden && self.within.iter().all(|outer| outer.may_use(tool))
    }
}

/// Whether `pattern` takes in `action`: by its glob, or as the bare name of the tool the action is of.
fn covers(pattern: &str, action: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let glob = Glob::new(pattern);
    glob.matches(action) || action.split_once('.').is_some_and(|(tool, _)| glob.matches(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tools: &[&str], without: &[&str]) -> Capabilities {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Capabilities { tools: own(tools), without: own(without), ..Capabilities::default() }
    }

    fn read(action: &str) -> Reach {
        Reach::new(action, Effect::Read)
    }

    #[test]
    fn nothing_is_the_default_and_everything_is_everything() {
        assert!(Capabilities::default().check(&read("fs.read")).is_err());
        assert!(Capabilities::nothing().check(&read("fs.help")).is_err());
        for action in ["fs.read", "agent", "mcp__x__y"] {
            assert_eq!(Capabilities::everything().check(&read(action)), Ok(()), "{action}");
        }
    }

    #[test]
    fn patterns_name_actions_tools_and_groups() {
        let set = set(&["fs", "vcs.d*", "mcp__github__*"], &["fs.rm"]);
        for action in ["fs.read", "fs.write", "vcs.diff", "mcp__github__issues"] {
            assert_eq!(set.check(&read(action)), Ok(()), "{action}");
        }
        for action in ["vcs.log", "proc.exec", "mcp__gitlab__x", "fsx.read", "fs.rm"] {
            assert!(set.check(&read(action)).is_err(), "{action}");
        }
        let quiet = Capabilities { without: vec!["bash".into()], ..Capabilities::everything() };
        assert!(quiet.check(&Reach::new("proc.exec", Effect::Execute)).is_err(), "by its other name");
        assert!(quiet.check(&read("proc.ps")).is_ok());
        assert_eq!(
            set.check(&read("fs.rm")).unwrap_err().to_string(),
            "`fs.rm` is left out of its tools by `fs.rm`"
        );
    }

    #[test]
    fn a_set_within_another_has_no_more_than_either() {
        let parent = Capabilities { effects: Some(vec![Effect::Read]), ..set(&["fs", "vcs"], &["fs.stat"]) };
        let child = set(&["*"], &[]).within(&parent);
        assert!(child.check(&read("fs.read")).is_ok());
        assert!(child.check(&read("fs.stat")).is_err());
        assert!(child.check(&read("proc.ps")).is_err());
        assert!(child.check(&Reach::new("fs.write", Effect::Write)).is_err());
    }

    #[test]
    fn a_tool_is_shown_when_some_action_of_it_may_be_used() {
        let set = set(&["fs.read", "vcs.*", "agent"], &["vcs"]);
        assert!(set.may_use("fs") && set.may_use("agent"));
        assert!(!set.may_use("vcs") && !set.may_use("proc"));
        assert!(!Capabilities::everything().within(&set).may_use("proc"));
    }

    #[test]
    fn a_manifest_with_a_field_nobody_knows_is_refused() {
        assert!(toml::from_str::<Capabilities>("tool = ['fs']").is_err());
        assert!(toml::from_str::<Capabilities>("effects = ['everything']").is_err());
    }
}
