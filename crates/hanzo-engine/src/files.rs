//! Reading small files of a workspace that a stranger may have written.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path};

use hanzo_sandbox::paths::{FileKind, PathError, Workspace};

/// Whether an error only says that nothing is there.
pub(crate) fn is_missing(error: &PathError) -> bool {
    matches!(error.io_kind(), Some(ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Opens a plain file of the workspace; `None` when it does not exist. A link that leads out of the workspace is refused: a
/// cloned repository must not be able to have a file of the user's told to a vendor.
pub(crate) fn open_inside(workspace: &Workspace, path: &Path) -> Result<Option<File>, String> {
    let stat = match workspace.stat(path) {
        Ok(stat) => stat,
        // A dangling link is something the user should know.
        Err(error) if is_missing(&error) && workspace.stat_link(path).is_err() => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if stat.kind != FileKind::File {
        return Err("it is not a plain file".to_owned());
    }
    if !stat.location.starts_with(workspace.path()) {
        return Err("it is a link that leads out of the workspace".to_owned());
    }
    workspace.open_read(path).map(Some).map_err(|error| error.to_string())
}

/// Opens a plain file of the user's own; `None` when it does not exist. Links are theirs to make; a FIFO would block for ever.
pub(crate) fn open_own(path: &Path) -> Result<Option<File>, String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err() => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
        Ok(metadata) if !metadata.is_file() => Err("it is not a plain file".to_owned()),
        Ok(_) => File::open(path).map(Some).map_err(|error| error.to_string()),
    }
}

/// The whole of a text file that must not be larger than `most` bytes, without a byte order mark.
pub(crate) fn whole_text(file: File, most: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > most {
        return Err(format!("it is larger than {} kB", most / 1024));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// A relative path with `/` on every platform.
pub(crate) fn slashed(path: &Path) -> String {
    let normal = path.components().filter(|part| !matches!(part, Component::CurDir));
    let parts: Vec<_> = normal.map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}
