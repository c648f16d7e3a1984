//! Schemas of servers' tools, made into ones that model vendors accept.
//!
//! Repaired is only what can mean one thing: a property that says `required: true` belongs in its object's list, `"str"`
//! is a string, what `$ref` points to inside the document can stand in its place. Nothing is ever fetched. What was done is
//! said, so that the server's author can be told.

use serde_json::{Map, Value, json};

use super::text::{MOST_FIELD_DESCRIPTION, clean};

/// How deep a schema may be.
const MOST_DEPTH: usize = 32;
/// How large a repaired schema may be, in bytes: references that are put in place multiply.
const MOST_BYTES: usize = 64 * 1024;
/// How many repairs are told.
const MOST_NOTES: usize = 20;

/// A schema that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// The schema, an object.
    pub schema: Value,
    /// What was put right, a sentence each.
    pub notes: Vec<String>,
}

/// Repairs the schema of a tool's arguments. The error says why nothing can be made of it.
pub fn repair(schema: Option<&Value>) -> Result<Repaired, String> {
    let mut work =
        Work { root: schema.unwrap_or(&Value::Null), notes: Vec::new(), open: Vec::new(), room: MOST_BYTES };
    let root = match schema {
        None | Some(Value::Null | Value::Bool(true)) => {
            work.note("$", "there is no schema; any arguments are taken");
            json!({"type": "object"})
        }
        Some(Value::Object(_)) => work.root.clone(),
        Some(_) => return Err("its schema is not an object".to_owned()),
    };
    let mut root = work.schema(&root, "$", 0);
    let object = root.as_object_mut().ok_or("its schema is not an object")?;
    match object.get("type") {
        None => {
            if object.keys().any(|key| ["oneOf", "anyOf", "allOf"].contains(&key.as_str())) {
                work.note("$", "`type` is missing; it is `object`");
            }
            object.insert("type".to_owned(), "object".into());
        }
        Some(Value::String(kind)) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {
            work.note("$", "`type` is a list; arguments are always an object");
            object.insert("type".to_owned(), "object".into());
        }
        Some(other) => return Err(format!("its arguments would be {other} and not an object")),
    }
    if !object.contains_key("properties") {
        object.insert("properties".to_owned(), json!({}));
    }
    // What they point to stands where they were.
    for definitions in ["$defs", "definitions"] {
        object.remove(definitions);
    }
    if root.to_string().len() > MOST_BYTES {
        return Err(format!("its schema is larger than {} kB", MOST_BYTES / 1024));
    }
    Ok(Repaired { schema: root, notes: work.notes })
}

struct Work<'a> {
    root: &'a Value,
    notes: Vec<String>,
    /// The references that are being put in place.
    open: Vec<String>,
    /// How much may still be put in place.
    room: usize,
}

impl Work<'_> {
    fn note(&mut self, path: &str, what: &str) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(format!("{path}: {what}"));
        }
    }

    fn schema(&mut self, schema: &Value, path: &str, depth: usize) -> Value {
        if depth > MOST_DEPTH {
            self.note(path, "too deep; anything is taken here");
            return json!({});
        }
        match schema {
            Value::Object(map) => match map.get("$ref") {
                Some(Value::String(target)) => self.reference(map, target, path, depth),
                _ => self.object(map, path, depth),
            },
            Value::Bool(false) => json!({"not": {}}),
            Value::Bool(true) => json!({}),
            _ => {
                self.note(path, "not a schema; anything is taken here");
                json!({})
            }
        }
    }

    fn reference(&mut self, map: &Map<String, Value>, target: &str, path: &str, depth: usize) -> Value {
        let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)).cloned();
        let Some(found) = found else {
            self.note(
                path,
                "refers to something outside the schema, which is not fetched; anything is taken here",
            );
            return self.object(&without_reference(map), path, depth);
        };
        if self.open.iter().any(|open| open == target) {
            self.note(path, "refers to itself; anything is taken from here on");
            return self.object(&without_reference(map), path, depth);
        }
        let size = found.to_string().len();
        if size > self.room {
            self.note(path, "too much to put in place; anything is taken here");
            return self.object(&without_reference(map), path, depth);
        }
        self.room -= size;
        self.open.push(target.to_owned());
        let mut whole = self.schema(&found, path, depth + 1);
        self.open.pop();
        // What stands beside a reference, such as a description, is said about this place.
        if let Some(whole) = whole.as_object_mut() {
            let beside = self.object(&without_reference(map), path, depth + 1);
            whole.extend(beside.as_object().cloned().unwrap_or_default());
        }
        whole
    }

    fn object(&mut self, map: &Map<String, Value>, path: &str, depth: usize) -> Value {
        let mut made = Map::new();
        let mut required: Vec<Value> = Vec::new();
        for (key, value) in map {
            let here = format!("{path}.{key}");
            match (key.as_str(), value) {
                ("description" | "title", Value::String(text)) => {
                    made.insert(key.clone(), clean(text, MOST_FIELD_DESCRIPTION).into());
                }
                ("type", kind) => {
                    if let Some(kind) = self.kind(kind, &here) {
                        made.insert(key.clone(), kind);
                    }
                }
                ("properties", Value::Object(properties)) => {
                    let mut kept = Map::new();
                    for (name, property) in properties {
                        let here = format!("{here}.{name}");
                        if let Some(Value::Bool(is_required)) = property.get("required") {
                            self.note(&here, "`required` belongs in the list of the object");
                            if *is_required {
                                required.push(name.as_str().into());
                            }
                        }
                        kept.insert(name.clone(), self.schema(property, &here, depth + 1));
                    }
                    made.insert(key.clone(), kept.into());
                }
                ("properties", _) => {
                    self.note(&here, "not an object; there are no properties");
                    made.insert(key.clone(), json!({}));
                }
                ("required", Value::Array(names)) => {
                    required.extend(names.iter().filter(|name| name.is_string()).cloned());
                }
                ("required", Value::String(name)) => {
                    self.note(&here, "a name, not a list of names");
                    required.push(name.as_str().into());
                }
                // `required` said about a property was read by the object above; about the whole it means nothing, and the
                // others mean nothing to a model.
                ("required" | "$schema" | "$id" | "$comment" | "$anchor", _) => {}
                (
                    "items"
                    | "additionalProperties"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "propertyNames",
                    inner,
                ) if inner.is_object() => {
                    made.insert(key.clone(), self.schema(inner, &here, depth + 1));
                }
                ("oneOf" | "anyOf" | "allOf" | "prefixItems" | "items", Value::Array(inner)) => {
                    let inner: Vec<Value> = inner
                        .iter()
                        .enumerate()
                        .map(|(index, inner)| self.schema(inner, &format!("{here}[{index}]"), depth + 1))
                        .collect();
                    made.insert(key.clone(), inner.into());
                }
                ("patternProperties" | "dependentSchemas", Value::Object(inner)) => {
                    let inner: Map<String, Value> = inner
                        .iter()
                        .map(|(name, inner)| {
                            (name.clone(), self.schema(inner, &format!("{here}.{name}"), depth + 1))
                        })
                        .collect();
                    made.insert(key.clone(), inner.into());
                }
                _ => {
                    made.insert(key.clone(), value.clone());
                }
            }
        }
        required.dedup();
        let mut seen = Vec::new();
        required.retain(|name| {
            let new = !seen.contains(name);
            seen.push(name.clone());
            new
        });
        if !required.is_empty() {
            made.insert("required".to_owned(), required.into());
        }
        self.infer(&mut made, path);
        Value::Object(made)
    }

    /// The name of a type, in whatever language its author thought.
    fn kind(&mut self, kind: &Value, path: &str) -> Option<Value> {
        match kind {
            Value::String(name) => {
                let known = match name.to_ascii_lowercase().as_str() {
                    "string" | "str" | "text" => "string",
                    "integer" | "int" | "long" => "integer",
                    "number" | "float" | "double" => "number",
                    "boolean" | "bool" => "boolean",
                    "object" | "dict" | "map" => "object",
                    "array" | "list" => "array",
                    "null" | "none" => "null",
                    _ => {
                        self.note(path, &format!("`{}` is not a type", clean(name, 40)));
                        return None;
                    }
                };
                if known != name {
                    self.note(path, &format!("`{}` is written `{known}`", clean(name, 40)));
                }
                Some(known.into())
            }
            Value::Array(kinds) => {
                let kinds: Vec<Value> = kinds.iter().filter_map(|kind| self.kind(kind, path)).collect();
                (!kinds.is_empty()).then(|| kinds.into())
            }
            Value::Null => None,
            _ => {
                self.note(path, "not the name of a type");
                None
            }
        }
    }

    /// A type that is missing where everything else says what it is.
    fn infer(&mut self, made: &mut Map<String, Value>, path: &str) {
        if !made.contains_key("type") {
            let all = |test: fn(&Value) -> bool| {
                made.get("enum")
                    .and_then(Value::as_array)
                    .is_some_and(|all| !all.is_empty() && all.iter().all(test))
            };
            let kind = match () {
                () if made.contains_key("properties") => Some("object"),
                () if made.contains_key("items") => Some("array"),
                () if all(Value::is_string) => Some("string"),
                () => None,
            };
            if let Some(kind) = kind {
                self.note(path, &format!("`type` is missing; it is `{kind}`"));
                made.insert("type".to_owned(), kind.into());
            }
        }
        if made.get("type").is_some_and(|kind| kind == "array") && !made.contains_key("items") {
            if !made.contains_key("prefixItems") {
                self.note(path, "`items` is missing; anything may be in the list");
            }
            made.insert("items".to_owned(), json!({}));
        }
    }
}

fn without_reference(map: &Map<String, Value>) -> Map<String, Value> {
    let kept = map.iter().filter(|(key, _)| *key != "$ref");
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repaired(schema: &Value) -> Repaired {
        repair(Some(schema)).unwrap()
    }

    #[test]
    fn a_schema_without_faults_stays_as_it_is() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": "x", "enum": ["p", "q"]},
                "b": {"type": "array", "items": {"type": "integer"}},
                "c": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            },
            "required": ["a"],
            "additionalProperties": false,
        });
        let done = repaired(&schema);
        assert_eq!((done.schema, done.notes), (schema, vec![]));
    }

    #[test]
    fn required_on_a_property_belongs_in_the_list() {
        let done = repaired(&json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "required": true},
                "b": {"type": "string", "required": false},
                "c": {"type": "string"},
            },
            "required": ["c"],
        }));
        let mut required: Vec<_> = done.schema["required"].as_array().unwrap().clone();
        required.sort_by_key(Value::to_string);
        assert_eq!(required, [json!("a"), json!("c")]);
        assert!(done.schema["properties"]["a"].get("required").is_none());
        assert_eq!(done.notes.len(), 2, "{:?}", done.notes);
        assert_eq!(repaired(&json!({"properties": {}, "required": true})).schema.get("required"), None);
        assert_eq!(
            repaired(&json!({"properties": {"x": {}}, "required": "x"})).schema["required"],
            json!(["x"])
        );
    }

    #[test]
    fn missing_and_misspelt_types_are_put_right_where_they_are_clear() {
        let done = repaired(&json!({"properties": {
            "a": {"type": "str"}, "b": {"type": "Integer"}, "c": {"properties": {}}, "d": {"enum": ["x"]},
            "e": {"type": "list"}, "f": {"type": "whatever"}, "g": {},
        }}));
        let kind = |name: &str| done.schema["properties"][name]["type"].clone();
        assert_eq!(done.schema["type"], "object");
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(kind),
            ["string", "integer", "object", "string", "array"].map(Value::from)
        );
        assert_eq!((kind("f"), kind("g")), (Value::Null, Value::Null), "these could be anything");
        assert_eq!(done.schema["properties"]["e"]["items"], json!({}));
    }

    #[test]
    fn references_are_put_in_place_and_nothing_is_fetched() {
        let done = repaired(&json!({
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/Name", "description": "the first"},
                "b": {"$ref": "http://198.51.100.1/schema.json"},
                "c": {"$ref": "#/$defs/Tree"},
            },
            "$defs": {
                "Name": {"type": "string", "description": "a name"},
                "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}},
            },
        }));
        let properties = &done.schema["properties"];
        assert_eq!(properties["a"], json!({"type": "string", "description": "the first"}));
        assert_eq!(properties["b"], json!({}));
        assert_eq!(properties["c"]["properties"]["left"], json!({}));
        assert!(!done.schema.to_string().contains('$'), "{}", done.schema);
        assert_eq!(done.notes.len(), 2, "{:?}", done.notes);
    }

    #[test]
    fn references_that_multiply_do_not_fill_the_memory() {
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(
                format!("d{level}"),
                json!({"type": "object", "properties": {"a": next, "b": next, "c": next}}),
            );
        }
        let schema =
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
        match repair(Some(&schema)) {
            Ok(done) => assert!(done.schema.to_string().len() <= MOST_BYTES),
            Err(reason) => assert!(reason.contains("larger"), "{reason}"),
        }
    }

    #[test]
    fn what_can_mean_nothing_is_refused() {
        for bad in [json!("x"), json!(5), json!([]), json!({"type": "string"}), json!({"type": "array"})] {
            assert!(repair(Some(&bad)).is_err(), "{bad}");
        }
        assert_eq!(repair(None).unwrap().schema, json!({"type": "object", "properties": {}}));
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop_oneof![Just("object"), Just("str"), Just("#/properties"), Just("#"), Just("x")]
                .prop_map(Value::from),
            Just(Value::Null),
        ];
        let keys = prop_oneof![
            Just("type"),
            Just("properties"),
            Just("required"),
            Just("items"),
            Just("$ref"),
            Just("anyOf"),
            Just("enum"),
            Just("x"),
            Just("$defs"),
            Just("description"),
        ];
        leaf.prop_recursive(5, 60, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|pairs| {
                    Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_comes_out_is_an_object_schema_and_stays_one(schema in any_schema()) {
            if let Ok(done) = repair(Some(&schema)) {
                prop_assert_eq!(&done.schema["type"], "object");
                prop_assert!(done.schema["properties"].is_object());
                let again = repair(Some(&done.schema)).unwrap();
                prop_assert_eq!(again.schema, done.schema);
            }
        }
    }
}
