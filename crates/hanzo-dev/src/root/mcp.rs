//! The MCP servers of each workspace, shared by its threads: settings become a manager, and the manager's tools, prompts and
//! resources become what the engine knows.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use hanzo_config::{
    BashJail, Environment, Isolation, LoadInputs, McpServer, SecretTemplate, Settings, Transport,
};
use hanzo_engine::Engine;
use hanzo_engine::commands::{CommandKind, CommandSource, Descriptor, Origin};
use hanzo_engine::parts::{McpControl, McpServerInfo, McpServerStatus, McpServers, Models, ToolChanges};
use hanzo_engine::references::{Resource, ResourceName, ResourceReader};
use hanzo_mcp::client::{
    Manager, ManagerParts, MethodCall, Phase, Reachable, RemoteConfig, ResourceContent, ResourceInfo,
    SecretText, ServerConfig, ServerStatus, ServerTrust, StdioConfig, Switch, TransportConfig,
};
use hanzo_mcp::server::{Offered, OtherResource, Others};
use hanzo_protocol::BoxFuture;
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::{Tool as _, ToolSet};
use hanzo_sandbox::jail::{EnvPolicy, JailSite};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::credentials::Credentials;
use super::jail::LazyJail;
use super::mcp_asks::Asks;
use super::outside::OutsideSpawner;
use crate::exit::{Exit, Failure};
use crate::sandbox::{Overrides, jail_config};

/// The header in which a server is shown a token.
pub const AUTHORIZATION: &str = "Authorization";

/// How many agents stand above a process. Servers are told, because a server may be this program.
const DEPTH: &str = "HANZO_MCP_DEPTH";

/// How many agents stand above this process.
pub fn depth(environment: &Environment) -> u32 {
    environment.get(DEPTH).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// The servers of all workspaces of this process.
#[derive(Default)]
pub struct Servers {
    managers: Mutex<HashMap<PathBuf, Running>>,
    asks: Arc<Asks>,
    told: Arc<Told>,
}

/// Whom to tell what the servers of one workspace offer.
#[derive(Default)]
struct Told {
    workspace: OnceLock<PathBuf>,
    offered: watch::Sender<Offered>,
    /// How many managers that workspace has had. Numbers of different ones are not to be compared.
    managers: AtomicU64,
}

/// How long it may take until clients hear of a change: servers start together, and each would ring for itself.
const TOGETHER: Duration = Duration::from_millis(100);

struct Running {
    /// What it was made of, to tell when the settings are others.
    made_of: Vec<String>,
    manager: Arc<Manager>,
}

impl Servers {
    /// Connects servers' questions with the engine.
    pub fn connect(&self, engine: &Engine) {
        // Set once, by whoever makes the engine.
        let _ = self.asks.engine.set(engine.clone());
    }

    /// The models of a thread, for servers that want one asked.
    pub fn remember(&self, thread: ThreadId, models: &Arc<dyn Models>) {
        self.asks.models().insert(thread, Arc::clone(models));
    }

    /// What the servers of `workspace` offer, from now on.
    pub fn offered(&self, workspace: &Path) -> watch::Receiver<Offered> {
        // Set once, by whoever serves that workspace.
        let _ = self.told.workspace.set(workspace.to_owned());
        self.told.offered.subscribe()
    }

    /// The manager of a workspace; `None` when no server is configured. Starting it takes no time worth mentioning.
    pub fn of(
        &self,
        settings: &Settings,
        inputs: &LoadInputs,
        data: &Path,
    ) -> Result<Option<Arc<Manager>>, Failure> {
        if depth(&inputs.environment) >= hanzo_mcp::server::DEEPEST {
            return Ok(None);
        }
        // Those that are disabled are known too, to be switched on.
        let credentials = Credentials::load(inputs)?;
        let config = |server| server_config(server, &inputs.environment, &credentials);
        let configs: Vec<ServerConfig> = settings.mcp_servers.values().map(config).collect();
        let made_of: Vec<String> =
            configs.iter().map(|config| format!("{config:?} {}", config.fingerprint())).collect();
        let mut managers = self.managers();
        if configs.is_empty() {
            managers.remove(&inputs.workspace_root);
            return Ok(None);
        }
        if let Some(running) = managers.get(&inputs.workspace_root)
            && running.made_of == made_of
        {
            return Ok(Some(Arc::clone(&running.manager)));
        }
        let mut parts = ManagerParts::new(configs, spawner(settings, inputs)?);
        parts.data = Some(data.join("mcp"));
        parts.roots = vec![inputs.workspace_root.clone()];
        parts.elicitor = Some(self.asks.clone());
        parts.sampler = Some(self.asks.clone());
        let manager = Arc::new(Manager::start(parts));
        if self.told.workspace.get() == Some(&inputs.workspace_root) {
            let number = self.told.managers.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(tell(Arc::clone(&self.told), Arc::downgrade(&manager), manager.bell(), number));
        }
        let running = Running { made_of, manager: Arc::clone(&manager) };
        managers.insert(inputs.workspace_root.clone(), running);
        Ok(Some(manager))
    }

    /// The resources of a workspace's servers, where it has servers and a thread was opened in it.
    pub fn resources(&self, workspace: &Path) -> Option<Resources> {
        self.managers().get(workspace).map(|running| Resources(Arc::clone(&running.manager)))
    }

    /// Ends all servers.
    pub async fn shutdown(&self) {
        let all: Vec<Running> = self.managers().drain().map(|(_, running)| running).collect();
        for running in all {
            running.manager.shutdown().await;
        }
    }

    fn managers(&self) -> MutexGuard<'_, HashMap<PathBuf, Running>> {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells what a manager offers for as long as it is the one in use. What it begins with is nothing new to those who come after it.
async fn tell(told: Arc<Told>, manager: Weak<Manager>, mut bell: watch::Receiver<u64>, number: u64) {
    let Some(mut last) = manager.upgrade().map(|manager| manager.offered()) else { return };
    let base = number << 32;
    let mut offered = Offered { tools: base, prompts: base, resources: base };
    loop {
        if told.managers.load(Ordering::Relaxed) != number + 1 {
            return;
        }
        told.offered.send_if_modified(|known| std::mem::replace(known, offered) != offered);
        if bell.changed().await.is_err() {
            return;
        }
        let end = tokio::time::Instant::now() + TOGETHER;
        // Looked at with each ring: somebody may have seen what is gone again at the end.
        loop {
            let Some(now) = manager.upgrade().map(|manager| manager.offered()) else { return };
            offered.tools += u64::from(now.tools != last.tools);
            offered.prompts += u64::from(now.prompts != last.prompts);
            offered.resources += u64::from(now.resources != last.resources);
            last = now;
            match tokio::time::timeout_at(end, bell.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => break,
            }
        }
    }
}

/// What starts servers: a jail of their own, because they outlive threads. They see nothing of the environment but `PATH`, and
/// they reach the network, without which most of them are of no use; a call of theirs counts as one to the network.
pub fn spawner(settings: &Settings, inputs: &LoadInputs) -> Result<Arc<dyn Spawner>, Failure> {
    let env = EnvPolicy { inherit: vec!["PATH".to_owned()], set: Vec::new() };
    if settings.sandbox.mode == Isolation::Off || settings.sandbox.bash == BashJail::Off {
        return Ok(Arc::new(OutsideSpawner::new(inputs.workspace_root.clone(), env)));
    }
    let mut config =
        jail_config(&settings.sandbox, inputs, &Overrides { network: true, ..Overrides::default() })?;
    config.env = env;
    let site = JailSite::prepare(config).map_err(|error| Failure::message(Exit::Sandbox, error))?;
    Ok(Arc::new(LazyJail::new(site)))
}

/// A server of the settings as the client wants it, with the token that is kept for it where its settings have none.
pub fn server_config(
    server: &McpServer,
    environment: &Environment,
    credentials: &Credentials,
) -> ServerConfig {
    let remote = |url: &hanzo_config::Template, headers: &indexmap::IndexMap<String, SecretTemplate>| {
        let secret =
            |(name, value): (&String, &SecretTemplate)| (name.clone(), SecretText::new(value.expose()));
        let mut headers: Vec<_> = headers.iter().map(secret).collect();
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION))
            && let Some(token) = credentials.mcp_token(&server.name, url.expanded())
        {
            headers.push((AUTHORIZATION.to_owned(), SecretText::new(format!("Bearer {token}"))));
        }
        RemoteConfig {
            url: url.expanded().to_owned(),
            headers,
            reachable: if server.allow_private { Reachable::AlsoPrivate } else { Reachable::Public },
        }
    };
    let transport = match &server.transport {
        Transport::Stdio { command, args, env } => {
            let mut argv = vec![OsString::from(command.expanded())];
            argv.extend(args.iter().map(|word| OsString::from(word.expanded())));
            let passed =
                server.allow_env.iter().filter_map(|name| Some((name.into(), environment.get(name)?.into())));
            let set = env.iter().map(|(name, value)| (name.into(), value.expose().into()));
            // Last, and so never another: a server that is this program would start itself again and again.
            let depth = (DEPTH.into(), (depth(environment) + 1).to_string().into());
            TransportConfig::Stdio(StdioConfig { argv, env: passed.chain(set).chain([depth]).collect() })
        }
        Transport::Http { url, headers } => TransportConfig::Http(remote(url, headers)),
        Transport::Sse { url, headers } => TransportConfig::Sse(remote(url, headers)),
        Transport::WebSocket { url, headers } => TransportConfig::WebSocket(remote(url, headers)),
        // A way to reach servers that the settings know and this build does not.
        _ => TransportConfig::Stdio(StdioConfig { argv: Vec::new(), env: Vec::new() }),
    };
    let mut config = ServerConfig::new(&server.name, transport);
    config.timeout = Duration::from_secs(server.timeout_secs);
    config.switch = if server.disabled { Switch::Off } else { Switch::On };
    config.trust = if server.trusted { ServerTrust::Trusted } else { ServerTrust::Untrusted };
    config
}

/// The tools of the workspace and those of its servers.
pub fn join(own: &ToolSet, manager: &Manager) -> ToolSet {
    let mut all = own.clone();
    for tool in manager.tools() {
        // Names of servers' tools begin with `mcp__`, which none of ours does.
        all.insert(tool);
    }
    for (alias, tool) in manager.aliases() {
        all.insert_unlisted(alias, tool);
    }
    for method in manager.methods() {
        all.insert_unlisted(&method.schema().name, method.clone());
    }
    all
}

/// Tells a thread when its servers have other tools.
pub struct Changes {
    own: ToolSet,
    manager: Arc<Manager>,
    seen: AtomicU64,
    /// Until when the first turn waits for servers nothing is known of.
    patience: Instant,
}

/// How long after it was opened a thread's first turn waits for servers that were never seen before. A person does not notice it, and
/// most servers on this machine answer within it.
pub const FIRST_WAIT: Duration = Duration::from_millis(80);
/// How long a client of ours waits for such servers.
pub const CLIENT_WAIT: Duration = Duration::from_secs(5);

impl Changes {
    /// A thread that has the tools of revision `seen`, and that waits as long as `wait` for servers nothing is known of.
    pub fn new(own: ToolSet, manager: Arc<Manager>, seen: u64, wait: Duration) -> Self {
        Self { own, manager, seen: AtomicU64::new(seen), patience: Instant::now() + wait }
    }
}

impl ToolChanges for Changes {
    fn take(&self) -> Option<ToolSet> {
        // Read before the tools: should they change in between, the next turn looks again.
        let now = self.manager.revision();
        (self.seen.swap(now, Ordering::Relaxed) != now).then(|| join(&self.own, &self.manager))
    }

    fn is_due(&self) -> bool {
        self.manager.revision() != self.seen.load(Ordering::Relaxed)
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.manager.first_lists(self.patience))
    }
}

/// Prompts of servers as commands.
pub struct Prompts(pub Arc<Manager>);

impl CommandSource for Prompts {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn commands(&self) -> Vec<Descriptor> {
        let command = |prompt: hanzo_mcp::client::PromptCommand| Descriptor {
            argument_hint: prompt.argument_hint(),
            description: prompt
                .prompt
                .description
                .unwrap_or_else(|| format!("A prompt of {}", prompt.server)),
            name: prompt.command,
            kind: CommandKind::Turn,
            origin: Origin::Source(prompt.server),
        };
        self.0.prompts().into_iter().map(command).collect()
    }

    fn render<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { self.0.prompt(name, arguments).await.map_err(|error| error.to_string()) })
    }
}

/// Resources of servers as references.
pub struct Resources(pub Arc<Manager>);

impl ResourceReader for Resources {
    fn is_server(&self, name: &str) -> bool {
        self.0.names().iter().any(|known| known == name)
    }

    fn servers(&self) -> Vec<String> {
        self.0.names()
    }

    fn resources(&self, server: &str) -> Vec<ResourceName> {
        let listing = self.0.listing(server);
        let listed = listing.iter().flat_map(|listing| &listing.resources);
        listed
            .map(|resource| ResourceName {
                uri: resource.uri.clone(),
                name: resource.name.clone().unwrap_or_default(),
            })
            .collect()
    }

    fn read<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Resource, String>> {
        Box::pin(async move {
            match self.0.resource(server, uri).await {
                Ok(ResourceContent::Text(text)) => Ok(Resource::Text(text)),
                Ok(ResourceContent::Attachment(attachment)) => Ok(Resource::Attachment(attachment)),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

/// Resources and prompts of a workspace's servers for clients of ours. Which servers there are is looked up each time: the first client starts them.
pub struct Served {
    servers: Arc<Servers>,
    workspace: PathBuf,
}

impl Served {
    /// Those of the servers of `workspace`.
    pub fn new(servers: Arc<Servers>, workspace: &Path) -> Self {
        Self { servers, workspace: workspace.to_owned() }
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl Others for Served {
    fn resources(&self) -> Vec<OtherResource> {
        let Some(Resources(manager)) = self.servers.resources(&self.workspace) else { return Vec::new() };
        let of = |server: String| {
            let listing = manager.listing(&server);
            let listed = listing.iter().flat_map(|listing| &listing.resources);
            let resource = |resource: &ResourceInfo| OtherResource {
                server: server.clone(),
                uri: resource.uri.clone(),
                name: resource.name.clone(),
                description: resource.description.clone(),
                mime_type: resource.mime_type.clone(),
            };
            listed.map(resource).collect::<Vec<_>>()
        };
        manager.names().into_iter().flat_map(of).collect()
    }

    fn report(&self) -> Value {
        let none = || json!({"configured": [], "connected": []});
        self.servers.resources(&self.workspace).map_or_else(none, |Resources(manager)| manager.report())
    }

    fn resource_call(&self, resource: &OtherResource) -> Option<MethodCall> {
        self.servers.resources(&self.workspace)?.0.resource_call(&resource.server, &resource.uri)
    }

    fn prompt_call(&self, command: &str, typed: &str) -> Option<Result<MethodCall, String>> {
        self.servers.resources(&self.workspace)?.0.prompt_call(command, typed)
    }
}

/// The servers of a workspace as the engine lists them.
pub struct Listed(pub Option<Arc<Manager>>);

impl McpServers for Listed {
    fn list(&self) -> Vec<McpServerInfo> {
        self.0.iter().flat_map(|manager| manager.status()).map(info).collect()
    }

    fn control<'a>(
        &'a self,
        name: &'a str,
        what: McpControl,
    ) -> BoxFuture<'a, Result<McpServerInfo, String>> {
        Box::pin(async move {
            let none = || format!("there is no MCP server `{name}`");
            let manager = self.0.as_ref().ok_or_else(none)?;
            let done = match what {
                McpControl::Enable => manager.switch(name, Switch::On),
                McpControl::Disable => manager.switch(name, Switch::Off),
                McpControl::Reconnect => manager.reconnect(name),
            };
            done.map_err(|error| error.to_string())?;
            manager.settled_status(name).await.map(info).map_err(|error| error.to_string())
        })
    }
}

/// A server in a listing.
pub fn info(status: ServerStatus) -> McpServerInfo {
    McpServerInfo {
        name: status.name,
        transport: status.transport.to_owned(),
        status: match status.phase {
            Phase::Configured => McpServerStatus::Configured,
            Phase::Connecting => McpServerStatus::Connecting,
            Phase::Connected => McpServerStatus::Connected,
            Phase::Failed => McpServerStatus::Failed,
            Phase::Off => McpServerStatus::Disabled,
        },
        error: status.error,
        tools_count: status.counts.map(|(tools, _, _)| tools),
        prompts_count: status.counts.map(|(_, prompts, _)| prompts),
        resources_count: status.counts.map(|(_, _, resources)| resources),
        latency_ms: status.latency.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// The servers of the settings that are not used, and how they would be reached.
pub fn disabled(settings: &Settings) -> Vec<(String, &'static str)> {
    let off = settings.mcp_servers.values().filter(|server| server.disabled);
    off.map(|server| (server.name.clone(), kind(&server.transport))).collect()
}

/// The word for a transport.
pub fn kind(transport: &Transport) -> &'static str {
    match transport {
        Transport::Http { .. } => "http",
        Transport::Sse { .. } => "sse",
        Transport::WebSocket { .. } => "websocket",
        _ => "stdio",
    }
}

/// Set by whoever makes the engine.
pub type EngineCell = OnceLock<Engine>;

#[cfg(test)]
mod tests {
    use hanzo_testkit::plain_spawner::PlainSpawner;

    use super::*;

    const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done"#;

    fn server(script: &str) -> ServerConfig {
        let argv = ["sh", "-c", script].map(OsString::from).to_vec();
        ServerConfig::new("s", TransportConfig::Stdio(StdioConfig { argv, env: Vec::new() }))
    }

    fn changes(config: ServerConfig, wait: Duration) -> Changes {
        let parts = ManagerParts::new(vec![config], Arc::new(PlainSpawner::new(std::env::temp_dir())));
        let manager = Arc::new(Manager::start(parts));
        let seen = manager.revision();
        Changes::new(ToolSet::default(), manager, seen, wait)
    }

    #[tokio::test]
    async fn a_server_seen_for_the_first_time_is_of_use_in_its_first_turn() {
        let changes = changes(server(SERVER), Duration::from_secs(30));
        changes.settle().await;
        let tools = changes.take().expect("there are tools now");
        assert!(tools.get("mcp__s__look").is_some());
        assert!(changes.take().is_none(), "and they are the same from then on");
    }

    #[tokio::test]
    async fn a_server_that_hangs_holds_up_no_turn() {
        let changes = changes(server("sleep 60"), FIRST_WAIT);
        let begun = Instant::now();
        changes.settle().await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(changes.take().is_none());
        let again = Instant::now();
        changes.settle().await;
        assert!(again.elapsed() < FIRST_WAIT, "the moment is over");
    }

    #[test]
    fn servers_are_told_how_many_agents_stand_above_them() {
        let environment = |pairs: &[(&str, &str)]| -> Environment {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(depth(&environment(&[])), 0);
        assert_eq!(depth(&environment(&[(DEPTH, "2")])), 2);
        assert_eq!(depth(&environment(&[(DEPTH, "many")])), 0);
    }
}
