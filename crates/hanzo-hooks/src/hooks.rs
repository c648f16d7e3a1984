//! Runs the hooks that concern a call, and says what they make of it.

use std::sync::Arc;

use serde_json::json;

use crate::glob::Glob;
use crate::hook::{Hook, HookEvent, Notice, OnError, ToolEvent};
use crate::spawner::{HookEnd, HookOutput, HookRun, HookSpawner, StartError};
use crate::text::plain_text;

/// The longest value that goes into a variable. The system refuses a variable of 131,055 bytes and more.
const MOST_IN_A_VARIABLE: usize = 100_000;

/// The most that is kept of each output of a hook.
const MOST_OUTPUT: usize = 64 * 1024;

/// The most of a hook's words that a reason or a report holds, in characters.
const MOST_WORDS: usize = 2_000;

/// The exit code that refuses a call.
const DENY: i32 = 2;

/// The configured hooks, ready to run. See the [crate's documentation](crate).
pub struct Hooks {
    hooks: Vec<(Hook, Glob)>,
    spawner: Arc<dyn HookSpawner>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

/// What the hooks before a call make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreVerdict {
    /// None has anything against it.
    Allow,
    /// One refuses it.
    Deny {
        /// Why, fit to show.
        reason: String,
        /// The hook's command.
        hook: String,
    },
}

/// A verdict, and what should be logged about the hooks that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreOutcome {
    /// The verdict.
    pub verdict: PreVerdict,
    /// The hooks that failed, also the one whose failure blocks the call.
    pub reports: Vec<HookReport>,
}

/// A hook that did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReport {
    /// When it ran.
    pub event: HookEvent,
    /// Its command.
    pub hook: String,
    /// What happened, fit to show.
    pub problem: String,
}

impl Hooks {
    /// The hooks in the order in which they run, and who starts them.
    pub fn new(hooks: Vec<Hook>, spawner: Arc<dyn HookSpawner>) -> Self {
        let compiled = |hook: Hook| {
            // A pattern that was left empty must not mean that a guard never stands.
            let pattern = if hook.tool_pattern.trim().is_empty() { "*" } else { hook.tool_pattern.trim() };
            let glob = Glob::new(pattern);
            (hook, glob)
        };
        Self { hooks: hooks.into_iter().map(compiled).collect(), spawner }
    }

    /// No hooks.
    pub fn none() -> Self {
        Self { hooks: Vec::new(), spawner: Arc::new(Nobody) }
    }

    /// Whether any hook at all runs at `event`.
    pub fn has(&self, event: HookEvent) -> bool {
        self.hooks.iter().any(|(hook, _)| hook.event == event)
    }

    /// Runs the hooks before a call, in order, up to the first that refuses it. Dropping the future kills the one that runs.
    pub async fn pre(&self, event: &ToolEvent<'_>) -> PreOutcome {
        let mut reports = Vec::new();
        for hook in self.concerned(HookEvent::PreToolUse, event.names()) {
            let ended = self.run(hook, || variables(event), || input_line(event)).await;
            if let Ok(HookOutput { end: HookEnd::Exited(DENY), stderr, .. }) = &ended {
                let words = plain_text(&String::from_utf8_lossy(&stderr.bytes), MOST_WORDS);
                let reason = if words.is_empty() { "the hook gave no reason".to_owned() } else { words };
                return PreOutcome {
                    verdict: PreVerdict::Deny { reason, hook: shown(&hook.command) },
                    reports,
                };
            }
            let Some(problem) = problem(hook, &ended) else { continue };
            reports.push(HookReport {
                event: hook.event,
                hook: shown(&hook.command),
                problem: problem.clone(),
            });
            if hook.on_error == OnError::Block {
                return PreOutcome {
                    verdict: PreVerdict::Deny { reason: problem, hook: shown(&hook.command) },
                    reports,
                };
            }
        }
        PreOutcome { verdict: PreVerdict::Allow, reports }
    }

    /// Runs the hooks after a call, in order, and reports those that failed.
    pub async fn post(&self, event: &ToolEvent<'_>, output: &str) -> Vec<HookReport> {
        let mut reports = Vec::new();
        for hook in self.concerned(HookEvent::PostToolUse, event.names()) {
            let variables = || {
                let mut variables = variables(event);
                // A variable cannot hold a NUL.
                push_capped(&mut variables, "HANZO_TOOL_OUTPUT", output.replace('\0', "\u{fffd}"));
                variables
            };
            let stdin = || {
                let mut lines = input_line(event);
                lines.extend_from_slice(json!({ "tool_output": output }).to_string().as_bytes());
                lines.push(b'\n');
                lines
            };
            let ended = self.run(hook, variables, stdin).await;
            reports.extend(report(hook, &ended));
        }
        reports
    }

    /// Tells hooks that a person is being asked. They hear what the notice says and nothing else of the call.
    pub async fn notify(&self, notice: &Notice<'_>) -> Vec<HookReport> {
        let mut reports = Vec::new();
        let names = std::iter::once(notice.tool).chain(notice.aliases.iter().copied());
        for hook in self.concerned(HookEvent::Notification, names) {
            let variables = || {
                let mut variables = vec![
                    ("HANZO_TOOL_NAME".to_owned(), without_nul(notice.tool)),
                    ("HANZO_SESSION_ID".to_owned(), without_nul(notice.session)),
                ];
                if let Some(summary) = notice.summary {
                    push_capped(&mut variables, "HANZO_SUMMARY", without_nul(summary));
                }
                variables
            };
            let stdin = || {
                let mut told = json!({ "tool_name": notice.tool });
                if let Some(summary) = notice.summary {
                    told["summary"] = summary.into();
                }
                format!("{told}\n").into_bytes()
            };
            let ended = self.run(hook, variables, stdin).await;
            reports.extend(report(hook, &ended));
        }
        reports
    }

    fn concerned<'a>(
        &'a self,
        event: HookEvent,
        names: impl Iterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a Hook> {
        let names: Vec<&str> = names.collect();
        self.hooks
            .iter()
            .filter(move |(hook, glob)| hook.event == event && names.iter().any(|name| glob.matches(name)))
            .map(|(hook, _)| hook)
    }

    async fn run(
        &self,
        hook: &Hook,
        env: impl FnOnce() -> Vec<(String, String)>,
        stdin: impl FnOnce() -> Vec<u8>,
    ) -> Result<HookOutput, StartError> {
        if hook.command.trim().is_empty() {
            return Err(StartError { reason: "its command is empty".to_owned() });
        }
        let run = HookRun {
            command: hook.command.clone(),
            env: env(),
            stdin: stdin(),
            timeout: hook.timeout(),
            most_output: MOST_OUTPUT,
        };
        self.spawner.run(run).await
    }
}

fn variables(event: &ToolEvent<'_>) -> Vec<(String, String)> {
    let mut variables = vec![
        ("HANZO_TOOL_NAME".to_owned(), without_nul(event.tool)),
        ("HANZO_SESSION_ID".to_owned(), without_nul(event.session)),
    ];
    push_capped(&mut variables, "HANZO_TOOL_INPUT", event.input.to_string());
    variables
}

fn push_capped(variables: &mut Vec<(String, String)>, name: &str, value: String) {
    if value.len() > MOST_IN_A_VARIABLE {
        variables.push((name.to_owned(), String::new()));
        variables.push((format!("{name}_TRUNCATED"), "1".to_owned()));
    } else {
        variables.push((name.to_owned(), value));
    }
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

fn input_line(event: &ToolEvent<'_>) -> Vec<u8> {
    format!("{}\n", event.input).into_bytes()
}

fn shown(command: &str) -> String {
    plain_text(command, 200)
}

fn report(hook: &Hook, ended: &Result<HookOutput, StartError>) -> Option<HookReport> {
    let problem = problem(hook, ended)?;
    Some(HookReport { event: hook.event, hook: shown(&hook.command), problem })
}

/// What went wrong, if something did.
fn problem(hook: &Hook, ended: &Result<HookOutput, StartError>) -> Option<String> {
    let what = match ended {
        Ok(HookOutput { end: HookEnd::Exited(0), .. }) => return None,
        Ok(HookOutput { end: HookEnd::Exited(code), .. }) => format!("the hook ended with code {code}"),
        Ok(HookOutput { end: HookEnd::Signalled(signal), .. }) => {
            format!("the hook was ended by signal {signal}")
        }
        Ok(HookOutput { end: HookEnd::TimedOut, .. }) => {
            format!("the hook took longer than {} ms and was killed", hook.timeout_ms)
        }
        Err(error) => plain_text(&error.to_string(), MOST_WORDS),
    };
    let words = match ended {
        Ok(output) => plain_text(&String::from_utf8_lossy(&output.stderr.bytes), MOST_WORDS),
        Err(_) => String::new(),
    };
    Some(if words.is_empty() { what } else { format!("{what}: {words}") })
}

/// Starts nothing.
struct Nobody;

impl HookSpawner for Nobody {
    fn run(&self, _: HookRun) -> crate::BoxFuture<'_, Result<HookOutput, StartError>> {
        Box::pin(async { Err(StartError { reason: "nobody starts hooks here".to_owned() }) })
    }
}
