//! Why a decision is what it is, for people and for the model.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::call::{Facts, Subject};
use crate::policy::{Basis, List, Outcome, Policy};
use crate::rule::Rule;
use crate::shell::Opaque;
use crate::tools::Access;
use crate::verdict::Decision;

/// The most commands a breakdown lists.
const MAX_COMMANDS: usize = 32;

/// A rule as an explanation names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleRef {
    /// The rule as it was written.
    pub text: String,
    /// The list it is in.
    pub list: List,
    /// Where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The tier it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Why it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RuleRef {
    fn new(rule: &Rule, list: List) -> Self {
        Self {
            text: rule.text().to_owned(),
            list,
            origin: rule.origin().map(str::to_owned),
            tier: rule.tier().map(str::to_owned),
            reason: rule.reason().map(str::to_owned),
        }
    }
}

/// One simple command of a command line, and the allow rule that covers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRef {
    /// The command.
    pub text: String,
    /// The allow rule that covers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered_by: Option<String>,
}

/// Why a command line is opaque.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpaqueRef {
    /// For programs.
    pub code: Opaque,
    /// For people.
    pub reason: String,
}

/// A decision and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The tool, by its canonical id where it has one.
    pub tool: String,
    /// Whether the tool only looks.
    pub access: Access,
    /// The decision.
    pub decision: Decision,
    /// What it rests on.
    pub basis: Basis,
    /// Whether no rule decided.
    pub fallback: bool,
    /// The deciding rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
    /// What the call acts on, each cut to 512 bytes.
    pub subjects: Vec<String>,
    /// The subject that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The simple command that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The simple commands of the command line, when it is plain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRef>,
    /// Why no allow rule with a specifier can cover the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<OpaqueRef>,
    /// What the model is told when the call is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

impl Explanation {
    pub(crate) fn new(policy: &Policy, facts: &Facts<'_>, outcome: Outcome) -> Self {
        let rule =
            outcome.rule.and_then(|(list, index)| Some(RuleRef::new(policy.list(list).get(index)?, list)));
        let deciding = outcome.subject.and_then(|index| facts.subjects.get(index));
        let mut explanation = Self {
            tool: facts.tool_id().to_owned(),
            access: facts.access(),
            decision: outcome.decision,
            basis: outcome.basis,
            fallback: matches!(outcome.basis, Basis::ReaderFallback | Basis::ModeFallback),
            rule,
            subjects: facts.subjects().take(MAX_COMMANDS).map(Cow::into_owned).collect(),
            subject: deciding.map(|subject| subject.shown().into_owned()),
            command: None,
            commands: Vec::new(),
            opaque: None,
            blocked: None,
        };
        for subject in &facts.subjects {
            match subject {
                Subject::Command(command) => {
                    let analysis = command.analysis();
                    match &analysis.plain {
                        Ok(commands) => {
                            explanation.commands.extend(commands.iter().take(MAX_COMMANDS).map(|command| {
                                CommandRef {
                                    text: crate::call::shorten(&command.shown()).to_owned(),
                                    covered_by: policy
                                        .covering_command(facts, command)
                                        .map(|rule| rule.text().to_owned()),
                                }
                            }));
                        }
                        Err(code) => {
                            explanation.opaque =
                                Some(OpaqueRef { code: *code, reason: code.reason().to_owned() });
                        }
                    }
                }
                Subject::Unknown { reason, .. } => {
                    explanation.opaque =
                        Some(OpaqueRef { code: Opaque::Unsupported, reason: (*reason).to_owned() });
                }
                _ => {}
            }
        }
        if let (Some(Subject::Command(command)), Some(index)) = (deciding, outcome.command) {
            let found = command.analysis().found.get(index);
            explanation.command = found.map(|command| crate::call::shorten(&command.shown()).to_owned());
        }
        if explanation.decision == Decision::Deny {
            explanation.blocked = Some(explanation.blocked_message());
        }
        explanation
    }

    /// Why, in one clause.
    pub fn reason(&self) -> String {
        let rule = self.rule.as_ref().map(|rule| format!("the {} rule `{}`", rule.list.name(), rule.text));
        let because = self
            .rule
            .as_ref()
            .and_then(|rule| rule.reason.as_deref())
            .map(|r| format!(" ({r})"))
            .unwrap_or_default();
        let rule = rule.unwrap_or_else(|| "no rule".to_owned());
        let opaque = self.opaque.as_ref().map(|o| format!(", because {}", o.reason)).unwrap_or_default();
        match self.basis {
            Basis::Rule => format!("{rule} matches{because}"),
            Basis::UnprovenDeny | Basis::UnprovenAsk => {
                format!("nothing proves that {rule} does not match{opaque}{because}")
            }
            Basis::ReaderFallback => "no rule matches and the tool only reads".to_owned(),
            Basis::ModeFallback => {
                format!("no rule matches, and the mode for tools that change things is `{}`", self.decision)
            }
            Basis::FreshApproval => "this tool needs a person's approval every time".to_owned(),
            Basis::UserDecision => "this is for the user to decide".to_owned(),
        }
    }

    /// What the model is told instead of a result, so that it can go on another way.
    fn blocked_message(&self) -> String {
        let what = self
            .command
            .as_deref()
            .or(self.subject.as_deref())
            .map(|s| format!(" `{s}`"))
            .unwrap_or_default();
        format!(
            "blocked: `{}`{what} was not run: {}. Do not try to reach the same effect in another way; choose a different approach or ask the user.",
            self.tool,
            self.reason(),
        )
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: `{}`", self.decision, self.tool)?;
        writeln!(f, "  why: {}", self.reason())?;
        if let Some(rule) = &self.rule {
            let place: Vec<&str> =
                [rule.origin.as_deref(), rule.tier.as_deref()].into_iter().flatten().collect();
            if !place.is_empty() {
                writeln!(f, "  rule from: {}", place.join(", "))?;
            }
        }
        for subject in &self.subjects {
            writeln!(f, "  subject: {}", one_line(subject))?;
        }
        if let Some(command) = &self.command {
            writeln!(f, "  deciding command: {}", one_line(command))?;
        }
        for command in &self.commands {
            let covered =
                command.covered_by.as_ref().map_or("no allow rule".to_owned(), |rule| format!("`{rule}`"));
            writeln!(f, "  command: {} — covered by {covered}", one_line(&command.text))?;
        }
        if let Some(opaque) = &self.opaque {
            writeln!(f, "  opaque: {}", opaque.reason)?;
        }
        Ok(())
    }
}

/// Text of the model's making may hold anything; a terminal should see none of it but letters.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}
