//! Which suite a caller means: those in and below a path, or of the project the path is part of.

use std::path::{Path, PathBuf};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_sandbox::paths::FileKind;
use serde_json::json;

use super::plan::Part;
use crate::contract::{Cancelled, place};
use crate::host::Host;
use crate::proc;
use crate::project::{Limits, Runner, Scan, Suite, find_suites};

/// How deep suites are looked for.
const DEPTH: usize = 4;

pub(super) const NOTHING: &str =
    "no suite was recognised; `run` with `command` and `report` (a glob) runs anything that writes JUnit XML";

/// Suites, and what they were looked for in.
pub(super) struct Detected {
    pub(super) suites: Vec<Suite>,
    /// The file or the directory below a suite's that the caller wants tested.
    pub(super) within: Option<PathBuf>,
}

/// The suites in and below `path`, or of the project it is part of.
pub(super) fn detect(host: &Host, path: Option<&str>, cancelled: &Cancelled) -> Result<Detected, ToolError> {
    let workspace = &host.workspace;
    let root = workspace.path();
    let given = match path {
        Some(path) => workspace.stat(&place::parse(path)?).map_err(|error| place::failure(&error))?,
        None => workspace.stat(root).map_err(|error| place::failure(&error))?,
    };
    if !given.location.starts_with(root) {
        let text = format!(
            "`{}` is not in the workspace; tests are looked for and run inside it",
            path.unwrap_or(".")
        );
        return Err(ToolError::new(ErrorCode::SandboxDenied, text));
    }
    if !matches!(given.kind, FileKind::Directory | FileKind::File) {
        let text = format!("`{}` is neither a file nor a directory", path.unwrap_or("."));
        return Err(ToolError::new(ErrorCode::InvalidArguments, text));
    }
    let has_nextest = proc::on_path("cargo-nextest");
    let look = |start: &Path, depth| {
        let limits = Limits { depth, ..Limits::default() };
        Scan::run(workspace, start, limits, cancelled).map(|scan| find_suites(workspace, &scan, has_nextest))
    };
    let is_file = given.kind != FileKind::Directory;
    if !is_file {
        let suites = look(&given.location, DEPTH)?;
        // A directory of tests is no project of its own.
        let is_inner =
            |suite: &Suite| matches!(suite.runner, Runner::Pytest | Runner::Node) && suite.detail.is_none();
        if given.location == root || suites.iter().any(|suite| !is_inner(suite)) {
            return Ok(Detected { suites, within: None });
        }
    }
    let start = if is_file { given.location.parent() } else { Some(given.location.as_path()) };
    for directory in start.into_iter().flat_map(Path::ancestors).take_while(|path| path.starts_with(root)) {
        let suites = look(directory, 0)?;
        let is_project = directory == root || suites.iter().any(|suite| has_manifest(host, suite));
        if is_project && !suites.is_empty() {
            return Ok(Detected { suites, within: Some(given.location) });
        }
    }
    let suites = start.map_or_else(|| Ok(Vec::new()), |start| look(start, DEPTH))?;
    Ok(Detected { suites, within: is_file.then_some(given.location) })
}

fn has_manifest(host: &Host, suite: &Suite) -> bool {
    let names: &[&str] = match suite.runner {
        Runner::Pytest => &["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"],
        Runner::Node => &["package.json"],
        _ => return true,
    };
    names.iter().any(|name| host.workspace.stat(&suite.directory.join(name)).is_ok())
}

/// The suite a caller means, and which part of it.
pub(super) fn choose(mut suites: Vec<Suite>, wanted: Option<&str>) -> Result<(Suite, Part), ToolError> {
    let known: Vec<String> = suites.iter().map(|suite| suite.name.clone()).collect();
    let error = |code, text: String| Err(ToolError::new(code, text).with_details(json!({ "suites": known })));
    if suites.is_empty() {
        return error(ErrorCode::NotFound, NOTHING.to_owned());
    }
    let mut part = Part::All;
    let mut as_cargo = false;
    if let Some(wanted) = wanted {
        let is_cargo = |suite: &Suite| matches!(suite.runner, Runner::Cargo | Runner::Nextest);
        let fits = |suite: &Suite| {
            let directory =
                suite.name.strip_suffix(suite.runner.name()).map(|rest| rest.trim_end_matches(':'));
            let plain = suite.name.replace("nextest", "cargo");
            suite.name == wanted
                || suite.runner.name() == wanted
                || directory == Some(wanted.trim_end_matches('/'))
                || (is_cargo(suite) && (plain == wanted || wanted == "cargo"))
        };
        if suites.iter().any(fits) {
            let exact = suites.iter().any(|suite| suite.name == wanted);
            suites.retain(|suite| if exact { suite.name == wanted } else { fits(suite) });
            as_cargo = wanted.ends_with("cargo");
        } else if let Some(named) = Part::parse(wanted).filter(|_| suites.iter().any(is_cargo)) {
            suites.retain(is_cargo);
            part = named;
        } else {
            return error(ErrorCode::NotFound, format!("there is no suite `{wanted}`"));
        }
    }
    // The project at the start is what is meant before those below it.
    if suites.len() > 1 && suites.iter().filter(|suite| !suite.name.contains(':')).count() == 1 {
        suites.retain(|suite| !suite.name.contains(':'));
    }
    let [suite] = suites.as_mut_slice() else {
        return error(ErrorCode::Ambiguous, "there are several suites; name one with `suite`".to_owned());
    };
    if as_cargo {
        suite.runner = Runner::Cargo;
    }
    if let Some(missing) = suite.missing {
        return Err(ToolError::new(
            ErrorCode::Unavailable,
            format!("`{}` cannot run yet: {missing}", suite.name),
        ));
    }
    Ok((suite.clone(), part))
}
