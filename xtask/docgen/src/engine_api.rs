//! `docs/engine-api.md`: the requests and notifications, from their schemas.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::Documents;

pub fn add(documents: &mut Documents) -> Result<()> {
    let schemas = hanzo_protocol::schema::all();
    let find = |name: &str| -> Result<Value> {
        let (_, schema) =
            schemas.iter().find(|(known, _)| *known == name).with_context(|| format!("no schema {name}"))?;
        Ok(schema.as_value().clone())
    };
    let mut page = String::from(
        "# Engine API\n\nGenerated from the code by `cargo xtask docs`. The full schemas are in [schema/](schema/): `request.json`,\n\
         `response.json`, `event.json`, `item.json`.\n\nA thread is a conversation in a workspace; a turn is one user input until the agent rests; an item \
         is an entry of\na thread. Names on the wire are camelCase.\n\n## Requests\n",
    );
    for (method, variant) in variants(&find("request")?, "method") {
        writeln!(page, "\n### `{method}`\n\n{}\n", text(&variant["description"]))?;
        fields(&mut page, &find("request")?, &variant["properties"]["params"])?;
    }
    page.push_str("\n## Notifications\n\nEach also has `cursor`, `threadId` and `at`.\n");
    for (kind, variant) in variants(&find("event")?, "type") {
        writeln!(page, "\n### `{kind}`\n\n{}\n", text(&variant["description"]))?;
        fields(&mut page, &find("event")?, &variant)?;
    }
    documents.insert("engine-api.md".into(), page);
    Ok(())
}

/// The variants of a tagged enum by the constant of their tag.
fn variants(schema: &Value, tag: &str) -> Vec<(String, Value)> {
    let list = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let constant = |variant: &Value| variant["properties"][tag]["const"].as_str().map(str::to_owned);
    list.into_iter().filter_map(|variant| Some((constant(&variant)?, variant))).collect()
}

fn fields(page: &mut String, schema: &Value, of: &Value) -> Result<()> {
    let resolved = resolve(schema, of);
    let Some(properties) = resolved["properties"].as_object() else { return Ok(()) };
    let required =
        |name: &str| resolved["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let shown: Vec<_> = properties.iter().filter(|(_, field)| field["const"].is_null()).collect();
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(page, "| field | | meaning |\n| --- | --- | --- |")?;
    for (name, field) in shown {
        let need = if required(name) { "required" } else { "optional" };
        let meaning = field["description"].as_str().or(resolve(schema, field)["description"].as_str());
        writeln!(page, "| `{name}` | {need} | {} |", meaning.unwrap_or_default().replace('\n', " "))?;
    }
    Ok(())
}

fn resolve<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let name = value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    name.map_or(value, |name| &schema["$defs"][name])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('\n', " ")
}
