//! The schemas: one exact per action, and the flat one a model sees.
//!
//! Models' vendors take a flat object only (no `oneOf` at the root, no `$ref`), so the advertised schema is an `action` enum
//! and the union of all fields; the exact schemas validate a call and are what the `schema` action returns.

use hanzo_protocol::envelope::Intent;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Two actions of a tool give the same field different types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{tool}.{action}` gives the field `{field}` another type than an earlier action does")]
pub struct FlatSchemaError {
    /// The tool.
    pub tool: String,
    /// The later action.
    pub action: String,
    /// The field.
    pub field: String,
}

/// The schema of a type, without references and without what says nothing.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(members) = &mut schema {
        members.shift_remove("$schema");
    }
    tidy(&mut schema);
    schema
}

/// An optional field may be left out; that it may also be `null` is understood and not said.
fn tidy(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    members.shift_remove("title");
    members.shift_remove("format");
    if members.get("default").is_some_and(Value::is_null) {
        members.shift_remove("default");
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            members["type"] = only.clone();
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            members.shift_remove("anyOf");
            for (name, value) in only {
                members.entry(name).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    join_constants(members);
    for name in ["properties", "$defs"] {
        if let Some(Value::Object(inner)) = members.get_mut(name) {
            inner.values_mut().for_each(tidy);
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(name) {
            tidy(inner);
        }
    }
    for name in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(inner)) = members.get_mut(name) {
            inner.iter_mut().for_each(tidy);
        }
    }
}

/// An enum with doc comments is a list of constants; a plain `enum` says the same in a fifth of the bytes.
fn join_constants(members: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = members.get("oneOf") else { return };
    let constants: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(constants) = constants {
        members.shift_remove("oneOf");
        members.insert("type".into(), json!("string"));
        members.insert("enum".into(), constants.into());
    }
}

/// The exact schema of an action's arguments, `action` and `intent` included and the aliases of fields named.
pub(super) fn exact(action: &str, input: &Value, aliases: &[(&str, &str)]) -> Value {
    let mut properties = Map::new();
    properties.insert("action".into(), json!({"const": action}));
    let fields = input.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required: Vec<&str> = input
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for (name, field) in &fields {
        properties.insert(name.clone(), field.clone());
    }
    for (alias, field) in aliases {
        let mut same = fields.get(*field).cloned().unwrap_or_else(|| json!({}));
        same["description"] = json!(format!("Same as `{field}`."));
        properties.entry((*alias).to_owned()).or_insert(same);
    }
    properties.insert("intent".into(), of::<Intent>());
    let mut conditions = Vec::new();
    let mut always = vec![json!("action")];
    for name in required {
        let names: Vec<&str> = std::iter::once(name)
            .chain(aliases.iter().filter(|(_, field)| *field == name).map(|(alias, _)| *alias))
            .collect();
        if let [only] = names.as_slice() {
            always.push(json!(only));
        } else {
            let any: Vec<Value> = names.iter().map(|name| json!({ "required": [name] })).collect();
            conditions.push(json!({ "anyOf": any }));
        }
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": always,
        "additionalProperties": false,
    });
    if !conditions.is_empty() {
        schema["allOf"] = conditions.into();
    }
    schema
}

/// The input schema without what a model is not told in every request.
pub(super) fn shown(input: &Value, hidden: &[&str], quiet: &[&str]) -> Value {
    let mut shown = input.clone();
    if let Some(Value::Object(fields)) = shown.get_mut("properties") {
        fields.retain(|name, _| !hidden.contains(&name.as_str()));
        for (name, field) in fields.iter_mut() {
            if let (true, Value::Object(members)) = (quiet.contains(&name.as_str()), field) {
                members.shift_remove("description");
            }
        }
    }
    shown
}

/// The flat schema: the actions' names and the union of their fields.
pub(super) fn flat<'a>(
    tool: &str,
    actions: impl Iterator<Item = (&'a str, &'a Value)> + Clone,
) -> Result<Value, FlatSchemaError> {
    let names: Vec<&str> = actions.clone().map(|(name, _)| name).collect();
    let mut properties = Map::new();
    properties.insert("action".into(), json!({"type": "string", "enum": names}));
    for (action, input) in actions {
        let Some(fields) = input.get("properties").and_then(Value::as_object) else { continue };
        for (name, field) in fields {
            let field = advertised(field);
            match properties.get(name) {
                None => {
                    properties.insert(name.clone(), field);
                }
                Some(earlier) if shape(earlier) == shape(&field) => {}
                Some(_) => {
                    return Err(FlatSchemaError {
                        tool: tool.into(),
                        action: action.into(),
                        field: name.clone(),
                    });
                }
            }
        }
    }
    Ok(json!({"type": "object", "properties": properties, "required": ["action"]}))
}

/// A field as a model sees it: bounds and defaults are the exact schema's business.
fn advertised(field: &Value) -> Value {
    match field {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "minimum" | "maximum" | "default"))
            .map(|(name, value)| {
                let value = match (name.as_str(), value) {
                    ("additionalProperties", Value::Bool(false)) => return (name.clone(), Value::Null),
                    // Nested fields carry no prose: the description of the outer one covers them.
                    ("properties", Value::Object(inner)) => {
                        inner.iter().map(|(name, field)| (name.clone(), bare(&advertised(field)))).collect()
                    }
                    // Several forms are accepted; the first is the one to use, and some vendors take only one.
                    ("type", Value::Array(types)) => types.first().cloned().unwrap_or_default(),
                    ("items", _) if !lists_first(members) => return (name.clone(), Value::Null),
                    ("items" | "additionalProperties", inner) => bare(&advertised(inner)),
                    (_, other) => other.clone(),
                };
                (name.clone(), value)
            })
            .filter(|(_, value)| !value.is_null())
            .collect(),
        other => other.clone(),
    }
}

/// Whether a list is the first form of a field.
fn lists_first(members: &Map<String, Value>) -> bool {
    match members.get("type") {
        Some(Value::Array(types)) => types.first().is_some_and(|first| first == "array"),
        Some(only) => only == "array",
        None => true,
    }
}

fn bare(field: &Value) -> Value {
    match field {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| name.as_str() != "description")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

fn shape(field: &Value) -> Value {
    bare(field)
}
