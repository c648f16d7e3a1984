//! The rule grammar.

use hanzo_permissions::{Call, Decision, PolicySource, Rule, RuleError};
use serde_json::{Value, json};

use crate::{bash, policy};

fn decide(allow: &str, tool: &str, args: &Value) -> Decision {
    policy(&[allow], &[], &[]).decide(&Call::new(tool, args).in_workspace("/w"))
}

fn denied(deny: &str, tool: &str, args: &Value) -> bool {
    policy(&["*"], &[], &[deny]).decide(&Call::new(tool, args).in_workspace("/w")) == Decision::Deny
}

#[test]
fn a_rule_names_a_tool_in_every_vocabulary() {
    let path = json!({"path": "a"});
    for rule in [
        "fs.write",
        "fs",
        "Edit",
        "write_file",
        "fs.*",
        "*",
        "Edit(a)",
        "fs.write(a)",
        "fs(a)",
        "write_file(a)",
        "write_file=a",
    ] {
        assert_eq!(decide(rule, "fs.write", &path), Decision::Allow, "{rule}");
        assert_eq!(decide(rule, "write_file", &path), Decision::Allow, "{rule} by the older name");
        assert_eq!(
            decide(rule, "fs", &json!({"action": "write", "path": "a"})),
            Decision::Allow,
            "{rule} by action"
        );
    }
    for rule in ["fs.read", "Read", "Bash", "fs.rm", "proc", "mcp__*", "fs.write(b)", "fs.write=b", "f"] {
        assert_eq!(decide(rule, "fs.write", &path), Decision::Ask, "{rule}");
    }
}

#[test]
fn the_edit_family_covers_every_way_to_change_files() {
    for tool in [
        "fs.apply_patch",
        "fs.write",
        "fs.rm",
        "fs.mv",
        "fs.mkdir",
        "edit_file",
        "write_file",
        "multi_edit",
        "move_file",
        "notebook_edit",
        "delete_symbol",
        "delete_range",
        "create_directory",
    ] {
        assert!(denied("Edit", tool, &json!({"path": "docs/x"})), "{tool}");
        assert!(denied("Edit(docs/**)", tool, &json!({"path": "docs/x"})), "{tool}");
        assert!(!denied("Edit(src/**)", tool, &json!({"path": "docs/x"})), "{tool}");
        assert!(!denied("Read", tool, &json!({"path": "docs/x"})), "{tool}");
    }
}

#[test]
fn the_other_families_cover_their_tools() {
    for tool in ["proc.exec", "bash", "shell"] {
        assert!(denied("Bash", tool, &json!({"command": "ls"})), "{tool}");
    }
    for tool in ["fs.read", "read_file", "ls", "grep", "glob", "fs.search_text", "fs.stat"] {
        assert!(denied("Read", tool, &json!({"path": "x"})), "{tool}");
    }
    assert!(denied("Net", "net.request", &json!({"url": "https://x.org"})));
    assert!(denied("Net(x.org)", "web_fetch", &json!({"url": "https://x.org/y"})));
    assert!(denied("Net(x.org)", "net.websocket", &json!({"url": "wss://x.org/y"})));
    assert!(denied("Net(x.org)", "websocket_connect", &json!({"url": "wss://x.org/y"})));
    assert!(denied("Net(x.org)", "net.dns", &json!({"host": "x.org"})));
    assert!(denied("Net(x.org)", "dns_lookup", &json!({"hostname": "X.org."})));
    assert!(denied("Net(x.org)", "net.open", &json!({"url": "https://x.org/y"})));
    assert!(denied("Net", "net", &json!({"action": "websocket", "ws_id": "ws_1"})));
    assert!(denied("Mcp", "mcp__a__b", &json!({})));
    assert!(denied("Mcp(a/b*)", "mcp__a__bc", &json!({})));
    assert!(!denied("Mcp(a/b)", "mcp__a__bc", &json!({})));
}

#[test]
fn older_rules_load() {
    let command = json!({"command": "go test ./..."});
    for rule in ["bash", "bash(go test *)", "Bash(go test *)", "bash=go test ./..."] {
        assert_eq!(decide(rule, "bash", &command), Decision::Allow, "{rule}");
    }
    assert_eq!(decide("bash=go test", "bash", &command), Decision::Ask, "a literal is not a prefix");
    for rule in [
        "edit_file",
        "write_file",
        "multi_edit",
        "move_file",
        "read_file",
        "ls",
        "grep",
        "glob",
        "write_file=docs/a.md",
    ] {
        Rule::parse(rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
    }
    assert_eq!(decide("grep(TODO*)", "grep", &json!({"pattern": "TODO x", "path": "src"})), Decision::Allow);
}

#[test]
fn rules_are_saved_in_todays_spelling() {
    let cases = [
        ("Bash(go test *)", "Bash(go test:*)"),
        ("Bash(go test:*)", "Bash(go test:*)"),
        ("bash(go test *)", "Bash(go test:*)"),
        ("bash=echo (*)", r"Bash(echo \(\*\))"),
        ("bash", "Bash"),
        ("Bash(git * main *)", "Bash(git * main *)"),
        (r"Bash(echo \*)", r"Bash(echo \*)"),
        ("write_file=docs/a.md", "write_file(docs/a.md)"),
        ("Edit(docs/**)", "Edit(docs/**)"),
        ("mcp__*", "mcp__*"),
    ];
    for (old, new) in cases {
        let normalised = Rule::parse(old).expect("a rule").normalised();
        assert_eq!(normalised, new);
        assert_eq!(Rule::parse(&normalised).expect("a rule").normalised(), new, "stable");
    }
}

#[test]
fn a_prefix_ends_at_a_word_and_takes_no_operators() {
    let policy = policy(&["Bash(go test:*)"], &[], &[]);
    for (line, expected) in [
        ("go test", Decision::Allow),
        ("go test ./...", Decision::Allow),
        ("go test 'a && b'", Decision::Allow),
        ("go test ./... 2>&1", Decision::Allow),
        ("go testing", Decision::Ask),
        ("go test ./... && rm -rf tmp", Decision::Ask),
        ("go test | tee log", Decision::Ask),
        ("go", Decision::Ask),
    ] {
        assert_eq!(bash(&policy, line), expected, "{line}");
    }
}

#[test]
fn stars_cross_everything_in_commands_and_stay_in_a_segment_in_paths() {
    assert_eq!(
        decide("Bash(npm run *:ci --flag)", "bash", &json!({"command": "npm run a/b/c:ci --flag"})),
        Decision::Allow
    );
    assert_eq!(decide("Edit(src/*.rs)", "fs.write", &json!({"path": "src/a.rs"})), Decision::Allow);
    assert_eq!(decide("Edit(src/*.rs)", "fs.write", &json!({"path": "src/a/b.rs"})), Decision::Ask);
    assert_eq!(decide("Edit(src/**)", "fs.write", &json!({"path": "src/a/b.rs"})), Decision::Allow);
    assert_eq!(decide("Edit(src/**)", "fs.write", &json!({"path": "src/../etc/x"})), Decision::Ask);
    assert_eq!(decide("Edit(src/**)", "fs.write", &json!({"uri": "file:///w/src/%61"})), Decision::Allow);
    assert_eq!(decide("Edit(**)", "fs.write", &json!({"path": "../x"})), Decision::Ask);
}

#[test]
fn mistakes_are_explained() {
    let message = |rule: &str| Rule::parse(rule).expect_err("an error").to_string();
    assert!(matches!(Rule::parse(" "), Err(RuleError::Empty)));
    assert!(matches!(Rule::parse("Bash(ls"), Err(RuleError::Unclosed { position: 4, .. })));
    assert!(matches!(Rule::parse(r"Bash(ls\)"), Err(RuleError::Unclosed { .. })));
    assert!(matches!(Rule::parse("Bash()"), Err(RuleError::EmptySpecifier { position: 4, .. })));
    assert!(matches!(Rule::parse("go test"), Err(RuleError::BadTool { found: ' ', position: 2, .. })));
    assert!(matches!(Rule::parse(&"x".repeat(5000)), Err(RuleError::TooLong { length: 5000 })));
    assert!(message("Bsh(ls)").contains("did you mean `Bash`"), "{}", message("Bsh(ls)"));
    assert!(message("EDIT").contains("`Edit`") && message("EDIT").contains("hint:"), "{}", message("EDIT"));
}

#[test]
fn examples_are_checked_when_a_rule_is_loaded() {
    let load = |text: &str| serde_json::from_str::<PolicySource>(text).expect("a source").load(Some("user"));
    assert!(load(r#"{"deny": [{"rule": "Bash(rm -rf*)", "match": ["rm -fr x", "sudo rm -r -f x"], "not_match": ["rm x"]}]}"#).is_ok());
    assert!(
        load(r#"{"allow": [{"rule": "Edit(docs/**)", "match": ["docs/a"], "not_match": ["src/a"]}]}"#)
            .is_ok()
    );
    assert!(load(r#"{"allow": [{"rule": "Mcp(a/*)", "match": ["a/b"], "not_match": ["b/a"]}]}"#).is_ok());
    assert!(
        load(r#"{"allow": [{"rule": "mcp__*", "match": ["mcp__a__b"], "not_match": ["fs.read"]}]}"#).is_ok()
    );
    let error = load(
        r#"{"allow": [{"rule": "Bash(go test:*)", "match": ["go test && ls"], "origin": "settings.toml:3:1"}]}"#,
    );
    let message = error.expect_err("an error").to_string();
    assert!(message.starts_with("settings.toml:3:1:") && message.contains("go test && ls"), "{message}");
    let error = load(r#"{"deny": [{"rule": "Bash(rm:*)", "not_match": ["rm x"]}]}"#);
    assert!(error.expect_err("an error").to_string().contains("matches its example"));
}

#[test]
fn policies_load_from_json_and_toml_and_from_a_bare_list() {
    let toml: PolicySource = toml::from_str(
        "mode = 'deny'\nallow = ['Bash(ls:*)', { rule = 'Edit(docs/**)', match = ['docs/a'] }]\nask = ['Net']\n\
         deny = ['Bash(rm:*)']\n[[rules]]\ntool_pattern = 'mcp__*'\nmode = 'prompt'\nreason = 'not ours'\n",
    )
    .expect("a source");
    let policy = toml.load(None).expect("a policy");
    assert_eq!(
        (policy.mode, policy.allow.len(), policy.ask.len(), policy.deny.len()),
        (Decision::Deny, 2, 2, 1)
    );
    let bare: PolicySource =
        serde_json::from_str(r#"[{"tool_pattern": "fs.*", "mode": "deny", "reason": "read only"}]"#)
            .expect("a source");
    let policy = bare.load(Some("project")).expect("a policy");
    assert_eq!(policy.decide(&Call::new("fs.read", &json!({}))), Decision::Deny);
    assert_eq!(policy.deny[0].reason(), Some("read only"));
    assert!(
        serde_json::from_str::<PolicySource>(r#"{"alow": []}"#).is_err(),
        "a misspelt key is not ignored"
    );
}
