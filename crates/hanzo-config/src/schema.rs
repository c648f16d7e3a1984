//! The JSON Schema of a settings file: types from [`crate::shape`], words and defaults from the typed model.

use serde_json::{Map, Value, json};

use crate::settings::Settings;
use crate::shape::{FULL_RULE, Field, MODES, Need, RULE, SETTINGS, Shape, TRANSPORT, TRANSPORTS};

/// What a settings file may hold, in every spelling that loads, as JSON Schema 2020-12.
pub fn settings_schema() -> Value {
    let model = Value::from(schemars::schema_for!(Settings));
    let builder = Builder { model: &model };
    let mut schema = builder.table(SETTINGS, &model);
    if let Value::Object(object) = &mut schema {
        object.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        object.insert("title".to_owned(), "hanzo-dev settings".into());
    }
    schema
}

struct Builder<'m> {
    model: &'m Value,
}

impl<'m> Builder<'m> {
    fn table(&self, fields: &[Field], model: &'m Value) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in fields {
            let of_model = self.property(model, field.name);
            let mut schema = self.shape(&field.shape, of_model);
            if let (Value::Object(schema), Some(of_model)) = (&mut schema, of_model) {
                for word in ["description", "default"] {
                    if let Some(value) = of_model.get(word).filter(|value| !value.is_null()) {
                        schema.insert(word.to_owned(), value.clone());
                    }
                }
            }
            if let Some(alias) = field.alias {
                properties.insert(alias.to_owned(), schema.clone());
            }
            properties.insert(field.name.to_owned(), schema);
            if field.need == Need::Required {
                required.push(field.name);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    fn shape(&self, shape: &Shape, model: Option<&'m Value>) -> Value {
        let model = self.followed(model.unwrap_or(&Value::Null));
        let text = || json!({"type": "string"});
        match shape {
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Shape::Number { min, max } => json!({"type": "number", "minimum": min, "maximum": max}),
            Shape::Text | Shape::Path | Shape::Secret | Shape::Template | Shape::SecretTemplate => text(),
            Shape::Url(schemes) => json!({"type": "string", "pattern": format!("^({})", schemes.join("|"))}),
            Shape::Name => json!({"type": "string", "minLength": 1}),
            Shape::SecretAny => json!({}),
            Shape::Any => json!({"type": "object"}),
            Shape::Choice(choices) => json!({"enum": choices}),
            Shape::List(inner) => {
                json!({"type": "array", "items": self.shape(inner, model.get("items"))})
            }
            Shape::Map(inner) => {
                let values = self.shape(inner, model.get("additionalProperties"));
                json!({"type": "object", "additionalProperties": values})
            }
            Shape::Table(fields) => self.table(fields, model),
            Shape::Named(fields) => {
                let entry = self.table(fields, self.followed(self.entries(model)));
                let mut listed = entry.clone();
                listed["required"] = json!(["name"]);
                json!({"anyOf": [
                    {"type": "object", "additionalProperties": entry},
                    {"type": "array", "items": listed},
                ]})
            }
            Shape::Permissions(fields) => {
                let rules = self.shape(&Shape::List(&Shape::Table(RULE)), self.property(model, "rules"));
                let mut table = self.table(fields, model);
                table["additionalProperties"] = json!({"enum": MODES});
                json!({"anyOf": [table, rules]})
            }
            Shape::Rule => json!({"anyOf": [text(), self.table(FULL_RULE, &Value::Null)]}),
            Shape::Command => {
                json!({"anyOf": [text(), {"type": "array", "items": text(), "minItems": 1}]})
            }
            Shape::Environment => json!({"anyOf": [
                {"type": "object", "additionalProperties": text()},
                {"type": "array", "items": text()},
            ]}),
            Shape::Transport => json!({"anyOf": [{"enum": TRANSPORTS}, self.table(TRANSPORT, model)]}),
        }
    }

    fn entries(&self, model: &'m Value) -> &'m Value {
        model.get("items").or_else(|| model.get("additionalProperties")).unwrap_or(self.model)
    }

    /// The schema a reference or an optional value stands for.
    fn followed(&self, schema: &'m Value) -> &'m Value {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return reference
                .strip_prefix('#')
                .and_then(|pointer| self.model.pointer(pointer))
                .map_or(schema, |found| self.followed(found));
        }
        match schema.get("anyOf").and_then(Value::as_array) {
            Some(options) => options
                .iter()
                .find(|option| option.get("type") != Some(&json!("null")))
                .map_or(schema, |found| self.followed(found)),
            None => schema,
        }
    }

    /// A property of an object, also of a variant of a tagged enum.
    fn property(&self, model: &'m Value, name: &str) -> Option<&'m Value> {
        let model = self.followed(model);
        let direct = model.get("properties").and_then(|properties| properties.get(name));
        direct.or_else(|| {
            model.get("oneOf")?.as_array()?.iter().find_map(|variant| self.property(variant, name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spellings that only files know; the typed model has them under another name.
    const FILE_ONLY: &[&str] = &["transport"];

    fn compare(builder: &Builder<'_>, fields: &[Field], model: &Value, path: &str) {
        let model = builder.followed(model);
        for field in fields {
            let path = format!("{path}.{}", field.name);
            if FILE_ONLY.contains(&field.name) {
                continue;
            }
            // Lifetimes: the model outlives the borrow used here.
            let found = model
                .pointer(&format!("/properties/{}", field.name))
                .or_else(|| {
                    model
                        .get("oneOf")?
                        .as_array()?
                        .iter()
                        .find_map(|variant| variant.get("properties")?.get(field.name))
                })
                .unwrap_or_else(|| panic!("`{path}` is in the table of shapes, not in the typed model"));
            assert!(
                found.get("description").is_some() || field.name == "type",
                "`{path}` has no documentation"
            );
            match &field.shape {
                Shape::Table(inner) | Shape::Permissions(inner) => {
                    compare(builder, inner, &builder.followed(found).clone(), &path);
                }
                Shape::Named(inner) => {
                    let entries = found.get("items").or_else(|| found.get("additionalProperties")).unwrap();
                    let entry =
                        entries["$ref"].as_str().and_then(|r| builder.model.pointer(&r[1..])).unwrap();
                    compare(builder, inner, entry, &path);
                }
                _ => {}
            }
        }
        for name in model["properties"].as_object().unwrap().keys() {
            assert!(
                fields.iter().any(|field| field.name == name),
                "`{path}.{name}` is in the typed model, not in the table of shapes"
            );
        }
    }

    #[test]
    fn the_table_of_shapes_and_the_typed_model_name_the_same_keys() {
        let model = Value::from(schemars::schema_for!(Settings));
        compare(&Builder { model: &model }, SETTINGS, &model, "");
    }
}
