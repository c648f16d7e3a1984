//! The start-up self-test: build a jail, put a helper in it that tries to get out, and believe only what happened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::{JailConfig, Network};
use super::error::JailError;
use super::host::{Command, Jail};
use super::ladder::{Level, LimitMechanism, Missing, ProbeReport};
use super::{SELF_TEST, sys};

/// What the helper leaves in the private `/tmp` when it ran to its end.
const DONE: &str = ".hanzo-self-test";

/// The highest level that passes the self-test with this configuration, and what is missing for more.
pub fn probe(config: &JailConfig) -> ProbeReport {
    let mut missing = Vec::new();
    let mut config = config.clone();
    config.require = Level::PathCheck;
    for namespaces in [true, false] {
        if namespaces && !config.facilities.namespaces {
            continue; // `Jail::start` says so itself
        }
        config.facilities.namespaces = namespaces;
        match attempt(&config) {
            Ok(jail) => {
                missing.extend(jail.missing().iter().filter(|gap| gap.why != "switched off").cloned());
                return ProbeReport {
                    level: jail.level(),
                    missing,
                    processes: jail.process_limit(),
                    memory: LimitMechanism::RlimitAndSampled,
                };
            }
            Err(why) => missing.push(Missing {
                facility: if namespaces { "the full jail" } else { "Landlock and seccomp" },
                why,
                how_to_get_it: "Linux 5.13 or newer with user namespaces and Landlock",
            }),
        }
    }
    ProbeReport {
        level: Level::PathCheck,
        missing,
        processes: LimitMechanism::None,
        memory: LimitMechanism::None,
    }
}

/// A jail that passed, or what is wrong with it.
fn attempt(config: &JailConfig) -> Result<Jail, String> {
    let jail = Jail::start(config.clone()).map_err(|error| match error {
        JailError::BelowRequired { hint, .. } => hint,
        error => error.to_string(),
    })?;
    verify(jail, config)
}

fn verify(jail: Jail, config: &JailConfig) -> Result<Jail, String> {
    // Places this user can write to and the jail must not let him: the control is the user's right, not a write of ours.
    let name = format!(".hanzo-self-test-{}", std::process::id());
    let outside: Vec<PathBuf> = outside_dirs(config).into_iter().map(|dir| dir.join(&name)).collect();
    let mut argv = vec![SELF_TEST.into()];
    let facts = [config.network == Network::Off, jail.has_namespaces()];
    argv.extend(facts.map(|fact| if fact { "yes" } else { "no" }.into()));
    argv.extend(outside.iter().map(|path| path.clone().into_os_string()));
    let mut command = Command::new(argv).timeout(Duration::from_secs(10));
    command.program = Some("/proc/self/exe".into());
    let output = jail.run(command, 0, 4096).map_err(|error| error.to_string())?;
    let escaped: Vec<&PathBuf> = outside.iter().filter(|path| path.exists()).collect();
    if !escaped.is_empty() {
        let text = format!("a jailed process wrote {escaped:?}");
        for path in escaped {
            let _ = fs::remove_file(path);
        }
        return Err(text);
    }
    if !output.report.success() {
        return Err(format!("the self-test found a hole: {}", output.stderr.text().trim()));
    }
    let done = jail.tmp_dir().join(DONE);
    if !done.exists() {
        return Err("the self-test did not run to its end".to_owned());
    }
    let _ = fs::remove_file(done);
    Ok(jail)
}

fn outside_dirs(config: &JailConfig) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut dirs: Vec<PathBuf> = config
        .workspace
        .ancestors()
        .skip(1)
        .map(Path::to_path_buf)
        .chain(home)
        .chain(["/var/tmp".into()])
        .collect();
    dirs.retain(|dir| {
        rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
            && dir != Path::new("/tmp")
            && !config.writable.iter().chain([&config.workspace]).any(|root| dir.starts_with(root))
    });
    dirs
}

/// The helper: runs inside, tries, and says what it found on standard error.
pub(crate) fn helper_main() -> ! {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let yes = |index: usize| arguments.get(index).is_some_and(|fact| fact == Path::new("yes"));
    let mut found = Vec::new();
    for path in arguments.iter().skip(2) {
        let _ = fs::write(path, "out"); // the host looks whether it is there; `/var/tmp` is ours in here
    }
    found.extend(check_status());
    if yes(1) {
        found.extend(check_mounts());
        if yes(0) {
            found.extend(check_network());
        }
    }
    if sys::unshare(libc::CLONE_NEWUSER).is_ok() {
        found.push("a nested user namespace can be made".to_owned());
    }
    let tmp = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    if let Err(error) = fs::write(tmp.join(DONE), "") {
        found.push(format!("the private `/tmp` is not writable: {error}"));
    }
    let code = i32::from(!found.is_empty());
    let _ = io::Write::write_all(&mut io::stderr(), found.join("; ").as_bytes());
    sys::exit_now(code)
}

fn check_status() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map_or("?", str::trim)
    };
    let mut found = Vec::new();
    for name in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        if field(name).chars().any(|digit| digit != '0') {
            found.push(format!("{name} is {}", field(name)));
        }
    }
    for (name, wanted) in [("NoNewPrivs", "1"), ("Seccomp", "2")] {
        if field(name) != wanted {
            found.push(format!("{name} is {}", field(name)));
        }
    }
    found
}

/// Every mount that is not one of the few writable ones must be read-only, and none may honour setuid.
fn check_mounts() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if text.is_empty() {
        return vec!["the mounts cannot be seen".to_owned()];
    }
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.split(' ').skip(4);
        let (Some(target), Some(options)) = (fields.next(), fields.next()) else { continue };
        let has = |wanted: &str| options.split(',').any(|option| option == wanted);
        let system = target == "/"
            || ["/usr", "/etc", "/sys", "/boot", "/bin", "/lib", "/proc"]
                .iter()
                .any(|dir| target.starts_with(dir));
        let node = target.starts_with("/dev/") && target != "/dev/shm";
        if system && has("rw") {
            found.push(format!("`{target}` is writable"));
        }
        if !has("nosuid") && !node {
            found.push(format!("`{target}` honours setuid"));
        }
    }
    found
}

fn check_network() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim);
    names.filter(|name| *name != "lo").map(|name| format!("the interface `{name}` is visible")).collect()
}
