//! `hanzo-dev mcp`: the servers of the settings, looked at, changed and tried.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hanzo_config::{
    CredentialsStore, LoadInputs, LoadedConfig, McpServer, Template, Tier, Transport, settings_files,
};
use hanzo_mcp::client::{Manager, ManagerParts, Phase, ServerConfig, ServerStatus};
use serde_json::{Value, json};

use crate::cli::{Global, McpAddArgs, McpCommand, McpScope, McpTransport};
use crate::commands::mcp_settings::{Entry, with_server, without_server};
use crate::commands::settings::{self, Assume};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::credentials::{self, Credentials};
use crate::root::{block_on, data_dir, edit, mcp};
use crate::secret;

/// Runs the command.
pub fn run(global: &Global, command: &McpCommand, printer: &mut Printer) -> Result<ExitCode, Failure> {
    match command {
        McpCommand::List { offline, timeout, json } => {
            let wait = (!offline).then(|| Duration::from_secs(*timeout));
            list(global, wait, *json, printer)?;
        }
        McpCommand::Add(args) => add(global, args, printer)?,
        McpCommand::Remove { name, scope } => remove(global, name, *scope, printer)?,
        McpCommand::Get { name } => get(global, name, printer)?,
        McpCommand::Login { name } => login(global, name, printer)?,
        McpCommand::Logout { name } => logout(global, name, printer)?,
        McpCommand::Test { name, json } => return test(global, name, *json, printer),
    }
    Ok(Exit::Ok.into())
}

/// The settings as threads of this workspace see them.
fn loaded(global: &Global, printer: &mut Printer) -> Result<(LoadInputs, LoadedConfig), Failure> {
    let inputs = settings::inputs(global, Assume::Remembered)?;
    let config = hanzo_config::load(&inputs).map_err(|error| settings::failure(Exit::Config, &error))?;
    for warning in config.warnings() {
        printer.warning(&warning.to_string());
    }
    for disabled in config.disabled() {
        printer.warning(&disabled.to_string());
    }
    Ok((inputs, config))
}

/// Servers that are used, as the client wants them.
fn parts(inputs: &LoadInputs, config: &LoadedConfig, only: Option<&str>) -> Result<ManagerParts, Failure> {
    parts_with(inputs, config, only, &Credentials::load(inputs)?)
}

fn parts_with(
    inputs: &LoadInputs,
    config: &LoadedConfig,
    only: Option<&str>,
    credentials: &Credentials,
) -> Result<ManagerParts, Failure> {
    let settings = config.settings();
    let wanted = settings.enabled_servers().filter(|server| only.is_none_or(|name| server.name == name));
    let servers: Vec<ServerConfig> =
        wanted.map(|server| mcp::server_config(server, &inputs.environment, credentials)).collect();
    let mut parts = ManagerParts::new(servers, mcp::spawner(settings, inputs)?);
    parts.data = data_dir(inputs).ok().map(|data| data.join("mcp"));
    parts.roots = vec![inputs.workspace_root.clone()];
    Ok(parts)
}

/// Lists servers, connected to for at most `wait`.
fn list(
    global: &Global,
    wait: Option<Duration>,
    as_json: bool,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let (inputs, config) = loaded(global, printer)?;
    let parts = parts(&inputs, &config, None)?;
    let statuses = block_on(async move {
        let Some(wait) = wait else { return Ok(Manager::at_rest(parts).status()) };
        let manager = Manager::start(parts);
        let _ = tokio::time::timeout(wait, manager.settled()).await;
        let statuses = manager.status();
        manager.shutdown().await;
        Ok(statuses)
    })?;
    let disabled = mcp::disabled(config.settings());
    if as_json {
        let used =
            statuses.into_iter().map(|status| serde_json::to_value(mcp::info(status)).unwrap_or_default());
        let off = disabled
            .iter()
            .map(|(name, kind)| json!({"name": name, "transport": kind, "status": "disabled"}));
        return printer.json(&used.chain(off).collect::<Vec<Value>>());
    }
    if statuses.is_empty() && disabled.is_empty() {
        printer.note("no MCP servers are configured\n\nhint: `hanzo-dev mcp add NAME -- COMMAND` adds one");
        return Ok(());
    }
    for status in &statuses {
        printer.line(&summary(status, wait.is_some()))?;
        for note in &status.notes {
            printer.line(&format!("    {note}"))?;
        }
    }
    for (name, kind) in &disabled {
        printer.line(&format!("{name}  {kind}  disabled"))?;
    }
    Ok(())
}

/// A server in a line.
fn summary(status: &ServerStatus, tried: bool) -> String {
    let how = match (status.phase, &status.error) {
        (Phase::Connected, _) => "connected".to_owned(),
        (Phase::Failed, Some(error)) => format!("failed: {}", error.replace("\n\n", " ")),
        (Phase::Connecting, Some(error)) => format!("connecting again after: {}", error.replace("\n\n", " ")),
        _ if tried => "does not answer yet".to_owned(),
        _ => "not tried".to_owned(),
    };
    let counts = mcp::info(status.clone()).counts().map(|counts| format!("  {counts}"));
    let latency = status.latency.map(|took| format!("  {} ms", took.as_millis()));
    let protocol = status.protocol.as_ref().map(|version| format!("  protocol {version}"));
    let more: Vec<String> = [counts, protocol, latency].into_iter().flatten().collect();
    format!("{}  {}  {how}{}", status.name, status.transport, more.concat())
}

/// The file of a scope.
fn file(global: &Global, scope: McpScope) -> Result<std::path::PathBuf, Failure> {
    let inputs = settings::inputs(global, Assume::Remembered)?;
    let tier = match scope {
        McpScope::User => Tier::User,
        McpScope::Project => Tier::Project,
        McpScope::Local => Tier::Local,
    };
    let found = settings_files(&inputs).into_iter().find(|file| file.tier == tier).map(|file| file.path);
    let found = found.ok_or_else(|| {
        Failure::message(Exit::Config, "nothing says where your settings belong\n\nhint: set `HOME`")
    })?;
    if found.extension().is_some_and(|ending| ending == "json") {
        let text =
            format!("{} is JSON, which is not changed here\n\nhint: edit it yourself", found.display());
        return Err(Failure::message(Exit::BadInput, text));
    }
    Ok(found)
}

fn add(global: &Global, args: &McpAddArgs, printer: &mut Printer) -> Result<(), Failure> {
    let usage = |text: &str| Failure::message(Exit::Usage, text);
    let pairs = |given: &[String], what: &str| {
        let pair = |text: &String| {
            let wrong = || usage(&format!("`{what} {text}` has no `=`\n\nhint: write `{what} NAME=VALUE`"));
            text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(wrong)
        };
        given.iter().map(pair).collect::<Result<Vec<_>, _>>()
    };
    if args.name.trim().is_empty() {
        return Err(usage("a server needs a name"));
    }
    let kind = match (&args.url, args.command.is_empty()) {
        (None, true) => {
            return Err(usage(
                "neither a URL nor a command is given\n\nhint: `hanzo-dev mcp add NAME -- COMMAND`",
            ));
        }
        (None, false) => None,
        (Some(_), _) => Some(match args.transport {
            McpTransport::Http => "http",
            McpTransport::Sse => "sse",
            McpTransport::Websocket => "websocket",
        }),
    };
    let entry = Entry {
        name: args.name.clone(),
        kind,
        command: args.command.clone(),
        url: args.url.clone(),
        env: pairs(&args.env, "--env")?,
        headers: pairs(&args.header, "--header")?,
        allow_env: args.allow_env.clone(),
        timeout: args.timeout,
        trusted: args.trusted,
    };
    let file = file(global, args.scope)?;
    edit(&file, |text| with_server(text, &entry)).map_err(|error| Failure::message(Exit::BadInput, error))?;
    printer.note(&format!(
        "added `{}` to {}\n\nhint: `hanzo-dev mcp test {}` tries it",
        args.name,
        file.display(),
        args.name
    ));
    Ok(())
}

fn remove(global: &Global, name: &str, scope: McpScope, printer: &mut Printer) -> Result<(), Failure> {
    let file = file(global, scope)?;
    edit(&file, |text| without_server(text, name))
        .map_err(|error| Failure::message(Exit::BadInput, error))?;
    printer.note(&format!("removed `{name}` from {}", file.display()));
    Ok(())
}

/// The server of that name, or what there is instead.
fn known<'a>(config: &'a LoadedConfig, name: &str) -> Result<&'a McpServer, Failure> {
    let servers = &config.settings().mcp_servers;
    servers.get(name).ok_or_else(|| {
        let names: Vec<&str> = servers.keys().map(String::as_str).collect();
        let there = if names.is_empty() {
            "none is configured".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        Failure::message(Exit::BadInput, format!("there is no MCP server `{name}`; {there}"))
    })
}

fn get(global: &Global, name: &str, printer: &mut Printer) -> Result<(), Failure> {
    let (_, config) = loaded(global, printer)?;
    let server = known(&config, name)?;
    // Secrets are written as they stand in the file, or masked.
    printer.json(server)
}

/// The address of a server to which a token can be sent.
fn address(server: &McpServer) -> Result<&Template, Failure> {
    let (Transport::Http { url, headers }
    | Transport::Sse { url, headers }
    | Transport::WebSocket { url, headers }) = &server.transport
    else {
        let text = format!(
            "`{}` is a program, to which no token is sent\n\nhint: give it a variable, as with `hanzo-dev mcp add --env`",
            server.name
        );
        return Err(Failure::message(Exit::BadInput, text));
    };
    if headers.keys().any(|name| name.eq_ignore_ascii_case(mcp::AUTHORIZATION)) {
        let text = format!(
            "the settings of `{}` say what to send as `{}`\n\nhint: take that out of its `headers` first",
            server.name,
            mcp::AUTHORIZATION
        );
        return Err(Failure::message(Exit::BadInput, text));
    }
    Ok(url)
}

fn login(global: &Global, name: &str, printer: &mut Printer) -> Result<(), Failure> {
    let (inputs, config) = loaded(global, printer)?;
    let server = known(&config, name)?;
    let address = address(server)?;
    let url = address.expanded();
    if config.settings().credentials_store == CredentialsStore::Os {
        let text = "`credentials_store` is `os`, and this build keeps credentials in a file only\n\nhint: set it to `file`";
        return Err(Failure::message(Exit::Config, text));
    }
    // As it stands in the settings: what a variable in it stands for may be a secret of its own.
    let token = secret::read(&format!("Token for `{name}` at {}", address.raw()))?;
    let credentials = Credentials::load(&inputs)?.with_mcp_token(name, url, &token);
    let mut parts = parts_with(&inputs, &config, Some(name), &credentials)?;
    // What the server says is remembered once the token is.
    parts.data = None;
    let status = block_on(async move {
        let manager = Manager::start(parts);
        manager.settled().await;
        let status = manager.status().pop();
        manager.shutdown().await;
        Ok(status)
    })?;
    if status.as_ref().is_some_and(|status| status.wants_login) {
        let text = format!("`{name}` does not accept this token; it is not kept");
        return Err(Failure::message(Exit::Auth, text));
    }
    let file = credentials::keep_mcp_token(&inputs, name, url, &token)?;
    printer.note(&format!("the token for `{name}` is kept in {}", file.display()));
    if let Some(status) = status {
        printer.line(&summary(&status, true))?;
    }
    Ok(())
}

fn logout(global: &Global, name: &str, printer: &mut Printer) -> Result<(), Failure> {
    // The server may be gone from the settings.
    let inputs = settings::inputs(global, Assume::Remembered)?;
    let said = if credentials::forget_mcp_token(&inputs, name)? {
        format!(
            "the token for `{name}` is forgotten here; it stays valid until you revoke it where you got it"
        )
    } else {
        format!("no token is kept for `{name}`")
    };
    printer.note(&said);
    Ok(())
}

fn test(global: &Global, name: &str, as_json: bool, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let (inputs, config) = loaded(global, printer)?;
    if known(&config, name)?.disabled {
        return Err(Failure::message(
            Exit::BadInput,
            format!("the MCP server `{name}` is disabled in the settings"),
        ));
    }
    let parts = parts(&inputs, &config, Some(name))?;
    let (status, listing, tools) = block_on(async move {
        let manager = Manager::start(parts);
        manager.settled().await;
        let status = manager.status().pop();
        let listing = status.as_ref().and_then(|status| manager.listing(&status.name));
        let tools: Vec<Arc<_>> = manager.tools();
        manager.shutdown().await;
        Ok((status, listing, tools))
    })?;
    let missing = || Failure::message(Exit::Failure, format!("nothing is known about `{name}`"));
    let status = status.ok_or_else(missing)?;
    let works = status.phase == Phase::Connected;
    let exit = if works { Exit::Ok } else { Exit::Failure };
    let offered: Vec<&str> =
        tools.iter().map(|tool| hanzo_protocol::tool::Tool::schema(&**tool).name.as_str()).collect();
    if as_json {
        let listing = listing.as_deref();
        let shown = json!({
            "server": mcp::info(status.clone()),
            "protocol": status.protocol,
            "title": listing.and_then(|list| list.title.clone()),
            "tools": offered,
            "prompts": listing.map(|list| list.prompts.iter().map(|prompt| &prompt.name).collect::<Vec<_>>()),
            "resources": listing.map(|list| list.resources.iter().map(|resource| &resource.uri).collect::<Vec<_>>()),
            "notes": status.notes,
        });
        printer.json(&shown)?;
        return Ok(exit.into());
    }
    if !works {
        let reason = status.error.unwrap_or_else(|| format!("the MCP server `{name}` does not answer"));
        return Err(Failure::message(Exit::Failure, reason));
    }
    printer.line(&summary(&status, true))?;
    for tool in offered {
        printer.line(&format!("  {tool}"))?;
    }
    for note in &status.notes {
        printer.line(&format!("  note: {note}"))?;
    }
    Ok(exit.into())
}
