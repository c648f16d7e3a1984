//! An open thread: its conversation as the model sees it, and what it works with.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hanzo_protocol::blob::BlobStore;
use hanzo_protocol::engine::{Mode, Posture, ThreadOptions, ThreadSummary};
use hanzo_protocol::ids::{ItemId, ThreadId, TurnId};
use hanzo_protocol::item::{Item, ItemContent, Taint, Visibility};
use hanzo_protocol::message::{
    ApiError, ApiErrorKind, Attachment, AttachmentSource, Effort, Message, ModelRequest,
};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::tool::{Tool, ToolCaller};
use hanzo_protocol::usage::{Cost, Usage};
use hanzo_store::{Lease, StoreError};
use jiff::Timestamp;

use super::calls::{Calls, LiveCall};
use super::checkpoints::Checkpoints;
use super::conversation::Weaver;
use super::draft::Draft;
use super::journal::{Beside, Journal};
use super::prefix::{LastRequest, Prefix, Sent};
use super::step::Settling;
use crate::budget::Budget;
use crate::gate::{CallOrigin, GateStep};
use crate::instructions::Nested;
use crate::parts::{Model, ThreadParts};
use crate::tokens::{Estimator, Size};

/// What somebody says to the agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    pub(crate) text: String,
    pub(crate) attachments: Vec<Attachment>,
    /// The posture until the turn that it begins ends.
    pub(crate) posture: Option<Posture>,
}

impl Input {
    /// Words and nothing else.
    pub(crate) fn text(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Inputs that join the running turn.
pub(crate) type Steering = Arc<Mutex<VecDeque<Input>>>;

/// An open thread.
pub(crate) struct Thread {
    pub(super) id: ThreadId,
    pub(super) journal: Arc<Journal>,
    pub(super) calls: Arc<Calls>,
    pub(super) blobs: Arc<dyn BlobStore>,
    pub(super) parts: ThreadParts,
    pub(super) summary: ThreadSummary,
    pub(super) effort: Option<Effort>,
    pub(super) options: ThreadOptions,
    pub(super) caller: ToolCaller,
    pub(super) model: Model,
    /// The model from the next turn on.
    pub(super) next_model: Option<Model>,
    /// The next request, which only ever grows.
    pub(super) request: ModelRequest,
    pub(super) weaver: Weaver,
    pub(super) size: Size,
    pub(super) estimator: Estimator,
    /// The prompt of the last request, as the vendor counted.
    pub(super) reported: u64,
    /// What the last answered request began with; `None` before the first, when there is no prefix that can break.
    pub(super) sent: Option<Sent>,
    /// What is kept with the thread of that request.
    pub(super) kept: Option<LastRequest>,
    /// The beginning whose breaks are recorded.
    pub(super) recorded: Option<Prefix>,
    /// How often the conversation was told anew instead of being appended to.
    pub(super) telling: u64,
    pub(super) budget: Arc<Budget>,
    pub(super) steering: Steering,
    pub(super) checkpoints: Checkpoints,
    pub(super) nested: Nested,
    /// What the model was told about today and here.
    pub(super) surroundings: Option<String>,
    /// The mode the model was told of last.
    pub(super) told_mode: Mode,
    /// A mode the thread itself went into during the turn.
    pub(super) own_mode: Option<Mode>,
    /// The engine's own tools, for when the others change.
    pub(super) own: Vec<Arc<dyn Tool>>,
    pub(super) turn: Turn,
    /// Untrusted content its parent had seen when it began it.
    pub(super) inherited_taint: Option<Taint>,
    /// Whether it is forgotten when it is closed, and leaves nothing behind.
    pub(super) ephemeral: bool,
    pub(super) _lease: Option<Lease>,
}

/// The running turn.
#[derive(Default)]
pub(crate) struct Turn {
    pub(super) id: Option<TurnId>,
    /// The posture while it runs, where it is not the thread's. It is never stored: what was granted until a turn ends is not
    /// granted to whoever goes on with the thread after a crash.
    pub(super) posture: Option<Posture>,
    pub(super) steps: u64,
    pub(super) usage: Usage,
    pub(super) cost: Option<Cost>,
    pub(super) spent_before: Cost,
    pub(super) refused: u32,
    pub(super) prefix_breaks: u32,
    /// What its requests begin with, once one was answered.
    pub(super) prefix: Option<Prefix>,
    pub(super) taint: Option<Taint>,
    /// The answer that is being heard.
    pub(super) draft: Option<Draft>,
    /// What the model said in the step whose calls are running.
    pub(super) said: Vec<Item>,
    /// Those calls.
    pub(super) open: Vec<Arc<LiveCall>>,
    /// Stores those that are over.
    pub(super) settling: Option<Settling>,
    /// The last thing the agent said.
    pub(super) last_words: String,
}

/// What holds for one model request and the calls it leads to.
#[derive(Clone)]
pub(super) struct StepContext {
    pub(super) model: Model,
    pub(super) gate: GateStep,
}

/// Why a turn cannot go on.
#[derive(Debug)]
pub(crate) enum Failure {
    Api(ApiError),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Api(error) => error,
            Failure::Store(error) => Self {
                kind: ApiErrorKind::Local,
                message: format!("the turn was stopped because it could not be stored: {error}"),
                status: None,
                retry_after_ms: None,
            },
        }
    }
}

impl Thread {
    /// What its calls share.
    pub(crate) fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }

    /// A new item of the running turn.
    pub(super) fn item(&self, content: ItemContent) -> Item {
        new_item(self.id, self.turn.id, content)
    }

    /// What holds for the next request.
    pub(super) fn capture(&self) -> StepContext {
        StepContext {
            model: self.model.clone(),
            gate: GateStep {
                mode: self.summary.mode,
                posture: self.turn.posture.unwrap_or(self.summary.posture),
                attendance: self.options.attendance,
                caller: self.caller,
                origin: CallOrigin::Agent,
                user: None,
                taint: self.turn.taint,
            },
        }
    }

    /// Tells the model: appends the messages of `items` to the next request.
    pub(super) async fn weave(&mut self, items: &[Item]) {
        let before = self.request.messages.len();
        for item in items {
            self.weaver.push(item, &mut self.request.messages);
        }
        self.weaver.finish(&mut self.request.messages);
        let blobs = Arc::clone(&self.blobs);
        for message in &mut self.request.messages[before..] {
            inline(message, blobs.as_ref()).await;
        }
        self.size += self.request.messages[before..].iter().map(Size::of_message).sum();
    }

    /// Tells the model and keeps it: what the user says, and what the host adds.
    pub(super) async fn append(&mut self, items: Vec<Item>) -> Result<(), StoreError> {
        // Told first: should the store fail or the turn be interrupted here, the model still knows what the user said.
        self.weave(&items).await;
        self.journal.write(&items, Beside::default()).await
    }

    /// Makes the request anew from the items the model is told.
    pub(super) async fn rebuild(&mut self, items: &[Item]) {
        self.telling += 1;
        self.request.messages.truncate(1);
        self.size =
            Size::of_tools(&self.request.tools) + self.request.messages.iter().map(Size::of_message).sum();
        self.estimator.forget_last();
        self.weave(items).await;
    }

    /// Ends the step whose calls are running: its answer and their results are told to the model.
    pub(super) async fn close_step(&mut self) {
        let mut items = std::mem::take(&mut self.turn.said);
        items.extend(self.turn.open.drain(..).map(|call| call.item()));
        self.weave(&items).await;
    }
}

/// A new item.
pub(crate) fn new_item(thread: ThreadId, turn: Option<TurnId>, content: ItemContent) -> Item {
    Item {
        id: ItemId::new(),
        thread_id: thread,
        turn_id: turn,
        created_at: Timestamp::now(),
        visibility: Visibility::Active,
        taint: None,
        content,
    }
}

/// Puts the bytes of stored attachments into a message; a provider has no store. One that is gone is left out and named.
async fn inline(message: &mut Message, blobs: &dyn BlobStore) {
    let stored = |attachment: &Attachment| matches!(attachment.source, AttachmentSource::Stored { .. });
    if !message.attachments.iter().any(stored) {
        return;
    }
    let mut attachments = Vec::new();
    for mut attachment in std::mem::take(&mut message.attachments) {
        if let AttachmentSource::Stored { r#ref } = &attachment.source {
            let hash = r#ref.as_str().parse::<ContentHash>();
            let bytes = match &hash {
                Ok(hash) => blobs.get(hash).await.ok().flatten(),
                Err(_) => None,
            };
            let Some(bytes) = bytes else {
                let name = attachment.name.as_deref().unwrap_or("an attachment");
                let _ = write!(message.content, "\n[{name} is no longer stored]");
                continue;
            };
            attachment.source = AttachmentSource::Inline { base64: STANDARD.encode(bytes) };
        }
        attachments.push(attachment);
    }
    message.attachments = attachments;
}
