//! The policy: three lists of rules and a fallback.
//!
//! `deny` beats `ask` beats `allow` beats the fallback, whichever file or tier a rule comes from. There is one
//! evaluator; [`Policy::decide`] and [`Policy::explain`] are two views of what it returns.

use serde::Serialize;

use crate::call::{Call, Facts, Subject};
use crate::explain::Explanation;
use crate::path::NormalPath;
use crate::rule::{Rule, Side, Specifier, ToolPattern};
use crate::shell::SimpleCommand;
use crate::tools::{self, Access, Family};
use crate::verdict::{Decision, Match};

/// Which list a rule is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// Calls that run without a question.
    Allow,
    /// Calls that always ask.
    Ask,
    /// Calls that never run.
    Deny,
}

impl List {
    /// The word used in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What a decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Basis {
    /// A rule that matches.
    Rule,
    /// A deny rule of which it cannot be proved that it does not match.
    UnprovenDeny,
    /// An ask rule of which it cannot be proved that it does not match.
    UnprovenAsk,
    /// No rule: the tool only looks.
    ReaderFallback,
    /// No rule: the policy's mode.
    ModeFallback,
    /// The tool needs a human's approval every time.
    FreshApproval,
    /// The call is a question to the user, or a plan for the user to accept.
    UserDecision,
}

/// Rules and the fallback for writers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// What happens to writers that no rule decides.
    pub mode: Decision,
    /// Rules that let calls run.
    pub allow: Vec<Rule>,
    /// Rules that make calls ask.
    pub ask: Vec<Rule>,
    /// Rules that stop calls.
    pub deny: Vec<Rule>,
}

/// What the evaluator found, in indices, so that deciding allocates nothing for the explanation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) decision: Decision,
    pub(crate) basis: Basis,
    /// The list and the index of the deciding rule.
    pub(crate) rule: Option<(List, usize)>,
    /// The index of the subject that decided.
    pub(crate) subject: Option<usize>,
    /// The index among the found commands of that subject.
    pub(crate) command: Option<usize>,
}

/// Where a rule hit.
struct Hit {
    verdict: Match,
    rule: usize,
    subject: Option<usize>,
    command: Option<usize>,
}

impl Policy {
    /// Whether the call may run.
    pub fn decide(&self, call: &Call<'_>) -> Decision {
        self.evaluate(&call.facts()).decision
    }

    /// The decision, and what led to it.
    pub fn explain(&self, call: &Call<'_>) -> Explanation {
        self.explain_facts(&call.facts())
    }

    /// [`explain`](Self::explain) for a call whose facts are known already.
    pub fn explain_facts(&self, facts: &Facts<'_>) -> Explanation {
        let outcome = self.evaluate(facts);
        Explanation::new(self, facts, outcome)
    }

    /// The rules of a list.
    pub fn list(&self, list: List) -> &[Rule] {
        match list {
            List::Allow => &self.allow,
            List::Ask => &self.ask,
            List::Deny => &self.deny,
        }
    }

    /// Adds the rules of another policy, such as one of a lower tier. The stricter mode stays: a lower tier can
    /// remove nothing.
    pub fn extend(&mut self, other: Self) {
        self.mode = self.mode.max(other.mode);
        self.allow.extend(other.allow);
        self.ask.extend(other.ask);
        self.deny.extend(other.deny);
    }

    pub(crate) fn evaluate(&self, facts: &Facts<'_>) -> Outcome {
        let deny = strongest(&self.deny, facts);
        if let Some(hit) = deny.as_ref().filter(|hit| hit.verdict == Match::Yes) {
            return hit.outcome(Decision::Deny, Basis::Rule, List::Deny);
        }
        let ask = strongest(&self.ask, facts);
        let asks = ask.as_ref().is_some_and(|hit| hit.verdict == Match::Yes);
        let doubt = match (&deny, &ask) {
            (Some(hit), _) => Some(hit.outcome(Decision::Ask, Basis::UnprovenDeny, List::Deny)),
            (None, Some(hit)) if asks => return hit.outcome(Decision::Ask, Basis::Rule, List::Ask),
            (None, Some(hit)) => Some(hit.outcome(Decision::Ask, Basis::UnprovenAsk, List::Ask)),
            (None, None) => None,
        };
        // Doubt about a rule may tighten what holds without it, never loosen it: a mode of deny stays.
        match doubt {
            Some(doubt) if asks => doubt,
            Some(doubt) => {
                Some(self.settle(facts)).filter(|rest| rest.decision == Decision::Deny).unwrap_or(doubt)
            }
            None => self.settle(facts),
        }
    }

    /// The decision where neither a deny nor an ask rule matches.
    fn settle(&self, facts: &Facts<'_>) -> Outcome {
        if facts.ids().any(tools::is_user_decision) {
            return Outcome::without_rule(Decision::Ask, Basis::UserDecision);
        }
        if facts.ids().any(tools::needs_fresh_approval) {
            return Outcome::without_rule(Decision::Ask, Basis::FreshApproval);
        }
        if let Some(rule) = self.covering(facts) {
            let rule = Some((List::Allow, rule));
            return Outcome { rule, ..Outcome::without_rule(Decision::Allow, Basis::Rule) };
        }
        match facts.access() {
            Access::Reader => Outcome::without_rule(Decision::Allow, Basis::ReaderFallback),
            Access::Writer => Outcome::without_rule(self.mode, Basis::ModeFallback),
        }
    }

    /// The index of a rule that, with others or alone, covers the whole call.
    fn covering(&self, facts: &Facts<'_>) -> Option<usize> {
        let relevant: Vec<(usize, &Rule)> =
            self.allow.iter().enumerate().filter(|(_, rule)| covers_tool(rule, facts)).collect();
        if let Some((index, _)) = relevant.iter().find(|(_, rule)| covers_call(rule, facts)) {
            return Some(*index);
        }
        // A search is covered by where it looks or, in the older form `grep(TODO)`, by what it looks for.
        let (patterns, others): (Vec<_>, Vec<_>) =
            facts.subjects.iter().partition(|subject| matches!(subject, Subject::Pattern(_)));
        let cover = |subjects: &[&Subject<'_>]| {
            let mut last = None;
            for subject in subjects {
                last = Some(cover_subject(&relevant, facts, subject)?);
            }
            last
        };
        cover(&others).or_else(|| cover(&patterns))
    }

    /// The allow rule that covers one simple command of a call, for the breakdown of an explanation.
    pub(crate) fn covering_command(&self, facts: &Facts<'_>, command: &SimpleCommand) -> Option<&Rule> {
        self.allow
            .iter()
            .filter(|rule| covers_tool(rule, facts))
            .find(|rule| rule.specifier.as_ref().is_none_or(|specifier| specifier.command.covers(command)))
    }
}

impl Hit {
    fn outcome(&self, decision: Decision, basis: Basis, list: List) -> Outcome {
        Outcome {
            decision,
            basis,
            rule: Some((list, self.rule)),
            subject: self.subject,
            command: self.command,
        }
    }
}

impl Outcome {
    fn without_rule(decision: Decision, basis: Basis) -> Self {
        Self { decision, basis, rule: None, subject: None, command: None }
    }
}

/// The first rule that certainly matches, otherwise the first that may.
fn strongest(rules: &[Rule], facts: &Facts<'_>) -> Option<Hit> {
    let mut best: Option<Hit> = None;
    for (index, rule) in rules.iter().enumerate() {
        if !rule.tool.matches(facts, Side::Catches) {
            continue;
        }
        let hit = match &rule.specifier {
            None => Hit { verdict: Match::Yes, rule: index, subject: None, command: None },
            Some(specifier) => catch(specifier, &rule.tool, facts, index),
        };
        if hit.verdict == Match::Yes {
            return Some(hit);
        }
        if hit.verdict == Match::Unproven {
            best.get_or_insert(hit);
        }
    }
    best
}

fn catch(specifier: &Specifier, tool: &ToolPattern, facts: &Facts<'_>, rule: usize) -> Hit {
    let mut best = Hit { verdict: Match::No, rule, subject: None, command: None };
    if *tool == ToolPattern::Family(Family::Mcp) {
        if specifier.matches_mcp(facts.given(), Side::Catches) {
            best.verdict = Match::Yes;
        }
        return best;
    }
    for (index, subject) in facts.subjects.iter().enumerate() {
        if !concerns(tool, subject) {
            continue;
        }
        let (verdict, command) = match subject {
            Subject::Command(command) => specifier.command.catches(command.analysis()),
            Subject::Path { forms, extent, .. } => (
                forms.iter().map(|path| specifier.path.catches(path, *extent)).max().unwrap_or(Match::No),
                None,
            ),
            Subject::Url { url, .. } => (specifier.url.catches(url), None),
            Subject::Pattern(text) => {
                (if specifier.text.matches(text) { Match::Yes } else { Match::No }, None)
            }
            Subject::Unknown { .. } => (Match::Unproven, None),
        };
        if verdict > best.verdict {
            best = Hit { verdict, rule, subject: Some(index), command };
        }
    }
    best
}

/// Whether a rule's specifier is about this kind of subject. A family's always is about one kind.
fn concerns(tool: &ToolPattern, subject: &Subject<'_>) -> bool {
    match (tool, subject) {
        (_, Subject::Unknown { .. }) => true,
        (ToolPattern::Family(Family::Bash), subject) => matches!(subject, Subject::Command(_)),
        (ToolPattern::Family(Family::Edit | Family::Read), subject) => {
            matches!(subject, Subject::Path { .. })
        }
        (ToolPattern::Family(Family::Net), subject) => matches!(subject, Subject::Url { .. }),
        (ToolPattern::Family(Family::Mcp), _) => false,
        _ => true,
    }
}

fn covers_tool(rule: &Rule, facts: &Facts<'_>) -> bool {
    rule.tool.matches(facts, Side::Covers)
}

/// Whether the rule by itself, without a look at the subjects, covers the call.
fn covers_call(rule: &Rule, facts: &Facts<'_>) -> bool {
    match (&rule.specifier, &rule.tool) {
        (Some(specifier), ToolPattern::Family(Family::Mcp)) => {
            specifier.matches_mcp(facts.given(), Side::Covers)
        }
        (Some(_), _) => false,
        // A call of two families (a download) needs a rule for each side of it.
        (None, ToolPattern::Family(_)) => facts.families().len() == 1,
        (None, _) => true,
    }
}

/// The index of a rule that covers the subject; for commands, of the rule that covers the last of them.
fn cover_subject(rules: &[(usize, &Rule)], facts: &Facts<'_>, subject: &Subject<'_>) -> Option<usize> {
    let find = |covers: &dyn Fn(&Specifier) -> bool| {
        rules
            .iter()
            .find(|(_, rule)| match &rule.specifier {
                Some(specifier) => concerns(&rule.tool, subject) && covers(specifier),
                None => facts.families().len() > 1 && concerns(&rule.tool, subject),
            })
            .map(|(index, _)| *index)
    };
    match subject {
        Subject::Command(command) => {
            // Opaque commands are covered by no specifier at all.
            let commands = command.analysis().plain.as_ref().ok()?;
            let mut last = None;
            for command in commands {
                last = Some(find(&|specifier| specifier.command.covers(command))?);
            }
            last
        }
        Subject::Path { forms, .. } => {
            find(&|specifier| forms.iter().all(|path: &NormalPath| specifier.path.covers(path)))
        }
        Subject::Url { url, .. } => find(&|specifier| specifier.url.covers(url)),
        Subject::Pattern(text) => find(&|specifier| specifier.text.matches(text)),
        Subject::Unknown { .. } => None,
    }
}
