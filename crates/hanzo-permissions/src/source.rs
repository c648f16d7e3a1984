//! Policies as they are written in files: `{mode, allow, ask, deny, rules}`, or a bare list of HIP rules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::Call;
use crate::hip::{PermissionMode, PermissionRule};
use crate::policy::Policy;
use crate::rule::{Rule, RuleError, ToolPattern};
use crate::tools::{self, Family, Subjects};
use crate::verdict::Decision;

/// One entry of a list: the rule alone, or with examples and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RuleSpec {
    /// The rule alone.
    Text(String),
    /// The rule with examples that are checked when it is loaded.
    Full(FullRule),
}

/// A rule with examples.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullRule {
    /// The rule.
    pub rule: String,
    /// Subjects it must match.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Subjects it must not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<String>,
    /// Why it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where it was written, such as `settings.toml:12:3`; filled in by whoever reads the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A policy as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyTable {
    /// The fallback for writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Decision>,
    /// Rules that let calls run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<RuleSpec>,
    /// Rules that make calls ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<RuleSpec>,
    /// Rules that stop calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<RuleSpec>,
    /// Rules in HIP form; each joins the list of its mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PermissionRule>,
}

/// A policy file: the table, or a bare list of HIP rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PolicySource {
    /// `{mode, allow, ask, deny, rules}`.
    Table(PolicyTable),
    /// `[{tool_pattern, mode, reason}]`.
    Hip(Vec<PermissionRule>),
}

impl Default for PolicySource {
    fn default() -> Self {
        Self::Table(PolicyTable::default())
    }
}

impl PolicySource {
    /// Compiles the rules and checks their examples. `tier` is the name of the configuration layer they come from.
    pub fn load(self, tier: Option<&str>) -> Result<Policy, RuleError> {
        let table = match self {
            Self::Table(table) => table,
            Self::Hip(rules) => PolicyTable { rules, ..PolicyTable::default() },
        };
        table.load(tier)
    }
}

impl PolicyTable {
    /// Compiles the rules and checks their examples.
    pub fn load(self, tier: Option<&str>) -> Result<Policy, RuleError> {
        let list = |specs: Vec<RuleSpec>, decision| {
            specs.into_iter().map(|spec| spec.load(decision, tier)).collect::<Result<Vec<_>, _>>()
        };
        let mut policy = Policy {
            mode: self.mode.unwrap_or_default(),
            allow: list(self.allow, Decision::Allow)?,
            ask: list(self.ask, Decision::Ask)?,
            deny: list(self.deny, Decision::Deny)?,
        };
        for hip in self.rules {
            let mut rule = Rule::from_tool_pattern(&hip.tool_pattern)?;
            if let Some(tier) = tier {
                rule = rule.with_tier(tier);
            }
            if let Some(reason) = hip.reason {
                rule = rule.with_reason(reason);
            }
            match hip.mode {
                PermissionMode::Allow => policy.allow.push(rule),
                PermissionMode::Prompt => policy.ask.push(rule),
                PermissionMode::Deny => policy.deny.push(rule),
            }
        }
        Ok(policy)
    }
}

impl RuleSpec {
    /// Compiles the rule for the list of `decision`, and checks its examples as that list would read it.
    pub fn load(self, decision: Decision, tier: Option<&str>) -> Result<Rule, RuleError> {
        let full = match self {
            Self::Text(rule) => FullRule { rule, ..FullRule::default() },
            Self::Full(full) => full,
        };
        let origin = full.origin.clone();
        full.compile(decision, tier).map_err(|error| match origin {
            Some(origin) => RuleError::At { origin, error: Box::new(error) },
            None => error,
        })
    }
}

impl FullRule {
    fn compile(self, decision: Decision, tier: Option<&str>) -> Result<Rule, RuleError> {
        let mut rule = Rule::parse(&self.rule)?;
        if let Some(origin) = self.origin {
            rule = rule.with_origin(origin);
        }
        if let Some(tier) = tier {
            rule = rule.with_tier(tier);
        }
        if let Some(reason) = self.reason {
            rule = rule.with_reason(reason);
        }
        let expected =
            self.matches.iter().map(|e| (e, true)).chain(self.not_match.iter().map(|e| (e, false)));
        for (example, expected) in expected {
            if matches_example(&rule, decision, example) != expected {
                return Err(RuleError::Example {
                    rule: rule.text().to_owned(),
                    example: example.clone(),
                    expected,
                });
            }
        }
        Ok(rule)
    }
}

/// Whether a policy of this rule alone decides as the rule says about a call with that subject.
fn matches_example(rule: &Rule, decision: Decision, example: &str) -> bool {
    let (tool, key) = match &rule.tool {
        ToolPattern::Family(Family::Bash) => ("proc.exec", "command"),
        ToolPattern::Family(Family::Edit) => ("fs.write", "path"),
        ToolPattern::Family(Family::Read) => ("fs.read", "path"),
        ToolPattern::Family(Family::Net) => ("net.request", "url"),
        ToolPattern::Name { name, canonical: Some(id) } if rule.has_specifier() => {
            let key = match tools::find(id).map(|action| action.subjects) {
                Some(Subjects::Url | Subjects::Download) => "url",
                Some(Subjects::Host) => "host",
                Some(Subjects::Search | Subjects::Names) => "pattern",
                _ => "path",
            };
            (name.as_str(), key)
        }
        // Nothing but the name to look at.
        _ => (example, "action"),
    };
    let mcp = (rule.tool == ToolPattern::Family(Family::Mcp))
        .then(|| example.split_once('/').map(|(server, tool)| format!("mcp__{server}__{tool}")))
        .flatten();
    let tool = mcp.as_deref().unwrap_or(tool);
    let mut args = Map::new();
    if key != "action" {
        args.insert(key.to_owned(), Value::String(example.to_owned()));
    }
    let args = Value::Object(args);
    let mut policy = Policy::default();
    match decision {
        Decision::Allow => policy.allow.push(rule.clone()),
        Decision::Ask => policy.ask.push(rule.clone()),
        Decision::Deny => policy.deny.push(rule.clone()),
    }
    let outcome = policy.evaluate(&Call::new(tool, &args).facts());
    outcome.rule.is_some() && outcome.basis == crate::policy::Basis::Rule
}
