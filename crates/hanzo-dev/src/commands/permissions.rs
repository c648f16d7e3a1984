//! `hanzo-dev permissions explain`: what the policy says about a call.

use std::io::Read as _;
use std::path::Path;

use hanzo_permissions::{Call, Policy, PolicySource};
use serde_json::Value;

use crate::cli::{Global, PermissionsCommand};
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::policy::policy_from_settings;

/// The largest rules file or argument text we read.
const MAX_INPUT: u64 = 16 * 1024 * 1024;

/// Runs the command.
pub fn run(global: &Global, command: &PermissionsCommand, printer: &mut Printer) -> Result<(), Failure> {
    let PermissionsCommand::Explain { tool, args, rules, json, trusted } = command;
    let args = arguments(args)?;
    let inputs = settings::inputs(global, settings::trust(*trusted))?;
    let policy = match rules {
        Some(file) => policy_from_file(file)?,
        None => policy_from_settings(&settings::load(global, settings::trust(*trusted), printer)?)?,
    };
    let workspace = inputs.workspace_root.to_string_lossy().into_owned();
    let explanation = policy.explain(&Call::new(tool, &args).in_workspace(&workspace));
    if *json { printer.json(&explanation) } else { printer.line(explanation.to_string().trim_end()) }
}

fn arguments(text: &str) -> Result<Value, Failure> {
    let text = if text == "-" {
        let mut read = String::new();
        std::io::stdin().take(MAX_INPUT).read_to_string(&mut read)?;
        read
    } else {
        text.to_owned()
    };
    let wrong = |what: String| Failure::message(Exit::BadInput, format!("`--args` {what}\n\nhint: {HINT}"));
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(wrong("is JSON but not an object".to_owned())),
        Err(error) => Err(wrong(format!("is not JSON: {error}"))),
    }
}

const HINT: &str = r#"quote it for your shell, as in --args '{"command": "ls -la"}'"#;

/// The policy a file holds: the permissions table itself, a settings file with one, or a list of rules with patterns.
fn policy_from_file(file: &Path) -> Result<Policy, Failure> {
    let wrong = |what: String| Failure::message(Exit::Config, format!("{}: {what}", file.display()));
    let value = parse(file, &read(file)?)?;
    let value = match value {
        Value::Object(mut members) if members.get("permissions").is_some_and(Value::is_object) => {
            members.remove("permissions").unwrap_or_default()
        }
        other => other,
    };
    let source = match value {
        // Deserialised by hand: an untagged enum could only say that nothing fits.
        Value::Array(_) => serde_json::from_value(value).map(PolicySource::Hip),
        _ => serde_json::from_value(value).map(PolicySource::Table),
    };
    let source = source.map_err(|error| wrong(error.to_string()))?;
    source.load(file.to_str()).map_err(|error| wrong(error.to_string()))
}

fn read(file: &Path) -> Result<String, Failure> {
    let wrong = |what: String| Failure::message(Exit::Config, format!("{}: {what}", file.display()));
    let metadata = std::fs::metadata(file).map_err(|error| wrong(format!("cannot read it: {error}")))?;
    if metadata.is_dir() {
        return Err(wrong("is a directory, not a file of rules".to_owned()));
    }
    if metadata.len() > MAX_INPUT {
        return Err(wrong(format!("is larger than {} MiB", MAX_INPUT >> 20)));
    }
    let bytes = std::fs::read(file).map_err(|error| wrong(format!("cannot read it: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| wrong(format!("is not UTF-8 (at byte {})", error.utf8_error().valid_up_to())))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn parse(file: &Path, text: &str) -> Result<Value, Failure> {
    let wrong = |what: String| Failure::message(Exit::Config, format!("{}: {what}", file.display()));
    let is_json =
        file.extension().map_or_else(|| text.trim_start().starts_with(['{', '[']), |ending| ending == "json");
    if is_json {
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
    } else {
        toml::from_str(text).map_err(|error: toml::de::Error| wrong(error.to_string()))
    }
}
