//! The forms servers ask for: flat objects of simple values, asked for field by field where a face has only questions.

use serde_json::{Map, Value};

use super::text::{MOST_FIELD_DESCRIPTION, line};

/// One thing a form asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// What to ask.
    pub question: String,
    /// Whether the form cannot do without it.
    pub required: bool,
    /// What it is.
    pub kind: FieldKind,
    /// What it is when nothing is said.
    pub default: Option<Value>,
    /// The smallest and the largest number, or the shortest and the longest text.
    pub bounds: (Option<f64>, Option<f64>),
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these: the value and what to show for it.
    Choice(Vec<(String, String)>),
    /// Some of these.
    Choices(Vec<(String, String)>),
}

/// The fields of a form.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let field = |(name, property): (&String, &Value)| {
        let said = |key: &str| {
            property.get(key).and_then(Value::as_str).map(|text| line(text, MOST_FIELD_DESCRIPTION))
        };
        let title = said("title").unwrap_or_else(|| line(name, MOST_FIELD_DESCRIPTION));
        Field {
            name: name.clone(),
            question: said("description").map_or_else(|| title.clone(), |more| format!("{title}: {more}")),
            required: required.iter().any(|known| known == name.as_str()),
            kind: kind(property),
            default: property.get("default").cloned(),
            bounds: bounds(property),
        }
    };
    properties.iter().map(field).collect()
}

fn bounds(property: &Value) -> (Option<f64>, Option<f64>) {
    let number = |key: &str| property.get(key).and_then(Value::as_f64);
    (number("minimum").or_else(|| number("minLength")), number("maximum").or_else(|| number("maxLength")))
}

fn kind(property: &Value) -> FieldKind {
    match property.get("type").and_then(Value::as_str) {
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Boolean,
        Some("array") => FieldKind::Choices(property.get("items").and_then(choices).unwrap_or_default()),
        _ => choices(property).map_or(FieldKind::Text, FieldKind::Choice),
    }
}

/// Values to choose from, in the forms they are written: `enum` with or without `enumNames`, or `oneOf`/`anyOf` of constants.
fn choices(property: &Value) -> Option<Vec<(String, String)>> {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let names = property.get("enumNames").and_then(Value::as_array);
        let shown = |index: usize| names.and_then(|names| names.get(index)).and_then(Value::as_str);
        let all = values.iter().enumerate().filter_map(|(index, value)| {
            let value = value.as_str()?;
            Some((value.to_owned(), line(shown(index).unwrap_or(value), 200)))
        });
        return Some(all.collect());
    }
    let constants = property.get("oneOf").or_else(|| property.get("anyOf"))?.as_array()?;
    let one = |entry: &Value| {
        let value = entry.get("const")?.as_str()?;
        let shown = entry.get("title").and_then(Value::as_str).unwrap_or(value);
        Some((value.to_owned(), line(shown, 200)))
    };
    Some(constants.iter().filter_map(one).collect())
}

/// What the user's words mean for a field; the error says what they should have been. Nothing said is the default.
pub fn read(field: &Field, words: &str) -> Result<Option<Value>, String> {
    let words = words.trim();
    if words.is_empty() {
        return match (&field.default, field.required) {
            (Some(default), _) => Ok(Some(default.clone())),
            (None, true) => Err("this is needed".to_owned()),
            (None, false) => Ok(None),
        };
    }
    let chosen = |choices: &[(String, String)], words: &str| {
        let found = choices.iter().find(|(value, shown)| value == words || shown == words);
        let found = found.map(|(value, _)| Value::from(value.as_str()));
        found.ok_or_else(|| format!("`{words}` is not one of the choices"))
    };
    let value = match &field.kind {
        FieldKind::Text => words.into(),
        FieldKind::Integer => {
            words.parse::<i64>().map_err(|_| "this is to be a whole number".to_owned())?.into()
        }
        FieldKind::Number => {
            let number = words.parse::<f64>().map_err(|_| "this is to be a number".to_owned())?;
            serde_json::Number::from_f64(number).ok_or("this is to be a number")?.into()
        }
        FieldKind::Boolean => match words.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" | "on" => true.into(),
            "no" | "n" | "false" | "off" => false.into(),
            _ => return Err("this is to be yes or no".to_owned()),
        },
        FieldKind::Choice(choices) => chosen(choices, words)?,
        FieldKind::Choices(choices) => {
            let some: Result<Vec<Value>, String> =
                words.split(',').map(|word| chosen(choices, word.trim())).collect();
            some?.into()
        }
    };
    within(field, &value)?;
    Ok(Some(value))
}

/// Whether a value keeps to the field's bounds.
fn within(field: &Field, value: &Value) -> Result<(), String> {
    #[expect(clippy::cast_precision_loss, reason = "nobody types a text that long")]
    let (size, what) = match value {
        Value::Number(number) => (number.as_f64(), "be"),
        Value::String(text) if field.kind == FieldKind::Text => (Some(text.chars().count() as f64), "have"),
        _ => return Ok(()),
    };
    let unit = if what == "have" { " letters" } else { "" };
    match (size, field.bounds) {
        (Some(size), (Some(least), _)) if size < least => {
            Err(format!("this is to {what} at least {least}{unit}"))
        }
        (Some(size), (_, Some(most))) if size > most => {
            Err(format!("this is to {what} at most {most}{unit}"))
        }
        _ => Ok(()),
    }
}

/// `content` with the defaults of the form for what it does not say.
pub fn with_defaults(schema: &Value, content: &Value) -> Value {
    let mut whole = Map::new();
    for field in fields(schema) {
        if let Some(value) = content.get(&field.name).cloned().or(field.default) {
            whole.insert(field.name, value);
        }
    }
    Value::Object(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_is_read_field_by_field() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name", "description": "yours"},
            "age": {"type": "integer", "default": 30, "minimum": 18, "maximum": 99},
            "code": {"type": "string", "minLength": 2, "maxLength": 3},
            "sure": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "sizes": {"type": "array", "items": {"anyOf": [{"const": "s", "title": "Small"}, {"const": "l"}]}},
            "share": {"type": "number"},
        }});
        let form = fields(&schema);
        let said =
            |name: &str, words: &str| read(form.iter().find(|field| field.name == name).unwrap(), words);
        assert_eq!(form[0].question, "Name: yours");
        assert_eq!(said("name", " Ada "), Ok(Some(json!("Ada"))));
        assert!(said("name", "").is_err() && said("age", "old").is_err() && said("sure", "maybe").is_err());
        assert_eq!(said("age", ""), Ok(Some(json!(30))));
        assert_eq!(said("age", "17"), Err("this is to be at least 18".to_owned()));
        assert!(said("age", "100").is_err() && said("age", "18").is_ok());
        assert_eq!(said("code", "äöüß"), Err("this is to have at most 3 letters".to_owned()));
        assert!(said("code", "a").is_err() && said("code", "äöü").is_ok());
        assert_eq!(said("sure", "Yes"), Ok(Some(json!(true))));
        assert_eq!(said("colour", "Green"), Ok(Some(json!("g"))));
        assert!(said("colour", "Blue").is_err());
        assert_eq!(said("sizes", "Small, l"), Ok(Some(json!(["s", "l"]))));
        assert_eq!(said("share", "0.5"), Ok(Some(json!(0.5))));
        assert_eq!(
            with_defaults(&schema, &json!({"name": "A", "other": 1})),
            json!({"name": "A", "age": 30})
        );
    }
}
