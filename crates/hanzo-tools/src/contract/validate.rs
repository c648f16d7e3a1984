//! Checking arguments against an action's exact schema, so that a mistake is answered with the field's name and what it takes
//! instead of a parser's words.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::json_type;
use serde_json::{Map, Value, json};

/// Puts canonical field names for aliases and drops fields that are `null`, which is how some callers leave a field out.
pub(super) fn normalise(
    arguments: Map<String, Value>,
    aliases: &[(&str, &str)],
    fields: &Map<String, Value>,
) -> Result<Map<String, Value>, ToolError> {
    let mut canonical = Map::new();
    for (name, value) in arguments {
        if value.is_null() {
            continue;
        }
        let field =
            aliases.iter().find(|(alias, _)| *alias == name).map_or(name.as_str(), |(_, field)| field);
        let value = unquoted(value, fields.get(field));
        match canonical.get(field) {
            Some(earlier) if *earlier != value => {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    format!(
                        "`{field}` is given twice with different values (`{name}` is another name for it)"
                    ),
                )
                .with_details(json!({ "field": field })));
            }
            _ => {
                canonical.insert(field.to_owned(), value);
            }
        }
    }
    Ok(canonical)
}

/// Some models write a list or an object as a string of JSON.
fn unquoted(value: Value, schema: Option<&Value>) -> Value {
    let wanted = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    if let (Value::String(text), Some("array" | "object")) = (&value, wanted)
        && let Ok(parsed) = serde_json::from_str::<Value>(text)
        && json_type(&parsed) == wanted.unwrap_or_default()
    {
        return parsed;
    }
    value
}

/// Checks `value` against `schema`. `field` is where we are, empty at the top.
pub(super) fn check(value: &Value, schema: &Value, field: &str) -> Result<(), ToolError> {
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        if choices.iter().any(|choice| check(value, choice, field).is_ok()) {
            return Ok(());
        }
        return Err(wrong_type(value, schema, field));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        if values.contains(value) {
            return Ok(());
        }
        let names: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        let hint =
            value.as_str().map_or_else(String::new, |given| did_you_mean(given, names.iter().copied()));
        return Err(invalid(field, format!("`{field}` is one of {}{hint}", quoted(&names)), schema));
    }
    let Some(wanted) = schema.get("type") else { return Ok(()) };
    let accepted = match wanted {
        Value::String(name) => is_type(value, name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_type(value, name)),
        _ => true,
    };
    if !accepted {
        return Err(wrong_type(value, schema, field));
    }
    if let (Some(number), Some(least)) = (value.as_f64(), schema.get("minimum").and_then(Value::as_f64))
        && number < least
    {
        return Err(invalid(
            field,
            format!("`{field}` is {value}, but at least {least} is accepted"),
            schema,
        ));
    }
    match value {
        Value::Object(members) => check_members(members, schema, field),
        Value::Array(elements) => {
            let Some(items) = schema.get("items") else { return Ok(()) };
            let mut each = elements.iter().enumerate();
            each.try_for_each(|(index, element)| check(element, items, &format!("{field}[{index}]")))
        }
        _ => Ok(()),
    }
}

fn check_members(members: &Map<String, Value>, schema: &Value, field: &str) -> Result<(), ToolError> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let inner = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    for (name, value) in members {
        match (properties.get(name), schema.get("additionalProperties")) {
            (Some(property), _) if value.is_null() && !is_required(schema, name) => {
                let _ = property;
            }
            (Some(property), _) => check(value, property, &inner(name))?,
            // The names of nested fields' aliases are known to serde alone, which has the last word.
            (None, Some(Value::Bool(false))) if field.is_empty() => {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let hint = did_you_mean(name, known.iter().copied());
                let message =
                    format!("there is no field `{}`{hint}; accepted are {}", inner(name), quoted(&known));
                return Err(ToolError::new(ErrorCode::InvalidArguments, message)
                    .with_details(json!({"field": inner(name), "accepted": known})));
            }
            (None, Some(values @ Value::Object(_))) => check(value, values, &inner(name))?,
            (None, _) => {}
        }
    }
    if !field.is_empty() {
        return Ok(());
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            let about = properties.get(name).map(describe).unwrap_or_default();
            return Err(invalid(
                &inner(name),
                format!("`{}` is missing: {about}", inner(name)),
                properties.get(name).unwrap_or(&Value::Null),
            ));
        }
    }
    Ok(())
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|known| known == name))
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "number" => value.is_number(),
        other => json_type(value) == other,
    }
}

fn wrong_type(value: &Value, schema: &Value, field: &str) -> ToolError {
    let given = json_type(value);
    let message = if field.is_empty() {
        format!("the arguments are a JSON object, not {given}")
    } else {
        format!("`{field}` takes {}, not {given}", describe(schema))
    };
    invalid(field, message, schema)
}

fn invalid(field: &str, message: String, schema: &Value) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, message)
        .with_details(json!({"field": field, "accepted": describe(schema)}))
}

/// What a schema accepts, in words.
fn describe(schema: &Value) -> String {
    let kind = match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => {
            let choices = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
            let names: Vec<String> = choices.into_iter().flatten().map(describe).collect();
            names.join(" or ")
        }
    };
    let article = if kind.starts_with(['a', 'i', 'o', 'e']) { "an" } else { "a" };
    match schema.get("description").and_then(Value::as_str) {
        Some(about) => format!("{article} {kind} ({})", about.trim_end_matches('.')),
        None => format!("{article} {kind}"),
    }
}

/// A name near to `given`, as the end of a sentence.
pub(super) fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|name| (strsim::jaro_winkler(&given.to_lowercase(), name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
