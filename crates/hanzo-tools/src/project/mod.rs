//! What kind of project a directory is: a bounded look at its tree, used by `ws.detect` and `test`.

mod languages;
mod scan;
mod suites;

pub(crate) use scan::{Limits, Place, Scan};
pub(crate) use suites::{Runner, Suite, find_suites};

use std::io::Read as _;
use std::path::Path;

use hanzo_sandbox::paths::Workspace;

/// A manifest is for people to read.
const MAX_MANIFEST: u64 = 1 << 20;

/// The text of a manifest, if it can be read.
pub(crate) fn manifest(workspace: &Workspace, path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    workspace.open_read(path).ok()?.take(MAX_MANIFEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
