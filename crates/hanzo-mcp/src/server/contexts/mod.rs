//! Contexts (HIP-10): what a client wants remembered between its calls, under a name of its choice. Where there is a directory for
//! them they are kept there ([`disk`]), and a large value is read only by whoever asks for it by its key.

mod disk;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hanzo_protocol::primitives::json_type;
use jiff::Timestamp;
use rmcp::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::disk::{Disk, Kept};

/// The context of those who name none.
pub(super) const DEFAULT: &str = "default";
/// What a context may hold. One value fits an answer with all that goes along with it, for a message has ten megabytes at most.
const MOST_ENTRIES: usize = 1_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;
const MOST_VALUE: usize = 8 * 1024 * 1024;
const MOST_HISTORY: usize = 200;
/// What a context holds that is kept in memory alone.
const MOST_IN_MEMORY: usize = 1024 * 1024;
/// How many contexts are in memory at once. Those on the disk are read again when they are needed.
const MOST_OPEN: usize = 64;
/// How much of the values an answer has; the others are named.
const MOST_ANSWERED: usize = MOST_VALUE;

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Context {
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
    #[serde(flatten)]
    held: Held,
    #[serde(rename = "type")]
    kind: String,
    timestamp: Timestamp,
}

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Held {
    /// In a file of its own.
    Apart { kept: Kept },
    /// Here.
    Here { value: Value },
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

/// Why a context is not given or changed.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// It is the caller's.
    #[error("{0}")]
    Caller(String),
    /// It is the disk's.
    #[error("the context cannot be kept: {0}")]
    Kept(String),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Kept(error.to_string())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Kept(error.to_string())
    }
}

impl From<Fault> for ErrorData {
    fn from(fault: Fault) -> Self {
        match &fault {
            Fault::Caller(_) => Self::invalid_params(fault.to_string(), None),
            Fault::Kept(_) => Self::internal_error(fault.to_string(), None),
        }
    }
}

/// Reads a value that is in a file of its own.
type Load<'a> = &'a dyn Fn(&Kept) -> Result<Value, Fault>;

/// The contexts of a server.
pub(super) enum Contexts {
    /// They outlive the server.
    OnDisk(Arc<Disk>),
    /// They do not.
    InMemory(Mutex<HashMap<String, Context>>),
}

impl Contexts {
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        match directory {
            Some(directory) => Self::OnDisk(Arc::new(Disk::new(directory))),
            None => Self::InMemory(Mutex::default()),
        }
    }

    /// `context/get`.
    pub(super) async fn get(&self, params: Value) -> Result<Value, ErrorData> {
        let get: Get = if params.is_null() { Get::default() } else { read(params)? };
        let name = name_of(get.context_id.as_deref())?;
        self.look(name.clone(), move |context, load| Ok(context.shown(&name, get.keys.as_deref(), load)))
            .await
    }

    /// What is in a context, by its keys. Large values are named: whoever needs one asks for it.
    pub(super) async fn values(&self, name: Option<&str>) -> Result<Value, ErrorData> {
        let name = name_of(name)?;
        self.look(name.clone(), move |context, _| {
            let member = |entry: &Entry| match &entry.held {
                Held::Here { value } => (entry.key.clone(), value.clone()),
                Held::Apart { kept } => {
                    let named = json!({"context_id": name, "key": entry.key, "bytes": kept.bytes});
                    (entry.key.clone(), json!({ "large_value": named }))
                }
            };
            Ok(Value::Object(context.entries.iter().map(member).collect()))
        })
        .await
    }

    /// `context/update`.
    pub(super) async fn update(&self, params: Value) -> Result<Value, ErrorData> {
        let update: Update = read(params)?;
        let name = name_of(update.context_id.as_deref())?;
        let words = format!("update: {} entries", update.entries.len());
        self.change(name, words, move |context, load| {
            if update.merge_strategy == Strategy::Replace {
                context.entries.clear();
            }
            for entry in update.entries {
                context.take(entry, update.merge_strategy, load)?;
            }
            context.metadata.extend(update.metadata);
            Ok(())
        })
        .await
    }

    /// Remembers that something happened.
    pub(super) async fn happened(&self, name: Option<&str>, what: String) -> Result<Value, ErrorData> {
        self.change(name_of(name)?, what, |_, _| Ok(())).await
    }

    async fn look<F>(&self, name: String, look: F) -> Result<Value, ErrorData>
    where
        F: FnOnce(&Context, Load<'_>) -> Result<Value, Fault> + Send + 'static,
    {
        match self {
            Self::InMemory(open) => {
                let open = open.lock().unwrap_or_else(PoisonError::into_inner);
                let none = Context::default();
                Ok(look(open.get(&name).unwrap_or(&none), &nowhere)?)
            }
            Self::OnDisk(disk) => {
                let disk = Arc::clone(disk);
                Ok(apart(move || disk.look(&name, look)).await?)
            }
        }
    }

    async fn change<F>(&self, name: String, what: String, change: F) -> Result<Value, ErrorData>
    where
        F: FnOnce(&mut Context, Load<'_>) -> Result<(), Fault> + Send + 'static,
    {
        let change = move |context: &mut Context, load: Load<'_>| {
            change(context, load)?;
            context.version += 1;
            context.history.push(Past { what, timestamp: Timestamp::now() });
            let surplus = context.history.len().saturating_sub(MOST_HISTORY);
            context.history.drain(..surplus);
            Ok(())
        };
        match self {
            Self::InMemory(open) => {
                let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                let mut context = open.get(&name).cloned().unwrap_or_default();
                change(&mut context, &nowhere)?;
                let bytes = serde_json::to_vec(&context).map_err(Fault::from)?.len();
                context.check(bytes, MOST_IN_MEMORY)?;
                if open.len() >= MOST_OPEN && !open.contains_key(&name) {
                    open.clear();
                }
                let answer = context.changed(&name);
                open.insert(name, context);
                Ok(answer)
            }
            Self::OnDisk(disk) => {
                let disk = Arc::clone(disk);
                Ok(apart(move || disk.change(&name, change)).await?)
            }
        }
    }
}

/// Off the threads that serve: the disk may be slow.
async fn apart<F>(work: F) -> Result<Value, Fault>
where
    F: FnOnce() -> Result<Value, Fault> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Fault::Kept(error.to_string())))
}

fn nowhere(_: &Kept) -> Result<Value, Fault> {
    Err(Fault::Kept("there is no directory for it".to_owned()))
}

impl Context {
    fn take(&mut self, new: NewEntry, strategy: Strategy, load: Load<'_>) -> Result<(), Fault> {
        let timestamp = Timestamp::now();
        let kind = new.kind.unwrap_or_else(|| json_type(&new.value).to_owned());
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == new.key) else {
            let held = Held::Here { value: new.value };
            self.entries.push(Entry { key: new.key, held, kind, timestamp });
            return Ok(());
        };
        let (value, kind) = match strategy {
            // What takes the place of the old value whatever that is does not need it read.
            Strategy::Merge if new.value.is_object() => (merged(entry.held.value(load)?, new.value), kind),
            Strategy::Merge | Strategy::Replace => (new.value, kind),
            Strategy::Append => {
                let mut values = listed(entry.held.value(load)?);
                values.extend(listed(new.value));
                (Value::Array(values), "array".to_owned())
            }
        };
        (entry.held, entry.kind, entry.timestamp) = (Held::Here { value }, kind, timestamp);
        Ok(())
    }

    /// The answer to `context/get`. Without `keys` what is in files of its own is named; with them it is read, as far as an answer
    /// has room.
    fn shown(&self, name: &str, keys: Option<&[String]>, load: Load<'_>) -> Value {
        let mut room = MOST_ANSWERED;
        let mut left_out = false;
        let wanted = self.entries.iter().filter(|entry| keys.is_none_or(|keys| keys.contains(&entry.key)));
        let entries: Vec<Value> = wanted
            .map(|entry| {
                let mut shown = json!({"key": entry.key, "type": entry.kind, "timestamp": entry.timestamp});
                let bytes = entry.held.bytes();
                match &entry.held {
                    Held::Here { value } if bytes <= room => shown["value"] = value.clone(),
                    Held::Apart { kept } if keys.is_some() && bytes <= room => match load(kept) {
                        Ok(value) => shown["value"] = value,
                        Err(fault) => {
                            shown["error"] = json!(fault.to_string());
                            return shown;
                        }
                    },
                    _ => {
                        left_out = true;
                        shown["bytes"] = json!(bytes);
                        return shown;
                    }
                }
                room -= bytes;
                shown
            })
            .collect();
        let mut answer = json!({"context_id": name, "version": self.version, "entries": entries, "history": self.history, "metadata": self.metadata});
        if left_out {
            answer["hint"] = json!(
                "entries with `bytes` instead of `value` are too large to be sent along: ask for them by `keys`, one or a few at a time"
            );
        }
        answer
    }

    /// The answer to a change.
    fn changed(&self, name: &str) -> Value {
        json!({"context_id": name, "version": self.version, "entries": self.entries.len()})
    }

    /// Whether it is as large as it may be and no larger.
    fn check(&self, bytes: usize, most: usize) -> Result<(), Fault> {
        if self.entries.len() > MOST_ENTRIES || bytes > most {
            return Err(Fault::Caller(format!(
                "a context holds at most {MOST_ENTRIES} entries and {most} bytes\n\nhint: `merge_strategy` `replace` makes room"
            )));
        }
        Ok(())
    }
}

impl Held {
    fn value(&mut self, load: Load<'_>) -> Result<Value, Fault> {
        match self {
            Self::Here { value } => Ok(value.take()),
            Self::Apart { kept } => load(kept),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Here { value } => written_len(value),
            Self::Apart { kept } => kept.bytes,
        }
    }
}

/// How long a value is, written.
fn written_len(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail, and a value can always be written.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
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

/// A name becomes a file's name.
fn name_of(name: Option<&str>) -> Result<String, ErrorData> {
    let name = name.unwrap_or(DEFAULT);
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if letters && (1..=64).contains(&name.len()) {
        return Ok(name.to_owned());
    }
    Err(ErrorData::invalid_params("a context's name has 1 to 64 letters, digits, `-` and `_`", None))
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, ErrorData> {
    serde_json::from_value(params).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}
