//! `tools/call`: one call through the engine's gate, with what happens to it on the way.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::{
    EngineClient, EngineError, EngineErrorKind, Request, Response, ToolCallRequest,
};
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::tool::ToolResult;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, ElicitRequest, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::connection::{Happening, Happenings, Known, Runs, Thread, unexpected};
use super::consent::{Asked, Asking, result_of};
use super::listing::result;
use crate::client::MethodCall;

/// How many calls wait for a client's second request, and for how long.
const MOST_PARKED: usize = 64;
const PARKED_FOR: Duration = Duration::from_mins(10);
/// The most text of a progress notification.
const SHOWN: usize = 2_000;
/// The name under which consent is asked for in a result.
const INPUT: &str = "consent";

/// What is to be called.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) runs: Runs,
}

impl Wanted {
    /// A call of a method of another server.
    pub(super) fn method(MethodCall { tool, arguments }: MethodCall) -> Self {
        Self { tool, arguments, runs: Runs::Tool }
    }
}

/// How far a call came.
pub(super) enum Driven {
    /// To its end.
    Done(ToolResult),
    /// To a question, which the client answers with another request.
    Asked(InputRequiredResult),
}

impl Driven {
    /// The answer to a `tools/call`.
    pub(super) fn into_response(self) -> Result<CallToolResponse, ErrorData> {
        match self {
            Self::Done(done) => result(done).map(Into::into),
            Self::Asked(asked) => Ok(asked.into()),
        }
    }
}

/// What a client says when it goes on with a request that ended with a question.
pub(super) struct Again {
    pub(super) key: String,
    pub(super) responses: Option<InputResponses>,
}

impl Again {
    /// From the two fields of a request's parameters.
    pub(super) fn of(key: Option<String>, responses: Option<InputResponses>) -> Option<Self> {
        key.map(|key| Self { key, responses })
    }
}

/// A call under way.
struct Running {
    call: BoxFuture<'static, Result<ToolResult, EngineError>>,
    happenings: Option<Happenings>,
}

/// What is between a call and its client.
struct Line<'a> {
    asking: Asking,
    peer: &'a Peer<RoleServer>,
    /// Under which it wants to be shown what happens.
    token: Option<ProgressToken>,
    /// Whether it still wants the answer.
    cancelled: CancellationToken,
}

impl<'a> Line<'a> {
    fn of(context: &'a RequestContext<RoleServer>) -> Self {
        Self {
            asking: Asking::of(context),
            peer: &context.peer,
            token: context.meta.get_progress_token(),
            cancelled: context.ct.clone(),
        }
    }
}

/// How far a call came by itself.
enum Reached {
    End(ToolResult),
    Question(Asked),
}

/// Calls that wait for their client to call again with an answer.
#[derive(Default)]
pub(super) struct Parked(Mutex<HashMap<String, Waiting>>);

struct Waiting {
    since: Instant,
    wanted: Wanted,
    running: Running,
    asked: Asked,
}

impl Parked {
    fn park(&self, wanted: Wanted, running: Running, asked: Asked) -> Result<String, ErrorData> {
        let key = random_key()?;
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parked.retain(|_, waiting| waiting.since.elapsed() < PARKED_FOR);
        if parked.len() >= MOST_PARKED {
            return Err(ErrorData::internal_error("too many calls wait for an answer", None));
        }
        parked.insert(key.clone(), Waiting { since: Instant::now(), wanted, running, asked });
        Ok(key)
    }

    fn take(&self, key: &str, wanted: &Wanted) -> Option<Waiting> {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The answer was given for this call and for no other.
        parked
            .get(key)
            .filter(|waiting| waiting.since.elapsed() < PARKED_FOR && waiting.wanted == *wanted)?;
        parked.remove(key)
    }
}

/// Nobody can guess it, so whoever has it is who it was given to.
fn random_key() -> Result<String, ErrorData> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ErrorData::internal_error(format!("no random number: {error}"), None))?;
    let mut key = String::new();
    for byte in bytes {
        let _ = write!(key, "{byte:02x}");
    }
    Ok(key)
}

/// Starts a call and drives it.
pub(super) async fn call(
    thread: &Arc<Thread>,
    engine: &Arc<dyn EngineClient>,
    parked: &Parked,
    wanted: Wanted,
    context: &RequestContext<RoleServer>,
) -> Result<Driven, ErrorData> {
    let line = Line::of(context);
    let watched = line.asking != Asking::No || line.token.is_some();
    let item = watched.then(ItemId::new);
    let happenings = item.map(|item| thread.watch(item, wanted.runs));
    let call = begin(Arc::clone(engine), thread.id, wanted.clone(), item);
    drive_or_park(wanted, Running { call, happenings }, engine, parked, &line).await
}

/// A call of a tool by the short way. Nearly all are over at once; only one that is not is watched, for what it has to show or to ask.
pub(super) fn call_directly(
    thread: Arc<Thread>,
    engine: Arc<dyn EngineClient>,
    wanted: Wanted,
    known: Arc<Known>,
    token: Option<ProgressToken>,
) -> BoxFuture<'static, Result<ToolResult, ErrorData>> {
    let watched = known.asking != Asking::No || token.is_some();
    let item = watched.then(ItemId::new);
    let mut call = begin(Arc::clone(&engine), thread.id, wanted, item);
    // It holds the thread: a client that leaves takes it along.
    Box::pin(async move {
        let begun = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        let item = match (begun, item) {
            (Poll::Ready(done), _) => return done.map_err(|error| failed(&error)),
            (Poll::Pending, None) => return call.await.map_err(|error| failed(&error)),
            (Poll::Pending, Some(item)) => item,
        };
        // What has happened already is told to whoever begins to watch.
        let happenings = Some(thread.watch(item, Runs::Tool));
        // Dropping this is how it is cancelled.
        let cancelled = CancellationToken::new();
        let line = Line { asking: known.asking, peer: &known.peer, token, cancelled };
        match drive(&mut Running { call, happenings }, &engine, &line).await? {
            Reached::End(result) => Ok(result),
            Reached::Question(_) => Err(failed(&unexpected())),
        }
    })
}

/// Goes on with a call whose client was asked something and answers.
pub(super) async fn go_on(
    again: &Again,
    engine: &Arc<dyn EngineClient>,
    parked: &Parked,
    wanted: &Wanted,
    context: &RequestContext<RoleServer>,
) -> Result<Driven, ErrorData> {
    let Some(Waiting { wanted, running, asked, .. }) = parked.take(&again.key, wanted) else {
        return Err(ErrorData::invalid_params("no call with this request state waits for an answer", None));
    };
    let Some(answer) = again.responses.as_ref().and_then(|responses| responses.get(INPUT)) else {
        // Without an answer it is asked again.
        return ask_by_result(wanted, running, asked, parked);
    };
    engine.call(asked.answered(result_of(answer).as_ref())).await.map_err(|error| failed(&error))?;
    drive_or_park(wanted, running, engine, parked, &Line::of(context)).await
}

/// The call itself. Nothing happens before it is polled.
fn begin(
    engine: Arc<dyn EngineClient>,
    thread_id: ThreadId,
    wanted: Wanted,
    item_id: Option<ItemId>,
) -> BoxFuture<'static, Result<ToolResult, EngineError>> {
    let request = ToolCallRequest { thread_id, tool: wanted.tool, arguments: wanted.arguments, item_id };
    Box::pin(async move {
        match engine.call(Request::ToolCall(request)).await? {
            Response::ToolCall(result) => Ok(result),
            _ => Err(unexpected()),
        }
    })
}

/// Waits for a call's end, or puts it aside for as long as its client thinks about a question.
async fn drive_or_park(
    wanted: Wanted,
    mut running: Running,
    engine: &Arc<dyn EngineClient>,
    parked: &Parked,
    line: &Line<'_>,
) -> Result<Driven, ErrorData> {
    match drive(&mut running, engine, line).await? {
        Reached::End(result) => Ok(Driven::Done(result)),
        Reached::Question(asked) => ask_by_result(wanted, running, asked, parked),
    }
}

/// Waits for a call's end, or for a question that is asked by a result. Dropping it, or the client's cancelling it, interrupts the call.
async fn drive(
    running: &mut Running,
    engine: &Arc<dyn EngineClient>,
    line: &Line<'_>,
) -> Result<Reached, ErrorData> {
    let mut shown = 0_u32;
    let mut open: Option<BoxFuture<'_, ()>> = None;
    loop {
        let happening = async {
            match running.happenings.as_mut() {
                Some(happenings) => happenings.next().await,
                None => std::future::pending().await,
            }
        };
        let answering = async {
            match open.as_mut() {
                Some(answering) => answering.await,
                None => std::future::pending().await,
            }
        };
        let asked = tokio::select! {
            biased;
            done = &mut running.call => return done.map(Reached::End).map_err(|error| failed(&error)),
            () = line.cancelled.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
            () = answering => {
                open = None;
                continue;
            }
            happening = happening => match happening {
                Happening::Output(text) => {
                    if let Some(token) = &line.token {
                        shown += 1;
                        progress(line.peer, token, shown, &text).await;
                    }
                    continue;
                }
                Happening::Approval(approval) => Asked::Approval(approval),
                Happening::Question(question) => Asked::Question(question),
            },
        };
        match line.asking {
            Asking::ByResult => return Ok(Reached::Question(asked)),
            _ => open = Some(ask_by_request(engine, asked, line.peer)),
        }
    }
}

/// Asks by a result. The call waits; it goes on with the client's next request.
fn ask_by_result(
    wanted: Wanted,
    running: Running,
    asked: Asked,
    parked: &Parked,
) -> Result<Driven, ErrorData> {
    let form = asked
        .form()
        .ok_or_else(|| ErrorData::internal_error("the question cannot be put as a form", None))?;
    let requests =
        InputRequests::from([(INPUT.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
    let key = parked.park(wanted, running, asked)?;
    Ok(Driven::Asked(InputRequiredResult::new(Some(requests), Some(key))))
}

fn ask_by_request<'a>(
    engine: &'a Arc<dyn EngineClient>,
    asked: Asked,
    peer: &'a Peer<RoleServer>,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let result = match asked.form() {
            Some(form) => peer.create_elicitation(form).await.ok(),
            None => None,
        };
        // Somebody else may have answered first, and then there is nothing to tell.
        let _ = engine.call(asked.answered(result.as_ref())).await;
    })
}

async fn progress(peer: &Peer<RoleServer>, token: &ProgressToken, count: u32, text: &str) {
    let end = text.trim_end();
    let message = &end[end.ceil_char_boundary(end.len().saturating_sub(SHOWN))..];
    let shown = ProgressNotificationParam::new(token.clone(), f64::from(count)).with_message(message);
    // A client that is gone is found out by whoever reads from it.
    let _ = peer.notify_progress(shown).await;
}

/// An engine's error as the protocol has it.
pub(super) fn failed(error: &EngineError) -> ErrorData {
    match error.kind {
        EngineErrorKind::NotFound | EngineErrorKind::InvalidParams => {
            ErrorData::invalid_params(error.message.clone(), None)
        }
        _ => ErrorData::internal_error(error.message.clone(), None),
    }
}
