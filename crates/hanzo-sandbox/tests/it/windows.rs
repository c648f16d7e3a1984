//! Windows path checks, on strings, on any system.

use hanzo_sandbox::windows::{WindowsPathError as E, check_name, is_beneath, resolve};

const WS: &str = r"C:\Users\u\proj";

fn ok(path: &str, want: &str) {
    assert_eq!(resolve(WS, path).as_deref(), Ok(want), "{path}");
}

#[test]
fn paths_come_into_one_form() {
    ok("src\\a.rs", r"C:\Users\u\proj\src\a.rs");
    ok("src/a.rs", r"C:\Users\u\proj\src\a.rs");
    ok(r".\src\.\..\src//a.rs", r"C:\Users\u\proj\src\a.rs");
    ok(r"c:\users\U\PROJ\a", r"C:\users\U\PROJ\a");
    ok("C:/Users/u/proj", r"C:\Users\u\proj");
    ok(r"\\?\C:\Users\u\proj\a", r"C:\Users\u\proj\a");
    ok(r"..\proj\a", r"C:\Users\u\proj\a");
    ok(".gitignore", r"C:\Users\u\proj\.gitignore");
    ok("a b.txt", r"C:\Users\u\proj\a b.txt");
}

#[test]
fn ways_out_are_refused() {
    for path in [
        "..",
        r"..\..\..\..\..\..\Windows",
        r"src/..\../other",
        r"C:\Users\u\proj2\a",
        r"C:\Users\u\proj\..\x",
        r"D:\Users\u\proj\a",
        r"\\server\share\a",
        r"\\localhost\C$\Users\u\proj\a",
        r"\\?\UNC\server\share\a",
        "//server/share/a",
    ] {
        assert!(matches!(resolve(WS, path), Err(E::Outside { .. })), "{path}: {:?}", resolve(WS, path));
    }
    assert!(resolve(WS, "..").unwrap_err().is_denial());
}

#[test]
fn drive_relative_paths_are_refused() {
    for path in [r"C:a", "C:", r"\Windows", "/Windows", "1:\\x", r"C:..\x"] {
        assert!(matches!(resolve(WS, path), Err(E::DriveRelative { .. })), "{path}: {:?}", resolve(WS, path));
    }
}

#[test]
fn device_paths_are_refused() {
    for path in [
        r"\\.\PhysicalDrive0",
        r"\\.\C:\Users\u\proj\a",
        r"\\?\GLOBALROOT\Device\HarddiskVolume1\x",
        r"\\?\Volume{b75e2c83-0000-0000-0000-602f00000000}\x",
        r"\??\C:\Users\u\proj\a",
        "//./pipe/x",
        "//?/C:/Users/u/proj/a",
        r"\\?\C:/Users/u/proj/a",
        r"\\server",
        r"\\",
    ] {
        assert!(matches!(resolve(WS, path), Err(E::Device { .. })), "{path}: {:?}", resolve(WS, path));
    }
    // After `\\?\` dots are names.
    assert!(resolve(WS, r"\\?\C:\Users\u\proj\..\x").is_err());
}

#[test]
fn streams_and_reserved_names_are_refused() {
    for path in ["file.txt:stream", "file.txt::$DATA", r"dir:x\file", ".git::$INDEX_ALLOCATION/config"] {
        assert!(matches!(resolve(WS, path), Err(E::Stream { .. })), "{path}: {:?}", resolve(WS, path));
    }
    for path in [
        "NUL",
        "nul",
        "con",
        "Aux.txt",
        "prn.tar.gz",
        "COM1",
        "com0.log",
        "LPT9",
        "com\u{b9}",
        "CONIN$",
        "conout$",
        "NUL .txt",
        r"src\nul\x",
    ] {
        assert!(matches!(resolve(WS, path), Err(E::Reserved { .. })), "{path}: {:?}", resolve(WS, path));
    }
    for fine in ["console", "COM10", "nullable.rs", "com", "auxiliary", "LPTX", "my.nul"] {
        assert!(resolve(WS, fine).is_ok(), "{fine}");
    }
}

#[test]
fn names_that_windows_would_change_are_refused() {
    for path in ["a.", "a ", "...", r".git.\config", r".git \config", "a. ."] {
        assert!(matches!(resolve(WS, path), Err(E::Trailing { .. })), "{path:?}: {:?}", resolve(WS, path));
    }
    for path in ["PROGRA~1", "GIT~1", r"git~1\config", "LONGF~12.TXT", "a~1.b"] {
        assert!(matches!(resolve(WS, path), Err(E::ShortName { .. })), "{path}: {:?}", resolve(WS, path));
    }
    for fine in ["backup~", "a~b", "long-name~1.txt", "x~1.json", "~1"] {
        assert!(resolve(WS, fine).is_ok(), "{fine}");
    }
    for path in ["a\0b", "a*b", "a?", "a|b", "a\"b", "a\nb"] {
        assert!(matches!(resolve(WS, path), Err(E::Character { .. })), "{path:?}");
    }
    assert_eq!(resolve(WS, ""), Err(E::Empty));
}

#[test]
fn comparison_ignores_case_and_keeps_whole_names() {
    assert!(is_beneath(r"C:\Work", r"c:/WORK/a") && is_beneath(r"C:\Work", r"\\?\c:\work"));
    assert!(is_beneath(r"C:\", r"C:\anything"));
    assert!(is_beneath(r"C:\\", r"C:\anything"));
    assert!(is_beneath("C:\\\u{c4}rger", "C:\\\u{e4}RGER\\x"));
    assert!(is_beneath(r"\\Server\Share\a", r"\\server\SHARE\A\b"));
    assert!(is_beneath(r"\\server\share", r"\\?\UNC\server\share\x"));
    assert!(!is_beneath(r"C:\work", r"C:\workspace2"));
    assert!(!is_beneath(r"C:\work", "relative"));
}

#[test]
fn names_alone_can_be_checked() {
    assert_eq!(check_name(r"..\..\fine"), Ok(()));
    assert!(matches!(check_name(r"..\a\NUL"), Err(E::Reserved { .. })));
    for error in [check_name("a:b"), check_name("a."), check_name("A~1"), check_name(r"\\.\x")] {
        let error = error.unwrap_err();
        assert!(error.is_denial() && error.hint().is_some(), "{error}");
    }
}
