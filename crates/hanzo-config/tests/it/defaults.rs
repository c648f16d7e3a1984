//! The file `setup` writes, the schema, the table of variables.

use hanzo_config::{ConfigError, ENVIRONMENT, default_file, settings_schema, write_default};

use crate::world::World;

/// Every setting line of the default file without its `#`.
fn uncommented() -> String {
    let lines = default_file().lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => "",
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_default_file_loads_without_a_word_as_it_is_and_uncommented() {
    let as_it_is = World::new().user("settings.toml", default_file()).load();
    assert!(as_it_is.warnings().is_empty());
    assert!(as_it_is.origins().is_empty(), "everything is commented out");
    let config = World::new().user("settings.toml", uncommented()).load();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    assert_eq!(config.settings().providers.len(), 2);
    assert_eq!(config.settings().mcp_servers.len(), 2);
    assert!(config.origins().len() > 60, "{}", config.origins().len());
}

#[test]
fn the_default_file_is_written_once_and_for_the_user_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/hanzo/settings.toml");
    write_default(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), default_file());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    std::fs::write(&path, "model = 'mine'").unwrap();
    assert!(matches!(write_default(&path), Err(ConfigError::Exists { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "model = 'mine'");
    let left: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["settings.toml"], "no temporary file stays behind");
}

#[test]
fn the_default_file_does_not_join_a_file_of_the_other_format() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("settings.json"), "{}").unwrap();
    let error = write_default(&directory.path().join("settings.toml")).unwrap_err();
    assert!(error.to_string().contains("settings.json"), "{error}");
}

#[cfg(unix)]
#[test]
fn the_default_file_is_not_written_through_a_dangling_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("settings.toml");
    std::os::unix::fs::symlink(directory.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(write_default(&path), Err(ConfigError::Exists { .. })));
    assert!(!directory.path().join("elsewhere").exists());
}

#[test]
fn the_schema_accepts_what_loads_and_refuses_what_does_not() {
    let schema = settings_schema();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let json = |toml: &str| -> serde_json::Value { toml::from_str(toml).unwrap() };
    assert!(validator.is_valid(&json(&uncommented())));
    for document in crate::forms::SEED_DOCUMENTS {
        let errors: Vec<_> = validator.iter_errors(&json(document)).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{document}");
    }
    for wrong in
        ["modle = 'x'", "[agent]\nmax_steps = 'ten'", "[sandbox]\nmode = 'open'", "[[hooks]]\nevent = 'x'"]
    {
        assert!(!validator.is_valid(&json(wrong)), "{wrong}");
    }
    let described = &schema["properties"]["agent"]["properties"]["planner_max_steps"];
    assert!(described["description"].as_str().unwrap().contains("planner"));
}

#[test]
fn each_variable_is_declared_once_with_words() {
    for (index, variable) in ENVIRONMENT.iter().enumerate() {
        assert!(!variable.doc.is_empty() && !variable.doc.ends_with('.'), "{}", variable.name);
        assert!(ENVIRONMENT[..index].iter().all(|other| other.name != variable.name), "{}", variable.name);
        let value = match variable.key {
            Some("approval") => "auto",
            Some("sandbox.mode") => "workspace",
            Some(_) => "x",
            None => continue,
        };
        let world = World::new().env(variable.name, value);
        let explanation = world.load().explain(variable.key.unwrap()).unwrap();
        assert_eq!(explanation.origin.to_string(), format!("${}", variable.name));
    }
}
