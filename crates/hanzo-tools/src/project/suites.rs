//! Test suites: which runner tests which directory.

use std::path::{Path, PathBuf};

use hanzo_sandbox::paths::{FileKind, Workspace};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Place, Scan, manifest};

/// A program that runs tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Runner {
    /// `cargo test`.
    Cargo,
    /// `cargo nextest run`.
    Nextest,
    /// pytest.
    Pytest,
    /// `node --test`.
    Node,
    /// vitest.
    Vitest,
    /// jest.
    Jest,
    /// `go test`.
    Go,
    /// ctest.
    Ctest,
    /// Any command that writes JUnit XML.
    Junit,
}

impl Runner {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Nextest => "nextest",
            Self::Pytest => "pytest",
            Self::Node => "node",
            Self::Vitest => "vitest",
            Self::Jest => "jest",
            Self::Go => "go",
            Self::Ctest => "ctest",
            Self::Junit => "junit",
        }
    }
}

/// Tests that one runner runs in one directory.
#[derive(Debug, Clone)]
pub(crate) struct Suite {
    /// What to call it: the runner, behind its directory when that is not the start.
    pub(crate) name: String,
    pub(crate) runner: Runner,
    /// Where it runs; absolute and real.
    pub(crate) directory: PathBuf,
    /// What else its files say: the script of node, the module of go, the build directory of ctest.
    pub(crate) detail: Option<String>,
    /// What has to be done before it can run.
    pub(crate) missing: Option<&'static str>,
}

/// The suites of what was seen, nearest to the root first.
pub(crate) fn find_suites(workspace: &Workspace, scan: &Scan, has_nextest: bool) -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for place in &scan.places {
        for found in runners(workspace, place, has_nextest) {
            // A workspace's members, and tests below a project of the same kind, are run from above.
            let covered = suites.iter().any(|suite| {
                suite.runner == found.runner
                    && suite.runner != Runner::Go
                    && place.path.starts_with(&suite.directory)
            });
            if covered {
                continue;
            }
            let relative = place.path.strip_prefix(&scan.root).unwrap_or(&place.path);
            let name = if relative.as_os_str().is_empty() {
                found.runner.name().to_owned()
            } else {
                format!("{}:{}", relative.display(), found.runner.name())
            };
            let Found { runner, detail, missing } = found;
            suites.push(Suite { name, runner, directory: place.path.clone(), detail, missing });
        }
    }
    suites
}

struct Found {
    runner: Runner,
    detail: Option<String>,
    missing: Option<&'static str>,
}

fn runners(workspace: &Workspace, place: &Place, has_nextest: bool) -> Vec<Found> {
    let mut found = Vec::new();
    let mut add = |runner, detail| found.push(Found { runner, detail, missing: None });
    if place.has("Cargo.toml") {
        add(if has_nextest { Runner::Nextest } else { Runner::Cargo }, None);
    }
    if place.has("go.mod") {
        let text = manifest(workspace, &place.path.join("go.mod")).unwrap_or_default();
        let module = text.lines().find_map(|line| line.trim().strip_prefix("module "));
        add(Runner::Go, module.map(|name| name.trim().trim_matches('"').to_owned()));
    }
    if place.has("package.json") || place.has_script_tests {
        let text = manifest(workspace, &place.path.join("package.json"));
        let package = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
        if let Some((runner, script)) = script_runner(&package, place) {
            add(runner, script);
        }
    }
    if is_pytest(workspace, place) {
        add(Runner::Pytest, None);
    }
    found.extend(ctest(workspace, place));
    found
}

fn script_runner(package: &Value, place: &Place) -> Option<(Runner, Option<String>)> {
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let uses = |name: &str| {
        let kinds = ["dependencies", "devDependencies"];
        script.split_whitespace().any(|word| word == name)
            || kinds.iter().any(|kind| package.get(kind).and_then(|all| all.get(name)).is_some())
    };
    let by_node = script.starts_with("node ") && script.split_whitespace().any(|word| word == "--test");
    if by_node {
        return Some((Runner::Node, Some(script.to_owned())));
    }
    if uses("vitest") {
        return Some((Runner::Vitest, None));
    }
    if uses("jest") || package.get("jest").is_some() {
        return Some((Runner::Jest, None));
    }
    // Without another runner, files that are named like tests are node's own.
    (place.has_script_tests && script.is_empty()).then_some((Runner::Node, None))
}

fn is_pytest(workspace: &Workspace, place: &Place) -> bool {
    let says = |name: &str, words: &str| {
        place.has(name)
            && manifest(workspace, &place.path.join(name)).is_some_and(|text| text.contains(words))
    };
    place.has("pytest.ini")
        || place.has("conftest.py")
        || place.has_python_tests
        || says("pyproject.toml", "[tool.pytest")
        || says("setup.cfg", "[tool:pytest]")
        || says("tox.ini", "[pytest]")
        || (["pyproject.toml", "setup.py", "setup.cfg"].iter().any(|name| place.has(name))
            && has_tests_in(workspace, &place.path))
}

/// A Python project keeps its tests one directory below.
fn has_tests_in(workspace: &Workspace, directory: &Path) -> bool {
    ["tests", "test"].iter().any(|name| {
        let Ok(entries) = workspace.list_dir(&directory.join(name)) else { return false };
        entries.flatten().take(2000).any(|entry| {
            let stem = entry.name.to_str().and_then(|name| name.strip_suffix(".py"));
            stem.is_some_and(|stem| stem.starts_with("test_"))
        })
    })
}

fn ctest(workspace: &Workspace, place: &Place) -> Option<Found> {
    if !place.has("CMakeLists.txt") {
        return None;
    }
    let text = manifest(workspace, &place.path.join("CMakeLists.txt"))?.to_lowercase();
    let tests =
        ["enable_testing", "include(ctest", "include (ctest"].iter().any(|words| text.contains(words));
    if !tests {
        return None;
    }
    let built = ["build", "out", "_build", "cmake-build-debug", "cmake-build-release", "."].into_iter().find(
        |name| {
            let file = place.path.join(name).join("CTestTestfile.cmake");
            workspace.stat(&file).is_ok_and(|found| found.kind == FileKind::File)
        },
    );
    Some(Found {
        runner: Runner::Ctest,
        detail: Some(built.unwrap_or("build").to_owned()),
        missing: built.is_none().then_some("build it first: cmake -B build && cmake --build build"),
    })
}
