//! The lists of servers, kept from one run to the next, so that the tools of a server can be offered before it answers.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::listing::Listing;

/// The largest file that is read.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Where lists are kept: a file for each server, named by the fingerprint of its settings.
#[derive(Debug, Clone)]
pub struct ListCache {
    directory: Option<PathBuf>,
}

impl ListCache {
    /// In `directory`, which is made when something is kept; nowhere without one.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    /// What is kept for a server; nothing when it is broken.
    pub fn load(&self, fingerprint: &str) -> Option<Listing> {
        let file = std::fs::File::open(self.path(fingerprint)?).ok()?;
        let mut text = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps `listing`. That it could not be kept costs the next run a moment and nothing else.
    pub fn store(&self, fingerprint: &str, listing: &Listing) -> io::Result<()> {
        match self.path(fingerprint) {
            Some(path) => write_private(&path, &serde_json::to_vec(listing)?),
            None => Ok(()),
        }
    }

    /// Forgets what is kept for a server: it is known to be no longer true.
    pub fn forget(&self, fingerprint: &str) {
        if let Some(path) = self.path(fingerprint) {
            let _ = std::fs::remove_file(path);
        }
    }

    fn path(&self, fingerprint: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{fingerprint}.json")))
    }
}

/// Writes a file that only the user can read, whole or not at all.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let temporary = directory.join(format!(".{}.tmp", hanzo_protocol::ids::TraceId::new()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let written = options.open(&temporary).and_then(|mut file| file.write_all(content));
    let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
    if renamed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_a_broken_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ListCache::new(Some(dir.path().join("lists")));
        assert!(cache.load("x").is_none());
        let listing = Listing { protocol: "2025-11-25".into(), ..Listing::default() };
        cache.store("x", &listing).unwrap();
        assert_eq!(cache.load("x"), Some(listing));
        std::fs::write(dir.path().join("lists/x.json"), "{broken").unwrap();
        assert!(cache.load("x").is_none());
        cache.forget("x");
        assert!(!dir.path().join("lists/x.json").exists());
        assert!(ListCache::new(None).load("x").is_none());
    }
}
