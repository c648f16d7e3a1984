//! What a server has: its tools, prompts and resources, as it listed them.

use std::future::Future;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::McpError;
use super::text::{MOST_DESCRIPTION, MOST_NAME, line};

/// The most pages of one list.
const MOST_PAGES: usize = 200;
/// The most entries of one list.
const MOST_ENTRIES: usize = 5_000;

/// Everything a server listed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listing {
    /// The protocol version that was agreed on.
    pub protocol: String,
    /// What the server calls itself.
    pub title: Option<String>,
    /// What it would like a model to know.
    pub instructions: Option<String>,
    /// Its tools, in its order.
    pub tools: Vec<RawTool>,
    /// Its prompts.
    pub prompts: Vec<PromptInfo>,
    /// Its resources.
    pub resources: Vec<ResourceInfo>,
    /// Its resource templates.
    pub templates: Vec<ResourceInfo>,
    /// What could not be taken, a sentence each.
    pub notes: Vec<String>,
}

/// A tool as its server listed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RawTool {
    /// Its name.
    pub name: String,
    /// A title to show.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The schema of its arguments, as it came.
    pub input_schema: Value,
    /// The schema of its structured result.
    pub output_schema: Option<Value>,
    /// What the server says about its behaviour.
    pub annotations: Value,
}

impl RawTool {
    /// Whether the server says that it changes nothing.
    pub fn claims_to_read_only(&self) -> bool {
        self.annotations.get("readOnlyHint") == Some(&Value::Bool(true))
    }
}

/// A prompt as its server listed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
}

/// Something a prompt takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Whether the prompt cannot do without it.
    pub required: bool,
}

/// A resource, or a template for the addresses of resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceInfo {
    /// Its address, or the template.
    pub uri: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What is in it.
    pub mime_type: Option<String>,
}

/// Asks for page after page. A server that never ends, or sends the same page again and again, is not followed.
pub(crate) async fn pages<F>(
    key: &str,
    notes: &mut Vec<String>,
    mut page: impl FnMut(Option<String>) -> F,
) -> Result<Vec<Value>, McpError>
where
    F: Future<Output = Result<Value, McpError>>,
{
    let mut entries = Vec::new();
    let mut cursors: Vec<String> = Vec::new();
    loop {
        let result = page(cursors.last().cloned()).await?;
        match result.get(key) {
            Some(Value::Array(more)) => entries.extend(more.iter().cloned()),
            _ => notes.push(format!("a page of `{key}` has no list")),
        }
        if entries.len() > MOST_ENTRIES {
            notes.push(format!("only the first {MOST_ENTRIES} `{key}` are taken"));
            entries.truncate(MOST_ENTRIES);
            return Ok(entries);
        }
        let Some(next) = result.get("nextCursor").and_then(Value::as_str) else { return Ok(entries) };
        if cursors.iter().any(|seen| seen == next) || cursors.len() >= MOST_PAGES {
            notes.push(format!("the pages of `{key}` do not end; what came until then is taken"));
            return Ok(entries);
        }
        cursors.push(next.to_owned());
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn named<T>(
    what: &str,
    entries: Vec<Value>,
    notes: &mut Vec<String>,
    name_key: &str,
    make: impl Fn(&Value, String) -> T,
) -> Vec<T> {
    let mut made = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for entry in entries {
        match entry.get(name_key).and_then(Value::as_str) {
            Some(name) if name.is_empty() || name.chars().count() > MOST_NAME * 4 => {
                notes.push(format!("a {what} whose name is empty or endless is left out"));
            }
            Some(name) if !seen.insert(name.to_owned()) => {
                notes.push(format!(
                    "the {what} `{}` is listed twice; the first counts",
                    line(name, MOST_NAME)
                ));
            }
            Some(name) => made.push(make(&entry, name.to_owned())),
            None => notes.push(format!("a {what} without a name is left out")),
        }
    }
    made
}

pub(crate) fn tools(entries: Vec<Value>, notes: &mut Vec<String>) -> Vec<RawTool> {
    named("tool", entries, notes, "name", |entry, name| RawTool {
        name,
        title: text(entry, "title"),
        description: text(entry, "description"),
        input_schema: entry.get("inputSchema").cloned().unwrap_or(Value::Null),
        output_schema: entry.get("outputSchema").cloned(),
        annotations: entry.get("annotations").cloned().unwrap_or(Value::Null),
    })
}

pub(crate) fn prompts(entries: Vec<Value>, notes: &mut Vec<String>) -> Vec<PromptInfo> {
    let argument = |entry: &Value| {
        Some(PromptArgument {
            name: text(entry, "name")?,
            description: text(entry, "description").map(|text| line(&text, MOST_DESCRIPTION)),
            required: entry.get("required") == Some(&Value::Bool(true)),
        })
    };
    named("prompt", entries, notes, "name", |entry, name| PromptInfo {
        name,
        description: text(entry, "description").map(|text| line(&text, MOST_DESCRIPTION)),
        arguments: entry
            .get("arguments")
            .and_then(Value::as_array)
            .map(|all| all.iter().filter_map(argument).collect())
            .unwrap_or_default(),
    })
}

pub(crate) fn resources(entries: Vec<Value>, notes: &mut Vec<String>, uri_key: &str) -> Vec<ResourceInfo> {
    named("resource", entries, notes, uri_key, |entry, uri| ResourceInfo {
        uri,
        name: text(entry, "name").map(|text| line(&text, MOST_NAME)),
        description: text(entry, "description").map(|text| line(&text, MOST_DESCRIPTION)),
        mime_type: text(entry, "mimeType").map(|text| line(&text, MOST_NAME)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn all(answers: Vec<Value>) -> (Vec<Value>, Vec<String>) {
        let mut notes = Vec::new();
        let mut answers = answers.into_iter().cycle();
        let found =
            pages("tools", &mut notes, |_| std::future::ready(Ok(answers.next().unwrap_or_default()))).await;
        (found.unwrap(), notes)
    }

    #[tokio::test]
    async fn pages_are_followed_to_their_end_and_not_for_ever() {
        let page = |name: &str, next: Option<&str>| json!({"tools": [{"name": name}], "nextCursor": next});
        let (found, notes) = all(vec![page("a", Some("1")), page("b", Some("2")), page("c", None)]).await;
        assert_eq!((found.len(), notes.len()), (3, 0));
        let (found, notes) = all(vec![page("a", Some("1"))]).await;
        assert_eq!((found.len(), notes.len()), (2, 1), "the same cursor twice");
        let (found, notes) = all(vec![json!({"tools": 5})]).await;
        assert_eq!((found.len(), notes.len()), (0, 1));
    }

    #[test]
    fn what_has_no_name_or_the_same_is_left_out_and_said() {
        let mut notes = Vec::new();
        let listed = tools(
            vec![json!({"name": "a"}), json!({}), json!(5), json!({"name": ""}), json!({"name": "a"})],
            &mut notes,
        );
        assert_eq!(listed.len(), 1);
        assert_eq!(notes.len(), 4, "{notes:?}");
    }
}
