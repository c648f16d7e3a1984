//! A temporary home and workspace to load settings from.

use std::path::PathBuf;

use hanzo_config::{ConfigError, Environment, FlagOverride, LoadInputs, LoadedConfig, Trust, load};

pub struct World {
    // Removed with everything in it when the test ends.
    _root: tempfile::TempDir,
    pub home: PathBuf,
    pub workspace: PathBuf,
    pub environment: Vec<(String, String)>,
    pub flags: Vec<FlagOverride>,
    pub trust: Trust,
}

impl World {
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary place to write");
        let home = root.path().join("home");
        let workspace = home.join("work");
        std::fs::create_dir_all(home.join(".config/hanzo")).expect("a temporary place to write");
        std::fs::create_dir_all(workspace.join(".hanzo")).expect("a temporary place to write");
        Self {
            _root: root,
            home,
            workspace,
            environment: Vec::new(),
            flags: Vec::new(),
            trust: Trust::Trusted,
        }
    }

    pub fn user(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.home.join(".config/hanzo").join(name), text).expect("a temporary place to write");
        self
    }

    /// A file at `path` in the workspace.
    pub fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.workspace.join(path), text).expect("a temporary place to write");
        self
    }

    pub fn project(self, text: &str) -> Self {
        self.file(".hanzo/settings.toml", text)
    }

    pub fn local(self, text: &str) -> Self {
        self.file(".hanzo/settings.local.toml", text)
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn flag(mut self, assignment: &str) -> Self {
        self.flags.push(FlagOverride::parse("--config", assignment).expect("a flag of the form KEY=VALUE"));
        self
    }

    pub fn untrusted(mut self) -> Self {
        self.trust = Trust::Untrusted;
        self
    }

    pub fn inputs(&self) -> LoadInputs {
        let mut variables = vec![("HOME".to_owned(), self.home.display().to_string())];
        variables.extend(self.environment.iter().cloned());
        let environment: Environment = variables.into_iter().collect();
        let mut inputs = LoadInputs::new(&self.workspace, environment);
        inputs.flags.clone_from(&self.flags);
        inputs.trust = self.trust.clone();
        inputs
    }

    pub fn load(&self) -> LoadedConfig {
        self.try_load().unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn try_load(&self) -> Result<LoadedConfig, ConfigError> {
        load(&self.inputs())
    }

    pub fn error(&self) -> ConfigError {
        self.try_load().expect_err("this configuration is broken")
    }
}

/// The keys of the warnings, sorted.
pub fn warned(config: &LoadedConfig) -> Vec<&str> {
    let mut keys: Vec<_> = config.warnings().iter().map(|warning| warning.key.as_str()).collect();
    keys.sort_unstable();
    keys
}

/// The keys that wait for trust, sorted.
pub fn disabled(config: &LoadedConfig) -> Vec<&str> {
    let mut keys: Vec<_> = config.disabled().iter().map(|disabled| disabled.key.as_str()).collect();
    keys.sort_unstable();
    keys
}
