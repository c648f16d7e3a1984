//! `hanzo-dev config`: the settings in force and where they come from.

use hanzo_config::{LoadedConfig, settings_files};
use serde_json::{Map, Value, json};

use crate::cli::{ConfigCommand, Global};
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

/// Runs the command.
pub fn run(global: &Global, command: &ConfigCommand, printer: &mut Printer) -> Result<(), Failure> {
    match command {
        ConfigCommand::Show { origins, json, trusted } => {
            let config = settings::load(global, settings::trust(*trusted), printer)?;
            match (json, origins) {
                (true, _) => printer.json(&as_json(&config)),
                (false, true) => show_origins(&config, printer),
                (false, false) => show(&config, printer),
            }
        }
        ConfigCommand::Explain { key, json, trusted } => {
            let config = settings::load(global, settings::trust(*trusted), printer)?;
            let explanation =
                config.explain(key).map_err(|error| settings::failure(Exit::BadInput, &error))?;
            if *json { printer.json(&explanation) } else { printer.line(&explanation.to_string()) }
        }
        ConfigCommand::Path { json } => paths(global, *json, printer),
    }
}

/// The settings as the TOML one would write.
fn show(config: &LoadedConfig, printer: &mut Printer) -> Result<(), Failure> {
    let settings = without_nulls(config.settings().to_masked_json());
    let text = toml::to_string_pretty(&settings).map_err(|error| Failure::new(Exit::Failure, error))?;
    printer.line(text.trim_end())
}

/// One line per value that somebody set.
fn show_origins(config: &LoadedConfig, printer: &mut Printer) -> Result<(), Failure> {
    let origins = config.origins();
    if origins.is_empty() {
        return printer.line("# nothing is set; every value is the default");
    }
    for (key, origin) in origins {
        let explanation = config.explain(&key).map_err(|error| settings::failure(Exit::Failure, &error))?;
        printer.line(&format!("{key} = {}  # {origin}", explanation.value))?;
    }
    Ok(())
}

fn as_json(config: &LoadedConfig) -> Value {
    let origins: Map<String, Value> =
        config.origins().into_iter().map(|(key, origin)| (key, json!(origin.to_string()))).collect();
    json!({
        "settings": config.settings().to_masked_json(),
        "origins": origins,
        "disabled": config.disabled(),
        "warnings": config.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "trustDigest": config.trust_digest().map(hanzo_config::TrustDigest::as_str),
    })
}

/// TOML has no null: a setting that is not set is not written.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

fn paths(global: &Global, json: bool, printer: &mut Printer) -> Result<(), Failure> {
    // Reads no file, so that it also helps to find one that is broken.
    let files = settings_files(&settings::inputs(global, settings::trust(false))?);
    if json {
        let entry = |file: &hanzo_config::TierFile| json!({"tier": file.tier.to_string(), "path": file.path, "present": file.present});
        return printer.json(&files.iter().map(entry).collect::<Vec<_>>());
    }
    for file in files {
        let state = if file.present { "" } else { "  (not there)" };
        printer.line(&format!("{:<9}  {}{state}", file.tier.to_string(), file.path.display()))?;
    }
    Ok(())
}
