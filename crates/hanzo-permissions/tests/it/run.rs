//! Runs command lines in real bash, in a directory of their own, with stand-ins for tools that need privileges.
//!
//! These lines delete things for real. When the tests run as root, they run as an ordinary user who owns nothing but the
//! scratch directory, so that a line with a mistake in it cannot take the machine along.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A scratch directory and a `PATH` with stand-ins.
pub struct Playground {
    root: tempfile::TempDir,
}

/// Programs that are missing on ordinary machines or want privileges: each runs its command, as the real one would.
const STAND_INS: &[(&str, &str)] = &[
    (
        "sudo",
        "while [ $# -gt 0 ]; do case $1 in -u|-g) shift 2;; -*) shift;; *=*) shift;; *) break;; esac; done; exec \"$@\"",
    ),
    (
        "doas",
        "while [ $# -gt 0 ]; do case $1 in -u) shift 2;; -*) shift;; *) break;; esac; done; exec \"$@\"",
    ),
    ("busybox", "exec \"$@\""),
    ("toybox", "exec \"$@\""),
    ("chroot", "shift; exec \"$@\""),
    ("unshare", "while [ $# -gt 0 ]; do case $1 in -*) shift;; *) break;; esac; done; exec \"$@\""),
    (
        "nsenter",
        "while [ $# -gt 0 ]; do case $1 in -t) shift 2;; -*) shift;; *) break;; esac; done; exec \"$@\"",
    ),
    ("su", "while [ $# -gt 0 ]; do case $1 in -c) exec sh -c \"$2\";; *) shift;; esac; done"),
    ("ssh", "shift; exec sh -c \"$*\""),
    (
        "watch",
        "while [ $# -gt 0 ]; do case $1 in -n) shift 2;; -*) shift;; *) break;; esac; done; sh -c \"$*\"",
    ),
    (
        "parallel",
        "while [ $# -gt 0 ]; do case $1 in :::) break;; *) c=\"$c $1\"; shift;; esac; done; shift; for x in \"$@\"; do sh -c \"$c $x\"; done",
    ),
    ("pager", "exec cat"),
];

/// The ordinary user lines run as when the tests run as root.
const NOBODY: u32 = 65534;

impl Playground {
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a scratch directory");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("open to others");
        let bin = root.path().join("bin");
        fs::create_dir(&bin).expect("bin");
        for (name, body) in STAND_INS {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a stand-in");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        Self { root }
    }

    /// A fresh directory `name` to run in.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir(&path).expect("a directory");
        self.hand_over(&path);
        path
    }

    /// The directory a line is to delete, with something in it.
    pub fn victim(&self, directory: &Path) -> PathBuf {
        let victim = directory.join("victim");
        fs::create_dir_all(victim.join("inside")).expect("a victim");
        self.hand_over(&victim);
        self.hand_over(&victim.join("inside"));
        victim
    }

    /// Gives `path` to whoever the lines run as.
    fn hand_over(&self, path: &Path) {
        if self.is_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
    }

    /// What we make belongs to who we are.
    fn is_root(&self) -> bool {
        fs::metadata(self.root.path()).expect("it exists").uid() == 0
    }

    /// Runs `line` in `directory`; whether it could be started.
    pub fn run(&self, directory: &Path, line: &str) -> bool {
        let path =
            format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin", self.root.path().join("bin").display());
        let mut command = Command::new("timeout");
        command.arg("10");
        if self.is_root() {
            command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command
            .args(["bash", "--norc", "--noprofile", "-c", line])
            .current_dir(directory)
            .env_clear()
            .env("PATH", path)
            .env("HOME", directory)
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    }

    /// Whether `program` is there to be run.
    pub fn has(program: &str) -> bool {
        STAND_INS.iter().any(|(name, _)| *name == program)
            || ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"]
                .iter()
                .any(|dir| Path::new(dir).join(program).exists())
    }
}
