//! The Seatbelt profile as text. No macOS is needed for these; what the system makes of the text is not tested here.

use std::path::{Path, PathBuf};

use hanzo_sandbox::{
    IsolationMode, Network, SandboxConfig,
    macos::{ProfileError, seatbelt_profile},
};

const WS: &str = "/nonexistent/ws";

fn profile(config: &SandboxConfig, workspace: &str) -> String {
    seatbelt_profile(config, Path::new(workspace), None).unwrap()
}

fn position(text: &str, line: &str) -> usize {
    text.find(line).unwrap_or_else(|| panic!("no `{line}` in\n{text}"))
}

/// Reads a profile the way its language does: strings with escapes, comments, balanced parentheses. Returns the
/// top-level forms with the strings in them decoded.
fn forms(text: &str) -> Vec<Vec<String>> {
    let (mut found, mut depth, mut tokens) = (Vec::new(), 0, Vec::new());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ';' => while chars.next_if(|c| *c != '\n').is_some() {},
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                assert!(depth >= 0, "unbalanced");
                if depth == 0 {
                    found.push(std::mem::take(&mut tokens));
                }
            }
            '"' => {
                let mut string = String::from("\"");
                loop {
                    match chars.next().expect("a string ends") {
                        '"' => break,
                        '\\' => match chars.next().expect("an escape has a letter") {
                            'n' => string.push('\n'),
                            'r' => string.push('\r'),
                            't' => string.push('\t'),
                            other => string.push(other),
                        },
                        other => string.push(other),
                    }
                }
                tokens.push(string);
            }
            c if c.is_whitespace() => {}
            c => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"()\";".contains(*c)) {
                    word.push(c);
                }
                assert!(depth > 0, "a word outside a form: {word}");
                tokens.push(word);
            }
        }
    }
    assert_eq!(depth, 0, "unbalanced");
    found
}

#[test]
fn later_rules_narrow_earlier_ones() {
    let config = SandboxConfig { unreadable: vec!["/Users/u/.ssh".into()], ..SandboxConfig::default() };
    let text = profile(&config, WS);
    assert!(text.starts_with("(version 1)\n(allow default)\n"));
    let order = [
        "(deny file-write*)\n",
        "(allow file-write* (subpath \"/nonexistent/ws\"))\n",
        "(deny file-write* (subpath \"/nonexistent/ws/.git/hooks\"))\n",
        "(deny file-read* (subpath \"/Users/u/.ssh\"))\n",
        "(deny network*)\n",
        "(allow network-outbound (remote ip \"localhost:*\"))\n",
    ]
    .map(|line| position(&text, line));
    assert!(order.is_sorted(), "{order:?}\n{text}");
}

#[test]
fn protected_paths_are_denied_in_every_spelling() {
    let text = profile(&SandboxConfig::default(), WS);
    for line in [
        "(deny file-write* (literal \"/nonexistent/ws/.git/config\"))",
        "(deny file-write* (subpath \"/nonexistent/ws/.hanzo\"))",
        "(deny file-write* (literal \"/nonexistent/ws/.mcp.json\"))",
        "(deny file-write* (literal \"/nonexistent/ws/.zshrc\"))",
        // The parent may not be moved away, nor another one moved here.
        "(deny file-write-create file-write-unlink (literal \"/nonexistent/ws/.git\"))",
    ] {
        position(&text, line);
    }
    let any_case = forms(&text)
        .into_iter()
        .find(|form| form.iter().any(|token| token.ends_with("/\\.[Mm][Cc][Pp]\\.[Jj][Ss][Oo][Nn]$")));
    assert_eq!(any_case.expect("a rule for `.MCP.json`")[..3], ["deny", "file-write*", "regex"]);
    assert!(!text.contains("(literal \"/nonexistent/ws\")"), "the root itself is not a protected parent");
}

#[test]
fn the_user_directories_are_denied_inside_an_allowed_home() {
    let config = SandboxConfig {
        allow_write: vec!["/Users/u".into()],
        never_write: vec!["/Users/u/.config/hanzo".into()],
        ..SandboxConfig::default()
    };
    let text = profile(&config, WS);
    let allow = position(&text, "(allow file-write* (subpath \"/Users/u\"))");
    assert!(allow < position(&text, "(deny file-write* (subpath \"/Users/u/.config/hanzo\"))"));
}

#[test]
fn network_on_says_nothing_about_it() {
    let on = profile(&SandboxConfig { network: Network::On, ..SandboxConfig::default() }, WS);
    assert!(!on.contains("network"), "{on}");
    let off = profile(&SandboxConfig::default(), WS);
    assert!(off.contains("(allow network-bind network-inbound (local ip \"localhost:*\"))"));
}

#[test]
fn linked_system_directories_are_named_by_their_real_path() {
    let config = SandboxConfig {
        allow_write: vec!["/var/folders/x".into(), "/tmpfoo".into()],
        unreadable: vec!["/etc/secret".into()],
        ..SandboxConfig::default()
    };
    let text = seatbelt_profile(&config, Path::new("/tmp/ws"), Some(Path::new("/tmp/hanzo"))).unwrap();
    for line in [
        "(allow file-write* (subpath \"/private/tmp/ws\"))",
        "(allow file-write* (subpath \"/private/tmp/hanzo\"))",
        "(allow file-write* (subpath \"/private/var/folders/x\"))",
        "(allow file-write* (subpath \"/tmpfoo\"))",
        "(deny file-read* (subpath \"/private/etc/secret\"))",
        "(deny file-write-create file-write-unlink (literal \"/private/tmp/ws/.git\"))",
    ] {
        position(&text, line);
    }
    assert!(!text.contains("\"/tmp/"), "{text}");
}

#[test]
fn a_hostile_directory_name_stays_one_string() {
    let plain = forms(&profile(&SandboxConfig::default(), WS)).len();
    for name in [
        "/nonexistent/a\"))(allow file-write*)(deny file-write* (literal \"/x",
        "/nonexistent/b\\",
        "/nonexistent/c\\\"))(allow file-write*)(",
        "/nonexistent/d\n(allow file-write*)\n",
        "/nonexistent/e ; (f",
        "/nonexistent/f[(.*)+?^$|{}]#",
    ] {
        let text = profile(&SandboxConfig::default(), name);
        let forms = forms(&text);
        assert_eq!(forms.len(), plain, "rules were added or lost for {name:?}:\n{text}");
        assert!(!forms.iter().any(|form| form.as_slice() == ["allow", "file-write*"]), "{text}");
        let want = ["allow", "file-write*", "subpath", &format!("\"{name}")];
        assert!(forms.iter().any(|form| form.as_slice() == want), "{name:?}:\n{text}");
    }
}

#[test]
fn what_cannot_be_named_gives_no_profile() {
    for bad in ["/ws/\u{7}bell", "/ws/\0nul", "relative", "/ws/../up"] {
        let answer = seatbelt_profile(&SandboxConfig::default(), Path::new(bad), None);
        assert!(matches!(answer, Err(ProfileError::Unrepresentable { .. })), "{bad:?}");
    }
    let config = SandboxConfig { unreadable: vec![PathBuf::from("/x\u{1b}")], ..SandboxConfig::default() };
    assert!(seatbelt_profile(&config, Path::new(WS), None).is_err(), "a closed path is never left out");
}

#[test]
fn off_allows_writes_and_still_closes_secrets() {
    let config = SandboxConfig {
        unreadable: vec!["/Users/u/.ssh".into()],
        ..SandboxConfig::with_mode(IsolationMode::Off)
    };
    let text = profile(&config, WS);
    position(&text, "(allow file-write* (subpath \"/\"))");
    position(&text, "(deny file-read* (subpath \"/Users/u/.ssh\"))");
}
