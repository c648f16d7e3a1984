//! What `setup` writes.

use std::fmt::Write as _;
use std::path::Path;

use hanzo_config::{default_file, write_default};
use serde_json::{Map, Value, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::Found;
use crate::commands::settings;
use crate::exit::{Exit, Failure};

/// What became of the settings file.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// It is new.
    New,
    /// These providers were added to it.
    Added(Vec<String>),
    /// It already has everything that was found.
    Nothing,
    /// It is JSON, which may hold comments we would lose; this is to be added.
    ByHand(String),
}

/// Writes what was found to `path`.
pub fn write(path: &Path, found: &[Found]) -> Result<Written, Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Failure::message(Exit::Config, format!("cannot {what} `{}`: {error}", path.display()))
    };
    if path.symlink_metadata().is_err() {
        write_default(path).map_err(|error| settings::failure(Exit::Config, &error))?;
        if !found.is_empty() {
            replace(path, &fresh(found)).map_err(|error| failed("write", &error))?;
        }
        return Ok(Written::New);
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed("read", &error))?;
    if path.extension().is_some_and(|ending| ending == "json") {
        let missing: Vec<&Found> =
            found.iter().filter(|entry| !text.contains(&format!("\"{}\"", entry.name))).collect();
        if missing.is_empty() {
            return Ok(Written::Nothing);
        }
        let entries: Vec<Value> = missing.iter().map(|entry| as_json(entry)).collect();
        let text = serde_json::to_string_pretty(&json!({ "providers": entries })).unwrap_or_default();
        return Ok(Written::ByHand(text));
    }
    match added(&text, found).map_err(|error| failed("change", &error))? {
        None => Ok(Written::Nothing),
        Some((changed, names)) => {
            replace(path, &changed).map_err(|error| failed("write", &error))?;
            Ok(Written::Added(names))
        }
    }
}

/// A new file: the default one, with what was found in the place of its examples.
fn fresh(found: &[Found]) -> String {
    let mut entries = String::new();
    for entry in found {
        let _ = writeln!(entries, "# {}.", sentence(entry));
        entries.push_str(&as_toml(entry));
        entries.push('\n');
    }
    let marker = "# A vendor's endpoint and its models.";
    let first = found.first().and_then(|entry| Some(format!("{}/{}", entry.name, entry.models.first()?)));
    let text = default_file();
    let text = match first {
        Some(first) => text.replacen("#model = \"anthropic\"", &format!("model = {}", quoted(&first)), 1),
        None => text.to_owned(),
    };
    match text.find(marker) {
        Some(at) => format!("{}{entries}{}", &text[..at], &text[at..]),
        None => format!("{text}\n{entries}"),
    }
}

fn sentence(entry: &Found) -> String {
    match &entry.api_key_env {
        Some(name) => format!("{}, by the key in the environment variable {name}", entry.title),
        None => format!("{} on this machine", entry.title),
    }
}

fn quoted(text: &str) -> String {
    value(text).to_string().trim().to_owned()
}

fn table(entry: &Found) -> Table {
    let mut table = Table::new();
    table["name"] = value(entry.name.as_str());
    table["kind"] = value(entry.kind.as_str());
    if let Some(url) = &entry.base_url {
        table["base_url"] = value(url.as_str());
    }
    if !entry.models.is_empty() {
        table["models"] = value(entry.models.iter().map(String::as_str).collect::<toml_edit::Array>());
    }
    if let Some(name) = &entry.api_key_env {
        table["api_key_env"] = value(name.as_str());
    }
    table
}

fn as_toml(entry: &Found) -> String {
    let mut list = ArrayOfTables::new();
    list.push(table(entry));
    let mut document = DocumentMut::new();
    document["providers"] = Item::ArrayOfTables(list);
    document.to_string()
}

fn as_json(entry: &Found) -> Value {
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(entry.name));
    members.insert("kind".to_owned(), json!(entry.kind));
    members.extend(entry.base_url.as_ref().map(|url| ("base_url".to_owned(), json!(url))));
    members.insert("models".to_owned(), json!(entry.models));
    members.extend(entry.api_key_env.as_ref().map(|name| ("api_key_env".to_owned(), json!(name))));
    members.into()
}

/// `text` with the providers it does not name yet, and their names.
fn added(text: &str, found: &[Found]) -> Result<Option<(String, Vec<String>)>, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let list = document.entry("providers").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let list = list.as_array_of_tables_mut().ok_or("`providers` is not a list of tables")?;
    let named = |name: &str| list.iter().any(|entry| entry.get("name").and_then(Item::as_str) == Some(name));
    let missing: Vec<&Found> = found.iter().filter(|entry| !named(&entry.name)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    for entry in &missing {
        let mut table = table(entry);
        table.decor_mut().set_prefix(format!("\n# {}.\n", sentence(entry)));
        list.push(table);
    }
    Ok(Some((document.to_string(), missing.iter().map(|entry| format!("`{}`", entry.name)).collect())))
}

/// Puts `text` in the place of the file at once: nobody ever sees half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let temporary = directory.join(format!(".settings-{}.tmp", hanzo_protocol::ids::TraceId::new()));
    let mode = std::fs::metadata(path)?.permissions();
    let done = crate::root::write_private(&temporary, text.as_bytes())
        .and_then(|()| std::fs::set_permissions(&temporary, mode))
        .and_then(|()| std::fs::rename(&temporary, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    done
}
