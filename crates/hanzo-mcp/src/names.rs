//! The names under which the tools of MCP servers are offered to a model, and the way back from a name to its tool.
//!
//! # The rules
//!
//! `test-vectors/mcp-normalization.json` holds every platform to these; "character" means a Unicode scalar value.
//!
//! 1. *Part*: in a server's and in a tool's name, each character outside `[A-Za-z0-9_-]` becomes `_`. Case and hyphens
//!    stay. When the server's own name begins with `claude.ai `, runs of `_` in its part then become a single `_`, and
//!    a `_` at either end of the part goes.
//! 2. *Natural name*: `mcp__<server part>__<tool part>`. If that is longer than 64 characters, it is its first 55, a
//!    `_`, and the first 8 lower-case hexadecimal digits of SHA-256 over the UTF-8 bytes of the server's own name, a
//!    zero byte, and the tool's own name.
//! 3. *Collisions*: tools that come together are taken in the order of (server, tool), compared by code point. First
//!    each tool takes its natural name where that is still free. Then each tool left without one takes the first free
//!    of `<natural>_2`, `<natural>_3`, …, the natural name being shortened as far as the suffix needs to stay within
//!    64 characters. A tool that has a name keeps it for the life of the map, whatever comes later: the name has been
//!    told to a model.
//! 4. *Alias*: `mcp_<server part>_<tool part>` in lower case with `_` for each hyphen (the parts are ASCII by then),
//!    of any length. It is read, never advertised, and it means a tool only while that tool is the only one that has
//!    it. An alias that begins with `mcp__` means nothing: that prefix is the canonical names' own, so a stale
//!    canonical name can never reach another server's tool.
//!
//! # Why a map
//!
//! A name cannot be taken apart again: `mcp__a__b__c` is tool `b__c` of server `a` as well as tool `c` of server
//! `a__b`. Whoever parses it sends one server's calls to the other. So [`NameMap`] remembers, and nothing here parses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use indexmap::IndexMap;
use sha2::{Digest, Sha256};

/// The longest name the model vendors accept.
pub const MAX_NAME_LENGTH: usize = 64;

/// How much of a natural name that is too long stays in front of its hash.
const KEPT_BEFORE_HASH: usize = 55;

const CANONICAL_PREFIX: &str = "mcp__";
const ALIAS_PREFIX: &str = "mcp_";
/// Servers whose names begin like this are connectors with spaces and brackets in their titles; their parts are tidied.
const TIDIED_SERVERS: &str = "claude.ai ";

/// A tool as its server knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolRef {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name as the server listed it: what `tools/call` has to say.
    pub tool: String,
}

impl ToolRef {
    /// Tool `tool` of server `server`.
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> Self {
        Self { server: server.into(), tool: tool.into() }
    }
}

/// Two tools that come out under the same natural name. For the log, and for whoever shows which tools there are: a
/// permission rule that names `wanted` speaks of `holder` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The natural name both have.
    pub wanted: String,
    /// The tool that has the natural name.
    pub holder: ToolRef,
    /// The tool that had to take another one.
    pub renamed: ToolRef,
    /// The name it took.
    pub given: String,
}

impl Collision {
    /// Whether the two tools belong to different servers, which is worth a warning and not only a note.
    pub fn is_between_servers(&self) -> bool {
        self.holder.server != self.renamed.server
    }
}

/// The name a tool has when no other tool is in its way: `mcp__<server>__<tool>`, at most 64 characters.
pub fn natural_name(server: &str, tool: &str) -> String {
    let full = format!("{CANONICAL_PREFIX}{}__{}", server_part(server), tool_part(tool));
    if full.len() <= MAX_NAME_LENGTH {
        return full;
    }
    let mut hash = Sha256::new();
    hash.update(server);
    hash.update([0]);
    hash.update(tool);
    let [a, b, c, d, ..]: [u8; 32] = hash.finalize().into();
    format!("{}_{:08x}", &full[..KEPT_BEFORE_HASH], u32::from_be_bytes([a, b, c, d]))
}

/// The name under which a method of a server other than `tools/call` passes the gate: `mcp__<server>__resources/read`. No tool can
/// have it, because no tool's part has a `/`.
pub(crate) fn method_name(server: &str, method: &str) -> String {
    format!("{CANONICAL_PREFIX}{}__{method}", server_part(server))
}

/// The name by which seed 002 calls a tool: `mcp_<server>_<tool>`, lower case, no hyphens. Only ever an input: see
/// [`NameMap::resolve`].
pub fn format_mcp_tool_name(server: &str, tool: &str) -> String {
    let parts = format!("{}_{}", server_part(server), tool_part(tool));
    format!("{ALIAS_PREFIX}{}", parts.to_ascii_lowercase().replace('-', "_"))
}

/// Whether a name belongs to the tools of MCP servers, in either form. It says nothing about whether there is such a
/// tool.
pub fn is_mcp_tool(name: &str) -> bool {
    name.starts_with(ALIAS_PREFIX)
}

fn tool_part(name: &str) -> String {
    let keeps = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if keeps(c) { c } else { '_' }).collect()
}

fn server_part(name: &str) -> String {
    let part = tool_part(name);
    if !name.starts_with(TIDIED_SERVERS) {
        return part;
    }
    part.split('_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

fn with_suffix(natural: &str, number: u64) -> String {
    let suffix = format!("_{number}");
    let kept = natural.len().min(MAX_NAME_LENGTH - suffix.len());
    format!("{}{suffix}", &natural[..kept])
}

/// What an alias means.
#[derive(Debug, Clone)]
enum Alias {
    /// The tool of this name.
    Of(String),
    /// More than one tool, and so none.
    Ambiguous,
}

/// The names of all tools that are offered, and the tool each name means.
#[derive(Debug, Clone, Default)]
pub struct NameMap {
    /// In the order in which they were given out, which is the order of the prompt.
    tools: IndexMap<String, ToolRef>,
    names: HashMap<ToolRef, String>,
    aliases: HashMap<String, Alias>,
    /// Per natural name, the suffix to try next. A server may list any number of tools whose names come out alike,
    /// and counting from 2 for each of them would take quadratic time.
    next_suffix: HashMap<String, u64>,
}

impl NameMap {
    /// A map without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a name to each tool that has none yet. Names given before stay as they are; for tools that are added
    /// together, the order in which they are listed makes no difference. Returns the collisions, for the log.
    pub fn extend(&mut self, tools: impl IntoIterator<Item = ToolRef>) -> Vec<Collision> {
        let mut new: Vec<ToolRef> = tools.into_iter().filter(|tool| !self.names.contains_key(tool)).collect();
        new.sort_unstable();
        new.dedup();

        let mut left = Vec::new();
        for tool in new {
            let natural = natural_name(&tool.server, &tool.tool);
            if self.tools.contains_key(&natural) {
                left.push((natural, tool));
            } else {
                self.insert(natural, tool);
            }
        }
        left.into_iter().map(|(natural, tool)| self.insert_beside(natural, tool)).collect()
    }

    /// The tool that `name` means, be it a canonical name or an alias; `None` when it means none, or more than one.
    pub fn resolve(&self, name: &str) -> Option<&ToolRef> {
        self.tools.get(name).or_else(|| match self.aliases.get(name)? {
            Alias::Of(canonical) => self.tools.get(canonical),
            Alias::Ambiguous => None,
        })
    }

    /// The server that answers to `name`. It asks the map, as everything here does: the text alone does not say where
    /// the server's name ends.
    pub fn extract_mcp_server(&self, name: &str) -> Option<&str> {
        self.resolve(name).map(|tool| tool.server.as_str())
    }

    /// The name under which a tool is advertised.
    pub fn name_of(&self, tool: &ToolRef) -> Option<&str> {
        self.names.get(tool).map(String::as_str)
    }

    /// Every name with its tool, in the order in which the names were given out.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ToolRef)> {
        self.tools.iter().map(|(name, tool)| (name.as_str(), tool))
    }

    /// How many tools have a name.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether no tool has one.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    fn insert_beside(&mut self, natural: String, tool: ToolRef) -> Collision {
        let next = self.next_suffix.entry(natural.clone()).or_insert(2);
        let given = loop {
            let candidate = with_suffix(&natural, *next);
            *next += 1;
            if !self.tools.contains_key(&candidate) {
                break candidate;
            }
        };
        let collision = Collision {
            holder: self.tools[&natural].clone(),
            renamed: tool.clone(),
            given: given.clone(),
            wanted: natural,
        };
        self.insert(given, tool);
        collision
    }

    fn insert(&mut self, name: String, tool: ToolRef) {
        let alias = format_mcp_tool_name(&tool.server, &tool.tool);
        if !alias.starts_with(CANONICAL_PREFIX) {
            match self.aliases.entry(alias) {
                Entry::Vacant(free) => drop(free.insert(Alias::Of(name.clone()))),
                Entry::Occupied(mut taken) => drop(taken.insert(Alias::Ambiguous)),
            }
        }
        self.names.insert(tool.clone(), name.clone());
        self.tools.insert(name, tool);
    }
}
