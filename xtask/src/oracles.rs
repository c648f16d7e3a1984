//! The vectors against implementations nobody here wrote: Node packages and Python's standard library. What they need
//! is installed under the target directory, or by `apt-get` where that is possible.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace::{output, root, run, target};

/// Runs every oracle.
pub fn run_all() -> Result<()> {
    require("python3", "python3")?;
    require("node", "nodejs")?;
    require("npm", "npm")?;
    run(Command::new("python3").current_dir(root()).arg("test-vectors/check/vectors.py"))?;
    let packages = target().join("oracles");
    install_node_packages(&packages)?;
    run(Command::new("node").current_dir(root()).arg("test-vectors/check/sse.mjs").arg(&packages))
}

/// Makes sure `program` can be run, installing the Debian package when we are allowed to.
fn require(program: &str, package: &str) -> Result<()> {
    let found = || Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if found() {
        return Ok(());
    }
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let has_apt = Path::new("/usr/bin/apt-get").exists();
    if is_root && has_apt {
        println!("installing {package}");
        let apt = || {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive");
            command
        };
        run(apt().args(["update", "-qq"]))?;
        run(apt().args(["install", "-y", "-qq", "--no-install-recommends", package]))?;
    }
    if !found() {
        bail!(
            "the tests need `{program}`\n\nhint: install it, for example with `sudo apt-get install {package}`"
        );
    }
    Ok(())
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
