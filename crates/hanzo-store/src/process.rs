//! Which process this is, and whether another is still there.

use std::sync::OnceLock;

use jiff::Timestamp;

use crate::Holder;

impl Holder {
    /// This process, under the name the user knows it by.
    pub fn here(program: impl Into<String>) -> Self {
        static SYSTEM: OnceLock<(String, String, String)> = OnceLock::new();
        let pid = std::process::id();
        let (host, system, started) =
            SYSTEM.get_or_init(|| (host_name(), system(), started(pid).unwrap_or_default())).clone();
        Self { pid, started, host, system, program: program.into(), since: Timestamp::now() }
    }

    /// Whether process ids of the holder mean the same here.
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        !self.system.is_empty() && self.system == other.system && self.host == other.host
    }

    /// Whether it is this very process.
    pub(crate) fn is_same_process(&self, other: &Self) -> bool {
        self.is_near(other) && self.pid == other.pid && self.started == other.started
    }

    /// Whether a process of this system still runs. In doubt, it does.
    pub(crate) fn is_running(&self) -> bool {
        match started(self.pid) {
            Some(started) => started == self.started,
            None => exists(self.pid),
        }
    }
}

#[cfg(target_os = "linux")]
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// The running system and the process namespace: containers have the same boot and other processes. Empty where it cannot be
/// told, and then nobody counts as near.
#[cfg(target_os = "linux")]
fn system() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match (boot.trim(), namespace.to_string_lossy()) {
        ("", _) => String::new(),
        (boot, namespace) => format!("{boot} {namespace}"),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn system() -> String {
    host_name()
}

#[cfg(not(unix))]
fn system() -> String {
    String::new()
}

/// When a process began, in the system's own count; `None` where there is none, or where it cannot be told.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything; the 22nd is the time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // A process that died and was not waited for yet is gone for our purposes.
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18).map(ToOwned::to_owned) }
}

#[cfg(not(target_os = "linux"))]
fn started(_: u32) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
fn exists(_: u32) -> bool {
    // `/proc` told already; where there is no `/proc`, nobody is near.
    false
}

#[cfg(all(unix, not(target_os = "linux")))]
fn exists(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    // Refused means there is a process, of somebody else.
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn exists(_: u32) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_one_with_its_number_but_another_start_does_not() {
        let here = Holder::here("test");
        assert!(here.is_running() && here.is_same_process(&Holder::here("other face")));
        let reused = Holder { started: "1".into(), ..here };
        assert!(!reused.is_running());
    }

    #[test]
    fn a_process_that_ended_is_gone_even_before_it_was_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let holder = Holder { pid, started: started(pid).unwrap(), ..Holder::here("test") };
        assert!(holder.is_running());
        child.kill().unwrap();
        // Until the signal has arrived; there is no other way to hear of it without waiting for the child.
        for _ in 0..5000 {
            if !holder.is_running() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!holder.is_running(), "it is dead, if not buried");
        child.wait().unwrap();
        assert!(!holder.is_running());
    }
}
