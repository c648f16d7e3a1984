//! Where tests of a jail put what the jail must leave alone.

use std::path::{Path, PathBuf};

/// Directories a jail has its own of: what lies there is out of its sight, so nothing can be tried on it.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev"];

/// An existing directory that a jail shows to its commands and that every user can reach: `preferred` (a test's
/// `CARGO_TARGET_TMPDIR`) unless the checkout lies where it cannot be used.
///
/// # Panics
/// When there is none.
pub fn seen_from_a_jail(preferred: &Path) -> PathBuf {
    let mut candidates = vec![preferred.to_owned()];
    candidates.extend(std::env::var_os("HOME").map(PathBuf::from));
    candidates.extend(["/srv", "/opt", "/var/lib", "/var/cache"].map(PathBuf::from));
    candidates
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .find(|path| is_seen(path) && is_reachable(path) && is_writable(path))
        .unwrap_or_else(|| panic!("none of {candidates:?} is outside /tmp, writable and open to every user"))
}

fn is_seen(path: &Path) -> bool {
    !PRIVATE.iter().any(|private| path.starts_with(private))
}

#[cfg(unix)]
fn is_reachable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let open =
        |directory: &Path| directory.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    path.ancestors().all(open)
}

#[cfg(not(unix))]
fn is_reachable(_: &Path) -> bool {
    true
}

fn is_writable(path: &Path) -> bool {
    let trial = path.join(format!(".hanzo-trial-{}", std::process::id()));
    let made = std::fs::create_dir(&trial).is_ok();
    // Two tests may try at once; either way the directory could be made.
    let exists = trial.exists();
    let _ = std::fs::remove_dir(&trial);
    made || exists
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_tmp_is_not_taken() {
        let place = seen_from_a_jail(&std::env::temp_dir());
        assert!(place.is_dir() && is_seen(&place) && is_reachable(&place), "{}", place.display());
    }
}
