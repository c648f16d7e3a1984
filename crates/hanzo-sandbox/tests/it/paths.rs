//! The path layer in ordinary use and at its edges, for each way of resolving.

use std::{
    fs,
    io::{ErrorKind, Write},
    os::fd::OwnedFd,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use hanzo_sandbox::{
    IsolationMode, Reads, SandboxConfig,
    paths::{Access, Facilities, FileKind, Overwrite, PathError, Resolution, TmpMapping, WriteMode},
};

use crate::stage::{each_way, is_outside, is_protected, is_unreadable, read};

fn p(text: &str) -> &Path {
    Path::new(text)
}

#[test]
fn every_operation_works_inside() {
    each_way(|stage, how| {
        let ws = stage.open(how);
        assert_eq!(read(&ws, "inside.txt").unwrap(), "inside");
        assert_eq!(read(&ws, "dir/../inside.txt").unwrap(), "inside");
        assert_eq!(read(&ws, stage.ws.join("dir//./file.txt")).unwrap(), "file");

        ws.mkdir_all(p("a/b/c")).unwrap();
        ws.mkdir_all(p("a/b/c")).unwrap();
        ws.create_new(p("a/b/c/new")).unwrap().write_all(b"1").unwrap();
        ws.open_write(p("a/b/c/new"), WriteMode::Append).unwrap().write_all(b"2").unwrap();
        assert_eq!(fs::read(stage.ws.join("a/b/c/new")).unwrap(), b"12");
        ws.open_write(p("a/b/c/new"), WriteMode::Existing).unwrap().write_all(b"x").unwrap();
        assert_eq!(fs::read(stage.ws.join("a/b/c/new")).unwrap(), b"x2");
        ws.open_write(p("a/b/c/new"), WriteMode::Truncate).unwrap().write_all(b"3").unwrap();
        assert_eq!(fs::read(stage.ws.join("a/b/c/new")).unwrap(), b"3");

        ws.rename(p("a/b/c/new"), p("moved"), Overwrite::Refuse).unwrap();
        let taken = ws.rename(p("moved"), p("inside.txt"), Overwrite::Refuse).unwrap_err();
        assert_eq!(taken.io_kind(), Some(ErrorKind::AlreadyExists));
        assert_eq!(ws.create_new(p("moved")).unwrap_err().io_kind(), Some(ErrorKind::AlreadyExists));
        ws.rename(p("moved"), p("inside.txt"), Overwrite::Replace).unwrap();
        assert_eq!(read(&ws, "inside.txt").unwrap(), "3");

        let mut names: Vec<_> =
            ws.list_dir(p(".")).unwrap().map(|e| e.map(|e| (e.name, e.kind)).unwrap()).collect();
        names.sort_by(|left, right| left.0.cmp(&right.0));
        let expected =
            [("a", FileKind::Directory), ("dir", FileKind::Directory), ("inside.txt", FileKind::File)];
        assert_eq!(names, expected.map(|(name, kind)| (name.into(), kind)));

        ws.remove_dir(p("a/b/c")).unwrap();
        ws.remove_file(p("inside.txt")).unwrap();
        assert!(!stage.ws.join("inside.txt").exists() && !stage.ws.join("a/b/c").exists());
    });
}

#[test]
fn stat_tells_links_from_files() {
    each_way(|stage, how| {
        stage.link("dir/file.txt", "link");
        let ws = stage.open(how);
        let (link, file) = (ws.stat_link(p("link")).unwrap(), ws.stat(p("link")).unwrap());
        assert_eq!((link.kind, file.kind), (FileKind::Symlink, FileKind::File));
        assert_eq!(file.location, stage.ws.join("dir/file.txt"));
        let real = fs::metadata(stage.ws.join("dir/file.txt")).unwrap();
        assert_eq!(file.len, 4);
        assert_eq!(file.identity, (real.dev(), real.ino()));
        assert_eq!(
            file.modified_ns,
            i128::from(real.mtime()) * 1_000_000_000 + i128::from(real.mtime_nsec())
        );
        assert_eq!(ws.read_link(p("link")).unwrap(), p("dir/file.txt"));
    });
}

#[test]
fn links_that_stay_inside_are_followed() {
    each_way(|stage, how| {
        stage.link("dir", "relative");
        stage.link(stage.ws.join("dir"), "absolute");
        symlink("../inside.txt", stage.ws.join("dir/up")).unwrap();
        stage.link("dir/made-later", "dangling");
        let ws = stage.open(how);
        for name in ["relative/file.txt", "absolute/file.txt", "relative/../dir/file.txt"] {
            assert_eq!(read(&ws, name).unwrap(), "file", "{name}");
        }
        assert_eq!(read(&ws, "absolute/up").unwrap(), "inside");
        ws.replace(p("absolute/up"), b"new").unwrap();
        assert_eq!(fs::read(stage.ws.join("inside.txt")).unwrap(), b"new");
        assert!(fs::symlink_metadata(stage.ws.join("dir/up")).unwrap().is_symlink(), "still a link");
        ws.open_write(p("dangling"), WriteMode::Truncate).unwrap().write_all(b"made").unwrap();
        assert_eq!(fs::read(stage.ws.join("dir/made-later")).unwrap(), b"made");
    });
}

#[test]
fn links_that_lead_out_are_refused_by_name() {
    each_way(|stage, how| {
        stage.link(&stage.outside, "out");
        stage.link("../outside", "out-relative");
        stage.link("out", "chain");
        stage.link(stage.outside.join("secret.txt"), "out-file");
        stage.link(stage.outside.join("not-there"), "out-missing");
        let ws = stage.open(how);
        for name in ["out/secret.txt", "out-relative/secret.txt", "chain/secret.txt", "out-file"] {
            assert!(is_outside(&ws.open_read(p(name))), "{name}");
            assert!(is_outside(&ws.open_write(p(name), WriteMode::Truncate)), "{name}");
            assert!(is_outside(&ws.replace(p(name), b"x")), "{name}");
            assert!(is_outside(&ws.stat(p(name))), "{name}");
        }
        for name in ["out/new", "out-relative/new"] {
            assert!(is_outside(&ws.create_new(p(name))), "{name}");
            assert!(is_outside(&ws.mkdir(p(name))), "{name}");
            assert!(is_outside(&ws.mkdir_all(&p(name).join("deep"))), "{name}");
            assert!(is_outside(&ws.rename(p("inside.txt"), p(name), Overwrite::Replace)), "{name}");
        }
        assert!(is_outside(&ws.open_write(p("out-missing"), WriteMode::Truncate)));
        assert!(is_outside(&ws.remove_file(p("out/secret.txt"))));
        assert!(is_outside(&ws.remove_dir(p("out/x"))));
        assert!(is_outside(&ws.list_dir(p("out")).map(|_| ())));
        assert!(is_outside(&ws.rename(p("out/secret.txt"), p("got"), Overwrite::Replace)));

        let error = ws.open_read(p("chain/secret.txt")).unwrap_err();
        let PathError::Outside { via: Some(via), root, .. } = &error else { panic!("{error:?}") };
        assert_eq!((&via.link, &via.target), (&stage.ws.join("out"), &stage.outside));
        assert_eq!(root, &stage.ws);
        assert!(error.to_string().contains(&stage.outside.display().to_string()), "{error}");
        assert!(error.hint().is_some());
        stage.assert_outside_untouched();

        // The link itself may be looked at and removed.
        assert_eq!(ws.read_link(p("out")).unwrap(), stage.outside);
        ws.remove_file(p("out")).unwrap();
        stage.assert_outside_untouched();
    });
}

#[test]
fn dots_do_not_lead_out() {
    each_way(|stage, how| {
        let ws = stage.open(how);
        let absolute = stage.ws.join("dir/../../outside/secret.txt");
        for path in [
            p("../outside/secret.txt"),
            p("dir/../../outside/secret.txt"),
            p("./.././outside//secret.txt"),
            p("../../../../../../../../etc/passwd"),
            absolute.as_path(),
            &stage.outside.join("secret.txt"),
        ] {
            assert!(is_outside(&ws.open_read(path)), "{}", path.display());
            assert!(is_outside(&ws.open_write(path, WriteMode::Append)), "{}", path.display());
        }
        // Out and back in is in.
        assert_eq!(read(&ws, "../ws/inside.txt").unwrap(), "inside");
        // A sibling whose name starts like the workspace's is not inside.
        fs::create_dir(stage.base.join("ws2")).unwrap();
        assert!(is_outside(&ws.create_new(&stage.base.join("ws2/x"))));
        stage.assert_outside_untouched();
    });
}

#[test]
fn a_workspace_named_through_a_link_accepts_both_names() {
    each_way(|stage, how| {
        let alias = stage.base.join("alias");
        symlink(&stage.ws, &alias).unwrap();
        let config = SandboxConfig { reads: Reads::Workspace, ..SandboxConfig::default() };
        let ws = hanzo_sandbox::paths::Workspace::open_with(&alias, &config, how).unwrap();
        assert_eq!(ws.path(), stage.ws);
        assert_eq!(read(&ws, alias.join("inside.txt")).unwrap(), "inside");
        assert_eq!(read(&ws, stage.ws.join("inside.txt")).unwrap(), "inside");
    });
}

#[test]
fn rename_moves_between_writable_roots_only() {
    each_way(|stage, how| {
        let extra = stage.base.join("extra");
        fs::create_dir(&extra).unwrap();
        let missing = stage.base.join("missing");
        let config = SandboxConfig {
            allow_write: vec![extra.clone(), missing.clone()],
            reads: Reads::Workspace,
            ..SandboxConfig::default()
        };
        let ws = stage.open_config(&config, how);
        assert_eq!(ws.skipped_roots(), [missing]);
        ws.rename(p("inside.txt"), &extra.join("moved"), Overwrite::Refuse).unwrap();
        assert_eq!(fs::read(extra.join("moved")).unwrap(), b"inside");
        assert_eq!(read(&ws, "../extra/moved").unwrap(), "inside");
        stage.link("../extra", "to-extra");
        assert_eq!(read(&ws, "to-extra/moved").unwrap(), "inside");
        assert!(is_outside(&ws.rename(&extra.join("moved"), &stage.outside.join("m"), Overwrite::Replace)));
        assert!(is_outside(&ws.rename(&stage.outside.join("secret.txt"), p("got"), Overwrite::Replace)));
        stage.assert_outside_untouched();
    });
}

#[test]
fn a_root_cannot_be_moved_away() {
    each_way(|stage, how| {
        let config = SandboxConfig { allow_write: vec![stage.base.clone()], ..SandboxConfig::default() };
        let ws = stage.open_config(&config, how);
        assert!(is_protected(&ws.rename(&stage.ws, &stage.base.join("moved"), Overwrite::Refuse)));
        ws.rename(&stage.outside, &stage.base.join("moved"), Overwrite::Refuse).unwrap();
        assert!(stage.ws.exists() && !stage.outside.exists());
    });
}

#[test]
fn a_workspace_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    each_way(|stage, how| {
        let ws = stage.open(how);
        shared(&ws);
        std::thread::scope(|scope| {
            let readers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| read(&ws, "dir/file.txt").unwrap())).collect();
            assert!(readers.into_iter().all(|reader| reader.join().unwrap() == "file"));
        });
    });
}

#[test]
fn modes_decide_where_writes_go() {
    each_way(|stage, how| {
        let off = stage.open_config(&SandboxConfig::with_mode(IsolationMode::Off), how);
        off.create_new(&stage.outside.join("free")).unwrap();
        assert!(stage.outside.join("free").exists());
        fs::remove_file(stage.outside.join("free")).unwrap();

        let config = SandboxConfig {
            allowed_paths: vec!["dir".into()],
            ..SandboxConfig::with_mode(IsolationMode::Allowlist)
        };
        let listed = stage.open_config(&config, how);
        listed.create_new(p("dir/new")).unwrap();
        assert!(is_outside(&listed.create_new(p("new"))));
        assert!(is_outside(&listed.create_new(p("dir/../new"))));
        assert!(!stage.ws.join("new").exists());
        assert_eq!(read(&listed, "inside.txt").unwrap(), "inside", "reads are free by default");
        stage.assert_outside_untouched();
    });
}

#[test]
fn reads_outside_are_free_except_the_unreadable() {
    each_way(|stage, how| {
        let closed = stage.base.join("home/.ssh");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("id"), "KEY").unwrap();
        fs::write(stage.base.join("home/.netrc"), "PASSWORD").unwrap();
        fs::hard_link(stage.base.join("home/.netrc"), stage.ws.join("harmless")).unwrap();
        stage.link(&closed, "s");
        stage.link("../home/.ssh/id", "key");
        symlink(&closed, stage.base.join("hop")).unwrap();
        let config = SandboxConfig {
            unreadable: vec![closed.clone(), stage.base.join("home/.netrc")],
            ..SandboxConfig::default()
        };
        let ws = stage.open_config(&config, how);
        assert_eq!(read(&ws, stage.outside.join("secret.txt")).unwrap(), "SECRET");
        assert_eq!(read(&ws, "../outside/secret.txt").unwrap(), "SECRET");
        for path in [
            closed.join("id"),
            "../home/.ssh/id".into(),
            "s/id".into(),
            "key".into(),
            stage.base.join("hop/id"),
            stage.base.join("home/.netrc"),
            "harmless".into(),
        ] {
            assert!(is_unreadable(&ws.open_read(&path)), "{}", path.display());
        }
        assert!(is_unreadable(&ws.list_dir(&closed).map(|_| ())));
        assert!(is_unreadable(&ws.stat(&closed.join("id"))));
        // Reading is free out there; writing is not.
        assert!(is_outside(&ws.open_write(&stage.outside.join("secret.txt"), WriteMode::Truncate)));
        stage.assert_outside_untouched();
    });
}

#[test]
fn a_moved_secret_directory_is_still_closed() {
    each_way(|stage, how| {
        let elsewhere = stage.base.join("vault");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("id"), "KEY").unwrap();
        symlink(&elsewhere, stage.base.join(".ssh")).unwrap();
        let config = SandboxConfig { unreadable: vec![stage.base.join(".ssh")], ..SandboxConfig::default() };
        let ws = stage.open_config(&config, how);
        assert!(is_unreadable(&ws.open_read(&stage.base.join(".ssh/id"))));
        assert!(is_unreadable(&ws.open_read(&elsewhere.join("id"))));
    });
}

#[test]
fn tmp_is_the_jails_own() {
    each_way(|stage, how| {
        let private = stage.base.join("private-tmp");
        fs::create_dir(&private).unwrap();
        let directory = fs::File::open(&private).unwrap().into();
        let alias = stage.base.join("tmp");
        fs::create_dir(&alias).unwrap();
        fs::write(alias.join("real"), "host").unwrap();
        // Reading everything must not mean reading the host's directory of that name.
        let free: OwnedFd = fs::File::open(&private).unwrap().into();
        let free = stage
            .open_config(&SandboxConfig::default(), how)
            .with_tmp(TmpMapping { alias: alias.clone(), directory: free });
        let ws = stage.open(how).with_tmp(TmpMapping { alias: alias.clone(), directory });
        ws.create_new(&alias.join("x")).unwrap().write_all(b"private").unwrap();
        assert_eq!(fs::read(private.join("x")).unwrap(), b"private");
        assert!(!alias.join("x").exists());
        for ws in [&ws, &free] {
            let missing = ws.open_read(&alias.join("real")).unwrap_err();
            assert_eq!(missing.io_kind(), Some(ErrorKind::NotFound), "the host's file is not there");
            assert_eq!(read(ws, alias.join("x")).unwrap(), "private");
        }
        symlink(alias.join("x"), private.join("again")).unwrap();
        assert_eq!(read(&ws, alias.join("again")).unwrap(), "private");
        symlink(stage.outside.join("secret.txt"), private.join("out")).unwrap();
        assert!(is_outside(&ws.open_read(&alias.join("out"))));
        ws.replace(&alias.join("x"), b"again").unwrap();
        ws.rename(&alias.join("x"), p("from-tmp"), Overwrite::Refuse).unwrap();
        assert_eq!(fs::read(stage.ws.join("from-tmp")).unwrap(), b"again");
    });
}

#[test]
fn replace_keeps_the_mode_and_leaves_other_links_alone() {
    each_way(|stage, how| {
        let file = stage.ws.join("inside.txt");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        fs::hard_link(&file, stage.base.join("store-copy")).unwrap();
        let ws = stage.open(how);
        ws.replace(p("inside.txt"), b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o751);
        assert_eq!(fs::read(stage.base.join("store-copy")).unwrap(), b"inside");

        let staged = ws.stage(p("inside.txt"), b"never").unwrap();
        assert!(staged.temporary().exists());
        drop(staged);
        assert_eq!(fs::read(&file).unwrap(), b"new");
        ws.replace(p("brand-new"), b"made").unwrap();
        let mut names: Vec<_> = fs::read_dir(&stage.ws).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["brand-new", "dir", "inside.txt"], "no temporary file stays");
    });
}

#[test]
fn content_in_pieces_is_written_as_one() {
    const MEGABYTE: usize = 1 << 20;
    each_way(|stage, how| {
        let ws = stage.open(how);
        let long: Vec<u8> = (0..2 * MEGABYTE + 9).map(|n| u8::try_from(n % 251).unwrap()).collect();
        for pieces in [
            [&b""[..], b"", b""],
            [b"a", b"", b"bc"],
            [&long[..7], b"new", &long[7..]],
            [&long[..MEGABYTE], b"", &long[MEGABYTE..]],
            [&long[..MEGABYTE - 1], b"xyz", &long[2 * MEGABYTE..]],
        ] {
            ws.stage_pieces(p("inside.txt"), &pieces).unwrap().commit().unwrap();
            assert!(fs::read(stage.ws.join("inside.txt")).unwrap() == pieces.concat());
        }
    });
}

#[test]
fn odd_names_work_and_impossible_ones_are_refused() {
    each_way(|stage, how| {
        let ws = stage.open(how);
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9 \n\x1b[31m"));
        ws.create_new(odd).unwrap().write_all(b"odd").unwrap();
        assert_eq!(read(&ws, odd).unwrap(), "odd");
        assert!(ws.list_dir(p(".")).unwrap().any(|entry| entry.unwrap().name == odd.as_os_str()));

        for bad in [p(""), p("a\0b"), p("inside.txt\0/../x")] {
            assert!(matches!(ws.open_read(bad), Err(PathError::Invalid { .. })), "{bad:?}");
            assert!(matches!(ws.create_new(bad), Err(PathError::Invalid { .. })), "{bad:?}");
        }
        for whole in [p("."), p("dir/.."), p("dir/../")] {
            assert!(matches!(ws.create_new(whole), Err(PathError::Invalid { .. })), "{whole:?}");
            assert!(ws.remove_dir(whole).is_err() && ws.rename(whole, p("x"), Overwrite::Refuse).is_err());
        }
        let long_name = PathBuf::from("n".repeat(300));
        assert_eq!(ws.create_new(&long_name).unwrap_err().io_kind(), Some(ErrorKind::InvalidFilename));
        let deep: PathBuf = std::iter::repeat_n("d", 5000).collect();
        assert!(ws.open_read(&deep).is_err());
        assert!(ws.create_new(&deep).is_err());
    });
}

#[test]
fn the_wrong_kind_of_file_is_an_ordinary_error() {
    each_way(|stage, how| {
        let ws = stage.open(how);
        assert_eq!(ws.open_read(p("dir")).unwrap_err().io_kind(), Some(ErrorKind::IsADirectory));
        assert_eq!(ws.replace(p("dir"), b"x").unwrap_err().io_kind(), Some(ErrorKind::IsADirectory));
        assert_eq!(ws.open_read(p("inside.txt/x")).unwrap_err().io_kind(), Some(ErrorKind::NotADirectory));
        assert_eq!(ws.list_dir(p("inside.txt")).unwrap_err().io_kind(), Some(ErrorKind::NotADirectory));
        let missing = ws.open_read(p("nothing")).unwrap_err();
        assert_eq!(missing.io_kind(), Some(ErrorKind::NotFound));
        assert!(!missing.is_denial(), "a missing file is not a decision of the sandbox");
        assert_eq!(ws.remove_dir(p("dir")).unwrap_err().io_kind(), Some(ErrorKind::DirectoryNotEmpty));
    });
}

#[test]
fn locate_answers_before_acting() {
    each_way(|stage, how| {
        stage.link("dir", "d");
        let ws = stage.open(how);
        assert_eq!(ws.locate(p("d/new"), Access::Write).unwrap(), stage.ws.join("dir/new"));
        assert_eq!(ws.locate(p("d/file.txt"), Access::Read).unwrap(), stage.ws.join("dir/file.txt"));
        assert!(is_outside(&ws.locate(p("../outside/x"), Access::Write)));
        assert!(!stage.ws.join("dir/new").exists());
    });
}

#[test]
fn capabilities_name_the_races_that_remain() {
    each_way(|stage, how| {
        let told = stage.open(how).capabilities();
        if how == Facilities::default() {
            assert_eq!(told.resolution, Resolution::Kernel, "this kernel has openat2");
            assert!(told.remaining.is_empty());
        } else {
            assert_eq!(told.resolution, Resolution::Walk);
            assert_eq!(told.remaining.len(), if how.descriptor_paths { 1 } else { 2 });
        }
    });
}
