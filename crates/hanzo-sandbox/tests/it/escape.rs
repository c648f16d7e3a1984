//! Files outside, by every call that changes one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::SystemTime;

use crate::support::{Who, World, escape, everyone, probe, rounds, sh, tried};

fn changed(path: &std::path::Path) -> bool {
    fs::read(path).is_ok_and(|now| now != b"original")
}

#[test]
fn writing_a_file_outside() {
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("write", &[&victim]), victim)
        },
        |_, victim, _| changed(victim),
    );
}

#[test]
fn creating_outside_file_directory_link_and_fifo() {
    for name in ["write", "mkdir", "symlink", "fifo"] {
        escape(
            &[],
            &everyone(),
            |world| {
                let path = world.outside.join("new");
                (probe(name, &[&path]), path)
            },
            |_, path, _| path.symlink_metadata().is_ok(),
        );
    }
}

#[test]
fn unlinking_and_renaming_outside() {
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("unlink", &[&victim]), victim)
        },
        |_, victim, _| !victim.exists(),
    );
    for inwards in [true, false] {
        escape(
            &[],
            &everyone(),
            |world| {
                let victim = world.victim("v");
                let to = if inwards { world.workspace.join("v") } else { world.outside.join("w") };
                (probe("rename", &[&victim, &to]), victim)
            },
            |_, victim, _| !victim.exists(),
        );
    }
    // Over a file outside, with content from inside.
    escape(
        &[],
        &everyone(),
        |world| {
            let (victim, own) = (world.victim("v"), world.workspace.join("own"));
            fs::write(&own, "changed").unwrap();
            world.give(&own);
            (probe("rename", &[&own, &victim]), victim)
        },
        |_, victim, _| changed(victim),
    );
}

#[test]
fn hard_links_to_a_file_outside() {
    for name in ["link", "link-by-descriptor"] {
        escape(
            &[],
            &everyone(),
            |world| {
                let victim = world.victim("v");
                (probe(name, &[&victim, &world.workspace.join("in")]), victim)
            },
            |_, victim, _| changed(victim) || fs::metadata(victim).unwrap().nlink() > 1,
        );
    }
}

#[test]
fn mode_times_attributes_and_length_outside() {
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("chmod", &[&victim]), victim)
        },
        |_, victim, _| fs::metadata(victim).unwrap().permissions().mode() & 0o777 == 0o777,
    );
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("utime", &[&victim]), victim)
        },
        |_, victim, _| fs::metadata(victim).unwrap().modified().unwrap() == SystemTime::UNIX_EPOCH,
    );
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("xattr", &[&victim]), victim)
        },
        |_, victim, _| {
            let mut value = [0u8; 8];
            rustix::fs::getxattr(victim, "user.hanzo", &mut value[..]).is_ok()
        },
    );
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("truncate", &[&victim]), victim)
        },
        |_, victim, _| fs::metadata(victim).unwrap().len() == 1,
    );
}

#[test]
fn the_mode_of_a_device_node() {
    // The control changes a node of its own making; `/dev/null` belongs to everybody on this machine.
    let world = World::new(Who::Own);
    let before = fs::metadata("/dev/null").unwrap().permissions().mode();
    tried(world.jailed(&[], &probe("chmod", &[&"/dev/zero"])));
    let victim = world.victim("v");
    tried(world.plain(&probe("chmod", &[&victim])));
    assert_eq!(fs::metadata(victim).unwrap().permissions().mode() & 0o777, 0o777);
    assert_eq!(fs::metadata("/dev/zero").unwrap().permissions().mode(), before);
}

#[test]
fn through_the_roots_and_directories_of_other_processes() {
    escape(
        &[],
        &everyone(),
        |world| {
            let victim = world.victim("v");
            (probe("write-through-proc", &[&victim]), victim)
        },
        |_, victim, _| changed(victim),
    );
}

#[test]
fn shared_memory_and_the_temporary_directories_are_private() {
    for dir in ["/dev/shm", "/tmp", "/var/tmp"] {
        for who in everyone() {
            let path = std::path::Path::new(dir).join(format!("hanzo-escape-{}-{who:?}", std::process::id()));
            let world = World::new(who);
            tried(world.plain(&probe("write", &[&path])));
            assert!(path.exists(), "the control did not work");
            fs::remove_file(&path).unwrap();
            tried(world.jailed(&[], &probe("write", &[&path])));
            assert!(!path.exists(), "ESCAPED as {who:?} to {}", path.display());
        }
    }
}

#[test]
fn a_leaked_directory_descriptor() {
    // Not marked close-on-exec, as a careless host or shell leaves it.
    let line = |world: &World, inner: &[std::ffi::OsString]| {
        let words: Vec<String> = inner.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        sh(&format!("exec 9<'{}'; exec {}", world.outside.display(), words.join(" ")))
    };
    for who in everyone() {
        let world = World::new(who);
        let attempt = probe("write-by-descriptor", &[&"9", &"leak"]);
        tried(world.plain(&line(&world, &attempt)));
        assert!(world.outside.join("leak").exists(), "the control did not work");

        let world = World::new(who);
        let mut jailed = vec![crate::support::JAIL.as_str().into(), "--".into()];
        jailed.extend(probe("write-by-descriptor", &[&"9", &"leak"]));
        tried(world.plain(&line(&world, &jailed)));
        assert!(!world.outside.join("leak").exists(), "ESCAPED as {who:?}");
    }
}

#[test]
fn a_directory_as_standard_input() {
    // This descriptor is passed on purpose, so only Landlock stands behind it.
    for who in everyone() {
        for (name, escapes) in [("leak", ["leak", "../workspace/../outside/leak"])] {
            for attempt in escapes {
                let argv = probe("write-by-descriptor", &[&"0", &attempt]);
                let world = World::new(who);
                let mut command = world.plain(&argv);
                command.stdin(fs::File::open(&world.outside).unwrap());
                tried(command);
                assert!(world.outside.join(name).exists(), "the control did not work");

                let world = World::new(who);
                let mut command = world.jailed(&[], &argv);
                command.stdin(fs::File::open(&world.outside).unwrap());
                tried(command);
                assert!(!world.outside.join(name).exists(), "ESCAPED as {who:?} by {attempt}");
            }
        }
    }
}

#[test]
fn swapping_links_while_writing() {
    let rounds = rounds(100_000).to_string();
    escape(
        &[],
        &everyone(),
        |world| (probe("race", &[&world.workspace, &world.outside, &rounds]), ()),
        |world, (), _| world.outside.join("leak").exists(),
    );
}
