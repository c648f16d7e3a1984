//! What the tests need beyond cargo: real programs to run in the jail and to compare with.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace::{output, run};

/// Programs and the Debian packages they are in.
const PROGRAMS: &[(&str, &str)] = &[
    ("git", "git"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("curl", "curl"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
];

/// Programs that some tests compare with; without one, those tests say that they were not run.
const ORACLES: &[(&str, &str)] = &[("ctags", "universal-ctags")];

/// Makes sure that every program is there.
pub fn check() -> Result<()> {
    PROGRAMS.iter().try_for_each(|(program, package)| require(program, package))?;
    println!("{} programs are there", PROGRAMS.len());
    for (program, package) in ORACLES {
        if require(program, package).is_err() {
            println!("NOT THERE: `{program}`; what is compared with it is not");
        }
    }
    Ok(())
}

/// Makes sure `program` can be run, installing the Debian package when we are allowed to.
fn require(program: &str, package: &str) -> Result<()> {
    let found = || Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if !found() {
        install(package)?;
    }
    if !found() {
        bail!(
            "the tests need `{program}`\n\nhint: install it, for example with `sudo apt-get install {package}`"
        );
    }
    Ok(())
}

/// Whether `program` is there, or could be installed; for what is good to have.
pub fn can_have(program: &str, package: &str) -> bool {
    let found = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    found() || (install(package).is_ok() && found())
}

/// Installs a Debian package, when we are allowed to.
fn install(package: &str) -> Result<()> {
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root || !Path::new("/usr/bin/apt-get").exists() {
        return Ok(());
    }
    println!("installing {package}");
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    run(apt().args(["update", "-qq"]))?;
    run(apt().args(["install", "-y", "-qq", "--no-install-recommends", package]))
}
