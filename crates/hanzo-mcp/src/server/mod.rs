//! The server: our tools, agents, commands and files for other people's agents and editors.
//!
//! It is a face like the others. It holds a `dyn EngineClient`, and whatever a client calls goes through the engine's gate as the
//! call of somebody from elsewhere, bound to one agent's capabilities. Consent is asked of the person at the client where the
//! client can (elicitation); where it cannot, what stays in the sandbox runs and the rest is refused, with the rule that would allow it.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # async fn serve(engine: Arc<dyn hanzo_protocol::engine::EngineClient>) {
//! use hanzo_mcp::server::{Server, ServerOptions, pipe};
//!
//! let server = Server::new(engine, ServerOptions::new("/home/me/project"));
//! pipe::serve(server, tokio::io::stdin(), tokio::io::stdout()).await;
//! # }
//! ```

mod calls;
mod connection;
mod consent;
mod contexts;
pub mod direct;
mod door;
mod extensions;
pub mod framing;
pub mod http;
mod listing;
mod news;
mod others;
mod outlet;
pub mod pipe;
mod resources;
pub mod stdio;
mod tls;

use std::collections::BTreeMap;
use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::{
    CommandOutcome, CommandPurpose, CommandRun, EngineClient, ListKind, Request, Response,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, InitializeRequestParams, InitializeResult,
    JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, RequestMetaObject, Role, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use self::calls::{Again, Driven, Parked, Wanted, failed};
pub use self::connection::ServerOptions;
use self::connection::{Connection, Runs, unexpected};
use self::consent::Asking;
use self::contexts::Contexts;
use self::direct::{Answer, Direct, PlainCall};
use self::extensions::Lent;
use self::listing::{AGENT_PREFIX, AGENT_TOOL, ARGUMENTS};
pub use self::news::Offered;
pub use self::others::{OtherResource, Others};

/// How many agents may stand above each other through MCP.
pub const DEEPEST: u32 = 3;

/// What a client talks to. Cheap to clone; all clones are the same connection.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    own: Arc<Connection>,
    /// Tools the client lends.
    lent: Arc<Lent>,
}

/// What all clients of a server share.
struct Shared {
    engine: Arc<dyn EngineClient>,
    options: Arc<ServerOptions>,
    /// For clients that have no connection of their own: since protocol 2026-07-28 each request stands for itself.
    stateless: Arc<Connection>,
    parked: Parked,
    contexts: Contexts,
}

impl Server {
    /// A server of `engine`, and its first connection.
    pub fn new(engine: Arc<dyn EngineClient>, options: ServerOptions) -> Self {
        let options = Arc::new(options);
        let stateless = Arc::new(Connection::new(Arc::clone(&engine), Arc::clone(&options)));
        let own = Arc::new(Connection::new(Arc::clone(&engine), Arc::clone(&options)));
        let contexts = Contexts::new(options.contexts.clone());
        let shared = Shared { engine, options, stateless, parked: Parked::default(), contexts };
        Self { shared: Arc::new(shared), own, lent: Arc::default() }
    }

    /// Another connection to the same server: threads and grants of its own.
    #[must_use]
    pub fn connection(&self) -> Self {
        let own = Connection::new(Arc::clone(&self.shared.engine), Arc::clone(&self.shared.options));
        Self { shared: Arc::clone(&self.shared), own: Arc::new(own), lent: Arc::default() }
    }

    fn connected(&self, context: &RequestContext<RoleServer>) -> &Connection {
        let version = context.protocol_version();
        let stateless =
            version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        if stateless { &self.shared.stateless } else { &self.own }
    }

    /// The tools and agents of this server.
    async fn tools(&self, context: &RequestContext<RoleServer>) -> Result<Vec<Tool>, ErrorData> {
        let connection = self.connected(context);
        let attendance = Asking::of(context).attendance();
        connection.thread(attendance).await.map_err(|error| failed(&error))?;
        let entries = connection.list(ListKind::Tools).await.map_err(|error| failed(&error))?;
        let mut tools = listing::tools(&entries);
        let may_run = entries.iter().any(|entry| entry["name"] == AGENT_TOOL);
        if may_run && self.shared.options.depth < DEEPEST {
            let agents = connection.list(ListKind::Agents).await.map_err(|error| failed(&error))?;
            tools.extend(listing::agents(&agents));
        }
        Ok(tools)
    }

    /// One `tools/call` that came through the SDK.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if let Some(admitted) = self.lent.admit(&request.name) {
            admitted?;
            return extensions::call_back(&request.name, &arguments, context).await;
        }
        let connection = self.connected(context);
        connection.catch_up().await.map_err(|error| failed(&error))?;
        let wanted = self.wanted(connection, &request.name, arguments).await?;
        let again = Again::of(request.request_state, request.input_responses);
        self.run(connection, wanted, again, context).await?.into_response()
    }

    /// Runs a call in the client's thread, or goes on with one.
    async fn run(
        &self,
        connection: &Connection,
        wanted: Wanted,
        again: Option<Again>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Driven, ErrorData> {
        let Shared { engine, parked, .. } = &*self.shared;
        if let Some(again) = &again {
            return calls::go_on(again, engine, parked, &wanted, context).await;
        }
        let asking = Asking::of(context);
        let thread = connection.thread(asking.attendance()).await.map_err(|error| failed(&error))?;
        if std::ptr::eq(connection, &raw const *self.own) {
            connection.learn(asking, &context.peer);
        }
        calls::call(thread, engine, parked, wanted, context).await
    }

    /// What a `tools/call` means.
    async fn wanted(
        &self,
        connection: &Connection,
        name: &str,
        mut arguments: JsonObject,
    ) -> Result<Wanted, ErrorData> {
        let Some(agent) = name.strip_prefix(AGENT_PREFIX) else {
            return Ok(Wanted { tool: name.to_owned(), arguments: arguments.into(), runs: Runs::Tool });
        };
        if self.shared.options.depth >= DEEPEST {
            let message =
                format!("an agent may not be called here: {DEEPEST} agents stand above this server already");
            return Err(ErrorData::invalid_params(message, None));
        }
        let agents = connection.list(ListKind::Agents).await.map_err(|error| failed(&error))?;
        let known = agents.iter().filter_map(|entry| entry["name"].as_str());
        let Some(found) = known.into_iter().find(|known| known.replace('-', "_") == agent) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None));
        };
        let Some(Value::String(message)) = arguments.remove("message") else {
            return Err(ErrorData::invalid_params("`message` must be a text: the task for the agent", None));
        };
        let arguments = json!({"action": "run", "agent": found, "task": message});
        Ok(Wanted { tool: AGENT_TOOL.to_owned(), arguments, runs: Runs::Agent })
    }
}

/// A call goes the short way when an earlier one of the connection has shown how the client can be asked: nothing but the engine is
/// needed then, and the client's address where it is to be asked or shown something.
impl Direct for Server {
    fn directly(&self, call: PlainCall) -> Result<BoxFuture<'static, Answer>, Box<PlainCall>> {
        let name = &call.params.name;
        let is_ours = !name.starts_with(AGENT_PREFIX) && !self.lent.has(name);
        let Some((known, thread)) = self.own.known().filter(|_| is_ours && call.is_usual()) else {
            return Err(Box::new(call));
        };
        let token = call.params.meta.as_ref().and_then(RequestMetaObject::get_progress_token);
        let arguments = call.params.arguments.unwrap_or_default().into();
        let wanted = Wanted { tool: call.params.name, arguments, runs: Runs::Tool };
        let engine = Arc::clone(&self.shared.engine);
        let running = calls::call_directly(Arc::clone(thread), engine, wanted, known, token);
        Ok(Box::pin(async move { listing::result(running.await?) }))
    }

    fn others(&self) -> BoxFuture<'_, Option<Value>> {
        Box::pin(async move {
            let others = self.shared.options.others.as_ref()?;
            // They are started by whoever asks first. What cannot be listed is reported as it is.
            let _ = self.shared.stateless.list(ListKind::Tools).await;
            Some(others.report())
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let offered = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources();
        let mut capabilities = match &self.shared.options.news {
            Some(_) => offered.enable_prompts_list_changed().enable_resources_list_changed().build(),
            None => offered.build(),
        };
        capabilities.experimental = Some(BTreeMap::from([("hanzo".to_owned(), extensions::advertised())]));
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("hanzo-dev", self.shared.options.version.clone()))
            .with_instructions(
                "Tools for working on the code in one workspace. Each tool has actions; the action `help` explains them. The tools whose \
                 names begin with `hanzo_agent_` have an agent do a whole task.",
            )
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // Whoever greets again may have learned something.
        self.own.unlearn();
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = Box::pin(self.tools(&context)).await?;
        tools.extend(self.lent.list());
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // In a box: what the SDK moves about for each request is as large as the largest of these.
        Box::pin(self.call(request, &context)).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let entries =
            self.connected(&context).list(ListKind::Commands).await.map_err(|error| failed(&error))?;
        Ok(ListPromptsResult::with_all_items(listing::prompts(&entries)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let connection = self.connected(&context);
        let arguments = request.arguments.as_ref().and_then(|arguments| arguments.get(ARGUMENTS));
        let arguments = arguments.and_then(Value::as_str).unwrap_or_default().to_owned();
        // Not as a command: those the engine expands past the gate, as the user's own words.
        if let Some(call) = others::prompt(connection, &request.name, &arguments).await? {
            let wanted = Wanted::method(call);
            let again = Again::of(request.request_state, request.input_responses);
            return Ok(match Box::pin(self.run(connection, wanted, again, &context)).await? {
                Driven::Asked(asked) => GetPromptResponse::InputRequired(asked),
                Driven::Done(result) => {
                    let text = resources::text_of(connection, result).await?;
                    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into()
                }
            });
        }
        let thread = connection.any_thread().await.map_err(|error| failed(&error))?;
        let run = CommandRun {
            thread_id: thread.id,
            name: request.name,
            arguments,
            purpose: CommandPurpose::Expand,
        };
        match connection.engine.call(Request::CommandRun(run)).await.map_err(|error| failed(&error))? {
            Response::CommandRun(CommandOutcome::Shown { text }) => {
                Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
            }
            _ => Err(failed(&unexpected())),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        Box::pin(resources::list(self.connected(&context), cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let connection = self.connected(&context);
        let other = others::find(connection, &request.uri).await?;
        let Some((other, call)) = other else {
            return Box::pin(resources::read(connection, &request.uri)).await.map(Into::into);
        };
        let again = Again::of(request.request_state, request.input_responses);
        Ok(match Box::pin(self.run(connection, Wanted::method(call), again, &context)).await? {
            Driven::Asked(asked) => ReadResourceResponse::InputRequired(asked),
            Driven::Done(result) => {
                let contents = resources::others_contents(connection, &request.uri, other, result).await?;
                ReadResourceResult::new(vec![contents]).into()
            }
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(news) = self.shared.options.news.clone() {
            self.own.tell(news::tell_connected(news, context.peer));
        }
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // What of it is asked for, and what there is, the SDK sees to.
        Some(news::heard_of())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let news = self.shared.options.news.clone();
        Box::pin(news::tell_subscribed(news, self.lent.changes(), context)).await;
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = unknown_method(&request.method);
        let answer = Box::pin(extensions::answer(self, request, &context)).await;
        answer.unwrap_or(Err(unknown)).map(CustomResult::new)
    }
}

/// A request the SDK could not read. That of a method it knows has parameters that make no sense.
fn unknown_method(method: &str) -> ErrorData {
    const KNOWN: [&str; 12] = [
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "completion/complete",
        "logging/setLevel",
    ];
    if KNOWN.contains(&method) {
        return ErrorData::invalid_params(format!("the parameters of `{method}` make no sense"), None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
}
