//! Which container runtime, if any, this process runs in.
//!
//! The answer changes what we *say* and what [`default_mode`](crate::default_mode) answers. It never switches
//! confinement off by itself: the jail is tried everywhere and its own self-test decides.

use std::{ffi::OsString, fmt, fs::File, io::Read, path::Path};

/// More than any cgroup file holds; a bound, because the root we are pointed at may be anything.
const MAX_CGROUP: u64 = 256 * 1024;

/// A container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Container {
    /// Docker, or containerd driven by it.
    Docker,
    /// Podman, and other users of libpod.
    Podman,
    /// A Kubernetes pod, whatever runtime is below it.
    K8s,
}

impl Container {
    /// The name used in output: `docker`, `podman` or `k8s`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::K8s => "k8s",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Looks for signs of a container beneath `root` (`/` in production) and in the environment.
///
/// The order is fixed: `proc/1/cgroup`, `.dockerenv`, `run/.containerenv`, then `KUBERNETES_SERVICE_HOST`.
/// The first one with evidence answers. A file that cannot be read is no evidence; neither is the bare `0::/`
/// that cgroup v2 shows on a host and inside a cgroup namespace alike.
///
/// ```
/// use std::path::Path;
/// let found = hanzo_sandbox::detect_container(Path::new("/nonexistent"), &|name| {
///     (name == "KUBERNETES_SERVICE_HOST").then(|| "10.0.0.1".into())
/// });
/// assert_eq!(found.map(|c| c.as_str()), Some("k8s"));
/// ```
pub fn detect_container(root: &Path, env: &dyn Fn(&str) -> Option<OsString>) -> Option<Container> {
    if let Some(found) = read_cgroup(&root.join("proc/1/cgroup")).and_then(|text| from_cgroup(&text)) {
        return Some(found);
    }
    if root.join(".dockerenv").symlink_metadata().is_ok() {
        return Some(Container::Docker);
    }
    if root.join("run/.containerenv").symlink_metadata().is_ok() {
        return Some(Container::Podman);
    }
    env("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty()).map(|_| Container::K8s)
}

fn read_cgroup(path: &Path) -> Option<String> {
    // A FIFO planted at this place under an injected root would block for ever; only a plain file is read.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_CGROUP).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads lines of the form `hierarchy:controllers:path` and looks at whole path components, so that a user
/// slice called `my-docker-notes` is not a container.
fn from_cgroup(text: &str) -> Option<Container> {
    let mut found = None;
    for line in text.lines() {
        let Some(path) = line.splitn(3, ':').nth(2) else { continue };
        for part in path.split('/') {
            // A pod's cgroup nests the runtime's below `kubepods`, so this one wins over the rest of the file.
            if is_kubernetes(part) {
                return Some(Container::K8s);
            }
            if is_podman(part) {
                found = found.or(Some(Container::Podman));
            } else if is_docker(part) {
                found = found.or(Some(Container::Docker));
            }
        }
    }
    found
}

fn is_kubernetes(part: &str) -> bool {
    part == "kubepods" || part == "kubepods.slice" || part.starts_with("kubepods-")
}

fn is_podman(part: &str) -> bool {
    part == "libpod"
        || part == "libpod_parent"
        || ["libpod-", "libpod-conmon-"].iter().any(|prefix| part.strip_prefix(prefix).is_some_and(has_id))
}

fn is_docker(part: &str) -> bool {
    part == "docker"
        || part == "docker-ce"
        || part.strip_prefix("docker-").and_then(|rest| rest.strip_suffix(".scope")).is_some_and(has_id)
}

/// Runtimes name a scope by the container's id, at least twelve hexadecimal digits.
fn has_id(rest: &str) -> bool {
    rest.bytes().take_while(u8::is_ascii_hexdigit).count() >= 12
}
