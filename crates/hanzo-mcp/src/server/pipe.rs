//! A connection over a pipe: standard input and output, or anything else that carries bytes both ways. It finds messages, reads them,
//! and keeps what is wrong with them away from the protocol: a client may send anything at all and is answered.
//!
//! Requests wait when too many are under way; what answers or cancels one never waits behind them. Plain calls go the short way
//! ([`direct`]), everything else through the SDK.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use hanzo_protocol::BoxFuture;
use rmcp::ServerHandler;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, ServerInitializeError, ServiceExt as _};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use super::direct::{self, Direct, Hurry, PlainCall};
use super::framing::{Decoder, Frame, Framing, MAX_MESSAGE};
use super::outlet::{Outlet, write, write_now};

/// How many requests of a connection are under way at once; the others wait.
const MOST_RUNNING: usize = 64;
/// How many bytes of requests wait, and how many requests, before the client does. A few are read ahead so that a call can be
/// cancelled, or a question answered, while all places are taken.
const MOST_WAITING: usize = 2 * MAX_MESSAGE;
const MOST_AHEAD: usize = 256;
/// How many messages are between the tasks of a connection.
const CHANNEL: usize = 64;
/// How much is read at once, and how much is written at once where there is that much.
pub(super) const CHUNK: usize = 64 * 1024;
/// How long calls that are under way have to end when their client has said its last, as long as the SDK gives them.
const ENDING: Duration = Duration::from_secs(5);
/// How long the last answers have to reach a client that is leaving.
const PARTING: Duration = Duration::from_secs(2);

/// Serves one client until it is gone. Nothing it sends ends this early.
pub async fn serve<H, R, W>(handler: H, input: R, output: W)
where
    H: ServerHandler + Direct + Clone,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (incoming, receiver) = mpsc::channel(CHANNEL);
    let (outgoing, written) = mpsc::channel(CHANNEL);
    let desk = Arc::new(Desk::default());
    let pipe = Pipe {
        incoming: Arc::new(AsyncMutex::new(receiver)),
        outgoing: outgoing.clone(),
        desk: Arc::clone(&desk),
    };
    let outlet = Arc::new(Mutex::new(Outlet::new(output)));
    let writer = tokio::spawn(write(Arc::clone(&outlet), written, Arc::clone(&desk)));
    let reader = Reader {
        server: handler.clone(),
        outlet,
        incoming,
        outgoing,
        desk: Arc::clone(&desk),
        waiting: VecDeque::new(),
        queued: HashSet::new(),
        bytes: 0,
    };
    let reader = tokio::spawn(read(input, reader));
    loop {
        match handler.clone().serve(pipe.clone()).await {
            Ok(running) => {
                // How it ended is the same to us: the client is gone.
                let _ = running.waiting().await;
                break;
            }
            // It sent something else than a greeting, and may still send one.
            Err(
                ServerInitializeError::ExpectedInitializeRequest(_)
                | ServerInitializeError::InitializeFailed(_),
            ) => {}
            Err(_) => break,
        }
    }
    reader.abort();
    let _ = reader.await;
    let mut under_way = std::mem::take(&mut desk.state().direct);
    let _ = tokio::time::timeout(ENDING, async { while under_way.join_next().await.is_some() {} }).await;
    drop((under_way, pipe));
    let _ = tokio::time::timeout(PARTING, writer).await;
}

/// The connection as the protocol sees it.
#[derive(Clone)]
struct Pipe {
    incoming: Arc<AsyncMutex<mpsc::Receiver<ClientJsonRpcMessage>>>,
    outgoing: mpsc::Sender<Bytes>,
    desk: Arc<Desk>,
}

/// The client does not take what is written to it any more.
#[derive(Debug, thiserror::Error)]
#[error("the client is gone")]
struct Gone;

impl Transport<RoleServer> for Pipe {
    type Error = Gone;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let text = serde_json::to_vec(&message).map(Bytes::from);
        let outgoing = self.outgoing.clone();
        let desk = Arc::clone(&self.desk);
        async move {
            let Ok(mut text) = text else { return Ok(()) };
            if let Some(id) = answered {
                match desk.over(&id, text) {
                    Some(now) => text = now,
                    None => return Ok(()),
                }
            }
            outgoing.send(text).await.map_err(|_| Gone)
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.lock().await.recv().await
    }

    async fn close(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// What is under way.
#[derive(Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    /// Something is over.
    room: Notify,
    framing: AtomicU8,
}

#[derive(Default)]
struct State {
    running: HashSet<RequestId>,
    /// Requests that came in a batch, whose answers go together.
    batched: HashMap<RequestId, u64>,
    batches: HashMap<u64, Batch>,
    next_batch: u64,
    /// Calls under way that the SDK does not know of, and how to end one.
    direct: JoinSet<()>,
    ends: HashMap<RequestId, AbortHandle>,
}

struct Batch {
    left: usize,
    answers: Vec<Bytes>,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes a request up; whether there is room for it.
    fn take_up(&self, id: &RequestId) -> bool {
        let mut state = self.state();
        if state.running.len() >= MOST_RUNNING {
            return false;
        }
        state.running.insert(id.clone());
        true
    }

    /// Whether there is room for a request that is new.
    fn admits(&self, id: &RequestId) -> bool {
        let state = self.state();
        let is_new = !state.running.contains(id) && !state.batched.contains_key(id);
        is_new && state.running.len() < MOST_RUNNING
    }

    /// Goes on with a call beside everything else; its answer is written when there is one.
    fn go_on(
        self: &Arc<Self>,
        id: RequestId,
        call: BoxFuture<'static, direct::Answer>,
        outgoing: mpsc::Sender<Bytes>,
    ) {
        let desk = Arc::clone(self);
        let own = id.clone();
        let task = async move {
            let answer = call.await;
            let text = direct::written(own.clone(), answer).and_then(|text| desk.over(&own, text));
            if let Some(text) = text {
                // A client that is gone is found out by whoever reads from it.
                let _ = outgoing.send(text).await;
            }
        };
        let mut state = self.state();
        while state.direct.try_join_next().is_some() {}
        let end = state.direct.spawn(task);
        state.running.insert(id.clone());
        state.ends.insert(id, end);
    }

    fn knows(&self, id: &RequestId) -> bool {
        let state = self.state();
        state.running.contains(id) || state.batched.contains_key(id)
    }

    /// A request is answered. Returns what to write now: nothing while others of its batch are under way.
    fn over(&self, id: &RequestId, answer: Bytes) -> Option<Bytes> {
        let mut state = self.state();
        state.running.remove(id);
        state.ends.remove(id);
        let written = match state.batched.remove(id) {
            None => Some(answer),
            Some(number) => state.answer(number, Some(answer)),
        };
        drop(state);
        self.room.notify_one();
        written
    }

    /// A request is cancelled and gets no answer. Returns what to write now.
    fn cancelled(&self, id: &RequestId) -> Option<Bytes> {
        let mut state = self.state();
        state.running.remove(id);
        if let Some(end) = state.ends.remove(id) {
            end.abort();
        }
        let number = state.batched.remove(id);
        let written = number.and_then(|number| state.answer(number, None));
        drop(state);
        self.room.notify_one();
        written
    }

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool {
        self.state().running.is_empty()
    }

    pub(super) fn framing(&self) -> Framing {
        if self.framing.load(Ordering::Relaxed) == 1 { Framing::Headers } else { Framing::Lines }
    }
}

impl State {
    fn answer(&mut self, number: u64, answer: Option<Bytes>) -> Option<Bytes> {
        let batch = self.batches.get_mut(&number)?;
        batch.answers.extend(answer);
        batch.left = batch.left.saturating_sub(1);
        if batch.left > 0 {
            return None;
        }
        let batch = self.batches.remove(&number)?;
        (!batch.answers.is_empty()).then(|| joined(&batch.answers))
    }
}

/// Answers as one array.
fn joined(answers: &[Bytes]) -> Bytes {
    let mut text = BytesMut::from(&b"["[..]);
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            text.extend_from_slice(b",");
        }
        text.extend_from_slice(answer);
    }
    text.extend_from_slice(b"]");
    text.freeze()
}

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// By itself.
    Alone,
    /// With others, and its id has been looked at.
    InBatch,
}

/// Where a message stands among those that came together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Others follow: its answer can be written with theirs.
    Amid,
    /// The client waits for its answer.
    Last,
}

struct Reader<H, W> {
    server: H,
    outlet: Arc<Mutex<Outlet<W>>>,
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<Bytes>,
    desk: Arc<Desk>,
    /// Requests for which there is no room yet.
    waiting: VecDeque<(RequestId, ClientJsonRpcMessage, usize)>,
    /// Their ids.
    queued: HashSet<RequestId>,
    bytes: usize,
}

async fn read<H, W>(mut input: impl AsyncRead + Unpin, mut reader: Reader<H, W>)
where
    H: Direct,
    W: AsyncWrite + Unpin,
{
    let mut decoder = Decoder::default();
    let mut hurry = Hurry::new();
    let mut open = true;
    while open || !reader.waiting.is_empty() {
        let room = Arc::clone(&reader.desk);
        decoder.buffer().reserve(CHUNK);
        tokio::select! {
            biased;
            read = input.read_buf(decoder.buffer()), if open && reader.has_room() => {
                // A pipe that breaks is a client that is gone.
                open = read.is_ok_and(|bytes| bytes > 0);
                hurry.heard();
                while let Some(frame) = decoder.next_frame() {
                    if let Some(Framing::Headers) = decoder.framing() {
                        reader.desk.framing.store(1, Ordering::Relaxed);
                    }
                    let place = if decoder.has_more() { Place::Amid } else { Place::Last };
                    if reader.take(frame, place).await.is_none() {
                        return;
                    }
                }
                if !open
                    && let Some(frame) = decoder.finish()
                    && reader.take(frame, Place::Last).await.is_none()
                {
                    return;
                }
            }
            () = room.room.notified(), if !reader.waiting.is_empty() => {}
            () = hurry.stay_awake(), if open && room.is_idle() => {}
        }
        if reader.pass_on().await.is_none() {
            return;
        }
        hurry.rest();
    }
}

impl<H: Direct, W: AsyncWrite + Unpin> Reader<H, W> {
    fn has_room(&self) -> bool {
        self.bytes < MOST_WAITING && self.waiting.len() < MOST_AHEAD
    }

    /// One frame. `None` when nobody listens any more.
    async fn take(&mut self, frame: Frame, place: Place) -> Option<()> {
        match frame {
            Frame::Message(text) => self.message(&text, place).await,
            Frame::TooLarge => {
                let text =
                    format!("the message is larger than {} MB and was skipped", MAX_MESSAGE / 1024 / 1024);
                self.refuse(Value::Null, ErrorCode::INVALID_REQUEST, &text).await
            }
            Frame::BadHeader => {
                let text = "the header says no `Content-Length` that can be used";
                self.refuse(Value::Null, ErrorCode::PARSE_ERROR, text).await
            }
        }
    }

    async fn message(&mut self, text: &[u8], place: Place) -> Option<()> {
        if let Ok(call) = serde_json::from_slice::<PlainCall>(text) {
            return self.plain(call, text.len(), place).await;
        }
        if let Ok(message) = serde_json::from_slice::<ClientJsonRpcMessage>(text) {
            return self.deliver(message, text.len(), Came::Alone).await;
        }
        match serde_json::from_slice::<Value>(text) {
            Ok(Value::Array(entries)) => self.batch(entries).await,
            Ok(other) => self.odd(&other).await,
            Err(error) => {
                self.refuse(Value::Null, ErrorCode::PARSE_ERROR, &format!("this is not JSON: {error}")).await
            }
        }
    }

    /// A plain call: by the short way where that is open.
    async fn plain(&mut self, call: PlainCall, size: usize, place: Place) -> Option<()> {
        let id = call.id.clone();
        let call = if self.waiting.is_empty() && self.desk.admits(&id) {
            match self.server.directly(call) {
                Ok(mut begun) => {
                    let Some(answer) = (&mut begun).now_or_never() else {
                        self.desk.go_on(id, begun, self.outgoing.clone());
                        return Some(());
                    };
                    return match direct::written(id, answer) {
                        Some(text)
                            if place == Place::Last
                                && write_now(&self.outlet, self.desk.framing(), &text, &self.outgoing) =>
                        {
                            Some(())
                        }
                        Some(text) => self.outgoing.send(text).await.ok(),
                        None => Some(()),
                    };
                }
                Err(call) => *call,
            }
        } else {
            call
        };
        self.deliver(call.into(), size, Came::Alone).await
    }

    /// A batch: its requests run side by side, and their answers are one message.
    async fn batch(&mut self, entries: Vec<Value>) -> Option<()> {
        if entries.is_empty() {
            return self.refuse(Value::Null, ErrorCode::INVALID_REQUEST, "the batch is empty").await;
        }
        let mut messages = Vec::new();
        let mut answers = Vec::new();
        for entry in entries {
            let size = entry.to_string().len();
            match serde_json::from_value::<ClientJsonRpcMessage>(entry.clone()) {
                Ok(message) => messages.push((message, size)),
                Err(_) => answers.push(complaint(&id_of(&entry), ErrorCode::INVALID_REQUEST, ODD)),
            }
        }
        let mut ids = HashSet::new();
        messages.retain(|(message, _)| match message {
            JsonRpcMessage::Request(request)
                if self.desk.knows(&request.id) || !ids.insert(request.id.clone()) =>
            {
                answers.push(complaint(&json!(request.id), ErrorCode::INVALID_REQUEST, IN_USE));
                false
            }
            _ => true,
        });
        if ids.is_empty() {
            if !answers.is_empty() {
                self.outgoing.send(joined(&answers)).await.ok()?;
            }
        } else {
            let mut state = self.desk.state();
            let number = state.next_batch;
            state.next_batch += 1;
            state.batches.insert(number, Batch { left: ids.len(), answers });
            state.batched.extend(ids.into_iter().map(|id| (id, number)));
        }
        for (message, size) in messages {
            self.deliver(message, size, Came::InBatch).await?;
        }
        Some(())
    }

    /// JSON that is no message of the protocol.
    async fn odd(&mut self, message: &Value) -> Option<()> {
        let named = message.get("method").is_some_and(Value::is_string);
        let id = id_of(message);
        match (named, id.is_null()) {
            // What asks for nothing is not answered.
            (true, true) if message.get("id").is_none() => Some(()),
            (true, false) => self.refuse(id, ErrorCode::INVALID_PARAMS, "the parameters make no sense").await,
            _ => self.refuse(id, ErrorCode::INVALID_REQUEST, ODD).await,
        }
    }

    async fn deliver(&mut self, message: ClientJsonRpcMessage, size: usize, came: Came) -> Option<()> {
        match &message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                if came == Came::Alone && (self.queued.contains(&id) || self.desk.knows(&id)) {
                    return self.refuse(json!(id), ErrorCode::INVALID_REQUEST, IN_USE).await;
                }
                if self.waiting.is_empty() && self.desk.take_up(&id) {
                    return self.incoming.send(message).await.ok();
                }
                self.bytes += size;
                self.queued.insert(id.clone());
                self.waiting.push_back((id, message, size));
                Some(())
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = cancelled.params.request_id.clone()
                {
                    if self.queued.remove(&id)
                        && let Some(at) = self.waiting.iter().position(|(waiting, _, _)| *waiting == id)
                        && let Some((_, _, size)) = self.waiting.remove(at)
                    {
                        self.bytes -= size;
                    }
                    if let Some(batch) = self.desk.cancelled(&id) {
                        self.outgoing.send(batch).await.ok()?;
                    }
                }
                self.incoming.send(message).await.ok()
            }
            _ => self.incoming.send(message).await.ok(),
        }
    }

    /// Hands on requests for which there is room now.
    async fn pass_on(&mut self) -> Option<()> {
        while let Some((id, _, _)) = self.waiting.front() {
            if !self.desk.take_up(id) {
                break;
            }
            let (id, message, size) = self.waiting.pop_front()?;
            self.queued.remove(&id);
            self.bytes -= size;
            self.incoming.send(message).await.ok()?;
        }
        Some(())
    }

    async fn refuse(&self, id: Value, code: ErrorCode, message: &str) -> Option<()> {
        self.outgoing.send(complaint(&id, code, message)).await.ok()
    }
}

const ODD: &str = "this is JSON, but no JSON-RPC 2.0 message";
const IN_USE: &str = "another request with this id is under way";

/// The id of something, where it is one.
fn id_of(message: &Value) -> Value {
    let id = message.get("id");
    id.filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned().unwrap_or(Value::Null)
}

fn complaint(id: &Value, code: ErrorCode, message: &str) -> Bytes {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}});
    Bytes::from(answer.to_string())
}

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
