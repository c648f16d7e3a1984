//! A client for HIP-10 servers: it runs their tools, lends them its own, and shares contexts with them, over one WebSocket that is
//! made anew when it breaks.
//!
//! ```no_run
//! # async fn example() -> Result<(), hanzo_mcp::client::hip10::Error> {
//! use hanzo_mcp::client::hip10::{Client, ToolDefinition};
//! use serde_json::json;
//!
//! let client = Client::connect("ws://localhost:3000/mcp").await?;
//! let schema = json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}});
//! client
//!     .register_tool(ToolDefinition::new("add", "Adds two numbers", schema), |arguments| async move {
//!         let number = |name: &str| arguments[name].as_f64().ok_or(format!("`{name}` is not a number"));
//!         Ok(json!(number("a")? + number("b")?))
//!     })
//!     .await?;
//! let found = client.execute_tool("search", json!({"action": "find", "query": "TODO"}), None).await?;
//! println!("{}", found.text);
//! # Ok(())
//! # }
//! ```
//!
//! Tools that were registered are registered again with each new connection. A call that was under way when the connection broke
//! fails with [`Error::Lost`] and is not repeated: it may have run.

mod line;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use hanzo_backoff::Backoff;
use hanzo_protocol::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use self::line::Line;
use super::config::{Reachable, RemoteConfig, SecretText};
use super::transport::dial;

/// How long one waits before connecting again, in milliseconds: the first time, and at most.
const PAUSES: (u64, u64) = (100, 10_000);

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address: `ws://host:port/mcp` or `wss://…`.
    pub url: String,
    /// What is shown as a bearer token. Use `wss` with it, unless the server is on this machine.
    pub token: Option<SecretText>,
    /// A PEM file of certificates that vouch for the server, beside those this machine trusts.
    pub authority: Option<PathBuf>,
    /// How long an answer may take, and how long a call waits for a connection that is being made anew.
    pub timeout: Duration,
}

impl Options {
    /// The server at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None, authority: None, timeout: Duration::from_mins(1) }
    }

    /// Shows `token`.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(SecretText::new(token));
        self
    }

    /// Believes servers that a certificate in the PEM file at `path` vouches for.
    #[must_use]
    pub fn authority(mut self, path: impl Into<PathBuf>) -> Self {
        self.authority = Some(path.into());
        self
    }

    fn remote(&self) -> RemoteConfig {
        let mut remote = RemoteConfig::new(&self.url);
        // Whoever wrote the program wrote the address.
        remote.reachable = Reachable::AlsoPrivate;
        if let Some(token) = &self.token {
            let shown = SecretText::new(format!("Bearer {}", token.expose()));
            remote.headers.push(("authorization".to_owned(), shown));
        }
        remote
    }
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection.
    #[error(
        "cannot connect to `{url}`: {reason}\n\nhint: a server is started with `hanzo-dev mcp --http 127.0.0.1:3000`; a token it wants is in its `HANZO_MCP_TOKEN`"
    )]
    Connect {
        /// The address.
        url: String,
        /// Why.
        reason: String,
    },
    /// The connection broke while the call was under way; it may have run.
    #[error(
        "the connection broke before `{method}` was answered\n\nhint: look whether it had an effect before you repeat it"
    )]
    Lost {
        /// What was asked.
        method: String,
    },
    /// There was no answer in time. The server was told that none is awaited any more.
    #[error("`{method}` was not answered within {} s", limit.as_secs())]
    Timeout {
        /// What was asked.
        method: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The server says no.
    #[error("{message}")]
    Refused {
        /// The code of JSON-RPC.
        code: i64,
        /// Why.
        message: String,
        /// What else it says.
        data: Option<Value>,
    },
    /// What is to be sent is larger than servers take.
    #[error("the message has {bytes} bytes, and servers take {limit} at most")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// The answer is none.
    #[error("the server answered `{method}` with something else")]
    Unexpected {
        /// What was asked.
        method: String,
    },
}

/// A tool as the server is told of it.
#[derive(Debug, Clone, Serialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes: a JSON Schema of an object.
    pub input_schema: Value,
    /// What it returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Such as `network:http` and `rate_limit:100/min`.
    pub permissions: Vec<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// For how long a result holds, as `{"ttl": milliseconds}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Value>,
}

impl ToolDefinition {
    /// A tool that takes `input_schema`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            output_schema: None,
            permissions: Vec::new(),
            version: None,
            cache: None,
        }
    }

    /// With a permission, such as `rate_limit:100/min`.
    #[must_use]
    pub fn permission(mut self, permission: impl Into<String>) -> Self {
        self.permissions.push(permission.into());
        self
    }

    /// Whose results hold for `ttl`.
    #[must_use]
    pub fn cached_for(mut self, ttl: Duration) -> Self {
        self.cache = Some(json!({"ttl": u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)}));
        self
    }
}

/// One call of a batch.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// What it is given.
    pub arguments: Value,
    /// The context it is called in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its text.
    pub text: String,
    /// The same for programs, where there is such a thing.
    pub structured: Option<Value>,
    /// Whether the tool failed; the text says how.
    pub is_error: bool,
    /// Everything the server answered.
    pub answer: Value,
}

impl Outcome {
    fn of(answer: Value) -> Option<Self> {
        let content = answer["content"].as_array()?;
        let texts: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
        Some(Self {
            text: texts.join("\n"),
            structured: answer.get("structuredContent").filter(|it| !it.is_null()).cloned(),
            is_error: answer["isError"] == true,
            answer,
        })
    }
}

/// How entries meet those that are in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeStrategy {
    /// They take the place of all.
    Replace,
    /// They take the place of those with the same key; objects take each other's members.
    Merge,
    /// They are put behind those with the same key.
    Append,
}

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

#[derive(Clone)]
struct Lent {
    definition: ToolDefinition,
    handler: Handler,
}

/// How the connection is.
#[derive(Clone)]
enum State {
    /// It is being made.
    Connecting,
    /// It could not be made, and is tried again.
    Down(String),
    /// It works.
    Up(Line),
}

struct Inner {
    options: Options,
    tools: Mutex<BTreeMap<String, Lent>>,
    state: watch::Sender<State>,
}

/// A connection to a server. Dropping it ends it.
pub struct Client {
    inner: Arc<Inner>,
    _supervising: AbortOnDropHandle<()>,
}

impl Client {
    /// Connects to the server at `url`.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(Options::new(url)).await
    }

    /// Connects to a server.
    pub async fn connect_with(options: Options) -> Result<Self, Error> {
        let inner = Arc::new(Inner {
            options,
            tools: Mutex::default(),
            state: watch::Sender::new(State::Connecting),
        });
        let mut state = inner.state.subscribe();
        let supervising = AbortOnDropHandle::new(tokio::spawn(supervise(Arc::clone(&inner))));
        loop {
            match &*state.borrow_and_update() {
                State::Up(_) => break,
                State::Down(reason) => return Err(inner.unreachable(reason.clone())),
                State::Connecting => {}
            }
            // What keeps the connection has the other end of this.
            state.changed().await.map_err(|_| inner.unreachable("it ended".to_owned()))?;
        }
        Ok(Self { inner, _supervising: supervising })
    }

    /// Lends a tool to the server: `handler` is called with the arguments whenever somebody runs it. A text it returns is the result's
    /// text, an object also what programs read; its error is the tool's.
    pub async fn register_tool<F, R>(&self, definition: ToolDefinition, handler: F) -> Result<(), Error>
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let name = definition.name.clone();
        let handler: Handler = Arc::new(move |arguments| handler(arguments).boxed());
        let params = registration(&definition);
        let before = self.inner.tools().insert(name.clone(), Lent { definition, handler });
        let answer = self.inner.ask("tools/register", params).await;
        if let Err(Error::Refused { .. }) = &answer {
            let mut tools = self.inner.tools();
            match before {
                Some(before) => drop(tools.insert(name, before)),
                None => drop(tools.remove(&name)),
            }
        }
        answer.map(drop)
    }

    /// Runs a tool of the server. `context` is what HIP-10 says it is: `{"context_id": …, "entries": […]}`.
    pub async fn execute_tool(
        &self,
        tool: &str,
        arguments: Value,
        context: Option<Value>,
    ) -> Result<Outcome, Error> {
        let method = "tools/execute";
        let call = Call { tool: tool.to_owned(), arguments, context };
        let answer = self.inner.ask(method, json!(call)).await?;
        Outcome::of(answer).ok_or_else(|| Error::Unexpected { method: method.to_owned() })
    }

    /// Runs several tools side by side. One that fails leaves the others alone.
    pub async fn batch(&self, calls: &[Call]) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let method = "tools/batch";
        let unexpected = || Error::Unexpected { method: method.to_owned() };
        let mut answer = self.inner.ask(method, json!({ "calls": calls })).await?;
        let Value::Array(results) = answer["results"].take() else { return Err(unexpected()) };
        let each = |result: Value| match result.get("error") {
            Some(error) => Err(refused(error)),
            None => Outcome::of(result).ok_or_else(unexpected),
        };
        Ok(results.into_iter().map(each).collect())
    }

    /// What is in a context: all of it, or the entries with these keys. Large values are given only by their keys.
    pub async fn context_get(&self, context: Option<&str>, keys: Option<&[&str]>) -> Result<Value, Error> {
        let mut params = json!({});
        if let Some(context) = context {
            params["context_id"] = json!(context);
        }
        if let Some(keys) = keys {
            params["keys"] = json!(keys);
        }
        self.inner.ask("context/get", params).await
    }

    /// Changes a context.
    pub async fn context_update(
        &self,
        context: Option<&str>,
        entries: &[(&str, Value)],
        strategy: MergeStrategy,
    ) -> Result<Value, Error> {
        let entries: Vec<Value> =
            entries.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        let mut params = json!({"entries": entries, "merge_strategy": strategy});
        if let Some(context) = context {
            params["context_id"] = json!(context);
        }
        self.inner.ask("context/update", params).await
    }

    /// Anything else the server can be asked.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Error> {
        self.inner.ask(method, params).await
    }
}

fn registration(definition: &ToolDefinition) -> Value {
    serde_json::to_value(definition).unwrap_or_default()
}

fn refused(error: &Value) -> Error {
    Error::Refused {
        code: error["code"].as_i64().unwrap_or_default(),
        message: error["message"].as_str().unwrap_or("the server says no").to_owned(),
        data: error.get("data").cloned(),
    }
}

impl Inner {
    fn tools(&self) -> MutexGuard<'_, BTreeMap<String, Lent>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unreachable(&self, reason: String) -> Error {
        Error::Connect { url: self.options.url.clone(), reason }
    }

    /// The connection, once there is one.
    async fn line(&self) -> Option<Line> {
        let mut state = self.state.subscribe();
        loop {
            if let State::Up(line) = &*state.borrow_and_update() {
                return Some(line.clone());
            }
            state.changed().await.ok()?;
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, Error> {
        let limit = self.options.timeout;
        let Ok(Some(line)) = tokio::time::timeout(limit, self.line()).await else {
            let reason = match &*self.state.borrow() {
                State::Down(reason) => reason.clone(),
                _ => "it does not answer".to_owned(),
            };
            return Err(self.unreachable(reason));
        };
        line.ask(method, params, limit).await
    }

    /// Greets the server and lends it what was lent before.
    async fn greet(&self, line: &Line) -> Result<(), String> {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"experimental": {"hanzo": {"version": 1}}},
            "clientInfo": {"name": "hanzo-mcp", "version": env!("CARGO_PKG_VERSION")},
        });
        let limit = self.options.timeout;
        line.ask("initialize", hello, limit).await.map_err(|error| error.to_string())?;
        line.tell("notifications/initialized").await;
        let lent: Vec<Value> = self.tools().values().map(|lent| registration(&lent.definition)).collect();
        for tool in lent {
            match line.ask("tools/register", tool, limit).await {
                // A server that does not want it any more has the others all the same.
                Ok(_) | Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Keeps a connection.
async fn supervise(inner: Arc<Inner>) {
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        let reason = match once(&inner, &mut backoff).await {
            Ok(()) => "the connection broke".to_owned(),
            Err(reason) => reason,
        };
        inner.state.send_replace(State::Down(reason));
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// One connection, from its beginning to its end; an error when there never was one.
async fn once(inner: &Arc<Inner>, backoff: &mut Backoff) -> Result<(), String> {
    let options = &inner.options;
    let socket = dial(&options.remote(), options.timeout, options.authority.as_deref()).await?;
    let (line, talk) = line::open(socket, Arc::clone(inner));
    let talk = std::pin::pin!(talk);
    let lasting = async {
        inner.greet(&line).await?;
        backoff.reset();
        inner.state.send_replace(State::Up(line.clone()));
        std::future::pending::<Result<(), String>>().await
    };
    tokio::select! {
        () = talk => Ok(()),
        ended = lasting => ended,
    }
}
