//! Modes and the plain path check.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hanzo_sandbox::{Container, IsolationMode, Network, Reads, Sandbox, SandboxConfig, default_mode};

fn stage() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("app/src")).unwrap();
    fs::create_dir_all(base.join("app2")).unwrap();
    fs::write(base.join("app/src/a.rs"), "").unwrap();
    (dir, base)
}

fn allowed(config: &SandboxConfig, base: &Path, path: impl AsRef<Path>) -> bool {
    Sandbox::new(config.clone(), &base.join("app")).check_path(path.as_ref())
}

#[test]
fn modes_are_spelled_as_in_settings() {
    for (text, mode) in [
        ("off", IsolationMode::Off),
        ("workspace", IsolationMode::Workspace),
        ("allowlist", IsolationMode::Allowlist),
    ] {
        assert_eq!(text.parse(), Ok(mode));
        assert_eq!(mode.to_string(), text);
    }
    for bad in ["", "OFF", "workspace ", "allow_list"] {
        let error = bad.parse::<IsolationMode>().unwrap_err();
        assert!(error.to_string().contains("`allowlist`"), "{error}");
    }
}

#[test]
fn the_default_confines() {
    let config = SandboxConfig::default();
    assert_eq!(config.mode, IsolationMode::Workspace);
    assert!(config.allowed_paths.is_empty() && config.allow_write.is_empty());
    assert_eq!((config.reads, config.network), (Reads::Any, Network::Off));
}

#[test]
fn a_container_changes_the_answer_but_not_the_configuration() {
    assert_eq!(default_mode(None), IsolationMode::Workspace);
    for container in [Container::Docker, Container::Podman, Container::K8s] {
        assert_eq!(default_mode(Some(container)), IsolationMode::Off);
    }
    // Nothing reads that answer on its own: the configuration confines until it is told otherwise.
    assert_eq!(SandboxConfig::default().mode, IsolationMode::Workspace);
}

#[test]
fn workspace_mode_allows_the_workspace_only() {
    let (_dir, base) = stage();
    let config = SandboxConfig::default();
    for path in ["", ".", "src/a.rs", "src/../src/a.rs", "src/not/yet/there", "../app/src"] {
        assert!(allowed(&config, &base, path), "{path}");
        assert!(allowed(&config, &base, base.join("app").join(path)), "{path}");
    }
    for path in ["..", "../../etc/passwd", "../app2", "src/../../app2/x", "missing/../../x", "/", "/etc"] {
        assert!(!allowed(&config, &base, path), "{path}");
    }
    assert!(!allowed(&config, &base, base.join("app2/x")), "a prefix of letters is not a parent");
    assert!(!allowed(&config, &base, "a\0b"));
}

#[cfg(unix)]
#[test]
fn links_are_resolved_before_the_check() {
    use std::os::unix::fs::symlink;

    let (_dir, base) = stage();
    let work = base.join("app");
    symlink("/etc", work.join("etc")).unwrap();
    symlink("src", work.join("inside")).unwrap();
    symlink("loop", work.join("loop")).unwrap();
    symlink(base.join("app2/later"), work.join("dangling")).unwrap();
    symlink(&work, base.join("alias")).unwrap();
    let config = SandboxConfig::default();
    assert!(allowed(&config, &base, "inside/a.rs"));
    assert!(allowed(&config, &base, base.join("alias/src/a.rs")));
    for path in ["etc/passwd", "etc/not-there", "etc/../etc", "dangling", "loop", "loop/x", "inside/../../x"]
    {
        assert!(!allowed(&config, &base, path), "{path}");
    }
    // `..` after a link goes up from where the link leads, not from where it is.
    symlink(base.join("app2"), work.join("w2")).unwrap();
    assert!(!allowed(&config, &base, "w2/../secrets"));
    assert!(allowed(&config, &base, "w2/../app/src/a.rs"));
}

#[test]
fn off_allows_everything_and_allowlist_only_the_list() {
    let (_dir, base) = stage();
    let off = SandboxConfig::with_mode(IsolationMode::Off);
    assert!(allowed(&off, &base, "../../etc/passwd") && allowed(&off, &base, "/"));

    let mut list = SandboxConfig::with_mode(IsolationMode::Allowlist);
    assert!(!allowed(&list, &base, "src/a.rs"), "an empty list allows nothing");
    list.allowed_paths = vec![base.join("app2"), "src".into()];
    assert!(allowed(&list, &base, "src/a.rs"));
    assert!(allowed(&list, &base, base.join("app2/new")));
    assert!(!allowed(&list, &base, "other") && !allowed(&list, &base, "src/../other"));
    assert!(!allowed(&list, &base, base.join("app23")));
    // The list belongs to its mode.
    let workspace = SandboxConfig { mode: IsolationMode::Workspace, ..list };
    assert!(!allowed(&workspace, &base, base.join("app2/new")));
}
