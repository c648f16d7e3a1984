//! From settings to the jail the agent's commands run in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hanzo_config::{Isolation, LoadInputs, Sandbox as Settings, SandboxLevel, user_data_dir};
use hanzo_sandbox::jail::{JailConfig, Level, Limits, Protected};
use hanzo_sandbox::{Network, protected};

use crate::exit::{Exit, Failure};

/// What a command line may change about the jail, for one command.
#[derive(Debug, Default)]
pub struct Overrides {
    /// More directories to write to.
    pub write: Vec<PathBuf>,
    /// Let it reach the network.
    pub network: bool,
    /// Kill it after this long.
    pub timeout: Option<Duration>,
}

/// The jail that `settings` ask for in the workspace of `inputs`.
pub fn jail_config(
    settings: &Settings,
    inputs: &LoadInputs,
    overrides: &Overrides,
) -> Result<JailConfig, Failure> {
    if settings.mode == Isolation::Off {
        let text = "the sandbox is off: nothing would confine the command\n\nhint: `hanzo-dev config explain sandbox.mode` says who turned it off";
        return Err(Failure::message(Exit::Sandbox, text));
    }
    let workspace = settings.workspace_root.as_deref().unwrap_or(&inputs.workspace_root);
    let mut config = JailConfig::new(workspace);
    config.writable.extend(settings.allow_write.iter().cloned());
    if settings.mode == Isolation::Allowlist {
        config.writable.extend(settings.allowed_paths.iter().cloned());
    }
    // A directory of the settings that is not there cannot be written to, and is no reason not to start; one that was
    // named on the command line is a mistake, which the jail reports.
    config.writable.retain(|path| path.exists());
    config.writable.extend(overrides.write.iter().map(|path| inputs.cwd.join(path)));
    config.unreadable = unreadable(inputs);
    // What the user decided is never written by what the user let run, not even when the home is the workspace.
    config.protected.extend(inputs.config_dir.iter().map(Protected::new));
    config.network = if settings.network || overrides.network { Network::On } else { Network::Off };
    config.limits = Limits {
        memory: settings.limits.memory_mb.map(mebibytes),
        cpu_time: settings.limits.cpu_seconds.map(Duration::from_secs),
        processes: settings.limits.processes.or(Limits::standard().processes),
        file_size: settings.limits.file_size_mb.map(mebibytes),
        open_files: settings.limits.open_files,
        wall_clock: overrides.timeout,
    };
    config.require = match settings.require {
        SandboxLevel::Full => Level::Full,
        // Without any level of jail there is nothing to run a command in.
        _ => Level::LandlockSeccomp,
    };
    Ok(config)
}

fn mebibytes(count: u64) -> u64 {
    count.saturating_mul(1 << 20)
}

fn unreadable(inputs: &LoadInputs) -> Vec<PathBuf> {
    // Without a home there are no files of the user's to hide; the list then names places that do not exist.
    let nowhere = Path::new("/nonexistent");
    let data = user_data_dir(&inputs.environment, hanzo_config::Platform::current());
    protected::default_unreadable(
        inputs.home.as_deref().unwrap_or(nowhere),
        inputs.config_dir.as_deref().unwrap_or(nowhere),
        data.as_deref().unwrap_or(nowhere),
    )
}
