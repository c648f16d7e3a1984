//! The one registry of slash commands: what faces list in their menus, what `/help` shows, and what `/name` does.
//!
//! Three sorts share one dispatch. *Built-in* commands act; they never reach the model, except those that are prompts.
//! *Custom* commands are Markdown files whose rendered text becomes the user's next turn. *Sources*, such as the prompts of
//! MCP servers, join through [`Registry::register_source`] and also end in a turn.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use serde::Serialize;

use crate::agents::ProjectTrust;
use crate::fragment::Notice;
use crate::text::{clip, one_line};

mod custom;
mod template;

pub use custom::{Directories, load};
pub use template::render;

/// A command as faces list it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Its name, without the slash.
    pub name: String,
    /// What it does, in a few words.
    pub description: String,
    /// What may follow the name, such as `[focus-area]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Who acts on it.
    pub kind: CommandKind,
    /// Where it is from.
    pub origin: Origin,
}

/// Who acts on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandKind {
    /// The face: it opens a list, starts another thread, or asks before it discards.
    Local,
    /// The engine, without the model.
    Engine,
    /// It becomes the user's next turn.
    Turn,
}

/// Where a command is from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Built in.
    BuiltIn,
    /// The user's configuration directory.
    User,
    /// The project.
    Project,
    /// The project, which the user does not trust: its text is only ever said to the model.
    UntrustedProject,
    /// A source, by its name.
    Source(String),
}

impl From<ProjectTrust> for Origin {
    fn from(trust: ProjectTrust) -> Self {
        match trust {
            ProjectTrust::Trusted => Self::Project,
            ProjectTrust::Untrusted => Self::UntrustedProject,
        }
    }
}

macro_rules! built_in {
    ($($(#[doc = $doc:literal])+ $action:ident = $name:literal, $kind:ident, $hint:expr, $description:literal;)+) => {
        /// A built-in command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $($(#[doc = $doc])+ $action,)+
        }

        impl Action {
            /// All of them, in the order of `/help`.
            pub const ALL: &'static [Self] = &[$(Self::$action),+];

            /// The name to call it by, without the slash.
            pub fn name(self) -> &'static str {
                match self { $(Self::$action => $name,)+ }
            }

            /// Who acts on it.
            pub fn kind(self) -> CommandKind {
                match self { $(Self::$action => CommandKind::$kind,)+ }
            }

            fn descriptor(self) -> Descriptor {
                let (hint, description): (Option<&str>, &str) = match self { $(Self::$action => ($hint, $description),)+ };
                Descriptor {
                    name: self.name().to_owned(),
                    description: description.to_owned(),
                    argument_hint: hint.map(str::to_owned),
                    kind: self.kind(),
                    origin: Origin::BuiltIn,
                }
            }
        }
    };
}

// Only what can be done today stands here: a command that is listed and does nothing is worse than none.
built_in! {
    /// Shows the commands.
    Help = "help", Engine, None, "Show what can be typed here";
    /// Folds older work.
    Compact = "compact", Engine, None, "Fold older work into a digest to free context";
    /// Begins another thread and keeps this one.
    New = "new", Local, None, "Start a new thread; this one is kept";
    /// Begins another thread and discards this one, after asking.
    Clear = "clear", Local, None, "Discard this thread and start anew; asks first";
    /// Goes on with another thread.
    Resume = "resume", Local, Some("[thread]"), "Go on with an earlier thread";
    /// Copies the thread.
    Fork = "fork", Engine, Some("[item]"), "Copy this thread and go on in the copy";
    /// Goes back.
    Rewind = "rewind", Local, Some("[checkpoint]"), "Take back turns: the conversation, the files or both";
    /// Writes the thread out.
    Export = "export", Engine, Some("[markdown|jsonl]"), "Write this thread out";
    /// Puts the last answer on the clipboard.
    Copy = "copy", Local, None, "Copy the last answer";
    /// Chooses the colours.
    Theme = "theme", Local, Some("[name]"), "Show or choose the colours";
    /// Chooses the model.
    Model = "model", Engine, Some("[provider/model]"), "Show or choose the model";
    /// Chooses how hard to think.
    Effort = "effort", Engine, Some("[minimal|low|medium|high]"), "Show or choose how hard the model thinks";
    /// Chooses how to collaborate.
    Mode = "mode", Engine, Some("[normal|plan]"), "Show or choose the mode; plan only looks";
    /// Shows what may be done without asking.
    Permissions = "permissions", Engine, Some("[ask|auto|yolo]"), "Show the rules, or choose the posture";
    /// Shows what fills the window.
    Context = "context", Engine, None, "Show what fills the model's window";
    /// Shows tokens and money.
    Cost = "cost", Engine, None, "Show tokens, cache hits and cost";
    /// Shows the MCP servers, or does something with one.
    Mcp = "mcp", Engine, Some("[enable|disable|reconnect server]"), "Show the MCP servers; switch or reconnect one";
    /// Shows the instruction files in force.
    Memory = "memory", Engine, None, "Show and edit the instruction files in force (AGENTS.md)";
    /// Searches the thread.
    Find = "find", Local, Some("[words]"), "Search this thread";
    /// Shows what waits to be said.
    Queue = "queue", Local, None, "Show, change or drop what waits to be sent";
    /// Checks the installation.
    Doctor = "doctor", Local, None, "Check settings, models, sandbox and tools of this installation";
    /// Shows the keys.
    Keys = "keys", Local, None, "Show what the keys do";
    /// Shows what changed.
    Diff = "diff", Local, None, "Show the uncommitted changes, and send them with your next message";
    /// Makes a branch.
    Branch = "branch", Local, Some("<name>"), "Make a git branch and switch to it";
    /// Commits.
    Commit = "commit", Local, None, "Commit tracked changes; the model writes the message, you accept it";
    /// Commits, pushes and opens a pull request.
    CommitPushPr = "commit-push-pr", Local, None, "Commit, push, and open a pull request";
    /// Makes a worktree.
    Worktree = "worktree", Local, Some("<name>"), "Make a git worktree beside this one, with a branch";
    /// Stashes.
    Stash = "stash", Local, None, "Put uncommitted changes away with git stash";
    /// Ends the face.
    Quit = "quit", Local, None, "Leave; the thread is kept";
    /// Has AGENTS.md written.
    Init = "init", Turn, Some("[focus]"), "Write or improve AGENTS.md for this workspace";
}

/// What `/init` says to the model.
const INIT: &str = include_str!("init.md");

/// Gives commands to the registry that are neither built in nor files: the prompts of MCP servers.
pub trait CommandSource: Send + Sync {
    /// Its name, as [`Origin::Source`].
    fn name(&self) -> &str;

    /// Its commands as they are now. Names are its own to make unique (`mcp__server__prompt`).
    fn commands(&self) -> Vec<Descriptor>;

    /// The text of a command; the error is a sentence.
    fn render<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// A custom command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Custom {
    /// How it is listed.
    pub descriptor: Descriptor,
    /// Its text before substitution.
    pub body: String,
}

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The name, without the slash.
    pub name: &'a str,
    /// What follows it, without the space round it.
    pub arguments: &'a str,
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatch {
    /// A built-in acts.
    Act {
        /// Which.
        action: Action,
        /// What followed its name.
        arguments: String,
    },
    /// The user's next turn.
    Turn {
        /// What it says.
        text: String,
        /// Whose text it is.
        origin: Origin,
    },
}

/// Why a command cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// Nobody knows it.
    #[error("there is no command `/{name}`\n\nhint: {}", hint(suggestions))]
    Unknown {
        /// What was typed.
        name: String,
        /// What may have been meant.
        suggestions: Vec<String>,
    },
    /// Its source could not say what it is.
    #[error("cannot run `/{name}`: {reason}")]
    Failed {
        /// What was typed.
        name: String,
        /// Why.
        reason: String,
    },
}

fn hint(suggestions: &[String]) -> String {
    match suggestions {
        [] => "`/help` lists the commands".to_owned(),
        some => format!("did you mean `/{}`?", some.join("`, `/")),
    }
}

/// Reads input as a command. `None` for anything else: text that does not begin with a slash, and paths such as
/// `/usr/bin/env fails`.
pub fn parse(input: &str) -> Option<Invocation<'_>> {
    let rest = input.trim().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    let begins = name.chars().next().is_some_and(char::is_alphabetic);
    (begins && is_name(name)).then(|| Invocation { name, arguments: arguments.trim() })
}

/// What a command may be called.
pub(crate) fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    !name.is_empty() && name.len() <= 128 && name.chars().all(letter)
}

/// All commands of a thread.
#[derive(Clone, Default)]
pub struct Registry {
    custom: Vec<Custom>,
    sources: Vec<Arc<dyn CommandSource>>,
}

impl Registry {
    /// The built-in commands alone.
    pub fn built_in() -> Self {
        Self::default()
    }

    /// The built-in commands and those of files ([`load`]).
    pub fn with_custom(custom: Vec<Custom>) -> Self {
        Self { custom, sources: Vec::new() }
    }

    /// Adds a source. Its commands come last: they cannot take the place of others.
    pub fn register_source(&mut self, source: Arc<dyn CommandSource>) {
        self.sources.push(source);
    }

    /// All commands: the built-in ones in the order of `/help`, then the others by name.
    pub fn list(&self) -> Vec<Descriptor> {
        let mut list: Vec<Descriptor> = Action::ALL.iter().map(|action| action.descriptor()).collect();
        let built_in = list.len();
        list.extend(self.custom.iter().map(|custom| custom.descriptor.clone()));
        for source in &self.sources {
            for mut descriptor in source.commands() {
                descriptor.origin = Origin::Source(source.name().to_owned());
                descriptor.kind = CommandKind::Turn;
                if is_name(&descriptor.name) && !list.iter().any(|other| other.name == descriptor.name) {
                    list.push(descriptor);
                }
            }
        }
        list[built_in..].sort_by(|one, other| one.name.cmp(&other.name));
        list
    }

    /// What a command comes to. Rendering a source's command may ask a server; everything else is done at once.
    pub async fn dispatch(&self, invocation: Invocation<'_>) -> Result<Dispatch, CommandError> {
        let Invocation { name, arguments } = invocation;
        if let Some(&action) = Action::ALL.iter().find(|action| action.name() == name) {
            return Ok(match action {
                Action::Init => Dispatch::Turn { text: render(INIT, arguments), origin: Origin::BuiltIn },
                _ => Dispatch::Act { action, arguments: arguments.to_owned() },
            });
        }
        if let Some(custom) = self.custom.iter().find(|custom| custom.descriptor.name == name) {
            let text = render(&custom.body, arguments);
            return Ok(Dispatch::Turn { text, origin: custom.descriptor.origin.clone() });
        }
        for source in &self.sources {
            if source.commands().iter().any(|descriptor| descriptor.name == name) {
                let failed = |reason| CommandError::Failed { name: name.to_owned(), reason };
                let text = source.render(name, arguments).await.map_err(failed)?;
                return Ok(Dispatch::Turn { text, origin: Origin::Source(source.name().to_owned()) });
            }
        }
        Err(CommandError::Unknown { name: name.to_owned(), suggestions: self.suggestions(name) })
    }

    /// The text of `/help`, in Markdown.
    pub fn help(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::from("Type a task, `@path` to show a file, or a command:\n");
        for descriptor in self.list() {
            let hint = descriptor.argument_hint.as_deref().map(|hint| format!(" {}", one_line(hint)));
            let from = match &descriptor.origin {
                Origin::BuiltIn => String::new(),
                Origin::User => " (yours)".to_owned(),
                Origin::Project => " (this project)".to_owned(),
                Origin::UntrustedProject => " (this project, not trusted: only text to the model)".to_owned(),
                Origin::Source(name) => format!(" ({})", one_line(name)),
            };
            let about = one_line(&descriptor.description);
            let _ = write!(text, "\n- `/{}{}`", descriptor.name, hint.unwrap_or_default());
            let _ = if about.is_empty() {
                write!(text, "{from}")
            } else {
                write!(text, ": {}{from}", clip(&about, 200))
            };
        }
        text.push('\n');
        text
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        let lower = name.to_lowercase();
        let mut near: Vec<(usize, String)> = self
            .list()
            .into_iter()
            .filter_map(|descriptor| {
                let known = descriptor.name.to_lowercase();
                let last = known.rsplit(':').next().unwrap_or(&known);
                let distance = strsim::damerau_levenshtein(&lower, &known)
                    .min(strsim::damerau_levenshtein(&lower, last));
                let begins = lower.len() >= 2 && known.starts_with(&lower);
                (begins || distance <= 1 + lower.len() / 5).then_some((distance, descriptor.name))
            })
            .collect();
        near.sort();
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

/// What the user should know when a turn is made of a project's text that nobody trusts.
pub fn untrusted_notice(name: &str) -> Notice {
    Notice::info(format!(
        "`/{name}` is a command of this workspace, which is not trusted: its text is sent to the model and nothing else"
    ))
}
