//! Flags that set settings: `--config agent.max_steps=50`, `--model x`.

use crate::error::ConfigError;
use crate::node::{Data, Member, Node, Source, Sources, Spot, Table, split_path};
use crate::parse::from_json;

/// A setting given on the command line.
#[derive(Clone, PartialEq)]
pub struct FlagOverride {
    flag: String,
    key: Vec<String>,
    value: serde_json::Value,
}

/// Without the value: it may be a secret.
impl std::fmt::Debug for FlagOverride {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlagOverride")
            .field("flag", &self.flag)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl FlagOverride {
    /// `flag` (as it was typed, for messages) sets `key` to `value`.
    pub fn new(flag: impl Into<String>, key: &str, value: impl Into<serde_json::Value>) -> Self {
        let key = split_path(key).unwrap_or_else(|| vec![key.to_owned()]);
        Self { flag: flag.into(), key, value: value.into() }
    }

    /// Reads `KEY=VALUE`. The value is taken as TOML where it is (`50`, `true`, `["a"]`), otherwise as text.
    pub fn parse(flag: &str, assignment: &str) -> Result<Self, ConfigError> {
        let bad = || ConfigError::BadFlag { flag: flag.to_owned() };
        let (key, value) = assignment.split_once('=').ok_or_else(bad)?;
        let key = split_path(key.trim()).filter(|key| !key.is_empty()).ok_or_else(bad)?;
        let text = value.trim();
        let value = toml::from_str::<toml::Table>(&format!("v = {text}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|table| serde_json::to_value(table.get("v")?).ok())
            .unwrap_or_else(|| text.into());
        Ok(Self { flag: flag.to_owned(), key, value })
    }

    pub(crate) fn layer(&self, sources: &mut Sources) -> Result<Node, ConfigError> {
        if self.key.len() > crate::parse::MAX_DEPTH {
            return Err(ConfigError::BadFlag { flag: self.flag.clone() });
        }
        let source = sources.add(Source::Flag(self.flag.clone()));
        Ok(nested(&self.key, from_json(&self.value, source), source.at(0)))
    }
}

/// Tables around `node`, one for each key.
pub(crate) fn nested(keys: &[String], node: Node, at: Spot) -> Node {
    keys.iter().rev().fold(node, |node, key| {
        let mut table = Table::new();
        table.insert(key.clone(), Member { key_at: at, node });
        Node { at, data: Data::Table(table) }
    })
}
