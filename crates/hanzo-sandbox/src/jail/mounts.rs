//! The mount tree of a jail. Built once by the supervisor, then finished for each command in its own copy: `/proc`, the
//! masks and the protections are made anew every time, because files appear, vanish and are replaced between commands,
//! and a mount on a file dies with it when somebody renames another over it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use super::config::{Placeholder, Protected};
use super::orders::{Setup, Step, StepError};
use super::sys::{self, Depth, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};

/// Device nodes a command may open. Everything else in `/dev` (disks, as root!) is absent.
const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Where the empty file and directory that masks are made of live.
const MASKS: &str = "/dev/.masks";
/// Both are replaced by the private directory.
const TMP_DIRS: &[&str] = &["/tmp", "/var/tmp"];
/// Memory-backed, so bounded: nothing else counts it.
const SHM_SIZE: &str = "size=512m,mode=1777";

fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, path, flags)?)
}

fn attach(tree: &OwnedFd, target: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    Ok(move_mount(tree, "", CWD, target, flags)?)
}

fn new_filesystem(kind: &str, options: &str, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        fsconfig_set_string(context.as_fd(), name, value)?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn lock_down(tree: &OwnedFd, attributes: u64, depth: Depth) -> io::Result<()> {
    sys::mount_set(tree.as_fd(), attributes, depth)
}

/// Builds the tree in the supervisor's new mount namespace.
pub(crate) fn build(setup: &Setup) -> Result<(), StepError> {
    // A mount made on the host later must not appear in here: it would be writable.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .step(|| "detach from the host's mounts".into())?;

    // Copies of what stays writable, taken while it still is. A copy keeps what the host had made read-only.
    let mut roots = Vec::new();
    for root in &setup.roots {
        let tree = clone_tree(root).step(|| format!("take the writable directory `{}`", root.display()))?;
        lock_down(&tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, Depth::All)
            .step(|| format!("forbid setuid programs in `{}`", root.display()))?;
        roots.push((root.clone(), tree));
    }
    let mut tmp = Vec::new();
    for target in TMP_DIRS.iter().map(Path::new).filter(|target| target.is_dir()) {
        let tree = clone_tree(&setup.tmp).step(|| "take the private `/tmp`".into())?;
        lock_down(&tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, Depth::All)
            .step(|| "forbid setuid programs in `/tmp`".into())?;
        tmp.push((target, tree));
    }
    let mut nodes = Vec::new();
    for node in NODES {
        let path = Path::new("/dev").join(node);
        if path.exists() {
            let tree = clone_tree(&path).step(|| format!("take `{}`", path.display()))?;
            // A device can be written through a read-only mount, but its mode cannot be changed.
            lock_down(&tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, Depth::All)
                .step(|| format!("keep the mode of `{}`", path.display()))?;
            nodes.push((path, tree));
        }
    }

    // Recursive, because a plain read-only remount of `/` leaves `/dev/shm` and every other mount writable. No devices:
    // a node anywhere on disk is as good as the one in `/dev`.
    let all = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .step(|| "open `/`".into())?;
    lock_down(&all, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, Depth::All)
        .step(|| "make every mount read-only".into())?;

    build_dev(&nodes)?;
    for (target, tree) in &tmp {
        attach(tree, target).step(|| format!("put the private directory at `{}`", target.display()))?;
    }

    // What lies above must be there before what lies beneath it, and a writable directory may lie in a masked one (a
    // worktree in our own data directory) or in `/tmp`.
    roots.sort_by_key(|(path, _)| path.components().count());
    let mut masked: Vec<&PathBuf> =
        setup.unreadable.iter().filter(|mask| setup.is_above_root(mask) && mask.is_dir()).collect();
    masked.sort_by_key(|path| path.components().count());
    let mut closing = Vec::new();
    for mask in masked {
        let tree = new_filesystem("tmpfs", "mode=0755,size=64k", MountAttrFlags::MOUNT_ATTR_NOSUID)
            .step(|| "make a mask".into())?;
        attach(&tree, mask).step(|| format!("mask `{}`", mask.display()))?;
        closing.push(tree);
    }
    for (path, tree) in &roots {
        if !path.exists() {
            make_mountpoint(path, tree).step(|| format!("make room for `{}`", path.display()))?;
        }
        attach(tree, path).step(|| format!("make `{}` writable", path.display()))?;
    }
    for tree in closing {
        lock_down(&tree, MOUNT_ATTR_RDONLY, Depth::One).step(|| "close a mask".into())?;
    }
    Ok(())
}

/// A directory or file to mount on; succeeds only in the private `/tmp` and in masks, all else is read-only by now.
fn make_mountpoint(path: &Path, tree: &OwnedFd) -> io::Result<()> {
    if rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode).is_dir() {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, "")
}

fn build_dev(nodes: &[(PathBuf, OwnedFd)]) -> Result<(), StepError> {
    let in_dev = |what: &str| {
        let what = what.to_owned();
        move || format!("make `/dev`: {what}")
    };
    let dev = new_filesystem(
        "tmpfs",
        "mode=0755,size=64k",
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )
    .step(in_dev("tmpfs"))?;
    attach(&dev, Path::new("/dev")).step(in_dev("attach"))?;
    for dir in ["/dev/pts", "/dev/shm", MASKS] {
        fs::create_dir(dir).step(in_dev(dir))?;
    }
    for (path, tree) in nodes {
        fs::write(path, "").step(in_dev("node"))?;
        attach(tree, path).step(in_dev("node"))?;
    }
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        std::os::unix::fs::symlink(target, Path::new("/dev").join(name)).step(in_dev(name))?;
    }
    // A terminal layer of its own: the host's `/dev/pts` holds the user's other terminals.
    let pts = new_filesystem(
        "devpts",
        "ptmxmode=0666,mode=0620",
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )
    .step(in_dev("devpts"))?;
    attach(&pts, Path::new("/dev/pts")).step(in_dev("devpts"))?;
    let shm = new_filesystem(
        "tmpfs",
        SHM_SIZE,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
    .step(in_dev("shm"))?;
    attach(&shm, Path::new("/dev/shm")).step(in_dev("shm"))?;
    fs::create_dir(Path::new(MASKS).join("dir")).step(in_dev("masks"))?;
    fs::write(Path::new(MASKS).join("file"), "").step(in_dev("masks"))?;
    lock_down(&dev, MOUNT_ATTR_RDONLY, Depth::One).step(in_dev("close"))
}

/// A `/proc` of the caller's pid namespace, not yet attached, and the number of tasks it may have when that worked.
///
/// Read-only as a whole, for `/proc/sys`; what a process opens through `/proc/self/fd` is not on this mount.
pub(crate) fn private_proc(max_tasks: Option<u64>) -> io::Result<(OwnedFd, bool)> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = new_filesystem("proc", "", attributes)?;
    let bounded = max_tasks.is_some_and(|max| {
        let pid_max =
            rustix::fs::openat(&proc, "sys/kernel/pid_max", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        // Numbers below 300 are not given out again, so this many always remain.
        pid_max.is_ok_and(|file| rustix::io::write(&file, (max + 301).to_string().as_bytes()).is_ok())
    });
    lock_down(&proc, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, Depth::One)?;
    Ok((proc, bounded))
}

/// Attaches what [`private_proc`] made.
pub(crate) fn attach_proc(proc: &OwnedFd) -> io::Result<()> {
    attach(proc, Path::new("/proc"))
}

/// Covers what a command may not read. In the command's own mount namespace.
pub(crate) fn mask(setup: &Setup) -> Result<(), StepError> {
    for path in &setup.unreadable {
        if setup.is_above_root(path) {
            continue; // masked by `build`, with the writable directory inside
        }
        let Ok(metadata) = fs::metadata(path) else { continue };
        let empty = Path::new(MASKS).join(if metadata.is_dir() { "dir" } else { "file" });
        clone_tree(&empty)
            .and_then(|tree| attach(&tree, path))
            .step(|| format!("mask `{}`", path.display()))?;
    }
    Ok(())
}

/// Makes the protected paths read-only. In the command's own mount namespace.
///
/// Every directory between the writable root and the path becomes a mount as well: a mount point cannot be renamed, but a
/// plain directory *above* one can, and then a new one with free content takes its name.
pub(crate) fn protect(setup: &Setup) -> Result<(), StepError> {
    let mut pinned: Vec<PathBuf> = Vec::new();
    let mut protected: Vec<&Protected> = setup.protected.iter().collect();
    protected.sort_by_key(|protected| protected.path.components().count());
    for Protected { path, placeholder } in protected {
        let Some(root) = setup.root_of(path) else { continue }; // outside the writable set all is read-only
        let present = fs::symlink_metadata(path).is_ok();
        if !present && *placeholder == Placeholder::OnlyIfPresent {
            continue;
        }
        let mut at = root.to_path_buf();
        let mut found = Vec::new();
        for part in path.strip_prefix(root).into_iter().flat_map(Path::iter) {
            at.push(part);
            let Ok(metadata) = fs::symlink_metadata(&at) else { break };
            // A link cannot be a mount point, so it could be replaced by a directory that is not protected.
            if metadata.is_symlink() {
                let error = io::Error::from_raw_os_error(libc::ELOOP);
                return Err(error).step(|| format!("protect `{}`: it is a symbolic link", at.display()));
            }
            found.push(at.clone());
        }
        // The deepest part that exists is the path itself or the placeholder for what is missing. A root of its own name is one that
        // may be seen and not written.
        let Some(deepest) = found.pop().or_else(|| (path == root).then(|| root.to_path_buf())) else {
            let error = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(error).step(|| format!("protect `{}`: its placeholder is gone", path.display()));
        };
        for above in found {
            if !pinned.contains(&above) && !setup.roots.contains(&above) {
                pin(&above, 0)?;
                pinned.push(above);
            }
        }
        pin(&deepest, MOUNT_ATTR_RDONLY)?;
        pinned.push(deepest);
    }
    Ok(())
}

fn pin(path: &Path, attributes: u64) -> Result<(), StepError> {
    clone_tree(path)
        .and_then(|tree| {
            lock_down(&tree, attributes | MOUNT_ATTR_NOSUID, Depth::All)?;
            attach(&tree, path)
        })
        .step(|| format!("protect `{}`", path.display()))
}

impl Setup {
    /// Whether a writable root lies in `path`.
    pub(crate) fn is_above_root(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| root.starts_with(path))
    }

    /// The outermost writable root that `path` lies in: from there on down, whatever is not a mount can be renamed.
    pub(crate) fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots
            .iter()
            .map(PathBuf::as_path)
            .filter(|root| path.starts_with(root))
            .min_by_key(|root| root.components().count())
    }
}
