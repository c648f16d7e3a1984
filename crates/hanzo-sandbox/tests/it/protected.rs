//! What is never written and what is never read.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use hanzo_sandbox::{
    SandboxConfig,
    protected::{
        self, CaseRule, GitDirs, PathSet, default_unreadable, is_git_control, linked_git_dirs, protected_in,
    },
};

fn p(text: &str) -> &Path {
    Path::new(text)
}

#[cfg(target_os = "linux")]
mod enforced {
    use std::{fs, os::unix::fs::symlink};

    use hanzo_sandbox::{
        IsolationMode, Reads, SandboxConfig,
        paths::{Overwrite, Workspace, WriteMode},
    };

    use super::p;
    use crate::stage::{each_way, is_outside, is_protected, read};

    const FILES: &[&str] = &[
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".hanzo/settings.toml",
        ".mcp.json",
        ".bashrc",
        ".zshrc",
        ".profile",
        ".bash_profile",
        ".zprofile",
        ".gitconfig",
    ];

    #[test]
    fn missing_ones_cannot_be_made() {
        each_way(|stage, how| {
            let ws = stage.open(how);
            fs::create_dir(stage.ws.join(".git")).unwrap();
            for name in FILES {
                // Where the protected directory itself is missing, there is nothing to put the file into.
                let has_parent = stage.ws.join(name).parent().unwrap().exists();
                let answer = ws.open_write(p(name), WriteMode::Truncate);
                assert!(answer.is_err() && (is_protected(&answer) || !has_parent), "{name}");
                assert!(ws.replace(p(name), b"evil").is_err(), "{name}");
                assert!(ws.create_new(p(name)).is_err(), "{name}");
                assert!(!stage.ws.join(name).exists(), "{name}");
            }
            for name in [".git/hooks", ".hanzo"] {
                assert!(is_protected(&ws.mkdir(p(name))), "{name}");
                assert!(is_protected(&ws.mkdir_all(&p(name).join("deep"))), "{name}");
            }
            // Control: what is not on the list can be made beside them.
            ws.create_new(p(".git/description")).unwrap();
            ws.create_new(p(".eslintrc")).unwrap();
        });
    }

    #[test]
    fn existing_ones_stay_as_they_are_and_can_be_read() {
        each_way(|stage, how| {
            for name in FILES {
                let path = stage.ws.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "mine").unwrap();
            }
            fs::write(stage.ws.join("evil"), "evil").unwrap();
            let ws = stage.open(how);
            for name in FILES {
                assert!(is_protected(&ws.open_write(p(name), WriteMode::Append)), "{name}");
                assert!(is_protected(&ws.replace(p(name), b"evil")), "{name}");
                assert!(is_protected(&ws.remove_file(p(name))), "{name}");
                assert!(is_protected(&ws.rename(p("evil"), p(name), Overwrite::Replace)), "{name}");
                assert!(is_protected(&ws.rename(p(name), p("gone"), Overwrite::Replace)), "{name}");
                assert_eq!(read(&ws, name).unwrap(), "mine");
            }
            // By moving the parent away, or a prepared one into place.
            assert!(is_protected(&ws.rename(p(".git"), p("g"), Overwrite::Refuse)));
            assert!(is_protected(&ws.rename(p(".hanzo"), p("h"), Overwrite::Refuse)));
        });
    }

    #[test]
    fn a_prepared_repository_cannot_be_moved_into_place() {
        each_way(|stage, how| {
            fs::create_dir_all(stage.ws.join("prepared/hooks")).unwrap();
            fs::create_dir_all(stage.ws.join("nested")).unwrap();
            let ws = stage.open(how);
            for place in [".git", "nested/.git"] {
                assert!(is_protected(&ws.rename(p("prepared"), p(place), Overwrite::Refuse)), "{place}");
                assert!(is_protected(&ws.create_new(p(place))), "a `.git` file points elsewhere");
                assert!(!stage.ws.join(place).exists());
            }
            // `.config/git` is protected, so a whole `.config` does not arrive either while there is none.
            assert!(is_protected(&ws.rename(p("prepared"), p(".config"), Overwrite::Refuse)));
            ws.rename(p("prepared"), p("nested/other"), Overwrite::Refuse).unwrap();
        });
    }

    #[test]
    fn roundabout_ways_lead_to_the_same_refusal() {
        each_way(|stage, how| {
            fs::create_dir_all(stage.ws.join("real-git/hooks")).unwrap();
            fs::write(stage.ws.join("real-git/config"), "mine").unwrap();
            fs::create_dir_all(stage.ws.join("sub/.git/modules/x/hooks")).unwrap();
            let ws = stage.open(how);
            // A command made `.git` a link after the workspace was opened.
            symlink("real-git", stage.ws.join(".git")).unwrap();
            symlink(".git/hooks", stage.ws.join("h")).unwrap();
            for name in [
                "h/pre-commit",
                "real-git/hooks/pre-commit",
                "dir/../.git/hooks/pre-commit",
                "real-git/config",
                "sub/.git/hooks",
                "sub/.git/modules/x/hooks/post-checkout",
                "sub/.git/modules/x/config",
            ] {
                assert!(is_protected(&ws.replace(p(name), b"evil")), "{name}");
            }
            fs::hard_link(stage.ws.join("real-git/config"), stage.ws.join("innocent")).unwrap();
            assert!(is_protected(&ws.open_write(p("innocent"), WriteMode::Append)));
            assert_eq!(fs::read(stage.ws.join("real-git/config")).unwrap(), b"mine");
        });
    }

    #[test]
    fn a_linked_worktree_may_be_committed_to_but_not_rewired() {
        each_way(|_, how| {
            let (_dir, base) = super::repository();
            super::git(&base.join("main"), &["worktree", "add", "-q", "../linked"]);
            let config = SandboxConfig { reads: Reads::Workspace, ..SandboxConfig::default() };
            let ws = Workspace::open_with(&base.join("linked"), &config, how).unwrap();
            let common = base.join("main/.git");
            ws.replace(&common.join("worktrees/linked/COMMIT_EDITMSG"), b"message").unwrap();
            ws.create_new(&common.join("refs/heads/new")).unwrap();
            for name in [
                "hooks/pre-commit",
                "config",
                "worktrees/linked/config.worktree",
                "worktrees/linked/commondir",
            ] {
                assert!(is_protected(&ws.replace(&common.join(name), b"evil")), "{name}");
            }
            assert!(is_protected(&ws.replace(p(".git"), b"gitdir: evil")));
            assert!(is_outside(&ws.replace(&base.join("main/file"), b"x")), "the other tree is not ours");
        });
    }

    #[test]
    fn user_config_and_data_are_never_writable() {
        each_way(|stage, how| {
            let (config_dir, data_dir) = (stage.base.join("cfg"), stage.base.join("data"));
            fs::create_dir(&config_dir).unwrap();
            fs::create_dir(&data_dir).unwrap();
            fs::write(config_dir.join("settings.toml"), "mine").unwrap();
            // Even when the user's own settings seem to allow it, and with confinement off.
            for mode in [IsolationMode::Workspace, IsolationMode::Off] {
                let config = SandboxConfig {
                    mode,
                    allow_write: vec![stage.base.clone()],
                    never_write: vec![config_dir.clone(), data_dir.clone()],
                    ..SandboxConfig::default()
                };
                let ws = stage.open_config(&config, how);
                ws.replace(&stage.base.join("beside"), b"ok").unwrap();
                for path in
                    [config_dir.join("settings.toml"), config_dir.join("hooks.toml"), data_dir.join("db")]
                {
                    assert!(is_protected(&ws.replace(&path, b"evil")), "{}", path.display());
                    assert!(is_protected(&ws.create_new(&path)), "{}", path.display());
                }
                assert!(is_protected(&ws.rename(&config_dir, &stage.base.join("c2"), Overwrite::Refuse)));
                assert!(is_protected(&ws.remove_dir(&data_dir)));
                assert_eq!(fs::read(config_dir.join("settings.toml")).unwrap(), b"mine");
            }
        });
    }
}

fn git(dir: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn repository() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir(base.join("main")).unwrap();
    git(&base.join("main"), &["init", "-q", "."]);
    git(&base.join("main"), &["commit", "-q", "--allow-empty", "-m", "first"]);
    (dir, base)
}

#[test]
fn a_linked_worktree_brings_its_git_directories() {
    let (_dir, base) = repository();
    git(&base.join("main"), &["worktree", "add", "-q", "../linked"]);
    let linked = base.join("linked");
    let dirs = linked_git_dirs(&linked).unwrap();
    let common = base.join("main/.git");
    assert_eq!(dirs, GitDirs { git_dir: common.join("worktrees/linked"), common_dir: common.clone() });

    let roots = protected::writable_roots(&SandboxConfig::default(), &linked);
    assert_eq!(roots, [linked.clone(), dirs.git_dir.clone(), dirs.common_dir.clone()]);
    let listed: Vec<PathBuf> = protected_in(&linked).into_iter().map(|entry| entry.path).collect();
    for path in [
        linked.join(".git"),
        common.join("hooks"),
        common.join("config"),
        dirs.git_dir.join("config.worktree"),
        dirs.git_dir.join("commondir"),
        dirs.git_dir.join("gitdir"),
    ] {
        assert!(listed.contains(&path), "{} is missing from {listed:?}", path.display());
    }
    assert_eq!(linked_git_dirs(&base.join("main")), None, "an ordinary repository has no other place");
}

#[test]
fn a_submodule_brings_its_git_directory() {
    let (_dir, base) = repository();
    fs::create_dir(base.join("outer")).unwrap();
    git(&base.join("outer"), &["init", "-q", "."]);
    git(&base.join("outer"), &["submodule", "--quiet", "add", "../main", "sub"]);
    let dirs = linked_git_dirs(&base.join("outer/sub")).unwrap();
    let git_dir = base.join("outer/.git/modules/sub");
    assert_eq!(dirs, GitDirs { git_dir: git_dir.clone(), common_dir: git_dir });
}

#[test]
fn a_git_file_is_not_believed_on_its_own() {
    let (_dir, base) = repository();
    git(&base.join("main"), &["worktree", "add", "-q", "../linked"]);
    let hostile = base.join("hostile");
    fs::create_dir_all(base.join("home/.ssh")).unwrap();
    fs::create_dir_all(hostile.join("fake/objects")).unwrap();
    let victim = base.join("main/.git");
    for target in
        [base.join("home/.ssh"), victim.clone(), victim.join("worktrees/linked"), hostile.join("fake")]
    {
        fs::write(hostile.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
        assert_eq!(linked_git_dirs(&hostile), None, "{}", target.display());
    }
    // A made-up git directory that points back, but names a common directory that does not know it.
    fs::create_dir_all(hostile.join("fake/refs")).unwrap();
    fs::write(hostile.join("fake/HEAD"), "ref: refs/heads/x\n").unwrap();
    fs::write(hostile.join("fake/gitdir"), hostile.join(".git").display().to_string()).unwrap();
    fs::write(hostile.join("fake/commondir"), victim.display().to_string()).unwrap();
    assert_eq!(linked_git_dirs(&hostile), None);
    assert_eq!(protected::writable_roots(&SandboxConfig::default(), &hostile), [hostile]);
}

#[test]
fn the_unreadable_list_covers_the_usual_secrets() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".cargo")).unwrap();
    fs::write(home.path().join(".cargo/credentials.toml.bak"), "token").unwrap();
    let list = default_unreadable(home.path(), p("/cfg"), p("/data"));
    for name in [
        ".ssh",
        ".aws",
        ".gnupg",
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".docker",
        ".kube",
        ".config/gh",
        ".config/gcloud",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".cargo/credentials.toml.bak",
    ] {
        assert!(list.contains(&home.path().join(name)), "{name}");
    }
    assert!(list.contains(&"/data".into()) && list.contains(&"/cfg/credentials.json".into()));
    assert!(!list.contains(&"/cfg".into()), "settings themselves are no secret");
}

#[test]
fn names_are_compared_whole_and_by_the_rule() {
    let set = |case| PathSet::new([PathBuf::from("/w/.git/hooks")], case);
    let exact = set(CaseRule::Sensitive);
    assert!(exact.covering(p("/w/.git/hooks/x")).is_some() && exact.covering(p("/w/.git/hooks")).is_some());
    assert!(exact.covering(p("/w/.git/hooks2")).is_none() && exact.covering(p("/w/.GIT/hooks")).is_none());
    assert!(exact.inside(p("/w/.git")).is_some() && exact.inside(p("/w/.git/hooks")).is_none());
    assert!(set(CaseRule::Insensitive).covering(p("/w/.GIT/Hooks/x")).is_some());
    assert!(is_git_control(p("a/.git/hooks/x"), CaseRule::Sensitive));
    assert!(is_git_control(p("a/.Git/CONFIG"), CaseRule::Insensitive));
    assert!(!is_git_control(p("a/.git/refs/heads/config"), CaseRule::Sensitive));
    assert!(!is_git_control(p("src/hooks/config"), CaseRule::Sensitive));
}

/// However a path is written, the quick comparison says what the one by components says.
#[test]
fn a_set_covers_what_lies_beneath_by_components() {
    let pieces =
        ["", "/", "/a", "/a/", "/a/b", "//a//b", "/a/./b", "/A/b", "/ab", "/a/b/c", "/a/../b", "a/b", "."];
    for case in [CaseRule::Sensitive, CaseRule::Insensitive] {
        for root in pieces {
            let set = PathSet::new([PathBuf::from(root)], case);
            for path in pieces {
                let expected = set.entries().any(|entry| case.is_beneath(entry, Path::new(path)));
                assert_eq!(
                    set.covering(Path::new(path)).is_some(),
                    expected,
                    "`{path}` in `{root}`, {case:?}"
                );
            }
        }
    }
}
