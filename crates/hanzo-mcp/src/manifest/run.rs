//! Running a script: its arguments go in as JSON, its result comes out as JSON, what it prints beside is shown while it runs.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::spawn::{ProcessStatus, SpawnError, SpawnRequest, Spawner, Stdin, Streams};
use hanzo_protocol::tool::OutputSink;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::parse::{Manifest, Runtime};
use crate::client::text::clean;
use crate::client::transport::{reader, writer};

/// The most a result may be, in bytes.
const MOST_RESULT: usize = 4 * 1024 * 1024;
/// How much of the end of what a script prints explains a failure.
const TAIL: usize = 4 * 1024;
/// The longest argument that becomes a variable of a shell script.
const LONGEST_VARIABLE: usize = 16 * 1024;

const NODE: &str = include_str!("shims/node.js");
const PYTHON: &str = include_str!("shims/python.py");

/// Runs the script of `manifest` once.
pub(super) async fn run(
    (spawner, workspace): (&dyn Spawner, &Path),
    manifest: &Manifest,
    variables: Vec<(OsString, OsString)>,
    arguments: &Value,
    shown: Option<&Arc<dyn OutputSink>>,
) -> Result<Value, ToolError> {
    let mut request = SpawnRequest::new(command(manifest));
    request.cwd = Some(workspace.to_owned());
    request.env = variables;
    if manifest.runtime == Runtime::Shell {
        request.env.extend(plain_arguments(arguments));
    }
    request.streams = Streams::Pipes { stdin: Stdin::Pipe };
    request.timeout = Some(manifest.timeout);
    let mut process = spawner.spawn(request).await.map_err(|error| not_started(manifest, &error))?;
    let streams = process.streams();
    let no_pipe = |()| failed("its standard streams cannot be used");
    let input =
        streams.stdin.take().ok_or(()).and_then(|file| writer(file).map_err(drop)).map_err(no_pipe)?;
    let output =
        streams.stdout.take().ok_or(()).and_then(|file| reader(file).map_err(drop)).map_err(no_pipe)?;
    let errors =
        streams.stderr.take().ok_or(()).and_then(|file| reader(file).map_err(drop)).map_err(no_pipe)?;
    let text = arguments.to_string();
    let feed = async move {
        let mut input = input;
        // A script need not read what it is given.
        let _ = input.write_all(text.as_bytes()).await;
    };
    let (end, said, tail, ()) = tokio::join!(process.wait(), whole(output), follow(errors, shown), feed);
    let end = end.map_err(|error| not_started(manifest, &error))?;
    let tail = clean(&String::from_utf8_lossy(&tail), TAIL);
    match end.status {
        ProcessStatus::Exited(0) => {}
        ProcessStatus::Exited(127) => {
            let message =
                format!("`{}` is not installed, or not where the sandbox sees it", program(manifest.runtime));
            return Err(failed(&message));
        }
        ProcessStatus::TimedOut => {
            let message =
                format!("it took longer than its {} ms and was stopped", manifest.timeout.as_millis());
            return Err(ToolError::new(ErrorCode::Timeout, message));
        }
        ProcessStatus::LimitReached(limit) => return Err(failed(&format!("it ran into a limit: {limit}"))),
        _ if !tail.trim().is_empty() => {
            let denied = process.denial(&end, tail.as_bytes());
            let code = if denied.is_some() { ErrorCode::SandboxDenied } else { ErrorCode::Error };
            let why = denied.map_or_else(String::new, |denied| {
                format!(
                    "\nThe sandbox was probably in its way ({}): its manifest names what it may reach.",
                    denied.what
                )
            });
            return Err(ToolError::new(code, format!("{}{why}", tail.trim())));
        }
        status => return Err(failed(&format!("its script ended without a result ({status:?})"))),
    }
    let said = said.ok_or_else(|| {
        ToolError::new(
            ErrorCode::TooLarge,
            format!("its result is larger than {} MB", MOST_RESULT / 1024 / 1024),
        )
    })?;
    Ok(serde_json::from_slice(&said).unwrap_or_else(|_| {
        // A shell script may just print something.
        let text = String::from_utf8_lossy(&said);
        json!(text.trim_end())
    }))
}

fn program(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Node => "node",
        Runtime::Python => "python3",
        Runtime::Shell => "sh",
    }
}

fn command(manifest: &Manifest) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![program(manifest.runtime).into()];
    let shim = match manifest.runtime {
        Runtime::Node => ["-e", NODE, "--"].as_slice(),
        // `-B`: it has no place for what it compiles.
        Runtime::Python => ["-B", "-c", PYTHON].as_slice(),
        Runtime::Shell => [].as_slice(),
    };
    words.extend(shim.iter().map(Into::into));
    words.push(manifest.handler.clone().into());
    if manifest.runtime != Runtime::Shell {
        words.push(manifest.name.clone().into());
        words.push(manifest.function.clone().unwrap_or_default().into());
    }
    words
}

/// Arguments that are one word each, as `ARG_NAME`, for scripts that do not read JSON.
fn plain_arguments(arguments: &Value) -> Vec<(OsString, OsString)> {
    let members = arguments.as_object().into_iter().flatten();
    let plain = |(name, value): (&String, &Value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return None,
        };
        let usable = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let short = text.len() <= LONGEST_VARIABLE && !text.contains('\0');
        (usable && short).then(|| (format!("ARG_{}", name.to_ascii_uppercase()).into(), text.into()))
    };
    members.filter_map(plain).collect()
}

/// All of what comes; `None` when it is too much. It is read to its end in any case, so that nobody waits for us.
async fn whole(mut output: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    let mut fits = true;
    while let Ok(count @ 1..) = output.read(&mut chunk).await {
        fits &= all.len() + count <= MOST_RESULT;
        if fits {
            all.extend_from_slice(&chunk[..count]);
        } else {
            all = Vec::new();
        }
    }
    fits.then_some(all)
}

/// Shows what comes and keeps its end.
async fn follow(mut errors: impl AsyncRead + Unpin, shown: Option<&Arc<dyn OutputSink>>) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut chunk = vec![0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        if let Some(shown) = shown {
            shown.push(&clean(&String::from_utf8_lossy(&chunk[..count]), chunk.len()));
        }
        tail.extend_from_slice(&chunk[..count]);
        let surplus = tail.len().saturating_sub(TAIL);
        tail.drain(..surplus);
    }
    tail
}

fn failed(message: &str) -> ToolError {
    ToolError::new(ErrorCode::Error, message)
}

fn not_started(manifest: &Manifest, error: &SpawnError) -> ToolError {
    failed(&format!("`{}` could not be run: {error}", program(manifest.runtime)))
}
