//! Limits and corners of the shell analysis, through decisions.

use hanzo_permissions::{Call, Decision, Opaque};
use serde_json::json;

use crate::{bash, policy};

#[test]
fn size_only_makes_a_decision_stricter() {
    let long = format!("echo {}", "a".repeat(16 * 1024));
    assert_eq!(bash(&policy(&["Bash(echo:*)"], &[], &[]), &long), Decision::Ask);
    assert_eq!(bash(&policy(&["Bash"], &[], &[]), &long), Decision::Allow);
    assert_eq!(bash(&policy(&["Bash"], &[], &["Bash(rm:*)"]), &long), Decision::Ask);
    assert_eq!(
        bash(&policy(&["Bash"], &[], &["Edit(x)"]), &long),
        Decision::Allow,
        "a rule about paths is no reason"
    );
    assert_eq!(bash(&policy(&["Bash"], &[], &["Bash"]), &long), Decision::Deny);
    let short = format!("echo {}", "a".repeat(15 * 1024));
    assert_eq!(bash(&policy(&["Bash(echo:*)"], &[], &[]), &short), Decision::Allow);
}

#[test]
fn depth_overflows_no_stack_and_is_never_allowed() {
    let policy = policy(&["Bash(echo:*)"], &[], &["Bash(rm:*)"]);
    for unit in [
        "$(",
        "(",
        "{ ",
        "`",
        "\"$(",
        "<(",
        "$((",
        "${x:-",
        "if ",
        "case x in ",
        "[[ ",
        "a=(",
        "! ",
        "f() { ",
        "'\"",
        "\\",
        "<<A ",
    ] {
        for size in [200, 2_000, 15_000] {
            let line = unit.repeat(size / unit.len());
            assert_ne!(bash(&policy, &line), Decision::Allow, "{unit} × {size}");
        }
    }
    let mut nested = "rm x".to_owned();
    for _ in 0..40 {
        nested = format!("sudo {nested}");
    }
    assert_ne!(bash(&policy, &nested), Decision::Allow);
}

#[test]
fn reasons_are_named() {
    let policy = policy(&["Bash(echo:*)"], &[], &[]);
    for (line, reason) in [
        ("echo $x", Opaque::Expansion),
        ("echo `x`", Opaque::Substitution),
        ("echo > x", Opaque::Redirection),
        ("echo >/dev/null", Opaque::Redirection),
        ("x=1 echo", Opaque::Assignment),
        ("(echo)", Opaque::Subshell),
        ("echo {a,b}", Opaque::Braces),
        ("echo; eval x", Opaque::EvaluatingBuiltin),
        ("echo 'x", Opaque::Syntax),
        ("", Opaque::Empty),
    ] {
        let args = json!({ "command": line });
        let explanation = policy.explain(&Call::new("bash", &args));
        assert_eq!(explanation.opaque.map(|o| o.code), Some(reason), "{line:?}");
        assert_eq!(explanation.decision, Decision::Ask, "{line:?}");
    }
}

#[test]
fn a_quoted_word_is_not_several() {
    // Approving `find . -name 'x -delete'` word for word must not approve `find . -name x -delete`.
    let policy = policy(&["Bash(find . -name 'x -delete')"], &[], &[]);
    assert_eq!(bash(&policy, "find . -name 'x -delete'"), Decision::Allow);
    assert_eq!(bash(&policy, "find . -name \"x -delete\""), Decision::Allow);
    assert_eq!(bash(&policy, "find . -name x -delete"), Decision::Ask);
}

#[test]
fn characters_outside_ascii_crash_no_scanner() {
    let policy = policy(&["Bash(echo:*)"], &[], &["Bash(rm -rf*)"]);
    for character in ['\u{e9}', '\u{ffff}', '\u{1f600}', '\u{10ffff}', '\0', '\u{7f}', '\r'] {
        for around in [
            "echo {@}",
            "echo {@",
            "{1..@}",
            "echo {1..@",
            "<<@\na\n@\n",
            "@",
            "$@",
            "${@",
            "a[@]=1",
            "echo [[ @",
            "echo \"@",
            "@=(",
        ] {
            // A parser is kept per thread; each text must leave it fit for the next.
            for _ in 0..3 {
                let line = around.replace('@', &character.to_string());
                assert_ne!(bash(&policy, &line), Decision::Deny, "{line:?}");
            }
        }
    }
    assert_eq!(
        bash(&policy, "echo 'gr\u{fc}n' \u{1f600}"),
        Decision::Allow,
        "words of any language are words"
    );
    assert_eq!(bash(&policy, "rm -rf \u{1f600}\u{e9}"), Decision::Deny);
    assert_eq!(bash(&policy, "rm -rf x\r\n"), Decision::Deny);
}
