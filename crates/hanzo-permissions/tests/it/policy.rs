//! Precedence, fallbacks and explanations.

use hanzo_permissions::{Basis, Call, Decision, List, Opaque, Policy, PolicySource, Rule, strictest};
use serde_json::json;

use crate::{bash, policy};

#[test]
fn deny_beats_ask_beats_allow_beats_the_fallback() {
    let all = policy(&["Bash"], &["Bash(git push:*)"], &["Bash(rm -rf*)"]);
    assert_eq!(bash(&all, "ls"), Decision::Allow);
    assert_eq!(bash(&all, "git push origin main"), Decision::Ask);
    assert_eq!(bash(&all, "rm -rf x"), Decision::Deny);
    assert_eq!(bash(&all, "git push && rm -rf x"), Decision::Deny);
    assert_eq!(bash(&policy(&["Bash(rm -rf x)"], &["Bash"], &["Bash"]), "rm -rf x"), Decision::Deny);
    assert_eq!(bash(&policy(&["Bash(ls)"], &["Bash(ls)"], &[]), "ls"), Decision::Ask);
}

#[test]
fn a_lower_tier_removes_nothing() {
    let mut user = policy(&[], &[], &["Bash(rm:*)"]);
    user.mode = Decision::Deny;
    user.extend(policy(&["Bash", "Bash(rm:*)"], &[], &[]));
    assert_eq!(bash(&user, "rm x"), Decision::Deny);
    assert_eq!(user.mode, Decision::Deny);
}

#[test]
fn readers_run_and_writers_follow_the_mode() {
    let args = json!({"path": "a"});
    for mode in [Decision::Allow, Decision::Ask, Decision::Deny] {
        let policy = Policy { mode, ..Policy::default() };
        assert_eq!(policy.decide(&Call::new("fs.read", &args)), Decision::Allow);
        assert_eq!(policy.decide(&Call::new("fs.write", &args)), mode);
        assert_eq!(policy.decide(&Call::new("mcp__a__b", &args).read_only(true)), mode);
    }
    assert_eq!(Policy::default().mode, Decision::Ask);
}

#[test]
fn other_denies_are_not_walked_round_either() {
    let policy = policy(&["Bash"], &[], &["Bash(git push:*)", "Bash(curl*)", "Bash(npm publish)"]);
    for (line, expected) in [
        ("git push", Decision::Deny),
        ("git --no-pager push", Decision::Deny),
        ("git push origin", Decision::Deny),
        ("git -C /x push", Decision::Ask),
        ("git -c a=b push -f", Decision::Ask),
        ("git $X", Decision::Ask),
        ("git log push", Decision::Allow),
        ("git log --oneline push", Decision::Allow),
        ("git status", Decision::Allow),
        ("git status $X", Decision::Allow),
        ("curl -s x | sh", Decision::Deny),
        ("/usr/bin/curl x", Decision::Deny),
        ("xargs curl", Decision::Deny),
        ("npm publish", Decision::Deny),
        ("npm --tag x publish", Decision::Ask),
        ("npm run publish", Decision::Allow),
        ("wget x", Decision::Allow),
    ] {
        assert_eq!(bash(&policy, line), expected, "{line}");
    }
}

#[test]
fn an_ask_rule_asks_where_it_cannot_be_excluded() {
    let policy = policy(&["Bash"], &["Bash(git push:*)"], &[]);
    let explain = |line: &str| policy.explain(&Call::new("bash", &json!({ "command": line })));
    assert_eq!(explain("$X push").basis, Basis::UnprovenAsk);
    assert_eq!(explain("sudo git push").basis, Basis::Rule);
    assert_eq!(explain("ls").decision, Decision::Allow);
}

#[test]
fn hip_rules_join_the_lists() {
    let source: PolicySource = serde_json::from_value(json!({
        "allow": ["Bash"],
        "rules": [{"tool_pattern": "proc.*", "mode": "deny", "reason": "no commands today"}, {"tool_pattern": "fs.write", "mode": "allow"}],
    }))
    .expect("a source");
    let policy = source.load(Some("project")).expect("a policy");
    let args = json!({"command": "ls"});
    let explanation = policy.explain(&Call::new("bash", &args));
    assert_eq!(explanation.decision, Decision::Deny);
    assert!(explanation.blocked.is_some_and(|message| message.contains("no commands today")));
    assert_eq!(policy.decide(&Call::new("fs.write", &json!({"path": "a"}))), Decision::Allow);
}

#[test]
fn a_hooks_allow_lifts_no_deny() {
    assert_eq!(strictest([Decision::Allow, Decision::Deny]), Decision::Deny);
    assert_eq!(strictest([Decision::Allow, Decision::Ask]), Decision::Ask);
    assert_eq!(strictest([]), Decision::Allow);
}

#[test]
fn an_explanation_names_rule_place_and_command() {
    let mut policy = policy(&["Bash(ls:*)"], &[], &[]);
    policy.deny.push(
        Rule::parse("Bash(rm -rf*)").expect("a rule").with_origin("settings.toml:12:3").with_tier("user"),
    );
    let args = json!({"command": "ls && sudo rm -r -f build"});
    let explanation = policy.explain(&Call::new("bash", &args));
    let rule = explanation.rule.clone().expect("a rule");
    assert_eq!((rule.text.as_str(), rule.list), ("Bash(rm -rf*)", List::Deny));
    assert_eq!(explanation.command.as_deref(), Some("rm -r -f build"));
    assert_eq!(explanation.commands.len(), 2);
    assert_eq!(explanation.commands[0].covered_by.as_deref(), Some("Bash(ls:*)"));
    let blocked = explanation.blocked.clone().expect("a message");
    assert!(blocked.starts_with("blocked: `proc.exec`") && blocked.contains("Bash(rm -rf*)"), "{blocked}");
    let text = explanation.to_string();
    for part in
        ["deny: `proc.exec`", "settings.toml:12:3, user", "deciding command: rm -r -f build", "no allow rule"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let value = serde_json::to_value(&explanation).expect("json");
    assert_eq!(value["rule"]["origin"], "settings.toml:12:3");
    assert_eq!(value["commands"][0]["coveredBy"], "Bash(ls:*)");
    assert_eq!(value["basis"], "rule");
}

#[test]
fn an_explanation_says_why_a_command_is_opaque() {
    let policy = policy(&["Bash(echo:*)"], &[], &["Bash(rm:*)"]);
    let args = json!({"command": "echo $((1))"});
    let explanation = policy.explain(&Call::new("bash", &args));
    assert_eq!(explanation.basis, Basis::UnprovenDeny);
    assert_eq!(explanation.opaque.as_ref().map(|o| o.code), Some(Opaque::Expansion));
    assert!(!explanation.fallback);
    let args = json!({"command": "\u{1b}[31mls"});
    assert!(
        !policy.explain(&Call::new("bash", &args)).to_string().contains('\u{1b}'),
        "nothing reaches the terminal raw"
    );
}
