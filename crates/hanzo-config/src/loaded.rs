//! The result of loading: the settings, and an answer to "where does this come from?".

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::check::nearest;
use crate::error::{ConfigError, Disabled, Warning};
use crate::expand::{Place, Variables};
use crate::mask::masked;
use crate::node::{Data, Node, Origin, Sources, Tier, at_index, join, split_path};
use crate::secret::Secret;
use crate::settings::{Provider, Settings};
use crate::shape::{Field, SETTINGS, Shape, shape_at};
use crate::trust::TrustDigest;

/// One load's result. It never changes; a changed file needs another load.
pub struct LoadedConfig {
    pub(crate) settings: Settings,
    pub(crate) merged: Node,
    /// Weakest first: `.mcp.json`, user, project, local, environment, flags.
    pub(crate) layers: Vec<Node>,
    pub(crate) sources: Sources,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) disabled: Vec<Disabled>,
    pub(crate) digest: Option<TrustDigest>,
    pub(crate) files: Vec<TierFile>,
    pub(crate) variables: Variables,
}

/// Without values: they may be secrets.
impl fmt::Debug for LoadedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedConfig")
            .field("settings", &self.settings)
            .field("files", &self.files)
            .field("warnings", &self.warnings)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// A place where settings are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierFile {
    /// The tier.
    pub tier: Tier,
    /// The file that was read, or the one to create.
    pub path: PathBuf,
    /// Whether it is there.
    pub present: bool,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The value, secrets masked.
    pub value: Value,
    /// Where it stands.
    pub origin: Origin,
}

/// Why a setting has the value it has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The key in its canonical spelling.
    pub key: String,
    /// The value in force, secrets masked, variables as written.
    pub value: Value,
    /// Where the value comes from; for a list that grows, where its last part comes from.
    pub origin: Origin,
    /// The parts of a list that tiers add to, in order.
    pub parts: Vec<Candidate>,
    /// Values that lost, strongest first.
    pub overridden: Vec<Candidate>,
    /// Values that wait for trust.
    pub disabled: Vec<Disabled>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)?;
        if self.parts.is_empty() {
            write!(f, "\n  from {}", self.origin)?;
        }
        for part in &self.parts {
            write!(f, "\n  {} from {}", part.value, part.origin)?;
        }
        for lost in &self.overridden {
            write!(f, "\n  instead of {} from {}", lost.value, lost.origin)?;
        }
        for disabled in &self.disabled {
            write!(
                f,
                "\n  off until trusted: {} from {} ({})",
                disabled.value, disabled.origin, disabled.reason
            )?;
        }
        Ok(())
    }
}

impl LoadedConfig {
    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the user should know.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What an untrusted workspace said and was not listened to.
    pub fn disabled(&self) -> &[Disabled] {
        &self.disabled
    }

    /// The hash the user's trust is bound to; `None` when the workspace asks for nothing that needs trust.
    pub fn trust_digest(&self) -> Option<&TrustDigest> {
        self.digest.as_ref()
    }

    /// Where settings were looked for, weakest tier last within the workspace.
    pub fn files(&self) -> &[TierFile] {
        &self.files
    }

    /// The key of a provider: its own, or the variable `api_key_env` names, in the environment, `[env]` or `.env`.
    pub fn provider_key(&self, provider: &Provider) -> Result<Option<Secret>, ConfigError> {
        if let Some(key) = &provider.api_key {
            return Ok(Some(key.clone()));
        }
        let Some(name) = &provider.api_key_env else { return Ok(None) };
        let key = join(&join("providers", &provider.name), "api_key_env");
        let at = self.merged.find(&["providers", &provider.name, "api_key_env"]).map(|node| node.at);
        let origin = || at.map_or(Origin::Default, |at| self.sources.origin(at));
        Ok(self.variables.value(name, &Place { key: &key, origin: &origin })?.map(Secret::new))
    }

    /// Every value that is not a default, with its origin, in the order of the settings.
    pub fn origins(&self) -> Vec<(String, Origin)> {
        let mut found = Vec::new();
        self.leaves(&self.merged, "", &mut found);
        found
    }

    fn leaves(&self, node: &Node, path: &str, found: &mut Vec<(String, Origin)>) {
        match &node.data {
            Data::Table(table) => {
                for (key, member) in table {
                    self.leaves(&member.node, &join(path, key), found);
                }
            }
            Data::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.leaves(item, &at_index(path, index), found);
                }
            }
            _ => found.push((path.to_owned(), self.sources.origin(node.at))),
        }
    }

    /// Why `key` has the value it has.
    pub fn explain(&self, key: &str) -> Result<Explanation, ConfigError> {
        let no_such_key = || ConfigError::NoSuchKey { key: key.to_owned(), suggestion: suggest(key) };
        let segments = split_path(key).filter(|segments| !segments.is_empty()).ok_or_else(no_such_key)?;
        let (shape, path) = shape_at(&segments).ok_or_else(no_such_key)?;
        let shown = path.iter().fold(String::new(), |shown, segment| join(&shown, segment));
        let candidate =
            |node: &Node| Candidate { value: masked(node, shape), origin: self.sources.origin(node.at) };

        let winner = node_at(&self.merged, &path);
        let found: Vec<&Node> = self.layers.iter().rev().filter_map(|layer| node_at(layer, &path)).collect();
        let grows = match &path[..] {
            [top] => top == "hooks",
            [top, list] => top == "permissions" && list != "mode",
            _ => false,
        };
        let mut parts = Vec::new();
        let mut overridden = Vec::new();
        if grows {
            if let (Some(node), Shape::List(inner)) = (winner, shape) {
                parts = node
                    .as_list()
                    .unwrap_or_default()
                    .iter()
                    .map(|item| Candidate {
                        value: masked(item, inner),
                        origin: self.sources.origin(item.at),
                    })
                    .collect();
            }
        } else if !matches!(shape, Shape::Table(_) | Shape::Permissions(_) | Shape::Named(_) | Shape::Map(_))
        {
            let winning_spot = winner.map(|node| node.at);
            overridden =
                found.into_iter().filter(|node| Some(node.at) != winning_spot).map(candidate).collect();
        }
        let (value, origin) = match winner {
            Some(node) => (masked(node, shape), self.sources.origin(node.at)),
            None => {
                (value_at(&self.settings.to_masked_json(), &path).unwrap_or(Value::Null), Origin::Default)
            }
        };
        let disabled =
            self.disabled.iter().filter(|disabled| overlaps(&disabled.key, &shown)).cloned().collect();
        Ok(Explanation { key: shown, value, origin, parts, overridden, disabled })
    }
}

fn node_at<'n>(node: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(node, |node, segment| match &node.data {
        Data::List(items) => items.get(segment.parse::<usize>().ok()?),
        _ => node.get(segment),
    })
}

/// The default under a path; an entry of a list is found by its name.
fn value_at(value: &Value, path: &[String]) -> Option<Value> {
    let found = path.iter().try_fold(value, |value, segment| match value {
        Value::Array(items) => items
            .iter()
            .find(|item| item.get("name").and_then(Value::as_str) == Some(segment))
            .or_else(|| items.get(segment.parse::<usize>().ok()?)),
        _ => value.get(segment),
    });
    found.cloned()
}

/// Whether one key contains the other.
fn overlaps(one: &str, other: &str) -> bool {
    let inside = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    inside(one, other) || inside(other, one)
}

fn suggest(key: &str) -> Option<String> {
    let mut known = Vec::new();
    known_keys(SETTINGS, "", &mut known);
    let direct = nearest(key, known.iter().map(String::as_str)).map(str::to_owned);
    direct.or_else(|| known.iter().find(|path| path.rsplit('.').next() == Some(key)).cloned())
}

fn known_keys(fields: &[Field], path: &str, known: &mut Vec<String>) {
    for field in fields {
        let key = join(path, field.name);
        if let Shape::Table(inner) | Shape::Permissions(inner) = &field.shape {
            known_keys(inner, &key, known);
        }
        known.push(key);
    }
}
