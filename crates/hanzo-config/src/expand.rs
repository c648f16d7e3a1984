//! `${NAME}` and `${NAME:-default}`.
//!
//! Anything else with a dollar sign stays as it is. As in a shell, `:-` also covers a variable that is set but
//! empty. Values of the real environment are taken as they are; values of `[env]` and `.env` may name variables
//! themselves.

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;

use crate::error::ConfigError;
use crate::node::Origin;

/// The most text one value may expand to.
const MAX_TEXT: usize = 64 * 1024;
/// The most variables one value may use, counting those used by others. Stops doubling chains.
const MAX_VARIABLES: usize = 4096;
/// How deep defaults may nest.
const MAX_NESTING: usize = 64;

/// The environment, handed in by the caller. Shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A variable of `[env]` or `.env`.
#[derive(Clone)]
pub(crate) struct Defined {
    pub text: String,
    /// Text in single quotes in a `.env` names no variables.
    pub literal: bool,
}

/// Everything `${NAME}` can mean, strongest first: the environment, `[env]`, `.env`.
#[derive(Clone, Default)]
pub(crate) struct Variables {
    pub environment: Environment,
    pub table: IndexMap<String, Defined>,
    pub dot_env: IndexMap<String, Defined>,
}

/// The place a message about an expansion names.
pub(crate) struct Place<'a> {
    pub key: &'a str,
    pub origin: &'a dyn Fn() -> Origin,
}

impl Variables {
    /// `text` with its variables put in.
    pub fn expand(&self, text: &str, place: &Place<'_>) -> Result<String, ConfigError> {
        let mut run = Run { variables: self, place, used: 0, open: Vec::new(), out: String::new() };
        run.text(text, 0)?;
        Ok(run.out)
    }

    /// The value of one variable.
    pub fn value(&self, name: &str, place: &Place<'_>) -> Result<Option<String>, ConfigError> {
        let known = self.environment.get(name).is_some() || self.defined(name).is_some();
        if known { self.expand(&format!("${{{name}}}"), place).map(Some) } else { Ok(None) }
    }

    fn defined(&self, name: &str) -> Option<&Defined> {
        [&self.table, &self.dot_env].into_iter().find_map(|set| set.get(name).filter(|d| !d.text.is_empty()))
    }
}

struct Run<'a> {
    variables: &'a Variables,
    place: &'a Place<'a>,
    used: usize,
    /// Variables being expanded, outermost first.
    open: Vec<String>,
    out: String,
}

impl Run<'_> {
    fn text(&mut self, text: &str, nesting: usize) -> Result<(), ConfigError> {
        if nesting > MAX_NESTING || text.len() > MAX_TEXT {
            return Err(self.too_much());
        }
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            self.push(&rest[..start])?;
            rest = &rest[start..];
            if let Some((name, default, length)) = reference(rest) {
                self.variable(name, default, nesting)?;
                rest = &rest[length..];
            } else {
                // Counted too: looking for the end of an unclosed reference reads to the end of the text.
                self.count()?;
                self.push("${")?;
                rest = &rest[2..];
            }
        }
        self.push(rest)
    }

    fn variable(&mut self, name: &str, default: Option<&str>, nesting: usize) -> Result<(), ConfigError> {
        self.count()?;
        let variables = self.variables;
        if let Some(value) = variables.environment.get(name) {
            return self.push(value);
        }
        let Some(defined) = variables.defined(name) else {
            return match default {
                Some(default) => self.text(default, nesting + 1),
                None => Err(ConfigError::Unset {
                    at: (self.place.origin)(),
                    key: self.place.key.to_owned(),
                    name: name.to_owned(),
                }),
            };
        };
        if let Some(first) = self.open.iter().position(|open| open == name) {
            let mut names = self.open[first..].to_vec();
            names.push(name.to_owned());
            return Err(ConfigError::Cycle {
                at: (self.place.origin)(),
                key: self.place.key.to_owned(),
                names,
            });
        }
        if defined.literal {
            return self.push(&defined.text);
        }
        self.open.push(name.to_owned());
        self.text(&defined.text, nesting + 1)?;
        self.open.pop();
        Ok(())
    }

    fn count(&mut self) -> Result<(), ConfigError> {
        self.used += 1;
        if self.used > MAX_VARIABLES { Err(self.too_much()) } else { Ok(()) }
    }

    fn push(&mut self, text: &str) -> Result<(), ConfigError> {
        if self.out.len() + text.len() > MAX_TEXT {
            return Err(self.too_much());
        }
        self.out.push_str(text);
        Ok(())
    }

    fn too_much(&self) -> ConfigError {
        ConfigError::TooMuch { at: (self.place.origin)(), key: self.place.key.to_owned() }
    }
}

/// The reference at the start of `text`, which starts with `${`: name, default, length.
fn reference(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let body = text.strip_prefix("${")?;
    let name_end = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let name = &body[..name_end];
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let after = &body[name_end..];
    if after.starts_with('}') {
        return Some((name, None, 2 + name_end + 1));
    }
    let default = after.strip_prefix(":-")?;
    let mut depth = 0_usize;
    let mut index = 0;
    let bytes = default.as_bytes();
    while index < bytes.len() {
        if bytes[index..].starts_with(b"${") {
            depth += 1;
            index += 2;
            continue;
        }
        if bytes[index] == b'}' {
            if depth == 0 {
                return Some((name, Some(&default[..index]), 2 + name_end + 2 + index + 1));
            }
            depth -= 1;
        }
        index += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(
        text: &str,
        environment: &[(&str, &str)],
        dot_env: &[(&str, &str)],
    ) -> Result<String, ConfigError> {
        let defined = |text: &str| Defined { text: text.to_owned(), literal: false };
        let variables = Variables {
            environment: environment.iter().copied().collect(),
            table: IndexMap::new(),
            dot_env: dot_env.iter().map(|(k, v)| ((*k).to_owned(), defined(v))).collect(),
        };
        variables.expand(text, &Place { key: "k", origin: &|| Origin::Default })
    }

    #[test]
    fn references_are_replaced_and_everything_else_stays() {
        let environment = [("A", "1"), ("B_2", "two"), ("EMPTY", "")];
        for (text, expected) in [
            ("${A}", "1"),
            ("x${A}y${B_2}z", "x1ytwoz"),
            ("${NO:-d}", "d"),
            ("${A:-d}", "1"),
            ("${EMPTY:-d}", "d"),
            ("${NO:-}", ""),
            ("${NO:-${A}}", "1"),
            ("${NO:-${NO2:-a}b}c", "abc"),
            ("$A $$ $ 100% $(x) ${} ${1} ${A-x} ${A", "$A $$ $ 100% $(x) ${} ${1} ${A-x} ${A"),
            ("$${A}", "$1"),
            ("é${A}é", "é1é"),
        ] {
            assert_eq!(expand(text, &environment, &[]).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn values_of_the_real_environment_are_not_expanded_again() {
        assert_eq!(expand("${A}", &[("A", "${B}"), ("B", "no")], &[]).unwrap(), "${B}");
    }

    #[test]
    fn an_unset_variable_is_named() {
        let error = expand("${NOPE}", &[], &[]).unwrap_err();
        assert_eq!(error.to_string(), "default: `k` uses `${NOPE}`, which is not set");
        assert!(error.hint().unwrap().contains("${NOPE:-default}"));
    }

    #[test]
    fn a_cycle_is_shown_and_a_doubling_chain_is_stopped() {
        let error = expand("${A}", &[], &[("A", "x${B}"), ("B", "${C}"), ("C", "${B}")]).unwrap_err();
        assert!(error.to_string().ends_with("B → C → B"), "{error}");
        let names: Vec<String> = (0..30).map(|i| format!("V{i}")).collect();
        let values: Vec<String> = (0..30).map(|i| format!("${{V{n}:-}}${{V{n}:-}}", n = i + 1)).collect();
        let chain: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(values.iter().map(String::as_str)).collect();
        assert!(matches!(expand("${V0}", &[], &chain), Err(ConfigError::TooMuch { .. })));
        let deep = format!("{}x{}", "${N:-".repeat(500), "}".repeat(500));
        assert!(matches!(expand(&deep, &[], &[]), Err(ConfigError::TooMuch { .. })));
    }
}
