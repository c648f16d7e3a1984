//! `docs/settings.md` and `docs/schema/settings.json`: every setting, from the schema of the typed model.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use crate::Documents;

const HEAD: &str = "\
# Settings

Generated from the code by `cargo xtask docs`. The machine-readable form is [schema/settings.json](schema/settings.json).

Settings are read from three tiers, each a `settings.toml` or a `settings.json` with the same keys:

| tier | file |
| --- | --- |
| user | `~/.config/hanzo/settings.toml` |
| project | `.hanzo/settings.toml` in the workspace |
| local | `.hanzo/settings.local.toml` in the workspace, not committed |

A project's `.mcp.json` adds MCP servers. Precedence: command line > environment > local > project > user > default. `hanzo-dev config explain KEY` says
where a value came from. Until a workspace is trusted, its settings cannot run a program, choose an endpoint, allow
without asking, weaken the sandbox or set variables; `hanzo-dev config show` lists what was left out.

A file to begin with:

```toml
";

pub fn add(documents: &mut Documents) -> Result<()> {
    let schema = hanzo_config::settings_schema();
    documents.insert("schema/settings.json".into(), serde_json::to_string_pretty(&schema)? + "\n");

    let mut page = String::from(HEAD);
    page.push_str(hanzo_config::default_file().trim_end());
    page.push_str("\n```\n\n## Every key\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    rows(&mut page, "", &schema)?;
    documents.insert("settings.md".into(), page);
    Ok(())
}

fn rows(page: &mut String, prefix: &str, schema: &Value) -> Result<()> {
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    for (name, property) in properties {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let nested = entry_of(property);
        // A table whose members follow needs no row of its own unless it says something.
        let description =
            property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        writeln!(page, "| `{key}` | {} | {} | {description} |", kind(property), default(property))?;
        match nested {
            Some((suffix, inner)) => rows(page, &format!("{key}{suffix}"), inner)?,
            None => rows(page, &key, property)?,
        }
    }
    Ok(())
}

/// The schema of one entry, for lists of tables and tables by name.
fn entry_of(property: &Value) -> Option<(&'static str, &Value)> {
    let has_members = |schema: &Value| schema["properties"].is_object();
    let alternatives = property["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    [property].into_iter().chain(alternatives).find_map(|schema| {
        if has_members(&schema["additionalProperties"]) {
            Some((".NAME", &schema["additionalProperties"]))
        } else if has_members(&schema["items"]) {
            Some(("[]", &schema["items"]))
        } else {
            None
        }
    })
}

fn kind(property: &Value) -> String {
    if let Some(choices) = property["enum"].as_array() {
        let choices: Vec<String> =
            choices.iter().filter_map(Value::as_str).map(|choice| format!("`{choice}`")).collect();
        return choices.join(", ");
    }
    match property["type"].as_str() {
        Some("integer") => "whole number",
        Some("number") => "number",
        Some("boolean") => "`true` or `false`",
        Some("string") => "text",
        Some("array") => "list",
        Some("object") => "table",
        _ => "several forms",
    }
    .to_owned()
}

fn default(property: &Value) -> String {
    match &property["default"] {
        Value::Null | Value::Object(_) => String::new(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::String(text) if text.is_empty() => String::new(),
        value => format!("`{value}`"),
    }
}
