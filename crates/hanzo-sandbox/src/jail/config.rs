//! What a jail is asked to be: plain data, the same on every platform.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ladder::{Facilities, Level};
pub use crate::config::Network;
use crate::protected;

/// Whether commands may make unix sockets. Neither a mount nor a network namespace stops a connection to a *pathname*
/// socket (a container daemon's, the session bus), so the only safe answer that every kernel can enforce is no.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnixSockets {
    /// Only connected pairs (`socketpair`), which is what runtimes use to talk to their own children.
    #[default]
    PairsOnly,
    /// Everything. Commands can then speak to every daemon the user can speak to.
    Any,
}

/// A path inside the writable set that stays read-only, also when it does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// The absolute path.
    pub path: PathBuf,
    /// What stands there while a command runs, when the path does not exist.
    pub placeholder: Placeholder,
}

/// What holds the place of a protected path that does not exist.
///
/// A directory by default: `git add -A` run by a command does not see an empty directory, but would commit an empty file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Placeholder {
    /// An empty directory.
    #[default]
    Directory,
    /// A file with this content. For files inside a git directory, where git would refuse to read a directory.
    File(String),
    /// Nothing: protect the path only if it exists.
    OnlyIfPresent,
}

impl Protected {
    /// `path`, held by an empty directory when it is missing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), placeholder: Placeholder::Directory }
    }

    /// `path`, held by a file with `content` when it is missing.
    pub fn file(path: impl Into<PathBuf>, content: &str) -> Self {
        Self { path: path.into(), placeholder: Placeholder::File(content.to_owned()) }
    }

    /// `path`, protected only if it exists.
    pub fn if_present(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), placeholder: Placeholder::OnlyIfPresent }
    }
}

/// Bounds on one command. `None` means no bound.
///
/// `memory` is a hard bound per process (on private writable memory, `RLIMIT_DATA`, because a bound on address space
/// breaks every runtime that reserves much and touches little) and a sampled bound on the resident sum of the tree.
/// `cpu_time` is per process. `processes` counts processes and threads of the command; see
/// [`LimitMechanism`](super::LimitMechanism) for what enforces it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of private memory.
    pub memory: Option<u64>,
    /// Processor time per process, rounded up to seconds.
    pub cpu_time: Option<Duration>,
    /// Processes and threads alive at once.
    pub processes: Option<u64>,
    /// Size of a file a command may write.
    pub file_size: Option<u64>,
    /// Open descriptors per process.
    pub open_files: Option<u64>,
    /// Wall clock; the whole tree is killed at the end of it.
    pub wall_clock: Option<Duration>,
}

impl Limits {
    /// No bound but one that stops a fork bomb.
    pub fn standard() -> Self {
        Self { processes: Some(4096), ..Self::default() }
    }

    /// The bounds of `self`, with those that `other` sets in their place.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        Self {
            memory: other.memory.or(self.memory),
            cpu_time: other.cpu_time.or(self.cpu_time),
            processes: other.processes.or(self.processes),
            file_size: other.file_size.or(self.file_size),
            open_files: other.open_files.or(self.open_files),
            wall_clock: other.wall_clock.or(self.wall_clock),
        }
    }
}

/// Which variables of the host's environment reach a command. Everything else is dropped: API keys live there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvPolicy {
    /// Names passed through; a trailing `*` matches any rest.
    pub inherit: Vec<String>,
    /// Variables set for every command; they win over inherited ones.
    pub set: Vec<(OsString, OsString)>,
}

impl Default for EnvPolicy {
    fn default() -> Self {
        let names = [
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "LANG",
            "LANGUAGE",
            "LC_*",
            "TZ",
            "TERM",
            "COLORTERM",
            "CARGO_HOME",
            "RUSTUP_HOME",
            "GOPATH",
            "JAVA_HOME",
            "NVM_DIR",
            "PYENV_ROOT",
            "VIRTUAL_ENV",
        ];
        Self { inherit: names.map(str::to_owned).to_vec(), set: Vec::new() }
    }
}

impl EnvPolicy {
    /// The environment a command gets from `host`, with what it was given itself in `own`.
    pub fn apply(
        &self,
        host: impl IntoIterator<Item = (OsString, OsString)>,
        own: &[(OsString, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let mut out: Vec<(OsString, OsString)> = host
            .into_iter()
            .filter(|(name, _)| name.to_str().is_some_and(|name| self.passes(name)))
            .collect();
        for (name, value) in self.set.iter().chain(own) {
            out.retain(|(existing, _)| existing != name);
            out.push((name.clone(), value.clone()));
        }
        out
    }

    fn passes(&self, name: &str) -> bool {
        self.inherit.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => pattern == name,
        })
    }
}

/// Everything a jail needs to know. Make one with [`JailConfig::new`] and change what differs.
#[derive(Debug, Clone)]
pub struct JailConfig {
    /// The directory commands work in; writable.
    pub workspace: PathBuf,
    /// Further writable directories (or files). Each must exist.
    pub writable: Vec<PathBuf>,
    /// Read-only paths inside the writable set.
    pub protected: Vec<Protected>,
    /// Paths whose content no command may see. Inside the writable set they are protected as well.
    pub unreadable: Vec<PathBuf>,
    /// Whether commands reach the network. A change needs a new jail: the choice is made once, with the network
    /// namespace. Off means one of its own, in which the commands of the jail reach each other over loopback.
    pub network: Network,
    /// Whether commands may make unix sockets.
    pub unix_sockets: UnixSockets,
    /// Bounds on each command unless it brings its own.
    pub limits: Limits,
    /// How many processors all commands of the jail share; as many as the host has when `None`. Commands cannot take
    /// another, which needs the system call filter: where that is missing, this is a wish.
    pub cores: Option<NonZeroUsize>,
    /// Which variables reach commands.
    pub env: EnvPolicy,
    /// Where jails keep their private `/tmp` and the record of what must be swept. Must belong to the user and be
    /// closed to others; made when missing. Default: `hanzo-jail-<uid>` in the system's temporary directory.
    pub run_dir: Option<PathBuf>,
    /// The binary that calls [`run_personality`](crate::run_personality) first in `main`. Default: this process' own.
    pub host_binary: PathBuf,
    /// Refuse to start below this level.
    pub require: Level,
    /// Facilities to pretend are missing; for tests and for users who must work around a broken one.
    pub facilities: Facilities,
}

impl JailConfig {
    /// A jail for `workspace` with the protections every workspace gets: the network off, git's executable
    /// configuration, our own configuration and shell start-up files read-only. When the workspace is a linked git
    /// worktree, its git directories become writable, with the same protections.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        let workspace = workspace.canonicalize().unwrap_or(workspace);
        let git = super::git::layout(&workspace);
        let mut protected = default_protected(&workspace);
        protected.extend(git.protected);
        Self {
            workspace,
            writable: git.writable,
            protected,
            unreadable: Vec::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::PairsOnly,
            limits: Limits::standard(),
            cores: None,
            env: EnvPolicy::default(),
            run_dir: None,
            host_binary: PathBuf::from("/proc/self/exe"),
            require: Level::PathCheck,
            facilities: Facilities::default(),
        }
    }
}

/// What stays read-only in `workspace` besides git's own files.
///
/// Start-up files are read from a home directory only. So a missing one is held by a placeholder when the workspace is a
/// home (`$HOME`, or it looks like one), and elsewhere only existing ones are protected: twenty placeholders in every listing
/// of every project would protect nothing.
pub fn default_protected(workspace: &Path) -> Vec<Protected> {
    let mut out: Vec<Protected> =
        protected::PROJECT_FILES.iter().map(|name| Protected::new(workspace.join(name))).collect();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_home = home.is_some_and(|home| home.canonicalize().unwrap_or(home) == workspace)
        || protected::home_files().any(|name| workspace.join(name).exists());
    out.extend(
        protected::home_files()
            .map(|name| workspace.join(name))
            .map(|path| if is_home { Protected::new(path) } else { Protected::if_present(path) }),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_pass_and_given_ones_win() {
        let host = [("PATH", "/bin"), ("LC_ALL", "C"), ("OPENAI_API_KEY", "sk"), ("HOME", "/h"), ("LC", "x")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let policy = EnvPolicy { set: vec![("HOME".into(), "/set".into())], ..EnvPolicy::default() };
        let env = policy.apply(host, &[("PATH".into(), "/own".into())]);
        let expected = [("LC_ALL", "C"), ("HOME", "/set"), ("PATH", "/own")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(env, expected);
    }

    #[test]
    fn a_commands_limits_win_one_by_one() {
        let base = Limits { memory: Some(1), processes: Some(2), ..Limits::default() };
        let own = Limits { memory: Some(5), file_size: Some(6), ..Limits::default() };
        let both = Limits { memory: Some(5), processes: Some(2), file_size: Some(6), ..Limits::default() };
        assert_eq!(base.overridden_by(&own), both);
    }
}
