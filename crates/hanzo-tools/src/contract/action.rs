//! What an action is, what it is given and what it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hanzo_protocol::envelope::{ErrorCode, Intent, Paging, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::Attachment;
use hanzo_protocol::primitives::PageCursor;
use hanzo_protocol::tool::{Effect, ReachConfinement, TimeLimit, ToolContext};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cursor;
use crate::host::Host;

/// One thing a tool can do. Its input type is the schema: field names, types and doc comments are what callers see.
///
/// ```
/// # use hanzo_protocol::{envelope::ToolError, tool::Effect};
/// # use hanzo_tools::contract::{Action, Answer, Call};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct EchoInput {
///     /// What to say.
///     text: String,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct EchoOutput {
///     text: String,
/// }
///
/// struct Echo;
///
/// impl Action for Echo {
///     const NAME: &'static str = "echo";
///     const SUMMARY: &'static str = "say it back";
///     const EXAMPLE: &'static str = r#"{"text":"hi"}"#;
///     type Input = EchoInput;
///     type Output = EchoOutput;
///
///     fn effect(&self, _: &EchoInput) -> Effect {
///         Effect::Read
///     }
///
///     async fn run(&self, _: &Call<'_>, input: EchoInput) -> Result<Answer<EchoOutput>, ToolError> {
///         Ok(Answer::new(EchoOutput { text: input.text }))
///     }
/// }
/// ```
pub trait Action: Send + Sync + 'static {
    /// The name, such as `read`.
    const NAME: &'static str;
    /// What it does, in a few words for a model.
    const SUMMARY: &'static str;
    /// The arguments of a typical call, as JSON without `action`.
    const EXAMPLE: &'static str;
    /// The strongest effect any call of it can have; what a call with arguments that make no sense is taken for.
    const WORST: Effect = Effect::Read;
    /// Other names of its fields: what callers may write, and the field it means. A nested field's other names are serde
    /// aliases.
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// Fields a model is not told of in every request: rarely needed, found with `help` and in the exact schema.
    const HIDDEN: &'static [&'static str] = &[];
    /// Fields whose name says enough: a model is told of them without a description.
    const QUIET: &'static [&'static str] = &[];
    /// The intents a call that is no read may declare; by its effect when absent.
    const INTENTS: Option<&'static [Intent]> = None;

    /// The arguments. It denies unknown fields.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What it answers.
    type Output: Serialize + JsonSchema + Send;

    /// Rewrites arguments that say the same in another shape, before they are checked.
    fn prepare(arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
    }

    /// What a call with this input does to the world.
    fn effect(&self, input: &Self::Input) -> Effect;

    /// The files a call with this input names, for the gate.
    fn targets(&self, input: &Self::Input) -> Vec<Target> {
        let _ = input;
        Vec::new()
    }

    /// Whether a call with this input asks to run outside the sandbox.
    fn confinement(&self, input: &Self::Input) -> ReachConfinement {
        let _ = input;
        ReachConfinement::Inside
    }

    /// Who ends a call that takes too long.
    fn time_limit(&self, input: &Self::Input) -> TimeLimit {
        let _ = input;
        TimeLimit::Standard
    }

    /// Runs a call. Dropping the future cancels it.
    fn run(
        &self,
        call: &Call<'_>,
        input: Self::Input,
    ) -> impl Future<Output = Result<Answer<Self::Output>, ToolError>> + Send;
}

/// A file a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As it stands in the arguments: a path or a `file:` URI.
    pub given: String,
    /// What is done with it.
    pub touch: Touch,
}

impl Target {
    /// A file that is looked at.
    pub fn read(given: impl Into<String>) -> Self {
        Self { given: given.into(), touch: Touch::Read }
    }

    /// A file that is made, changed, moved or removed.
    pub fn write(given: impl Into<String>) -> Self {
        Self { given: given.into(), touch: Touch::Write }
    }
}

/// What a call does with a file it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Touch {
    /// Looks at it.
    Read,
    /// Makes, changes, moves or removes it.
    Write,
}

/// Where the base hash of an edit comes from when the call has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum BaseHashes {
    /// From nowhere: an edit without one is a conflict.
    #[default]
    Given,
    /// From what the thread has last read or written. The classic tools have no field for it.
    FromLedger,
}

/// A call under way.
#[derive(Debug)]
pub struct Call<'a> {
    /// What the thread's tools share.
    pub host: &'a Arc<Host>,
    /// Where the call comes from.
    pub context: &'a ToolContext,
    /// What the caller says it is for.
    pub intent: Option<Intent>,
    /// Where base hashes come from that are not given.
    pub base_hashes: BaseHashes,
    pub(super) query: cursor::Query<'a>,
}

impl Call<'_> {
    /// The position in `cursor`, which must come from the same query; `None` without a cursor.
    pub fn position<P: DeserializeOwned>(&self, cursor: Option<&PageCursor>) -> Result<Option<P>, ToolError> {
        cursor.map(|cursor| cursor::decode(&self.query.digest(), cursor)).transpose()
    }

    /// Paging that says there is more from `position` on. The cursor carries everything, so it outlives the process.
    pub fn more<P: Serialize>(&self, position: &P) -> Paging {
        Paging { cursor: Some(cursor::encode(&self.query.digest(), position)), more: true }
    }

    /// Runs `work` on a thread where it may block. When the call is dropped, `work` is told so and should stop; its result is
    /// then lost.
    pub async fn blocking<T, W>(&self, work: W) -> Result<T, ToolError>
    where
        T: Send + 'static,
        W: FnOnce(&Arc<Host>, &Cancelled) -> Result<T, ToolError> + Send + 'static,
    {
        let host = Arc::clone(self.host);
        let cancelled = Cancelled::default();
        let _stop = StopOnDrop(cancelled.clone());
        match tokio::task::spawn_blocking(move || work(&host, &cancelled)).await {
            Ok(result) => result,
            Err(fault) => Err(ToolError::new(ErrorCode::Error, format!("the action failed inside: {fault}"))),
        }
    }

    /// Runs `work` that is over in microseconds unless a file system hangs. To wake another thread and be woken by it takes longer
    /// than such work, so it is done right here; the gate has looked at the same path on this very thread before. Of several
    /// workers only one does so at a time, so that another always remains.
    pub async fn briefly<T, W>(&self, work: W) -> Result<T, ToolError>
    where
        T: Send + 'static,
        W: FnOnce(&Arc<Host>) -> Result<T, ToolError> + Send + 'static,
    {
        match Here::take() {
            Some(_here) => {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(self.host)));
                done.unwrap_or_else(|_| Err(ToolError::new(ErrorCode::Error, "the action failed inside")))
            }
            None => self.blocking(move |host, _| work(host)).await,
        }
    }
}

/// Held while a worker of the runtime does what may block; one of them at a time.
struct Here;

static HERE: AtomicBool = AtomicBool::new(false);

impl Here {
    fn take() -> Option<Self> {
        (!HERE.swap(true, Ordering::Acquire)).then_some(Self)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.store(false, Ordering::Release);
    }
}

/// Whether a call has been dropped.
#[derive(Debug, Clone, Default)]
pub struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Says that it is time to stop.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error when it is time to stop.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.is_set() {
            return Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled"));
        }
        Ok(())
    }
}

struct StopOnDrop(Cancelled);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// What an action answers when it succeeds.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// The data of the envelope.
    pub data: T,
    /// What did the work, where there is a choice.
    pub backend: Option<&'static str>,
    /// Where it goes on.
    pub paging: Paging,
    /// Where untrusted content in it came from.
    pub taint: Option<Taint>,
    /// Images and documents that belong to it.
    pub attachments: Vec<Attachment>,
    /// What the sandbox was probably in the way of.
    pub denial: Option<String>,
}

impl<T> Answer<T> {
    /// A complete answer.
    pub fn new(data: T) -> Self {
        Self {
            data,
            backend: None,
            paging: Paging::default(),
            taint: None,
            attachments: Vec::new(),
            denial: None,
        }
    }

    /// The same answer, done by `backend`.
    #[must_use]
    pub fn by(mut self, backend: &'static str) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The same answer with where it goes on.
    #[must_use]
    pub fn paged(mut self, paging: Paging) -> Self {
        self.paging = paging;
        self
    }

    /// The same answer with where untrusted content in it came from.
    #[must_use]
    pub fn tainted(mut self, taint: Option<Taint>) -> Self {
        self.taint = taint;
        self
    }

    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { data, backend, paging, taint, attachments, denial } = self;
        Answer { data: change(data), backend, paging, taint, attachments, denial }
    }
}
