//! What the tools of one thread share.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use hanzo_net::guard::{Lookup, SystemLookup};
use hanzo_protocol::blob::BlobStore;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::ReachConfinement;
use hanzo_sandbox::paths::Workspace;

use crate::ledger::Ledger;
use crate::mode::Modes;
use crate::net::{Browser, Net, NetOptions};
use crate::proc::{Jobs, ProcOptions};
use crate::registry::Selection;
use crate::test::Runs;
use crate::think::Notes;

/// What the tools of one thread share: where they work, how they start programs, where they keep content.
pub struct Host {
    /// The directories file tools work in.
    pub workspace: Arc<Workspace>,
    /// Starts programs in the sandbox.
    pub spawner: Arc<dyn Spawner>,
    /// Starts programs outside, for calls that a person has consented to; `None` when that is not to be had.
    pub outside: Option<Arc<dyn Spawner>>,
    /// Keeps content by its hash.
    pub blobs: Arc<dyn BlobStore>,
    /// What the user or the face chose.
    pub options: ToolOptions,
    /// What the thread has read and written.
    pub ledger: Ledger,
    /// The processes it started. They end with the host, detached ones excepted.
    pub jobs: Jobs,
    /// The test runs among them.
    pub runs: Runs,
    /// Its ways to other machines.
    pub net: Net,
    /// Shows pages to the user; `None` when nobody sits at this machine.
    pub browser: Option<Arc<dyn Browser>>,
    /// The screen.
    #[cfg(feature = "ui")]
    pub ui: crate::ui::Ui,
    /// What was thought.
    pub notes: Notes,
    /// The modes that are active. The gate asks it too, as a [`Narrowing`](hanzo_protocol::narrowing::Narrowing).
    pub modes: Arc<Modes>,
    /// Which tools the thread has, once they are made.
    pub(crate) selection: OnceLock<Selection>,
}

impl Host {
    /// A host without a way out of the sandbox.
    pub fn new(
        workspace: Arc<Workspace>,
        spawner: Arc<dyn Spawner>,
        blobs: Arc<dyn BlobStore>,
        options: ToolOptions,
    ) -> Self {
        let jobs = Jobs::new(options.proc.jobs.clone());
        let net = Net::new(&options.net, Arc::new(SystemLookup));
        let modes = Arc::new(Modes::new(workspace.path(), options.modes_dir.clone()));
        Self {
            workspace,
            spawner,
            outside: None,
            blobs,
            options,
            ledger: Ledger::default(),
            jobs,
            net,
            browser: None,
            #[cfg(feature = "ui")]
            ui: crate::ui::Ui::default(),
            runs: Runs::default(),
            notes: Notes::default(),
            modes,
            selection: OnceLock::new(),
        }
    }

    /// What starts the programs of a call. The gate has asked the user about one that leaves the sandbox.
    pub(crate) fn spawner_for(&self, confinement: ReachConfinement) -> Result<&Arc<dyn Spawner>, ToolError> {
        match (confinement, &self.outside) {
            (ReachConfinement::Inside, _) => Ok(&self.spawner),
            (ReachConfinement::Outside, Some(outside)) => Ok(outside),
            (ReachConfinement::Outside, None) => {
                let text = "nothing can run outside the sandbox here; leave `unconfined` out";
                Err(ToolError::new(ErrorCode::Unsupported, text))
            }
        }
    }

    /// The same host with a way out of the sandbox.
    #[must_use]
    pub fn with_outside(mut self, outside: Arc<dyn Spawner>) -> Self {
        self.outside = Some(outside);
        self
    }

    /// The same host, finding the addresses of other machines with `lookup`.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.net = Net::new(&self.options.net, lookup);
        self
    }

    /// The same host, with a user who looks at pages in `browser`.
    #[must_use]
    pub fn with_browser(mut self, browser: Arc<dyn Browser>) -> Self {
        self.browser = Some(browser);
        self
    }

    /// The same host with another screen.
    #[cfg(feature = "ui")]
    #[must_use]
    pub fn with_ui(mut self, ui: crate::ui::Ui) -> Self {
        self.ui = ui;
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("workspace", &self.workspace.path()).finish_non_exhaustive()
    }
}

/// What the user or the face chose for the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOptions {
    /// Where the tools keep what must outlive them: journals of edits under way, and locks. In the user's data directory, not
    /// in the workspace: nothing of ours may end up in a commit.
    pub data_dir: PathBuf,
    /// How programs are run.
    pub proc: ProcOptions,
    /// What is reached of the network.
    pub net: NetOptions,
    /// Where the user keeps modes of their own.
    pub modes_dir: Option<PathBuf>,
}

impl ToolOptions {
    /// The usual choices, with state in `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            proc: ProcOptions::default(),
            net: NetOptions::default(),
            modes_dir: None,
        }
    }
}
