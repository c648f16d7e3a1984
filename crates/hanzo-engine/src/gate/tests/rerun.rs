//! After the sandbox was in the way: one offer to run the command outside.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use hanzo_protocol::engine::{ApprovalAnswer, Attendance, Posture};
use hanzo_protocol::item::ToolCallStatus;
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::ToolCaller;
use serde_json::json;

use super::world::{Person, Watch, World, call, no, send, yes};
use crate::gate::Answered;

fn stopped() -> ToolCall {
    call(
        "bash",
        &json!({"effect": "execute", "command": "make install", "denial": "write to /usr: Read-only file system"}),
    )
}

#[tokio::test]
async fn a_person_may_let_it_run_again_outside() {
    let world = World { allow: vec!["Bash"], ..World::new() };
    let (gate, runs) = world.gate();
    let (person, watch) = (yes(), Watch::default());
    let gated = send(&gate, &world.step, &stopped(), &person, &watch).await;
    let asked = person.asked();
    assert_eq!(asked.len(), 1, "the first attempt was covered by a rule, leaving the sandbox is not");
    assert!(
        asked[0].reason.contains("In the sandbox it failed: write to /usr: Read-only file system"),
        "{}",
        asked[0].reason
    );
    assert!(asked[0].summary.contains("outside the sandbox") && asked[0].scopes.is_empty());
    assert_eq!((gated.status, gated.result.output.as_str()), (ToolCallStatus::Completed, "done"));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let decisions: Vec<String> =
        watch.audit.lock().unwrap().iter().map(|entry| entry.decision.clone()).collect();
    assert_eq!(decisions, ["allow:rule", "allow:person"]);
}

#[tokio::test]
async fn a_no_leaves_the_first_result_with_a_note() {
    let world = World { allow: vec!["Bash"], ..World::new() };
    let (gate, runs) = world.gate();
    let watch = Watch::default();
    let gated = send(&gate, &world.step, &stopped(), &no(), &watch).await;
    assert_eq!((gated.status, gated.refusal), (ToolCallStatus::Failed, None));
    assert!(
        gated.result.output.starts_with("it failed\n\nnote: it could be run outside"),
        "{}",
        gated.result.output
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!((watch.audit.lock().unwrap().len(), gated.audit.len()), (1, 1));
    assert_eq!(gated.audit[0].decision, "deny:person");
}

#[tokio::test]
async fn it_is_not_offered_where_nobody_could_say_yes_to_it() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 3] = [
        ("nobody is there", |world| world.step.attendance = Attendance::Headless),
        ("yolo asks nothing", |world| world.step.posture = Posture::Yolo),
        ("somebody else calls", |world| world.step.caller = ToolCaller::Remote),
    ];
    for (why, change) in changes {
        let mut world = World { allow: vec!["Bash"], ..World::new() };
        change(&mut world);
        let (gate, runs) = world.gate();
        let person = yes();
        let gated = send(&gate, &world.step, &stopped(), &person, &Watch::default()).await;
        assert_eq!((person.asked().len(), runs.load(Ordering::SeqCst)), (0, 1), "{why}");
        assert!(gated.result.denial.is_some(), "{why}");
    }
    // A tool that cannot leave the sandbox.
    let world = World { allow: vec!["Bash"], ..World::new() };
    let (gate, _) = world.gate();
    let person = yes();
    let bound = call(
        "bash",
        &json!({"effect": "execute", "command": "x", "denial": "network", "stays_inside": true}),
    );
    send(&gate, &world.step, &bound, &person, &Watch::default()).await;
    assert!(person.asked().is_empty());
}

#[tokio::test]
async fn the_same_pipeline_stands_before_the_second_attempt() {
    // The command was let through by a person; a rule that appears under another name does not let it out.
    let world = World { deny: vec!["Bash(make install*)"], ..World::new() };
    let (gate, runs) = world.gate();
    let person = yes();
    let gated = send(&gate, &world.step, &stopped(), &person, &Watch::default()).await;
    assert_eq!((person.asked().len(), runs.load(Ordering::SeqCst)), (0, 0));
    assert!(gated.refusal.is_some());
    // And when the face goes away in between, it stays inside.
    let world = World::new();
    let (gate, runs) = world.gate();
    let first = Answered::By { answer: ApprovalAnswer::Once, face: "test".into() };
    let person = Person { answers: Mutex::new(vec![first, Answered::Nobody]), asked: Mutex::default() };
    let gated = send(&gate, &world.step, &stopped(), &person, &Watch::default()).await;
    assert_eq!((person.asked().len(), runs.load(Ordering::SeqCst)), (2, 1));
    assert_eq!(gated.status, ToolCallStatus::Failed);
}
