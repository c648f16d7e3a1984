//! The bounded look: level by level, so that a large tree is seen in its breadth before the budget is spent.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hanzo_protocol::envelope::ToolError;
use hanzo_sandbox::paths::{FileKind, OpenDir, Workspace};

use super::languages;
use crate::contract::{Cancelled, place};
use crate::search::ignored::Rules;

/// File names that say what a directory is.
const MARKERS: &[&str] = &[
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "package-lock.json",
    "deno.json",
    "tsconfig.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "uv.lock",
    "poetry.lock",
    "pytest.ini",
    "tox.ini",
    "conftest.py",
    "CMakeLists.txt",
    "CTestTestfile.cmake",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "meson.build",
    "build.ninja",
    "BUILD.bazel",
    "MODULE.bazel",
    "WORKSPACE",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "mix.exs",
    "Gemfile",
    "composer.json",
    "build.zig",
    "dune-project",
    "stack.yaml",
    "Package.swift",
    "justfile",
    "Taskfile.yml",
    "flake.nix",
    "Dockerfile",
];

/// Directories that hold what was made or fetched, ignored or not.
const NOT_OURS: &[&str] = &["node_modules", "target", "__pycache__", "venv", "vendor", "site-packages"];

/// How much is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Names in all.
    pub(crate) entries: usize,
    /// Names of one directory.
    pub(crate) entries_of_one: usize,
    /// Levels; 0 is the start alone.
    pub(crate) depth: usize,
    /// Time, for a disk that is slow.
    pub(crate) time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 20_000, entries_of_one: 4_000, depth: 8, time: Duration::from_millis(60) }
    }
}

/// A directory with something in it that says what it is.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Absolute and real.
    pub(crate) path: PathBuf,
    pub(crate) depth: usize,
    pub(crate) markers: Vec<&'static str>,
    pub(crate) has_python_tests: bool,
    pub(crate) has_script_tests: bool,
}

impl Place {
    pub(crate) fn has(&self, marker: &str) -> bool {
        self.markers.contains(&marker)
    }
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) root: PathBuf,
    /// Nearest to the root first.
    pub(crate) places: Vec<Place>,
    /// How many files each language has among those seen.
    pub(crate) languages: BTreeMap<&'static str, u64>,
    pub(crate) files: u64,
    /// Whether everything within the depth was seen.
    pub(crate) complete: bool,
}

impl Scan {
    /// Looks at `start`.
    pub(crate) fn run(
        workspace: &Workspace,
        start: &Path,
        limits: Limits,
        cancelled: &Cancelled,
    ) -> Result<Self, ToolError> {
        let began = Instant::now();
        let first = workspace.open_dir(start).map_err(|error| place::failure(&error))?;
        let mut scan = Self {
            root: first.location().to_owned(),
            places: Vec::new(),
            languages: BTreeMap::new(),
            files: 0,
            complete: true,
        };
        let above = Rules::above(workspace, first.location());
        // Directories wait by name: a process has only so many open files.
        let mut queue = VecDeque::from([(scan.root.clone(), above, 0)]);
        let mut left = limits.entries;
        while let Some((path, above, depth)) = queue.pop_front() {
            cancelled.check()?;
            if left == 0 || began.elapsed() > limits.time {
                scan.complete = false;
                break;
            }
            let Ok(dir) = workspace.open_dir(&path) else { continue };
            let names = scan.directory(workspace, &dir, depth, left.min(limits.entries_of_one), above);
            left = left.saturating_sub(names.seen);
            if depth == limits.depth {
                scan.complete &= names.directories.is_empty();
                continue;
            }
            for name in names.directories {
                queue.push_back((path.join(name), names.rules.clone(), depth + 1));
            }
        }
        Ok(scan)
    }

    fn directory(
        &mut self,
        workspace: &Workspace,
        dir: &OpenDir,
        depth: usize,
        limit: usize,
        above: Option<Arc<Rules>>,
    ) -> Names {
        let mut names = Names { seen: 0, directories: Vec::new(), rules: None };
        let Ok(entries) = dir.entries() else { return names };
        let mut entries: Vec<_> = entries.flatten().take(limit + 1).collect();
        if entries.len() > limit {
            self.complete = false;
            entries.truncate(limit);
        }
        names.seen = entries.len();
        // Which names a directory gives first is chance; what is found must not be.
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        let rules = Rules::of(workspace, dir, above, has);
        let mut found = Place { path: dir.location().to_owned(), depth, ..Place::default() };
        for entry in entries {
            let Some(name) = entry.name.to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            match entry.kind {
                FileKind::File => {
                    self.files += 1;
                    if let Some(marker) = MARKERS.iter().find(|marker| **marker == name) {
                        found.markers.push(marker);
                    }
                    found.has_python_tests |= is_python_test(name);
                    found.has_script_tests |= is_script_test(name);
                    if let Some(language) = languages::of(name) {
                        *self.languages.entry(language).or_default() += 1;
                    }
                }
                FileKind::Directory if NOT_OURS.contains(&name) => {}
                FileKind::Directory if rules.leave_out(dir.location(), OsStr::new(name), true) => {}
                FileKind::Directory => names.directories.push(entry.name),
                _ => {}
            }
        }
        if !found.markers.is_empty() || found.has_python_tests || found.has_script_tests {
            self.places.push(found);
        }
        names.rules = Some(rules);
        names
    }
}

struct Names {
    seen: usize,
    directories: Vec<std::ffi::OsString>,
    rules: Option<Arc<Rules>>,
}

fn is_python_test(name: &str) -> bool {
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

fn is_script_test(name: &str) -> bool {
    let stem = [".js", ".mjs", ".cjs"].iter().find_map(|end| name.strip_suffix(end));
    stem.is_some_and(|stem| {
        stem == "test"
            || stem.starts_with("test-")
            || [".test", "-test", "_test"].iter().any(|end| stem.ends_with(end))
    })
}

#[cfg(test)]
mod tests {
    use hanzo_sandbox::SandboxConfig;

    use super::*;

    #[test]
    fn a_large_tree_is_seen_in_its_breadth_and_what_was_left_out_is_said() {
        let directory = tempfile::tempdir().unwrap();
        for top in 0..20 {
            for inner in 0..10 {
                let path = directory.path().join(format!("d{top:02}/s{inner}"));
                std::fs::create_dir_all(&path).unwrap();
                std::fs::write(path.join("a.rs"), "").unwrap();
            }
            std::fs::write(directory.path().join(format!("d{top:02}/Cargo.toml")), "").unwrap();
        }
        for skipped in ["node_modules", "target", ".hidden", "made"] {
            std::fs::create_dir(directory.path().join(skipped)).unwrap();
            std::fs::write(directory.path().join(skipped).join("x.py"), "").unwrap();
        }
        std::fs::write(directory.path().join(".ignore"), "made/\n").unwrap();
        let workspace = Workspace::open(directory.path(), &SandboxConfig::default()).unwrap();
        let scan = |entries| {
            let limits = Limits { entries, time: Duration::from_mins(1), ..Limits::default() };
            Scan::run(&workspace, workspace.path(), limits, &Cancelled::default()).unwrap()
        };
        let all = scan(20_000);
        assert!(all.complete);
        assert_eq!((all.languages.get("Rust"), all.languages.get("Python")), (Some(&200), None));
        let some = scan(260);
        assert!(!some.complete);
        assert_eq!(some.places.len(), 20, "every directory of the first level was seen");
    }
}
