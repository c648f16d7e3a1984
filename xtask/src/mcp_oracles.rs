//! The MCP client against servers other people wrote, and under the protocol's own conformance suite.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::workspace::{build_programs, cargo_with, root, run, target};

/// The reference servers, of which some want a newer Node than systems have.
const NODE_PACKAGES: &[&str] = &[
    "node@24",
    "@modelcontextprotocol/server-everything",
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-memory",
];

/// The suite. `latest` is older than the newest protocol.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// The programs, installed.
pub struct Programs {
    directory: PathBuf,
}

impl Programs {
    /// Installs what is missing.
    pub fn install() -> Result<Self> {
        let directory = target().join("oracles/mcp");
        node(&directory, "node_modules/.bin/mcp-server-everything", NODE_PACKAGES)?;
        python(&directory.join("python"), &["mcp-server-git", "mcp-server-fetch", "mcp-server-time"])?;
        python(&directory.join("python-v1"), &["mcp[cli,ws]<2", "uvicorn", "websockets"])?;
        node(&directory.join("suite"), "node_modules/.bin/conformance", &[SUITE])?;
        Ok(Self { directory })
    }

    /// Calls the reference servers, and runs the client scenarios of both scored revisions.
    pub fn run(&self) -> Result<()> {
        let directory = &self.directory;
        let arguments = ["test", "--workspace", "--test", "it", "client::oracle::", "--", "--nocapture"];
        cargo_with(&arguments, &[("HANZO_MCP_SERVERS", &directory.to_string_lossy())])?;
        build_programs()?;
        let ours = target().join("debug/examples/conformance_client");
        for revision in ["2025-11-25", "2026-07-28"] {
            let expected = format!("crates/hanzo-mcp/tests/oracle/client-expected-failures-{revision}.yml");
            run(Command::new(directory.join("node_modules/.bin/node"))
                .current_dir(directory.join("suite"))
                .arg("node_modules/.bin/conformance")
                .args(["client", "--timeout", "120000", "--requirements", revision, "--expected-failures"])
                .arg(root().join(expected))
                .arg("--command")
                .arg(&ours))?;
        }
        Ok(())
    }
}

fn node(directory: &Path, there: &str, packages: &[&str]) -> Result<()> {
    if directory.join(there).exists() {
        return Ok(());
    }
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
    let mut command = Command::new("npm");
    command
        .current_dir(directory)
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .args(packages);
    run(&mut command)
}

fn python(directory: &Path, packages: &[&str]) -> Result<()> {
    let python = directory.join("bin/python");
    if python.exists() {
        return Ok(());
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))
}
