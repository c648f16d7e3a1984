//! The ladder of levels: what a machine can enforce, said out loud. Types only; the probing is in `probe`.

use std::fmt;

/// How much the kernel enforces, lowest first, so that levels compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing confines a process; only the built-in file tools are checked.
    PathCheck,
    /// One of the two walls against writes is missing (namespaces, usually). The other, seccomp, limits, a cleared
    /// environment and dropped capabilities are in force.
    LandlockSeccomp,
    /// The whole stack: namespaces, read-only mounts, Landlock, seccomp, no capabilities.
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::LandlockSeccomp => "landlock+seccomp",
            Self::PathCheck => "path-check",
        })
    }
}

/// Which kernel facilities may be used. All by default; switching one off simulates a machine without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent switch named after a kernel facility"
)]
pub struct Facilities {
    /// User namespaces, and with them mount, network, ipc and pid namespaces.
    pub namespaces: bool,
    /// Landlock.
    pub landlock: bool,
    /// seccomp filters.
    pub seccomp: bool,
    /// A `/proc` of the command's own pid namespace.
    pub private_proc: bool,
    /// The per-namespace `pid_max` (Linux 6.14).
    pub pid_max: bool,
}

impl Default for Facilities {
    fn default() -> Self {
        Self { namespaces: true, landlock: true, seccomp: true, private_proc: true, pid_max: true }
    }
}

/// Something this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The facility, by its common name.
    pub facility: &'static str,
    /// What failed.
    pub why: String,
    /// What an administrator can do about it.
    pub how_to_get_it: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.facility, self.why, self.how_to_get_it)
    }
}

/// The outcome of the start-up self-test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// The highest level that passed.
    pub level: Level,
    /// What is missing for more, or for the level to be complete.
    pub missing: Vec<Missing>,
    /// What enforces the limit on processes.
    pub processes: LimitMechanism,
    /// What enforces the limit on memory.
    pub memory: LimitMechanism,
}

/// What enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitMechanism {
    /// The command's pid namespace has no more numbers to give. Exact to within 300 (the kernel's reserve).
    PidNamespace,
    /// The command's own init counts ten times a second and kills the tree. Overshoots between two looks.
    Counted,
    /// A hard rlimit per process, and the tree's sum sampled ten times a second.
    RlimitAndSampled,
    /// Nothing.
    None,
}

impl fmt::Display for LimitMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PidNamespace => "pid namespace",
            Self::Counted => "counted by the command's init",
            Self::RlimitAndSampled => "rlimit per process, sum sampled",
            Self::None => "none",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn levels_compare_by_strength() {
        assert!(Level::Full > Level::LandlockSeccomp && Level::LandlockSeccomp > Level::PathCheck);
    }
}
