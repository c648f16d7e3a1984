//! The settings file `setup` writes: every setting, commented out, with its default.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::ConfigError;

/// The text of a new `settings.toml`. Lines that start with `#` and a blank are words; lines that start with `#`
/// and a key are settings to uncomment.
pub fn default_file() -> &'static str {
    include_str!("default_settings.toml")
}

/// What keeps the local tier out of commits, as `.hanzo/.gitignore`.
const IGNORED: &str = "settings.local.*\n";

/// Makes git ignore the local tier of `workspace`, by a `.gitignore` beside it. One that is there already stays: it is
/// the project's.
pub fn ignore_local_tier(workspace: &Path) -> Result<(), ConfigError> {
    let path = workspace.join(".hanzo").join(".gitignore");
    let written = std::fs::create_dir_all(workspace.join(".hanzo"))
        .and_then(|()| OpenOptions::new().write(true).create_new(true).open(&path))
        .and_then(|mut file| file.write_all(IGNORED.as_bytes()));
    match written {
        Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(ConfigError::Unwritable { path, source })
        }
        _ => Ok(()),
    }
}

/// Writes [`default_file`] to `path`, readable by the user only. Refuses when a settings file is there already, in
/// either format.
pub fn write_default(path: &Path) -> Result<(), ConfigError> {
    for existing in [path.to_owned(), path.with_extension("json"), path.with_extension("toml")] {
        // Not `exists`: a dangling link is something, and following it would write elsewhere.
        if existing.symlink_metadata().is_ok() {
            return Err(ConfigError::Exists { path: existing });
        }
    }
    let unwritable = |source| ConfigError::Unwritable { path: path.to_owned(), source };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(unwritable)?;

    let (temporary, mut file) = temporary_file(directory).map_err(unwritable)?;
    let written = file.write_all(default_file().as_bytes()).and_then(|()| file.sync_all());
    drop(file);
    let placed = written.and_then(|()| place(&temporary, path));
    if placed.is_err() {
        // The first error is the one worth telling.
        let _ = std::fs::remove_file(&temporary);
    }
    match placed {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(ConfigError::Exists { path: path.to_owned() })
        }
        Err(e) => Err(unwritable(e)),
        Ok(()) => sync_directory(directory).map_err(unwritable),
    }
}

fn temporary_file(directory: &Path) -> std::io::Result<(PathBuf, File)> {
    let random = getrandom::u64().map_err(|e| std::io::Error::other(e.to_string()))?;
    let path = directory.join(format!(".settings-{random:016x}.tmp"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(&path)?;
    Ok((path, file))
}

/// Gives the finished file its name. A link fails when the name is taken, where a rename would overwrite.
fn place(temporary: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(temporary, path) {
        Ok(()) => std::fs::remove_file(temporary),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(e),
        // Some file systems have no links; the check above is all there is then.
        Err(_) => std::fs::rename(temporary, path),
    }
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> std::io::Result<()> {
    Ok(())
}
