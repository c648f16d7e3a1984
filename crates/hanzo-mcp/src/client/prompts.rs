//! Prompts of servers, as commands.

use serde_json::{Map, Value};

use super::listing::PromptInfo;
use super::text::line;

/// A prompt, as the command it is typed as.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptCommand {
    /// The name of the command, without the slash: `mcp__<server>__<prompt>`.
    pub command: String,
    /// The server.
    pub server: String,
    /// The prompt.
    pub prompt: PromptInfo,
}

impl PromptCommand {
    /// What may follow the name: `<file> [style]`.
    pub fn argument_hint(&self) -> Option<String> {
        let shown: Vec<String> = self
            .prompt
            .arguments
            .iter()
            .map(|argument| {
                let name = line(&argument.name, 40);
                if argument.required { format!("<{name}>") } else { format!("[{name}]") }
            })
            .collect();
        (!shown.is_empty()).then(|| shown.join(" "))
    }
}

/// The arguments in what was typed: `name=value` for those that are named so, and the others in the order in which the prompt
/// lists them, the last one taking the rest. Quotes keep words together.
pub(crate) fn arguments(prompt: &PromptInfo, typed: &str) -> Result<Map<String, Value>, String> {
    let mut found = Map::new();
    let mut plain = Vec::new();
    for word in words(typed) {
        let named =
            word.split_once('=').filter(|(name, _)| prompt.arguments.iter().any(|known| known.name == *name));
        match named {
            Some((name, value)) => {
                found.insert(name.to_owned(), value.into());
            }
            None => plain.push(word),
        }
    }
    let open: Vec<&str> = prompt
        .arguments
        .iter()
        .map(|known| known.name.as_str())
        .filter(|name| !found.contains_key(*name))
        .collect();
    let mut plain = plain.into_iter();
    for (place, name) in open.iter().enumerate() {
        let value = if place + 1 == open.len() {
            plain.by_ref().collect::<Vec<_>>().join(" ")
        } else {
            plain.next().unwrap_or_default()
        };
        if !value.is_empty() {
            found.insert((*name).to_owned(), value.into());
        }
    }
    let missing: Vec<&str> = prompt
        .arguments
        .iter()
        .filter(|known| known.required && !found.contains_key(&known.name))
        .map(|known| known.name.as_str())
        .collect();
    if missing.is_empty() { Ok(found) } else { Err(format!("it needs `{}`", missing.join("`, `"))) }
}

fn words(typed: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in typed.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::listing::PromptArgument;

    fn prompt() -> PromptInfo {
        let argument =
            |name: &str, required| PromptArgument { name: name.into(), description: None, required };
        PromptInfo {
            name: "p".into(),
            description: None,
            arguments: vec![argument("file", true), argument("style", false)],
        }
    }

    #[test]
    fn arguments_are_taken_by_place_and_by_name() {
        let read = |typed: &str| arguments(&prompt(), typed).map(|found| Value::Object(found).to_string());
        assert_eq!(read("a.rs short and dry").unwrap(), r#"{"file":"a.rs","style":"short and dry"}"#);
        assert_eq!(read("style=dry 'my file.rs'").unwrap(), r#"{"style":"dry","file":"my file.rs"}"#);
        assert_eq!(read("x=y").unwrap(), r#"{"file":"x=y"}"#);
        assert!(read("").unwrap_err().contains("`file`"));
        let command = PromptCommand { command: "mcp__s__p".into(), server: "s".into(), prompt: prompt() };
        assert_eq!(command.argument_hint().unwrap(), "<file> [style]");
    }
}
