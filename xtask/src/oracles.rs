//! The vectors against implementations nobody here wrote: Node packages and Python's standard library. The packages are
//! installed under the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workspace::{cargo_with, root, run, target};

/// Runs every oracle.
pub fn run_all() -> Result<()> {
    run(Command::new("python3").current_dir(root()).arg("test-vectors/check/vectors.py"))?;
    let packages = target().join("oracles");
    install_node_packages(&packages)?;
    run(Command::new("node").current_dir(root()).arg("test-vectors/check/sse.mjs").arg(&packages))
}

/// The file tools against the programs they are measured by: codex for the `*** Begin Patch` grammar, ripgrep for searches.
pub fn file_tools() -> Result<()> {
    let directory = target().join("oracles-codex");
    std::fs::create_dir_all(&directory)?;
    let program = directory.join("apply_patch");
    if !program.exists() {
        let arguments = ["install", "--no-audit", "--no-fund", "--loglevel=error", "@openai/codex"];
        run(Command::new("npm").current_dir(&directory).arg("--prefix").arg(&directory).args(arguments))?;
        let binary =
            find_codex(&directory).context("the npm package of codex holds no program for this machine")?;
        std::os::unix::fs::symlink(binary, &program)?;
    }
    run(Command::new("rg").arg("--version")).context("hint: install ripgrep")?;
    let program = program.to_str().context("the target directory has a name that is not UTF-8")?;
    let oracles = [("HANZO_ORACLE_APPLY_PATCH", program), ("HANZO_ORACLE_RG", "rg")];
    let arguments = ["test", "--package", "hanzo-tools", "--test", "it", "oracle_codex", "--", "--nocapture"];
    cargo_with(&arguments, &oracles)
}

/// The program itself, which npm puts into a package per platform.
fn find_codex(directory: &Path) -> Option<PathBuf> {
    let mut rest = vec![directory.join("node_modules/@openai")];
    while let Some(directory) = rest.pop() {
        for entry in std::fs::read_dir(directory).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                rest.push(path);
            } else if path.ends_with("bin/codex") {
                return Some(path);
            }
        }
    }
    None
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
