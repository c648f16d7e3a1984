//! A small world for an escape to be tried in: a workspace, a place outside it, and who tries.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use hanzo_sandbox::jail::JailConfig;
use hanzo_testkit::place::seen_from_a_jail;

/// First argument of this binary when it runs an attempt.
pub(crate) const PROBE: &str = "--hanzo-probe";
const NOBODY: u32 = 65534;

/// Who tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root, or whoever runs the tests.
    Own,
    /// An ordinary user; only root can become him.
    Nobody,
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Everyone the tests can be.
pub(crate) fn everyone() -> Vec<Who> {
    if is_root() { vec![Who::Own, Who::Nobody] } else { vec![Who::Own] }
}

/// How often a loop runs: a twentieth unless a soak is asked for.
pub(crate) fn rounds(full: u32) -> usize {
    usize::try_from(hanzo_testkit::scale::rounds(full)).unwrap()
}

/// A directory that every user and every jail can see: what is outside must stay visible to be attacked.
pub(crate) static PLACE: LazyLock<PathBuf> =
    LazyLock::new(|| seen_from_a_jail(env!("CARGO_TARGET_TMPDIR").as_ref()));

/// A binary of this build where every user and every jail can run it: where it is, unless the checkout lies in a place that
/// a jail replaces or that is closed to others. Then a copy, which the next run replaces.
fn runnable(binary: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap();
    if *PLACE == here {
        return binary.to_owned();
    }
    let copies = PLACE.join("hanzo-sandbox-tests");
    fs::create_dir_all(&copies).unwrap();
    let copy = copies.join(binary.file_name().unwrap());
    // By another process: a descriptor of ours, open for writing, could be inherited by a child that another test starts at
    // that moment, and the copy would be "busy".
    let copied = Command::new("install").args(["-m", "755"]).arg(binary).arg(&copy).status();
    assert!(copied.unwrap().success());
    copy
}

/// The binary that is a jail on its own.
pub(crate) static JAIL: LazyLock<String> = LazyLock::new(|| {
    runnable(env!("CARGO_BIN_EXE_hanzo-jail").as_ref()).to_str().expect("cargo's paths are UTF-8").to_owned()
});
/// This binary, which also runs attempts.
static PROBES: LazyLock<PathBuf> = LazyLock::new(|| runnable(&std::env::current_exe().unwrap()));

pub(crate) fn scratch() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("jail-").tempdir_in(&*PLACE).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

pub(crate) struct World {
    pub(crate) who: Who,
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
    base: tempfile::TempDir,
}

impl World {
    pub(crate) fn new(who: Who) -> Self {
        let base = scratch();
        let (workspace, outside, run) =
            (base.path().join("workspace"), base.path().join("outside"), base.path().join("run"));
        for dir in [&workspace, &outside, &run] {
            fs::create_dir(dir).unwrap();
        }
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
        let world = Self { who, workspace, outside, base };
        world.give(&world.workspace);
        world.give(&world.outside);
        world.give(&run);
        world
    }

    /// Makes `path` belong to who tries.
    pub(crate) fn give(&self, path: &Path) {
        if self.who == Who::Nobody {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// A file outside, with content.
    pub(crate) fn victim(&self, name: &str) -> PathBuf {
        let path = self.outside.join(name);
        fs::write(&path, "original").unwrap();
        self.give(&path);
        path
    }

    /// A command line run as who tries, without a jail.
    pub(crate) fn plain(&self, argv: &[OsString]) -> Command {
        let mut command = match self.who {
            Who::Own => Command::new(&argv[0]),
            Who::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&argv[0]);
                command
            }
        };
        command.args(&argv[1..]).current_dir(&self.workspace).stdin(Stdio::null());
        command.env("TMPDIR", self.base.path().join("run"));
        command
    }

    /// The same in a jail around the workspace.
    pub(crate) fn jailed(&self, options: &[&str], argv: &[OsString]) -> Command {
        let mut all: Vec<OsString> = [JAIL.as_str(), "--workspace"].map(OsString::from).to_vec();
        all.push(self.workspace.clone().into());
        all.extend(["--timeout", "60"].map(OsString::from));
        all.extend(options.iter().map(OsString::from));
        all.push("--".into());
        all.extend_from_slice(argv);
        self.plain(&all)
    }
}

/// The command line of an attempt.
pub(crate) fn probe(name: &str, arguments: &[&dyn AsRef<OsStr>]) -> Vec<OsString> {
    let mut argv = vec![PROBES.clone().into_os_string(), PROBE.into(), name.into()];
    argv.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
    argv
}

/// A line for a shell.
pub(crate) fn sh(line: &str) -> Vec<OsString> {
    ["sh", "-c", line].map(OsString::from).to_vec()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs to the end and insists that the attempt was really made.
pub(crate) fn tried(mut command: Command) -> String {
    let output: Output = command.stderr(Stdio::piped()).stdout(Stdio::piped()).output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("tried"), "the attempt did not run: {command:?}\n{:?}\n{out}\n{err}", output.status);
    out
}

/// Tries `attempt` outside the jail and inside, each in a fresh world, for everyone. `setup` prepares a world and returns
/// the command line; `happened` looks whether the attempt had its effect.
pub(crate) fn escape<T>(
    options: &[&str],
    who: &[Who],
    setup: impl Fn(&World) -> (Vec<OsString>, T),
    happened: impl Fn(&World, &T, &str) -> bool,
) {
    for who in who {
        let world = World::new(*who);
        let (argv, state) = setup(&world);
        let output = tried(world.plain(&argv));
        assert!(happened(&world, &state, &output), "the control did not work as {who:?}: {output}");

        let world = World::new(*who);
        let (argv, state) = setup(&world);
        let output = tried(world.jailed(options, &argv));
        assert!(!happened(&world, &state, &output), "ESCAPED as {who:?}: {argv:?}\n{output}");
    }
}

/// A jail configuration for tests that hold the jail themselves.
pub(crate) fn config(workspace: &Path) -> JailConfig {
    let mut config = JailConfig::new(workspace);
    config.host_binary = JAIL.as_str().into();
    config
}

/// All names in a directory, sorted.
pub(crate) fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
