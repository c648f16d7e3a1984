//! Loads the parity vectors of `test-vectors/`, the files every platform's runner reads.
//!
//! `HANZO_TEST_VECTORS=DIR` makes every runner read another directory instead, so that anyone can run cases of
//! their own. Such a directory may hold only some of the files: the others are reported as skipped. A directory
//! that holds none of them is a mistake, and an error.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The environment variable that names another directory of vectors.
pub const DIRECTORY_VARIABLE: &str = "HANZO_TEST_VECTORS";

/// The files that make up the suite.
pub const FILES: [&str; 7] = [
    "sse-frames.json",
    "mcp-normalization.json",
    "permission-policy.json",
    "session-compaction.json",
    "oauth-pkce.json",
    "config-merge.json",
    "backoff-timing.json",
];

/// One vector file. `C` is the case type of that file. Only `cases` is needed; our own files have the rest too, by their
/// schema.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VectorFile<C> {
    /// The JSON Schema that documents the file, relative to it.
    #[serde(rename = "$schema", default)]
    pub schema: String,
    /// What the cases prove.
    #[serde(default)]
    pub description: String,
    /// Where the expectations come from: specifications, and the independent implementations they were compared with.
    #[serde(default)]
    pub sources: Vec<String>,
    /// The cases.
    pub cases: Vec<C>,
}

/// The directory in which the repository keeps its own vectors.
pub fn own_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-vectors")
}

/// The directory to read: the one the environment names, otherwise our own.
pub fn directory() -> PathBuf {
    std::env::var_os(DIRECTORY_VARIABLE).map_or_else(own_directory, PathBuf::from)
}

/// Whether the vectors are the repository's own, which must meet their promised counts.
pub fn are_our_own() -> bool {
    std::env::var_os(DIRECTORY_VARIABLE).is_none()
}

/// The cases of `file`: at least `promised` of them when they are our own, none when a directory given through the
/// environment leaves that file out.
///
/// # Panics
/// When the file is unreadable or does not have the shape the runner expects: a broken vector is a failed test.
pub fn cases<C: DeserializeOwned>(file: &str, promised: usize) -> Vec<C> {
    let Some(loaded) = load_from(&directory(), file, are_our_own()) else {
        report(&format!("skipped: there is no {file} in {}", directory().display()));
        return Vec::new();
    };
    let found = loaded.cases.len();
    assert!(!are_our_own() || found >= promised, "{file} promises {promised} cases and has {found}");
    report(&format!("{file}: {found} cases"));
    loaded.cases
}

#[expect(clippy::print_stdout, reason = "shown with `--nocapture`, and when the test fails")]
fn report(text: &str) {
    println!("{text}");
}

fn load_from<C: DeserializeOwned>(directory: &Path, file: &str, all_required: bool) -> Option<VectorFile<C>> {
    assert!(FILES.contains(&file), "`{file}` is not one of the vector files");
    let path = directory.join(file);
    if !path.exists() && !all_required {
        assert!(
            FILES.iter().any(|name| directory.join(name).exists()),
            "`{}` holds none of the vector files ({})",
            directory.display(),
            FILES.join(", "),
        );
        return None;
    }
    let text =
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read `{}`: {e}", path.display()));
    let parsed = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("`{}` is not a vector file: {e}", path.display()));
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "holds none of the vector files")]
    fn a_directory_without_vectors_is_an_error() {
        let nowhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        load_from::<serde_json::Value>(&nowhere, FILES[0], false);
    }

    #[test]
    #[should_panic(expected = "cannot read")]
    fn our_own_directory_must_hold_every_file() {
        let nowhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        load_from::<serde_json::Value>(&nowhere, FILES[0], true);
    }
}
