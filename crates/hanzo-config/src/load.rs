//! Loading: files, environment and flags to one [`LoadedConfig`]. Everything ambient is handed in.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::canonical;
use crate::check::{Checker, UnknownKeys};
use crate::dotenv;
use crate::environment::{ENVIRONMENT, locale_language};
use crate::error::{ConfigError, Warning, WarningKind};
use crate::expand::{Defined, Environment, Variables};
use crate::finish;
use crate::flags::FlagOverride;
use crate::loaded::{LoadedConfig, TierFile};
use crate::merge;
use crate::node::{Data, Member, Node, Source, SourceId, Sources, Table, Tier, file_origin};
use crate::parse::{Format, parse, without_bom};
use crate::paths;
use crate::trust::{Gate, Stance, Trust, secrets, strip_secrets};

/// The largest settings file we read.
pub const MAX_FILE_SIZE: u64 = 4 * 1024 * 1024;

/// Everything loading depends on.
#[derive(Debug, Clone)]
pub struct LoadInputs {
    /// The directory of the user's settings, see [`crate::user_config_dir`]. `None`: no user tier.
    pub config_dir: Option<PathBuf>,
    /// The home directory, for `~`.
    pub home: Option<PathBuf>,
    /// The working directory, where `.env` is looked for.
    pub cwd: PathBuf,
    /// The workspace, see [`find_workspace_root`].
    pub workspace_root: PathBuf,
    /// The environment.
    pub environment: Environment,
    /// Flags that set settings, weakest first.
    pub flags: Vec<FlagOverride>,
    /// Whether the user trusts the workspace.
    pub trust: Trust,
}

impl LoadInputs {
    /// Inputs for `cwd` in `environment`: the usual directories, no flags, an untrusted workspace.
    pub fn new(cwd: impl Into<PathBuf>, environment: Environment) -> Self {
        let cwd = cwd.into();
        let platform = crate::environment::Platform::current();
        let home = crate::environment::home_dir(&environment, platform);
        Self {
            config_dir: crate::environment::user_config_dir(&environment, platform).map(|dir| cwd.join(dir)),
            workspace_root: find_workspace_root(&cwd, home.as_deref()),
            home,
            cwd,
            environment,
            flags: Vec::new(),
            trust: Trust::Untrusted,
        }
    }

    /// The settings files that may exist: two per tier, of which one may be there.
    fn candidates(&self, tier: Tier) -> Option<[PathBuf; 2]> {
        let (directory, stem) = match tier {
            Tier::User => (self.config_dir.clone()?, "settings"),
            Tier::Project => (self.workspace_root.join(".hanzo"), "settings"),
            Tier::Local => (self.workspace_root.join(".hanzo"), "settings.local"),
            Tier::McpJson | Tier::DotEnv => return None,
        };
        Some([directory.join(format!("{stem}.toml")), directory.join(format!("{stem}.json"))])
    }

    fn shown(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.workspace_root) {
            return inside.display().to_string();
        }
        match self.home.as_deref().map(|home| path.strip_prefix(home)) {
            Some(Ok(inside)) => format!("~/{}", inside.display()),
            _ => path.display().to_string(),
        }
    }
}

/// The nearest directory from `cwd` upwards that holds `.hanzo` or `.git`, else `cwd`.
///
/// The home directory and what lies above it count only as `cwd` itself: a repository of dotfiles must not make
/// the whole home directory a workspace.
pub fn find_workspace_root(cwd: &Path, home: Option<&Path>) -> PathBuf {
    cwd.ancestors()
        .take_while(|directory| *directory == cwd || home.is_none_or(|home| !home.starts_with(directory)))
        .find(|directory| [".hanzo", ".git"].iter().any(|marker| directory.join(marker).exists()))
        .unwrap_or(cwd)
        .to_owned()
}

/// Loads everything `inputs` points at.
pub fn load(inputs: &LoadInputs) -> Result<LoadedConfig, ConfigError> {
    Loader { inputs, sources: Sources::default(), warnings: Vec::new() }.run()
}

/// The files [`load`] reads for `inputs`, strongest tier last, whether they are there or not. Opens none of them, so
/// that it also helps to find one that is broken. Of a tier without a file, the one to create is named.
pub fn settings_files(inputs: &LoadInputs) -> Vec<TierFile> {
    let mut files = Vec::new();
    let file = |tier, path: PathBuf| TierFile { tier, present: path.symlink_metadata().is_ok(), path };
    for tier in [Tier::User, Tier::Project, Tier::Local] {
        let Some(candidates) = inputs.candidates(tier) else { continue };
        let [toml, json] = candidates.map(|path| file(tier, path));
        let json_alone = json.present && !toml.present;
        files.extend((!json_alone).then_some(toml));
        files.extend(json.present.then_some(json));
    }
    files.push(file(Tier::McpJson, inputs.workspace_root.join(".mcp.json")));
    files.push(file(Tier::DotEnv, inputs.cwd.join(".env")));
    files
}

struct Loader<'a> {
    inputs: &'a LoadInputs,
    sources: Sources,
    warnings: Vec<Warning>,
}

impl Loader<'_> {
    fn run(mut self) -> Result<LoadedConfig, ConfigError> {
        let user = self.tier(Tier::User)?;
        self.warn_readable(&user);
        let mut project = self.tier(Tier::Project)?;
        let mut local = self.tier(Tier::Local)?;
        let mut mcp_json = self.mcp_json()?;
        let mut dot_env = self.dot_env();
        for layer in [&mut project, &mut local] {
            strip_secrets(layer, &self.sources, &mut self.warnings);
        }

        let mut pass = |stance| {
            let workspace = &self.inputs.workspace_root;
            let mut gate = Gate { stance, user: &user, workspace, found: Vec::new() };
            gate.layer(&mut mcp_json);
            gate.layer(&mut project);
            gate.layer(&mut local);
            gate.dot_env(&mut dot_env.variables);
            (gate.disabled(&self.sources), gate.digest())
        };
        let (disabled, digest) = match &self.inputs.trust {
            Trust::Trusted => pass(Stance::Keep),
            Trust::Untrusted => pass(Stance::Remove),
            Trust::Remembered(trusted) => match pass(Stance::Keep) {
                (_, Some(found)) if found != *trusted => pass(Stance::Remove),
                same => same,
            },
        };

        let mut layers = vec![mcp_json, user, project, local, self.environment_layer()?];
        for flag in &self.inputs.flags {
            let layer = flag.layer(&mut self.sources)?;
            let layer = self.checked(layer)?;
            layers.push(paths::resolved(layer, Some(&self.inputs.cwd), self.inputs.home.as_deref()));
        }

        let mut merged = merge::under(&layers[0], &layers[1..]);
        for layer in &layers[1..] {
            merge::settings(&mut merged, layer.clone(), &self.sources);
        }
        self.fall_back_to_locale(&mut merged);

        let variables = self.variables(&merged, &dot_env);
        let settings = finish::settings(&mut merged, &variables, &self.sources, &mut self.warnings)?;
        let files = settings_files(self.inputs);
        let Self { sources, warnings, .. } = self;
        Ok(LoadedConfig { settings, merged, layers, sources, warnings, disabled, digest, files, variables })
    }

    /// The canonical layer of a tier; empty when there is no file.
    fn tier(&mut self, tier: Tier) -> Result<Node, ConfigError> {
        let empty = Node::table(SourceId::default().at(0));
        let Some([toml, json]) = self.inputs.candidates(tier) else { return Ok(empty) };
        let texts = [self.read(tier, &toml)?, self.read(tier, &json)?];
        let (path, text, format) = match texts {
            [Some(_), Some(_)] => return Err(ConfigError::TwoFormats { tier, toml, json }),
            [Some(text), None] => (toml, text, Format::Toml),
            [None, Some(text)] => (json, text, Format::Json),
            [None, None] => return Ok(empty),
        };
        let source = self.add(tier, &path, text);
        let node = self.checked(parse(&self.sources, source, format)?)?;
        let base =
            if tier == Tier::User { path.parent() } else { Some(self.inputs.workspace_root.as_path()) };
        Ok(paths::resolved(node, base, self.inputs.home.as_deref()))
    }

    fn checked(&mut self, mut node: Node) -> Result<Node, ConfigError> {
        Checker { sources: &self.sources, warnings: &mut self.warnings, unknown: UnknownKeys::Warn }
            .settings(&mut node)?;
        canonical::settings(&self.sources, &mut node)?;
        Ok(node)
    }

    fn add(&mut self, tier: Tier, path: &Path, text: String) -> SourceId {
        let shown = self.inputs.shown(path);
        self.sources.add(Source::File { tier, path: path.to_owned(), shown, text })
    }

    /// The text of a file, or `None` when there is none.
    fn read(&self, tier: Tier, path: &Path) -> Result<Option<String>, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        // Asked before opening: opening a pipe waits for somebody to write to it.
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(unreadable(e)),
        };
        if metadata.is_dir() && tier == Tier::McpJson && is_empty(path) {
            // Where there is no such file, the sandbox of another process holds its place with a directory for as long as
            // something runs in it.
            return Ok(None);
        }
        if !metadata.is_file() {
            return Err(ConfigError::NotAFile { path: path.to_owned() });
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_SIZE {
            let size = metadata.len().max(bytes.len() as u64);
            return Err(ConfigError::TooLarge { path: path.to_owned(), size, limit: MAX_FILE_SIZE });
        }
        match std::str::from_utf8(without_bom(&bytes)) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(e) => {
                let text = without_bom(&bytes);
                let at = file_origin(tier, path, &self.inputs.shown(path), text, e.valid_up_to());
                Err(ConfigError::NotUtf8 { at, offset: bytes.len() - text.len() + e.valid_up_to() })
            }
        }
    }

    /// `.mcp.json` at the workspace root, as a layer that holds servers only.
    fn mcp_json(&mut self) -> Result<Node, ConfigError> {
        let tier = Tier::McpJson;
        let path = self.inputs.workspace_root.join(".mcp.json");
        let text = self.read(tier, &path)?;
        let mut layer = Node::table(SourceId::default().at(0));
        if let Some(text) = text {
            let source = self.add(tier, &path, text);
            let document = parse(&self.sources, source, Format::Json)?;
            if let Some(servers) = mcp_json_servers(document, &self.sources)? {
                layer = servers;
            }
        }
        Ok(layer)
    }

    fn dot_env(&mut self) -> dotenv::DotEnv {
        let path = self.inputs.cwd.join(".env");
        // Not our file: a directory, a broken or a huge one is no reason not to start.
        let text = self.read(Tier::DotEnv, &path).unwrap_or_default();
        let Some(text) = text else { return dotenv::DotEnv::default() };
        let source = self.add(Tier::DotEnv, &path, text);
        let mut parsed = dotenv::parse(self.sources.text(source), source);
        let mut warn = |key: &str, at, kind| {
            self.warnings.push(Warning { key: key.to_owned(), origin: self.sources.origin(at), kind });
        };
        for offset in &parsed.bad_lines {
            warn(".env", source.at(*offset), WarningKind::BadDotEnvLine);
        }
        // The one variable that is a secret setting; from a workspace it counts no more than `api_key` there.
        if let Some(member) = parsed.variables.shift_remove("HANZO_API_KEY") {
            warn("api_key", member.key_at, WarningKind::UserTierOnly);
        }
        parsed
    }

    fn environment_layer(&mut self) -> Result<Node, ConfigError> {
        let mut layer = Node::table(SourceId::default().at(0));
        for variable in ENVIRONMENT {
            let (Some(key), Some(value)) = (variable.key, self.inputs.environment.get(variable.name)) else {
                continue;
            };
            let source = self.sources.add(Source::Variable(variable.name.to_owned()));
            let node = Node { at: source.at(0), data: Data::Text(value.to_owned()) };
            let segments: Vec<String> = key.split('.').map(str::to_owned).collect();
            let node = crate::flags::nested(&segments, node, source.at(0));
            let node = self.checked(node)?;
            merge::settings(&mut layer, node, &self.sources);
        }
        Ok(layer)
    }

    fn fall_back_to_locale(&mut self, merged: &mut Node) {
        let Some(table) = merged.as_table_mut() else { return };
        if table.get("language").is_some_and(|member| member.node.as_text() == Some("")) {
            table.shift_remove("language");
        }
        if table.contains_key("language") {
            return;
        }
        if let Some((name, tag)) = locale_language(&self.inputs.environment) {
            let at = self.sources.add(Source::Variable(name.to_owned())).at(0);
            let node = Node { at, data: Data::Text(tag) };
            table.insert("language".to_owned(), Member { key_at: at, node });
        }
    }

    fn variables(&self, merged: &Node, dot_env: &dotenv::DotEnv) -> Variables {
        let defined = |table: &Table, literal: &[String]| {
            table
                .iter()
                .filter_map(|(name, member)| {
                    let text = member.node.as_text()?.to_owned();
                    Some((name.clone(), Defined { text, literal: literal.contains(name) }))
                })
                .collect()
        };
        Variables {
            environment: self.inputs.environment.clone(),
            table: merged
                .get("env")
                .and_then(Node::as_table)
                .map(|table| defined(table, &[]))
                .unwrap_or_default(),
            dot_env: defined(&dot_env.variables, &dot_env.literal),
        }
    }

    #[cfg(unix)]
    fn warn_readable(&mut self, user: &Node) {
        use std::os::unix::fs::PermissionsExt as _;
        let files = settings_files(self.inputs);
        let Some(file) = files.iter().find(|file| file.tier == Tier::User && file.present) else { return };
        let Ok(metadata) = std::fs::metadata(&file.path) else { return };
        let mode = metadata.permissions().mode() & 0o777;
        let of_others = mode & 0o077;
        if of_others == 0 {
            return;
        }
        for (key, at) in secrets(user) {
            let origin = self.sources.origin(at);
            self.warnings.push(Warning { key, origin, kind: WarningKind::ReadableByOthers { mode } });
        }
    }

    #[cfg(not(unix))]
    fn warn_readable(&mut self, _user: &Node) {}
}

/// The servers of a parsed `.mcp.json`, checked and canonical, as a settings layer.
pub(crate) fn mcp_json_servers(document: Node, sources: &Sources) -> Result<Option<Node>, ConfigError> {
    let at = document.at;
    let Data::Table(mut table) = document.data else {
        return Err(ConfigError::WrongType {
            at: sources.origin(at),
            key: "the document".to_owned(),
            expected: "a table".to_owned(),
            found: "something else".to_owned(),
        });
    };
    let Some(mut servers) = table.shift_remove("mcpServers") else { return Ok(None) };
    Checker { sources, warnings: &mut Vec::new(), unknown: UnknownKeys::Ignore }
        .servers(&mut servers.node)?;
    canonical::by_name(sources, &mut servers.node, "mcp_servers")?;
    canonical::servers(sources, &mut servers.node)?;
    let mut root = Table::new();
    root.insert("mcp_servers".to_owned(), servers);
    Ok(Some(Node { at, data: Data::Table(root) }))
}

/// Whether a directory has nothing in it.
fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
