//! Contexts (HIP-10): what a client wants remembered between its calls, under a name of its choice. They are read when they are first
//! asked for, and kept in a file each where there is a directory for them.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rmcp::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

/// The context of those who name none.
pub(super) const DEFAULT: &str = "default";
/// What a context may hold.
const MOST_ENTRIES: usize = 1_000;
const MOST_BYTES: usize = 1024 * 1024;
const MOST_HISTORY: usize = 200;
/// How many contexts are open at once; the others are read again when they are needed.
const MOST_OPEN: usize = 64;

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Context {
    /// Grows by one with each change.
    version: u64,
    entries: Vec<Entry>,
    history: Vec<Past>,
    metadata: Map<String, Value>,
}

/// One thing that is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    key: String,
    value: Value,
    #[serde(rename = "type")]
    kind: String,
    timestamp: Timestamp,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Past {
    what: String,
    timestamp: Timestamp,
}

/// How new entries meet those that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    /// They take the place of all.
    Replace,
    /// They take the place of those with the same key; objects take each other's members.
    #[default]
    Merge,
    /// They are put behind those with the same key.
    Append,
}

/// The parameters of `context/update`.
#[derive(Debug, Deserialize)]
struct Update {
    #[serde(default)]
    context_id: Option<String>,
    entries: Vec<NewEntry>,
    #[serde(default)]
    merge_strategy: Strategy,
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// The parameters of `context/get`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Get {
    context_id: Option<String>,
    keys: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct NewEntry {
    key: String,
    value: Value,
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

/// The contexts of a server.
pub(super) struct Contexts {
    directory: Option<PathBuf>,
    open: Mutex<HashMap<String, Context>>,
}

impl Contexts {
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, open: Mutex::default() }
    }

    /// `context/get`.
    pub(super) async fn get(&self, params: Value) -> Result<Value, ErrorData> {
        let get: Get = if params.is_null() { Get::default() } else { read(params)? };
        let name = name_of(get.context_id.as_deref())?;
        let mut open = self.open.lock().await;
        let context = self.context(&mut open, &name).await?;
        let wanted = |entry: &&Entry| get.keys.as_ref().is_none_or(|keys| keys.contains(&entry.key));
        let entries: Vec<&Entry> = context.entries.iter().filter(wanted).collect();
        Ok(
            json!({"context_id": name, "version": context.version, "entries": entries, "history": context.history, "metadata": context.metadata}),
        )
    }

    /// What is in a context, by its keys.
    pub(super) async fn values(&self, name: Option<&str>) -> Result<Value, ErrorData> {
        let name = name_of(name)?;
        let mut open = self.open.lock().await;
        let context = self.context(&mut open, &name).await?;
        let members = context.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
        Ok(Value::Object(members.collect()))
    }

    /// `context/update`.
    pub(super) async fn update(&self, params: Value) -> Result<Value, ErrorData> {
        let update: Update = read(params)?;
        let name = name_of(update.context_id.as_deref())?;
        let words = format!("update: {} entries", update.entries.len());
        self.change(&name, words, |context| {
            if update.merge_strategy == Strategy::Replace {
                context.entries.clear();
            }
            for entry in update.entries {
                context.take(entry, update.merge_strategy);
            }
            context.metadata.extend(update.metadata);
        })
        .await
    }

    /// Remembers that something happened.
    pub(super) async fn happened(&self, name: Option<&str>, what: String) -> Result<Value, ErrorData> {
        let name = name_of(name)?;
        self.change(&name, what, |_| {}).await
    }

    async fn change(
        &self,
        name: &str,
        what: String,
        change: impl FnOnce(&mut Context),
    ) -> Result<Value, ErrorData> {
        let mut open = self.open.lock().await;
        let mut context = self.context(&mut open, name).await?.clone();
        change(&mut context);
        context.version += 1;
        context.history.push(Past { what, timestamp: Timestamp::now() });
        let surplus = context.history.len().saturating_sub(MOST_HISTORY);
        context.history.drain(..surplus);
        let text = serde_json::to_vec(&context).map_err(|error| failed(&error))?;
        if context.entries.len() > MOST_ENTRIES || text.len() > MOST_BYTES {
            let message = format!("a context holds at most {MOST_ENTRIES} entries and {MOST_BYTES} bytes");
            return Err(ErrorData::invalid_params(message, None));
        }
        // What is remembered is never more than what was kept.
        if let Some(directory) = self.directory.clone() {
            let name = name.to_owned();
            let kept = tokio::task::spawn_blocking(move || keep(&directory, &name, &text)).await;
            kept.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        }
        let answer =
            json!({"context_id": name, "version": context.version, "entries": context.entries.len()});
        open.insert(name.to_owned(), context);
        Ok(answer)
    }

    async fn context<'a>(
        &self,
        open: &'a mut HashMap<String, Context>,
        name: &str,
    ) -> Result<&'a Context, ErrorData> {
        if !open.contains_key(name) {
            if open.len() >= MOST_OPEN {
                open.clear();
            }
            let context = match &self.directory {
                None => Context::default(),
                Some(directory) => {
                    let path = file(directory, name);
                    let text = tokio::task::spawn_blocking(move || std::fs::read(path))
                        .await
                        .map_err(|error| failed(&error))?;
                    match text {
                        Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(&error))?,
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Context::default(),
                        Err(error) => return Err(failed(&error)),
                    }
                }
            };
            open.insert(name.to_owned(), context);
        }
        Ok(&open[name])
    }
}

impl Context {
    fn take(&mut self, new: NewEntry, strategy: Strategy) {
        let timestamp = Timestamp::now();
        let kind = new.kind.unwrap_or_else(|| kind_of(&new.value).to_owned());
        let known = self.entries.iter_mut().find(|entry| entry.key == new.key);
        match (known, strategy) {
            (Some(entry), Strategy::Merge) => {
                entry.value = merged(entry.value.take(), new.value);
                (entry.kind, entry.timestamp) = (kind, timestamp);
            }
            (Some(entry), Strategy::Append) => {
                let mut values = listed(entry.value.take());
                values.extend(listed(new.value));
                entry.value = Value::Array(values);
                "array".clone_into(&mut entry.kind);
                entry.timestamp = timestamp;
            }
            (Some(entry), Strategy::Replace) => {
                (entry.value, entry.kind, entry.timestamp) = (new.value, kind, timestamp);
            }
            (None, _) => self.entries.push(Entry { key: new.key, value: new.value, kind, timestamp }),
        }
    }
}

fn merged(old: Value, new: Value) -> Value {
    match (old, new) {
        (Value::Object(mut old), Value::Object(new)) => {
            for (key, value) in new {
                let value = match old.remove(&key) {
                    Some(before) => merged(before, value),
                    None => value,
                };
                old.insert(key, value);
            }
            Value::Object(old)
        }
        (_, new) => new,
    }
}

fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        other => vec![other],
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A name becomes a file's name.
fn name_of(name: Option<&str>) -> Result<String, ErrorData> {
    let name = name.unwrap_or(DEFAULT);
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if letters && (1..=64).contains(&name.len()) {
        return Ok(name.to_owned());
    }
    Err(ErrorData::invalid_params("a context's name has 1 to 64 letters, digits, `-` and `_`", None))
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

/// Written beside and put in place, so that there is always a whole one.
fn keep(directory: &Path, name: &str, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let beside = directory.join(format!(".{name}.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    out.write_all(text)?;
    out.sync_all()?;
    std::fs::rename(beside, file(directory, name))
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, ErrorData> {
    serde_json::from_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn failed(error: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("the context cannot be kept: {error}"), None)
}
