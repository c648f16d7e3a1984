//! What can go wrong with the store, said so that a person knows what to do.

use std::path::PathBuf;

use hanzo_protocol::ids::{CheckpointId, ThreadId};

use crate::Holder;

/// The store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such thread.
    #[error(
        "there is no thread `{thread}`\n\nhint: `hanzo-dev threads list` shows the threads of this workspace"
    )]
    NoThread {
        /// The thread that was asked for.
        thread: ThreadId,
    },
    /// There is no such checkpoint.
    #[error("there is no checkpoint `{checkpoint}`")]
    NoCheckpoint {
        /// The checkpoint that was asked for.
        checkpoint: CheckpointId,
    },
    /// Another engine writes to the thread.
    #[error(
        "thread `{thread}` is in use by {by}\n\nhint: close it there, or fork the thread and go on with the copy"
    )]
    Held {
        /// The thread.
        thread: ThreadId,
        /// Who has it.
        by: Box<Holder>,
    },
    /// The disk is full. Nothing of the batch was written.
    #[error("cannot {doing}: the disk is full\n\nhint: make room and try again; nothing was half written")]
    DiskFull {
        /// What was being done.
        doing: &'static str,
    },
    /// Another process kept the database locked for too long.
    #[error("cannot {doing}: another process keeps the database locked\n\nhint: try again")]
    Busy {
        /// What was being done.
        doing: &'static str,
    },
    /// The database is damaged. The next start saves what can be read.
    #[error(
        "cannot {doing}: the database is damaged ({reason})\n\nhint: start again; what can be read is then moved to a new database"
    )]
    Damaged {
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        reason: String,
    },
    /// A newer version of the program wrote the database.
    #[error(
        "`{}` was written by a newer version (schema {found}, this version knows {known})\n\nhint: update hanzo-dev, or set another data directory",
        path.display()
    )]
    TooNew {
        /// The database.
        path: PathBuf,
        /// The schema it has.
        found: i64,
        /// The newest schema this version knows.
        known: i64,
    },
    /// A file or directory could not be used.
    #[error("cannot {doing} `{}`: {reason}\n\nhint: check that the directory exists and is yours", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// What was passed in, or what was read back, makes no sense.
    #[error("cannot {doing}: {reason}")]
    Invalid {
        /// What was being done.
        doing: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The database failed in another way.
    #[error("cannot {doing}: {reason}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        reason: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same request may succeed later without anything being repaired.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Busy { .. })
    }

    pub(crate) fn invalid(doing: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Invalid { doing, reason: format!("{reason}") }
    }

    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return Self::DiskFull { doing };
        }
        Self::File { doing, path: path.into(), reason: error.to_string() }
    }
}
