//! One request and its answer, with what may happen between them: progress, questions to the user, silence, the end of the
//! server, or that nobody wants the answer any more.

use std::sync::Arc;
use std::time::Duration;

use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::tool::OutputSink;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, ErrorData,
    GetPromptRequest, GetPromptRequestParams, InputRequest, InputRequiredResult, InputResponses,
    ReadResourceRequest, ReadResourceRequestParams, RequestId, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::fault::McpError;
use super::handler::Handler;
use super::text::clean;

/// How often a server may ask for more before it answers.
const MOST_ROUNDS: usize = 10;
/// How much longer than its time limit a call may take that keeps showing progress.
const MOST_PATIENCE: u32 = 20;

/// A server that answers.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) server: Arc<str>,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) handler: Arc<Handler>,
    pub(crate) info: Arc<ServerPeerInfo>,
}

/// Who wants an answer.
#[derive(Clone, Default)]
pub(crate) struct Asking {
    /// The thread whose call it is.
    pub(crate) thread: Option<ThreadId>,
    /// Shows progress.
    pub(crate) output: Option<Arc<dyn OutputSink>>,
}

/// What is asked again and again until it is answered.
#[derive(Clone)]
pub(crate) enum Ask {
    Tool(CallToolRequestParams),
    Prompt(GetPromptRequestParams),
    Resource(ReadResourceRequestParams),
}

impl Ask {
    fn what(&self) -> String {
        match self {
            Self::Tool(params) => format!("the call of `{}`", clean(&params.name, 100)),
            Self::Prompt(params) => format!("the request for the prompt `{}`", clean(&params.name, 100)),
            Self::Resource(params) => format!("the request for `{}`", clean(&params.uri, 200)),
        }
    }

    fn request(&self) -> ClientRequest {
        match self.clone() {
            Self::Tool(params) => ClientRequest::CallToolRequest(CallToolRequest::new(params)),
            Self::Prompt(params) => ClientRequest::GetPromptRequest(GetPromptRequest::new(params)),
            Self::Resource(params) => ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params)),
        }
    }

    fn answer(&mut self, responses: Option<InputResponses>, state: Option<String>) {
        match self {
            Self::Tool(params) => {
                params.input_responses = responses;
                params.request_state = state;
            }
            Self::Prompt(params) => {
                params.input_responses = responses;
                params.request_state = state;
            }
            Self::Resource(params) => {
                params.input_responses = responses;
                params.request_state = state;
            }
        }
    }
}

impl Live {
    /// Asks, answers what the server asks back, and returns the result.
    pub(crate) async fn ask(
        &self,
        mut ask: Ask,
        asking: &Asking,
        limit: Duration,
    ) -> Result<Value, McpError> {
        let _open = self.handler.begin(asking.thread);
        for round in 0..MOST_ROUNDS {
            let result = self.request(ask.request(), &ask.what(), asking, limit).await?;
            let ServerResult::InputRequiredResult(wanted) = result else { return self.value(&result) };
            let (responses, state) = self.fulfil(wanted, round).await?;
            ask.answer(responses, state);
        }
        Err(self.protocol(format!("it asked back {MOST_ROUNDS} times and did not answer {}", ask.what())))
    }

    /// One request. Dropping the future tells the server that nobody waits any more.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        what: &str,
        asking: &Asking,
        limit: Duration,
    ) -> Result<ServerResult, McpError> {
        let mut activity = self.handler.activity.subscribe();
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let mut sent = sent.map_err(|error| self.fault(error))?;
        let mut guard = Abandoned { peer: self.peer.clone(), id: Some(sent.id.clone()) };
        let _progress = self.handler.watch(sent.progress_token.clone(), asking.output.clone());
        let begun = Instant::now();
        let mut until = begun + limit;
        let end = begun + limit * MOST_PATIENCE;
        loop {
            let asked = activity.borrow_and_update().questions > 0;
            tokio::select! {
                biased;
                answer = &mut sent.rx => {
                    guard.id = None;
                    let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                    return answer.map_err(|error| self.fault(error));
                }
                // While a person thinks, the server is not late.
                () = tokio::time::sleep_until(until), if !asked => {
                    return Err(McpError::Timeout { server: self.server.to_string(), what: what.to_owned(), limit });
                }
                changed = activity.changed() => {
                    if changed.is_err() {
                        return Err(self.fault(ServiceError::TransportClosed));
                    }
                    until = (Instant::now() + limit).min(end.max(until));
                }
            }
        }
    }

    /// The result as JSON.
    pub(crate) fn value(&self, result: &ServerResult) -> Result<Value, McpError> {
        serde_json::to_value(result)
            .map_err(|error| self.protocol(format!("its answer cannot be read: {error}")))
    }

    async fn fulfil(
        &self,
        wanted: InputRequiredResult,
        round: usize,
    ) -> Result<(Option<InputResponses>, Option<String>), McpError> {
        let requests = wanted.input_requests.unwrap_or_default();
        if requests.is_empty() && wanted.request_state.is_none() {
            return Err(self.protocol("it asks for something and does not say for what".to_owned()));
        }
        if requests.is_empty() {
            // It only wants to be asked again; not at once.
            let pause =
                Duration::from_millis(50) * 2_u32.saturating_pow(u32::try_from(round).unwrap_or(u32::MAX));
            tokio::time::sleep(pause.min(Duration::from_secs(2))).await;
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let response = match request {
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(self.handler.elicit(request.params).await)
                }
                InputRequest::CreateMessage(request) => {
                    let sampled = self.handler.sample(request.params).await;
                    serde_json::to_value(sampled.map_err(|error| self.refused(&error))?)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(self.handler.roots()),
                _ => return Err(self.protocol("it asks for something unknown".to_owned())),
            };
            let response = response.map_err(|error| self.protocol(error.to_string()))?;
            responses.insert(key, response);
        }
        Ok(((!responses.is_empty()).then_some(responses), wanted.request_state))
    }

    pub(crate) fn protocol(&self, reason: String) -> McpError {
        McpError::Protocol { server: self.server.to_string(), reason }
    }

    fn refused(&self, error: &ErrorData) -> McpError {
        McpError::Refused {
            server: self.server.to_string(),
            code: error.code.0,
            message: clean(&error.message, 2_000),
        }
    }

    pub(crate) fn fault(&self, error: ServiceError) -> McpError {
        match error {
            ServiceError::McpError(error) => self.refused(&error),
            ServiceError::TransportClosed => McpError::Gone {
                server: self.server.to_string(),
                reason: "the connection was closed".to_owned(),
            },
            ServiceError::TransportSend(error) => {
                McpError::Gone { server: self.server.to_string(), reason: clean(&error.to_string(), 1_000) }
            }
            other => self.protocol(clean(&other.to_string(), 1_000)),
        }
    }
}

/// Tells the server about a request nobody waits for any more.
struct Abandoned {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        // Without a runtime everything is ending anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let reason = Some("nobody waits for the answer any more".to_owned());
                let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
            });
        }
    }
}

/// The arguments of a call as the protocol wants them.
pub(crate) fn arguments(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
