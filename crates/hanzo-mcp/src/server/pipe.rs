//! A connection over a pipe: standard input and output, or anything else that carries bytes both ways. It finds messages, reads them,
//! and keeps what is wrong with them away from the protocol: a client may send anything at all and is answered.
//!
//! Requests wait when too many are under way; what answers or cancels one never waits behind them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification,
    ErrorCode, JsonObject, JsonRpcMessage, JsonRpcVersion2_0, RequestId, RequestMetaObject,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, ServerInitializeError, ServiceExt as _};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};

use super::framing::{Decoder, Frame, Framing, MAX_MESSAGE};

/// How many requests of a connection are under way at once; the others wait.
const MOST_RUNNING: usize = 64;
/// How many bytes of requests wait, and how many requests, before the client does. A few are read ahead so that a call can be
/// cancelled, or a question answered, while all places are taken.
const MOST_WAITING: usize = 2 * MAX_MESSAGE;
const MOST_AHEAD: usize = 256;
/// How many messages are between the tasks of a connection.
const CHANNEL: usize = 64;
/// How much is read at once, and how much is written at once where there is that much.
const CHUNK: usize = 64 * 1024;
/// How long the last answers have to reach a client that is leaving.
const PARTING: Duration = Duration::from_secs(2);

/// Serves one client until it is gone. Nothing it sends ends this early.
pub async fn serve<H, R, W>(handler: H, input: R, output: W)
where
    H: ServerHandler + Clone,
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
    let writer = tokio::spawn(write(output, written, Arc::clone(&desk)));
    let reader = tokio::spawn(read(
        input,
        Reader { incoming, outgoing, desk, waiting: VecDeque::new(), queued: HashSet::new(), bytes: 0 },
    ));
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
    drop(pipe);
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
struct Desk {
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
}

struct Batch {
    left: usize,
    answers: Vec<Bytes>,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn knows(&self, id: &RequestId) -> bool {
        let state = self.state();
        state.running.contains(id) || state.batched.contains_key(id)
    }

    /// A request is answered. Returns what to write now: nothing while others of its batch are under way.
    fn over(&self, id: &RequestId, answer: Bytes) -> Option<Bytes> {
        let mut state = self.state();
        state.running.remove(id);
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
        let number = state.batched.remove(id);
        let written = number.and_then(|number| state.answer(number, None));
        drop(state);
        self.room.notify_one();
        written
    }

    fn framing(&self) -> Framing {
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

struct Reader {
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<Bytes>,
    desk: Arc<Desk>,
    /// Requests for which there is no room yet.
    waiting: VecDeque<(RequestId, ClientJsonRpcMessage, usize)>,
    /// Their ids.
    queued: HashSet<RequestId>,
    bytes: usize,
}

async fn read(mut input: impl AsyncRead + Unpin, mut reader: Reader) {
    let mut decoder = Decoder::default();
    let mut open = true;
    while open || !reader.waiting.is_empty() {
        let room = Arc::clone(&reader.desk);
        decoder.buffer().reserve(CHUNK);
        tokio::select! {
            read = input.read_buf(decoder.buffer()), if open && reader.has_room() => {
                // A pipe that breaks is a client that is gone.
                open = read.is_ok_and(|bytes| bytes > 0);
                while let Some(frame) = decoder.next_frame() {
                    if let Some(Framing::Headers) = decoder.framing() {
                        reader.desk.framing.store(1, Ordering::Relaxed);
                    }
                    if reader.take(frame).await.is_none() {
                        return;
                    }
                }
                if !open && let Some(frame) = decoder.finish() && reader.take(frame).await.is_none() {
                    return;
                }
            }
            () = room.room.notified(), if !reader.waiting.is_empty() => {}
        }
        if reader.pass_on().await.is_none() {
            return;
        }
    }
}

impl Reader {
    fn has_room(&self) -> bool {
        self.bytes < MOST_WAITING && self.waiting.len() < MOST_AHEAD
    }

    /// One frame. `None` when nobody listens any more.
    async fn take(&mut self, frame: Frame) -> Option<()> {
        match frame {
            Frame::Message(text) => self.message(&text).await,
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

    async fn message(&mut self, text: &[u8]) -> Option<()> {
        if let Ok(call) = serde_json::from_slice::<PlainCall>(text) {
            return self.deliver(call.into(), text.len(), Came::Alone).await;
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

/// A call that says nothing unusual. Nearly every message is one, and the SDK's reader would first try everything else it could be,
/// which takes longer than the call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCall {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: PlainParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainParams {
    name: String,
    #[serde(default)]
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta", default)]
    meta: Option<RequestMetaObject>,
}

impl From<PlainCall> for ClientJsonRpcMessage {
    fn from(call: PlainCall) -> Self {
        let PlainCall { id, params: PlainParams { name, arguments, meta }, .. } = call;
        let mut params = CallToolRequestParams::new(name);
        params.arguments = arguments;
        let mut request = CallToolRequest::new(params);
        if let Some(meta) = meta {
            request.extensions.insert(meta);
        }
        Self::request(request.into(), id)
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

/// Writes what there is to write, together where there is more.
async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Bytes>, desk: Arc<Desk>) {
    let mut buffer = BytesMut::new();
    while let Some(message) = messages.recv().await {
        let framing = desk.framing();
        framing.encode(&message, &mut buffer);
        while buffer.len() < CHUNK
            && let Ok(message) = messages.try_recv()
        {
            framing.encode(&message, &mut buffer);
        }
        // Nobody takes it any more; the reader will find that out.
        if output.write_all(&buffer).await.is_err() || output.flush().await.is_err() {
            return;
        }
        buffer.clear();
        if buffer.capacity() > 4 * CHUNK {
            buffer = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(text: &str) -> (Option<String>, Option<String>) {
        let plain = serde_json::from_str::<PlainCall>(text).ok().map(ClientJsonRpcMessage::from);
        let usual = serde_json::from_str::<ClientJsonRpcMessage>(text).ok();
        (plain.map(|message| format!("{message:?}")), usual.map(|message| format!("{message:?}")))
    }

    #[test]
    fn a_plain_call_is_read_as_the_sdk_reads_it() {
        for params in [
            r#"{"name":"fs"}"#,
            r#"{"name":"fs","arguments":{"path":"a","n":1.5,"deep":{"x":[null,true]}}}"#,
            r#"{"name":"fs","arguments":{},"_meta":{"progressToken":"p","x":{"y":1}}}"#,
            r#"{"_meta":{"progressToken":7},"arguments":null,"name":"fs"}"#,
        ] {
            for id in ["1", "\"a\""] {
                let text =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
                let (plain, usual) = both(&text);
                assert!(plain.is_some(), "{text}");
                assert_eq!(plain, usual, "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_not_plain_is_left_to_the_sdk(
            version in "2\\.0|1\\.0",
            id in "1|null|1\\.5|\"x\"|\\{\\}",
            method in "tools/call|tools/list|ping",
            params in r#"\{"name":"x"\}|\{"name":5\}|\{"name":"x","requestState":"s"\}|\{"name":"x","arguments":\[\]\}|\[\]|\{\}"#,
            more in r#"|,"result":\{\}|,"error":\{\}|,"extra":1"#,
        ) {
            let text = format!(r#"{{"jsonrpc":"{version}","id":{id},"method":"{method}","params":{params}{more}}}"#);
            if let (Some(plain), usual) = both(&text) {
                prop_assert_eq!(Some(plain), usual);
            }
        }
    }
}
