//! HIP-10 over the same dispatcher: `tools/execute` is `tools/call` with a context, `tools/batch` is several at once, `tools/register`
//! lends a client's own tool to its connection. Advertised under `experimental.hanzo`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, CustomRequest, ErrorCode,
    JsonObject, ProtocolVersion, ServerRequest, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::door::Meter;
use super::{Server, contexts};
use crate::rate::{Limit, Rate};
use crate::results::Results;

/// The methods beside the protocol's own.
pub(super) const METHODS: [&str; 5] =
    ["tools/execute", "tools/batch", "tools/register", "context/get", "context/update"];
/// The version of this extension.
const VERSION: u32 = 1;
/// How many calls a batch may have, and how many tools a client may lend.
const MOST_CALLS: usize = 100;
const MOST_TOOLS: usize = 100;
/// For how long a result may hold at most.
const LONGEST_KEPT: Duration = Duration::from_hours(24);

/// What is said of it when a client greets.
pub(super) fn advertised() -> JsonObject {
    let about = json!({"version": VERSION, "methods": METHODS, "merge_strategies": ["replace", "merge", "append"], "batch": MOST_CALLS, "cache": true});
    about.as_object().cloned().unwrap_or_default()
}

/// The parameters of `tools/execute`.
#[derive(Debug, Deserialize)]
struct Execute {
    tool: String,
    #[serde(default)]
    arguments: JsonObject,
    #[serde(default)]
    context: Option<Value>,
}

/// The parameters of `tools/batch`.
#[derive(Debug, Deserialize)]
struct Several {
    calls: Vec<Execute>,
}

/// The parameters of `tools/register`.
#[derive(Debug, Deserialize)]
struct Register {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(alias = "inputSchema")]
    input_schema: JsonObject,
    #[serde(default, alias = "outputSchema")]
    output_schema: Option<JsonObject>,
    #[serde(default)]
    permissions: Vec<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    cache: Option<Cache>,
}

/// That a tool's result is the same for the same arguments.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Cache {
    /// For how many milliseconds.
    ttl: u64,
}

/// Tools a client lends to its own connection.
#[derive(Default)]
pub(super) struct Lent {
    tools: Mutex<BTreeMap<String, LentTool>>,
    results: Results<Question, CallToolResult>,
    /// Rings when there are others than before.
    changed: watch::Sender<u64>,
}

struct LentTool {
    tool: Tool,
    version: String,
    limit: Option<Limit>,
    /// For how long a result holds.
    keeps: Option<Duration>,
}

/// What a kept result is the answer to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    tool: String,
    arguments: String,
    /// The context it was asked in.
    context: Option<String>,
}

impl Lent {
    fn tools(&self) -> MutexGuard<'_, BTreeMap<String, LentTool>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn list(&self) -> Vec<Tool> {
        self.tools().values().map(|lent| lent.tool.clone()).collect()
    }

    /// Rings when there are others than before.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// For how long a result of `name` holds.
    fn keeps(&self, name: &str) -> Option<Duration> {
        self.tools().get(name)?.keeps
    }

    /// A context changed, and with it what was asked in it.
    fn context_changed(&self, context: Option<&str>) {
        let context = context.unwrap_or(contexts::DEFAULT);
        self.results.forget(|question| question.context.as_deref() == Some(context));
    }

    /// Whether `name` is lent.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tools().contains_key(name)
    }

    /// Whether `name` is lent and may be called now.
    pub(super) fn admit(&self, name: &str) -> Option<Result<(), ErrorData>> {
        let mut tools = self.tools();
        let lent = tools.get_mut(name)?;
        let admitted = lent.limit.as_mut().map_or(Ok(()), |limit| limit.take(Instant::now()));
        Some(admitted.map_err(|wait| {
            let message =
                format!("permission denied: `{name}` may be called again in {} ms", wait.as_millis());
            ErrorData::invalid_request(message, Some(json!({"retry_after_ms": wait.as_millis()})))
        }))
    }
}

/// Has the client run its own tool.
pub(super) async fn call_back(
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let request = CustomRequest::new("tools/execute", Some(json!({"tool": name, "arguments": arguments})));
    let asked = context.peer.send_request(ServerRequest::CustomRequest(request));
    let answer = tokio::select! {
        answer = asked => answer,
        () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
    };
    let unusable = || {
        ErrorData::internal_error(
            format!("the client's tool `{name}` answered nothing that can be used"),
            None,
        )
    };
    match answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))? {
        ClientResult::CustomResult(result) => {
            let result: CallToolResult = serde_json::from_value(result.0).map_err(|_| unusable())?;
            Ok(result.into())
        }
        _ => Err(unusable()),
    }
}

/// Answers a method of ours; `None` for one that is not.
pub(super) async fn answer(
    server: &Server,
    request: CustomRequest,
    context: &RequestContext<RoleServer>,
) -> Option<Result<Value, ErrorData>> {
    if !METHODS.contains(&request.method.as_str()) {
        return None;
    }
    if let Err(error) = negotiated(context) {
        return Some(Err(error));
    }
    let params = request.params.unwrap_or(Value::Null);
    Some(match request.method.as_str() {
        "tools/execute" => match read(params) {
            Ok(execute) => run(server, execute, context).await,
            Err(error) => Err(error),
        },
        "tools/batch" => match read::<Several>(params) {
            Ok(several) if several.calls.len() <= MOST_CALLS => {
                // The request itself was counted at the door.
                let parts = context.extensions.get::<http::request::Parts>();
                let meter = parts.and_then(|parts| parts.extensions.get::<Meter>());
                if let Some(Err(error)) =
                    meter.map(|meter| meter.admit(several.calls.len().saturating_sub(1)))
                {
                    return Some(Err(error));
                }
                let calls = several.calls.into_iter().map(|execute| async {
                    run(server, execute, context).await.unwrap_or_else(|error| json!({ "error": error }))
                });
                Ok(json!({"results": join_all(calls).await}))
            }
            Ok(_) => Err(ErrorData::invalid_params(format!("a batch has at most {MOST_CALLS} calls"), None)),
            Err(error) => Err(error),
        },
        "tools/register" => match read(params) {
            Ok(register) => lend(server, register, context).await,
            Err(error) => Err(error),
        },
        "context/get" => server.shared.contexts.get(params).await,
        "context/update" => {
            server.lent.context_changed(params["context_id"].as_str());
            server.shared.contexts.update(params).await
        }
        _ => return None,
    })
}

/// Whether the client means the extension we mean. One that says nothing of it takes it as it is.
fn negotiated(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let capabilities = context.client_capabilities();
    let said = capabilities.as_ref().and_then(|said| said.experimental.as_ref()?.get("hanzo"));
    let Some(wanted) = said.and_then(|said| said.get("version").or_else(|| said.get("versions"))) else {
        return Ok(());
    };
    let ours = |wanted: &Value| wanted.as_u64() == Some(VERSION.into());
    if ours(wanted) || wanted.as_array().is_some_and(|all| all.iter().any(ours)) {
        return Ok(());
    }
    let message =
        format!("the client speaks version {wanted} of this extension, and version {VERSION} is spoken here");
    Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, Some(json!({"supported": [VERSION]}))))
}

async fn run(
    server: &Server,
    execute: Execute,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let Execute { tool, mut arguments, context: given } = execute;
    let named = given.as_ref().and_then(|given| given["context_id"].as_str()).map(str::to_owned);
    if let Some(given) = given.as_ref().filter(|given| given.get("entries").is_some()) {
        server.lent.context_changed(named.as_deref());
        server.shared.contexts.update(given.clone()).await?;
    }
    if given.is_some() && !arguments.contains_key(CONTEXT) && takes_context(server, &tool, context).await? {
        let entries = server.shared.contexts.values(named.as_deref()).await?;
        arguments.insert(CONTEXT.to_owned(), entries);
    }
    let keeps = server.lent.keeps(&tool);
    let question = keeps.map(|_| Question {
        tool: tool.clone(),
        arguments: Value::Object(arguments.clone()).to_string(),
        context: given.as_ref().map(|_| named.clone().unwrap_or_else(|| contexts::DEFAULT.to_owned())),
    });
    let kept = question.as_ref().and_then(|question| server.lent.results.get(question, Instant::now()));
    let from = kept.as_ref().map(|_| "cache");
    let result = if let Some(result) = kept {
        result
    } else {
        let params = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
        let CallToolResponse::Complete(result) = server.call(params, context).await? else {
            let message = "this call needs an answer first; use `tools/call`";
            return Err(ErrorData::invalid_request(message, None));
        };
        result
    };
    if let (Some(question), Some(ttl), None) = (question, keeps, from)
        && result.is_error != Some(true)
    {
        server.lent.results.keep(question, result.clone(), ttl, Instant::now());
    }
    let mut answer =
        serde_json::to_value(&result).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    if let Some(from) = from {
        answer["from"] = json!(from);
    }
    if given.is_some() {
        let how = if result.is_error == Some(true) { "failed" } else { "succeeded" };
        answer["context"] =
            server.shared.contexts.happened(named.as_deref(), format!("{tool} {how}")).await?;
    }
    Ok(answer)
}

/// The argument that has the entries of the context, for tools that take it.
const CONTEXT: &str = "context";

async fn takes_context(
    server: &Server,
    tool: &str,
    context: &RequestContext<RoleServer>,
) -> Result<bool, ErrorData> {
    let all = server.tools(context).await?.into_iter().chain(server.lent.list());
    let takes = |known: &Tool| {
        known.input_schema.get("properties").and_then(|properties| properties.get(CONTEXT)).is_some()
    };
    Ok(all.filter(|known| known.name == tool).any(|known| takes(&known)))
}

async fn lend(
    server: &Server,
    register: Register,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let wrong = |what: String| ErrorData::invalid_params(what, None);
    let name = register.name;
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if !letters || !(1..=64).contains(&name.len()) {
        return Err(wrong("a tool's name has 1 to 64 letters, digits, `-`, `_` and `.`".to_owned()));
    }
    if server.tools(context).await?.iter().any(|tool| tool.name == name) {
        return Err(wrong(format!("there is a tool `{name}` already, and it stays what it is")));
    }
    let mut limit = None;
    for permission in &register.permissions {
        match permission.split_once(':') {
            Some(("rate_limit", rate)) => {
                let rate = Rate::parse(rate);
                let rate =
                    rate.ok_or_else(|| wrong(format!("`{permission}` is no rate: write `100/min`")))?;
                limit = Some(Limit::new(rate));
            }
            // The tool runs at the client's; what it reaches is between the client and its own machine.
            Some(("network" | "filesystem" | "process", _)) => {}
            _ => return Err(wrong(format!("`{permission}` is not a permission that is known"))),
        }
    }
    let mut tool = Tool::new(name.clone(), register.description, register.input_schema);
    if let Some(schema) = register.output_schema {
        tool = tool.with_raw_output_schema(schema.into());
    }
    let version = register.version.unwrap_or_else(|| "0".to_owned());
    let keeps = register.cache.map(|cache| Duration::from_millis(cache.ttl).min(LONGEST_KEPT));
    let replaced = {
        let mut lent = server.lent.tools();
        if lent.len() >= MOST_TOOLS && !lent.contains_key(&name) {
            return Err(wrong(format!("a client lends at most {MOST_TOOLS} tools")));
        }
        lent.insert(name.clone(), LentTool { tool, version: version.clone(), limit, keeps })
    };
    server.lent.results.forget(|question| question.tool == name);
    server.lent.changed.send_modify(|rings| *rings += 1);
    let stateless = context
        .protocol_version()
        .is_some_and(|spoken| spoken.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if !stateless {
        let peer = context.peer.clone();
        // Beside the answer: a client that does not take it is found out by whoever reads from it.
        tokio::spawn(async move { peer.notify_tool_list_changed().await });
    }
    let replaced = replaced.map(|replaced| replaced.version);
    Ok(json!({"registered": name, "version": VERSION, "tool_version": version, "replaced": replaced}))
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, ErrorData> {
    serde_json::from_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}
