//! What rules look at in a call.

use std::borrow::Cow;

use hanzo_permissions::{Access, Call, Classification, Decision, Family, Policy, Trust};
use serde_json::{Value, json};

use crate::policy;

fn subjects(tool: &str, args: &Value) -> Vec<String> {
    Call::new(tool, args).facts().subjects().map(Cow::into_owned).collect()
}

#[test]
fn the_subject_belongs_to_the_tool_that_owns_the_key() {
    assert_eq!(subjects("bash", &json!({"command": "ls", "path": "x"})), ["ls"]);
    assert_eq!(subjects("fs.write", &json!({"path": "a", "command": "ls"})), ["a"]);
    assert_eq!(subjects("fs.read", &json!({"uri": "file:///a"})), ["file:///a"]);
    assert_eq!(subjects("move_file", &json!({"source": "a", "destination": "b"})), ["a", "b"]);
    assert_eq!(subjects("fs.mv", &json!({"path": "a", "to": "b"})), ["a", "b"]);
    assert_eq!(subjects("grep", &json!({"pattern": "x", "path": "src"})), ["src", "x"]);
    assert_eq!(subjects("net.request", &json!({"url": "https://x.org/"})), ["https://x.org/"]);
    assert_eq!(subjects("proc.exec", &json!({"command": ["a", "b c"]})), ["a b c"]);
    assert!(subjects("mcp__x__y", &json!({"command": "ls", "path": "a"})).is_empty());
    assert!(subjects("some_plugin", &json!({"command": "ls"})).is_empty());
}

#[test]
fn two_spellings_of_a_key_are_two_subjects() {
    let args = json!({"path": "docs/a", "file_path": "secret/b"});
    assert_eq!(policy(&["Edit(docs/**)"], &[], &[]).decide(&Call::new("write_file", &args)), Decision::Ask);
    assert_eq!(
        policy(&["Edit"], &[], &["Edit(secret/**)"]).decide(&Call::new("write_file", &args)),
        Decision::Deny
    );
}

#[test]
fn a_specifier_never_matches_a_call_without_a_subject() {
    for (tool, args) in [
        ("mcp__x__y", json!({"path": "docs/a"})),
        ("fs.write", json!({})),
        ("plugin", json!({"command": "ls"})),
    ] {
        let call = Call::new(tool, &args);
        for specifier in ["(docs/**)", "(**)", "(*)", "(ls:*)"] {
            let rule = format!("{tool}{specifier}");
            assert_eq!(policy(&[&rule], &[], &[]).decide(&call), Decision::Ask, "{rule}");
            assert_eq!(policy(&["*"], &[], &[&rule]).decide(&call), Decision::Allow, "{rule}");
        }
        assert_eq!(policy(&[tool], &[], &[]).decide(&call), Decision::Allow, "the bare form of {tool}");
    }
}

#[test]
fn every_file_of_a_patch_and_both_ends_of_a_move_count() {
    let patch =
        json!({"patch": "*** Begin Patch\n*** Update File: docs/a\n*** Move to: secret/b\n*** End Patch"});
    let call = Call::new("fs.apply_patch", &patch);
    assert_eq!(policy(&["Edit(docs/**)"], &[], &[]).decide(&call), Decision::Ask);
    assert_eq!(policy(&["Edit(docs/**)", "Edit(secret/*)"], &[], &[]).decide(&call), Decision::Allow);
    assert_eq!(policy(&["Edit"], &[], &["Edit(secret/**)"]).decide(&call), Decision::Deny);
    let unreadable = json!({"patch": "--- \"a/\\303\"\n"});
    let call = Call::new("fs.apply_patch", &unreadable);
    assert_eq!(policy(&["Edit"], &[], &["Edit(secret/**)"]).decide(&call), Decision::Ask);
    let moved = json!({"source": "secret/a", "destination": "docs/a"});
    assert_eq!(policy(&["Edit(docs/**)"], &[], &[]).decide(&Call::new("move_file", &moved)), Decision::Ask);
    assert_eq!(
        policy(&["Edit"], &[], &["Edit(secret/**)"]).decide(&Call::new("move_file", &moved)),
        Decision::Deny
    );
}

#[test]
fn a_resolved_path_counts_beside_the_written_one() {
    let args = json!({"path": "docs/link"});
    let call = Call::new("fs.write", &args).in_workspace("/w").with_resolved("docs/link", "/etc/passwd");
    assert_eq!(policy(&["Edit(docs/**)"], &[], &[]).decide(&call), Decision::Ask);
    assert_eq!(policy(&["Edit"], &[], &["Edit(/etc/**)"]).decide(&call), Decision::Deny);
    assert_eq!(
        policy(&["Edit(docs/**)", "Edit(/etc/passwd)"], &[], &[]).decide(&call),
        Decision::Ask,
        "one rule must cover both"
    );
}

#[test]
fn words_of_an_argv_are_not_shell_text() {
    let decide =
        |policy: &Policy, argv: Value| policy.decide(&Call::new("proc.exec", &json!({"command": argv})));
    let echo = policy(&["Bash(echo:*)"], &[], &["Bash(rm -rf*)"]);
    assert_eq!(decide(&echo, json!(["echo", "a; touch b", "$(id)"])), Decision::Allow);
    assert_eq!(decide(&echo, json!(["echo x", "y"])), Decision::Ask);
    assert_eq!(decide(&echo, json!(["/tmp/echo", "y"])), Decision::Ask);
    let all = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    for argv in [
        json!(["rm", "-rf", "x"]),
        json!(["/bin/rm", "-r", "-f", "x"]),
        json!(["sudo", "-u", "x", "rm", "-fr", "y"]),
        json!(["bash", "-c", "ls; rm -rf x"]),
        json!(["env", "A=b", "sh", "-c", "rm -rf x"]),
    ] {
        assert_eq!(decide(&all, argv.clone()), Decision::Deny, "{argv}");
    }
    for argv in [json!(["bash", "-c", "$X -rf y"]), json!([1, 2]), json!([]), json!(["sh"])] {
        assert_eq!(decide(&all, argv.clone()), Decision::Ask, "{argv}");
    }
}

#[test]
fn an_environment_in_the_arguments_is_an_assignment() {
    let policy = policy(&["Bash(git status:*)"], &[], &[]);
    let plain = json!({"command": "git status", "env": {}});
    let steered = json!({"command": "git status", "env": {"PATH": "."}});
    assert_eq!(policy.decide(&Call::new("proc.exec", &plain)), Decision::Allow);
    assert_eq!(policy.decide(&Call::new("proc.exec", &steered)), Decision::Ask);
}

#[test]
fn a_missing_action_is_not_taken_for_a_harmless_one() {
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    let args = json!({"command": "rm -rf x"});
    assert_eq!(policy.decide(&Call::new("proc", &args)), Decision::Deny);
    assert_eq!(Policy::default().decide(&Call::new("proc", &args)), Decision::Ask);
    assert_eq!(Policy::default().decide(&Call::new("fs", &json!({"path": "a", "action": 1}))), Decision::Ask);
    assert_eq!(
        Policy::default().decide(&Call::new("fs", &json!({}))),
        Decision::Allow,
        "only its description"
    );
}

#[test]
fn a_contradicting_action_counts_as_both() {
    let args = json!({"action": "rm", "path": "a"});
    let call = Call::new("fs.read", &args);
    assert_eq!(Policy::default().decide(&call), Decision::Ask);
    assert_eq!(policy(&["fs.read"], &[], &[]).decide(&call), Decision::Ask);
    assert_eq!(policy(&["*"], &[], &["fs.rm"]).decide(&call), Decision::Deny);
}

#[test]
fn a_download_needs_a_rule_for_each_side() {
    let args = json!({"url": "https://docs.rs/x", "output": ".git/hooks/pre-commit"});
    let call = Call::new("net.download", &args);
    assert_eq!(call.facts().families(), [Family::Net, Family::Edit]);
    assert_eq!(policy(&["Net"], &[], &[]).decide(&call), Decision::Ask);
    assert_eq!(policy(&["Net", "Edit"], &[], &[]).decide(&call), Decision::Allow);
    assert_eq!(policy(&["Net", "Edit"], &[], &["Edit(.git/**)"]).decide(&call), Decision::Deny);
}

#[test]
fn only_reliable_claims_make_a_reader() {
    let args = json!({});
    let access = |tool: &str, claim| Call::new(tool, &args).classified(claim).facts().access();
    assert_eq!(access("fs.read", Classification::Table), Access::Reader);
    assert_eq!(access("fs.write", Classification::Host(Access::Reader)), Access::Writer);
    assert_eq!(access("plugin", Classification::Table), Access::Writer);
    assert_eq!(access("plugin", Classification::Host(Access::Reader)), Access::Reader);
    assert_eq!(access("mcp__a__b", Classification::Table), Access::Writer);
    assert_eq!(access("mcp__a__b", Classification::Hint(Access::Reader, Trust::Untrusted)), Access::Writer);
    assert_eq!(access("mcp__a__b", Classification::Hint(Access::Reader, Trust::Trusted)), Access::Reader);
    assert_eq!(
        access("fs", Classification::Table),
        Access::Reader,
        "without an action a tool describes itself"
    );
}

#[test]
fn a_server_cannot_borrow_another_servers_name() {
    let args = json!({});
    let policy = policy(&["Mcp(github/*)"], &[], &[]);
    assert_eq!(policy.decide(&Call::new("mcp__github__list", &args)), Decision::Allow);
    assert_eq!(policy.decide(&Call::new("mcp__github__evil__list", &args)), Decision::Ask);
}

#[test]
fn running_tests_runs_a_program_and_looking_at_them_does_not() {
    let none = json!({});
    let run = Call::new("test.run", &none);
    assert_eq!(run.facts().families(), [Family::Bash]);
    assert_eq!(run.facts().access(), Access::Writer);
    assert_eq!(run.clone().read_only(true).facts().access(), Access::Writer, "no host can make it a reader");
    assert_eq!(Policy::default().decide(&run), Decision::Ask);
    assert_eq!(policy(&["test.run"], &[], &[]).decide(&run), Decision::Allow);
    assert_eq!(policy(&["Bash"], &[], &[]).decide(&run), Decision::Allow);
    assert_eq!(policy(&[], &[], &["Bash"]).decide(&run), Decision::Deny);
    // Which program it is stands in the project's files: an allowed command does not cover it, a denied one may be it.
    assert_eq!(policy(&["Bash(cargo test:*)"], &[], &[]).decide(&run), Decision::Ask);
    assert_eq!(policy(&["*"], &[], &["Bash(rm:*)"]).decide(&run), Decision::Ask);
    let command = json!({"action": "run", "command": "rm -rf /", "report": "x.xml"});
    let given = Call::new("test", &command);
    assert_eq!(policy(&["*"], &[], &["Bash(rm:*)"]).decide(&given), Decision::Deny);
    assert_eq!(policy(&["Bash(make check)"], &[], &[]).decide(&given), Decision::Ask);
    for name in ["test.list", "test.status", "ws.detect", "ws.capabilities", "ws.help", "ws.schema"] {
        assert_eq!(Call::new(name, &none).facts().access(), Access::Reader, "{name}");
        assert_eq!(Policy::default().decide(&Call::new(name, &none)), Decision::Allow, "{name}");
    }
    let secret = json!({"path": "secret/a"});
    for name in ["test.list", "ws.detect"] {
        let call = Call::new(name, &secret);
        assert_eq!(policy(&[], &[], &["Read(secret/**)"]).decide(&call), Decision::Deny, "{name}");
    }
    let files = json!({"work_description": "x", "file_paths": ["ok", "secret/a"]});
    let review = Call::new("think.review", &files);
    assert_eq!(policy(&[], &[], &["Read(secret/**)"]).decide(&review), Decision::Deny);
}

#[test]
fn a_mode_may_be_entered_freely_and_is_left_by_the_user_only() {
    let none = json!({});
    for name in ["mode.list", "mode.show", "mode.current", "mode.activate", "think.think", "think.critic"] {
        assert_eq!(Policy::default().decide(&Call::new(name, &none)), Decision::Allow, "{name}");
    }
    let leave = Call::new("mode.leave", &none);
    assert_eq!(policy(&["*", "mode", "mode.leave"], &[], &[]).decide(&leave), Decision::Ask);
    assert_eq!(policy(&[], &[], &["mode.leave"]).decide(&leave), Decision::Deny);
    assert_eq!(hanzo_permissions::plan_mode(&leave), Decision::Allow, "it is a question");
}
