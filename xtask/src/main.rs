//! The project's own commands, run as `cargo xtask COMMAND`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "these are command-line tools for developers")]

mod agent_bench;
mod corpora;
mod dist;
mod face;
mod layering;
mod local_model;
mod mcp;
mod mcp_oracles;
mod not_run;
mod oracles;
mod prerequisites;
mod requirements;
mod sizes;
mod steps;
mod tests_list;
mod workspace;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::steps::Steps;
use crate::workspace::cargo;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  test           Everything that must hold before a change lands: formatting, clippy, layering, rustdoc, all
                 tests (that the generated documents are current is one), the requirements table, the vectors'
                 independent oracles, MCP servers and clients of others and the protocol's conformance suite; at
                 its end it lists the tests that count as passed and were not run, because something they need is
                 missing; `--with-local-model` also runs a small real model on this machine
  docs           Write the generated documents (schemas, CLI, settings and environment reference, man pages)
  layering       Check that the arrows between our crates point down
  requirements   Print the score of docs/requirements.md and check that every named test exists
  bench [NAME]   Run the benchmarks; each prints ratios against a named competitor or limit
  bench face     Measure what can be felt of the terminal face against its limits
  bench mcp      Run the MCP server beside the reference file server on Node, which is installed
  bench agent    Run us in the benchmark of agents that HANZO_BENCH_DIR names, or say how
  soak           Run the tests with their loops at full size (`test` runs 1/20 of them)
  interop        Run the suites of outside programs, the slow ones included
  dist           Build the static binary for shipping and try it in an empty root directory
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test(),
        ["test", "--with-local-model"] => test().and_then(|()| local_model::test()),
        ["docs"] => docs(),
        ["layering"] => layering::check(),
        ["requirements"] => requirements::check(),
        ["bench"] => bench(&[]),
        ["bench", "agent"] => agent_bench::run(),
        ["bench", "face"] => face::bench(),
        ["bench", "mcp"] => mcp::bench(),
        ["bench", name] => bench(&["--bench", name]),
        ["soak"] => soak(),
        ["interop"] => interop(),
        ["dist"] => dist::build_and_try(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("no such command: `{}`\n\n{HELP}", words.join(" ")),
    }
}

fn test() -> Result<()> {
    let mut steps = Steps::default();
    steps.run("prerequisites", prerequisites::check);
    steps.run("formatting", || cargo(&["fmt", "--all", "--check"]).context("hint: run `cargo fmt --all`"));
    steps.run("layering and file sizes", || {
        sizes::warn()?;
        layering::check()
    });
    steps.run("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    steps.run("documentation", || {
        let arguments = ["doc", "--workspace", "--no-deps", "--quiet"];
        workspace::cargo_with(&arguments, &[("RUSTDOCFLAGS", "-D warnings")])
    });
    steps.run("building the tests", || cargo(&["test", "--workspace", "--no-run"]));
    steps.run("the screen's programs", || {
        oracles::offer_screen();
        Ok(())
    });
    let mut not_run = Vec::new();
    steps.run("tests", || {
        let (outcome, left_out) = not_run::gather(&["test", "--workspace", "--no-fail-fast"], &[]);
        not_run = left_out;
        outcome
    });
    steps.run("requirements", requirements::check);
    steps.run("vector oracles", oracles::run_all);
    steps.run("MCP of others", || mcp_of_others(&mut not_run));
    not_run::print(&not_run);
    steps.finish()
}

fn docs() -> Result<()> {
    cargo(&["run", "--quiet", "--package", "hanzo-docgen"])
}

fn bench(selection: &[&str]) -> Result<()> {
    // What `code` indexes: one tree per language.
    let trees = match selection {
        [] | [_, "code"] => corpora::trees(),
        _ => String::new(),
    };
    let run = |package: &str| {
        let mut arguments = vec!["bench", "--package", package];
        arguments.extend(selection);
        workspace::cargo_with(&arguments, &[("HANZO_BENCH_TREES", trees.as_str())])
    };
    if matches!(selection, [] | [_, "code" | "fs" | "ws"]) {
        run("hanzo-tools")?;
    }
    if matches!(selection, [_, "code" | "fs" | "ws"]) {
        return Ok(());
    }
    // The start-up benchmark runs the program as users build it.
    cargo(&["build", "--release", "--package", "hanzo-dev"])?;
    run("hanzo-benches")
}

/// The suites of outside programs. Those that are quick and need no Python packages are part of `test` as well.
fn interop() -> Result<()> {
    prerequisites::check()?;
    oracles::run_all()?;
    oracles::run_sdks()?;
    oracles::file_tools()?;
    oracles::screen()?;
    oracles::test_runners()?;
    oracles::symbols()?;
    mcp_oracles::Programs::install()?.run()?;
    mcp::Tools::install()?.run()?;
    oracles::terminals()?;
    oracles::vim()
}

/// Our MCP client against servers of others, and our server against clients of others, as far as they can be had.
fn mcp_of_others(not_run: &mut Vec<String>) -> Result<()> {
    let mut missing = |what: &str, error: &anyhow::Error| {
        let line = format!("not run: {what}: its packages cannot be installed: {error:#}");
        println!("{line}");
        not_run.push(line);
    };
    let servers =
        mcp_oracles::Programs::install().inspect_err(|error| missing("the MCP client against others", error));
    let clients = mcp::Tools::install().inspect_err(|error| missing("the MCP server against others", error));
    if let Ok(servers) = servers {
        servers.run()?;
    }
    clients.map_or(Ok(()), |clients| clients.run())
}

fn soak() -> Result<()> {
    let (outcome, left_out) =
        not_run::gather(&["test", "--workspace", "--release", "--no-fail-fast"], &[("HANZO_SOAK", "1")]);
    not_run::print(&left_out);
    outcome
}
