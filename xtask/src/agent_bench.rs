//! `cargo xtask bench agent`: the whole program beside other agents, against a scripted model. The benchmark itself is a
//! directory of its own (`bench.py`, `mockllm.py`, `agents/*.toml`), which `HANZO_BENCH_DIR` names.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{dist, workspace};

const OURS: &str = "benches/peers/hanzo-dev.toml";

const HOW: &str = "\
The agent benchmark is a directory with `bench.py`, `mockllm.py` and `agents/*.toml`. To run us in it:

  HANZO_BENCH_DIR=/path/to/bench cargo xtask bench agent

It works on a copy, and needs Python 3.11, git, `/usr/bin/time`, and root for a network namespace of its own. Peers that are
installed there can be run beside us: add `--agents hanzo-dev,goose` to the command it prints.
";

/// Runs the benchmark, or says how.
pub fn run() -> Result<()> {
    let Some(directory) = std::env::var_os("HANZO_BENCH_DIR").map(PathBuf::from) else {
        print!("{HOW}");
        return Ok(());
    };
    if !directory.join("bench.py").is_file() {
        bail!("HANZO_BENCH_DIR ({}) has no `bench.py`", directory.display());
    }
    // The others are run as they are shipped; so are we.
    let program = dist::build()?.canonicalize()?;
    let copy = workspace::target().join("agent-bench");
    copy_tree(&directory, &copy).with_context(|| format!("copying {}", directory.display()))?;
    let ours = std::fs::read_to_string(workspace::root().join(OURS))?;
    let ours = ours.replace("@HANZO_DEV@", &program.display().to_string());
    std::fs::write(copy.join("agents/hanzo-dev.toml"), ours)?;
    let arguments = ["bench.py", "--netns", "--runs", "3", "--agents", "hanzo-dev"];
    println!("cd {} && python3 {}", copy.display(), arguments.join(" "));
    workspace::run(Command::new("python3").current_dir(&copy).args(arguments))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
