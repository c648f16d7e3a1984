//! What compaction drops from the conversation, kept in files of its own.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::StoreError;

/// Writes `messages` to `<directory>/<timestamp>.jsonl`, one JSON message per line, and returns the file. It is on the disk when
/// the call returns.
pub fn archive<M: Serialize>(directory: &Path, messages: &[M]) -> Result<PathBuf, StoreError> {
    const DOING: &str = "archive messages in";
    let failed = |error: &std::io::Error| StoreError::file(DOING, directory, error);
    let mut text = Vec::new();
    for message in messages {
        serde_json::to_writer(&mut text, message).map_err(|error| StoreError::invalid(DOING, error))?;
        text.push(b'\n');
    }
    make_directory(directory).map_err(|error| failed(&error))?;
    let (path, mut file) = create(directory).map_err(|error| failed(&error))?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // Half an archive would look like a whole one.
        let _ = fs::remove_file(&path);
        return Err(failed(&error));
    }
    Ok(path)
}

fn make_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// A new file, for its owner alone. Two compactions in one millisecond get a number each.
fn create(directory: &Path) -> std::io::Result<(PathBuf, File)> {
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%S.%3fZ").to_string();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 0_u32;
    loop {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let path = directory.join(format!("{stamp}{suffix}.jsonl"));
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            file => return file.map(|file| (path, file)),
        }
    }
}
