//! Each step can only narrow: whatever runs with a step in force also runs without it.

use std::sync::Arc;
use std::time::Duration;

use hanzo_hooks::{HookEvent, Hooks};
use hanzo_permissions::BoxState;
use hanzo_protocol::engine::{Attendance, Mode, Posture};
use hanzo_protocol::item::{Taint, ToolCallStatus};
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::{Effect, ToolCaller};
use serde_json::json;

use super::world::{Watch, World, call, calls, hooks, no, send, situations, yes};
use crate::capability::Capabilities;
use crate::gate::Refusal;

async fn runs(world: &World, call: &ToolCall) -> bool {
    world.run(call, &yes()).await.refusal.is_none()
}

/// In every world, for every call: what runs after `with` also runs after `without`. Returns how many calls the step stopped.
async fn only_narrows(without: impl Fn(&mut World), with: impl Fn(&mut World)) -> usize {
    let mut stopped = 0;
    for (world, call) in situations() {
        let (mut loose, mut strict) = (world.clone(), world);
        without(&mut loose);
        with(&mut strict);
        let (before, after) = (runs(&loose, &call).await, runs(&strict, &call).await);
        assert!(before || !after, "the step let `{}` {} through", call.name, call.arguments);
        stopped += usize::from(before && !after);
    }
    stopped
}

fn set(tools: &[&str], effects: Option<Vec<Effect>>) -> Capabilities {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    Capabilities { tools, effects, ..Capabilities::default() }
}

#[tokio::test]
async fn step_1_capability() {
    for narrow in [
        Capabilities::nothing(),
        set(&["fs"], None),
        set(&["*"], Some(vec![Effect::Read, Effect::Execute])),
        set(&["proc.*", "net"], None),
    ] {
        let stopped = only_narrows(|_| (), |world| world.capabilities = narrow.clone()).await;
        assert!(stopped > 0, "{narrow:?}");
        let remote = |world: &mut World| world.step.caller = ToolCaller::Remote;
        let stopped = only_narrows(remote, |world| {
            remote(world);
            world.remote = narrow.clone();
        });
        assert!(stopped.await > 0, "{narrow:?}");
    }
}

#[tokio::test]
async fn step_1_a_remote_caller_gets_no_more_than_a_local_one() {
    assert!(only_narrows(|_| (), |world| world.step.caller = ToolCaller::Remote).await > 0);
}

#[tokio::test]
async fn step_2_plan_mode() {
    let normal = |world: &mut World| world.step.mode = Mode::Normal;
    assert!(only_narrows(normal, |world| world.step.mode = Mode::Plan).await > 0);
}

#[tokio::test]
async fn step_3_taint() {
    let clean = |world: &mut World| world.step.taint = None;
    for taint in [Taint::Network, Taint::Mcp, Taint::Outside] {
        // With a person to say yes everything may run in the end; it shows where nobody is there.
        let stopped = only_narrows(clean, |world| world.step.taint = Some(taint)).await;
        assert!(stopped > 0, "{taint:?}");
    }
}

#[tokio::test]
async fn step_3_loop_guard() {
    let world = World { allow: vec!["Bash"], ..World::new() };
    for call in calls() {
        let (gate, _) = world.gate();
        let mut refused = Vec::new();
        for _ in 0..20 {
            refused.push(send(&gate, &world.step, &call, &yes(), &Watch::default()).await.refusal);
        }
        let first = refused[0];
        // What was refused at first is never let through by repeating it, and what ran is stopped in the end.
        assert!(first.is_none() || refused.iter().all(Option::is_some), "{refused:?}");
        assert_eq!(
            *refused.last().unwrap(),
            Some(Refusal::LoopGuard).filter(|_| first.is_none()).or(*refused.last().unwrap())
        );
        assert!(refused.last().unwrap().is_some(), "{} {refused:?}", call.arguments);
    }
}

#[tokio::test]
async fn step_4_policy() {
    for deny in ["*", "Bash", "Edit(/etc/**)", "fs.write", "write_file", "Net", "probe", "Bash(ls)"] {
        let stopped = only_narrows(|_| (), |world| world.deny.push(deny)).await;
        assert!(stopped > 0, "{deny}");
    }
    for ask in ["*", "Bash", "probe"] {
        only_narrows(|_| (), |world| world.ask.push(ask)).await;
    }
}

#[tokio::test]
async fn step_5_consent() {
    // Nobody to ask never lets through what a person who says yes to everything would not.
    let attended = |world: &mut World| world.step.attendance = Attendance::Attended;
    assert!(only_narrows(attended, |world| world.step.attendance = Attendance::Headless).await > 0);
    // Without the sandbox, less runs when nobody is there.
    let confined = |world: &mut World| world.sandbox = BoxState::On;
    assert!(only_narrows(confined, |world| world.sandbox = BoxState::Off).await > 0);
    // A no is a no.
    for (mut world, call) in situations() {
        world.step.attendance = Attendance::Attended;
        let person = no();
        let with_no = world.run(&call, &person).await;
        let with_yes = world.run(&call, &yes()).await;
        assert!(with_yes.refusal.is_none() || with_no.refusal.is_some());
        if !person.asked().is_empty() && with_no.duration.is_none() {
            assert_eq!(with_no.refusal, Some(Refusal::Person));
            assert_eq!(with_no.status, ToolCallStatus::Denied);
        }
    }
}

#[tokio::test]
async fn step_6_hooks_before() {
    let none = |world: &mut World| world.hooks = Arc::new(Hooks::none());
    for (codes, expected) in
        [(&["0"][..], false), (&["2"], true), (&["0", "1"], true), (&["never ends"], true)]
    {
        let stopped =
            only_narrows(none, |world| world.hooks = Arc::new(hooks(HookEvent::PreToolUse, codes))).await;
        assert_eq!(stopped > 0, expected, "{codes:?}");
    }
}

#[tokio::test]
async fn step_7_the_wall() {
    // The same call with its file outside never runs where it would not run inside.
    for (world, _) in situations() {
        for (name, effect) in
            [("probe", "read"), ("write_file", "write"), ("nickname", "write"), ("fetch", "network")]
        {
            let inside = call(name, &json!({"effect": effect, "path": "etc/x"}));
            let outside = call(name, &json!({"effect": effect, "path": "/etc/x"}));
            assert!(runs(&world, &inside).await || !runs(&world, &outside).await, "{name} {effect}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn step_8_the_time_limit_lets_nothing_through() {
    let stopped = only_narrows(|_| (), |world| world.limits.timeout = Duration::ZERO).await;
    assert_eq!(stopped, 0, "it ends calls, it does not decide about them");
}

#[tokio::test]
async fn steps_9_and_10_change_neither_status_nor_refusal() {
    for code in ["0", "1", "2", "never ends"] {
        let stopped =
            only_narrows(|_| (), |world| world.hooks = Arc::new(hooks(HookEvent::PostToolUse, &[code])))
                .await;
        assert_eq!(stopped, 0, "{code}");
    }
    assert_eq!(only_narrows(|_| (), |world| world.limits.output = 1).await, 0);
}

#[tokio::test]
async fn a_stricter_posture_never_lets_more_through() {
    let posture = |posture| move |world: &mut World| world.step.posture = posture;
    for (loose, strict) in [(Posture::Yolo, Posture::Auto), (Posture::Auto, Posture::Ask)] {
        assert!(only_narrows(posture(loose), posture(strict)).await > 0, "{loose:?} {strict:?}");
    }
}
