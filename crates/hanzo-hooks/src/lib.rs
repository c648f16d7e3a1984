//! Programs that run before and after a tool call and may refuse it.
//!
//! A [`Hook`] is a shell command with a pattern over tool names. Before a call, [`Hooks::pre`] runs every hook that fits, one after
//! the other, until one says no:
//!
//! | the hook | the call |
//! | --- | --- |
//! | exits with 0 | goes on |
//! | exits with 2 | is refused; what the hook wrote to standard error is the reason |
//! | exits otherwise, takes too long, cannot start | is refused; with `on_error = "warn"` it goes on and the failure is reported |
//!
//! A hook can only refuse: exit code 0 means "nothing against it" and overrides no refusal of anybody else. After a call
//! [`Hooks::post`] runs, whose failures are reported and change nothing.
//!
//! # What a hook is told
//! * `HANZO_TOOL_NAME`, `HANZO_SESSION_ID`.
//! * `HANZO_TOOL_INPUT`: the arguments as JSON. Above 100,000 bytes it is empty and `HANZO_TOOL_INPUT_TRUNCATED` is `1`, because the
//!   system refuses longer variables.
//! * After a call also `HANZO_TOOL_OUTPUT`, with the same limit and `HANZO_TOOL_OUTPUT_TRUNCATED`.
//! * On standard input, at any size, the arguments as one line of JSON; after a call a second line, `{"tool_output": "…"}`.
//!
//! A hook need not read its input.
//!
//! # Who starts it
//! [`Hooks`] starts nothing itself: it is given a [`HookSpawner`]. [`Shell`] is one that needs neither a runtime nor a
//! sandbox; a host that confines processes passes its own.
//!
//! ```
//! use std::sync::Arc;
//! use hanzo_hooks::{Hook, HookEvent, Hooks, PreVerdict, Shell, ToolEvent};
//!
//! # #[cfg(unix)] tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let hook = Hook::new(HookEvent::PreToolUse, "echo 'not on a Friday' >&2; exit 2").for_tools("vcs.*");
//! let hooks = Hooks::new(vec![hook], Arc::new(Shell::new()));
//!
//! let input = serde_json::json!({"branch": "main"});
//! let push = ToolEvent { tool: "vcs.push", aliases: vec![], input: &input, session: "s1" };
//! let outcome = hooks.pre(&push).await;
//! let PreVerdict::Deny { reason, .. } = outcome.verdict else { panic!("it was to be refused") };
//! assert_eq!(reason, "not on a Friday");
//!
//! let read = ToolEvent { tool: "fs.read", ..push };
//! assert_eq!(hooks.pre(&read).await.verdict, PreVerdict::Allow);
//! # });
//! ```

mod glob;
mod hook;
mod hooks;
mod shell;
mod spawner;
mod text;

pub use glob::Glob;
pub use hook::{Hook, HookEvent, Notice, OnError, ToolEvent};
pub use hooks::{HookReport, Hooks, PreOutcome, PreVerdict};
pub use shell::Shell;
pub use spawner::{Captured, HookEnd, HookOutput, HookRun, HookSpawner, StartError};
pub use text::plain_text;

use std::pin::Pin;

/// A boxed future, so that [`HookSpawner`] can be used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
