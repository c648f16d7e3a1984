//! What a person is asked, and what a model is told: sentences.

use std::path::Path;

use hanzo_hooks::plain_text;
use hanzo_permissions::{Basis, Lifetime, Offer, offers};
use hanzo_protocol::ids::ApprovalId;
use hanzo_protocol::item::{Approval, Taint};
use hanzo_protocol::tool::{Effect, Place, Reach, ReachConsent};
use serde_json::Value;

use super::call::with_call;
use super::edge::Edge;
use super::policy::{Nature, Ruling};
use super::types::{Classified, Target};

/// The most characters of what a call acts on that a question shows. What is left out is counted.
const MOST_SHOWN: usize = 2_000;

/// A question and what its answers grant.
pub(super) struct Question {
    pub(super) approval: Approval,
    /// The scopes with their rules, in the order of `approval.scopes`.
    pub(super) scopes: Vec<Scope>,
}

/// Something a person may grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// As it is offered and named in the answer.
    pub(super) text: String,
    pub(super) rules: Vec<String>,
    pub(super) lifetime: Lifetime,
}

impl From<Offer> for Scope {
    fn from(offer: Offer) -> Self {
        Self { text: offer.rules.join(" + "), rules: offer.rules, lifetime: offer.lifetime }
    }
}

/// The question whether `target` may run. `evidence` is what the sandbox was in the way of the first time.
pub(super) fn question(
    call: &Classified,
    target: &Target,
    workspace: &Path,
    ruling: &Ruling,
    taint: Option<Taint>,
    evidence: Option<&str>,
) -> Question {
    let scopes = grantable(target, workspace, ruling);
    let approval = Approval {
        approval_id: ApprovalId::new(),
        item_id: call.item,
        tool: target.reach.action.clone(),
        summary: summary(&ruling.explanation.tool, target, ruling.edge),
        reason: reason(&target.reach, ruling, taint, evidence),
        scopes: scopes.iter().map(|scope| scope.text.clone()).collect(),
    };
    Question { approval, scopes }
}

/// What may be granted beyond this once. Nothing where a grant would not hold the next time either.
fn grantable(target: &Target, workspace: &Path, ruling: &Ruling) -> Vec<Scope> {
    let fresh = ruling.exposed
        || ruling.nature.needs_a_person()
        || ruling.edge == Edge::Unconfined
        || matches!(ruling.explanation.basis, Basis::UnprovenDeny);
    // An ask rule asks every time: an allow rule does not outweigh it.
    let by_rule = matches!(ruling.explanation.basis, Basis::Rule | Basis::UnprovenAsk);
    if fresh || by_rule {
        return Vec::new();
    }
    rules_for(target, workspace)
}

/// The rules that would allow the call, from narrow to wide.
pub(super) fn rules_for(target: &Target, workspace: &Path) -> Vec<Scope> {
    with_call(&target.reach, &target.arguments, workspace, |call, _| offers(call))
        .into_iter()
        .map(Scope::from)
        .collect()
}

/// What will happen.
fn summary(action: &str, target: &Target, edge: Edge) -> String {
    let Target { reach, arguments, .. } = target;
    let text = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(*key)).map(shown_value);
    let paths = paths(reach);
    let what = match action {
        "plan.exit" => {
            let plan =
                text(&["plan", "text", "summary"]).map(|plan| format!(":\n{plan}")).unwrap_or_default();
            format!("Accept the plan and begin to carry it out{plan}")
        }
        "memory.remember" => format!("Remember beyond this thread: {}", preview(arguments)),
        "memory.forget" => format!("Forget what is remembered: {}", preview(arguments)),
        "fs.write" => format!("Write {paths}"),
        "fs.apply_patch" | "vcs.apply" => format!("Change {paths}"),
        "fs.rm" => format!("Delete {paths}"),
        "fs.mv" => format!("Move {paths}"),
        "fs.cp" => format!("Copy {paths}"),
        "fs.mkdir" => format!("Make the directory {paths}"),
        action => match (mcp_name(action), reach.effect, text(&["command", "cmd"]), text(&["url", "uri"])) {
            // Before what it is called with: which server hears of it is what matters.
            (Some((server, tool)), _, _, uri) => match (tool.as_str(), uri) {
                ("resources/read", Some(uri)) => format!("Read `{uri}` of the MCP server `{server}`"),
                ("prompts/get", _) => {
                    format!("Get a prompt of the MCP server `{server}`: {}", preview(arguments))
                }
                _ => format!("Call `{tool}` of the MCP server `{server}` with {}", preview(arguments)),
            },
            (None, Effect::Execute, Some(command), _) => format!("Run `{command}`"),
            (None, Effect::Network, _, Some(url)) => format!("Reach {url}"),
            _ => format!("Call `{}` with {}", plain_text(action, 200), preview(arguments)),
        },
    };
    let where_to = match edge {
        Edge::Inside | Edge::Memory | Edge::Network | Edge::Screen => "",
        Edge::OutsideWrite => "\nThis changes files outside the workspace.",
        Edge::Unconfined => {
            "\nThis runs outside the sandbox: it can change every file you can, and reach the network."
        }
    };
    format!("{what}{where_to}")
}

fn paths(reach: &Reach) -> String {
    if reach.paths.is_empty() {
        return "files".to_owned();
    }
    let names: Vec<String> = reach
        .paths
        .iter()
        .take(10)
        .map(|path| match path.place {
            Place::Inside => format!("`{}`", cut(&path.given)),
            // Where it really is: a link may hide that.
            Place::Outside => format!("`{}`", cut(&path.real.display().to_string())),
        })
        .collect();
    let more = reach.paths.len().saturating_sub(10);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", names.join(", "))
}

fn mcp_name(action: &str) -> Option<(String, String)> {
    let (server, tool) = action.strip_prefix("mcp__")?.split_once("__")?;
    Some((plain_text(server, 100), plain_text(tool, 100)))
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            cut(&words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        other => cut(&other.to_string()),
    }
}

/// Arguments in one line.
fn preview(arguments: &Value) -> String {
    match arguments {
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .filter(|(key, _)| *key != "action")
                .map(|(key, value)| {
                    format!("{}: {}", plain_text(key, 100), one_line(&shown_value(value), 300))
                })
                .collect();
            if entries.is_empty() { "no arguments".to_owned() } else { cut(&entries.join(", ")) }
        }
        other => shown_value(other),
    }
}

fn one_line(text: &str, most: usize) -> String {
    plain_text(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// `text` fit to show, and how much of it is not: nobody should consent to what they do not see without knowing it.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= MOST_SHOWN {
        return plain_text(text, MOST_SHOWN);
    }
    format!("{} ({} more characters are not shown)", plain_text(text, MOST_SHOWN), length - MOST_SHOWN)
}

/// Why it is asked.
fn reason(reach: &Reach, ruling: &Ruling, taint: Option<Taint>, evidence: Option<&str>) -> String {
    let explanation = &ruling.explanation;
    let rule = explanation.rule.as_ref().map(|rule| {
        let from = rule.origin.as_deref().or(rule.tier.as_deref()).map(|from| format!(" ({from})"));
        let why = rule.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("the {} rule `{}`{}{why}", rule.list.name(), rule.text, from.unwrap_or_default())
    });
    let rule = rule.unwrap_or_else(|| "a rule".to_owned());
    let opaque = explanation.opaque.as_ref().map(|o| format!(", because {}", o.reason)).unwrap_or_default();
    let command = explanation.command.as_deref().map(|c| format!(" for `{}`", cut(c))).unwrap_or_default();
    let mut reasons = Vec::new();
    if let Some(evidence) = evidence {
        reasons.push(format!("In the sandbox it failed: {}", cut(evidence)));
    }
    if let ReachConsent::Fresh(why) = &reach.consent {
        reasons.push(format!("It is asked about again because {}", cut(why)));
    }
    match (explanation.basis, ruling.edge) {
        _ if ruling.nature == Nature::Renewed => {}
        _ if ruling.nature == Nature::Plan => reasons.push(
            "This is for you to decide. A yes ends plan mode, and until this turn ends its calls run without being asked \
             about; what a rule denies, what leaves the sandbox and further plans still stop"
                .to_owned(),
        ),
        _ if ruling.nature == Nature::Memory => {
            reasons.push("What is remembered is approved each time".to_owned());
        }
        (Basis::Rule, _) if ruling.explanation.decision == hanzo_permissions::Decision::Ask => {
            reasons.push(format!("It is asked about by {rule}{command}"));
        }
        (Basis::UnprovenDeny | Basis::UnprovenAsk, _) => {
            reasons.push(format!("It cannot be told whether {rule} is about this{opaque}"));
        }
        (_, Edge::Unconfined) => reasons.push("It asks to run outside the sandbox".to_owned()),
        _ => reasons.push(format!("No rule covers it{opaque}")),
    }
    if let (true, Some(taint)) = (ruling.exposed, taint) {
        let from = match taint {
            Taint::Network => "the network",
            Taint::Mcp => "an MCP server",
            Taint::Outside => "files outside the workspace",
        };
        reasons.push(format!(
            "The agent has read content from {from}, so what was granted before does not cover it"
        ));
    }
    plain_text(&reasons.join(". "), 4_000)
}

/// How the user could let a call run that was refused because nobody was there.
pub(super) fn way_to_allow(target: &Target, workspace: &Path, ruling: &Ruling) -> String {
    match (ruling.edge, ruling.explanation.basis) {
        _ if ruling.nature == Nature::Renewed => {
            "It has changed since it was allowed: a person has to look at it again, in an attended thread."
                .to_owned()
        }
        _ if ruling.nature.needs_a_person() => {
            "No rule allows this: a person decides it each time.".to_owned()
        }
        (Edge::Unconfined, _) => {
            "No rule allows leaving the sandbox; run it inside, or have a person approve it.".to_owned()
        }
        (_, Basis::UnprovenDeny) => {
            "Spell the command out plainly, so that it can be told apart from what is denied.".to_owned()
        }
        (_, Basis::Rule | Basis::UnprovenAsk) => {
            "The user could take the ask rule away or answer it in an attended thread.".to_owned()
        }
        _ => match rules_for(target, workspace).first() {
            Some(scope) => format!("The user could allow it with the rule `{}`.", scope.text),
            None => "No narrow rule can cover it; in plainer words it might be covered.".to_owned(),
        },
    }
}
