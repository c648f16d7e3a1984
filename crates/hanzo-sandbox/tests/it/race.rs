//! A thread swaps a directory for a link to the outside, as fast as it can, under the path layer's feet.
//!
//! `HANZO_SOAK=1` runs 100,000 rounds for each way of resolving; otherwise a twentieth of that.
#![expect(clippy::print_stderr, reason = "the counts are the result")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hanzo_sandbox::{
    Reads, SandboxConfig,
    paths::{Facilities, Overwrite, Workspace, WriteMode},
};
use rustix::fs::{CWD, RenameFlags};

use crate::stage::{FACILITIES, Stage, read};

fn rounds() -> usize {
    crate::support::rounds(100_000)
}

/// `ws/spot` is by turns a directory with `f` in it and a link to `outside`, which has an `f` too.
fn prepare() -> Stage {
    let stage = Stage::in_memory();
    fs::create_dir(stage.ws.join("spot")).unwrap();
    fs::write(stage.ws.join("spot/f"), "inside").unwrap();
    fs::write(stage.outside.join("f"), "SECRET").unwrap();
    stage.link(&stage.outside, "other");
    stage
}

/// Runs `attack` while the swapper swaps, and tells how many swaps there were.
fn while_swapping<T>(ws: &Path, attack: impl FnOnce() -> T) -> (T, u64) {
    let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let started = Arc::new(Barrier::new(2));
    let swapper = std::thread::spawn({
        let (stop, swaps, started) = (stop.clone(), swaps.clone(), started.clone());
        let (left, right): (PathBuf, PathBuf) = (ws.join("spot"), ws.join("other"));
        move || {
            started.wait();
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &left, CWD, &right, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    started.wait();
    let answer = attack();
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    (answer, swaps.load(Ordering::Relaxed))
}

#[derive(Debug, Default)]
struct Tally {
    inside: u64,
    refused: u64,
    leaked: u64,
    /// How often each kind of write worked; a kind that never works is not tested.
    by_operation: [u64; 7],
}

impl Tally {
    fn count(&mut self, content: Result<String, impl std::fmt::Debug>) {
        match content {
            Ok(text) if text == "SECRET" => self.leaked += 1,
            Ok(_) => self.inside += 1,
            Err(_) => self.refused += 1,
        }
    }
}

/// Runs all rounds, and on a busy machine as many more as it takes until both sides of the swap were met.
fn repeat(mut step: impl FnMut(&mut Tally, usize)) -> Tally {
    let end = Instant::now() + Duration::from_mins(1);
    let mut tally = Tally::default();
    let mut round = 0;
    while round < rounds() || ((tally.inside == 0 || tally.refused == 0) && Instant::now() < end) {
        step(&mut tally, round);
        round += 1;
    }
    tally
}

fn report(what: &str, how: Facilities, tally: &Tally, swaps: u64) {
    eprintln!("{what}: openat2={} paths={} {tally:?} swaps={swaps}", how.openat2, how.descriptor_paths);
}

#[test]
fn readers_never_see_the_outside() {
    for how in FACILITIES {
        let stage = prepare();
        let ws = stage.open(how);
        let (tally, swaps) = while_swapping(&stage.ws, || {
            repeat(|tally, round| {
                let path = if round % 2 == 0 { "spot/f" } else { "dir/../spot/../spot/f" };
                tally.count(read(&ws, path));
            })
        });
        report("read, workspace only", how, &tally, swaps);
        assert_eq!(tally.leaked, 0);
        assert!(tally.inside > 0 && tally.refused > 0 && swaps > 0, "the swap was not felt: {tally:?}");
    }
}

#[test]
fn free_readers_never_see_the_unreadable() {
    for how in FACILITIES {
        let stage = prepare();
        let config = SandboxConfig { unreadable: vec![stage.outside.clone()], ..SandboxConfig::default() };
        let ws = stage.open_config(&config, how);
        let (tally, swaps) =
            while_swapping(&stage.ws, || repeat(|tally, _| tally.count(read(&ws, "spot/f"))));
        report("read, anything but the unreadable", how, &tally, swaps);
        assert_eq!(tally.leaked, 0);
        assert!(tally.inside > 0 && tally.refused > 0, "the swap was not felt: {tally:?}");
    }
}

#[test]
fn writers_never_touch_the_outside() {
    for how in FACILITIES {
        let stage = prepare();
        let config = SandboxConfig { reads: Reads::Workspace, ..SandboxConfig::default() };
        let ws = stage.open_config(&config, how);
        let before = touched(&stage.outside);
        let (tally, swaps) = while_swapping(&stage.ws, || {
            repeat(|tally, round| {
                if write_somehow(&ws, round) {
                    tally.inside += 1;
                    tally.by_operation[round % 7] += 1;
                } else {
                    tally.refused += 1;
                }
            })
        });
        let names: Vec<_> = fs::read_dir(&stage.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "something was made or removed outside: {names:?}");
        for name in ["f", "secret.txt"] {
            assert_eq!(fs::read_to_string(stage.outside.join(name)).unwrap(), "SECRET", "{name}");
        }
        assert_eq!(touched(&stage.outside), before, "something came and went outside");
        report("write", how, &tally, swaps);
        assert!(tally.inside > 0 && tally.refused > 0, "the swap was not felt: {tally:?}");
    }
}

/// Times of change: a file made and removed again leaves no name behind, but it does leave these.
fn touched(outside: &Path) -> Vec<(i64, i64)> {
    use std::os::unix::fs::MetadataExt as _;
    [outside.to_owned(), outside.join("f"), outside.join("secret.txt")]
        .map(|path| fs::metadata(path).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap())
        .to_vec()
}

/// The last component is swapped: a plain file, by turns a link to the outside or a FIFO.
#[test]
fn the_last_name_is_what_was_checked() {
    for how in FACILITIES {
        for other in ["link", "fifo"] {
            let stage = Stage::in_memory();
            fs::write(stage.ws.join("spot"), "inside").unwrap();
            if other == "link" {
                stage.link(stage.outside.join("secret.txt"), "other");
            } else {
                let made = Command::new("mkfifo").arg(stage.ws.join("other")).status().unwrap();
                assert!(made.success());
            }
            let ws = stage.open(how);
            let (tally, swaps) = while_swapping(&stage.ws, || {
                repeat(|tally, _| {
                    let Ok(file) = ws.open_read(Path::new("spot")) else {
                        tally.refused += 1;
                        return;
                    };
                    assert!(file.metadata().unwrap().is_file(), "something else was opened");
                    tally.count(std::io::read_to_string(file));
                })
            });
            report(other, how, &tally, swaps);
            assert_eq!(tally.leaked, 0);
            assert!(tally.inside > 0 && tally.refused > 0, "the swap was not felt: {tally:?}");
        }
    }
}

fn write_somehow(ws: &Workspace, round: usize) -> bool {
    let file = Path::new("spot/f");
    match round % 7 {
        0 => ws.open_write(file, WriteMode::Truncate).map(|mut f| f.write_all(b"inside").unwrap()).is_ok(),
        1 => ws.open_write(file, WriteMode::Append).map(|mut f| f.write_all(b"!").unwrap()).is_ok(),
        2 => ws.create_new(Path::new("spot/new")).is_ok(),
        3 => ws.remove_file(Path::new("spot/new")).is_ok(),
        4 => ws.mkdir(Path::new("spot/made")).is_ok() | ws.remove_dir(Path::new("spot/made")).is_ok(),
        5 => ws.rename(file, Path::new("spot/new"), Overwrite::Replace).is_ok(),
        _ => ws.replace(file, b"inside").is_ok(),
    }
}

/// The control: looking and then opening does leak in this very setting. Without it, "0 leaks" would prove nothing.
#[test]
fn checking_and_then_opening_leaks() {
    let stage = prepare();
    let path = stage.ws.join("spot/f");
    let (tally, swaps) = while_swapping(&stage.ws, || {
        control(|| match path.canonicalize() {
            Ok(real) if real.starts_with(&stage.ws) => fs::read_to_string(&path).ok(),
            _ => None,
        })
    });
    eprintln!("control, read: {tally:?} swaps={swaps}");
    assert!(tally.leaked > 0, "the control did not leak, so the race is not being exercised: {tally:?}");
}

/// The same for writing: a checked path, then a plain write, reaches the outside.
#[test]
fn checking_and_then_writing_leaks() {
    let stage = prepare();
    let (path, outside) = (stage.ws.join("spot/f"), stage.outside.join("f"));
    let (tally, swaps) = while_swapping(&stage.ws, || {
        control(|| match path.canonicalize() {
            Ok(real) if real.starts_with(&stage.ws) => {
                fs::write(&path, "overwritten").ok()?;
                let is_leak = fs::read_to_string(&outside).unwrap() == "overwritten";
                fs::write(&outside, "SECRET").unwrap();
                Some(if is_leak { "SECRET".to_owned() } else { String::new() })
            }
            _ => None,
        })
    });
    eprintln!("control, write: {tally:?} swaps={swaps}");
    assert!(tally.leaked > 0, "the control did not leak, so the race is not being exercised: {tally:?}");
}

/// Runs the unsafe way until it leaks, or for all rounds of a soak, but not for ever.
fn control(mut attempt: impl FnMut() -> Option<String>) -> Tally {
    let is_soak = std::env::var_os("HANZO_SOAK").is_some();
    let end = Instant::now() + Duration::from_mins(1);
    let (mut tally, mut tried) = (Tally::default(), 0);
    while Instant::now() < end && if is_soak { tried < rounds() } else { tally.leaked == 0 } {
        tried += 1;
        tally.count(attempt().ok_or("refused"));
    }
    tally
}
