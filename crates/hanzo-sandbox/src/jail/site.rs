//! A jail that is not built yet.

use std::path::PathBuf;

use super::config::JailConfig;
use super::error::JailError;
use super::host::Jail;
use super::rundir::RunDir;

/// The place of a jail that is not built yet: its private `/tmp` is there, so that file tools can work in it before the
/// first command makes the jail itself worth its few milliseconds. Dropping it removes the place.
#[derive(Debug)]
pub struct JailSite {
    config: JailConfig,
    run_dir: RunDir,
}

impl JailSite {
    /// Makes the place for a jail.
    pub fn prepare(config: JailConfig) -> Result<Self, JailError> {
        let run_dir = RunDir::create(config.run_dir.as_deref())?;
        Ok(Self { config, run_dir })
    }

    /// The host's name for the directory that commands are going to see as `/tmp`.
    pub fn tmp_dir(&self) -> PathBuf {
        self.run_dir.tmp()
    }

    /// What is going to be built.
    pub fn config(&self) -> &JailConfig {
        &self.config
    }

    /// Builds the jail, see [`Jail::start`].
    pub fn build(self) -> Result<Jail, JailError> {
        let Self { config, run_dir } = self;
        Jail::start_in(config, || Ok(run_dir))
    }
}
