//! The rule for when nobody is there (C7), as a table: *allowed inside the box, refused at its edge*.

use hanzo_permissions::BoxState;
use hanzo_protocol::engine::{Attendance, Posture};
use hanzo_protocol::item::Taint;
use serde_json::{Value, json};

use super::world::{World, call, yes};
use crate::gate::{Answered, Refusal};

/// Posture ask, auto, yolo; `x` runs, `.` is refused. First with the box on, then with it off.
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("a reader", "probe", "xxx", "xxx"),
    ("a write in the workspace", "write inside", "xxx", ".xx"),
    ("a command in the jail", "command", "xxx", ".xx"),
    ("the network, which is closed", "network", ".xx", ".xx"),
    ("a write outside", "write outside", ".xx", ".xx"),
    ("memory", "memory", "...", "..."),
    ("memory by another tool", "own memory", "...", "..."),
    ("leaving the sandbox", "unconfined", "..x", "..x"),
    ("the screen", "screen", ".xx", ".xx"),
    ("accepting a plan", "plan", "...", "..."),
    ("what a rule asks about", "asked", "xxx", "..x"),
    ("what may be a denied command", "opaque", "...", "..."),
    ("what a rule denies", "denied", "...", "..."),
];

fn arguments(what: &str) -> (&'static str, Value) {
    match what {
        "probe" => ("probe", json!({})),
        "write inside" => ("write_file", json!({"effect": "write", "path": "a.rs"})),
        "write outside" => ("write_file", json!({"effect": "write", "path": "/etc/hosts"})),
        "command" => ("bash", json!({"effect": "execute", "command": "make"})),
        "network" => ("fetch", json!({"effect": "network", "url": "https://example.com/"})),
        "memory" => ("remember", json!({"effect": "memory"})),
        "own memory" => ("probe", json!({"effect": "memory"})),
        "unconfined" => ("bash", json!({"effect": "execute", "command": "make", "unconfined": true})),
        "screen" => ("probe", json!({"effect": "screen"})),
        "plan" => ("exit_plan_mode", json!({"effect": "write"})),
        "asked" => ("bash", json!({"effect": "execute", "command": "git push"})),
        "opaque" => ("bash", json!({"effect": "execute", "command": "$X -rf y"})),
        "denied" => ("bash", json!({"effect": "execute", "command": "rm -rf y"})),
        other => panic!("no such call: {other}"),
    }
}

fn world(posture: Posture, sandbox: BoxState) -> World {
    let mut world =
        World { sandbox, ask: vec!["Bash(git push*)"], deny: vec!["Bash(rm -rf*)"], ..World::new() };
    world.step.posture = posture;
    world.step.attendance = Attendance::Headless;
    world
}

#[tokio::test]
async fn nobody_is_there() {
    let mut wrong = Vec::new();
    for (label, what, on, off) in TABLE {
        for (sandbox, expected) in [(BoxState::On, on), (BoxState::Off, off)] {
            let (name, arguments) = arguments(what);
            let mut found = String::new();
            for posture in [Posture::Ask, Posture::Auto, Posture::Yolo] {
                let gated = world(posture, sandbox).run(&call(name, &arguments), &yes()).await;
                found.push(if gated.refusal.is_none() { 'x' } else { '.' });
                if let Some(refusal) = gated.refusal {
                    let denied = *what == "denied";
                    assert_eq!(refusal, if denied { Refusal::Rule } else { Refusal::NeedsPerson }, "{label}");
                }
            }
            if found != **expected {
                wrong.push(format!("{label}, box {sandbox:?}: {found} instead of {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_face_that_goes_away_while_it_is_asked_leaves_the_headless_rule() {
    let nobody = yes();
    *nobody.answers.lock().unwrap() = vec![Answered::Nobody];
    for (what, sandbox, runs) in [
        ("command", BoxState::On, true),
        ("command", BoxState::Off, false),
        ("network", BoxState::On, false),
        ("plan", BoxState::On, false),
    ] {
        let (name, arguments) = arguments(what);
        let mut world = world(Posture::Ask, sandbox);
        world.step.attendance = Attendance::Attended;
        let gated = world.run(&call(name, &arguments), &nobody).await;
        assert_eq!(gated.refusal.is_none(), runs, "{what}");
    }
}

#[tokio::test]
async fn with_the_network_open_it_is_inside_the_box_until_something_untrusted_was_read() {
    let (name, arguments) = arguments("network");
    let mut world = World { network: true, ..world(Posture::Ask, BoxState::On) };
    assert_eq!(world.run(&call(name, &arguments), &yes()).await.refusal, None);
    world.step.taint = Some(Taint::Network);
    assert_eq!(world.run(&call(name, &arguments), &yes()).await.refusal, Some(Refusal::NeedsPerson));
}

#[tokio::test]
async fn a_refusal_names_the_rule_that_would_allow_the_call() {
    for (what, rule) in
        [("command", "`Bash(make)`"), ("write outside", "`Edit(/etc/hosts)`"), ("network", "`Net(")]
    {
        let (name, arguments) = arguments(what);
        let gated = world(Posture::Ask, BoxState::Off).run(&call(name, &arguments), &yes()).await;
        let text = gated.result.error.unwrap();
        assert!(text.contains("The user could allow it with the rule") && text.contains(rule), "{text}");
        // And it is true.
        let mut world = world(Posture::Ask, BoxState::Off);
        let rule = text.split('`').rev().nth(1).unwrap().to_owned();
        world.allow.push(Box::leak(rule.into_boxed_str()));
        assert_eq!(world.run(&call(name, &arguments), &yes()).await.refusal, None, "{text}");
    }
}

#[tokio::test]
async fn while_untrusted_content_is_about_auto_does_not_cover_the_edge() {
    for (what, runs) in [
        ("write inside", true),
        ("command", true),
        ("network", false),
        ("write outside", false),
        ("screen", false),
    ] {
        let (name, arguments) = arguments(what);
        let mut world = world(Posture::Auto, BoxState::On);
        world.step.taint = Some(Taint::Mcp);
        assert_eq!(world.run(&call(name, &arguments), &yes()).await.refusal.is_none(), runs, "{what}");
    }
    // Posture yolo promised to ask nothing, but the sandbox is what holds untrusted content.
    for (what, runs) in [("network", true), ("unconfined", false)] {
        let (name, arguments) = arguments(what);
        let mut world = world(Posture::Yolo, BoxState::On);
        world.step.taint = Some(Taint::Mcp);
        assert_eq!(world.run(&call(name, &arguments), &yes()).await.refusal.is_none(), runs, "{what}");
    }
}
