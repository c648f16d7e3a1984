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
    let Some(file) = vectors::load::<Case>(FILE) else {
        eprintln!("skipped: the directory has no {FILE}");
        return;
    };
    if vectors::are_our_own() {
        assert!(file.cases.len() >= 30, "only {} cases", file.cases.len());
    }
    let mut failures = Vec::new();
    for case in file.cases {
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

#[test]
fn the_file_follows_its_schema_and_names_are_unique() {
    if !vectors::are_our_own() {
        return;
    }
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(vectors::own_directory().join(name)).unwrap()).unwrap()
    };
    let document = read(FILE);
    let validator = jsonschema::draft202012::new(&read(document["$schema"].as_str().unwrap())).unwrap();
    let errors: Vec<_> =
        validator.iter_errors(&document).map(|e| format!("{} at {}", e, e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut names: Vec<_> = document["cases"].as_array().unwrap().iter().map(|case| &case["name"]).collect();
    let count = names.len();
    names.sort_by_key(ToString::to_string);
    names.dedup();
    assert_eq!(names.len(), count);
}
