//! What is asked for: the isolation mode, who may write where, what may be read, and the plain path check.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{canonical, container::Container};

/// How much of the file system tools may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IsolationMode {
    /// No restriction by location. Protected and unreadable paths still hold for the built-in tools.
    Off,
    /// The workspace only.
    #[default]
    Workspace,
    /// The configured `allowed_paths` only; the workspace counts when it is one of them.
    Allowlist,
}

impl IsolationMode {
    /// The spelling in settings: `off`, `workspace` or `allowlist`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Allowlist => "allowlist",
        }
    }
}

impl fmt::Display for IsolationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is none of the three modes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an isolation mode (`off`, `workspace` or `allowlist`)")]
pub struct ParseModeError {
    given: String,
}

impl FromStr for IsolationMode {
    type Err = ParseModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "workspace" => Ok(Self::Workspace),
            "allowlist" => Ok(Self::Allowlist),
            other => Err(ParseModeError { given: other.to_owned() }),
        }
    }
}

/// What the built-in tools may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reads {
    /// Anything but the unreadable set. The default for the person at the keyboard.
    #[default]
    Any,
    /// The writable roots only. For strict settings and for every remote caller.
    Workspace,
}

/// Whether confined processes may reach beyond loopback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// Loopback only.
    #[default]
    Off,
    /// No restriction.
    On,
}

/// What the user asked for, before it meets a machine.
///
/// Relative paths are relative to the workspace. `~` is not expanded here: the settings loader does that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// How much may be touched.
    pub mode: IsolationMode,
    /// The paths of [`IsolationMode::Allowlist`]; ignored in the other modes.
    pub allowed_paths: Vec<PathBuf>,
    /// Directories writable in addition to the workspace.
    pub allow_write: Vec<PathBuf>,
    /// What the built-in tools may read.
    pub reads: Reads,
    /// Paths nobody may read, whatever `reads` says; see [`crate::protected::default_unreadable`].
    pub unreadable: Vec<PathBuf>,
    /// Paths nobody may write even inside a writable root: the user's config and data directories.
    pub never_write: Vec<PathBuf>,
    /// Whether confined processes may reach beyond loopback.
    pub network: Network,
}

impl SandboxConfig {
    /// The defaults under another mode.
    pub fn with_mode(mode: IsolationMode) -> Self {
        Self { mode, ..Self::default() }
    }
}

/// The mode that applies when the user set none.
///
/// Inside a container this answers [`IsolationMode::Off`], as the interface other implementations share asks.
/// It is an answer to that question only: write confinement stays on in containers too, unless `off` was *set*.
pub fn default_mode(container: Option<Container>) -> IsolationMode {
    if container.is_some() { IsolationMode::Off } else { IsolationMode::Workspace }
}

/// The plain check: is a path allowed under the mode?
///
/// It looks and then answers, so a link changed in between can make the answer stale. The built-in file tools
/// therefore do not rely on it: they open through the descriptor-based layer in [`crate::paths`].
#[derive(Clone, Debug)]
pub struct Sandbox {
    config: SandboxConfig,
    workspace: PathBuf,
}

impl Sandbox {
    /// A check for `workspace`. A relative workspace is relative to the current directory.
    pub fn new(config: SandboxConfig, workspace: &Path) -> Self {
        let workspace = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
        Self { config, workspace }
    }

    /// The configuration this check works from.
    pub fn config(&self) -> &SandboxConfig {
        &self.config
    }

    /// The workspace, absolute, as it was named.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// True if and only if `path` is allowed under the mode.
    ///
    /// Links are resolved for the part of the path that exists and `..` is applied to the result, so
    /// `../../etc/passwd` and a link that leads out are both caught, and a file about to be created is not
    /// refused for being missing. What cannot be resolved (a loop, a directory we may not look into) is refused.
    pub fn check_path(&self, path: &Path) -> bool {
        match self.config.mode {
            IsolationMode::Off => true,
            IsolationMode::Workspace => self.is_beneath(path, std::iter::once(Path::new(""))),
            IsolationMode::Allowlist => {
                self.is_beneath(path, self.config.allowed_paths.iter().map(PathBuf::as_path))
            }
        }
    }

    fn is_beneath<'a>(&self, path: &Path, mut roots: impl Iterator<Item = &'a Path>) -> bool {
        #[cfg(windows)]
        if crate::windows::check_name(&path.to_string_lossy()).is_err() {
            return false;
        }
        let Some(real) = canonical::resolve(&self.workspace.join(path)) else { return false };
        roots.any(|root| {
            canonical::resolve(&self.workspace.join(root))
                .is_some_and(|root| canonical::contains(&root, &real))
        })
    }
}
