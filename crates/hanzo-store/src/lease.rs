//! Who may write to a thread: one engine at a time, in whatever process it runs.

use std::fmt;
use std::sync::Arc;

use hanzo_protocol::ids::ThreadId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An engine that has a thread open, described so that the next one can be told who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// When that process began, as the system counts: a process id is used again, the two together are not.
    pub started: String,
    /// The machine.
    pub host: String,
    /// Which running system and process namespace on that machine; process ids mean something only within it.
    pub system: String,
    /// What the user would call it: `hanzo-dev run`, `hanzo-dev serve`.
    pub program: String,
    /// Since when it has the thread.
    pub since: Timestamp,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (process {} on {}, since {:.0})", self.program, self.pid, self.host, self.since)
    }
}

/// The right to write to a thread, given back when dropped.
pub struct Lease {
    thread: ThreadId,
    token: Uuid,
    release: Option<Arc<dyn Release>>,
}

/// How a store takes a lease back.
pub(crate) trait Release: Send + Sync {
    fn release(&self, token: Uuid);
}

impl Lease {
    pub(crate) fn new(thread: ThreadId, token: Uuid, release: Arc<dyn Release>) -> Self {
        Self { thread, token, release: Some(release) }
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release.release(self.token);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("thread", &self.thread).finish_non_exhaustive()
    }
}
