//! Who writes to a `.part` file, and what is known of a download that broke off.
//!
//! A small file in our data directory, one for each place a download goes to. It is locked as long as the download is under
//! way, so that a second one to the same place, in this process or another, is told instead of mixing its bytes in.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use hanzo_net::Url;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::ContentHash;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

/// No record is longer.
const MAX_RECORD: u64 = 16 << 10;

/// What is known of a download that may go on later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Of the URL only whether it is the same again: it may hold a password or a token.
    url: ContentHash,
    /// What the server calls this version of the file.
    pub(super) validator: Option<String>,
}

impl Record {
    pub(super) fn new(url: &Url, validator: Option<String>) -> Self {
        Self { url: ContentHash::of(url.as_str().as_bytes()), validator }
    }

    pub(super) fn is_of(&self, url: &Url) -> bool {
        self.url == ContentHash::of(url.as_str().as_bytes())
    }
}

/// The right to download to a place, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    file: File,
}

impl Claim {
    /// Claims `place`. Its records are beneath `data_dir`.
    pub(super) fn take(data_dir: &Path, place: &Path) -> Result<Self, ToolError> {
        let failed = |fault: io::Error| {
            ToolError::new(ErrorCode::Io, format!("cannot keep track of the download: {fault}"))
        };
        let busy = || {
            ToolError::new(
                ErrorCode::Conflict,
                format!("another download to `{}` is under way", place.display()),
            )
        };
        let directory = data_dir.join("downloads");
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        let name = ContentHash::of(place.as_os_str().as_encoded_bytes());
        let path = directory.join(&name.as_str()["sha256:".len()..][..32]);
        // A record goes when its download is done: the file that was locked may be gone by the time it is.
        for _ in 0..10 {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(&path)
                .map_err(failed)?;
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(busy());
            }
            let locked = file.metadata().map_err(failed)?;
            if std::fs::symlink_metadata(&path).is_ok_and(|there| there.ino() == locked.ino()) {
                file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
                return Ok(Self { path, file });
            }
        }
        Err(busy())
    }

    /// What an earlier download left.
    pub(super) fn record(&self) -> Option<Record> {
        let mut text = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).ok()?;
        file.take(MAX_RECORD).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Leaves a record for a later download.
    pub(super) fn keep(&self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_vec(record)?;
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)?;
        (&self.file).flush()
    }

    /// Leaves none.
    pub(super) fn forget(&self) {
        // One that stays says of a file that is gone how it would have gone on.
        let _ = self.file.set_len(0);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|there| there.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_record_holds_no_secret_and_is_for_the_user_alone() {
        let data = tempfile::tempdir().unwrap();
        let asked = url("https://me:hunter2@a.test/f?token=s3cret&X-Amz-Signature=abc");
        let claim = Claim::take(data.path(), Path::new("/ws/f")).unwrap();
        claim.keep(&Record::new(&asked, Some("\"v1\"".into()))).unwrap();
        let path = claim.path.clone();
        drop(claim);
        let text = std::fs::read_to_string(&path).unwrap();
        for secret in ["hunter2", "me:", "s3cret", "abc", "a.test", "token"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let again = Claim::take(data.path(), Path::new("/ws/f")).unwrap().record().unwrap();
        assert!(again.is_of(&asked) && !again.is_of(&url("https://a.test/f")));
        assert_eq!(again.validator.as_deref(), Some("\"v1\""));
    }

    #[test]
    fn a_place_is_claimed_once_and_leaves_nothing_when_there_is_nothing_to_leave() {
        let data = tempfile::tempdir().unwrap();
        let first = Claim::take(data.path(), Path::new("/ws/f")).unwrap();
        assert_eq!(Claim::take(data.path(), Path::new("/ws/f")).unwrap_err().code, ErrorCode::Conflict);
        Claim::take(data.path(), Path::new("/ws/g")).unwrap();
        first.keep(&Record::new(&url("http://a.test/"), None)).unwrap();
        first.forget();
        assert_eq!(first.record(), None);
        drop(first);
        assert_eq!(std::fs::read_dir(data.path().join("downloads")).unwrap().count(), 0);
        Claim::take(data.path(), Path::new("/ws/f")).unwrap();
    }

    #[test]
    fn a_record_that_makes_no_sense_is_none() {
        let data = tempfile::tempdir().unwrap();
        let path = Claim::take(data.path(), Path::new("/ws/f")).unwrap().path.clone();
        for text in ["{", "[]", "{\"url\":\"http://a.test/\"}", "\0\0\0"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Claim::take(data.path(), Path::new("/ws/f")).unwrap().record(), None, "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert_eq!(Claim::take(data.path(), Path::new("/ws/f")).unwrap_err().code, ErrorCode::Io);
    }
}
