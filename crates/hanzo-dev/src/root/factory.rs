//! Makes what an open thread needs: settings, policy, models, sandbox, tools, hooks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hanzo_config::{
    BashJail, Isolation, LoadInputs, LoadedConfig, ReadScope, Settings, Tier, ToolProfile, Trust,
    settings_files,
};
use hanzo_engine::agents::{AgentError, Catalog, DEFAULT_AGENT, ProjectTrust};
use hanzo_engine::capability::Capabilities;
use hanzo_engine::commands::CommandSource;
use hanzo_engine::parts::{
    Models, OpenThread, Places, SandboxState, ThreadFactory, ThreadParts, ToolChanges,
};
use hanzo_engine::references::ResourceReader;
use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::{Attendance, EngineError, EngineErrorKind};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::narrowing::Narrowing;
use hanzo_protocol::roles::ApiClient;
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::ToolCaller;
use hanzo_sandbox::jail::{JailConfig, JailSite};
use hanzo_sandbox::paths::{TmpMapping, Workspace};
use hanzo_sandbox::{IsolationMode, Reads, SandboxConfig};
use hanzo_store::{Checkpointer, FileBlobs};
use hanzo_tools::proc::{ProcOptions, ShellChoice, ShellKind};
use hanzo_tools::registry::{Names, tool_names};
use hanzo_tools::{Host, Profile, Selection, ToolOptions, toolset};

use super::Keep;
use super::browser::DesktopBrowser;
use super::hooks::hooks;
use super::jail::{LazyJail, NoJail};
use super::jobs::HostJobs;
use super::mcp;
use super::models::{Catalogue, Failures, ModelNeed, Wrap};
use super::outside::OutsideSpawner;
use super::rules::SettingsRules;
use super::scripts::Scripts;
use super::trust::TrustFile;
use crate::exit::{Exit, Failure};
use crate::policy::policy_from_settings;
use crate::sandbox::{Overrides, jail_config};

/// The factory of this process: what all threads share.
pub struct Factory {
    /// Where settings are looked for; each thread has its own workspace.
    pub inputs: LoadInputs,
    /// Where things are kept.
    pub data: PathBuf,
    /// Keeps content.
    pub blobs: FileBlobs,
    /// Whether the files of a workspace are kept for each turn.
    pub keep: Keep,
    /// Puts a recorder, or nothing, between the engine and models.
    pub wrap: Wrap,
    /// Plays a recording instead of asking any model.
    pub instead: Option<Arc<dyn ApiClient>>,
    /// Failures whose exit code an engine error cannot carry.
    pub failures: Failures,
    /// Whether there has to be a model.
    pub models: ModelNeed,
    /// The MCP servers of each workspace.
    pub mcp: Arc<mcp::Servers>,
    /// Tools that are scripts.
    pub scripts: Scripts,
    /// Whether clients of ours get the tools of MCP servers as well.
    pub offers_servers: AtomicBool,
    /// What confines the threads that were opened.
    pub sandboxes: Mutex<HashMap<ThreadId, Arc<dyn SandboxState>>>,
}

/// What runs a thread's programs.
struct Confined {
    spawner: Arc<dyn Spawner>,
    outside: Arc<dyn Spawner>,
    state: Arc<dyn SandboxState>,
    tmp: Option<PathBuf>,
}

impl Factory {
    /// The inputs for a thread in `workspace`.
    fn inputs(&self, workspace: &Path) -> LoadInputs {
        let mut inputs = LoadInputs::new(workspace, self.inputs.environment.clone());
        inputs.flags.clone_from(&self.inputs.flags);
        inputs.trust = TrustFile::new(inputs.clone()).trust(&inputs.workspace_root);
        inputs
    }

    fn parts(&self, request: OpenThread<'_>) -> Result<ThreadParts, Failure> {
        let inputs = self.inputs(request.workspace);
        let config = hanzo_config::load(&inputs)
            .map_err(|error| crate::commands::settings::failure(Exit::Config, &error))?;
        let config = Arc::new(config);
        let settings = config.settings();
        let policy = policy_from_settings(&config)?;
        let confined = Self::confine(settings, &inputs)?;
        let workspace = self.workspace(&inputs, settings, &confined)?;
        let browser = browser(&request, settings, &inputs);
        let host = self.host(settings, &inputs, &workspace, &confined, browser);
        let trust = project_trust(&inputs, &config);
        let manifest = Catalog { config: inputs.config_dir.as_deref(), project: Some((&workspace, trust)) }
            .get(request.agent.unwrap_or(DEFAULT_AGENT))
            .map_err(|error| agent_failure(&error))?;
        let mut selection = selection(settings);
        let is_client = request.caller == ToolCaller::Remote && request.parent.is_none();
        if is_client && selection.enabled.is_empty() {
            // A client of ours sees everything its agent may use; it costs no model's attention.
            let may_use = |name: &&'static str| manifest.capabilities.may_use(name);
            selection.enabled = tool_names().iter().copied().filter(may_use).map(str::to_owned).collect();
        }
        let places = Places {
            config: inputs.config_dir.clone().unwrap_or_else(|| self.data.join("config")),
            data: self.data.clone(),
            workspace: inputs.workspace_root.clone(),
            home: inputs.home.clone(),
        };
        let checkpoints = match self.keep {
            Keep::Stored => Some(Checkpointer::new(&inputs.workspace_root, self.blobs.clone())),
            Keep::Nothing => None,
        };
        let mut own = toolset(&host, &selection);
        let mut notices = notices(&config);
        notices.extend(self.scripts.join(&mut own, &settings.sandbox, &inputs, trust));
        // A client of ours has servers of its own, and reaches those of the settings through the agents it calls, unless it was
        // promised all of them.
        let manager = if is_client && !self.offers_servers.load(Ordering::Relaxed) {
            None
        } else {
            self.mcp.of(settings, &inputs, &self.data)?
        };
        let seen = manager.as_ref().map(|manager| manager.revision());
        let tools = manager.as_ref().map_or_else(|| own.clone(), |manager| mcp::join(&own, manager));
        let models: Arc<dyn Models> = Arc::new(self.catalogue(&config, &inputs));
        if manager.is_some() {
            self.mcp.remember(request.thread, &models);
        }
        let user_file = settings_files(&inputs).into_iter().find(|file| file.tier == Tier::User);
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        sandboxes.insert(request.thread, Arc::clone(&confined.state));
        Ok(ThreadParts {
            settings: Arc::new(settings.clone()),
            policy,
            models,
            tools,
            tool_changes: manager.as_ref().zip(seen).map(|(manager, seen)| {
                // A client has no turns, and many ask for the tools once only: they should be there when it comes.
                let wait = if is_client { mcp::CLIENT_WAIT } else { mcp::FIRST_WAIT };
                Arc::new(mcp::Changes::new(own, Arc::clone(manager), seen, wait)) as Arc<dyn ToolChanges>
            }),
            sandbox: confined.state,
            narrowing: Arc::clone(&host.modes) as Arc<dyn Narrowing>,
            hooks: hooks(settings, confined.spawner),
            manifest,
            // Whoever comes from elsewhere was let in by the face that says so, and has what its agent has.
            remote: match request.caller {
                ToolCaller::Local => Capabilities::nothing(),
                ToolCaller::Remote => Capabilities::everything(),
            },
            workspace,
            trust,
            resources: manager
                .as_ref()
                .map(|manager| Arc::new(mcp::Resources(Arc::clone(manager))) as Arc<dyn ResourceReader>),
            commands: manager
                .iter()
                .map(|manager| Arc::new(mcp::Prompts(Arc::clone(manager))) as Arc<dyn CommandSource>)
                .collect(),
            jobs: Arc::new(HostJobs(Arc::downgrade(&host))),
            mcp_servers: Arc::new(mcp::Listed(manager)),
            checkpoints,
            places,
            rules: Arc::new(SettingsRules::new(user_file.map(|file| file.path))),
            notices,
        })
    }

    fn catalogue(&self, config: &Arc<LoadedConfig>, inputs: &LoadInputs) -> Catalogue {
        let wrap = Arc::clone(&self.wrap);
        let failures = Arc::clone(&self.failures);
        Catalogue::new(Arc::clone(config), &inputs.environment, wrap, failures, self.instead.clone())
            .needed(self.models)
    }

    fn confine(settings: &Settings, inputs: &LoadInputs) -> Result<Confined, Failure> {
        let env = JailConfig::new(&inputs.workspace_root).env;
        let outside = || Arc::new(OutsideSpawner::new(inputs.workspace_root.clone(), env.clone()));
        if settings.sandbox.mode == Isolation::Off || settings.sandbox.bash == BashJail::Off {
            let outside = outside();
            return Ok(Confined { spawner: outside.clone(), outside, state: Arc::new(NoJail), tmp: None });
        }
        let config = jail_config(&settings.sandbox, inputs, &Overrides::default())?;
        let site = JailSite::prepare(config).map_err(|error| Failure::message(Exit::Sandbox, error))?;
        let tmp = site.tmp_dir();
        let jail = Arc::new(LazyJail::new(site));
        // The model is told how strong it is, so it is needed soon; the store and the settings take as long.
        jail.warm();
        Ok(Confined { spawner: jail.clone(), outside: outside(), state: jail, tmp: Some(tmp) })
    }

    /// The directories the file tools work in, `/tmp` being the jail's.
    fn workspace(
        &self,
        inputs: &LoadInputs,
        settings: &Settings,
        confined: &Confined,
    ) -> Result<Arc<Workspace>, Failure> {
        let root = settings.sandbox.workspace_root.as_deref().unwrap_or(&inputs.workspace_root);
        let config = sandbox_config(settings, inputs, &self.data);
        let opened = Workspace::open(root, &config);
        let mut workspace = opened.map_err(|error| Failure::message(Exit::BadInput, error))?;
        if let Some(tmp) = &confined.tmp {
            let directory = std::fs::File::open(tmp)?.into();
            workspace = workspace.with_tmp(TmpMapping { alias: PathBuf::from("/tmp"), directory });
        }
        Ok(Arc::new(workspace))
    }

    /// What the thread's tools share.
    fn host(
        &self,
        settings: &Settings,
        inputs: &LoadInputs,
        workspace: &Arc<Workspace>,
        confined: &Confined,
        browser: Option<DesktopBrowser>,
    ) -> Arc<Host> {
        let mut options = ToolOptions::new(self.data.join("tools"));
        options.proc = proc_options(&settings.tools);
        options.net.private_hosts.clone_from(&settings.tools.net.private_hosts);
        options.modes_dir = inputs.config_dir.as_ref().map(|config| config.join("modes"));
        let mut host = Host::new(
            Arc::clone(workspace),
            Arc::clone(&confined.spawner),
            Arc::new(self.blobs.clone()),
            options,
        )
        .with_outside(Arc::clone(&confined.outside));
        if let Some(browser) = browser {
            host = host.with_browser(Arc::new(browser));
        }
        Arc::new(host)
    }
}

/// Which tools the settings want, and by which names.
fn selection(settings: &Settings) -> Selection {
    Selection {
        enabled: settings.tools.enabled.clone(),
        profile: match settings.tools.profile {
            ToolProfile::Classic => Profile::Classic,
            _ => Profile::Unified,
        },
        names: if settings.tools.strict { Names::Strict } else { Names::WithAliases },
    }
}

/// The browser for a thread: only where somebody sits who sees it.
fn browser(request: &OpenThread<'_>, settings: &Settings, inputs: &LoadInputs) -> Option<DesktopBrowser> {
    let somebody_is_there =
        request.caller == ToolCaller::Local && request.options.attendance == Attendance::Attended;
    if somebody_is_there && settings.tools.net.browser {
        DesktopBrowser::find(&inputs.environment)
    } else {
        None
    }
}

/// How the settings want programs run.
fn proc_options(tools: &hanzo_config::Tools) -> ProcOptions {
    ProcOptions {
        background_after: Duration::from_secs(tools.background_after_seconds.into()),
        bash_wait: Duration::from_secs(tools.bash_timeout_seconds.into()),
        shell: ShellChoice {
            kind: match tools.shell.prefer {
                hanzo_config::ShellKind::Bash => ShellKind::Bash,
                hanzo_config::ShellKind::Powershell => ShellKind::Powershell,
                hanzo_config::ShellKind::Pwsh => ShellKind::Pwsh,
                _ => ShellKind::Auto,
            },
            path: tools.shell.path.clone(),
        },
        ..ProcOptions::default()
    }
}

/// Whether what the project brings along may be used: the user trusted it, and it is still what they trusted.
fn project_trust(inputs: &LoadInputs, config: &LoadedConfig) -> ProjectTrust {
    match inputs.trust {
        Trust::Untrusted => ProjectTrust::Untrusted,
        _ if config.disabled().is_empty() => ProjectTrust::Trusted,
        _ => ProjectTrust::Untrusted,
    }
}

fn agent_failure(error: &AgentError) -> Failure {
    let exit = match error {
        AgentError::Untrusted { .. } => Exit::Untrusted,
        AgentError::Unknown { .. } => Exit::BadInput,
        _ => Exit::Config,
    };
    Failure::message(exit, error)
}

impl ThreadFactory for Factory {
    fn open<'a>(&'a self, request: OpenThread<'a>) -> BoxFuture<'a, Result<ThreadParts, EngineError>> {
        Box::pin(async move {
            let is_client = request.caller == ToolCaller::Remote && request.parent.is_none();
            let mut parts = self.parts(request).map_err(|failure| {
                let message = failure.to_string();
                *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                EngineError { kind: EngineErrorKind::InvalidParams, message }
            })?;
            if let Some(changes) = parts.tool_changes.clone().filter(|_| is_client) {
                changes.settle().await;
                parts.tools = changes.take().unwrap_or(parts.tools);
            }
            Ok(parts)
        })
    }
}

/// What the user should know about the settings.
fn notices(config: &LoadedConfig) -> Vec<String> {
    let warnings = config.warnings().iter().map(ToString::to_string);
    warnings.chain(config.disabled().iter().map(ToString::to_string)).collect()
}

/// What the built-in file tools may touch.
fn sandbox_config(settings: &Settings, inputs: &LoadInputs, data: &Path) -> SandboxConfig {
    let sandbox = &settings.sandbox;
    let nowhere = Path::new("/nonexistent");
    let home = inputs.home.as_deref().unwrap_or(nowhere);
    let config = inputs.config_dir.as_deref().unwrap_or(nowhere);
    SandboxConfig {
        mode: match sandbox.mode {
            Isolation::Off => IsolationMode::Off,
            Isolation::Allowlist => IsolationMode::Allowlist,
            _ => IsolationMode::Workspace,
        },
        allowed_paths: sandbox.allowed_paths.clone(),
        allow_write: sandbox.allow_write.clone(),
        reads: match sandbox.reads {
            ReadScope::Workspace => Reads::Workspace,
            _ => Reads::Any,
        },
        unreadable: hanzo_sandbox::protected::default_unreadable(home, config, data),
        never_write: vec![config.to_owned(), data.to_owned()],
        ..SandboxConfig::default()
    }
}
