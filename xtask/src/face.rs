//! What can be felt of the terminal face, measured on a terminal of its own against the limits of the project.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{cargo, root};

/// How a test marks a number.
const MARK: &str = "measured: ";

/// Runs the measuring tests of a release build, one at a time, and prints what they measured. They fail where a limit is missed.
pub fn bench() -> Result<()> {
    // First alone, so that the compiler is seen at work and does not work while something is measured.
    cargo(&["test", "--release", "--package", "hanzo-dev", "--test", "it", "--no-run"])?;
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["test", "--release", "--package", "hanzo-dev", "--test", "it", "--"];
    let done = Command::new(program)
        .current_dir(root())
        .args(arguments)
        .args(["felt::", "--nocapture", "--test-threads", "1"])
        .env("HANZO_SOAK", "1")
        .stdout(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let said = String::from_utf8_lossy(&done.stderr);
    println!("\n| | limit | measured |\n| --- | --- | --- |");
    for line in said.lines().filter_map(|line| line.split_once(MARK)) {
        println!("{}", line.1);
    }
    if !done.status.success() {
        eprint!("{said}");
        bail!("a limit is missed, or a measurement could not be made");
    }
    Ok(())
}
