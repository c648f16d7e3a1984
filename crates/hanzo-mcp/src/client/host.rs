//! What a server may ask of us. The composition root connects these to the engine's questions and gate; without them a
//! server is told that we cannot.

use hanzo_protocol::BoxFuture;
use hanzo_protocol::ids::ThreadId;
use serde_json::Value;

/// Asks the user for a server.
pub trait Elicitor: Send + Sync {
    /// Asks, and waits for as long as it takes. Dropping the future withdraws the question.
    fn elicit(&self, request: Elicitation) -> BoxFuture<'_, ElicitationAnswer>;
}

/// A question of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The server.
    pub server: String,
    /// The thread whose call made it ask, where that is known.
    pub thread: Option<ThreadId>,
    /// What it says, cleaned.
    pub message: String,
    /// What it wants.
    pub form: ElicitationForm,
}

/// What a server wants of the user.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationForm {
    /// Values for the properties of this schema.
    Fields(Value),
    /// A visit to this address.
    Url(String),
}

/// What the user answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// These values; ignored for an address.
    Accept(Value),
    /// No.
    Decline,
    /// Nothing: they went away, or nobody is there.
    Cancel,
}

/// Asks a model for a server, after the user agreed.
pub trait Sampler: Send + Sync {
    /// Asks the model. The error is a sentence the server is told.
    fn sample(&self, request: Sampling) -> BoxFuture<'_, Result<Sampled, String>>;
}

/// What a server wants a model to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// The server.
    pub server: String,
    /// The thread whose call made it ask, where that is known.
    pub thread: Option<ThreadId>,
    /// Instructions for the model.
    pub system: Option<String>,
    /// The conversation so far.
    pub messages: Vec<SamplingTurn>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    /// How random it may be.
    pub temperature: Option<f32>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingTurn {
    /// Who said it.
    pub speaker: Speaker,
    /// What was said; anything but text is named in brackets.
    pub text: String,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// The model's name.
    pub model: String,
    /// Its answer.
    pub text: String,
    /// Whether it was cut at the limit.
    pub cut: bool,
}

/// Hears what servers write to their logs.
pub trait LogSink: Send + Sync {
    /// A line of a server's log, cleaned; `level` is the server's word for how serious it is.
    fn log(&self, server: &str, level: &str, line: &str);
}
