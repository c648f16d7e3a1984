//! The system message, and what is told beside it.
//!
//! The system message is the same bytes for every request of a thread and for the next thread in the same workspace, so
//! that a vendor's cache helps from the first request on: no clock, no id, no absolute path, no state of git. What
//! changes is told in fragments ([`environment_fragment`]).

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use hanzo_config::Agent;
use hanzo_sandbox::paths::{PathError, Workspace};

use crate::fold::ENVIRONMENT_KIND;
use crate::fragment::Fragment;
use crate::instructions::{InstructionFile, Scope};
use crate::text::{clip, one_line};

/// The built-in system prompt.
pub const BUILT_IN: &str = include_str!("prompt.md");

/// The largest `system_prompt_file`.
const LARGEST_PROMPT: u64 = 64 * 1024;
/// The largest `custom_instructions`.
const LARGEST_CUSTOM: usize = 32 * 1024;
/// The longest value in an environment fragment.
const LONGEST_FACT: usize = 120;

/// What the system message is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct PromptParts<'a> {
    /// What replaces the built-in prompt ([`replacement`]).
    pub base: Option<&'a str>,
    /// The agent manifest's own text.
    pub agent: &'a str,
    /// `custom_instructions` of the settings.
    pub custom_instructions: &'a str,
    /// `agent.reasoning_language` of the settings.
    pub reasoning_language: &'a str,
    /// AGENTS.md and its like, from the most general to the most specific.
    pub instructions: &'a [InstructionFile],
}

/// The system message. The same parts give the same bytes.
pub fn system(parts: &PromptParts<'_>) -> String {
    let mut text = parts.base.unwrap_or(BUILT_IN).trim().to_owned();
    let mut section = |title: &str, body: &str| {
        let body = body.trim();
        if !body.is_empty() {
            text.push_str("\n\n");
            if !title.is_empty() {
                text.push_str("# ");
                text.push_str(title);
                text.push('\n');
            }
            text.push_str(body);
        }
    };
    section("Your role", parts.agent);
    section("", &language(parts.reasoning_language).unwrap_or_default());
    section("Instructions of the user", &clip(parts.custom_instructions, LARGEST_CUSTOM));
    section("Instruction files", &files(parts.instructions));
    text.push('\n');
    text
}

fn files(files: &[InstructionFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "Each holds for its directory and below. Where two disagree, the later one here is closer to the work and wins; \
         what the user says in the conversation wins over all of them.",
    );
    for file in files {
        let about = match &file.scope {
            Scope::User => "for every project of the user".to_owned(),
            Scope::Directory(directory) if directory.as_os_str().is_empty() => {
                "for the whole workspace".to_owned()
            }
            Scope::Directory(directory) => format!("for `{}`", directory.display()),
        };
        let _ = write!(text, "\n\n## {} ({about})\n{}", file.label, file.text.trim());
    }
    text
}

fn language(tag: &str) -> Option<String> {
    const NAMES: [(&str, &str); 12] = [
        ("ar", "Arabic"),
        ("de", "German"),
        ("en", "English"),
        ("es", "Spanish"),
        ("fr", "French"),
        ("hi", "Hindi"),
        ("it", "Italian"),
        ("ja", "Japanese"),
        ("ko", "Korean"),
        ("pt", "Portuguese"),
        ("ru", "Russian"),
        ("zh", "Chinese"),
    ];
    let tag = tag.trim();
    if tag.is_empty() || tag.eq_ignore_ascii_case("auto") {
        return None;
    }
    let name = NAMES.iter().find(|(short, _)| short.eq_ignore_ascii_case(tag)).map(|(_, name)| *name);
    let name = name.map_or_else(|| format!("the language `{}`", clip(&one_line(tag), 40)), str::to_owned);
    Some(format!("Think in {name}: write all visible reasoning in it. Answer in the language of the user."))
}

/// Why the system prompt the settings ask for cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// The file cannot be opened.
    #[error(
        "cannot use `agent.system_prompt_file`: {source}\n\nhint: correct the path, or remove the setting to use the built-in prompt"
    )]
    Open {
        /// Why.
        source: PathError,
    },
    /// The file cannot be read as text.
    #[error("cannot use `agent.system_prompt_file` `{}`: {reason}\n\nhint: it must be UTF-8 text of at most 64 kB", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// What the settings put in the place of the built-in prompt, if anything. A file is opened like any a tool reads: a
/// project must not be able to have a private key sent to a vendor as its prompt.
pub fn replacement(agent: &Agent, workspace: &Workspace) -> Result<Option<String>, PromptError> {
    if let Some(text) = agent.system_prompt.as_ref().filter(|text| !text.trim().is_empty()) {
        return Ok(Some(text.clone()));
    }
    let Some(path) = &agent.system_prompt_file else { return Ok(None) };
    let file = workspace.open_read(path).map_err(|source| PromptError::Open { source })?;
    let fail = |reason: String| PromptError::Read { path: path.clone(), reason };
    let mut bytes = Vec::new();
    file.take(LARGEST_PROMPT + 1).read_to_end(&mut bytes).map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > LARGEST_PROMPT {
        return Err(fail("it is too large".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| fail("it is not UTF-8".to_owned()))?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() { Err(fail("it is empty".to_owned())) } else { Ok(Some(text.to_owned())) }
}

/// What is true today and here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The day; an hour would be out of date in the next request.
    pub day: jiff::civil::Date,
    /// The level in force: `full`, `landlock+seccomp`, `path-check` or `off`.
    pub sandbox: String,
    /// Whether processes reach the network.
    pub network: Network,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The name of the workspace's directory.
    pub workspace: Option<String>,
}

/// Whether processes in the sandbox reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// They do not.
    Off,
    /// They do.
    On,
}

/// The environment as a fragment, to be appended once at the start of a thread and again when it has changed. At most about
/// 600 bytes.
pub fn environment_fragment(environment: &Environment) -> Fragment {
    let network = match environment.network {
        Network::Off => "off",
        Network::On => "on",
    };
    let mut facts = vec![
        ("date", environment.day.to_string()),
        ("platform", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("sandbox", environment.sandbox.clone()),
        ("network for commands", network.to_owned()),
    ];
    let optional = [("git branch", &environment.branch), ("workspace", &environment.workspace)];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
    // A branch may be called anything, also something that looks like the end of the block.
    let plain = |value: &str| one_line(value).replace(['<', '>'], "");
    let lines: Vec<String> =
        facts.iter().map(|(name, value)| format!("{name}: {}", clip(&plain(value), LONGEST_FACT))).collect();
    Fragment { kind: ENVIRONMENT_KIND, text: lines.join("\n") }
}
