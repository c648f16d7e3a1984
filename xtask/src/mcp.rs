//! The MCP server against the protocol's own programs: the conformance suite, the inspector, the official clients. Packages are
//! installed under the target directory.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{build_programs, cargo, cargo_with, root, run, target};

/// The scored sets of the suite.
const REQUIREMENTS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// `latest` is older and does not know the newest protocol.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// Runs the benchmark, with the peer it is measured by.
pub fn bench() -> Result<()> {
    let tools = Tools::install()?;
    cargo(&["build", "--release", "--package", "hanzo-dev"])?;
    let script = tools.packages.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let (node, script) = (tools.node.to_string_lossy().into_owned(), script.to_string_lossy().into_owned());
    let environment = [("HANZO_NODE", node.as_str()), ("HANZO_SERVER_FILESYSTEM", script.as_str())];
    cargo_with(&["bench", "--package", "hanzo-benches", "--bench", "mcp"], &environment)
}

/// The programs, installed.
pub struct Tools {
    packages: PathBuf,
    node: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// Runs all of them against our server.
    pub fn run(&self) -> Result<()> {
        build_programs()?;
        self.conformance()?;
        self.clients()
    }

    /// Installs what is missing.
    pub fn install() -> Result<Self> {
        let packages = target().join("oracles/mcp-server");
        std::fs::create_dir_all(&packages)?;
        let packages = packages.canonicalize()?;
        if !packages.join("node_modules/.bin/mcp-inspector").exists() {
            std::fs::write(packages.join("package.json"), "{\"private\": true}\n")?;
            let wanted = [
                "node@24",
                SUITE,
                "@modelcontextprotocol/inspector",
                "@modelcontextprotocol/sdk",
                "@modelcontextprotocol/server-filesystem",
            ];
            let install = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
            run(Command::new("npm").current_dir(&packages).args(install).args(wanted))?;
        }
        let environment = packages.join("python");
        let python = environment.join("bin/python");
        if !python.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "mcp"]))?;
        }
        let node = packages.join("node_modules/node/bin/node");
        Ok(Self { packages, node, python })
    }

    /// A program of a package, run by the Node that is new enough for it.
    fn node(&self, program: &str) -> Command {
        let mut command = Command::new(&self.node);
        let own = self.node.parent().unwrap_or(Path::new("."));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", own.display())).current_dir(&self.packages);
        command.arg(self.packages.join("node_modules/.bin").join(program));
        command
    }

    fn conformance(&self) -> Result<()> {
        let (server, url) = Served::start(
            Command::new(target().join("debug/examples/conformance_server")).arg("127.0.0.1:0"),
        )?;
        for set in REQUIREMENTS {
            let mut suite = self.node("conformance");
            suite.args(["server", "--url", &url, "--requirements", set]);
            // Known failures, each with its reason. There is no such file while there are none.
            let expected = root().join(format!("crates/hanzo-mcp/tests/conformance/server-{set}.yml"));
            if expected.exists() {
                suite.arg("--expected-failures").arg(expected);
            }
            run(&mut suite).with_context(|| format!("the requirements of {set}"))?;
        }
        drop(server);
        Ok(())
    }

    /// The inspector and the official clients, over standard input and output and over HTTP.
    fn clients(&self) -> Result<()> {
        let place = tempdir()?;
        std::fs::write(place.join("a.txt"), "hello\n")?;
        let program = target().join("debug/hanzo-dev").canonicalize()?;
        let home = place.to_string_lossy().into_owned();
        let (_server, url) = Served::start(
            Command::new(&program)
                .args(["mcp", "--http", "127.0.0.1:0"])
                .current_dir(&place)
                .env("HOME", &home),
        )?;
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "fs",
            "--tool-arg",
            "action=read",
            "--tool-arg",
            "path=a.txt",
        ];
        for transport in [
            vec![program.display().to_string(), "mcp".into(), "-C".into(), home.clone()],
            vec![url.clone(), "--transport".into(), "http".into()],
        ] {
            for method in [&["--method", "tools/list"][..], &call] {
                run(self
                    .node("mcp-inspector")
                    .arg("--cli")
                    .args(&transport)
                    .args(method)
                    .env("HOME", &home)
                    .stdout(Stdio::null()))?;
            }
        }
        let script = root().join("crates/hanzo-mcp/tests/oracle/client.py");
        let clients: [(&Path, &Path); 1] = [(&self.python, &script)];
        for (runner, script) in clients {
            for target in [
                vec!["stdio".to_owned(), program.display().to_string(), home.clone()],
                vec!["http".to_owned(), url.clone()],
            ] {
                run(Command::new(runner).arg(script).args(target).env("HOME", &home))?;
            }
        }
        let script = root().join("crates/hanzo-mcp/tests/oracle/client.mjs");
        for target in [
            vec!["stdio".to_owned(), program.display().to_string(), home.clone()],
            vec!["http".to_owned(), url],
        ] {
            run(Command::new(&self.node).arg(&script).arg(&self.packages).args(target).env("HOME", &home))?;
        }
        std::fs::remove_dir_all(place)?;
        Ok(())
    }
}

fn tempdir() -> Result<PathBuf> {
    let place = target().join(format!("oracles/mcp-server/place-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    Ok(place.canonicalize()?)
}

/// A server that is stopped again.
struct Served(Child);

impl Served {
    /// Starts a server and returns the address it says it has.
    fn start(command: &mut Command) -> Result<(Self, String)> {
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("the server does not start")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let served = Self(child);
        for line in BufReader::new(stderr).lines() {
            if let Some(at) = line?.split_whitespace().find(|word| word.starts_with("http://")) {
                return Ok((served, at.to_owned()));
            }
        }
        bail!("the server does not say where it is")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
