//! What was written in the composer and not sent, kept beside the threads: a file for each workspace and process, so that two
//! faces in one workspace do not take each other's words.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hanzo_protocol::primitives::ContentHash;
use rustix::process::{Pid, getpid, test_kill_process};

/// The largest draft that is read back.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The drafts of a workspace.
pub struct Drafts {
    directory: PathBuf,
    /// How their names begin.
    prefix: String,
}

impl Drafts {
    /// Drafts of `workspace`, kept below `data`.
    pub fn new(data: &Path, workspace: &Path) -> Self {
        let hash = ContentHash::of(workspace.as_os_str().as_encoded_bytes()).to_string();
        let hash: String = hash.chars().rev().filter(char::is_ascii_alphanumeric).take(24).collect();
        Self { directory: data.join("drafts"), prefix: format!("{hash}-") }
    }

    fn own(&self) -> PathBuf {
        self.directory.join(format!("{}{}", self.prefix, getpid().as_raw_nonzero()))
    }

    /// Keeps a draft; an empty one is forgotten. Nobody is disturbed when that fails.
    pub fn keep(&self, text: &str) {
        let own = self.own();
        if text.trim().is_empty() {
            let _ = std::fs::remove_file(own);
            return;
        }
        // Written beside it and moved: whoever is killed half-way leaves the draft of before.
        let beside = own.with_extension("new");
        let _ = std::fs::create_dir_all(&self.directory);
        let _ = std::fs::remove_file(&beside);
        if write_private(&beside, text).is_ok() {
            let _ = std::fs::rename(beside, own);
        }
    }

    /// The newest draft of a process that is no more. It is this process's from now on.
    pub fn take(&self) -> Option<String> {
        let mut left: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.directory).ok()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(process) = name.strip_prefix(&self.prefix).and_then(|id| id.parse::<i32>().ok()) else {
                continue;
            };
            let runs =
                Pid::from_raw(process).is_some_and(|pid| pid != getpid() && test_kill_process(pid).is_ok());
            let Ok(data) = entry.metadata() else { continue };
            if !runs && data.len() <= LARGEST {
                left.push((data.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
            }
        }
        let (_, newest) = left.into_iter().max()?;
        let text = std::fs::read_to_string(&newest).ok()?;
        let _ = std::fs::rename(newest, self.own());
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

/// Without waiting for the disk: this happens while somebody types.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_taken_by_the_next_process_and_by_nobody_while_its_own_runs() {
        let data = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(data.path(), Path::new("/a"));
        drafts.keep("half a sentence");
        assert_eq!(Drafts::new(data.path(), Path::new("/b")).take(), None, "another workspace");
        // As if a process that is gone had left it; no process has that number.
        let gone = drafts.directory.join(format!("{}2147483646", drafts.prefix));
        std::fs::rename(drafts.own(), &gone).unwrap();
        assert_eq!(drafts.take().as_deref(), Some("half a sentence"));
        assert!(!gone.exists() && drafts.own().exists(), "it is ours now");
        // Process 1 runs.
        std::fs::rename(drafts.own(), drafts.directory.join(format!("{}1", drafts.prefix))).unwrap();
        assert_eq!(drafts.take(), None);
        drafts.keep("x");
        drafts.keep(" ");
        assert!(!drafts.own().exists());
    }
}
