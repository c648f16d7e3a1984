//! How many tokens something takes, without a tokenizer: bytes by a ratio that is calibrated on what the vendor reports.
//!
//! A tokenizer per vendor would cost memory and start-up time, be wrong for every model it was not made for, and answer
//! a question the vendor answers exactly with every request anyway. What is estimated here is only the part that was
//! added since the last answer.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use hanzo_protocol::item::{Item, ItemContent};
use hanzo_protocol::message::{Attachment, Message, ModelRequest, ToolSchema};

/// Before anything was reported. English prose has about 4.2 bytes to the token and code about 3.2; a guess that is a
/// little low folds a little early, one that is too high is refused by the vendor.
pub const INITIAL_BYTES_PER_TOKEN: f64 = 3.5;

/// No tokenizer in use needs more than one token for a byte of ordinary text, or packs more than this into one.
const BOUNDS: (f64, f64) = (1.0, 8.0);

/// How much of a new observation is believed. One odd prompt (a page of base64) must not swing the estimate.
const WEIGHT: f64 = 0.3;

/// Prompts under this many tokens are mostly the vendor's own framing and say nothing about text.
const SMALLEST_OBSERVATION: u64 = 256;

/// What an image or a document is counted as. Vendors bill images by area, at most about this; the bytes say nothing.
pub const TOKENS_PER_ATTACHMENT: u64 = 1_600;

/// What a message costs beside its text: role, separators, the names of fields.
const BYTES_PER_MESSAGE: u64 = 16;

/// How big something is, before anybody counted tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of text.
    pub bytes: u64,
    /// Images and documents.
    pub attachments: u64,
}

impl Size {
    /// The size of a text.
    pub fn of_text(text: &str) -> Self {
        Self { bytes: text.len() as u64, attachments: 0 }
    }

    /// The size of what the model sees of an item; nothing for items that are only for the user.
    pub fn of_item(item: &Item) -> Self {
        let framed = |bytes: usize, attachments: usize| Self {
            bytes: bytes as u64 + BYTES_PER_MESSAGE,
            attachments: attachments as u64,
        };
        match &item.content {
            ItemContent::UserMessage { text, attachments } => framed(text.len(), attachments.len()),
            ItemContent::AgentMessage { text } => framed(text.len(), 0),
            ItemContent::Fragment { kind, text } => framed(text.len() + 2 * kind.len(), 0),
            ItemContent::Reasoning(reasoning) => {
                framed(reasoning.text.len() + reasoning.signature.as_ref().map_or(0, String::len), 0)
            }
            ItemContent::ToolCall(call) => {
                let (output, attachments) = call.result.as_ref().map_or((0, 0), |result| {
                    (
                        result.output.len() + result.error.as_ref().map_or(0, String::len),
                        result.attachments.len(),
                    )
                });
                // The id stands twice: in the call and in its answer.
                let names = call.tool.len() + 2 * call.call_id.as_str().len();
                framed(call.arguments.len() + output + names, attachments)
            }
            ItemContent::Compaction { digest, .. } => Self::of_message(&crate::fold::digest_message(digest)),
            // Notices and breaks are for the user; plans and questions the model knows from the calls that made them.
            _ => Self::default(),
        }
    }

    /// The size of a message of a request.
    pub fn of_message(message: &Message) -> Self {
        let calls = message
            .tool_calls
            .iter()
            .map(|call| call.name.len() + call.arguments.len() + call.id.as_str().len())
            .sum::<usize>();
        let reasoning = message
            .reasoning
            .iter()
            .map(|piece| piece.text.len() + piece.signature.as_ref().map_or(0, String::len))
            .sum::<usize>();
        let id = message.tool_call_id.as_ref().map_or(0, |id| id.as_str().len());
        Self {
            bytes: (message.content.len() + calls + reasoning + id) as u64 + BYTES_PER_MESSAGE,
            attachments: attachments(&message.attachments),
        }
    }

    /// The size of what a model is told about tools.
    pub fn of_tools(tools: &[ToolSchema]) -> Self {
        let bytes =
            |tool: &ToolSchema| tool.name.len() + tool.description.len() + tool.parameters.get().len();
        Self { bytes: tools.iter().map(|tool| bytes(tool) as u64 + BYTES_PER_MESSAGE).sum(), attachments: 0 }
    }

    /// The size of a whole request.
    pub fn of_request(request: &ModelRequest) -> Self {
        Self::of_tools(&request.tools) + request.messages.iter().map(Self::of_message).sum()
    }
}

fn attachments(list: &[Attachment]) -> u64 {
    list.len() as u64
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            attachments: self.attachments.saturating_add(other.attachments),
        }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Add::add)
    }
}

/// Estimates tokens. One per thread and model: the ratio belongs to the model's tokenizer and the thread's material.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimator {
    bytes_per_token: f64,
    observations: u32,
    /// The last request that was counted by the vendor.
    last: Option<(Size, u64)>,
}

impl Default for Estimator {
    fn default() -> Self {
        Self { bytes_per_token: INITIAL_BYTES_PER_TOKEN, observations: 0, last: None }
    }
}

impl Estimator {
    /// An estimator that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The ratio in force.
    pub fn bytes_per_token(&self) -> f64 {
        self.bytes_per_token
    }

    /// How many tokens something of this size takes, rounded up.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of at most a few million, never negative"
    )]
    pub fn tokens(&self, size: Size) -> u64 {
        let text = (size.bytes as f64 / self.bytes_per_token).ceil() as u64;
        text.saturating_add(size.attachments.saturating_mul(TOKENS_PER_ATTACHMENT))
    }

    /// How many bytes of text fit into so many tokens, rounded down.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of at most a few million, never negative"
    )]
    pub fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 * self.bytes_per_token).floor() as usize
    }

    /// How many tokens a request of this size takes. What the vendor already counted is taken as counted; only what was
    /// added since is estimated. A request that has become smaller (after a fold) is estimated as a whole.
    pub fn request(&self, size: Size) -> u64 {
        match self.last {
            Some((counted, tokens))
                if size.bytes >= counted.bytes && size.attachments >= counted.attachments =>
            {
                let added = Size {
                    bytes: size.bytes - counted.bytes,
                    attachments: size.attachments - counted.attachments,
                };
                tokens.saturating_add(self.tokens(added))
            }
            _ => self.tokens(size),
        }
    }

    /// Learns from an answer: a request of this size had a prompt of `reported` tokens
    /// ([`Usage::prompt_tokens`](hanzo_protocol::usage::Usage::prompt_tokens)). Zero is a vendor that does not count.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of numbers of at most a few million")]
    pub fn observe(&mut self, size: Size, reported: u64) {
        if reported == 0 {
            return;
        }
        self.last = Some((size, reported));
        let text = reported.saturating_sub(size.attachments.saturating_mul(TOKENS_PER_ATTACHMENT));
        if text < SMALLEST_OBSERVATION {
            return;
        }
        let seen = (size.bytes as f64 / text as f64).clamp(BOUNDS.0, BOUNDS.1);
        // The first one replaces a guess; later ones only correct it.
        let weight = if self.observations == 0 { 1.0 } else { WEIGHT };
        self.bytes_per_token += weight * (seen - self.bytes_per_token);
        self.observations = self.observations.saturating_add(1);
    }

    /// Forgets the last counted request, because the next one does not begin with it: after a fold, a rewind or a switch
    /// of the model. The ratio stays.
    pub fn forget_last(&mut self) {
        self.last = None;
    }
}
