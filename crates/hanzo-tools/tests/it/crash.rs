//! Edits when the world turns against them: killed in the middle, no room left on the disk, a file system that cannot swap
//! files. In processes of their own, which are this test program with a variable set.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hanzo_sandbox::SandboxConfig;
use hanzo_testkit::not_run;
use hanzo_tools::{Selection, toolset};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
};
use serde_json::{Value, json};

use crate::support::{Stage, host};

/// Where the process that edits does so: the workspace, then the data directory.
const PLACE: &str = "HANZO_TEST_CRASH_PLACE";
const FILES: usize = 6;

/// This program, running one of its tests only, with the given environment.
fn inner(test: &str, place: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(PLACE, place).stdin(Stdio::null());
    command
}

fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

fn name(file: usize) -> String {
    if file.is_multiple_of(2) { format!("f{file}") } else { format!("dir/f{file}") }
}

fn content(file: usize, generation: u64) -> String {
    format!("file {file}\ngeneration {generation}\n{}", "body\n".repeat(200 * file))
}

/// A workspace of files that all have the same generation, beside its data directory.
fn prepare(place: &Path) {
    fs::create_dir_all(place.join("ws/dir")).unwrap();
    fs::create_dir_all(place.join("data")).unwrap();
    for file in 0..FILES {
        fs::write(place.join("ws").join(name(file)), content(file, 0)).unwrap();
    }
}

struct Editor {
    tools: hanzo_protocol::tool::ToolSet,
    runtime: tokio::runtime::Runtime,
    root: PathBuf,
    /// What had to be done about edits that were left.
    recovered: Vec<String>,
}

impl Editor {
    fn new(place: &Path) -> Self {
        let host = host(&place.join("ws"), &place.join("data"), &SandboxConfig::default());
        let recovered = hanzo_tools::fs::recover(&host).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { tools: toolset(&host, &Selection::default()), runtime, root: place.join("ws"), recovered }
    }

    fn call(&self, arguments: Value) -> hanzo_protocol::tool::ToolResult {
        use hanzo_protocol::ids::{ThreadId, TraceId};

        let context = hanzo_protocol::tool::ToolContext::new(ThreadId::new(), TraceId::new());
        self.runtime.block_on(self.tools.get("fs").unwrap().execute(&context, arguments))
    }

    /// Takes every file from `generation` to the next, with a file that is there in odd ones only.
    fn step(&self, generation: u64, more: &str) -> hanzo_protocol::tool::ToolResult {
        let mut patch = String::from("*** Begin Patch\n");
        let mut hashes = serde_json::Map::new();
        let mut hash = |name: String| {
            let text = fs::read(self.root.join(&name)).unwrap();
            hashes.insert(name, json!(hanzo_protocol::primitives::ContentHash::of(&text)));
        };
        for file in 0..FILES {
            hash(name(file));
            let (name, next) = (name(file), generation + 1);
            writeln!(
                patch,
                "*** Update File: {name}\n@@\n-generation {generation}\n+generation {next}{more}"
            )
            .unwrap();
        }
        if generation.is_multiple_of(2) {
            patch += "*** Add File: made/odd\n+odd\n";
        } else {
            hash("made/odd".into());
            patch += "*** Delete File: made/odd\n";
        }
        patch += "*** End Patch\n";
        self.call(json!({"action": "apply_patch", "patch": patch, "base_hashes": hashes}))
    }
}

/// The generation all files have; fails when they differ or something is left over.
fn generation(place: &Path) -> u64 {
    let of = |file: usize| {
        let text = fs::read_to_string(place.join("ws").join(name(file))).unwrap();
        let line = text.lines().nth(1).unwrap().to_owned();
        let generation = line.strip_prefix("generation ").unwrap().parse::<u64>().unwrap();
        assert_eq!(text, content(file, generation), "{} is torn", name(file));
        generation
    };
    let all: Vec<u64> = (0..FILES).map(of).collect();
    assert!(all.iter().all(|one| *one == all[0]), "half of an edit: {all:?}");
    assert_eq!(
        place.join("ws/made/odd").exists(),
        all[0] % 2 == 1,
        "the file of odd generations, at {}",
        all[0]
    );
    assert_no_leftovers(place);
    all[0]
}

fn assert_no_leftovers(place: &Path) {
    let mut rest = vec![place.to_owned()];
    while let Some(directory) = rest.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            assert!(!name.starts_with(".hanzo-tmp-") && !name.contains(".json"), "{name} is left");
            if entry.file_type().unwrap().is_dir() {
                rest.push(entry.path());
            }
        }
    }
}

#[test]
fn an_edit_that_is_killed_is_whole_or_has_not_happened() {
    const TEST: &str = "crash::an_edit_that_is_killed_is_whole_or_has_not_happened";
    if let Some(place) = place() {
        let editor = Editor::new(&place);
        let mut at = generation(&place);
        fs::write(place.join("ready"), "").unwrap();
        loop {
            let result = editor.step(at, "");
            assert!(!result.is_error, "{}", result.output);
            at += 1;
        }
    }
    let stage = Stage::new();
    let place = stage.dir.path().canonicalize().unwrap().join("place");
    prepare(&place);
    let (mut last, mut recovered) = (0, 0);
    let rounds = hanzo_testkit::scale::rounds(200);
    for round in 0..rounds {
        let mut child =
            Killed(inner(TEST, &place).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let ready = place.join("ready");
        while !ready.exists() {
            assert!(child.0.try_wait().unwrap().is_none(), "round {round}: it ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        // From before the first rename to after some edits; the disk decides where exactly.
        std::thread::sleep(Duration::from_micros(u64::from(round) * 7919 % 40_000));
        assert!(child.0.try_wait().unwrap().is_none(), "round {round}: it ended by itself");
        drop(child);
        fs::remove_file(ready).unwrap();
        recovered += Editor::new(&place).recovered.len();
        let now = generation(&place);
        assert!(now >= last, "an edit that was done came undone: {last} to {now}");
        last = now;
    }
    eprintln!("{rounds} kills, {last} edits done, {recovered} left in the middle and recovered");
    assert!(last > 0, "no edit was ever done in {rounds} rounds");
    assert!(recovered > 0 || rounds < 100, "no kill ever hit an edit in {rounds} rounds");
}

/// A process that is killed, as `kill -9` does, when this goes.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process with no room for the new content makes of an edit.
fn try_without_room(place: &Path) {
    let editor = Editor::new(place);
    let before = generation(place);
    let big = format!("\n+{}", "x".repeat(3 << 20));
    let result = editor.step(before, &big);
    assert!(result.is_error, "there was room: {}", &result.output[..200.min(result.output.len())]);
    assert!(result.output.contains("error IO"), "{}", &result.output[..200.min(result.output.len())]);
    assert_eq!(generation(place), before);
    let write = editor.call(json!({"action": "write", "path": "new", "content": "y".repeat(3 << 20)}));
    assert!(write.is_error && !place.join("ws/new").exists());
    assert_eq!(generation(place), before);
    // What fits still works afterwards.
    let result = editor.step(before, "");
    assert!(!result.is_error, "{}", result.output);
    assert_eq!(generation(place), before + 1);
}

#[test]
fn without_room_for_it_an_edit_changes_nothing() {
    const TEST: &str = "crash::without_room_for_it_an_edit_changes_nothing";
    if let Some(place) = place() {
        try_without_room(&place);
        return;
    }
    let stage = Stage::new();
    let place = stage.dir.path().canonicalize().unwrap().join("place");
    prepare(&place);
    let own = std::env::current_exe().unwrap();
    // No file may become larger than 1 MiB: writing fails in the middle, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" --exact \"$1\" --nocapture";
    let limited =
        Command::new("bash").args(["-c", script]).arg(&own).arg(TEST).env(PLACE, &place).output().unwrap();
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));

    // A real full disk, where one may be had: a file system of 2 MiB in memory.
    let place = stage.dir.path().canonicalize().unwrap().join("small");
    fs::create_dir(&place).unwrap();
    let script = "mount -t tmpfs -o size=2m none \"$2\" || exit 77; exec \"$0\" --exact \"$1\" --nocapture";
    let inner = "crash::on_a_full_disk";
    let mounted = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(&own)
        .arg(inner)
        .arg(&place)
        .env(PLACE, &place)
        .output();
    match mounted {
        Ok(output) if output.status.code() == Some(77) => {
            not_run("to mount a file system");
        }
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("unshare: ") => {
            not_run("user namespaces");
        }
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => not_run("`unshare`"),
    }
}

/// The inner half of the test above; alone it has nothing to do.
#[test]
fn on_a_full_disk() {
    if let Some(place) = place() {
        prepare(&place);
        try_without_room(&place);
    }
}

/// Makes renames with conditions fail with `errno` in this thread and those it starts, and hard links too if asked.
fn forbid(errno: u32, links: Links) {
    let has_flags =
        SeccompCondition::new(4, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0).expect("a valid condition");
    let rule = seccompiler::SeccompRule::new(vec![has_flags]).expect("a valid rule");
    let mut rules = vec![(libc::SYS_renameat2, vec![rule])];
    if links == Links::Forbidden {
        rules.push((libc::SYS_linkat, Vec::new()));
    }
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a valid filter").try_into().expect("it compiles");
    seccompiler::apply_filter(&program).expect("it is allowed");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    Allowed,
    Forbidden,
}

#[test]
fn where_files_cannot_be_swapped_edits_work_all_the_same() {
    const TEST: &str = "crash::where_files_cannot_be_swapped_edits_work_all_the_same";
    if let Some(place) = place() {
        let unsupported = [
            (libc::EINVAL, Links::Allowed),
            (libc::ENOSYS, Links::Allowed),
            (libc::EOPNOTSUPP, Links::Allowed),
            (libc::EINVAL, Links::Forbidden),
        ];
        for (number, (errno, links)) in unsupported.into_iter().enumerate() {
            let place = place.join(number.to_string());
            prepare(&place);
            // The filter is for good, so each goes in a thread of its own.
            std::thread::spawn(move || in_a_poor_file_system(&place, errno.unsigned_abs(), links))
                .join()
                .unwrap();
        }
        return;
    }
    let stage = Stage::new();
    let output = inner(TEST, &stage.dir.path().canonicalize().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn in_a_poor_file_system(place: &Path, errno: u32, links: Links) {
    use std::os::unix::fs::PermissionsExt as _;

    forbid(errno, links);
    let root = place.join("ws");
    fs::write(root.join("probe"), "").unwrap();
    let direct = rustix::fs::renameat_with(
        rustix::fs::CWD,
        root.join("probe"),
        rustix::fs::CWD,
        root.join("probe2"),
        rustix::fs::RenameFlags::NOREPLACE,
    );
    assert!(direct.is_err(), "the filter works");
    fs::remove_file(root.join("probe")).unwrap();
    fs::set_permissions(root.join("f0"), fs::Permissions::from_mode(0o754)).unwrap();
    let editor = Editor::new(place);
    for at in 0..3 {
        let result = editor.step(at, "");
        assert!(!result.is_error, "{}", result.output);
        assert_eq!(generation(place), at + 1);
    }
    assert_eq!(root.join("f0").metadata().unwrap().permissions().mode() & 0o777, 0o754);
    // One file that does not fit stops all, and what was done before it is put back.
    fs::set_permissions(root.join("f4"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(editor.step(7, "").is_error);
    assert_eq!(generation(place), 3);
    // New names must be free here too.
    let ok = |arguments: Value| {
        let result = editor.call(arguments);
        assert!(!result.is_error, "{}", result.output);
    };
    let taken = |arguments: Value| {
        let result = editor.call(arguments);
        assert!(result.output.contains("ALREADY_EXISTS"), "{}", result.output);
    };
    ok(json!({"action": "write", "path": "n", "content": "n\n"}));
    taken(json!({"action": "write", "path": "n", "content": "m\n"}));
    ok(json!({"action": "mkdir", "path": "d1"}));
    ok(json!({"action": "mkdir", "path": "d2/full"}));
    taken(json!({"action": "mv", "path": "n", "to": "f0"}));
    taken(json!({"action": "mv", "path": "d1", "to": "d2"}));
    taken(json!({"action": "mv", "path": "n", "to": "d2"}));
    ok(json!({"action": "mv", "path": "n", "to": "d1/moved"}));
    ok(json!({"action": "mv", "path": "d1", "to": "d3"}));
    assert_eq!(fs::read_to_string(root.join("d3/moved")).unwrap(), "n\n");
    assert!(!root.join("d1").exists() && !root.join("n").exists());
    assert_eq!(generation(place), 3);
}
