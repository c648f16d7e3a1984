//! The permission model of the HIP document: an ordered list over tool names, first match wins, otherwise prompt.
//!
//! It is kept as a pure function for the parity vectors. The product decides with [`crate::Policy`], whose lists
//! these rules join (see [`crate::PolicySource`]).

use serde::{Deserialize, Serialize};

use crate::glob::{Case, Glob};

/// What a rule says about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PermissionMode {
    /// Run without asking.
    Allow,
    /// Do not run; say so.
    Deny,
    /// Ask first.
    #[default]
    #[serde(alias = "ask")]
    Prompt,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// A glob over the tool's name: `mcp__*`, `fs.write`, `[!f]s.*`.
    pub tool_pattern: String,
    /// What to do with matching tools.
    pub mode: PermissionMode,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An ordered list of rules.
#[derive(Debug, Clone, Default)]
pub struct PermissionPolicy {
    rules: Vec<(Glob, PermissionRule)>,
}

impl PermissionPolicy {
    /// A policy of these rules, in this order.
    pub fn new(rules: impl IntoIterator<Item = PermissionRule>) -> Self {
        Self { rules: rules.into_iter().map(|rule| (Glob::name(&rule.tool_pattern), rule)).collect() }
    }

    /// The mode of the first rule that matches, or prompt.
    ///
    /// ```
    /// use hanzo_permissions::hip::{PermissionMode, PermissionPolicy};
    /// assert_eq!(PermissionPolicy::default().evaluate("fs.read"), PermissionMode::Prompt);
    /// ```
    pub fn evaluate(&self, tool_name: &str) -> PermissionMode {
        self.deciding(tool_name).map_or(PermissionMode::Prompt, |rule| rule.mode)
    }

    /// The first rule that matches.
    pub fn deciding(&self, tool_name: &str) -> Option<&PermissionRule> {
        self.rules.iter().find(|(glob, _)| glob.matches(tool_name, Case::Sensitive)).map(|(_, rule)| rule)
    }
}
