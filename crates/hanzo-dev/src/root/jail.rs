//! The jail of a thread, built beside everything else.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hanzo_engine::parts::SandboxState;
use hanzo_permissions::BoxState;
use hanzo_protocol::BoxFuture;
use hanzo_protocol::spawn::{Confinement, Process, SpawnError, SpawnRequest, Spawner};
use hanzo_sandbox::Network;
use hanzo_sandbox::jail::JailSite;

use crate::spawner::JailSpawner;

/// A jail that is built once, by whoever needs it first. Building takes a few milliseconds, and nobody has to wait for them
/// before a command is run or the level is asked for; [`warm`](Self::warm) spends them beside everything else.
pub struct LazyJail {
    site: Mutex<Option<JailSite>>,
    built: OnceLock<Result<JailSpawner, SpawnError>>,
    tmp: PathBuf,
    network: Network,
}

impl LazyJail {
    /// A jail at `site`.
    pub fn new(site: JailSite) -> Self {
        let (tmp, network) = (site.tmp_dir(), site.config().network);
        Self { site: Mutex::new(Some(site)), built: OnceLock::new(), tmp, network }
    }

    /// Begins to build it, on a thread of its own.
    pub fn warm(self: &Arc<Self>) {
        if self.built.get().is_none() {
            let this = Arc::clone(self);
            std::thread::spawn(move || {
                let _ = this.jail();
            });
        }
    }

    /// The jail. Waits for it, or builds it.
    fn jail(&self) -> Result<&JailSpawner, SpawnError> {
        let built = self.built.get_or_init(|| {
            let site = self.site.lock().unwrap_or_else(PoisonError::into_inner).take();
            let site = site.ok_or_else(|| SpawnError::Confinement("its place is gone".to_owned()))?;
            JailSpawner::build(site)
        });
        built.as_ref().map_err(Clone::clone)
    }
}

impl Spawner for LazyJail {
    fn confinement(&self) -> Confinement {
        match self.jail() {
            Ok(jail) => jail.confinement(),
            Err(_) => Confinement {
                level: "path-check".to_owned(),
                writable: Vec::new(),
                network: self.network == Network::On,
                tmp: Some(self.tmp.clone()),
            },
        }
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        Box::pin(async move { self.jail()?.spawn(request).await })
    }
}

impl SandboxState for LazyJail {
    fn state(&self) -> BoxState {
        // What cannot be built runs nothing, but the built-in file tools still would.
        if self.jail().is_ok() { BoxState::On } else { BoxState::Off }
    }

    fn level(&self) -> String {
        self.confinement().level
    }

    fn network(&self) -> bool {
        self.network == Network::On
    }
}

/// No jail, because the settings turned it off.
pub struct NoJail;

impl SandboxState for NoJail {
    fn state(&self) -> BoxState {
        BoxState::Off
    }

    fn level(&self) -> String {
        "off".to_owned()
    }

    fn network(&self) -> bool {
        true
    }
}
