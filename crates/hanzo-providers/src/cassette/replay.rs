//! Playing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ApiError, ApiErrorKind, ModelRequest, Reasoning, StreamEvent, ToolCall};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::roles::ApiClient;
use serde::Deserialize;
use serde_json::Value;

use super::{EventLine, Header, RequestLine, Substitutions, VERSION, digest};
use crate::failure;
use crate::redact::Redactor;
use crate::{ProviderConfig, ProviderError};

/// No pause is longer than this, however long the recorded one was.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Whether a request has to be the one that was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestCheck {
    /// Any request is answered.
    #[default]
    Off,
    /// Another request than the recorded one is an error.
    Strict,
}

/// How to play.
#[derive(Debug, Clone, Default)]
pub struct ReplayOptions {
    /// What the names in the cassette stand for on this machine.
    pub substitutions: Substitutions,
    /// How fast: 1 as it was, 2 twice as fast, 0 without any pause.
    pub speed: f64,
    /// Whether requests are checked.
    pub check: RequestCheck,
}

/// The options of the kind, as they stand in the settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    file: PathBuf,
    #[serde(default)]
    speed: f64,
    #[serde(default)]
    check: RequestCheck,
    #[serde(default)]
    substitute: std::collections::BTreeMap<String, String>,
}

/// A client that answers from a cassette: the n-th request gets the n-th recorded answer.
#[derive(Debug)]
pub struct Replay {
    name: String,
    exchanges: Arc<[Recorded]>,
    options: ReplayOptions,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Recorded {
    number: usize,
    digest: Option<ContentHash>,
    events: Vec<(Duration, StreamEvent)>,
}

impl Replay {
    /// Plays the cassette of a provider's `extra` options: `file`, and optionally `speed`, `check` (`off` or `strict`) and
    /// `substitute` (what the names in the cassette stand for).
    pub fn from_config(config: &ProviderConfig) -> Result<Self, ProviderError> {
        let options: Options =
            serde_json::from_value(Value::Object(config.extra.clone())).map_err(|error| {
                ProviderError::Option { provider: config.name.clone(), reason: error.to_string() }
            })?;
        let substitutions = options
            .substitute
            .into_iter()
            .fold(Substitutions::none(), |all, (name, text)| all.with(&name, text));
        let replay = ReplayOptions { substitutions, speed: options.speed, check: options.check };
        Self::from_file(&config.name, &options.file, replay)
    }

    /// Plays the cassette in `path`.
    pub fn from_file(name: &str, path: &Path, options: ReplayOptions) -> Result<Self, ProviderError> {
        let wrong = |reason: String| ProviderError::Cassette { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::from_text(name, &text, options).map_err(wrong)
    }

    /// Plays a cassette that is at hand as text; an error says in which line what is wrong.
    pub fn from_text(name: &str, text: &str, options: ReplayOptions) -> Result<Self, String> {
        let mut exchanges: Vec<Recorded> = Vec::new();
        let mut header: Option<Header> = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |reason: String| format!("line {}: {reason}", index + 1);
            let value: Value = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
            match (&header, &value) {
                (None, value) => {
                    let read: Header =
                        Header::deserialize(value).map_err(|_| at("the header is missing".into()))?;
                    if read.cassette != VERSION {
                        return Err(at(format!(
                            "version {} is not {VERSION}, the one that can be played",
                            read.cassette
                        )));
                    }
                    header = Some(read);
                }
                (Some(_), value) if value.get("request").is_some() => {
                    let read = RequestLine::deserialize(value).map_err(|error| at(error.to_string()))?;
                    exchanges.push(Recorded {
                        number: read.request,
                        digest: read.digest,
                        events: Vec::new(),
                    });
                }
                (Some(_), value) => {
                    let read = EventLine::deserialize(value).map_err(|error| at(error.to_string()))?;
                    let exchange =
                        exchanges.last_mut().ok_or_else(|| at("an event before any request".into()))?;
                    exchange.events.push((Duration::from_millis(read.ms.unwrap_or(0)), read.event));
                }
            }
        }
        if header.is_none() {
            return Err("it is empty".into());
        }
        exchanges.sort_by_key(|exchange| exchange.number);
        Ok(Self { name: name.to_owned(), exchanges: exchanges.into(), options, next: AtomicUsize::new(0) })
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    fn filled(&self, event: &StreamEvent) -> StreamEvent {
        let with = &self.options.substitutions;
        match event.clone() {
            StreamEvent::ContentDelta { text } => StreamEvent::ContentDelta { text: with.filled(&text) },
            StreamEvent::ReasoningDelta { text } => StreamEvent::ReasoningDelta { text: with.filled(&text) },
            StreamEvent::Reasoning(reasoning) => {
                StreamEvent::Reasoning(Reasoning { text: with.filled(&reasoning.text), ..reasoning })
            }
            StreamEvent::ToolUse(call) => {
                StreamEvent::ToolUse(ToolCall { arguments: with.filled_json(&call.arguments), ..call })
            }
            other => other,
        }
    }

    fn answer(&self, request: &ModelRequest) -> Result<Vec<(Duration, StreamEvent)>, ApiError> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let refused = |message: String| failure::plain(ApiErrorKind::BadRequest, message);
        let Some(recorded) = self.exchanges.get(number) else {
            let message =
                format!("the cassette has {} answers and request {} is one too many", self.len(), number + 1);
            return Err(refused(format!("{message}\n\nhint: record again, the thread has become longer")));
        };
        if self.options.check == RequestCheck::Strict
            && let Some(expected) = &recorded.digest
        {
            let redactor = Redactor::default();
            let clean =
                |text: &str| redactor.clean(&self.options.substitutions.abstracted(text)).into_owned();
            if digest(request, clean) != *expected {
                let message = format!("request {} is not the one that was recorded", number + 1);
                return Err(refused(format!(
                    "{message}\n\nhint: record again, or play without `check = \"strict\"`"
                )));
            }
        }
        let mut events: Vec<_> =
            recorded.events.iter().map(|(at, event)| (*at, self.filled(event))).collect();
        let is_whole = events.last().is_some_and(|(_, event)| is_last(event));
        if !is_whole {
            let at = events.last().map_or(Duration::ZERO, |(at, _)| *at);
            let error = failure::plain(ApiErrorKind::Network, "the recording was cut off here");
            events.push((at, StreamEvent::Error(error)));
        }
        Ok(events)
    }
}

fn is_last(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::MessageStop { .. } | StreamEvent::Error(_))
}

impl ApiClient for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        let events =
            self.answer(request).unwrap_or_else(|error| vec![(Duration::ZERO, StreamEvent::Error(error))]);
        let speed = self.options.speed;
        let started = Duration::ZERO;
        Box::pin(stream::unfold((events.into_iter(), started), move |(mut events, before)| async move {
            let (at, event) = events.next()?;
            if speed > 0.0 {
                let pause = at.saturating_sub(before).div_f64(speed).min(LONGEST_PAUSE);
                tokio::time::sleep(pause).await;
            }
            Some((event, (events, at)))
        }))
    }
}
