//! A workspace with an outside to escape to, for the tests of the path layer.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use hanzo_sandbox::{
    Reads, SandboxConfig,
    paths::{Facilities, PathError, Workspace},
};
use tempfile::TempDir;

/// The kernel resolves; we walk and ask where descriptors are; we walk without that.
pub const FACILITIES: [Facilities; 3] = [
    Facilities { openat2: true, descriptor_paths: true },
    Facilities { openat2: false, descriptor_paths: true },
    Facilities { openat2: false, descriptor_paths: false },
];

pub struct Stage {
    _dir: TempDir,
    pub base: PathBuf,
    pub ws: PathBuf,
    pub outside: PathBuf,
}

impl Stage {
    /// `ws/inside.txt`, `ws/dir/file.txt`, and `outside/secret.txt` beside the workspace.
    pub fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap())
    }

    /// In memory, where a flush costs nothing and so does not set the pace of a race.
    pub fn in_memory() -> Self {
        Self::with(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn with(dir: TempDir) -> Self {
        let base = dir.path().canonicalize().unwrap();
        let (ws, outside) = (base.join("ws"), base.join("outside"));
        fs::create_dir_all(ws.join("dir")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(ws.join("inside.txt"), "inside").unwrap();
        fs::write(ws.join("dir/file.txt"), "file").unwrap();
        fs::write(outside.join("secret.txt"), "SECRET").unwrap();
        Self { _dir: dir, base, ws, outside }
    }

    pub fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.ws.join(name)).unwrap();
    }

    pub fn open(&self, facilities: Facilities) -> Workspace {
        self.open_config(&SandboxConfig { reads: Reads::Workspace, ..SandboxConfig::default() }, facilities)
    }

    pub fn open_config(&self, config: &SandboxConfig, facilities: Facilities) -> Workspace {
        Workspace::open_with(&self.ws, config, facilities).unwrap()
    }

    /// Nothing outside has been touched.
    pub fn assert_outside_untouched(&self) {
        let names: Vec<_> = fs::read_dir(&self.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["secret.txt"]);
        assert_eq!(fs::read_to_string(self.outside.join("secret.txt")).unwrap(), "SECRET");
    }
}

/// Runs a test once for each way of resolving, each time on a fresh stage.
pub fn each_way(test: impl Fn(&Stage, Facilities)) {
    for facilities in FACILITIES {
        test(&Stage::new(), facilities);
    }
}

pub fn read(ws: &Workspace, path: impl AsRef<Path>) -> Result<String, PathError> {
    let file = ws.open_read(path.as_ref())?;
    Ok(std::io::read_to_string(file).unwrap())
}

pub fn is_outside<T>(answer: &Result<T, PathError>) -> bool {
    matches!(answer, Err(error @ PathError::Outside { .. }) if error.is_denial())
}

pub fn is_protected<T>(answer: &Result<T, PathError>) -> bool {
    matches!(answer, Err(error @ PathError::Protected { .. }) if error.is_denial())
}

pub fn is_unreadable<T>(answer: &Result<T, PathError>) -> bool {
    matches!(answer, Err(error @ PathError::Unreadable { .. }) if error.is_denial())
}
