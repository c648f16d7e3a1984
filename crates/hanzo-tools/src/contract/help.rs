//! The manual page of a tool, in Markdown, made from its actions.

use std::fmt::Write as _;

use serde_json::Value;

use super::tool::ErasedAction;

pub(super) fn page(tool: &str, about: &str, actions: &[Box<dyn ErasedAction>]) -> String {
    let mut page = format!("# {tool}\n\n{about}\n\n");
    let mut write = |text: String| page.push_str(&text);
    write(format!(
        "Call it as `{tool}` with `action`, or as `{tool}.ACTION`. Paths are relative to the workspace, absolute, or `file:///` URIs; lines and columns count from 0. Every action takes `intent` (`inspect`, `apply`, `verify`, `ship`), which only narrows what it may do.\n"
    ));
    for action in actions {
        write(format!("\n## {}\n\n{}.\n\n", action.name(), capitalised(action.summary())));
        let input = action.input_schema();
        let fields = input.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            let required = input.get("required").and_then(Value::as_array);
            let mark =
                if required.is_some_and(|names| names.iter().any(|known| known == name)) { "" } else { "?" };
            let aliases: Vec<String> = action
                .field_aliases()
                .iter()
                .filter(|(_, canonical)| canonical == name)
                .map(|(alias, _)| format!("`{alias}`"))
                .collect();
            let also =
                if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
            let about = field.get("description").and_then(Value::as_str).unwrap_or_default();
            let colon = if about.is_empty() { "" } else { ": " };
            write(format!("- `{name}{mark}`{also}{colon}{}\n", about.replace('\n', " ")));
        }
        write(format!("\n```json\n{}\n```\n", example_call(action.as_ref())));
    }
    page
}

/// What a model is told about a tool: what it is for, and each action with its fields.
pub(super) fn description(about: &str, actions: &[Box<dyn ErasedAction>], example: Option<&str>) -> String {
    let mut text = about.to_owned();
    for action in actions {
        let input = action.shown_schema();
        let fields = input.get("properties").and_then(Value::as_object);
        let required = input.get("required").and_then(Value::as_array);
        let names: Vec<String> = fields
            .into_iter()
            .flatten()
            // Every listing has these; their descriptions say what they are.
            .filter(|(name, _)| !matches!(name.as_str(), "limit" | "cursor"))
            .map(|(name, _)| {
                let needed = required.is_some_and(|names| names.iter().any(|known| known == name));
                if needed { name.clone() } else { format!("{name}?") }
            })
            .collect();
        write!(text, "\n{}({}): {}", action.name(), names.join(","), action.summary())
            .expect("writing to a string does not fail");
    }
    if let Some(action) = actions.iter().find(|action| Some(action.name()) == example) {
        write!(text, "\nExample: {}", example_call(action.as_ref()))
            .expect("writing to a string does not fail");
    }
    text
}

fn example_call(action: &dyn ErasedAction) -> String {
    let rest = action.example().strip_prefix('{').unwrap_or_default();
    let comma = if rest == "}" { "" } else { "," };
    format!("{{\"action\":\"{}\"{comma}{rest}", action.name())
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
