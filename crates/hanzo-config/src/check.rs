//! Checks a tree against [`crate::shape`]: wrong types are errors, unknown keys are warnings and are taken out.

use crate::error::{ConfigError, Warning, WarningKind};
use crate::node::{Data, Node, Sources, Spot, Table, at_index, join};
use crate::shape::{FULL_RULE, Field, MODES, Need, RULE, SERVER, SETTINGS, Shape, TRANSPORT, TRANSPORTS};

/// Whether keys we do not know are worth a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownKeys {
    Warn,
    /// `.mcp.json` is shared with other programs, which have keys of their own.
    Ignore,
}

pub(crate) struct Checker<'a> {
    pub sources: &'a Sources,
    pub warnings: &'a mut Vec<Warning>,
    pub unknown: UnknownKeys,
}

impl Checker<'_> {
    /// Checks a whole settings document.
    pub fn settings(&mut self, node: &mut Node) -> Result<(), ConfigError> {
        drop_nulls(node);
        self.check(node, &Shape::Table(SETTINGS), "")
    }

    /// Checks the table of servers of a `.mcp.json`.
    pub fn servers(&mut self, node: &mut Node) -> Result<(), ConfigError> {
        drop_nulls(node);
        self.check(node, &Shape::Named(SERVER), "mcp_servers")
    }

    fn check(&mut self, node: &mut Node, shape: &Shape, path: &str) -> Result<(), ConfigError> {
        match shape {
            Shape::Any => match node.data {
                Data::Table(_) => Ok(()),
                _ => Err(self.wrong(node, path, "a table", Found::Hidden)),
            },
            Shape::SecretAny => Ok(()),
            Shape::Secret => match &node.data {
                Data::Text(text) if !text.is_empty() => Ok(()),
                Data::Text(_) => Err(self.invalid(node, path, "may not be empty", None)),
                _ => Err(self.wrong(node, path, "a string", Found::Hidden)),
            },
            Shape::SecretTemplate if node.as_text().is_none() => {
                Err(self.wrong(node, path, "a string", Found::Hidden))
            }
            Shape::Text | Shape::Path | Shape::Template | Shape::SecretTemplate => match node.data {
                Data::Text(_) => Ok(()),
                _ => Err(self.wrong(node, path, "a string", Found::Shown)),
            },
            Shape::Name => match &node.data {
                Data::Text(text) if !text.trim().is_empty() => Ok(()),
                Data::Text(_) => Err(self.invalid(node, path, "may not be empty", None)),
                _ => Err(self.wrong(node, path, "a string", Found::Shown)),
            },
            Shape::Url(schemes) => match &node.data {
                Data::Text(text) => {
                    check_url(text, schemes).map_err(|problem| self.invalid(node, path, &problem, None))
                }
                _ => Err(self.wrong(node, path, "a string", Found::Shown)),
            },
            Shape::Bool => match node.data {
                Data::Bool(_) => Ok(()),
                _ => Err(self.wrong(node, path, "`true` or `false`", Found::Shown)),
            },
            Shape::Integer { min, max } => self.integer(node, *min, *max, path),
            Shape::Number { min, max } => self.number(node, *min, *max, path),
            Shape::Choice(choices) => self.choice(node, choices, path),
            Shape::List(inner) => match &mut node.data {
                Data::List(items) => {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.check(item, inner, &at_index(path, index))?;
                    }
                    Ok(())
                }
                _ => Err(self.wrong(node, path, list_of(inner), Found::Shown)),
            },
            Shape::Map(inner) => match &mut node.data {
                Data::Table(table) => {
                    for (key, member) in table {
                        self.check(&mut member.node, inner, &join(path, key))?;
                    }
                    Ok(())
                }
                _ if matches!(inner, Shape::SecretTemplate) => {
                    Err(self.wrong(node, path, "a table", Found::Hidden))
                }
                _ => Err(self.wrong(node, path, "a table", Found::Shown)),
            },
            Shape::Table(fields) => self.table(node, fields, path),
            Shape::Named(fields) => self.named(node, fields, path),
            Shape::Permissions(fields) => self.permissions(node, fields, path),
            Shape::Rule => match &node.data {
                Data::Table(_) => self.table(node, FULL_RULE, path),
                Data::Text(_) => self.check(node, &Shape::Name, path),
                _ => Err(self.wrong(node, path, "a rule, or a table with `rule`", Found::Shown)),
            },
            Shape::Command => match &mut node.data {
                Data::Text(text) if !text.trim().is_empty() => Ok(()),
                Data::List(items) if !items.is_empty() => {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.check(item, &Shape::Template, &at_index(path, index))?;
                    }
                    match items[0].as_text() {
                        Some(program) if !program.trim().is_empty() => Ok(()),
                        _ => Err(self.invalid(node, path, "may not be empty", None)),
                    }
                }
                Data::Text(_) | Data::List(_) => Err(self.invalid(node, path, "may not be empty", None)),
                _ => Err(self.wrong(node, path, "a string or a list of strings", Found::Shown)),
            },
            Shape::Environment => match node.data {
                Data::List(_) => self.check(node, &Shape::List(&Shape::Name), path),
                Data::Table(_) => self.check(node, &Shape::Map(&Shape::SecretTemplate), path),
                _ => Err(self.wrong(node, path, "a table of values or a list of names", Found::Hidden)),
            },
            Shape::Transport => match node.data {
                Data::Text(_) => self.choice(node, TRANSPORTS, path),
                _ => self.table(node, TRANSPORT, path),
            },
        }
    }

    fn integer(&self, node: &mut Node, min: i64, max: i64, path: &str) -> Result<(), ConfigError> {
        // `12.0` is how some programs write the number twelve.
        if let Data::Float(value) = node.data
            && value.fract() == 0.0
            && value.abs() < 9e15
        {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole and far below 2^63, both just checked"
            )]
            let whole = value as i64;
            node.data = Data::Integer(whole);
        }
        match node.data {
            Data::Integer(value) if (min..=max).contains(&value) => Ok(()),
            Data::Integer(value) => Err(self.invalid(
                node,
                path,
                &format!("must be between {min} and {max}, found {value}"),
                None,
            )),
            _ => Err(self.wrong(node, path, "a whole number", Found::Shown)),
        }
    }

    fn number(&self, node: &Node, min: f64, max: f64, path: &str) -> Result<(), ConfigError> {
        let value = match node.data {
            #[expect(clippy::cast_precision_loss, reason = "compared with small limits only")]
            Data::Integer(value) => value as f64,
            Data::Float(value) => value,
            _ => return Err(self.wrong(node, path, "a number", Found::Shown)),
        };
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(self.invalid(node, path, &format!("must be between {min} and {max}, found {value}"), None))
    }

    fn choice(&self, node: &Node, choices: &[&str], path: &str) -> Result<(), ConfigError> {
        let Data::Text(text) = &node.data else {
            return Err(self.wrong(node, path, &one_of(choices), Found::Shown));
        };
        if choices.contains(&text.as_str()) {
            return Ok(());
        }
        let hint = nearest(text, choices.iter().copied()).map(|near| format!("did you mean \"{near}\"?"));
        Err(self.invalid(node, path, &format!("must be {}, found {}", one_of(choices), describe(node)), hint))
    }

    fn table(&mut self, node: &mut Node, fields: &[Field], path: &str) -> Result<(), ConfigError> {
        let at = node.at;
        let Data::Table(table) = &mut node.data else {
            return Err(self.wrong(node, path, "a table", Found::Shown));
        };
        self.members(table, fields, path, at, Need::Optional)
    }

    /// `name_need` says whether a `name` key must be there: in a list of named entries it must.
    fn members(
        &mut self,
        table: &mut Table,
        fields: &[Field],
        path: &str,
        at: Spot,
        name_need: Need,
    ) -> Result<(), ConfigError> {
        let mut unknown = Vec::new();
        for (key, member) in table.iter_mut() {
            let shown = join(path, key);
            let known = fields.iter().find(|field| field.name == key || field.alias == Some(key));
            if let Some(field) = known {
                self.check(&mut member.node, &field.shape, &shown)?;
            } else {
                self.warn_unknown(&shown, key, fields, path, member.key_at);
                unknown.push(key.clone());
            }
        }
        for key in unknown {
            table.shift_remove(&key);
        }
        for field in fields {
            if let Some(alias) = field.alias
                && let (Some(first), Some(second)) = (table.get(field.name), table.get(alias))
                && !matches!(field.shape, Shape::Named(_))
            {
                return Err(ConfigError::Duplicate {
                    at: self.sources.origin(second.key_at),
                    key: join(path, field.name),
                    first: self.sources.origin(first.key_at),
                });
            }
            let needed =
                field.need == Need::Required || (field.name == "name" && name_need == Need::Required);
            if needed && !table.contains_key(field.name) {
                return Err(ConfigError::Invalid {
                    at: self.sources.origin(at),
                    key: join(path, field.name),
                    problem: "is missing".to_owned(),
                    hint: None,
                });
            }
        }
        if let (Some(_), Some(second)) = (table.get("system_prompt"), table.get("system_prompt_file")) {
            return Err(ConfigError::Invalid {
                at: self.sources.origin(second.key_at),
                key: join(path, "system_prompt_file"),
                problem: "cannot stand beside `system_prompt`".to_owned(),
                hint: Some("keep one of them".to_owned()),
            });
        }
        Ok(())
    }

    fn named(&mut self, node: &mut Node, fields: &[Field], path: &str) -> Result<(), ConfigError> {
        match &mut node.data {
            Data::Table(table) => {
                for (name, member) in table.iter_mut() {
                    self.table(&mut member.node, fields, &join(path, name))?;
                }
                Ok(())
            }
            Data::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let shown = at_index(path, index);
                    let at = item.at;
                    let Data::Table(table) = &mut item.data else {
                        return Err(self.wrong(item, &shown, "a table", Found::Shown));
                    };
                    self.members(table, fields, &shown, at, Need::Required)?;
                }
                Ok(())
            }
            _ => Err(self.wrong(node, path, "a table by name, or a list of tables", Found::Shown)),
        }
    }

    fn permissions(&mut self, node: &mut Node, fields: &[Field], path: &str) -> Result<(), ConfigError> {
        if matches!(node.data, Data::List(_)) {
            return self.check(node, &Shape::List(&Shape::Table(RULE)), path);
        }
        let Data::Table(table) = &mut node.data else {
            return Err(self.wrong(node, path, "a table, or a list of rules", Found::Shown));
        };
        let mut unknown = Vec::new();
        for (key, member) in table.iter_mut() {
            let shown = join(path, key);
            let known = fields.iter().find(|field| field.name == key);
            match (known, &member.node.data) {
                // A pattern and its answer; tools may be called `ask` or `allow`, so the value decides.
                (Some(field), Data::Text(text)) if field.name != "mode" && MODES.contains(&text.as_str()) => {
                }
                (Some(field), _) => self.check(&mut member.node, &field.shape, &shown)?,
                (None, Data::Text(_)) => self.choice(&member.node, MODES, &shown)?,
                (None, _) => {
                    self.warn_unknown(&shown, key, fields, path, member.key_at);
                    unknown.push(key.clone());
                }
            }
        }
        for key in unknown {
            table.shift_remove(&key);
        }
        Ok(())
    }

    fn warn_unknown(&mut self, shown: &str, key: &str, fields: &[Field], path: &str, at: Spot) {
        if self.unknown == UnknownKeys::Ignore {
            return;
        }
        let suggestion = nearest(key, fields.iter().map(|field| field.name))
            .map(|near| join(path, near))
            .or_else(|| elsewhere(key));
        self.warnings.push(Warning {
            key: shown.to_owned(),
            origin: self.sources.origin(at),
            kind: WarningKind::UnknownKey { suggestion },
        });
    }

    fn wrong(&self, node: &Node, path: &str, expected: &str, found: Found) -> ConfigError {
        let found = match found {
            Found::Shown => describe(node),
            Found::Hidden => kind_of(node).to_owned(),
        };
        ConfigError::WrongType {
            at: self.sources.origin(node.at),
            key: if path.is_empty() { "the document".to_owned() } else { path.to_owned() },
            expected: expected.to_owned(),
            found,
        }
    }

    fn invalid(&self, node: &Node, path: &str, problem: &str, hint: Option<String>) -> ConfigError {
        ConfigError::Invalid {
            at: self.sources.origin(node.at),
            key: path.to_owned(),
            problem: problem.to_owned(),
            hint,
        }
    }
}

/// Whether an error may quote the value it complains about.
#[derive(Clone, Copy)]
enum Found {
    Shown,
    Hidden,
}

/// `null` means "not set": a program that writes all keys writes it for those without a value.
fn drop_nulls(node: &mut Node) {
    match &mut node.data {
        Data::Table(table) => {
            table.retain(|_, member| !matches!(member.node.data, Data::Null));
            table.values_mut().for_each(|member| drop_nulls(&mut member.node));
        }
        Data::List(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Whether `text` is an address with one of `schemes`.
pub(crate) fn check_url(text: &str, schemes: &[&str]) -> Result<(), String> {
    let lower = text.to_ascii_lowercase();
    let host = schemes.iter().find_map(|scheme| lower.strip_prefix(scheme));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') && !host.contains(char::is_whitespace) => {
            Ok(())
        }
        _ => Err(format!("must be an address that starts with {}", schemes.join(" or "))),
    }
}

fn list_of(inner: &Shape) -> &'static str {
    match inner {
        Shape::Table(_) => "a list of tables",
        Shape::Rule => "a list of rules",
        _ => "a list of strings",
    }
}

fn one_of(choices: &[&str]) -> String {
    let quoted: Vec<_> = choices.iter().map(|choice| format!("\"{choice}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

fn kind_of(node: &Node) -> &'static str {
    match node.data {
        Data::Null => "null",
        Data::Bool(_) => "true or false",
        Data::Integer(_) | Data::Float(_) => "a number",
        Data::Text(_) | Data::Expanded { .. } => "a string",
        Data::Date => "a date",
        Data::List(_) => "a list",
        Data::Table(_) => "a table",
    }
}

fn describe(node: &Node) -> String {
    match &node.data {
        Data::Bool(value) => format!("`{value}`"),
        Data::Integer(value) => format!("the number {value}"),
        Data::Float(value) => format!("the number {value}"),
        Data::Text(text) => {
            // Masked before it is cut: half a password is still half a password.
            let text = crate::secret::mask_url_password(text);
            let short: String = text.chars().take(40).collect();
            let dots = if short.len() < text.len() { "…" } else { "" };
            // Debug formatting escapes control characters, which must not reach a terminal.
            format!("the string {short:?}{dots}")
        }
        _ => kind_of(node).to_owned(),
    }
}

/// The candidate a typing mistake away from `word`.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Beyond this nobody mistyped one of our keys, and the comparison is quadratic.
    if word.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', '-', ' '], "");
    let wanted = plain(word);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().min(word.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A key of that name in a table of its own: `max_steps` belongs in `agent`.
fn elsewhere(key: &str) -> Option<String> {
    SETTINGS.iter().find_map(|field| match &field.shape {
        Shape::Table(inner) => inner.iter().find(|f| f.name == key).map(|f| join(field.name, f.name)),
        _ => None,
    })
}
