//! The tree every source is read into: values that remember where they stand.
//!
//! A [`Spot`] is eight bytes (which source, which byte). Lines and columns are counted only when somebody asks,
//! so that an ordinary start pays nothing for them.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Serialize;

/// Which file, in order of precedence from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tier {
    /// `.env` in the working directory: variables only, never settings.
    DotEnv,
    /// `.mcp.json` at the workspace root: MCP servers only; a server of the same name in any settings file wins.
    McpJson,
    /// The user's own settings file.
    User,
    /// `.hanzo/settings.{toml,json}`: shared with the repository.
    Project,
    /// `.hanzo/settings.local.{toml,json}`: this checkout only, not committed.
    Local,
}

impl Tier {
    /// Whether a cloned repository can bring this file along, so that it is hostile until the user trusts it.
    pub fn comes_with_the_workspace(self) -> bool {
        self != Self::User
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DotEnv => ".env",
            Self::McpJson => ".mcp.json",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        })
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// Built in.
    Default,
    /// A file.
    File(Box<FilePlace>),
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// The flag as it is typed.
        name: String,
    },
    /// A value handed over by a program, as [`crate::hip::merge_hip`] takes it.
    Given {
        /// The tier it stands for.
        tier: Tier,
    },
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilePlace {
    /// The tier the file belongs to.
    pub tier: Tier,
    /// The file.
    pub path: PathBuf,
    /// The file as messages name it: relative to the workspace, or from `~`.
    pub shown: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) => write!(f, "{}:{}:{}", place.shown, place.line, place.column),
            Self::Variable { name } => write!(f, "${name}"),
            Self::Flag { name } => f.write_str(name),
            Self::Given { tier } => write!(f, "{tier} tier"),
        }
    }
}

/// A place: a source and a byte in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub source: SourceId,
    pub offset: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceId(u16);

/// No source: what is built in.
impl Default for SourceId {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl SourceId {
    pub fn at(self, offset: usize) -> Spot {
        // Files are capped far below 4 GiB, so saturation cannot be reached.
        Spot { source: self, offset: u32::try_from(offset).unwrap_or(u32::MAX) }
    }
}

pub(crate) enum Source {
    File { tier: Tier, path: PathBuf, shown: String, text: String },
    Variable(String),
    Flag(String),
    Given(Tier),
}

/// All sources of one load, looked up by [`Spot`].
#[derive(Default)]
pub(crate) struct Sources(Vec<Source>);

impl Sources {
    pub fn add(&mut self, source: Source) -> SourceId {
        // There are a handful of files, variables and flags; a `u16` cannot run out on a command line.
        let id = SourceId(u16::try_from(self.0.len()).unwrap_or(u16::MAX));
        self.0.push(source);
        id
    }

    pub fn tier(&self, id: SourceId) -> Option<Tier> {
        match self.0.get(usize::from(id.0))? {
            Source::File { tier, .. } | Source::Given(tier) => Some(*tier),
            Source::Variable(_) | Source::Flag(_) => None,
        }
    }

    pub fn text(&self, id: SourceId) -> &str {
        match self.0.get(usize::from(id.0)) {
            Some(Source::File { text, .. }) => text,
            _ => "",
        }
    }

    pub fn origin(&self, spot: Spot) -> Origin {
        match self.0.get(usize::from(spot.source.0)) {
            None => Origin::Default,
            Some(Source::Variable(name)) => Origin::Variable { name: name.clone() },
            Some(Source::Flag(name)) => Origin::Flag { name: name.clone() },
            Some(Source::Given(tier)) => Origin::Given { tier: *tier },
            Some(Source::File { tier, path, shown, text }) => {
                file_origin(*tier, path, shown, text.as_bytes(), spot.offset as usize)
            }
        }
    }
}

/// The origin of byte `offset` of a file; also for bytes that turned out not to be text.
pub(crate) fn file_origin(tier: Tier, path: &Path, shown: &str, bytes: &[u8], offset: usize) -> Origin {
    let before = &bytes[..offset.min(bytes.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    // Continuation bytes are not characters of their own.
    let column = before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80).count() + 1;
    let line = before.split(|&b| b == b'\n').count();
    Origin::File(Box::new(FilePlace { tier, path: path.to_owned(), shown: shown.to_owned(), line, column }))
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: Spot,
    pub data: Data,
}

#[derive(Clone)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// A text whose variables have been put in.
    Expanded {
        raw: String,
        expanded: String,
    },
    /// TOML's dates, which no setting takes.
    Date,
    List(Vec<Node>),
    Table(Table),
}

/// Shows the kind only: a tree may hold secrets.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Integer(_) => "integer",
            Self::Float(_) => "float",
            Self::Text(_) | Self::Expanded { .. } => "text",
            Self::Date => "date",
            Self::List(_) => "list",
            Self::Table(_) => "table",
        })
    }
}

pub(crate) type Table = IndexMap<String, Member>;

/// A key's place and its value.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub key_at: Spot,
    pub node: Node,
}

impl Node {
    pub fn table(at: Spot) -> Self {
        Self { at, data: Data::Table(Table::new()) }
    }

    pub fn as_table(&self) -> Option<&Table> {
        match &self.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.data {
            Data::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) | Data::Expanded { raw: text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.data {
            Data::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_table()?.get(key).map(|member| &member.node)
    }

    /// The node under a chain of keys.
    pub fn find(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The plain value. Templates keep both texts, for the typed settings.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.data {
            Data::Null | Data::Date => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Integer(value) => Value::from(*value),
            Data::Float(value) => Value::from(*value),
            Data::Text(text) => Value::String(text.clone()),
            Data::Expanded { raw, expanded } => serde_json::json!({ "raw": raw, "expanded": expanded }),
            Data::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Data::Table(table) => {
                Value::Object(table.iter().map(|(k, m)| (k.clone(), m.node.to_json())).collect())
            }
        }
    }
}

/// `path.key`, the key quoted when it would not read as one.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let shown = if bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { shown } else { format!("{path}.{shown}") }
}

/// `path[index]`.
pub(crate) fn at_index(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// Splits what [`join`] and [`at_index`] build: `mcp_servers."a.b".args[0]`. `None` when the quotes do not close.
pub(crate) fn split_path(path: &str) -> Option<Vec<String>> {
    let mut segments = Vec::new();
    let mut rest = path.trim();
    while !rest.is_empty() {
        if rest.starts_with('"') {
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            segments.push(stream.next()?.ok()?);
            rest = &rest[stream.byte_offset()..];
        } else if let Some(tail) = rest.strip_prefix('[') {
            let (index, after) = tail.split_once(']')?;
            segments.push(index.trim().to_owned());
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            segments.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    Some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "a = 1\nλβ = \"x\"\n";
        let spot = |offset| match file_origin(Tier::User, Path::new("f"), "f", text.as_bytes(), offset) {
            Origin::File(place) => (place.line, place.column),
            _ => unreachable!(),
        };
        assert_eq!(spot(0), (1, 1));
        assert_eq!(spot(text.find('"').unwrap()), (2, 6));
        assert_eq!(spot(9999), (3, 1));
    }

    #[test]
    fn key_paths_survive_splitting() {
        let path = at_index(&join(&join("mcp_servers", "a.b \"c\""), "args"), 3);
        assert_eq!(split_path(&path).unwrap(), ["mcp_servers", "a.b \"c\"", "args", "3"]);
        assert_eq!(split_path("mcp_servers.\"open"), None);
    }
}
