//! What we do against implementations nobody here wrote: the vectors against Node packages and Python's standard library,
//! the providers against the vendors' own SDKs. Packages are installed under the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::prerequisites;
use crate::workspace::{build_programs, cargo, cargo_with, root, run, target};

/// Runs every oracle.
pub fn run_all() -> Result<()> {
    run(Command::new("python3").current_dir(root()).arg("test-vectors/check/vectors.py"))?;
    let packages = target().join("oracles");
    install_node_packages(&packages)?;
    run(Command::new("node").current_dir(root()).arg("test-vectors/check/sse.mjs").arg(&packages))
}

/// The vendors' Python SDKs and our providers read the same streams of the scripted model server.
pub fn run_sdks() -> Result<()> {
    let environment = target().join("oracles/python");
    let python = environment.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "openai", "anthropic"]))?;
    }
    build_programs()?;
    let examples = target().join("debug/examples");
    run(Command::new(&python)
        .current_dir(root())
        .arg("crates/hanzo-providers/tests/oracle/sdk.py")
        .arg(examples.join("scripted_server"))
        .arg(examples.join("stream_events")))
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

/// The programs the `ui` tool is tried with, and the Debian packages they are in.
const SCREEN: [(&str, &str); 2] = [("Xvfb", "xvfb"), ("xterm", "xterm")];

/// Gets the programs the `ui` tool is tried with, if they can be had, and says whether the tests will try it.
pub fn offer_screen() {
    match SCREEN.iter().find(|(program, package)| !prerequisites::can_have(program, package)) {
        None => println!("there: the tests try `ui` on an X server with a window"),
        Some((program, package)) => {
            println!("not run: `ui` on an X server, for want of `{program}` (Debian package {package})");
        }
    }
}

/// The `ui` tool on a real X server with a real window.
pub fn screen() -> Result<()> {
    for (program, package) in SCREEN {
        if !prerequisites::can_have(program, package) {
            bail!("`ui` is tried with `{program}`\n\nhint: install {package}");
        }
    }
    let arguments = ["test", "--package", "hanzo-tools", "--features", "ui", "--test", "it"];
    cargo(&[&arguments[..], &["oracle_ui", "--", "--nocapture"]].concat())
}

/// The symbols `code` finds in real trees against those universal-ctags finds.
pub fn symbols() -> Result<()> {
    let trees = crate::corpora::trees();
    let arguments = ["test", "--package", "hanzo-tools", "--test", "it", "ctags", "--", "--nocapture"];
    cargo_with(&arguments, &[("HANZO_CTAGS_TREES", trees.as_str())])
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

/// The scrollback on terminals nobody here wrote: tmux, and xterm.js without a window.
pub fn terminals() -> Result<()> {
    let directory = target().join("oracles/xterm");
    std::fs::create_dir_all(&directory)?;
    if !directory.join("node_modules/@xterm/headless").exists() {
        std::fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
        let arguments = ["install", "--no-audit", "--no-fund", "--loglevel=error", "@xterm/headless"];
        run(Command::new("npm").current_dir(&directory).args(arguments))?;
    }
    run(Command::new("tmux").arg("-V")).context("hint: install tmux")?;
    let directory = directory.to_string_lossy().into_owned();
    let arguments = ["test", "--package", "hanzo-dev", "--test", "it", "scrollback::", "--", "--nocapture"];
    cargo_with(&arguments, &[("HANZO_XTERM", &directory)])
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
