//! Paths inside the workspace that stay as they are, and paths whose content stays unknown.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{World, escape, everyone, listing, probe, sh, text, tried};

fn git(dir: &Path, arguments: &[&str]) {
    let output = Command::new("git").args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
}

/// A repository in the world's workspace that belongs to who tries.
fn repository(world: &World) {
    let line = "git init -q . && git config user.name n && git config user.email e && git commit -q --allow-empty -m m";
    let output = world.plain(&sh(line)).env("HOME", &world.workspace).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_git_executes_cannot_be_written() {
    for name in ["hooks/pre-commit", "config", "config.worktree", "commondir"] {
        escape(
            &[],
            &everyone(),
            |world| {
                repository(world);
                let path = world.workspace.join(".git").join(name);
                (probe("write", &[&path]), path)
            },
            |_, path, _| fs::read(path).is_ok_and(|now| now == b"changed"),
        );
    }
}

#[test]
fn a_protected_directory_cannot_be_moved_away() {
    // A mount point cannot be renamed, but a plain directory above it can.
    for line in [
        "echo tried; mv .git old; mkdir -p .git/hooks; echo changed > .git/hooks/pre-commit",
        "echo tried; mv .git/hooks .git/h; mkdir .git/hooks; echo changed > .git/hooks/pre-commit",
        "echo tried; rm -rf .git/hooks .git; mkdir -p .git/hooks; echo changed > .git/hooks/pre-commit",
        "echo tried; cp -r .git new; rm -rf .git; mv new .git; echo changed > .git/hooks/pre-commit",
        "echo tried; mkdir d; echo changed > d/pre-commit; rm -rf .git/hooks; ln -s ../d .git/hooks",
    ] {
        escape(
            &[],
            &everyone(),
            |world| {
                repository(world);
                (sh(line), world.workspace.join(".git/hooks/pre-commit"))
            },
            |_, hook, _| fs::read(hook).is_ok_and(|now| now == b"changed\n"),
        );
    }
}

#[test]
fn missing_protected_paths_cannot_be_made_and_leave_nothing() {
    for path in [".git/hooks/x", ".git/config", ".hanzo/settings.toml", ".mcp.json", "sub/deep/file"] {
        escape(
            &["--protect", "sub/deep/file"],
            &everyone(),
            |world| {
                let line = format!(
                    "echo tried; mkdir -p \"$(dirname {path})\"; echo changed > {path}; rm -rf {path}/..; ls -a"
                );
                (sh(&line), world.workspace.join(path))
            },
            |world, path, _| {
                let made =
                    path.exists() || path.parent().is_some_and(|dir| dir != world.workspace && dir.exists());
                if !made {
                    assert_eq!(listing(&world.workspace), Vec::<String>::new(), "placeholders are left");
                }
                made || !listing(&world.workspace).is_empty()
            },
        );
    }
}

#[test]
fn a_commit_of_everything_does_not_see_placeholders() {
    for who in everyone() {
        let world = World::new(who);
        repository(&world);
        let before = listing(&world.workspace.join(".git"));
        let line =
            "echo x > f && git add -A && git commit -qm all && git show --stat --format= HEAD && echo tried";
        let output = tried(world.jailed(&[], &sh(line)));
        assert!(output.contains(" f ") && output.contains("1 file changed"), "{output}");
        let new: Vec<String> = listing(&world.workspace.join(".git"))
            .into_iter()
            .filter(|name| !before.contains(name) && !["COMMIT_EDITMSG", "index"].contains(&name.as_str()))
            .collect();
        assert_eq!(new, Vec::<String>::new());
        assert_eq!(listing(&world.workspace), [".git", "f"]);
    }
}

#[test]
fn a_link_in_the_way_of_protection_is_refused() {
    let world = World::new(everyone()[0]);
    std::os::unix::fs::symlink(&world.outside, world.workspace.join(".hanzo")).unwrap();
    let output = world.jailed(&[], &sh("echo tried")).output().unwrap();
    assert!(text(&output.stderr).contains("symbolic link"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn secrets_cannot_be_read() {
    for who in everyone() {
        let world = World::new(who);
        let (file, dir) = (world.outside.join("netrc"), world.outside.join("ssh"));
        fs::write(&file, "secret-in-file").unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("key"), "secret-in-dir").unwrap();
        let link = world.workspace.join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        let line = format!(
            "echo tried; cat {0} {1}/key link/key /proc/self/root{1}/key; ls {1}",
            file.display(),
            dir.display()
        );
        let control = tried(world.plain(&sh(&line)));
        assert!(
            control.contains("secret-in-file") && control.contains("secret-in-dir"),
            "the control did not work"
        );
        let options = ["--unreadable", file.to_str().unwrap(), "--unreadable", dir.to_str().unwrap()];
        let output = tried(world.jailed(&options, &sh(&line)));
        assert!(!output.contains("secret") && !output.contains("key"), "ESCAPED as {who:?}: {output}");
    }
}

#[test]
fn the_usual_places_of_credentials_are_hidden() {
    for who in everyone() {
        let world = World::new(who);
        fs::create_dir(world.outside.join(".ssh")).unwrap();
        for name in [".ssh/key", ".netrc", ".npmrc"] {
            fs::write(world.outside.join(name), "secret").unwrap();
        }
        let run = |mut command: Command| {
            command.env("HOME", &world.outside);
            tried(command)
        };
        let line = sh("echo tried; cd $HOME && cat .ssh/key .netrc .npmrc");
        assert_eq!(run(world.plain(&line)).matches("secret").count(), 3, "the control did not work");
        assert!(!run(world.jailed(&[], &line)).contains("secret"), "ESCAPED as {who:?}");
    }
}

#[test]
fn secrets_inside_the_workspace_can_be_neither_read_nor_planted() {
    for who in everyone() {
        let world = World::new(who);
        fs::create_dir(world.workspace.join("aws")).unwrap();
        fs::write(world.workspace.join("aws/key"), "secret").unwrap();
        let line =
            "echo tried; cat aws/key; mv aws gone; mkdir -p ssh; echo x > ssh/config; echo x > aws/key";
        let options = ["--unreadable", "aws", "--unreadable", "ssh"];
        let output = tried(world.jailed(&options, &sh(line)));
        assert!(!output.contains("secret"), "ESCAPED as {who:?}");
        assert_eq!(fs::read_to_string(world.workspace.join("aws/key")).unwrap(), "secret");
        assert_eq!(listing(&world.workspace), ["aws"]);
    }
}

#[test]
fn a_workspace_inside_a_masked_directory_works_and_its_neighbours_are_hidden() {
    for who in everyone() {
        let world = World::new(who);
        let inner = world.outside.join("worktrees/one");
        fs::create_dir_all(&inner).unwrap();
        for path in [&world.outside.join("worktrees"), &inner] {
            world.give(path);
        }
        fs::write(world.outside.join("credentials"), "secret").unwrap();
        let line =
            format!("echo tried; cat {}/credentials; echo done > out; ls ../..", world.outside.display());
        let options =
            ["--workspace", inner.to_str().unwrap(), "--unreadable", world.outside.to_str().unwrap()];
        let output = tried(world.jailed(&options, &sh(&line)));
        assert!(
            !output.contains("secret") && !output.contains("credentials"),
            "ESCAPED as {who:?}: {output}"
        );
        assert_eq!(fs::read_to_string(inner.join("out")).unwrap(), "done\n");
    }
}

#[test]
fn a_linked_worktree_commits_and_cannot_touch_what_git_executes() {
    for who in everyone() {
        let world = World::new(who);
        let main = world.outside.join("main");
        fs::create_dir(&main).unwrap();
        world.give(&main);
        let tree = world.outside.join("linked");
        let line = format!(
            "cd '{0}' && git init -q . && git config user.name n && git config user.email e && \
             git commit -q --allow-empty -m m && git worktree add -q '{1}' && git worktree add -q '{0}/../other'",
            main.display(),
            tree.display()
        );
        let output = world.plain(&sh(&line)).env("HOME", &world.workspace).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let line = "echo x > f && git add f && git commit -qm in-the-jail && echo tried; \
            g=../main/.git; echo evil > $g/hooks/pre-commit; echo evil >> $g/config; echo evil > $g/config.worktree; \
            echo /evil > $g/commondir; echo /evil > $g/worktrees/linked/commondir; echo evil > $g/worktrees/linked/config.worktree; \
            echo /evil > $g/worktrees/other/commondir; mv $g/worktrees $g/w2; mkdir -p $g/worktrees/linked; \
            echo /evil > $g/worktrees/linked/commondir; echo 'gitdir: /evil' > .git; mv .git old; echo evil > ../main/file";
        tried(world.jailed(&["--workspace", tree.to_str().unwrap()], &sh(line)));
        let read = |path: &str| fs::read_to_string(main.join(path)).unwrap_or_default();
        for path in [
            ".git/hooks/pre-commit",
            ".git/config",
            ".git/config.worktree",
            ".git/commondir",
            ".git/worktrees/linked/commondir",
            ".git/worktrees/linked/config.worktree",
            ".git/worktrees/other/commondir",
            "file",
        ] {
            assert!(!read(path).contains("evil"), "ESCAPED as {who:?} to {path}");
        }
        assert!(!fs::read_to_string(tree.join(".git")).unwrap().contains("evil"));
        assert!(!main.join(".git/config.worktree").exists() && !main.join(".git/commondir").exists());
        let safe = format!("safe.directory={}", tree.display());
        let main_safe = format!("safe.directory={}", main.display());
        git(&tree, &["-c", &safe, "-c", &main_safe, "fsck"]);
        let log = Command::new("git")
            .args(["-c", &safe, "log", "--format=%s"])
            .current_dir(&tree)
            .output()
            .unwrap();
        assert!(text(&log.stdout).contains("in-the-jail"), "{}", text(&log.stderr));
    }
}
