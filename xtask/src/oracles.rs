//! The vectors against implementations nobody here wrote: Node packages and Python's standard library. The packages are
//! installed under the target directory.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::workspace::{cargo_with, root, run, target};

/// Runs every oracle.
pub fn run_all() -> Result<()> {
    run(Command::new("python3").current_dir(root()).arg("test-vectors/check/vectors.py"))?;
    let packages = target().join("oracles");
    install_node_packages(&packages)?;
    run(Command::new("node").current_dir(root()).arg("test-vectors/check/sse.mjs").arg(&packages))
}

/// The `test` tool with the test runners that have to be installed. Those of Python and Node are installed here; go, ctest and
/// nextest come with the system, and are missed when they are not there.
pub fn test_runners() -> Result<()> {
    let directory = target().join("oracles/runners");
    std::fs::create_dir_all(&directory)?;
    let python = directory.join("python");
    if !python.join("bin/pytest").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        run(Command::new(python.join("bin/python")).args(["-m", "pip", "install", "--quiet", "pytest"]))?;
    }
    if !directory.join("node_modules/.bin/vitest").exists() {
        std::fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
        run(Command::new("npm").current_dir(&directory).args([
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "vitest",
            "jest",
        ]))?;
    }
    let directory = directory.to_string_lossy().into_owned();
    cargo_with(
        &["test", "--package", "hanzo-tools", "--test", "it", "--", "oracle_runners::"],
        &[("HANZO_TEST_RUNNERS", &directory)],
    )
}

fn install_node_packages(directory: &Path) -> Result<()> {
    let wanted = root().join("test-vectors/check/package.json");
    let installed = directory.join("package.json");
    let up_to_date = directory.join("node_modules").exists()
        && std::fs::read(&wanted).ok().is_some_and(|text| std::fs::read(&installed).ok() == Some(text));
    if up_to_date {
        return Ok(());
    }
    std::fs::create_dir_all(directory)?;
    std::fs::copy(wanted, installed)?;
    run(Command::new("npm").current_dir(directory).args([
        "install",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]))
}
