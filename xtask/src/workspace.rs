//! Where the workspace is, and running cargo in it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The directory cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs cargo in the workspace, its output passed through.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, &[])
}

/// Runs cargo with additional environment variables.
pub fn cargo_with(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let mut command = cargo_command(arguments);
    command.envs(environment.iter().copied());
    run(&mut command)
}

/// Builds all programs and examples, for others to be run against. Of one package alone they would be compiled anew, with other
/// features than the tests have.
pub fn build_programs() -> Result<()> {
    cargo(&["build", "--workspace", "--bins", "--examples"])
}

/// Runs a program, its output passed through; fails when it does.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs cargo and returns what it printed.
pub fn cargo_output(arguments: &[&str]) -> Result<String> {
    output(&mut cargo_command(arguments))
}

/// Runs a program and returns what it printed; fails when it does.
pub fn output(command: &mut Command) -> Result<String> {
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !done.status.success() {
        bail!("{} ended with {}", shown(command), done.status);
    }
    String::from_utf8(done.stdout).with_context(|| format!("{} did not print UTF-8", shown(command)))
}

/// `cargo metadata` of our own packages.
pub fn metadata() -> Result<Value> {
    let text = cargo_output(&["metadata", "--format-version", "1", "--no-deps"])?;
    serde_json::from_str(&text).context("cargo metadata printed something else than JSON")
}

fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

fn shown(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let program = PathBuf::from(command.get_program());
    let name = program.file_stem().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    format!("`{name} {}`", words.join(" "))
}
