//! A program: one JSON message per line on its standard streams, its errors kept for whoever asks why it ended.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hanzo_protocol::spawn::{ProcessStatus, SpawnRequest, Stdin, Streams};
use rmcp::service::{ClientInitializeError, RoleClient};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::{Connected, Greeting, Way};
use crate::client::MOST_MESSAGE_BYTES;
use crate::client::config::StdioConfig;
use crate::client::fault::McpError;
use crate::client::host::LogSink;
use crate::client::text::line;

/// How much of what a server writes to standard error is kept.
const MOST_TAIL: usize = 4 * 1024;
/// How long the last of its errors are waited for after a program ended. Something it left behind may hold the stream open.
const LAST_LINES: Duration = Duration::from_millis(200);
/// How long the end of a program is waited for after its streams ended.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The end of what a server wrote to standard error.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    kept: Mutex<VecDeque<u8>>,
    /// Nothing more will come.
    ended: CancellationToken,
}

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(MOST_TAIL);
        kept.drain(..surplus);
    }

    /// The last lines, in one.
    pub(crate) fn text(&self) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(3);
        let text = line(&lines[last..].join(" | "), 600);
        (!text.is_empty()).then_some(text)
    }
}

pub(super) async fn connect(
    way: &Way<'_>,
    config: &StdioConfig,
    greeting: Greeting,
) -> Result<Connected, McpError> {
    let mut request = SpawnRequest::new(config.argv.iter().cloned());
    request.env.clone_from(&config.env);
    request.streams = Streams::Pipes { stdin: Stdin::Pipe };
    let mut process =
        way.spawner.spawn(request).await.map_err(|error| way.unreachable(&error.to_string()))?;
    let streams = process.streams();
    let lost = |error: io::Error| way.unreachable(&format!("its streams cannot be used: {error}"));
    let missing = || io::Error::other("they were not made");
    let write = writer(streams.stdin.take().ok_or_else(missing).map_err(lost)?).map_err(lost)?;
    let read = reader(streams.stdout.take().ok_or_else(missing).map_err(lost)?).map_err(lost)?;
    let tail = Arc::new(Tail::default());
    if let Some(errors) = streams.stderr.take() {
        let errors = reader(errors).map_err(lost)?;
        tokio::spawn(listen(errors, Arc::clone(&tail), way.log.cloned(), way.config.name.clone()));
    }
    let transport =
        AsyncRwTransport::<RoleClient, _, _>::new(read, write).with_max_line_length(MOST_MESSAGE_BYTES);
    match way.greet(transport, greeting).await {
        Ok(service) => Ok(Connected { service, process: Some(process), tail: Some(tail) }),
        Err(error) => {
            let ended = if is_end(&error) { last_words(process.as_mut(), &tail).await } else { None };
            Err(match (way.fault(&error), ended) {
                (McpError::Connect { server, .. }, Some(ended)) => {
                    McpError::Connect { server, reason: ended }
                }
                (other, _) => other,
            })
        }
    }
}

/// Whether the program went away, as opposed to saying something wrong.
fn is_end(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_end(fallback),
        _ => false,
    }
}

/// How a program ended, if it did, with the end of its errors.
pub(crate) async fn last_words(
    process: &mut dyn hanzo_protocol::spawn::Process,
    tail: &Tail,
) -> Option<String> {
    let end = tokio::time::timeout(LAST_WORDS, process.wait()).await.ok()?.ok()?;
    let how = match end.status {
        ProcessStatus::Exited(127) => "it cannot be found or started (code 127)".to_owned(),
        ProcessStatus::Exited(code) => format!("it ended with code {code}"),
        ProcessStatus::Signalled(signal) => format!("signal {signal} ended it"),
        ProcessStatus::LimitReached(limit) => format!("it ran into a limit: {limit}"),
        _ => "it was killed".to_owned(),
    };
    // What it said before it ended may still be on its way.
    let _ = tokio::time::timeout(LAST_LINES, tail.ended.cancelled()).await;
    Some(tail.text().map_or(how.clone(), |text| format!("{how}: {text}")))
}

/// Keeps the end of what comes, and tells it on line by line.
async fn listen(mut errors: pipe::Receiver, tail: Arc<Tail>, log: Option<Arc<dyn LogSink>>, server: String) {
    let mut buffer = vec![0; 4096];
    let mut partial = String::new();
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        tail.push(&buffer[..count]);
        let Some(log) = &log else { continue };
        partial.push_str(&String::from_utf8_lossy(&buffer[..count]));
        while let Some(end) = partial.find('\n') {
            let whole: String = partial.drain(..=end).collect();
            log.log(&server, "stderr", &line(&whole, 2_000));
        }
        if partial.len() > MOST_TAIL {
            partial.clear();
        }
    }
    tail.ended.cancel();
}

/// The reading end of a process's stream.
pub(crate) fn reader(file: File) -> io::Result<pipe::Receiver> {
    nonblocking(&file)?;
    // Unchecked, because what a spawner hands out is read like a pipe and need not be one.
    pipe::Receiver::from_file_unchecked(file)
}

/// The writing end of a process's stream.
pub(crate) fn writer(file: File) -> io::Result<pipe::Sender> {
    nonblocking(&file)?;
    pipe::Sender::from_file_unchecked(file)
}

fn nonblocking(file: &File) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(file, true)?)
}
