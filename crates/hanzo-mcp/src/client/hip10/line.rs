//! One connection to a HIP-10 server: questions and answers in both directions, one JSON message a frame.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::Message;

use super::{Error, Inner, refused};
use crate::client::MOST_MESSAGE_BYTES;
use crate::client::transport::Socket;

/// How many messages wait to be written before those who send them do.
const OUTGOING: usize = 64;
/// How many of our tools a server runs at once.
const MOST_RUNNING: usize = 64;
/// How often the server is greeted when nothing else is said, and after how long a silence it is gone.
const PING: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_mins(1);

/// Whoever waits for answers, by the number of their question.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Value>>>>>;

/// The way to ask. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    outgoing: mpsc::Sender<String>,
    waiting: Waiting,
    next: Arc<AtomicU64>,
}

/// A question whose answer is not awaited any more when this is dropped.
struct Open<'a> {
    line: &'a Line,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let unanswered =
            lock(&self.line.waiting).as_mut().and_then(|waiting| waiting.remove(&self.id)).is_some();
        if unanswered {
            let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": self.id}});
            // One that cannot be told now is busy with more than this.
            let _ = self.line.outgoing.try_send(told.to_string());
        }
    }
}

impl Line {
    pub(super) async fn ask(&self, method: &str, params: Value, limit: Duration) -> Result<Value, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        if text.len() > MOST_MESSAGE_BYTES {
            return Err(Error::TooLarge { bytes: text.len(), limit: MOST_MESSAGE_BYTES });
        }
        let lost = || Error::Lost { method: method.to_owned() };
        let (answer, answered) = oneshot::channel();
        lock(&self.waiting).as_mut().ok_or_else(lost)?.insert(id, answer);
        let _open = Open { line: self, id };
        let asked = async {
            self.outgoing.send(text).await.map_err(|_| lost())?;
            answered.await.map_err(|_| lost())
        };
        let answer = tokio::time::timeout(limit, asked).await;
        let mut answer = answer.map_err(|_| Error::Timeout { method: method.to_owned(), limit })??;
        match answer.get("error") {
            Some(error) => Err(refused(error)),
            None => Ok(answer["result"].take()),
        }
    }

    pub(super) async fn tell(&self, method: &str) {
        // A connection that broke is noticed by whoever asks.
        let _ = self.outgoing.send(json!({"jsonrpc": "2.0", "method": method}).to_string()).await;
    }
}

/// The way to ask over `socket`, and what carries it: that is done when the connection is over.
pub(super) fn open(socket: Socket, inner: Arc<Inner>) -> (Line, impl Future<Output = ()>) {
    let (outgoing, written) = mpsc::channel(OUTGOING);
    let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
    let line =
        Line { outgoing: outgoing.clone(), waiting: Arc::clone(&waiting), next: Arc::new(AtomicU64::new(1)) };
    let talk = Talk { inner, outgoing, waiting, running: JoinSet::new(), calls: HashMap::new() };
    (line, talk.run(socket, written))
}

struct Talk {
    inner: Arc<Inner>,
    outgoing: mpsc::Sender<String>,
    waiting: Waiting,
    running: JoinSet<()>,
    /// Calls of our tools, by the server's id of them.
    calls: HashMap<String, AbortHandle>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Whoever waits hears that there will be no answer, and so does whoever asks from now on.
        drop(lock(&self.waiting).take());
    }
}

impl Talk {
    async fn run(mut self, mut socket: Socket, mut written: mpsc::Receiver<String>) {
        let mut clock = tokio::time::interval(PING);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            let sent = tokio::select! {
                message = socket.next() => {
                    heard = Instant::now();
                    let taken = match message {
                        Some(Ok(Message::Text(text))) => serde_json::from_str(&text),
                        Some(Ok(Message::Binary(bytes))) => serde_json::from_slice(&bytes),
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => continue,
                    };
                    if let Ok(message) = taken {
                        self.take(message);
                    }
                    continue;
                }
                Some(text) = written.recv() => socket.send(Message::text(text)).await,
                Some(_) = self.running.join_next() => {
                    self.calls.retain(|_, call| !call.is_finished());
                    continue;
                }
                _ = clock.tick() => {
                    if heard.elapsed() > SILENCE {
                        return;
                    }
                    socket.send(Message::Ping(Vec::new().into())).await
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }

    fn take(&mut self, mut message: Value) {
        match (message["method"].take(), message.get("id").cloned()) {
            (Value::String(method), Some(id)) => self.asked(&method, id, message["params"].take()),
            (Value::String(method), None) if method == "notifications/cancelled" => {
                if let Some(call) = self.calls.remove(&message["params"]["requestId"].to_string()) {
                    call.abort();
                }
            }
            (Value::Null, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| lock(&self.waiting).as_mut()?.remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message);
                }
            }
            _ => {}
        }
    }

    /// The server asks for something.
    fn asked(&mut self, method: &str, id: Value, mut params: Value) {
        let key = id.to_string();
        let handler = match method {
            "tools/execute" => {
                let tool = params["tool"].as_str().unwrap_or_default();
                let found = self.inner.tools().get(tool).map(|lent| Arc::clone(&lent.handler));
                found.ok_or((-32_602, format!("there is no tool `{tool}` here")))
            }
            "ping" => {
                self.answer(id, Ok(json!({})));
                return;
            }
            _ => Err((-32_601, format!("there is no method `{method}`"))),
        };
        let handler = match handler {
            Ok(_) if self.running.len() >= MOST_RUNNING => {
                Err((-32_000, "too many calls are under way".to_owned()))
            }
            other => other,
        };
        match handler {
            Err(refused) => self.answer(id, Err(refused)),
            Ok(handler) => {
                let outgoing = self.outgoing.clone();
                let arguments = params["arguments"].take();
                let call = self.running.spawn(async move {
                    let run = AssertUnwindSafe(async { handler(arguments).await }).catch_unwind();
                    let result = run.await.unwrap_or_else(|_| Err("the tool broke".to_owned()));
                    let _ = outgoing.send(written(&id, Ok(outcome(result)))).await;
                });
                self.calls.insert(key, call);
            }
        }
    }

    fn answer(&mut self, id: Value, answer: Result<Value, (i64, String)>) {
        let outgoing = self.outgoing.clone();
        // Beside the loop that writes: it may have to wait for that.
        self.running.spawn(async move {
            let _ = outgoing.send(written(&id, answer)).await;
        });
    }
}

fn written(id: &Value, answer: Result<Value, (i64, String)>) -> String {
    let message = match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, text)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}),
    };
    message.to_string()
}

/// A tool's result in the protocol's words.
fn outcome(result: Result<Value, String>) -> Value {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    match result {
        Err(error) => json!({"content": text(&error), "isError": true}),
        Ok(Value::String(plain)) => json!({"content": text(&plain), "isError": false}),
        Ok(object @ Value::Object(_)) => {
            json!({"content": text(&object.to_string()), "structuredContent": object, "isError": false})
        }
        Ok(other) => {
            let structured = json!({"result": other});
            json!({"content": text(&other.to_string()), "structuredContent": structured, "isError": false})
        }
    }
}

fn lock<T>(waiting: &Mutex<T>) -> MutexGuard<'_, T> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
