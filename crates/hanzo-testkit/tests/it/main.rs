//! The vector files as files: each is valid by the schema that documents it, and its case names are unique.

use std::collections::HashSet;

use hanzo_testkit::vectors;
use serde_json::Value;

#[test]
fn every_vector_file_is_valid_by_its_schema() {
    for file in vectors::FILES {
        let read = |path: std::path::PathBuf| -> Value {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let vector = read(vectors::own_directory().join(file));
        let schema = vector["$schema"].as_str().unwrap_or_else(|| panic!("{file} names no $schema"));
        let schema = read(vectors::own_directory().join(schema));
        let validator =
            jsonschema::validator_for(&schema).unwrap_or_else(|e| panic!("schema of {file}: {e}"));
        let faults: Vec<String> =
            validator.iter_errors(&vector).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(faults.is_empty(), "{file}:\n{}", faults.join("\n"));

        let mut names = HashSet::new();
        for case in vector["cases"].as_array().expect("the schema makes cases an array") {
            let name = case["name"].as_str().unwrap_or_else(|| panic!("{file}: a case has no name"));
            assert!(names.insert(name.to_owned()), "{file}: two cases are called `{name}`");
        }
    }
}
