//! A directory to work in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_sandbox::config::SandboxConfig;
use hanzo_sandbox::paths::Workspace;

/// A home with a workspace, a place outside it, and a configuration directory.
pub struct Ground {
    directory: tempfile::TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let ground = Self { directory: tempfile::tempdir().unwrap() };
        for place in [ground.root(), ground.outside(), ground.config()] {
            std::fs::create_dir(place).unwrap();
        }
        ground
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.at("workspace")
    }

    pub fn outside(&self) -> PathBuf {
        self.at("outside")
    }

    pub fn config(&self) -> PathBuf {
        self.at("config")
    }

    pub fn home(&self) -> PathBuf {
        self.at("")
    }

    /// Writes a file of the workspace, or of another place by its absolute path.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn link(&self, path: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.root().join(path)).unwrap();
    }

    /// The workspace, with everything in `outside/secret` closed to tools.
    pub fn workspace(&self) -> Arc<Workspace> {
        let config =
            SandboxConfig { unreadable: vec![self.outside().join("secret")], ..SandboxConfig::default() };
        Arc::new(Workspace::open(&self.root(), &config).unwrap())
    }
}
