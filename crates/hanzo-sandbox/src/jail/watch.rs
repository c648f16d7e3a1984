//! Limits of one command: what the kernel holds by itself, and what has to be looked at.

use std::fs;
use std::io;

use super::config::Limits;
use super::sys;

/// Sets the limits that travel with a process.
///
/// Not `RLIMIT_AS`: runtimes reserve hundreds of gigabytes they never touch. `RLIMIT_DATA` counts private writable
/// memory, which is what a bomb is made of.
pub(crate) fn set_rlimits(limits: &Limits) -> io::Result<()> {
    // A core dump is a copy of memory in a place the command chooses.
    sys::set_rlimit(libc::RLIMIT_CORE, 0, 0)?;
    if let Some(bytes) = limits.memory {
        sys::set_rlimit(libc::RLIMIT_DATA, bytes, bytes)?;
    }
    if let Some(time) = limits.cpu_time {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        // SIGXCPU first; a program that ignores it gets one more second.
        sys::set_rlimit(libc::RLIMIT_CPU, seconds, seconds + 1)?;
    }
    if let Some(bytes) = limits.file_size {
        sys::set_rlimit(libc::RLIMIT_FSIZE, bytes, bytes)?;
    }
    if let Some(count) = limits.open_files {
        sys::set_rlimit(libc::RLIMIT_NOFILE, count, count)?;
    }
    Ok(())
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    TooMuchMemory,
    TooManyProcesses,
}

/// Looks at the tree of an init for the limits nothing else holds.
pub(crate) struct Watch {
    memory: Option<u64>,
    processes: Option<u64>,
    own_namespace: bool,
}

impl Watch {
    /// `None` when the kernel holds all of `limits` alone; `bounded` says that it holds the number of processes.
    pub(crate) fn new(limits: &Limits, bounded: bool, own_namespace: bool) -> Option<Self> {
        let processes = limits.processes.filter(|_| !bounded);
        let memory = limits.memory;
        (memory.is_some() || processes.is_some()).then_some(Self { memory, processes, own_namespace })
    }

    pub(crate) fn look(&self) -> Verdict {
        let tree = if self.own_namespace { all_but_init() } else { descendants() };
        if self.processes.is_some_and(|limit| tasks(&tree) > limit) {
            return Verdict::TooManyProcesses;
        }
        let resident = || tree.iter().filter_map(|pid| private_memory(*pid)).sum::<u64>();
        if self.memory.is_some_and(|limit| resident() > limit) {
            return Verdict::TooMuchMemory;
        }
        Verdict::Fine
    }
}

fn all_but_init() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != 1).collect()
}

/// All processes below this one, found through the kernel's lists of children.
fn descendants() -> Vec<i32> {
    let mut found = Vec::new();
    let mut pending = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(pid) = pending.pop() {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let Ok(text) = fs::read_to_string(thread.path().join("children")) else { continue };
            for child in text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
                found.push(child);
                pending.push(child);
            }
        }
    }
    found
}

/// Kills all processes below this one. Without a pid namespace there is no call that does it at once: they are stopped
/// first, so that none forks while the others are looked for.
pub(crate) fn kill_descendants() {
    let tree = descendants();
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        for pid in &tree {
            sys::kill(*pid, signal);
        }
    }
}

fn tasks(tree: &[i32]) -> u64 {
    let threads = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything: state is field 3, the number of threads field 20.
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(17)?.parse::<u64>().ok()
    };
    tree.iter().filter_map(threads).sum()
}

fn private_memory(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}
