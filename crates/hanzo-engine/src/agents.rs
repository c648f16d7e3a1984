//! Agents: who works in a thread, with which instructions, tools and limits. An agent is a manifest, `agents/*.toml`: four
//! are shipped, the user may add or replace some in their configuration directory, and a project that is trusted in
//! `.hanzo/agents/`.
//!
//! A manifest is read when its agent is asked for, so that starting a thread costs one small file. One that cannot be used is
//! an error for whoever asks for that agent, and never replaced by a wider one of the same name.

use std::path::{Path, PathBuf};

use hanzo_sandbox::paths::Workspace;
use serde::{Deserialize, Serialize};

use crate::capability::Capabilities;
use crate::files;
use crate::fragment::Notice;

/// The agent of a thread that asks for none.
pub const DEFAULT_AGENT: &str = "coder";

/// Where a project keeps its manifests.
const PROJECT_DIRECTORY: &str = ".hanzo/agents";
const LARGEST_MANIFEST: usize = 64 * 1024;
const MOST_MANIFESTS: usize = 200;

const BUILT_IN: [(&str, &str); 4] = [
    ("coder", include_str!("../../../agents/coder.toml")),
    ("planner", include_str!("../../../agents/planner.toml")),
    ("reviewer", include_str!("../../../agents/reviewer.toml")),
    ("solver", include_str!("../../../agents/solver.toml")),
];

/// An agent. Serialised, it is an entry of the list of agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// When to use it, in a sentence, for people and for agents that may begin it.
    pub description: String,
    /// Its own instructions, added to the system message.
    pub system: String,
    /// The model it works with; the thread's when absent.
    pub model: Option<String>,
    /// What it may use.
    pub capabilities: Capabilities,
    /// The tools its model is shown, of those it may use; the usual ones when absent.
    pub show: Option<Vec<String>>,
    /// The most model requests of one of its turns; 0 is no limit, absent leaves it to the settings.
    pub max_steps: Option<u32>,
    /// The agents it may begin as subagents.
    pub may_spawn: Vec<String>,
    /// Where it is from.
    pub origin: Origin,
}

/// Where a manifest is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Shipped.
    BuiltIn,
    /// The user's configuration directory.
    User,
    /// The project.
    Project,
}

/// Whether the user trusts the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProjectTrust {
    /// They do.
    Trusted,
    /// They do not, or were not asked yet.
    Untrusted,
}

/// Why an agent cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Nobody has such a manifest.
    #[error("there is no agent called `{name}`\n\nhint: the agents here are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The manifest cannot be read.
    #[error("cannot read the agent manifest `{}`: {reason}\n\nhint: correct or remove the file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The manifest makes no sense.
    #[error(
        "the agent manifest `{}` cannot be used: {reason}\n\nhint: it needs `description`, and may have `system`, `model`, \
         `show`, `max_steps`, `may_spawn` and a table `[capabilities]` with `tools`, `without` and `effects`",
        path.display()
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A trusted project is needed.
    #[error(
        "the agent `{name}` is defined by this project, which is not trusted\n\nhint: look at `{}`, then trust the workspace",
        path.display()
    )]
    Untrusted {
        /// What was asked for.
        name: String,
        /// The file.
        path: PathBuf,
    },
}

/// A manifest as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    description: String,
    #[serde(default)]
    system: String,
    model: Option<String>,
    show: Option<Vec<String>>,
    max_steps: Option<u32>,
    #[serde(default)]
    may_spawn: Vec<String>,
    #[serde(default)]
    capabilities: Capabilities,
}

/// Where manifests are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Catalog<'a> {
    /// The user's configuration directory.
    pub config: Option<&'a Path>,
    /// The workspace, and whether the user trusts it.
    pub project: Option<(&'a Workspace, ProjectTrust)>,
}

impl Catalog<'_> {
    /// The agent of that name: the project's if it is trusted, else the user's, else the shipped one.
    ///
    /// A project's agent stays within what the user's agent of the same name may use, or within the default agent when the
    /// name is new: a project chooses among what the user allows.
    pub fn get(&self, name: &str) -> Result<Manifest, AgentError> {
        if !is_name(name) {
            return Err(self.unknown(name));
        }
        let own = self.without_project(name)?;
        let Some((workspace, trust)) = self.project else { return own.ok_or_else(|| self.unknown(name)) };
        let path = Path::new(PROJECT_DIRECTORY).join(format!("{name}.toml"));
        let file = files::open_inside(workspace, &path)
            .map_err(|reason| AgentError::Unreadable { path: path.clone(), reason });
        match (file, trust) {
            (Ok(None), _) => own.ok_or_else(|| self.unknown(name)),
            // What it says does not matter yet, so neither does whether it can be read.
            (_, ProjectTrust::Untrusted) => {
                own.ok_or_else(|| AgentError::Untrusted { name: name.to_owned(), path })
            }
            (Err(error), ProjectTrust::Trusted) => Err(error),
            (Ok(Some(file)), ProjectTrust::Trusted) => {
                let text = files::whole_text(file, LARGEST_MANIFEST)
                    .map_err(|reason| AgentError::Unreadable { path: path.clone(), reason })?;
                let manifest = parse(name, &text, &path, Origin::Project)?;
                let limit = match own {
                    Some(own) => Some(own),
                    None => self.without_project(DEFAULT_AGENT)?,
                };
                let limit = limit.map_or_else(Capabilities::nothing, |limit| limit.capabilities);
                Ok(Manifest { capabilities: manifest.capabilities.within(&limit), ..manifest })
            }
        }
    }

    /// All agents by name, and what the user should know about those that cannot be used.
    pub fn list(&self) -> (Vec<Manifest>, Vec<Notice>) {
        let (mut agents, mut notices) = (Vec::new(), Vec::new());
        for name in self.names() {
            match self.get(&name) {
                Ok(manifest) => agents.push(manifest),
                Err(error) => notices.push(Notice::warning(error.to_string())),
            }
        }
        (agents, notices)
    }

    /// The user's manifest, or the shipped one.
    fn without_project(&self, name: &str) -> Result<Option<Manifest>, AgentError> {
        if let Some(config) = self.config {
            let path = config.join("agents").join(format!("{name}.toml"));
            let unreadable = |reason| AgentError::Unreadable { path: path.clone(), reason };
            if let Some(file) = files::open_own(&path).map_err(unreadable)? {
                let text = files::whole_text(file, LARGEST_MANIFEST).map_err(unreadable)?;
                return parse(name, &text, &path, Origin::User).map(Some);
            }
        }
        let shipped = BUILT_IN.iter().find(|(shipped, _)| *shipped == name);
        let parsed = shipped.map(|(_, text)| {
            parse(name, text, &Path::new("agents").join(format!("{name}.toml")), Origin::BuiltIn)
        });
        parsed.transpose()
    }

    fn unknown(&self, name: &str) -> AgentError {
        AgentError::Unknown { name: name.to_owned(), known: self.names() }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut add = |file_name: &std::ffi::OsStr| {
            let name = file_name.to_str().and_then(|name| name.strip_suffix(".toml"));
            names.extend(name.filter(|name| is_name(name)).map(str::to_owned));
        };
        if let Some(entries) = self.config.and_then(|config| std::fs::read_dir(config.join("agents")).ok()) {
            entries.flatten().take(MOST_MANIFESTS).for_each(|entry| add(&entry.file_name()));
        }
        if let Some((workspace, _)) = self.project
            && let Ok(entries) = workspace.list_dir(Path::new(PROJECT_DIRECTORY))
        {
            entries.flatten().take(MOST_MANIFESTS).for_each(|entry| add(&entry.name));
        }
        names.sort();
        names.dedup();
        names
    }
}

/// What a manifest may be called: it becomes a file name, and a word in a sentence.
fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    letters && (1..=64).contains(&name.len())
}

fn parse(name: &str, text: &str, path: &Path, origin: Origin) -> Result<Manifest, AgentError> {
    let invalid = |reason: String| AgentError::Invalid { path: path.to_owned(), reason };
    let written: Written =
        toml::from_str(text).map_err(|error| invalid(error.to_string().trim().to_owned()))?;
    if let Some(other) = written.name.as_ref().filter(|written| *written != name) {
        return Err(invalid(format!(
            "it says that its name is `{other}`, but the file is called `{name}.toml`"
        )));
    }
    if written.description.trim().is_empty() {
        return Err(invalid("its `description` is empty".to_owned()));
    }
    if let Some(odd) = written.may_spawn.iter().find(|spawned| !is_name(spawned)) {
        return Err(invalid(format!("`{odd}` in `may_spawn` is not a name")));
    }
    Ok(Manifest {
        name: name.to_owned(),
        description: written.description.trim().to_owned(),
        system: written.system.trim().to_owned(),
        model: written.model.filter(|model| !model.trim().is_empty()),
        capabilities: written.capabilities,
        show: written.show,
        max_steps: written.max_steps,
        may_spawn: written.may_spawn,
        origin,
    })
}
