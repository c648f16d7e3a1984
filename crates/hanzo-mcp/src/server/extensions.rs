//! HIP-10 over the same dispatcher: `tools/execute` is `tools/call` with a context, `tools/batch` is several at once, `tools/register`
//! lends a client's own tool to its connection. Advertised under `experimental.hanzo`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientResult, CustomRequest, JsonObject, ServerRequest, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;

/// The methods beside the protocol's own.
pub(super) const METHODS: [&str; 5] =
    ["tools/execute", "tools/batch", "tools/register", "context/get", "context/update"];
/// The version of this extension.
const VERSION: u32 = 1;
/// How many calls a batch may have, and how many tools a client may lend.
const MOST_CALLS: usize = 100;
const MOST_TOOLS: usize = 100;

/// What is said of it when a client greets.
pub(super) fn advertised() -> JsonObject {
    let about =
        json!({"version": VERSION, "methods": METHODS, "merge_strategies": ["replace", "merge", "append"]});
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
}

/// Tools a client lends to its own connection.
#[derive(Default)]
pub(super) struct Lent(Mutex<BTreeMap<String, LentTool>>);

struct LentTool {
    tool: Tool,
    limit: Option<Limit>,
}

/// So many calls in so long.
#[derive(Debug)]
struct Limit {
    most: usize,
    within: Duration,
    made: VecDeque<Instant>,
}

impl Limit {
    /// Whether another call may be made now; when not, how long to wait.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        while self.made.front().is_some_and(|first| now.duration_since(*first) >= self.within) {
            self.made.pop_front();
        }
        if let Some(first) = self.made.front().filter(|_| self.made.len() >= self.most) {
            return Err(self.within.saturating_sub(now.duration_since(*first)));
        }
        self.made.push_back(now);
        Ok(())
    }
}

impl Lent {
    fn tools(&self) -> MutexGuard<'_, BTreeMap<String, LentTool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn list(&self) -> Vec<Tool> {
        self.tools().values().map(|lent| lent.tool.clone()).collect()
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
            let result: rmcp::model::CallToolResult =
                serde_json::from_value(result.0).map_err(|_| unusable())?;
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
    let params = request.params.unwrap_or(Value::Null);
    Some(match request.method.as_str() {
        "tools/execute" => match read(params) {
            Ok(execute) => run(server, execute, context).await,
            Err(error) => Err(error),
        },
        "tools/batch" => match read::<Several>(params) {
            Ok(several) if several.calls.len() <= MOST_CALLS => {
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
        "context/update" => server.shared.contexts.update(params).await,
        _ => return None,
    })
}

async fn run(
    server: &Server,
    execute: Execute,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let Execute { tool, arguments, context: given } = execute;
    let named = given.as_ref().and_then(|given| given["context_id"].as_str()).map(str::to_owned);
    if let Some(given) = given.as_ref().filter(|given| given.get("entries").is_some()) {
        server.shared.contexts.update(given.clone()).await?;
    }
    let params = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
    let CallToolResponse::Complete(result) = server.call(params, context).await? else {
        return Err(ErrorData::invalid_request("this call needs an answer first; use `tools/call`", None));
    };
    let mut answer =
        serde_json::to_value(&result).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    if given.is_some() {
        let how = if result.is_error == Some(true) { "failed" } else { "succeeded" };
        answer["context"] =
            server.shared.contexts.happened(named.as_deref(), format!("{tool} {how}")).await?;
    }
    Ok(answer)
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
                limit = Some(
                    rate_limit(rate)
                        .ok_or_else(|| wrong(format!("`{permission}` is no rate: write `100/min`")))?,
                );
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
    let mut lent = server.lent.tools();
    if lent.len() >= MOST_TOOLS && !lent.contains_key(&name) {
        return Err(wrong(format!("a client lends at most {MOST_TOOLS} tools")));
    }
    lent.insert(name.clone(), LentTool { tool, limit });
    Ok(json!({"registered": name, "version": VERSION}))
}

fn rate_limit(rate: &str) -> Option<Limit> {
    let (most, per) = rate.split_once('/')?;
    let within = match per {
        "s" | "sec" | "second" => Duration::from_secs(1),
        "min" | "minute" => Duration::from_mins(1),
        "h" | "hour" => Duration::from_hours(1),
        _ => return None,
    };
    let most = most.parse().ok().filter(|most| (1..=100_000).contains(most))?;
    Some(Limit { most, within, made: VecDeque::new() })
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, ErrorData> {
    serde_json::from_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_and_its_window_moves() {
        let mut limit = rate_limit("2/min").unwrap();
        let start = Instant::now();
        assert!(limit.take(start).is_ok() && limit.take(start).is_ok());
        assert_eq!(limit.take(start + Duration::from_secs(20)), Err(Duration::from_secs(40)));
        assert!(limit.take(start + Duration::from_mins(1)).is_ok());
        for odd in ["100", "x/min", "0/min", "5/year"] {
            assert!(rate_limit(odd).is_none(), "{odd}");
        }
    }
}
