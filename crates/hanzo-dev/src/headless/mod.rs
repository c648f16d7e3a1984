//! The headless face: one task from start to result, over the engine API alone.
//!
//! It starts or reopens a thread, says the prompt, passes on what happens, and ends with a [`RunResult`], whether the
//! agent finished, ran into a limit, or was stopped.

mod cards;
mod output;
mod result;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use hanzo_protocol::engine::{
    EngineClient, EngineError, EngineErrorKind, List, ListKind, Request, Response, ThreadAt, ThreadFork,
    ThreadList, ThreadOptions, ThreadResume, ThreadStart, ThreadSummary, TurnStart,
};
use hanzo_protocol::event::{Event, EventContent};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::TurnEnd;
use hanzo_protocol::message::{ApiErrorKind, Attachment};
use hanzo_protocol::usage::Cost;
use serde::Serialize;

pub use cards::{Cards, Paint};
pub use output::{Output, Verbosity};
pub use result::{RunResult, Tally, Tokens, words};
pub use schema::AnswerSchema;

use crate::exit::{Exit, Failure};

/// How long a stopped turn may take to come to rest before its result is written without it.
const GRACE: Duration = Duration::from_secs(3);

/// How often an answer that is not valid against the schema is asked for again.
const REPAIRS: u32 = 2;

/// What to do.
pub struct Task {
    /// The thread to do it in.
    pub thread: ThreadChoice,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// The agent manifest.
    pub agent: Option<String>,
    /// Whether anything is kept.
    pub ephemeral: bool,
    /// How the thread works.
    pub options: ThreadOptions,
    /// What to say, one turn after the other.
    pub prompts: VecDeque<Prompt>,
    /// What the answer must look like.
    pub schema: Option<AnswerSchema>,
}

/// One input.
#[derive(Debug, Default)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Images and documents.
    pub attachments: Vec<Attachment>,
}

/// Which thread to work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadChoice {
    /// One of its own.
    New,
    /// The newest of the workspace.
    Newest(Continue),
    /// The one whose id begins so.
    Id(String, Continue),
}

/// How to go on with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continue {
    /// In it.
    Itself,
    /// In a copy of it.
    Copy,
}

/// The first line of `stream-json`.
#[derive(Debug, Serialize)]
pub struct Init {
    /// Always `init`.
    pub r#type: &'static str,
    /// Our version.
    pub version: &'static str,
    /// The thread.
    pub thread_id: ThreadId,
    /// The same under the name other programs use.
    pub session_id: ThreadId,
    /// The directory it works in.
    pub workspace: PathBuf,
    /// The agent manifest.
    pub agent: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// What the agent may call.
    pub tools: Vec<String>,
    /// What this program can do with a run, for callers that know several versions.
    pub capabilities: &'static [&'static str],
    /// How consent is asked for.
    pub posture: hanzo_protocol::engine::Posture,
    /// How the thread collaborates.
    pub mode: hanzo_protocol::engine::Mode,
    /// What confines commands.
    pub sandbox: String,
}

/// What a caller may rely on in this version's stream.
pub const CAPABILITIES: &[&str] =
    &["interrupt", "resume", "fork", "json_schema", "max_turns", "max_cost", "record", "stream_input"];

/// Why a run is stopped from outside: it ends with this code.
pub type Stop = Pin<Box<dyn Future<Output = Exit> + Send>>;

/// What the face is given by the composition root.
pub struct Surroundings<'a> {
    /// The engine.
    pub client: &'a dyn EngineClient,
    /// Turns an engine's error into an exit code and words.
    pub explain: &'a (dyn Fn(EngineError) -> Failure + Sync),
    /// The sandbox's level of a thread, which may have to be waited for.
    pub sandbox: &'a (dyn Fn(ThreadId) -> String + Sync),
}

/// Runs `task` to its end and writes the result. The exit code is that of the result; a [`Failure`] has been written as a
/// result too, and is returned for its words.
pub async fn run(
    around: &Surroundings<'_>,
    mut task: Task,
    output: &mut Output,
    mut stop: Stop,
) -> Result<Exit, Failure> {
    let mut tally = Tally::default();
    let ended = Run { ask: Ask(around), output, tally: &mut tally, stop: &mut stop }.all(&mut task).await;
    match ended {
        Ok(exit) => {
            output.result(&tally.result(exit, None)).await?;
            Ok(exit)
        }
        Err(failure) => {
            if !failure.is_broken_pipe() {
                output.result(&tally.result(failure.exit(), Some(failure.to_string()))).await?;
            }
            Err(failure)
        }
    }
}

struct Run<'a, 'o> {
    ask: Ask<'a>,
    output: &'o mut Output,
    tally: &'o mut Tally,
    stop: &'o mut Stop,
}

impl Run<'_, '_> {
    async fn all(&mut self, task: &mut Task) -> Result<Exit, Failure> {
        let ask = self.ask;
        let opened = tokio::select! {
            biased;
            opened = ask.open(task) => opened?,
            exit = &mut *self.stop => return Ok(exit),
        };
        self.tally.thread = Some(opened.id);
        ask.check_price(&opened, &task.options).await?;
        if self.output.wants_init() {
            let init = ask.init(&opened).await?;
            self.output.init(&init).await?;
        }
        let client = ask.0.client;
        let mut events = client.subscribe(opened.id, opened.cursor);
        let mut exit = Exit::Ok;
        let mut repairs = 0;
        while let Some(mut prompt) = task.prompts.pop_front() {
            if let (Some(schema), 0) = (&task.schema, repairs) {
                prompt.text = schema.asked_for(&prompt.text);
            }
            exit = self.turn(opened.id, prompt, &mut events).await?;
            if exit != Exit::Ok {
                return Ok(exit);
            }
            if let Some(schema) = task.schema.as_ref().filter(|_| task.prompts.is_empty()) {
                match schema.check(&self.tally.answer) {
                    Ok(valid) => self.tally.accept(valid),
                    Err(fault) if repairs < REPAIRS => {
                        repairs += 1;
                        self.output
                            .notice(&format!("the answer does not fit the schema, asking again: {fault}"));
                        task.prompts
                            .push_back(Prompt { text: schema.repair(&fault), attachments: Vec::new() });
                    }
                    Err(fault) => {
                        let text = format!("the answer does not fit the schema: {fault}");
                        return Err(Failure::message(Exit::Schema, text));
                    }
                }
            }
        }
        Ok(exit)
    }

    /// Says `prompt` and passes on what happens until the agent rests.
    async fn turn(
        &mut self,
        thread: ThreadId,
        prompt: Prompt,
        events: &mut (impl futures_util::Stream<Item = Event> + Unpin),
    ) -> Result<Exit, Failure> {
        self.tally.begin_turn();
        let start = TurnStart {
            thread_id: thread,
            text: prompt.text,
            attachments: prompt.attachments,
            posture: None,
        };
        self.ask.call(Request::TurnStart(start)).await?;
        let mut stopped: Option<Exit> = None;
        let mut patience = Box::pin(tokio::time::sleep(Duration::MAX));
        loop {
            tokio::select! {
                biased;
                exit = &mut *self.stop, if stopped.is_none() => {
                    stopped = Some(exit);
                    // Whatever it answers: what follows is the turn's end, or the end of our patience.
                    let _ = self.ask.call(Request::TurnInterrupt(ThreadAt { thread_id: thread })).await;
                    patience = Box::pin(tokio::time::sleep(GRACE));
                }
                () = &mut patience, if stopped.is_some() => return Ok(stopped.unwrap_or(Exit::Failure)),
                event = events.next() => {
                    let Some(event) = event else {
                        return Err(Failure::message(Exit::Failure, "the engine ended before the turn did"));
                    };
                    self.tally.event(&event);
                    self.output.event(&event).await?;
                    if let Some(exit) = self.rests(&event)? {
                        return Ok(stopped.unwrap_or(exit));
                    }
                }
            }
        }
    }

    /// What the end of the turn means, when `event` is it.
    fn rests(&self, event: &Event) -> Result<Option<Exit>, Failure> {
        match &event.content {
            EventContent::TurnCompleted { summary, .. } => Ok(Some(match summary.ended {
                TurnEnd::Completed | TurnEnd::NoProgress if self.tally.is_stuck() => Exit::ApprovalNeeded,
                TurnEnd::Completed => Exit::Ok,
                TurnEnd::Interrupted => Exit::Interrupted,
                TurnEnd::StepLimit => Exit::TurnLimit,
                TurnEnd::BudgetReached => Exit::Budget,
                TurnEnd::NoProgress => Exit::NoProgress,
                _ => Exit::Failure,
            })),
            EventContent::TurnFailed { error, .. } => {
                let (exit, hint) = match error.kind {
                    ApiErrorKind::Auth => {
                        (Exit::Auth, "\n\nhint: `hanzo-dev setup` finds keys in the environment")
                    }
                    _ => (Exit::Failure, ""),
                };
                let hint = if error.message.contains("hint:") { "" } else { hint };
                Err(Failure::message(exit, format!("{}{hint}", error.message)))
            }
            _ => Ok(None),
        }
    }
}

/// Asks the engine.
#[derive(Clone, Copy)]
struct Ask<'a>(&'a Surroundings<'a>);

impl Ask<'_> {
    async fn call(&self, request: Request) -> Result<Response, Failure> {
        self.0.client.call(request).await.map_err(|error| (self.0.explain)(error))
    }

    async fn open(&self, task: &Task) -> Result<ThreadSummary, Failure> {
        let (id, how) = match &task.thread {
            ThreadChoice::New => {
                let start = ThreadStart {
                    workspace: task.workspace.clone(),
                    agent: task.agent.clone(),
                    ephemeral: task.ephemeral,
                    options: task.options.clone(),
                };
                return match self.call(Request::ThreadStart(start)).await? {
                    Response::ThreadStart(summary) => Ok(summary),
                    other => Err(unexpected(&other)),
                };
            }
            ThreadChoice::Newest(how) => (self.newest(task).await?, *how),
            ThreadChoice::Id(prefix, how) => (find_thread(self.0, prefix).await?, *how),
        };
        let id = match how {
            Continue::Itself => id,
            Continue::Copy => {
                match self.call(Request::ThreadFork(ThreadFork { thread_id: id, until: None })).await? {
                    Response::ThreadFork(copy) => copy.id,
                    other => return Err(unexpected(&other)),
                }
            }
        };
        let resume = ThreadResume { thread_id: id, options: task.options.clone() };
        match self.call(Request::ThreadResume(resume)).await? {
            Response::ThreadResume(summary) => Ok(summary),
            other => Err(unexpected(&other)),
        }
    }

    async fn newest(&self, task: &Task) -> Result<ThreadId, Failure> {
        let list =
            ThreadList { workspace: Some(task.workspace.clone()), limit: Some(1), ..ThreadList::default() };
        match self.call(Request::ThreadList(list)).await? {
            Response::ThreadList(page) => page.entries.first().map(|thread| thread.id).ok_or_else(|| {
                let text = "there is no thread of this workspace to continue\n\nhint: `hanzo-dev threads list --all` lists those of every workspace";
                Failure::message(Exit::BadInput, text)
            }),
            other => Err(unexpected(&other)),
        }
    }

    /// A limit that cannot be kept is no limit, so it is refused instead of accepted in silence.
    async fn check_price(&self, thread: &ThreadSummary, options: &ThreadOptions) -> Result<(), Failure> {
        if options.max_cost.is_none() {
            return Ok(());
        }
        let list = List { kind: ListKind::Models, thread_id: Some(thread.id) };
        let Response::List(listed) = self.call(Request::List(list)).await? else { return Ok(()) };
        let known = listed.entries.iter().find(|model| model["reference"] == thread.model.as_str());
        if known.is_some_and(|model| !model["price"].is_null()) {
            return Ok(());
        }
        let text = format!(
            "`--max-cost` cannot be kept: the price of `{}` is not known\n\nhint: set `price` for its provider, or use `--max-turns`",
            thread.model
        );
        Err(Failure::message(Exit::BadInput, text))
    }

    async fn init(&self, thread: &ThreadSummary) -> Result<Init, Failure> {
        let list = List { kind: ListKind::Tools, thread_id: Some(thread.id) };
        let tools = match self.call(Request::List(list)).await? {
            Response::List(listed) => {
                listed.entries.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
            }
            other => return Err(unexpected(&other)),
        };
        Ok(Init {
            r#type: "init",
            version: env!("HANZO_DEV_VERSION"),
            thread_id: thread.id,
            session_id: thread.id,
            workspace: thread.workspace.clone(),
            agent: thread.agent.clone(),
            model: thread.model.clone(),
            tools,
            capabilities: CAPABILITIES,
            posture: thread.posture,
            mode: thread.mode,
            sandbox: (self.0.sandbox)(thread.id),
        })
    }
}

/// The one thread whose id begins with `prefix`.
pub async fn find_thread(around: &Surroundings<'_>, prefix: &str) -> Result<ThreadId, Failure> {
    if let Ok(id) = prefix.parse() {
        return Ok(id);
    }
    let wanted = prefix.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let list = ThreadList { cursor, limit: Some(500), ..ThreadList::default() };
        let response = around.client.call(Request::ThreadList(list)).await.map_err(around.explain)?;
        let Response::ThreadList(page) = response else { return Err(unexpected(&response)) };
        let ids = page.entries.iter().map(|thread| thread.id);
        found.extend(ids.filter(|id| !wanted.is_empty() && id.to_string().starts_with(&wanted)));
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    match found[..] {
        [one] => Ok(one),
        [] => {
            let text =
                format!("there is no thread `{prefix}`\n\nhint: `hanzo-dev threads list --all` lists them");
            Err(Failure::message(Exit::BadInput, text))
        }
        [..] => {
            let text = format!("{} threads begin with `{prefix}`\n\nhint: write more of the id", found.len());
            Err(Failure::message(Exit::BadInput, text))
        }
    }
}

/// What an engine's error means when nothing better is known.
pub fn exit_of(error: &EngineError) -> Exit {
    match error.kind {
        EngineErrorKind::NotFound | EngineErrorKind::InvalidParams | EngineErrorKind::Conflict => {
            Exit::BadInput
        }
        _ => Exit::Failure,
    }
}

/// `dollars` as the engine counts them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the command line takes amounts between nothing and a billion"
)]
pub fn cost(dollars: f64) -> Cost {
    Cost::from_nano_usd((dollars * 1e9).round() as u64)
}

fn unexpected(response: &Response) -> Failure {
    let method =
        serde_json::to_value(response).ok().and_then(|wire| Some(wire["method"].as_str()?.to_owned()));
    let method = method.unwrap_or_default();
    Failure::message(Exit::Failure, format!("the engine answered another question (`{method}`)"))
}
