//! The vectors against implementations nobody here wrote: Node packages and Python's standard library. The packages are
//! installed under the target directory.

use std::path::Path;
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

/// Types fresh cases into Vim and Neovim and holds the editing core against what they did.
pub fn vim() -> Result<()> {
    let cases = target().join("oracles/vim-cases.json");
    std::fs::create_dir_all(target().join("oracles"))?;
    run(Command::new("python3")
        .current_dir(root())
        .arg("crates/hanzo-tui/tests/oracle/generate.py")
        .args(["--count", "1200", "--seed", "5", "--out"])
        .arg(&cases))
    .context("hint: this needs the programs vim (with +channel) and nvim")?;
    cargo_with(
        &["test", "--package", "hanzo-tui", "--test", "it", "vim_oracle_cases"],
        &[("HANZO_VIM_CASES", &cases.to_string_lossy())],
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
