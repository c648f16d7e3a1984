//! Tools that are a script and a manifest (HIP-10): `mcp-tool.yaml` says what the tool takes and returns, what it may reach, and which
//! script does the work. The script runs in a sandbox that lets it reach just that.
//!
//! ```yaml
//! name: word_count
//! version: 1.0.0
//! description: Count the words of a text
//! input:
//!   type: object
//!   properties:
//!     text: {type: string}
//!   required: [text]
//! permissions: ["rate_limit:100/min"]
//! implementation:
//!   runtime: python
//!   handler: ./count.py
//!   timeout: 5000
//! ```

mod parse;
mod permissions;
mod run;
mod tool;

use std::path::{Path, PathBuf};

pub use parse::{Manifest, Runtime};
pub use permissions::{Files, Network, Permissions, Walls};
pub use tool::{ManifestTool, Sites};

/// What a manifest is called.
pub const FILE: &str = "mcp-tool.yaml";
/// How many manifests a directory has at most.
const MOST: usize = 100;

/// A manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool of `{}` cannot be used: {reason}", .path.display())]
pub struct ManifestError {
    /// The manifest.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}

/// The tools in `directory`: one in each directory in it that has a manifest. Nothing outside of `within` is looked at, whatever a
/// link says.
pub fn find(directory: &Path, within: &Path) -> (Vec<Manifest>, Vec<ManifestError>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(directory) else { return (found, faults) };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path().join(FILE)).filter(|path| path.exists()).collect();
    paths.sort();
    if paths.len() > MOST {
        let reason = format!("there are more than {MOST} tools in the directory");
        faults.push(ManifestError { path: paths[MOST].clone(), reason });
        paths.truncate(MOST);
    }
    for path in paths {
        match parse::load(&path, within) {
            Ok(manifest) => found.push(manifest),
            Err(reason) => faults.push(ManifestError { path, reason }),
        }
    }
    (found, faults)
}
