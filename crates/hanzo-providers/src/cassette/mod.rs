//! Cassettes: what a model answered in a thread, recorded to be played back without a model.
//!
//! # The format
//!
//! Text, UTF-8, one JSON object to a line, stable. The first line is the header:
//!
//! ```json
//! {"cassette":1,"note":"optional words"}
//! ```
//!
//! `cassette` is the version, 1. Then come exchanges, each a `request` line and its `event` lines:
//!
//! ```json
//! {"request":0,"digest":"sha256:…","model":"m","messages":2,"tools":8}
//! {"event":{"type":"contentDelta","text":"Hello"},"ms":12}
//! {"event":{"type":"messageStop","reason":"endTurn","usage":{"inputTokens":10}},"ms":15}
//! ```
//!
//! * `request` counts from 0 in the order in which requests were made. Exchanges that overlapped stand in the file in the
//!   order in which they ended; playing goes by the number.
//! * `digest` is the hash of the request as the engine made it (secrets and substitutions taken out), to check against when
//!   playing strictly. It may be absent, as may `model`, `messages` and `tools`, which are for people.
//! * `event` is a `StreamEvent` of the engine's protocol; `ms` the time since the request, absent for "at once".
//!
//! An exchange whose reader went away has no last event; playing it ends with an error. Blank lines, and lines whose first
//! character is `#`, are passed over, so that a cassette can be written and explained by hand.
//!
//! # What is left out
//!
//! A recorder takes secrets out: those it is told, and what looks like a credential. It can put `{{name}}` in place of
//! text that is different on every machine, such as the workspace's path; the player puts its own in again. Requests
//! themselves are not kept.

mod record;
mod replay;

use hanzo_protocol::message::{Message, ModelRequest, StreamEvent};
use hanzo_protocol::primitives::ContentHash;
use serde::{Deserialize, Serialize};

pub use record::{Recorder, RecorderOptions};
pub use replay::{Replay, ReplayOptions, RequestCheck};

/// The name of the kind that plays cassettes.
pub const REPLAY_KIND: &str = "replay";
/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    cassette: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
}

#[derive(Serialize, Deserialize)]
struct RequestLine {
    request: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct EventLine {
    event: StreamEvent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
}

/// Text that differs from machine to machine, and the name that stands for it.
#[derive(Debug, Clone, Default)]
pub struct Substitutions(Vec<(String, String)>);

impl Substitutions {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same, with `{{name}}` standing for `text`.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.0.push((format!("{{{{{name}}}}}"), text));
        }
        // The longest first: a path may lie in another.
        self.0.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        self
    }

    /// `text` with names in place of what they stand for.
    fn abstracted(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(value.as_str(), name))
    }

    /// `text` with what the names stand for.
    fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name.as_str(), value))
    }

    /// Like [`filled`](Self::filled), inside JSON text.
    fn filled_json(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            let quoted = serde_json::Value::from(value.as_str()).to_string();
            text.replace(name.as_str(), &quoted[1..quoted.len() - 1])
        })
    }
}

/// The hash of a request, after `clean` has taken out of every text what must not count.
fn digest(request: &ModelRequest, clean: impl Fn(&str) -> String) -> ContentHash {
    let mut text = String::new();
    let mut add = |piece: &str| {
        text.push_str(&clean(piece));
        // Separates the pieces, so that moving text from one to the next is a difference.
        text.push('\u{0}');
    };
    for tool in &request.tools {
        add(&tool.name);
        add(&tool.description);
        add(tool.parameters.get());
    }
    for message in &request.messages {
        let Message { role, content, tool_calls, tool_call_id, .. } = message;
        add(&format!("{role:?}"));
        add(content);
        for call in tool_calls {
            add(&call.name);
            add(&call.arguments);
        }
        add(tool_call_id.as_ref().map_or("", |id| id.as_str()));
        for attachment in &message.attachments {
            add(&attachment.media_type);
        }
    }
    ContentHash::of(text.as_bytes())
}
