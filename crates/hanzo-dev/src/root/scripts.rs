//! Tools that are a script and a manifest: the user's in `tools` of their configuration, and a trusted project's in `.hanzo/tools`.
//! They are shared by all threads of a workspace, so that a rate is one rate however many threads there are.

use std::collections::HashMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hanzo_config::{BashJail, Isolation, LoadInputs, Sandbox};
use hanzo_engine::agents::ProjectTrust;
use hanzo_mcp::manifest::{Files, Manifest, ManifestTool, Network, Sites, Walls, find};
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::ToolSet;
use hanzo_sandbox::jail::{EnvPolicy, JailSite, Protected};
use hanzo_tools::alias;

use super::jail::LazyJail;
use super::outside::OutsideSpawner;
use crate::sandbox::{Overrides, jail_config};

/// The memory a script has when the settings say nothing.
const MEMORY: u64 = 512 * 1024 * 1024;
/// The processors all scripts of a workspace with the same permissions share.
const CORES: NonZeroUsize = NonZeroUsize::MIN;
/// Where the user's tools are, in their configuration.
const OWN: &str = "tools";
/// Where a project's tools are.
const PROJECT: &str = ".hanzo/tools";

/// The scripts of this process.
#[derive(Default)]
pub struct Scripts {
    tools: Mutex<HashMap<(PathBuf, String), Arc<ManifestTool>>>,
    sites: Mutex<HashMap<PathBuf, (Sandbox, Arc<Jails>)>>,
}

impl Scripts {
    /// Adds the scripts of a workspace to its tools; returns what the user should know of those that cannot be used.
    pub fn join(
        &self,
        tools: &mut ToolSet,
        sandbox: &Sandbox,
        inputs: &LoadInputs,
        trust: ProjectTrust,
    ) -> Vec<String> {
        let mut notices = Vec::new();
        let own = inputs.config_dir.as_ref().map(|config| (config.join(OWN), config.clone()));
        let project = match trust {
            ProjectTrust::Trusted => {
                Some((inputs.workspace_root.join(PROJECT), inputs.workspace_root.clone()))
            }
            ProjectTrust::Untrusted => None,
        };
        for (directory, within) in own.into_iter().chain(project) {
            let (found, faults) = find(&directory, &within);
            notices.extend(faults.iter().map(ToString::to_string));
            for manifest in found {
                let name = manifest.name.clone();
                if is_taken(tools, &name) {
                    notices.push(format!(
                        "the tool `{name}` of `{}` cannot be used: there is a tool of that name",
                        directory.display()
                    ));
                    continue;
                }
                match self.tool(manifest, sandbox, inputs) {
                    Ok(tool) => {
                        tools.insert(tool);
                    }
                    Err(reason) => notices.push(format!("the tool `{name}` cannot be used: {reason}")),
                }
            }
        }
        notices
    }

    fn tool(
        &self,
        manifest: Manifest,
        sandbox: &Sandbox,
        inputs: &LoadInputs,
    ) -> Result<Arc<ManifestTool>, String> {
        let sites = self.sites(sandbox, inputs);
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (inputs.workspace_root.clone(), manifest.name.clone());
        if let Some(tool) = tools.get(&key).filter(|tool| *tool.manifest() == manifest) {
            return Ok(Arc::clone(tool));
        }
        let variable = |name: &str| inputs.environment.get(name).map(OsString::from);
        let tool = Arc::new(ManifestTool::new(manifest, sites, variable)?);
        tools.insert(key, Arc::clone(&tool));
        Ok(tool)
    }

    fn sites(&self, sandbox: &Sandbox, inputs: &LoadInputs) -> Arc<Jails> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_of, jails)) = sites.get(&inputs.workspace_root)
            && made_of == sandbox
        {
            return Arc::clone(jails);
        }
        let jails =
            Arc::new(Jails { sandbox: sandbox.clone(), inputs: inputs.clone(), built: Mutex::default() });
        sites.insert(inputs.workspace_root.clone(), (sandbox.clone(), Arc::clone(&jails)));
        jails
    }
}

/// Whether a name is one of ours already, whichever way: rules would take the script for what they know by it.
fn is_taken(tools: &ToolSet, name: &str) -> bool {
    tools.get(name).is_some()
        || alias::canonical(name).is_some()
        || hanzo_tools::registry::tool_names().contains(&name)
}

/// Sandboxes for the scripts of a workspace, made when they are needed.
struct Jails {
    sandbox: Sandbox,
    inputs: LoadInputs,
    built: Mutex<HashMap<Walls, Arc<dyn Spawner>>>,
}

impl Sites for Jails {
    fn spawner(&self, walls: Walls) -> Result<Arc<dyn Spawner>, String> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spawner) = built.get(&walls) {
            return Ok(Arc::clone(spawner));
        }
        let spawner = self.build(walls)?;
        built.insert(walls, Arc::clone(&spawner));
        Ok(spawner)
    }

    fn workspace(&self) -> &Path {
        &self.inputs.workspace_root
    }
}

impl Jails {
    fn build(&self, walls: Walls) -> Result<Arc<dyn Spawner>, String> {
        let env = EnvPolicy { inherit: vec!["PATH".to_owned(), "LANG".to_owned()], set: Vec::new() };
        if self.sandbox.mode == Isolation::Off || self.sandbox.bash == BashJail::Off {
            return Ok(Arc::new(OutsideSpawner::new(self.inputs.workspace_root.clone(), env)));
        }
        let overrides = Overrides { network: walls.network == Network::On, ..Overrides::default() };
        let mut config =
            jail_config(&self.sandbox, &self.inputs, &overrides).map_err(|failure| failure.to_string())?;
        config.env = env;
        config.limits.memory.get_or_insert(MEMORY);
        config.cores = Some(CORES);
        if walls.network == Network::Off {
            config.network = hanzo_sandbox::Network::Off;
        }
        if walls.files == Files::Read {
            config.writable.clear();
            config.protected.push(Protected::new(config.workspace.clone()));
        }
        // The scripts of the user are seen also where something else lies over them, such as a `/tmp` of the sandbox's own.
        let own = self.inputs.config_dir.as_ref().map(|config| config.join(OWN)).filter(|own| own.is_dir());
        config.writable.extend(own.clone());
        config.protected.extend(own.map(Protected::new));
        let site = JailSite::prepare(config).map_err(|error| error.to_string())?;
        Ok(Arc::new(LazyJail::new(site)))
    }
}
