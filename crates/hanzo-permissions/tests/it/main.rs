//! Tests through the public interface.

mod audit;
mod corpus_deny;
mod corpus_smuggle;
mod differential;
mod facts;
mod gate;
mod policy;
mod properties;
mod rules;
mod run;
mod scopes;
mod shell;
mod vectors;

use hanzo_permissions::{Call, Decision, Policy, Rule};
use serde_json::json;

/// A policy of these rules, with the default mode.
fn policy(allow: &[&str], ask: &[&str], deny: &[&str]) -> Policy {
    let parse = |rules: &[&str]| rules.iter().map(|rule| Rule::parse(rule).expect("a rule")).collect();
    Policy { mode: Decision::Ask, allow: parse(allow), ask: parse(ask), deny: parse(deny) }
}

/// The decision about a shell command.
fn bash(policy: &Policy, command: &str) -> Decision {
    policy.decide(&Call::new("proc.exec", &json!({ "command": command })))
}
