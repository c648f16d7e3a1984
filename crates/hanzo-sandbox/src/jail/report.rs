//! How a command ended, and whether the jail was the likely reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::Network;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitStatus {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// Its wall-clock limit passed; the whole tree was killed.
    TimedOut,
    /// Killed: by the caller, with its jail, or the kernel killed its init.
    Killed,
    /// It ran into a limit.
    LimitReached(Limit),
    /// The supervisor is gone, and the command with it.
    SupervisorLost,
}

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Processor time.
    CpuTime,
    /// Size of a written file.
    FileSize,
    /// Memory of the tree.
    Memory,
    /// Number of processes.
    Processes,
}

/// What is known about a command that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// How it ended.
    pub status: ExitStatus,
    /// Processor time of the main process and the children it waited for.
    pub cpu_time: Duration,
    /// The largest resident set of one of its processes, in bytes.
    pub max_rss: u64,
    /// Processes of the command are still running, because it was started with [`Leftovers::Keep`](super::Leftovers).
    pub leftovers: bool,
    /// The jail's guess that it was in the way. Filled in where the output is known; see [`Denial::guess`].
    pub denial: Option<Denial>,
}

impl ExitReport {
    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.status == ExitStatus::Exited(0)
    }
}

/// A guess, from the words a program left on its standard error, that the sandbox denied something. The kernel tells nobody
/// what a mount or Landlock refused, so this can be wrong both ways: offer a rerun, do not decide by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What was probably denied.
    pub kind: DenialKind,
    /// The line the guess is from.
    pub evidence: String,
}

/// What was probably denied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DenialKind {
    /// Writing; the path when the line names one.
    Write(Option<PathBuf>),
    /// The network.
    Network,
    /// An operation that the system-call filter or the missing capabilities refuse.
    Operation,
}

const NETWORK_WORDS: &[&str] = &[
    "network is unreachable",
    "could not resolve",
    "temporary failure in name resolution",
    "name or service not known",
    "no address associated with hostname",
    "eai_again",
    "enetunreach",
    "getaddrinfo enotfound",
    "failed to lookup address",
    "no route to host",
    "couldn't connect to server",
];

/// A refusal there is the program's own: every jail has a loopback, and nobody may be listening.
const LOOPBACK: &[&str] = &["localhost", "127.0.0.1", "::1"];

impl Denial {
    /// Looks for a denial in the end of a failed command's output. `writable` are the directories the jail leaves writable:
    /// a refusal inside them is the file system's own.
    pub fn guess(
        status: ExitStatus,
        stderr_tail: &[u8],
        network: Network,
        writable: &[PathBuf],
    ) -> Option<Self> {
        if status == ExitStatus::Exited(0) {
            return None;
        }
        let text = String::from_utf8_lossy(stderr_tail);
        text.lines().rev().take(200).find_map(|line| {
            let lower = line.to_lowercase();
            let has = |words: &str| lower.contains(words);
            let path = named_path(line);
            let own = path.as_deref().is_some_and(|path| writable.iter().any(|root| path.starts_with(root)));
            let kind = if has("read-only file system") || has("erofs") {
                // Inside the writable set only a protected path is read-only, so this is always ours.
                DenialKind::Write(path)
            } else if network == Network::Off
                && NETWORK_WORDS.iter().any(|words| has(words))
                && !LOOPBACK.iter().any(|name| has(name))
            {
                DenialKind::Network
            } else if (has("permission denied") || has("eacces")) && path.is_some() && !own {
                DenialKind::Write(path)
            } else if (has("operation not permitted") || has("eperm")) && !own {
                DenialKind::Operation
            } else {
                return None;
            };
            Some(Self { kind, evidence: line.chars().take(300).collect() })
        })
    }
}

/// The last absolute path in a line, without the quotes and colons around it.
fn named_path(line: &str) -> Option<PathBuf> {
    let edges = ['\'', '"', '`', ':', ',', ';', '(', ')', '‘', '’', '.'];
    line.split_whitespace()
        .map(|word| word.trim_matches(edges))
        .rfind(|word| word.starts_with('/') && word.len() > 1)
        .map(|word| Path::new(word).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(status: ExitStatus, text: &str) -> Option<DenialKind> {
        Denial::guess(status, text.as_bytes(), Network::Off, &["/project".into()]).map(|denial| denial.kind)
    }

    #[test]
    fn words_of_real_programs_are_recognised() {
        let failed = ExitStatus::Exited(1);
        let write = |path: &str| Some(DenialKind::Write(Some(path.into())));
        for (text, expected) in [
            ("sh: 1: cannot create /etc/x: Read-only file system", write("/etc/x")),
            ("touch: cannot touch '/usr/lib/a b': Read-only file system\n", write("/usr/lib/a")),
            ("OSError: [Errno 30] Read-only file system: '/etc/passwd'", write("/etc/passwd")),
            ("mkdir: cannot create directory ‘/opt/x’: Permission denied", write("/opt/x")),
            ("curl: (6) Could not resolve host: example.com", Some(DenialKind::Network)),
            ("npm error code EAI_AGAIN\nnpm error errno EAI_AGAIN", Some(DenialKind::Network)),
            ("strace: ptrace(PTRACE_TRACEME): Operation not permitted", Some(DenialKind::Operation)),
            ("error: expected `;`", None),
            ("cat: /project/secret: Permission denied", None),
        ] {
            assert_eq!(guess(failed, text), expected, "{text}");
        }
    }

    #[test]
    fn success_is_never_a_denial_and_an_open_network_never_a_network_denial() {
        assert_eq!(guess(ExitStatus::Exited(0), "x: Read-only file system"), None);
        let text = b"curl: (6) Could not resolve host: example.com";
        assert_eq!(Denial::guess(ExitStatus::Exited(6), text, Network::On, &[]), None);
    }
}
