//! Postures, headless runs, plan mode, capabilities.

use std::collections::BTreeSet;

use hanzo_permissions::{
    APPROVED_PLAN, BoxState, Call, Caller, Decision, EdgeKind, Headless, capability, headless, plan_mode,
};
use hanzo_protocol::engine::Posture;
use serde_json::json;

use crate::policy;

#[test]
fn postures_approve_what_they_promise_and_no_more() {
    let policy = policy(&[], &["Bash(git push:*)"], &["Bash(rm -rf*)"]);
    let resolve = |posture: Posture, command: &str| {
        policy.explain(&Call::new("bash", &json!({ "command": command }))).under(posture)
    };
    let cases = [
        ("make all", [Decision::Ask, Decision::Allow, Decision::Allow, Decision::Allow]),
        ("git push", [Decision::Ask, Decision::Ask, Decision::Allow, Decision::Allow]),
        ("rm -rf x", [Decision::Deny; 4]),
        ("$X -rf x", [Decision::Ask; 4]),
    ];
    for (command, expected) in cases {
        let postures = [Posture::Ask, Posture::Auto, Posture::Yolo, APPROVED_PLAN];
        assert_eq!(postures.map(|posture| resolve(posture, command)), expected, "{command}");
    }
}

#[test]
fn no_posture_replaces_a_person() {
    let args = json!({});
    let policy = policy(&["*"], &[], &[]);
    for tool in ["memory.remember", "remember", "forget", "ask", "ui.ask", "exit_plan_mode"] {
        let explanation = policy.explain(&Call::new(tool, &args));
        for posture in [Posture::Ask, Posture::Auto, Posture::Yolo, APPROVED_PLAN] {
            assert_eq!(explanation.under(posture), Decision::Ask, "{tool} in {posture:?}");
        }
        assert!(
            matches!(
                explanation.headless(Posture::Yolo, BoxState::On, EdgeKind::Inside),
                Headless::Refuse(_)
            ),
            "{tool}"
        );
    }
}

#[test]
fn headless_runs_inside_the_box_and_stops_at_its_edge() {
    use EdgeKind::{BeyondCapabilities, Inside, Memory, Network, OutsideWrite};
    let runs = |decision, sandbox, edge| headless(decision, sandbox, edge) == Headless::Run;
    assert!(runs(Decision::Ask, BoxState::On, Inside));
    for edge in [Network, OutsideWrite, Memory, BeyondCapabilities] {
        assert!(!runs(Decision::Ask, BoxState::On, edge), "{edge:?}");
    }
    assert!(!runs(Decision::Ask, BoxState::Off, Inside));
    assert!(runs(Decision::Allow, BoxState::Off, Inside));
    assert!(runs(Decision::Allow, BoxState::On, Network));
    for edge in [Memory, BeyondCapabilities] {
        assert!(!runs(Decision::Allow, BoxState::On, edge), "{edge:?}");
    }
    for edge in [Inside, Network, OutsideWrite, Memory] {
        assert!(!runs(Decision::Deny, BoxState::On, edge), "{edge:?}");
    }
}

#[test]
fn a_possible_deny_is_refused_headless_even_inside_the_box() {
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    let args = json!({"command": "$(echo rm) -rf x"});
    let explanation = policy.explain(&Call::new("bash", &args));
    assert!(matches!(
        explanation.headless(Posture::Yolo, BoxState::On, EdgeKind::Inside),
        Headless::Refuse(_)
    ));
    let args = json!({"command": "ls"});
    let explanation = policy.explain(&Call::new("bash", &args));
    assert_eq!(explanation.headless(Posture::Ask, BoxState::On, EdgeKind::Inside), Headless::Run);
}

#[test]
fn plan_mode_refuses_every_writer() {
    let args = json!({"path": "a", "command": "ls"});
    for tool in ["fs.write", "bash", "edit_file", "mcp__a__b", "net.request", "plugin", "memory.forget"] {
        assert_eq!(plan_mode(&Call::new(tool, &args)), Decision::Deny, "{tool}");
    }
    assert_eq!(
        plan_mode(&Call::new("mcp__a__b", &args).read_only(true)),
        Decision::Deny,
        "a hint alone is no proof"
    );
    for tool in ["fs.read", "grep", "ls", "exit_plan_mode", "ask"] {
        assert_eq!(plan_mode(&Call::new(tool, &args)), Decision::Allow, "{tool}");
    }
}

#[test]
fn an_action_needs_both_permissions_and_a_known_caller() {
    let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
    let (tool, user) = (set(&["read", "write"]), set(&["read"]));
    assert_eq!(capability("read", &tool, Caller::User(&user)), Decision::Allow);
    assert_eq!(capability("write", &tool, Caller::User(&user)), Decision::Deny);
    assert_eq!(capability("read", &set(&[]), Caller::User(&user)), Decision::Deny);
    assert_eq!(capability("read", &tool, Caller::Unauthenticated), Decision::Deny);
}
