//! All servers of a workspace.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hanzo_protocol::primitives::FileUri;
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::Tool as _;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::approvals::Approvals;
use super::cache::ListCache;
use super::config::{ServerConfig, Switch};
use super::exchange::Asking;
use super::fault::McpError;
use super::host::{Elicitor, LogSink, Sampler};
use super::listing::Listing;
use super::method::{Method, MethodCall, ServerMethod};
use super::prompts::{PromptCommand, arguments};
use super::result::{self, ResourceContent};
use super::server::{Phase, Server, ServerStatus};
use super::text::line;
use super::tool::RemoteTool;
use crate::names::{Collision, NameMap, ToolRef, format_mcp_tool_name};
use crate::server::Offered;

/// How many servers start at the same moment.
const STARTING_TOGETHER: usize = 4;
/// How long servers have to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a manager works with.
pub struct ManagerParts {
    /// The servers, in the order in which their tools are offered.
    pub servers: Vec<ServerConfig>,
    /// Starts those that are programs, with nothing of our environment but `PATH`.
    pub spawner: Arc<dyn Spawner>,
    /// Where lists and approvals are kept between runs; nowhere without one.
    pub data: Option<PathBuf>,
    /// The directories servers are told about.
    pub roots: Vec<PathBuf>,
    /// Asks the user for servers.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Asks models for servers.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// Hears their logs.
    pub log: Option<Arc<dyn LogSink>>,
}

impl ManagerParts {
    /// Servers whose programs `spawner` starts, and nothing else.
    pub fn new(servers: Vec<ServerConfig>, spawner: Arc<dyn Spawner>) -> Self {
        Self { servers, spawner, data: None, roots: Vec::new(), elicitor: None, sampler: None, log: None }
    }
}

/// What servers share.
pub(crate) struct Shared {
    /// Given up when the manager ends, for what it started ends with it.
    spawner: Mutex<Option<Arc<dyn Spawner>>>,
    pub(crate) cache: ListCache,
    pub(crate) roots: Vec<(String, String)>,
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    pub(crate) sampler: Option<Arc<dyn Sampler>>,
    pub(crate) log: Option<Arc<dyn LogSink>>,
    /// Rung when something about a server is other than before.
    pub(crate) bell: watch::Sender<u64>,
    approvals: Arc<Approvals>,
    board: Mutex<Board>,
}

/// What is offered.
#[derive(Default)]
struct Board {
    names: NameMap,
    servers: Vec<Weak<Server>>,
    /// By server.
    tools: Vec<Vec<Arc<RemoteTool>>>,
    /// By server, what of its tools cannot be offered.
    faults: Vec<Vec<String>>,
    collisions: Vec<Collision>,
    revision: u64,
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What starts programs, until the manager ends.
    pub(crate) fn spawner(&self) -> Option<Arc<dyn Spawner>> {
        self.spawner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn give_up_spawner(&self) {
        drop(self.spawner.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Offers the tools of a server.
    pub(crate) fn publish(&self, index: usize, listing: &Listing) {
        let mut board = self.board();
        let Some(server) = board.servers.get(index).and_then(Weak::upgrade) else { return };
        let name = &server.config.name;
        let refs = listing.tools.iter().map(|tool| ToolRef::new(name, &tool.name));
        let collisions = board.names.extend(refs);
        board.collisions.extend(collisions);
        let mut tools = Vec::new();
        let mut faults = Vec::new();
        for raw in &listing.tools {
            let Some(offered) = board.names.name_of(&ToolRef::new(name, &raw.name)) else { continue };
            match RemoteTool::new(offered, raw, &server, &self.approvals) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(reason) => {
                    faults.push(format!("the tool `{}` is left out: {reason}", line(&raw.name, 100)));
                }
            }
        }
        let before = &board.tools[index];
        let same = before.len() == tools.len() && before.iter().zip(&tools).all(|(a, b)| a.is_like(b));
        board.faults[index] = faults;
        if !same {
            board.tools[index] = tools;
            board.revision += 1;
        }
        drop(board);
        self.bell.send_modify(|rings| *rings += 1);
    }
}

/// The servers of a workspace. Dropping it ends them all.
pub struct Manager {
    shared: Arc<Shared>,
    servers: Vec<Arc<Server>>,
    methods: Vec<Arc<ServerMethod>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop: DropGuard,
}

impl Manager {
    /// Begins to connect to all servers, on the runtime it is called in, and returns at once with what is known from the
    /// last run.
    pub fn start(parts: ManagerParts) -> Self {
        let manager = Self::at_rest(parts);
        let starting = Arc::new(Semaphore::new(STARTING_TOGETHER));
        for server in &manager.servers {
            manager.tasks.spawn(Arc::clone(server).supervise(manager.stop.clone(), Arc::clone(&starting)));
        }
        manager.tasks.close();
        manager
    }

    /// Knows what is known from the last run, and connects to nothing.
    pub fn at_rest(parts: ManagerParts) -> Self {
        let ManagerParts { servers, spawner, data, roots, elicitor, sampler, log } = parts;
        let root = |path: PathBuf| {
            let uri = FileUri::from_path(&path).ok()?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            Some((uri.to_string(), name))
        };
        let shared = Arc::new(Shared {
            spawner: Mutex::new(Some(spawner)),
            cache: ListCache::new(data.as_ref().map(|data| data.join("lists"))),
            roots: roots.into_iter().filter_map(root).collect(),
            elicitor,
            sampler,
            log,
            bell: watch::Sender::new(0),
            approvals: Arc::new(Approvals::open(data.map(|data| data.join("approved-tools.json")))),
            board: Mutex::default(),
        });
        let servers: Vec<Arc<Server>> = servers
            .into_iter()
            .enumerate()
            .map(|(index, config)| Arc::new(Server::new(config, index, &shared)))
            .collect();
        {
            let mut board = shared.board();
            board.servers = servers.iter().map(Arc::downgrade).collect();
            board.tools = servers.iter().map(|_| Vec::new()).collect();
            board.faults = servers.iter().map(|_| Vec::new()).collect();
            // All at once, so that who is named first does not depend on who answers first.
            let known: Vec<ToolRef> = servers
                .iter()
                .filter_map(|server| Some((server, server.listing()?)))
                .flat_map(|(server, listing)| {
                    let name = server.config.name.clone();
                    listing.tools.iter().map(move |tool| ToolRef::new(&name, &tool.name)).collect::<Vec<_>>()
                })
                .collect();
            let collisions = board.names.extend(known);
            board.collisions.extend(collisions);
        }
        for (index, server) in servers.iter().enumerate() {
            if let Some(listing) = server.listing() {
                shared.publish(index, &listing);
            }
        }
        let stop = CancellationToken::new();
        let methods = ServerMethod::of_all(&servers);
        Self { shared, servers, methods, tasks: TaskTracker::new(), _stop: stop.clone().drop_guard(), stop }
    }

    /// A number that grows when other tools are offered than before. Looked at between turns.
    pub fn revision(&self) -> u64 {
        self.shared.board().revision
    }

    /// The tools that are offered, in a stable order.
    pub fn tools(&self) -> Vec<Arc<RemoteTool>> {
        self.shared.board().tools.iter().flatten().cloned().collect()
    }

    /// Other names under which tools can be called: those of seed 002, as far as they mean one tool.
    pub fn aliases(&self) -> Vec<(String, Arc<RemoteTool>)> {
        let board = self.shared.board();
        let alias = |tool: &Arc<RemoteTool>| {
            let alias = format_mcp_tool_name(tool.server(), &tool.raw().name);
            let meant = board.names.resolve(&alias)?;
            let is_it = meant.server == tool.server() && meant.tool == tool.raw().name;
            is_it.then(|| (alias, Arc::clone(tool)))
        };
        board.tools.iter().flatten().filter_map(alias).collect()
    }

    /// The tool that a name means, be it the one that is offered or an alias.
    pub fn tool(&self, name: &str) -> Option<Arc<RemoteTool>> {
        let board = self.shared.board();
        let meant = board.names.resolve(name)?;
        let is_it = |tool: &&Arc<RemoteTool>| tool.server() == meant.server && tool.raw().name == meant.tool;
        board.tools.iter().flatten().find(is_it).cloned()
    }

    /// What is known about each server.
    pub fn status(&self) -> Vec<ServerStatus> {
        let board = self.shared.board();
        let notes = |index: usize| {
            let tools = board.tools[index].iter();
            let repaired = tools.flat_map(|tool| {
                tool.notes().iter().map(|note| format!("`{}`: {note}", line(&tool.raw().name, 100)))
            });
            board.faults[index].iter().cloned().chain(repaired).collect::<Vec<_>>()
        };
        let known = self.servers.iter().enumerate().map(|(index, server)| {
            let mut status = server.status();
            status.notes.extend(notes(index));
            let shared = board.collisions.iter().filter(|collision| collision.renamed.server == status.name);
            status.notes.extend(shared.map(|collision| {
                format!(
                    "`{}` is offered as `{}`: the other name is taken",
                    line(&collision.renamed.tool, 100),
                    collision.given
                )
            }));
            status
        });
        known.collect()
    }

    /// What programs are told about servers (seed 002, `GET /api/mcp/servers`): `{configured, connected}`.
    pub fn report(&self) -> Value {
        let tools = self.tools();
        let connected =
            self.servers.iter().filter(|server| server.phase() == Phase::Connected).map(|server| {
                let own = tools.iter().filter(|tool| tool.server() == server.config.name);
                let names: Vec<String> = own.map(|tool| tool.raw().name.clone()).collect();
                result::connected(&server.config.name, &names, true)
            });
        let configured: Vec<Value> = self
            .servers
            .iter()
            .map(|server| json!({"name": server.config.name, "transport": server.config.transport.kind()}))
            .collect();
        json!({"configured": configured, "connected": connected.collect::<Vec<_>>()})
    }

    /// The prompts of all servers, as commands.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let mut names = NameMap::new();
        let listed: Vec<_> =
            self.servers.iter().filter_map(|server| Some((server, server.listing()?))).collect();
        let refs = listed.iter().flat_map(|(server, listing)| {
            listing.prompts.iter().map(|prompt| ToolRef::new(&server.config.name, &prompt.name))
        });
        names.extend(refs.collect::<Vec<_>>());
        let commands = listed.iter().flat_map(|(server, listing)| {
            let name =
                |prompt: &str| names.name_of(&ToolRef::new(&server.config.name, prompt)).map(str::to_owned);
            listing.prompts.iter().filter_map(move |prompt| {
                Some(PromptCommand {
                    command: name(&prompt.name)?,
                    server: server.config.name.clone(),
                    prompt: prompt.clone(),
                })
            })
        });
        commands.collect()
    }

    /// The text of a prompt, by the name of its command.
    pub async fn prompt(&self, command: &str, typed: &str) -> Result<String, McpError> {
        let found = self.prompts().into_iter().find(|prompt| prompt.command == command);
        let found =
            found.ok_or_else(|| McpError::Unknown(format!("no MCP server has the prompt `{command}`")))?;
        let arguments = arguments(&found.prompt, typed).map_err(McpError::Unknown)?;
        self.server(&found.server)?.prompt(&found.prompt.name, arguments, &Asking::default()).await
    }

    /// Reading resources and getting prompts as calls, for those who have to pass the gate: of all servers.
    pub fn methods(&self) -> &[Arc<ServerMethod>] {
        &self.methods
    }

    /// The call that gets a prompt, by the name of its command; `None` when no server has it. The error says what is wrong with
    /// what was typed.
    pub fn prompt_call(&self, command: &str, typed: &str) -> Option<Result<MethodCall, String>> {
        let found = self.prompts().into_iter().find(|prompt| prompt.command == command)?;
        let tool = self.method(&found.server, Method::GetPrompt)?;
        let call = |arguments: Map<String, Value>| MethodCall {
            tool,
            arguments: json!({"name": found.prompt.name, "arguments": arguments}),
        };
        Some(arguments(&found.prompt, typed).map(call))
    }

    /// The call that reads a resource of a server.
    pub fn resource_call(&self, server: &str, uri: &str) -> Option<MethodCall> {
        let tool = self.method(server, Method::ReadResource)?;
        Some(MethodCall { tool, arguments: json!({ "uri": uri }) })
    }

    fn method(&self, server: &str, method: Method) -> Option<String> {
        let found = self.methods.iter().find(|tool| tool.is(server, method))?;
        Some(found.schema().name.clone())
    }

    /// Reads a resource.
    pub async fn resource(&self, server: &str, uri: &str) -> Result<ResourceContent, McpError> {
        self.server(server)?.resource(uri, &Asking::default()).await
    }

    /// The lists of a server, once they are known.
    pub fn listing(&self, server: &str) -> Option<Arc<Listing>> {
        self.server(server).ok()?.listing()
    }

    /// The names of all servers that are switched on.
    pub fn names(&self) -> Vec<String> {
        self.servers.iter().filter(|server| server.is_on()).map(|server| server.config.name.clone()).collect()
    }

    /// Switches a server on or off for as long as this manager lives. What it has is offered or withdrawn soon after.
    pub fn switch(&self, server: &str, to: Switch) -> Result<(), McpError> {
        self.server(server)?.switch(to);
        Ok(())
    }

    /// Ends the connection to a server and makes another, at once and whatever was tried before.
    pub fn reconnect(&self, server: &str) -> Result<(), McpError> {
        let server = self.server(server)?;
        server.switch(Switch::On);
        server.anew();
        Ok(())
    }

    /// What is known about one server, once it is known whether it answers.
    pub async fn settled_status(&self, server: &str) -> Result<ServerStatus, McpError> {
        self.server(server)?.settled().await;
        let found = self.status().into_iter().find(|status| status.name == server);
        found.ok_or_else(|| McpError::Unknown(format!("there is no MCP server `{server}`")))
    }

    /// Waits until it is known of every server whether it answers. Nobody who has something else to do calls this.
    pub async fn settled(&self) {
        for server in &self.servers {
            server.settled().await;
        }
    }

    /// Waits, until `deadline` at the latest, for the lists of servers of which nothing is known from an earlier run.
    pub async fn first_lists(&self, deadline: Instant) {
        let all = async {
            for server in self.servers.iter().filter(|server| server.listing().is_none()) {
                server.settled().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline.into(), all).await;
    }

    /// Done when something about a server is other than when this was called.
    pub async fn changed(&self) {
        let mut bell = self.shared.bell.subscribe();
        bell.mark_unchanged();
        let _ = bell.changed().await;
    }

    /// Rings when something about a server is other than before. Nothing is missed between two looks at it.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.shared.bell.subscribe()
    }

    /// What is offered, by numbers that are others when something else is.
    pub fn offered(&self) -> Offered {
        let mut lists = (DefaultHasher::new(), DefaultHasher::new());
        for server in self.servers.iter().filter(|server| server.is_on()) {
            let Some(listing) = server.listing() else { continue };
            for prompt in &listing.prompts {
                (&server.config.name, format!("{prompt:?}")).hash(&mut lists.0);
            }
            for resource in &listing.resources {
                (&server.config.name, format!("{resource:?}")).hash(&mut lists.1);
            }
        }
        Offered { tools: self.revision(), prompts: lists.0.finish(), resources: lists.1.finish() }
    }

    /// Ends all servers and waits for that, for a moment.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(FAREWELL, self.tasks.wait()).await;
        self.shared.give_up_spawner();
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, McpError> {
        let found = self.servers.iter().find(|server| server.config.name == name);
        found.ok_or_else(|| McpError::Unknown(format!("there is no MCP server `{name}`")))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // Tools that are still held by somebody do not keep the programs alive.
        self.shared.give_up_spawner();
    }
}
