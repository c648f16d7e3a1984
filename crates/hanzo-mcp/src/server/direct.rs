//! The short way of a call: nearly every message of a client is a call that says nothing unusual, and what the SDK does for one (a task
//! of its own, two tokens to cancel it, three channels) takes longer than reading a file. Such a call is handed to the server as soon
//! as it is read and, where that takes no waiting, answered in the same breath.

use std::num::NonZero;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hanzo_protocol::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, CallToolResult, ClientJsonRpcMessage,
    JsonObject, JsonRpcVersion2_0, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use serde_json::Value;

/// What comes of a call.
pub type Answer = Result<CallToolResult, ErrorData>;

/// A server that can answer without the SDK's help.
pub trait Direct {
    /// Begins a call, unless there is something about it that only the SDK knows; then it is given back.
    fn directly(&self, call: PlainCall) -> Result<BoxFuture<'static, Answer>, Box<PlainCall>> {
        Err(Box::new(call))
    }

    /// What is known about the servers of others that are served along, as programs ask for it by HTTP: `{configured, connected}`.
    /// `None` when none are served.
    fn others(&self) -> BoxFuture<'_, Option<Value>> {
        Box::pin(std::future::ready(None))
    }
}

/// A call that says nothing unusual. The SDK's reader would first try everything else it could be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainCall {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    /// The client's name for it.
    pub id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    /// What is called.
    pub params: PlainParams,
}

/// What is called.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainParams {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Option<JsonObject>,
    /// What else the client says.
    #[serde(rename = "_meta", default)]
    pub meta: Option<RequestMetaObject>,
}

impl PlainCall {
    /// Whether the client says nothing beside the call but where it wants to be shown progress. Since protocol 2026-07-28 it says
    /// there who it is.
    pub(super) fn is_usual(&self) -> bool {
        let meta = self.params.meta.as_ref();
        meta.is_none_or(|meta| meta.is_empty() || (meta.len() == 1 && meta.get_progress_token().is_some()))
    }
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

/// An answer as the SDK would write it to a client of a protocol before 2026-07-28; those after it never come this way.
pub(super) fn written(id: RequestId, answer: Answer) -> Option<Bytes> {
    let message = match answer {
        Ok(result) => {
            let mut result = ServerResult::CallToolResult(result);
            result.strip_result_type_for_legacy_peer();
            ServerJsonRpcMessage::response(result, id)
        }
        Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
    };
    serde_json::to_vec(&message).ok().map(Bytes::from)
}

/// How soon the next message has to come for the client to be in a hurry, and how long it is then waited for awake. To be woken by the
/// kernel takes longer than a whole call, so a client that sends one call after the other is answered twice as fast. One that thinks in
/// between, as everything does that asks a model, is never waited for like this.
const SOON: Duration = Duration::from_micros(150);

/// Whether the client is in a hurry.
#[derive(Debug)]
pub(super) struct Hurry {
    /// With one processor, waiting awake would keep it from the client.
    possible: bool,
    hurried: bool,
    since: Instant,
}

impl Hurry {
    pub(super) fn new() -> Self {
        let possible =
            std::thread::available_parallelism().is_ok_and(|processors| processors > NonZero::<usize>::MIN);
        Self { possible, hurried: false, since: Instant::now() }
    }

    /// All there was to do is done.
    pub(super) fn rest(&mut self) {
        self.since = Instant::now();
    }

    /// Something came.
    pub(super) fn heard(&mut self) {
        self.hurried = self.possible && self.since.elapsed() < SOON;
    }

    /// Keeps the runtime awake for as long as it is worth it, and then for ever is silent.
    pub(super) async fn stay_awake(&self) {
        while self.hurried && self.since.elapsed() < SOON {
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
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
