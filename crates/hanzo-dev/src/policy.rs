//! From settings to the policy of a thread.

use hanzo_config::{LoadedConfig, Origin};
use hanzo_permissions::{FullRule, Policy, PolicyTable, RuleSpec};
use serde_json::Value;

use crate::commands::settings::failure as config_failure;
use crate::exit::{Exit, Failure};

/// The policy of the settings, each rule with the file, line and column it was read from.
pub fn policy_from_settings(config: &LoadedConfig) -> Result<Policy, Failure> {
    let list = |key: &str| -> Result<Vec<RuleSpec>, Failure> {
        let parts = config.explain(key).map_err(|error| config_failure(Exit::Config, &error))?.parts;
        Ok(parts.into_iter().filter_map(|part| rule_spec(part.value, &part.origin)).collect())
    };
    let settings = config.settings();
    let table = PolicyTable {
        mode: serde_json::to_value(settings.permissions.mode)
            .ok()
            .and_then(|mode| serde_json::from_value(mode).ok()),
        allow: list("permissions.allow")?,
        ask: list("permissions.ask")?,
        deny: list("permissions.deny")?,
        rules: settings
            .permissions
            .rules
            .iter()
            .filter_map(|rule| serde_json::from_value(serde_json::to_value(rule).ok()?).ok())
            .collect(),
    };
    table.load(None).map_err(|error| Failure::new(Exit::Config, error))
}

fn rule_spec(value: Value, origin: &Origin) -> Option<RuleSpec> {
    let mut full = match serde_json::from_value(value).ok()? {
        RuleSpec::Text(rule) => FullRule { rule, ..FullRule::default() },
        RuleSpec::Full(full) => full,
    };
    full.origin = Some(origin.to_string());
    Some(RuleSpec::Full(full))
}
