//! `mode`: sets of actions to keep to while doing one kind of work. A mode takes away and never gives: modes that are active
//! together leave in what all of them do, the gate asks them beside everything else it asks, and only the user can say that
//! one is left again. A mode is a file (`modes/*.toml`); the user's directory adds more.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::ToolCallItem;
use hanzo_protocol::narrowing::{Narrowed, Narrowing};
use hanzo_protocol::tool::{Effect, Reach};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::contract::{Action, Answer, Call, Nothing, ToolBuilder, UnifiedTool};

mod set;

pub use set::{Mode, ModeError};

/// The modes there are without the user adding any.
const BUILT_IN: &[(&str, &str)] = &[
    ("inspect", include_str!("../../modes/inspect.toml")),
    ("apply", include_str!("../../modes/apply.toml")),
    ("verify", include_str!("../../modes/verify.toml")),
    ("ship", include_str!("../../modes/ship.toml")),
    ("architect", include_str!("../../modes/architect.toml")),
    ("reviewer", include_str!("../../modes/reviewer.toml")),
    ("security", include_str!("../../modes/security.toml")),
    ("debugger", include_str!("../../modes/debugger.toml")),
    ("tester", include_str!("../../modes/tester.toml")),
    ("refactorer", include_str!("../../modes/refactorer.toml")),
    ("documenter", include_str!("../../modes/documenter.toml")),
    ("performance", include_str!("../../modes/performance.toml")),
    ("researcher", include_str!("../../modes/researcher.toml")),
    ("teacher", include_str!("../../modes/teacher.toml")),
];

/// A mode is a page; a larger file is something else.
const MAX_FILE: u64 = 64 << 10;
/// More files than anybody has modes.
const MAX_FILES: usize = 200;

/// The modes of one thread: which there are and which are active. The gate asks it as a [`Narrowing`].
pub struct Modes {
    workspace: PathBuf,
    directory: Option<PathBuf>,
    active: Mutex<Vec<Arc<Mode>>>,
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modes").field("active", &self.names()).finish_non_exhaustive()
    }
}

impl Modes {
    /// The modes of a thread in `workspace`, none active; `directory` has the user's own.
    pub fn new(workspace: impl Into<PathBuf>, directory: Option<PathBuf>) -> Self {
        Self { workspace: workspace.into(), directory, active: Mutex::default() }
    }

    fn active(&self) -> MutexGuard<'_, Vec<Arc<Mode>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of those that are active, in the order in which they were activated.
    pub fn names(&self) -> Vec<String> {
        self.active().iter().map(|mode| mode.name.clone()).collect()
    }

    /// Every mode there is, or why one cannot be used. The user's go before built-in ones of the same name.
    pub fn all(&self) -> Vec<Result<Mode, ModeError>> {
        let mut found: Vec<(String, Result<String, String>)> = self.own();
        for (name, text) in BUILT_IN {
            if !found.iter().any(|(known, _)| known == name) {
                found.push(((*name).to_owned(), Ok((*text).to_owned())));
            }
        }
        let parse = |(name, text): (String, Result<String, String>)| match text {
            Ok(text) => Mode::parse(&name, &text),
            Err(reason) => Err(ModeError { name, reason }),
        };
        found.into_iter().map(parse).collect()
    }

    fn own(&self) -> Vec<(String, Result<String, String>)> {
        let entries = self.directory.as_ref().and_then(|directory| std::fs::read_dir(directory).ok());
        let mut files: Vec<PathBuf> =
            entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        files.truncate(MAX_FILES);
        files.iter().filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), read(path)))).collect()
    }

    /// Makes the mode called `name` active, beside those that are.
    pub fn activate(&self, name: &str) -> Result<Arc<Mode>, ToolError> {
        let mode = Arc::new(self.find(name)?);
        let mut active = self.active();
        let set = |mode: &Mode| {
            (mode.tools.clone(), mode.without.clone(), mode.effects.clone(), mode.writes.clone())
        };
        // When its file has changed it is another one, and what it left out before stays out.
        if !active.iter().any(|known| known.name == mode.name && set(known) == set(&mode)) {
            active.push(Arc::clone(&mode));
        }
        Ok(mode)
    }

    /// Makes a mode active that was active when the thread was last open. When its file is gone or has a mistake now, what it
    /// left in is not known: then nothing is left in but what no mode takes away, until the user says that modes are left.
    fn reactivate(&self, name: &str) {
        if let Err(error) = self.activate(name) {
            let about = json!(format!("it was active, and cannot be read any more: {}", error.message));
            if let Ok(mode) = Mode::parse(name, &format!("about = {about}\ntools = []")) {
                self.active().push(Arc::new(mode));
            }
        }
    }

    /// Leaves all modes. This widens, so only the user's word may lead here: the permission rules make `mode.leave` a question.
    pub fn leave(&self) -> Vec<String> {
        std::mem::take(&mut *self.active()).iter().map(|mode| mode.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Result<Mode, ToolError> {
        let wanted = name.trim().to_lowercase();
        let mut known = Vec::new();
        for mode in self.all() {
            match mode {
                Ok(mode) if mode.name.to_lowercase() == wanted => return Ok(mode),
                Err(error) if error.name.to_lowercase() == wanted => {
                    return Err(ToolError::new(ErrorCode::Unavailable, error.to_string()));
                }
                Ok(Mode { name, .. }) | Err(ModeError { name, .. }) => known.push(name),
            }
        }
        let text = format!("there is no mode `{name}`; `list` shows them");
        Err(ToolError::new(ErrorCode::NotFound, text).with_details(json!({ "available": known })))
    }
}

fn read(path: &Path) -> Result<String, String> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

impl Narrowing for Modes {
    fn check(&self, reach: &Reach) -> Result<(), Narrowed> {
        let active = self.active().clone();
        active.iter().try_for_each(|mode| {
            mode.check(&self.workspace, reach).map_err(|narrowed| Narrowed {
                reason: format!(
                    "{}. Go on with what is left, or ask the user with `mode.leave`",
                    narrowed.reason
                ),
                ..narrowed
            })
        })
    }

    fn recalls(&self) -> Option<&'static str> {
        Some("mode")
    }

    fn recall(&self, call: &ToolCallItem) {
        match call.tool.as_str() {
            "mode.activate" => {
                if let Some(name) = activated(call) {
                    self.reactivate(&name);
                }
            }
            "mode.leave" => drop(self.leave()),
            _ => {}
        }
    }
}

/// Which mode a call activated: its answer has the name in full, its arguments have it as the model wrote it.
fn activated(call: &ToolCallItem) -> Option<String> {
    let answered = call.result.as_ref().and_then(|result| result.envelope.as_ref());
    let answered = answered.and_then(|envelope| Some(envelope["data"]["name"].as_str()?.to_owned()));
    let asked = || {
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).ok()?;
        let name = arguments["name"].as_str().or_else(|| arguments["mode"].as_str())?;
        Some(name.to_owned())
    };
    answered.or_else(asked)
}

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder("mode", "Keep to the actions of one kind of work. Modes only take away.")
        .action(List)
        .action(Activate)
        .action(Show)
        .action(Current)
        .action(Leave)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

/// A mode in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    name: String,
    about: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    active: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListOutput {
    modes: Vec<Listed>,
    /// Files that cannot be used, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<String>,
}

/// Lists modes.
struct List;

impl Action for List {
    const NAME: &'static str = "list";
    const SUMMARY: &'static str = "all modes";
    const EXAMPLE: &'static str = "{}";
    type Input = Nothing;
    type Output = ListOutput;

    fn effect(&self, _: &Nothing) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, _: Nothing) -> Result<Answer<ListOutput>, ToolError> {
        call.blocking(|host, _| {
            let names = host.modes.names();
            let (mut modes, mut broken) = (Vec::new(), Vec::new());
            for mode in host.modes.all() {
                match mode {
                    Ok(Mode { name, about, .. }) => {
                        modes.push(Listed { active: names.contains(&name), name, about });
                    }
                    Err(error) => broken.push(error.to_string()),
                }
            }
            Ok(Answer::new(ListOutput { modes, broken }))
        })
        .await
    }
}

/// A mode in full.
#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    name: String,
    about: String,
    /// The actions it leaves in.
    tools: Vec<String>,
    /// The actions it leaves out of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    /// The effects it leaves in; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Vec<Effect>>,
    /// The files it lets be changed; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<Vec<String>>,
    guidance: String,
    /// The modes that are active; a call must be left in by all of them.
    active: Vec<String>,
}

impl Shown {
    fn of(mode: &Mode, active: Vec<String>) -> Self {
        Self {
            name: mode.name.clone(),
            about: mode.about.clone(),
            tools: mode.tools.clone(),
            without: mode.without.clone(),
            effects: mode.effects.clone(),
            writes: mode.writes.clone(),
            guidance: mode.guidance.clone(),
            active,
        }
    }
}

/// Activates a mode.
struct Activate;

impl Action for Activate {
    const NAME: &'static str = "activate";
    const SUMMARY: &'static str =
        "keep to a mode's actions from now on, beside those of modes already active";
    const EXAMPLE: &'static str = r#"{"name":"reviewer"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("mode", "name")];
    type Input = Named;
    type Output = Shown;

    // It reaches nothing and only takes away.
    fn effect(&self, _: &Named) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: Named) -> Result<Answer<Shown>, ToolError> {
        call.blocking(move |host, _| {
            let mode = host.modes.activate(&input.name)?;
            Ok(Answer::new(Shown::of(&mode, host.modes.names())))
        })
        .await
    }
}

/// Shows a mode.
struct Show;

impl Action for Show {
    const NAME: &'static str = "show";
    const SUMMARY: &'static str = "what a mode leaves in";
    const EXAMPLE: &'static str = r#"{"name":"reviewer"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("mode", "name")];
    type Input = Named;
    type Output = Shown;

    fn effect(&self, _: &Named) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: Named) -> Result<Answer<Shown>, ToolError> {
        call.blocking(move |host, _| {
            let mode = host.modes.find(&input.name)?;
            Ok(Answer::new(Shown::of(&mode, host.modes.names())))
        })
        .await
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct CurrentOutput {
    /// The modes that are active; a call must be left in by all of them.
    active: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guidance: Vec<String>,
}

/// Says which modes are active.
struct Current;

impl Action for Current {
    const NAME: &'static str = "current";
    const SUMMARY: &'static str = "the active modes";
    const EXAMPLE: &'static str = "{}";
    type Input = Nothing;
    type Output = CurrentOutput;

    fn effect(&self, _: &Nothing) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, _: Nothing) -> Result<Answer<CurrentOutput>, ToolError> {
        let guidance = call.host.modes.active().iter().map(|mode| mode.guidance.clone()).collect();
        Ok(Answer::new(CurrentOutput { active: call.host.modes.names(), guidance }))
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Left {
    /// The modes that were left.
    left: Vec<String>,
}

/// Leaves all modes.
struct Leave;

impl Action for Leave {
    const NAME: &'static str = "leave";
    const SUMMARY: &'static str = "ask the user to leave all modes";
    const EXAMPLE: &'static str = "{}";
    const WORST: Effect = Effect::Write;
    type Input = Nothing;
    type Output = Left;

    // It gives back what was taken away, so it is no reader: the rules make it a question to the user.
    fn effect(&self, _: &Nothing) -> Effect {
        Effect::Write
    }

    async fn run(&self, call: &Call<'_>, _: Nothing) -> Result<Answer<Left>, ToolError> {
        if call.context.caller == hanzo_protocol::tool::ToolCaller::Remote {
            let text = "a mode is left by the user of this machine, not from elsewhere";
            return Err(ToolError::new(ErrorCode::Denied, text));
        }
        Ok(Answer::new(Left { left: call.host.modes.leave() }))
    }
}
