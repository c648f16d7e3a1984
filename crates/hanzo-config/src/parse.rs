//! Bytes to [`Node`]: decoding, TOML, JSON with comments. Never panics, whatever the bytes.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;
use crate::node::{Data, Member, Node, SourceId, Sources, Table, join};

/// The deepest nesting we accept. Settings use five levels; the parsers' own limits are 80 and 512.
pub(crate) const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Json,
}

/// Parses the text of `source`.
pub(crate) fn parse(sources: &Sources, source: SourceId, format: Format) -> Result<Node, ConfigError> {
    let text = sources.text(source);
    if let Some(offset) = text.find('\0') {
        return Err(ConfigError::Nul { at: sources.origin(source.at(offset)) });
    }
    let converter = Converter { sources, source };
    match format {
        Format::Toml => converter.toml(text),
        Format::Json => converter.json(text),
    }
}

/// The text behind a UTF-8 byte order mark, which some editors write.
pub(crate) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// A JSON value handed over by a program, all of it at one place.
pub(crate) fn from_json(value: &serde_json::Value, source: SourceId) -> Node {
    use serde_json::Value;
    let at = source.at(0);
    let data = match value {
        Value::Null => Data::Null,
        Value::Bool(value) => Data::Bool(*value),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| Data::Float(number.as_f64().unwrap_or(f64::INFINITY)), Data::Integer),
        Value::String(text) => Data::Text(text.clone()),
        Value::Array(items) => Data::List(items.iter().map(|item| from_json(item, source)).collect()),
        Value::Object(object) => Data::Table(
            object
                .iter()
                .map(|(key, value)| (key.clone(), Member { key_at: at, node: from_json(value, source) }))
                .collect(),
        ),
    };
    Node { at, data }
}

struct Converter<'a> {
    sources: &'a Sources,
    source: SourceId,
}

impl Converter<'_> {
    fn check_depth(&self, depth: usize, offset: usize) -> Result<(), ConfigError> {
        if depth > MAX_DEPTH {
            return Err(ConfigError::TooDeep {
                at: self.sources.origin(self.source.at(offset)),
                limit: MAX_DEPTH,
            });
        }
        Ok(())
    }

    fn syntax(&self, offset: usize, message: &str) -> ConfigError {
        ConfigError::Syntax {
            at: self.sources.origin(self.source.at(offset)),
            message: message.trim_end_matches('.').to_owned(),
        }
    }

    fn toml(&self, text: &str) -> Result<Node, ConfigError> {
        let document = DeTable::parse(text).map_err(|e| {
            let offset = e.span().map_or(0, |span| span.start);
            self.syntax(offset, &format!("not valid TOML: {}", e.message()))
        })?;
        let table = self.toml_table(document.get_ref(), 1)?;
        Ok(Node { at: self.source.at(0), data: Data::Table(table) })
    }

    fn toml_table(&self, table: &DeTable<'_>, depth: usize) -> Result<Table, ConfigError> {
        // The parser sorts keys by name; the order in the file is the order of permission rules.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut result = Table::with_capacity(entries.len());
        for (key, value) in entries {
            let node = self.toml_value(value.get_ref(), value.span().start, depth)?;
            let key_at = self.source.at(key.span().start);
            result.insert(key.get_ref().to_string(), Member { key_at, node });
        }
        Ok(result)
    }

    fn toml_value(&self, value: &DeValue<'_>, offset: usize, depth: usize) -> Result<Node, ConfigError> {
        self.check_depth(depth, offset)?;
        let data = match value {
            DeValue::String(text) => {
                if text.contains('\0') {
                    return Err(ConfigError::Nul { at: self.sources.origin(self.source.at(offset)) });
                }
                Data::Text(text.to_string())
            }
            DeValue::Integer(number) => Data::Integer(
                i64::from_str_radix(number.as_str(), number.radix())
                    .map_err(|_| self.syntax(offset, "this number is too large"))?,
            ),
            DeValue::Float(number) => {
                let value = number.as_str().parse().map_err(|_| self.syntax(offset, "not a number"))?;
                Data::Float(value)
            }
            DeValue::Boolean(value) => Data::Bool(*value),
            DeValue::Datetime(_) => Data::Date,
            DeValue::Array(items) => Data::List(
                items
                    .iter()
                    .map(|item| self.toml_value(item.get_ref(), item.span().start, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => Data::Table(self.toml_table(table, depth + 1)?),
        };
        Ok(Node { at: self.source.at(offset), data })
    }

    fn json(&self, text: &str) -> Result<Node, ConfigError> {
        // Comments and trailing commas are what people write; the other liberties would hide mistakes.
        let options = jsonc_parser::ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options)
            .map_err(|e| {
                self.syntax(
                    e.range().start,
                    &format!("not valid JSON: {}", lower_first(&e.kind().to_string())),
                )
            })?;
        match parsed.value {
            Some(value) => self.json_value(&value, 1),
            // An empty file, or one of comments only, sets nothing.
            None => Ok(Node::table(self.source.at(0))),
        }
    }

    fn json_value(&self, value: &ast::Value<'_>, depth: usize) -> Result<Node, ConfigError> {
        let offset = value.range().start;
        self.check_depth(depth, offset)?;
        let data = match value {
            ast::Value::NullKeyword(_) => Data::Null,
            ast::Value::BooleanLit(lit) => Data::Bool(lit.value),
            ast::Value::NumberLit(lit) => match lit.value.parse::<i64>() {
                Ok(number) => Data::Integer(number),
                Err(_) => match lit.value.parse::<f64>() {
                    Ok(number) if number.is_finite() => Data::Float(number),
                    _ => return Err(self.syntax(offset, "this number is too large")),
                },
            },
            ast::Value::StringLit(lit) => {
                if lit.value.contains('\0') {
                    return Err(ConfigError::Nul { at: self.sources.origin(self.source.at(offset)) });
                }
                Data::Text(lit.value.to_string())
            }
            ast::Value::Array(array) => Data::List(
                array
                    .elements
                    .iter()
                    .map(|item| self.json_value(item, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            ast::Value::Object(object) => {
                let mut table = Table::with_capacity(object.properties.len());
                for property in &object.properties {
                    let key = property.name.as_str();
                    let key_at = self.source.at(property.name.range().start);
                    let node = self.json_value(&property.value, depth + 1)?;
                    if let Some(first) = table.insert(key.to_owned(), Member { key_at, node }) {
                        return Err(ConfigError::Duplicate {
                            at: self.sources.origin(key_at),
                            key: join("", key),
                            first: self.sources.origin(first.key_at),
                        });
                    }
                }
                Data::Table(table)
            }
        };
        Ok(Node { at: self.source.at(offset), data })
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
