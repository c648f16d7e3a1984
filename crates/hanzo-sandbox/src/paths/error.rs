//! What can go wrong with a path, in words a model and a person can act on.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why a path operation failed.
///
/// `Display` gives one line; [`PathError::hint`] gives what to try, for a `hint:` line of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path leads to a place that is not open for this access.
    #[error("cannot {access} `{}`: it is outside `{}`{}", path.display(), root.display(), via_text(via.as_ref()))]
    Outside {
        /// The path as it was asked for.
        path: PathBuf,
        /// The workspace.
        root: PathBuf,
        /// The link that led out, if it was a link.
        via: Option<Link>,
        /// What was to be done.
        access: Access,
    },
    /// The path is in the set nobody may read.
    #[error("cannot {access} `{}`: `{}` is closed to tools", path.display(), entry.display())]
    Unreadable {
        /// The path as it was asked for.
        path: PathBuf,
        /// The entry of the set that covers it.
        entry: PathBuf,
        /// What was to be done.
        access: Access,
    },
    /// The path is protected although it lies in a writable place.
    #[error("cannot write `{}`: `{}` is protected", path.display(), entry.display())]
    Protected {
        /// The path as it was asked for.
        path: PathBuf,
        /// The protected path that is, contains or lies inside it.
        entry: PathBuf,
    },
    /// A device, FIFO or socket where a plain file or directory was expected.
    #[error("cannot {access} `{}`: it is a {kind}", path.display())]
    Special {
        /// The path as it was asked for.
        path: PathBuf,
        /// What it is.
        kind: SpecialKind,
        /// What was to be done.
        access: Access,
    },
    /// The path goes through a kernel link such as `/proc/self/fd/3` or `/proc/self/root`.
    #[error("cannot use `{}`: it goes through a kernel link in `/proc`", path.display())]
    MagicLink {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// Too many symbolic links, usually a loop.
    #[error("cannot use `{}`: too many symbolic links", path.display())]
    Loop {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// Not a path the system could have.
    #[error("cannot use `{}`: {reason}", path.display())]
    Invalid {
        /// The path as it was asked for.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Another process kept changing the path while we looked.
    #[error("cannot use `{}`: it keeps changing", path.display())]
    Unstable {
        /// The path as it was asked for.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The path as it was asked for.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl PathError {
    /// True for a decision of the sandbox, false for an ordinary failure (missing file, full disk).
    /// A caller may offer the user one rerun outside after a denial, and only then.
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            Self::Outside { .. }
                | Self::Unreadable { .. }
                | Self::Protected { .. }
                | Self::Special { .. }
                | Self::MagicLink { .. }
        )
    }

    /// The path that was asked for.
    pub fn path(&self) -> &Path {
        match self {
            Self::Outside { path, .. }
            | Self::Unreadable { path, .. }
            | Self::Protected { path, .. }
            | Self::Special { path, .. }
            | Self::MagicLink { path }
            | Self::Loop { path }
            | Self::Invalid { path, .. }
            | Self::Unstable { path }
            | Self::Io { path, .. } => path,
        }
    }

    /// The kind of the system's answer, when it was the system that refused.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        if let Self::Io { source, .. } = self { Some(source.kind()) } else { None }
    }

    /// What to try, without the word `hint:`.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Outside { access: Access::Write, root, .. } => {
                format!("write beneath `{}`, or add the directory to `sandbox.allow_write`", root.display())
            }
            Self::Outside { root, .. } => {
                format!("this caller reads beneath `{}` only (`sandbox.reads`)", root.display())
            }
            Self::Unreadable { .. } => {
                "secrets are closed to tools; ask the user for what you need from it".to_owned()
            }
            Self::Protected { .. } => {
                "its content would be run outside the sandbox; ask the user to make this change".to_owned()
            }
            Self::Special { .. } => "use a command to talk to a device, FIFO or socket".to_owned(),
            Self::MagicLink { .. } => "name the file by its real path".to_owned(),
            Self::Loop { .. } => "look at the links on the way with `stat`".to_owned(),
            Self::Invalid { .. } => return None,
            Self::Unstable { .. } => "wait for the process that is changing it, then try again".to_owned(),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "list the directory to see what is there".to_owned(),
                io::ErrorKind::IsADirectory => "list the directory instead".to_owned(),
                io::ErrorKind::StorageFull => "free some space; the original file is unchanged".to_owned(),
                io::ErrorKind::CrossesDevices => "copy the file, then remove the old one".to_owned(),
                io::ErrorKind::InvalidFilename => "use a shorter path".to_owned(),
                _ => return None,
            },
        })
    }
}

/// What was to be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Look at it or read its content.
    Read,
    /// Create, change, move or remove it.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// A symbolic link and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where the link is.
    pub link: PathBuf,
    /// Where it leads, as written in it.
    pub target: PathBuf,
}

fn via_text(via: Option<&Link>) -> String {
    via.map_or_else(String::new, |via| {
        format!(" (`{}` is a link to `{}`)", via.link.display(), via.target.display())
    })
}

/// A file that is neither plain, directory nor link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    /// A block or character device.
    Device,
    /// Something the system did not name.
    Other,
}

impl fmt::Display for SpecialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}
