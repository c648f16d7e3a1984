//! Hooks that really run, well-behaved and not.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod contract;
mod misbehaviour;

use std::path::Path;
use std::sync::Arc;

use hanzo_hooks::{Hook, HookEvent, Hooks, PreOutcome, PreVerdict, Shell, ToolEvent};
use serde_json::Value;

/// Hooks that run in `place`.
fn hooks_in(place: &Path, hooks: Vec<Hook>) -> Hooks {
    Hooks::new(hooks, Arc::new(Shell::new().in_directory(place)))
}

fn pre(command: &str) -> Hook {
    Hook::new(HookEvent::PreToolUse, command)
}

fn event<'a>(tool: &'a str, input: &'a Value) -> ToolEvent<'a> {
    ToolEvent { tool, aliases: vec![], input, session: "thread-1" }
}

/// The reason of a refusal.
fn reason(outcome: &PreOutcome) -> &str {
    match &outcome.verdict {
        PreVerdict::Deny { reason, .. } => reason,
        PreVerdict::Allow => panic!("it was let through"),
    }
}

fn read(place: &Path, name: &str) -> String {
    std::fs::read_to_string(place.join(name)).unwrap()
}
