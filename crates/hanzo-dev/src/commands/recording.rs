//! Recordings: `run --record`, `replay` and `demo`.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hanzo_config::LoadInputs;
use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ModelRequest, StreamEvent};
use hanzo_protocol::roles::ApiClient;
use hanzo_providers::cassette::{Recorder, RecorderOptions, Replay, ReplayOptions, Substitutions};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::root::Wrap;

/// Writes what models answer to `file`. Secrets are taken out, and the workspace's path is replaced by a name.
pub fn recorder(file: &Path, prompt: &str, inputs: &LoadInputs) -> Result<Wrap, Failure> {
    let wrong = |error: std::io::Error| {
        Failure::message(Exit::BadInput, format!("cannot record to {}: {error}", file.display()))
    };
    let out = BufWriter::new(File::create(file).map_err(wrong)?);
    let options = RecorderOptions {
        note: prompt.to_owned(),
        secrets: secrets(),
        substitutions: substitutions(&inputs.workspace_root),
    };
    let slot = Arc::new(Slot(Mutex::new(None)));
    let recorder = Recorder::new(slot.clone(), out, options).map_err(wrong)?;
    let tape = Arc::new(Tape { recorder, slot, turn: Mutex::new(()) });
    Ok(Arc::new(move |client| Arc::new(Recorded { client, tape: Arc::clone(&tape) })))
}

/// Plays the cassette `text`.
pub fn player(name: &str, text: &str, workspace: &Path) -> Result<Arc<dyn ApiClient>, Failure> {
    // A person is to see it happen; a program is to be done.
    let speed = if std::io::stderr().is_terminal() { 1.0 } else { 0.0 };
    let options =
        ReplayOptions { substitutions: substitutions(workspace), speed, ..ReplayOptions::default() };
    let replay = Replay::from_text("replay", text, options);
    let replay =
        replay.map_err(|what| Failure::message(Exit::BadInput, format!("cannot play {name}: {what}")))?;
    Ok(Arc::new(replay))
}

/// What was asked when the cassette was recorded: the note in its header.
pub fn prompt(text: &str) -> Option<String> {
    let header = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let header: Value = serde_json::from_str(header).ok()?;
    header["note"].as_str().filter(|note| !note.is_empty()).map(str::to_owned)
}

fn substitutions(workspace: &Path) -> Substitutions {
    Substitutions::none().with("workspace", workspace.to_string_lossy())
}

/// What the environment keeps secret.
fn secrets() -> Vec<String> {
    let telling = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| {
            // Shorter ones would take innocent text with them.
            value.len() >= 8 && telling.iter().any(|word| name.to_ascii_uppercase().contains(word))
        })
        .map(|(_, value)| value)
        .collect()
}

/// One recorder for every model of a run: exchanges are numbered across all of them.
struct Tape {
    recorder: Recorder,
    slot: Arc<Slot>,
    turn: Mutex<()>,
}

/// Whom the recorder asks next.
struct Slot(Mutex<Option<Arc<dyn ApiClient>>>);

impl ApiClient for Slot {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(client) => client.send_message(request),
            None => Box::pin(futures_util::stream::empty()),
        }
    }
}

struct Recorded {
    client: Arc<dyn ApiClient>,
    tape: Arc<Tape>,
}

impl ApiClient for Recorded {
    fn name(&self) -> &str {
        self.client.name()
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        // Sending only makes the stream, so nobody waits here for an answer.
        let _turn = self.tape.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *self.tape.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&self.client));
        self.tape.recorder.send_message(request)
    }
}
