//! The parity vectors of `config-merge.json`.

use hanzo_config::hip::{HipInput, merge_hip};
use hanzo_testkit::vectors;
use serde::Deserialize;
use serde_json::Value;

const FILE: &str = "config-merge.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    user: Option<Value>,
    project: Option<Value>,
    local: Option<Value>,
    mcp_json: Option<Value>,
    #[serde(default)]
    env: std::collections::BTreeMap<String, String>,
    expected: Value,
    #[serde(default)]
    warnings: Vec<String>,
}

#[test]
fn every_case_merges_as_it_says() {
    let mut failures = Vec::new();
    for case in vectors::cases::<Case>(FILE, 30) {
        let input = HipInput {
            user: case.user,
            project: case.project,
            local: case.local,
            mcp_json: case.mcp_json,
            env: case.env.into_iter().collect(),
        };
        let (config, warnings) = merge_hip(&input).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let mut keys: Vec<_> = warnings.into_iter().map(|warning| warning.key).collect();
        let mut expected_keys = case.warnings;
        keys.sort();
        expected_keys.sort();
        let found = config.expose();
        // The order of patterns is part of the value; objects compare without it.
        let patterns = |value: &Value| -> Vec<String> {
            value["permissions"].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
        };
        if found != case.expected || keys != expected_keys || patterns(&found) != patterns(&case.expected) {
            failures.push(format!(
                "{}\n  expected {}\n  found    {found}\n  warnings expected {expected_keys:?}, found {keys:?}",
                case.name, case.expected
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
