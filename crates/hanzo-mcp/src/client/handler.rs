//! What a server may say of its own accord: questions, log lines, progress, and that its lists have changed.

// Roots, sampling and logging are deprecated by the newest protocol; servers of all others use them.
#![expect(deprecated, reason = "servers of older protocol versions use them")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::tool::OutputSink;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability,
    Implementation, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProgressToken, Role, Root, RootsCapabilities, SamplingCapability, SamplingMessage,
    SamplingMessageContentBlock, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::elicitation::with_defaults;
use super::host::{
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, LogSink, Sampler, Sampling, SamplingTurn,
    Speaker,
};
use super::text::{MOST_DESCRIPTION, clean, line};

/// What is known about calls while they run.
#[derive(Default)]
struct Calls {
    /// In the order in which they began.
    threads: Vec<(u64, ThreadId)>,
    progress: HashMap<ProgressToken, Arc<dyn OutputSink>>,
}

/// What a connection hears, shared between the protocol's loop and whoever calls.
pub(crate) struct Handler {
    server: String,
    roots: Vec<(String, String)>,
    elicitor: Option<Arc<dyn Elicitor>>,
    sampler: Option<Arc<dyn Sampler>>,
    log: Option<Arc<dyn LogSink>>,
    calls: Mutex<Calls>,
    numbers: AtomicU64,
    /// Rung when the server says that a list has changed.
    pub(crate) changed: Notify,
    /// Rung when the connection turned out not to work any more.
    pub(crate) broken: Notify,
    /// Counts signs of life; while a person is asked, time does not run.
    pub(crate) activity: watch::Sender<Activity>,
}

/// Signs that a server is busy with what it was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// How many there were.
    pub(crate) signs: u64,
    /// How many of its questions wait for an answer.
    pub(crate) questions: usize,
}

impl Handler {
    pub(crate) fn new(
        server: &str,
        roots: Vec<(String, String)>,
        elicitor: Option<Arc<dyn Elicitor>>,
        sampler: Option<Arc<dyn Sampler>>,
        log: Option<Arc<dyn LogSink>>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            roots,
            elicitor,
            sampler,
            log,
            calls: Mutex::default(),
            numbers: AtomicU64::default(),
            changed: Notify::new(),
            broken: Notify::new(),
            activity: watch::Sender::new(Activity::default()),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of `thread` begins; it is over when what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>, thread: Option<ThreadId>) -> Option<OpenCall> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.calls().threads.push((number, thread?));
        Some(OpenCall { handler: Arc::clone(self), number })
    }

    /// Progress under `token` goes to `sink`.
    pub(crate) fn watch(
        self: &Arc<Self>,
        token: ProgressToken,
        sink: Option<Arc<dyn OutputSink>>,
    ) -> OpenProgress {
        if let Some(sink) = sink {
            self.calls().progress.insert(token.clone(), sink);
        }
        OpenProgress { handler: Arc::clone(self), token }
    }

    /// The thread whose call a question most likely belongs to: the latest that still runs. Older protocols do not say.
    fn thread(&self) -> Option<ThreadId> {
        self.calls().threads.last().map(|(_, thread)| *thread)
    }

    fn sign_of_life(&self) {
        self.activity.send_modify(|activity| activity.signs += 1);
    }

    fn question(&self) -> OpenQuestion<'_> {
        self.activity.send_modify(|activity| activity.questions += 1);
        OpenQuestion(self)
    }

    pub(crate) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let Some(elicitor) = &self.elicitor else { return ElicitResult::new(ElicitationAction::Decline) };
        let (message, form) = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                (message, ElicitationForm::Fields(schema))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message, ElicitationForm::Url(url))
            }
            _ => return ElicitResult::new(ElicitationAction::Decline),
        };
        let _open = self.question();
        let elicitation = Elicitation {
            server: self.server.clone(),
            thread: self.thread(),
            message: clean(&message, MOST_DESCRIPTION),
            form: form.clone(),
        };
        match elicitor.elicit(elicitation).await {
            ElicitationAnswer::Accept(content) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                match form {
                    ElicitationForm::Fields(schema) => {
                        accepted.with_content(with_defaults(&schema, &content))
                    }
                    ElicitationForm::Url(_) => accepted,
                }
            }
            ElicitationAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    pub(crate) async fn sample(
        &self,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refuse = |reason: String| ErrorData::invalid_request(reason, None);
        let sampler = self.sampler.as_ref().ok_or_else(|| refuse("this client asks no models".to_owned()))?;
        let _open = self.question();
        let sampling = Sampling {
            server: self.server.clone(),
            thread: self.thread(),
            system: request.system_prompt.map(|text| clean(&text, 100_000)),
            messages: request.messages.iter().map(turn).collect(),
            max_tokens: request.max_tokens,
            temperature: request.temperature,
        };
        let sampled = sampler.sample(sampling).await.map_err(refuse)?;
        let message = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(sampled.text));
        let reason = if sampled.cut {
            CreateMessageResult::STOP_REASON_END_MAX_TOKEN
        } else {
            CreateMessageResult::STOP_REASON_END_TURN
        };
        Ok(CreateMessageResult::new(message, sampled.model).with_stop_reason(reason))
    }

    pub(crate) fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.roots.iter().map(|(uri, name)| Root::new(uri).with_name(name)).collect())
    }
}

fn turn(message: &SamplingMessage) -> SamplingTurn {
    let block = |block: &SamplingMessageContentBlock| match block {
        SamplingMessageContentBlock::Text(text) => text.text.clone(),
        SamplingMessageContentBlock::Image(_) => "[an image]".to_owned(),
        SamplingMessageContentBlock::Audio(_) => "[a recording]".to_owned(),
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    SamplingTurn {
        speaker: match message.role {
            Role::Assistant => Speaker::Assistant,
            Role::User => Speaker::User,
        },
        text: message.content.clone().into_vec().iter().map(block).collect::<Vec<_>>().join("\n"),
    }
}

/// A call that runs.
pub(crate) struct OpenCall {
    handler: Arc<Handler>,
    number: u64,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.handler.calls().threads.retain(|(number, _)| *number != self.number);
    }
}

/// A call whose progress is watched.
pub(crate) struct OpenProgress {
    handler: Arc<Handler>,
    token: ProgressToken,
}

impl Drop for OpenProgress {
    fn drop(&mut self) {
        self.handler.calls().progress.remove(&self.token);
    }
}

/// A question that waits for its answer.
struct OpenQuestion<'a>(&'a Handler);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.activity.send_modify(|activity| {
            activity.questions = activity.questions.saturating_sub(1);
            activity.signs += 1;
        });
    }
}

/// The handler as the protocol's loop holds it.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Handler>);

impl ClientHandler for Shared {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.0.sample(params).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.0.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.0.elicit(request).await)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.sign_of_life();
        let sink = self.0.calls().progress.get(&params.progress_token).cloned();
        if let Some(sink) = sink {
            let share = match params.total {
                Some(total) if total > 0.0 => format!("{}/{total}", params.progress),
                _ => params.progress.to_string(),
            };
            let said = params.message.map(|text| format!(" {}", line(&text, 500))).unwrap_or_default();
            sink.push(&format!("[{share}]{said}\n"));
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(log) = &self.0.log {
            let level = serde_json::to_value(params.level).ok();
            let level = level.as_ref().and_then(Value::as_str).unwrap_or("info");
            let text = match &params.data {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            log.log(&self.0.server, level, &line(&text, 2_000));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if !self.0.roots.is_empty() {
            let mut roots = RootsCapabilities::default();
            roots.list_changed = Some(false);
            capabilities.roots = Some(roots);
        }
        if self.0.elicitor.is_some() {
            let form = FormElicitationCapability::default();
            let elicitation =
                ElicitationCapability::new().with_form(form).with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        if self.0.sampler.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        let us = Implementation::new("hanzo-dev", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us)
    }
}
