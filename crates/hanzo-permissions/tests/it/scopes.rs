//! What is offered with "always allow".

use hanzo_permissions::{Call, Lifetime, ScopeKind, offers};
use serde_json::{Value, json};

fn rules(tool: &str, args: &Value) -> Vec<(ScopeKind, Vec<String>)> {
    offers(&Call::new(tool, args).in_workspace("/w")).into_iter().map(|o| (o.kind, o.rules)).collect()
}

fn prefix(command: &str) -> Option<Vec<String>> {
    let args = json!({ "command": command });
    rules("bash", &args).into_iter().find(|(kind, _)| *kind == ScopeKind::Prefix).map(|(_, rules)| rules)
}

#[test]
fn a_command_is_offered_as_it_is_first() {
    let args = json!({"command": "go test ./..."});
    assert_eq!(
        rules("bash", &args),
        [
            (ScopeKind::Command, vec!["Bash(go test ./...)".to_owned()]),
            (ScopeKind::Prefix, vec!["Bash(go test:*)".to_owned()]),
        ]
    );
    let args = json!({"command": "echo 'a (*) b'"});
    assert_eq!(rules("bash", &args)[0].1, [r"Bash(echo 'a \(\*\) b')"]);
}

#[test]
fn prefixes_are_conservative() {
    for (command, expected) in [
        ("ls -la", "Bash(ls:*)"),
        ("git status --short", "Bash(git status:*)"),
        ("npm run test -- --watch", "Bash(npm run test:*)"),
        ("cargo test -p x", "Bash(cargo test:*)"),
        ("docker ps", "Bash(docker ps:*)"),
    ] {
        assert_eq!(prefix(command), Some(vec![expected.to_owned()]), "{command}");
    }
    assert_eq!(
        prefix("cargo fmt && cargo test"),
        Some(vec!["Bash(cargo fmt:*)".to_owned(), "Bash(cargo test:*)".to_owned()])
    );
}

#[test]
fn no_prefix_hands_out_an_interpreter_or_a_wrapper() {
    for command in [
        "bash x.sh",
        "sh -c ls",
        "zsh x",
        "python x.py",
        "python3.12 x.py",
        "node x.js",
        "perl x.pl",
        "ruby x.rb",
        "php x.php",
        "env ls",
        "sudo ls",
        "doas ls",
        "npx jest",
        "xargs ls",
        "find . -name x",
        "make test",
        "git -c a=b status",
        "git -C x status",
        "ssh host ls",
        "docker run x",
        "docker exec x ls",
        "timeout 5 ls",
        "nohup ls",
        "nice ls",
        "watch ls",
        "eval ls",
        "exec ls",
        "command ls",
        "npm exec x",
        "cargo run",
        "go run .",
        "./build.sh",
        "/usr/bin/git status",
        "awk x",
        "vim x",
        "tee x",
        "rm x",
        "uv run x",
        "git",
        "npm",
        "curl x",
        "sed x",
        "ls && python x.py",
    ] {
        assert_eq!(prefix(command), None, "{command}");
    }
}

#[test]
fn nothing_is_offered_for_what_cannot_be_read() {
    for command in ["echo $X", "ls > f", "$(x)", "a=b ls", "if x; then y; fi"] {
        assert!(rules("bash", &json!({ "command": command })).is_empty(), "{command}");
    }
    assert!(rules("memory.remember", &json!({})).is_empty(), "a fresh approval cannot be given in advance");
    assert!(rules("mcp__a__b__c", &json!({})).is_empty(), "which server is it?");
}

#[test]
fn edits_are_granted_for_the_session_and_saved_by_path() {
    let args = json!({"path": "docs/a (1).md"});
    let offers = offers(&Call::new("write_file", &args).in_workspace("/w"));
    let saved = offers.iter().find(|o| o.lifetime == Lifetime::Saved).expect("an offer");
    assert_eq!(saved.rules, [r"Edit(docs/a \(1\).md)"]);
    let session = offers.iter().find(|o| o.lifetime == Lifetime::Session).expect("an offer");
    assert_eq!(
        (session.kind, session.rules.as_slice()),
        (ScopeKind::AllEdits, ["Edit".to_owned()].as_slice())
    );
}

#[test]
fn an_mcp_tool_is_offered_by_tool_and_by_server() {
    assert_eq!(
        rules("mcp__github__list", &json!({})),
        [
            (ScopeKind::Tool, vec!["Mcp(github/list)".to_owned()]),
            (ScopeKind::Server, vec!["Mcp(github/*)".to_owned()]),
        ]
    );
    assert_eq!(
        rules("net.request", &json!({"url": "https://docs.rs/x"})),
        [(ScopeKind::Host, vec!["Net(https://docs.rs)".to_owned()])]
    );
}
