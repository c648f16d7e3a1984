//! A tool call, and what rules look at in it.
//!
//! Subjects are taken from the arguments by the tool that owns the key. Scanning any tool's arguments for familiar
//! keys would let a tool choose its own subject.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::Value;

use crate::net::NormalUrl;
use crate::patch::{self, Touched};
use crate::path::{Extent, NormalPath};
use crate::policy::{Basis, Policy};
use crate::shell::{Analysis, Opaque};
use crate::tools::{self, Access, Action, Family, Subjects};

/// Whether the user has marked an MCP server as trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user has.
    Trusted,
    /// The user has not.
    Untrusted,
}

/// Who says what a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classification {
    /// The crate's own table; tools it does not know are writers.
    #[default]
    Table,
    /// The host, for a tool of its own. It cannot turn a known writer into a reader.
    Host(Access),
    /// An MCP server, about itself (`readOnlyHint`); believed only when the server is trusted.
    Hint(Access, Trust),
}

/// One tool call, borrowed from whoever received it.
///
/// ```
/// use hanzo_permissions::{Call, Decision, Policy};
/// let args = serde_json::json!({"command": "ls -la"});
/// assert_eq!(Policy::default().decide(&Call::new("proc.exec", &args)), Decision::Ask);
/// ```
#[derive(Debug, Clone)]
pub struct Call<'a> {
    tool: &'a str,
    args: &'a Value,
    classification: Classification,
    workspace: Option<&'a str>,
    resolved: Vec<(&'a str, &'a str)>,
}

impl<'a> Call<'a> {
    /// A call of `tool` (`fs.write`, `fs` with an `action` argument, `write_file`, `mcp__server__tool`).
    pub fn new(tool: &'a str, args: &'a Value) -> Self {
        Self { tool, args, classification: Classification::Table, workspace: None, resolved: Vec::new() }
    }

    /// Says who classified the tool, and as what.
    #[must_use]
    pub fn classified(mut self, classification: Classification) -> Self {
        self.classification = classification;
        self
    }

    /// Says whether the tool is read-only, as its owner claims: the host for its own tools, an untrusted server
    /// for `mcp__` tools.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        let access = if read_only { Access::Reader } else { Access::Writer };
        let claim = if self.tool.starts_with("mcp__") {
            Classification::Hint(access, Trust::Untrusted)
        } else {
            Classification::Host(access)
        };
        self.classified(claim)
    }

    /// The root of the workspace, absolute, to which relative paths and rules refer.
    #[must_use]
    pub fn in_workspace(mut self, root: &'a str) -> Self {
        self.workspace = Some(root);
        self
    }

    /// Says that `path`, as it stands in the arguments, is really `resolved` (absolute, free of symlinks).
    ///
    /// Rules then see both: an allow must cover both, a deny catches either.
    #[must_use]
    pub fn with_resolved(mut self, path: &'a str, resolved: &'a str) -> Self {
        self.resolved.push((path, resolved));
        self
    }

    /// The tool's name as given.
    pub fn tool(&self) -> &'a str {
        self.tool
    }

    /// The arguments.
    pub fn args(&self) -> &'a Value {
        self.args
    }

    /// What rules look at.
    pub fn facts(&self) -> Facts<'a> {
        Facts::new(self)
    }
}

/// One name by which the call is known, with its table entry when there is one.
type Named<'a> = (Cow<'a, str>, Option<&'static Action>);

/// What rules look at in a call.
#[derive(Debug)]
pub struct Facts<'a> {
    given: &'a str,
    named: Vec<Named<'a>>,
    access: Access,
    families: Vec<Family>,
    pub(crate) subjects: Vec<Subject<'a>>,
}

impl<'a> Facts<'a> {
    fn new(call: &Call<'a>) -> Self {
        let named = names(call);
        let mut subjects = Vec::new();
        if !call.tool.starts_with("mcp__") {
            for action in named.iter().filter_map(|(_, action)| *action) {
                extract(call, action, &mut subjects);
            }
        }
        let mut families: Vec<Family> =
            named.iter().flat_map(|(_, action)| families_of(call.tool, *action)).flatten().collect();
        families.dedup();
        Self { given: call.tool, access: access(call, &named), named, families, subjects }
    }

    /// The tool's name as given.
    pub fn given(&self) -> &'a str {
        self.given
    }

    /// The canonical id, `fs.write`; the given name for tools the crate does not know.
    pub fn tool_id(&self) -> &str {
        self.named.first().map_or(self.given, |(name, action)| action.map_or(name, |a| a.id))
    }

    /// What the call is before any rule of the user: a question to them, something they approve each time, or by whether it looks.
    pub fn basis(&self) -> Basis {
        Policy::default().evaluate(self).basis
    }

    /// Whether the call only looks, by the most reliable claim there is.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The families the call belongs to. A download is both `Net` and `Edit`.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// The subjects as text, for showing.
    pub fn subjects(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.subjects.iter().map(Subject::shown)
    }

    pub(crate) fn actions(&self) -> impl Iterator<Item = (&str, Option<&'static Action>)> {
        self.named.iter().map(|(name, action)| (name.as_ref(), *action))
    }

    /// Whether every action that the call may stand for is of the family.
    pub(crate) fn is_all(&self, family: Family) -> bool {
        self.named.iter().all(|(_, action)| families_of(self.given, *action).contains(&Some(family)))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.actions().map(|(name, action)| action.map_or(name, |a| a.id))
    }
}

fn families_of(given: &str, action: Option<&Action>) -> [Option<Family>; 2] {
    if given.starts_with("mcp__") {
        return [Some(Family::Mcp), None];
    }
    match action {
        Some(action) => [action.family, (action.subjects == Subjects::Download).then_some(Family::Edit)],
        None => [None, None],
    }
}

fn names<'a>(call: &Call<'a>) -> Vec<Named<'a>> {
    if call.tool.starts_with("mcp__") {
        return vec![(Cow::Borrowed(call.tool), None)];
    }
    let find = |name: &str| tools::find(name).or_else(|| tools::find(&name.to_lowercase()));
    let chosen = call.args.get("action").and_then(Value::as_str);
    if tools::is_axis(call.tool) {
        let id = match chosen {
            Some(chosen) => format!("{}.{chosen}", call.tool),
            // A tool called with nothing describes itself. With arguments but no action it may do anything, and a
            // command is there to be run.
            None if is_empty(call.args) => format!("{}.help", call.tool),
            None if call.tool == "proc" => "proc.exec".to_owned(),
            None => call.tool.to_owned(),
        };
        let action = find(&id);
        return vec![(Cow::Owned(id), action)];
    }
    let mut named = vec![(Cow::Borrowed(call.tool), find(call.tool))];
    // `fs.read` with `"action": "rm"`: whichever of the two the host obeys, the rules have seen it.
    if let (Some((axis, own)), Some(chosen)) = (call.tool.split_once('.'), chosen)
        && tools::is_axis(axis)
        && own != chosen
    {
        let id = format!("{axis}.{chosen}");
        let action = find(&id);
        named.push((Cow::Owned(id), action));
    }
    named
}

fn is_empty(args: &Value) -> bool {
    match args {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn access(call: &Call<'_>, named: &[Named<'_>]) -> Access {
    let of_table = |(name, action): &Named<'_>| {
        let describes = name
            .split_once('.')
            .is_some_and(|(axis, own)| tools::is_axis(axis) && tools::is_description(own));
        action.map(|action| action.access).or_else(|| describes.then_some(Access::Reader))
    };
    if call.tool.starts_with("mcp__") {
        return match call.classification {
            Classification::Hint(access, Trust::Trusted) | Classification::Host(access) => access,
            _ => Access::Writer,
        };
    }
    let known: Vec<Option<Access>> = named.iter().map(of_table).collect();
    if known.contains(&Some(Access::Writer)) {
        return Access::Writer;
    }
    match call.classification {
        Classification::Host(access) => access,
        Classification::Table if known.iter().all(|a| *a == Some(Access::Reader)) => Access::Reader,
        Classification::Table | Classification::Hint(..) => Access::Writer,
    }
}

/// One thing a call acts on.
#[derive(Debug)]
pub(crate) enum Subject<'a> {
    Command(CommandSubject<'a>),
    Path {
        raw: Cow<'a, str>,
        forms: Vec<NormalPath>,
        extent: Extent,
    },
    Url {
        raw: &'a str,
        url: NormalUrl,
    },
    /// What a search looks for.
    Pattern(&'a str),
    /// There is a subject, but it cannot be told what it is.
    Unknown {
        raw: Cow<'a, str>,
        reason: &'static str,
    },
}

impl Subject<'_> {
    /// The subject as text, cut to what a person reads.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Command(command) => match &command.input {
                Input::Text(text) => Cow::Borrowed(shorten(text)),
                Input::Argv(words) => {
                    let mut text = String::new();
                    for word in words.iter().take(64) {
                        if !text.is_empty() {
                            text.push(' ');
                        }
                        text.push_str(shorten(word));
                    }
                    text.truncate(shorten(&text).len());
                    Cow::Owned(text)
                }
            },
            Self::Path { raw, .. } | Self::Unknown { raw, .. } => Cow::Borrowed(shorten(raw)),
            Self::Url { raw, .. } | Self::Pattern(raw) => Cow::Borrowed(shorten(raw)),
        }
    }
}

/// The most of a subject that is shown or recorded.
const SHOWN: usize = 512;

/// The first part of `text` that is fit to show.
pub(crate) fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}

#[derive(Debug)]
enum Input<'a> {
    Text(&'a str),
    Argv(Vec<&'a str>),
}

/// A command, analysed when a rule first needs it.
#[derive(Debug)]
pub(crate) struct CommandSubject<'a> {
    input: Input<'a>,
    environment: Environment,
    analysis: OnceCell<Analysis>,
}

/// What the call's own `env` argument means for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Environment {
    Inherited,
    /// Some variable is set: the same as an assignment before the command.
    Changed,
}

impl CommandSubject<'_> {
    pub(crate) fn analysis(&self) -> &Analysis {
        self.analysis.get_or_init(|| {
            let mut analysis = match &self.input {
                Input::Text(text) => Analysis::of_text(text),
                Input::Argv(argv) => Analysis::of_argv(argv),
            };
            if self.environment == Environment::Changed {
                analysis.plain = analysis.plain.and(Err(Opaque::Assignment));
                analysis.hard.get_or_insert(Opaque::Assignment);
            }
            analysis
        })
    }
}

const PATH_KEYS: &[&str] =
    &["uri", "path", "file_path", "notebook_path", "filePath", "file", "paths", "uris", "file_paths"];
const SOURCE_KEYS: &[&str] = &["source", "source_path", "src", "from", "old_path"];
const TARGET_KEYS: &[&str] =
    &["destination", "destination_path", "dest", "dst", "to", "new_path", "target", "output"];

fn extract<'a>(call: &Call<'a>, action: &Action, into: &mut Vec<Subject<'a>>) {
    let before = into.len();
    match action.subjects {
        Subjects::None => {}
        Subjects::Command => commands(call, into),
        Subjects::Runner => {
            commands(call, into);
            if into.len() == before {
                into.push(Subject::Unknown {
                    raw: Cow::Borrowed("the project's test runner"),
                    reason: "the command is the one the project's files choose",
                });
            }
        }
        Subjects::Path => paths(call, PATH_KEYS, Extent::Entry, into),
        Subjects::Tree => paths(call, PATH_KEYS, Extent::Tree, into),
        Subjects::Move => {
            paths(call, PATH_KEYS, Extent::Tree, into);
            paths(call, SOURCE_KEYS, Extent::Tree, into);
            paths(call, TARGET_KEYS, Extent::Tree, into);
        }
        Subjects::Patch => {
            paths(call, PATH_KEYS, Extent::Entry, into);
            patches(call, into);
        }
        Subjects::Search | Subjects::Names => {
            let extent = if action.subjects == Subjects::Search { Extent::Tree } else { Extent::Entry };
            paths(call, PATH_KEYS, extent, into);
            if into.len() == before {
                path(call, Cow::Borrowed("."), extent, into);
            }
            into.extend(["pattern", "query"].iter().filter_map(|key| text(call, key)).map(Subject::Pattern));
        }
        Subjects::Host => {
            for raw in ["host", "hostname", "name", "domain"].iter().filter_map(|key| text(call, key)) {
                into.push(match NormalUrl::new(&format!("dns://{raw}")) {
                    Some(url) => Subject::Url { raw, url },
                    None => Subject::Unknown {
                        raw: Cow::Borrowed(raw),
                        reason: "the host can be read in more than one way",
                    },
                });
            }
        }
        Subjects::Url | Subjects::Download => {
            for raw in ["url", "uri"].iter().filter_map(|key| text(call, key)) {
                into.push(match NormalUrl::new(raw) {
                    Some(url) => Subject::Url { raw, url },
                    None => Subject::Unknown {
                        raw: Cow::Borrowed(raw),
                        reason: "the URL can be read in more than one way",
                    },
                });
            }
            if action.subjects == Subjects::Download {
                paths(call, &["path", "file_path"], Extent::Entry, into);
                paths(call, TARGET_KEYS, Extent::Entry, into);
            }
        }
    }
}

fn text<'a>(call: &Call<'a>, key: &str) -> Option<&'a str> {
    call.args.get(key).and_then(Value::as_str)
}

fn commands<'a>(call: &Call<'a>, into: &mut Vec<Subject<'a>>) {
    let environment = match call.args.get("env") {
        Some(Value::Object(map)) if !map.is_empty() => Environment::Changed,
        Some(Value::Array(list)) if !list.is_empty() => Environment::Changed,
        _ => Environment::Inherited,
    };
    for value in ["command", "cmd"].iter().filter_map(|key| call.args.get(*key)) {
        let input = match value {
            Value::String(text) => Some(Input::Text(text)),
            Value::Array(words) => {
                words.iter().map(Value::as_str).collect::<Option<Vec<_>>>().map(Input::Argv)
            }
            _ => None,
        };
        into.push(match input {
            Some(input) => Subject::Command(CommandSubject { input, environment, analysis: OnceCell::new() }),
            None => Subject::Unknown {
                raw: Cow::Borrowed("command"),
                reason: "the command is neither text nor a list of words",
            },
        });
    }
}

fn paths<'a>(call: &Call<'a>, keys: &[&str], extent: Extent, into: &mut Vec<Subject<'a>>) {
    for value in keys.iter().filter_map(|key| call.args.get(*key)) {
        match value {
            Value::String(raw) => path(call, Cow::Borrowed(raw.as_str()), extent, into),
            Value::Array(many) => {
                for raw in many {
                    path(call, raw.as_str().map_or(Cow::Borrowed("\0"), Cow::Borrowed), extent, into);
                }
            }
            Value::Null => {}
            _ => into.push(Subject::Unknown { raw: Cow::Borrowed("path"), reason: "the path is not text" }),
        }
    }
}

fn path<'a>(call: &Call<'a>, raw: Cow<'a, str>, extent: Extent, into: &mut Vec<Subject<'a>>) {
    let resolved = call.resolved.iter().filter(|(path, _)| *path == raw).map(|(_, resolved)| *resolved);
    let forms: Result<Vec<NormalPath>, _> =
        std::iter::once(raw.as_ref()).chain(resolved).map(|p| NormalPath::new(p, call.workspace)).collect();
    let subject = match forms {
        Ok(forms) => Subject::Path { raw, forms, extent },
        Err(bad) => Subject::Unknown { raw, reason: bad.reason() },
    };
    into.push(subject);
}

fn patches<'a>(call: &Call<'a>, into: &mut Vec<Subject<'a>>) {
    for (key, text) in
        ["patch", "diff", "input"].iter().filter_map(|key| text(call, key).map(|text| (*key, text)))
    {
        match patch::touched(text) {
            Touched::Files(files) => {
                for file in files {
                    path(call, Cow::Owned(file), Extent::Entry, into);
                }
            }
            // A patch without headers is for the file the call names.
            Touched::None if !into.is_empty() => {}
            Touched::None | Touched::Unreadable => into.push(Subject::Unknown {
                raw: Cow::Borrowed(key_name(key)),
                reason: "it cannot be told which files the patch touches",
            }),
        }
    }
    // Several edits in one call may each name a file.
    if let Some(Value::Array(edits)) = call.args.get("edits") {
        for value in edits.iter().flat_map(|edit| PATH_KEYS.iter().filter_map(|key| edit.get(*key))) {
            path(call, value.as_str().map_or(Cow::Borrowed("\0"), Cow::Borrowed), Extent::Entry, into);
        }
    }
}

fn key_name(key: &str) -> &'static str {
    match key {
        "diff" => "diff",
        "input" => "input",
        _ => "patch",
    }
}
