//! The composition root: the one place that names the engine, the store, the providers, the tools and the sandbox together.

mod browser;
pub mod credentials;
mod factory;
mod hooks;
mod jail;
mod jobs;
pub mod mcp;
mod mcp_asks;
pub mod models;
mod outside;
mod rules;
mod runtime;
mod scripts;
pub mod signals;
pub mod trust;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hanzo_config::{LoadInputs, Platform, user_data_dir};
use hanzo_engine::Engine;
use hanzo_engine::parts::EngineParts;
use hanzo_mcp::server::ServerOptions;
use hanzo_protocol::engine::{EngineClient, EngineError};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::roles::ApiClient;
use hanzo_store::{FileBlobs, OpenOptions, SqliteStore, Store};

pub use models::Wrap;
pub(crate) use rules::edit;
pub use rules::write_private;
pub use runtime::{block_on, block_on_here};

use crate::exit::{Exit, Failure};
use crate::headless::exit_of;
use factory::Factory;
use models::{Failures, ModelNeed};
use scripts::Scripts;
use trust::TrustFile;

/// What a command wants of the engine.
pub struct RootOptions {
    /// Where settings are looked for.
    pub inputs: LoadInputs,
    /// Whether anything outlives the process.
    pub keep: Keep,
    /// What the user would call this process.
    pub program: &'static str,
    /// Put between the engine and models.
    pub wrap: Option<Wrap>,
    /// Asked instead of any model.
    pub instead: Option<Arc<dyn ApiClient>>,
}

/// Whether anything outlives the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Threads and content are kept in the user's data directory.
    Stored,
    /// Nothing is.
    Nothing,
}

/// The engine and what it stands on.
pub struct Root {
    engine: Engine,
    factory: Arc<Factory>,
    store: Arc<SqliteStore>,
    /// Sentences about how the store was opened.
    pub notices: Vec<String>,
    /// Removed at the end, when nothing is kept.
    _scratch: Option<Scratch>,
}

impl Root {
    /// Opens the store and makes the engine.
    pub async fn open(options: RootOptions) -> Result<Self, Failure> {
        Self::open_needing(options, ModelNeed::Required).await
    }

    /// Opens the store and makes the engine, with or without a model.
    pub async fn open_needing(options: RootOptions, need: ModelNeed) -> Result<Self, Failure> {
        let scratch = match options.keep {
            Keep::Stored => None,
            Keep::Nothing => Some(Scratch::new()?),
        };
        let data = match &scratch {
            Some(scratch) => scratch.0.clone(),
            None => data_dir(&options.inputs)?,
        };
        let failed = |error: &dyn std::fmt::Display| Failure::message(Exit::Failure, error);
        let mut notices = Vec::new();
        let store = match options.keep {
            Keep::Nothing => SqliteStore::in_memory().await.map_err(|error| failed(&error))?,
            Keep::Stored => {
                let opened = SqliteStore::open(&data, OpenOptions::default()).await;
                let (store, report) = opened.map_err(|error| failed(&error))?;
                notices.extend(report.notices.into_iter().map(|(_, text)| text));
                store
            }
        };
        let blobs = FileBlobs::open(data.join("blobs")).map_err(|error| failed(&error))?;
        let store = Arc::new(store);
        let failures = Failures::default();
        let factory = Arc::new(Factory {
            inputs: options.inputs.clone(),
            data,
            blobs: blobs.clone(),
            keep: options.keep,
            wrap: options.wrap.unwrap_or_else(|| Arc::new(|client| client)),
            instead: options.instead,
            failures,
            models: need,
            mcp: Arc::default(),
            scripts: Scripts::default(),
            offers_servers: std::sync::atomic::AtomicBool::new(false),
            sandboxes: Mutex::new(HashMap::new()),
        });
        let engine = Engine::new(EngineParts {
            store: store.clone(),
            blobs: Arc::new(blobs),
            threads: factory.clone(),
            trust: Arc::new(TrustFile::new(options.inputs)),
            program: options.program.to_owned(),
        });
        factory.mcp.connect(&engine);
        Ok(Self { engine, factory, store, notices, _scratch: scratch })
    }

    /// The engine.
    pub fn client(&self) -> &dyn EngineClient {
        &self.engine
    }

    /// The engine, for faces that outlive a borrow of this.
    pub fn shared_client(&self) -> Arc<dyn EngineClient> {
        Arc::new(self.engine.clone())
    }

    /// Offers what the settings' MCP servers have to clients of ours, too: says in `options` what those of its workspace offer.
    pub fn offer_servers(&self, options: &mut ServerOptions) {
        let servers = &self.factory.mcp;
        options.news = Some(servers.offered(&options.workspace));
        options.others = Some(Arc::new(mcp::Served::new(Arc::clone(servers), &options.workspace)));
        self.factory.offers_servers.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// The store, for what the engine API does not offer.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// What an engine's error means, with the exit code it was born with.
    pub fn explain(&self, error: EngineError) -> Failure {
        let known = self.factory.failures.lock().unwrap_or_else(PoisonError::into_inner).take();
        match known {
            Some(failure) if failure.to_string() == error.message => failure,
            _ => Failure::message(exit_of(&error), error.message),
        }
    }

    /// The resources of a workspace's MCP servers.
    pub fn resources(&self, workspace: &Path) -> Option<mcp::Resources> {
        self.factory.mcp.resources(workspace)
    }

    /// What confines the commands of a thread that was opened.
    pub fn sandbox_level(&self, thread: ThreadId) -> String {
        let sandboxes = self.factory.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = sandboxes.get(&thread).cloned();
        drop(sandboxes);
        state.map_or_else(|| "off".to_owned(), |state| state.level())
    }

    /// Ends everything that runs and stores what there is to store.
    ///
    /// The database is left open for the process's end to close. What was committed is safe in its log; moving it into the
    /// database file would cost two waits for the disk now and two more at the next start, which the log itself, once it is
    /// long enough, spends in the background of a turn.
    pub async fn close(self) {
        self.close_shared().await;
    }

    /// The same while somebody else still holds it.
    pub async fn close_shared(&self) {
        self.engine.shutdown().await;
        self.factory.mcp.shutdown().await;
        // Never dropped, so never closed.
        std::mem::forget(Arc::clone(&self.store));
    }
}

/// Where threads are kept, and what else outlives the process.
pub(crate) fn data_dir(inputs: &LoadInputs) -> Result<PathBuf, Failure> {
    user_data_dir(&inputs.environment, Platform::current()).ok_or_else(|| {
        let text =
            "nothing says where threads are kept\n\nhint: set `HOME` or `XDG_DATA_HOME`, or use `--no-store`";
        Failure::message(Exit::Config, text)
    })
}

/// A directory that is removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        use std::os::unix::fs::DirBuilderExt as _;
        let name = format!("hanzo-dev-{}", hanzo_protocol::ids::TraceId::new());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
