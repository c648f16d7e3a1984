//! Plan mode in a turn: a plan is proposed, accepted and carried out; a large task begins with one.

use hanzo_protocol::engine::{
    ApprovalAnswer, ApprovalRespond, Mode, Posture, ThreadConfigure, ThreadOptions, TurnStart,
};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::ToolCallStatus;
use hanzo_protocol::message::{StopReason, StreamEvent};

use crate::harness::{Bench, Brain, Setup, Watch, ask};
use crate::mocks::{call, stop, text};

const PLAN: &str = r#"{"action":"exit","plan":"1. Change it."}"#;

fn done() -> Vec<StreamEvent> {
    vec![text("Done."), stop(StopReason::EndTurn)]
}

fn options(mode: Mode, posture: Posture) -> ThreadOptions {
    ThreadOptions { mode: Some(mode), posture: Some(posture), ..ThreadOptions::default() }
}

async fn answer(bench: &Bench, watch: &mut Watch<'_>, answer: ApprovalAnswer) -> String {
    let (_, approval) = watch
        .until(|content| match content {
            EventContent::ApprovalRequested { approval } => Some(approval.clone()),
            _ => None,
        })
        .await;
    let respond = ApprovalRespond { approval_id: approval.approval_id, answer, by: "test".into() };
    ask!(bench.engine, ApprovalRespond, respond).unwrap();
    approval.summary
}

#[tokio::test]
async fn an_accepted_plan_ends_plan_mode_and_is_carried_out_in_a_window_that_closes() {
    let ask_for_all = hanzo_permissions::Policy {
        mode: hanzo_permissions::Decision::Ask,
        ..hanzo_permissions::Policy::default()
    };
    // Whatever the posture, the plan waits for the user.
    for posture in [Posture::Ask, Posture::Auto, Posture::Yolo] {
        let brain = Brain::saying(vec![
            vec![call("1", "change", "{}"), stop(StopReason::ToolUse)],
            vec![call("2", "plan", PLAN), stop(StopReason::ToolUse)],
            vec![call("3", "change", r#"{"n":1}"#), stop(StopReason::ToolUse)],
            done(),
            vec![call("4", "change", r#"{"n":2}"#), stop(StopReason::ToolUse)],
            done(),
        ]);
        let bench = Setup { policy: ask_for_all.clone(), ..Setup::new(brain.clone()) }.engine().await;
        let thread = bench.thread_with(options(Mode::Plan, posture)).await.id;
        let mut watch = bench.watch(thread).await;
        bench.say(thread, "Go").await;
        let summary = answer(&bench, &mut watch, ApprovalAnswer::Once).await;
        assert!(summary.contains("1. Change it."), "{summary}");
        let (_, mode) = watch
            .until(|content| match content {
                EventContent::ThreadChanged { thread } => Some(thread.mode),
                _ => None,
            })
            .await;
        assert_eq!(mode, Mode::Normal);
        watch.turn().await.1.unwrap();
        let statuses: Vec<ToolCallStatus> =
            bench.calls(thread).await.iter().map(|call| call.status).collect();
        assert_eq!(statuses[0], ToolCallStatus::Denied, "before the plan was accepted");
        assert_eq!(statuses[2], ToolCallStatus::Completed, "the plan was the consent");
        let told = &brain.shapes()[0];
        assert!(told.iter().any(|line| line.contains("plan mode")), "the model knows: {told:?}");

        // The next turn is an ordinary one, in the posture that was there before.
        bench.say(thread, "And more").await;
        if posture == Posture::Ask {
            answer(&bench, &mut watch, ApprovalAnswer::Deny { reason: None }).await;
        }
        watch.turn().await.1.unwrap();
        let last = bench.calls(thread).await.pop().unwrap().status;
        let expected =
            if posture == Posture::Ask { ToolCallStatus::Denied } else { ToolCallStatus::Completed };
        assert_eq!(last, expected, "{posture:?}");
        let nothing =
            ThreadConfigure { thread_id: thread, model: None, mode: None, posture: None, effort: None };
        let now = ask!(bench.engine, ThreadConfigure, nothing).unwrap();
        assert_eq!((now.mode, now.posture), (Mode::Normal, posture), "mode and posture are two things");
    }
}

/// It is not stored, so that after a crash nobody goes on with more than the user gave.
#[tokio::test]
async fn a_posture_for_one_turn_ends_with_it_and_is_nowhere_stored() {
    let brain = Brain::saying(vec![
        vec![call("1", "change", "{}"), stop(StopReason::ToolUse)],
        done(),
        vec![call("2", "change", r#"{"n":2}"#), stop(StopReason::ToolUse)],
        done(),
    ]);
    let policy = hanzo_permissions::Policy {
        mode: hanzo_permissions::Decision::Ask,
        ..hanzo_permissions::Policy::default()
    };
    let bench = Setup { policy, ..Setup::new(brain) }.engine().await;
    let thread = bench.thread_with(options(Mode::Normal, Posture::Ask)).await.id;
    let mut watch = bench.watch(thread).await;
    let posture = Some(Posture::Auto);
    let turn = TurnStart { thread_id: thread, text: "Go".into(), attachments: Vec::new(), posture };
    ask!(bench.engine, TurnStart, turn).unwrap();
    watch.turn().await.1.unwrap();
    assert_eq!(bench.calls(thread).await[0].status, ToolCallStatus::Completed, "nobody was asked");
    let stored = bench.setup.store().await.thread(thread).await.unwrap().unwrap();
    assert_eq!(stored.summary.posture, Posture::Ask);
    bench.say(thread, "Again").await;
    answer(&bench, &mut watch, ApprovalAnswer::Deny { reason: None }).await;
    watch.turn().await.1.unwrap();
    assert_eq!(bench.calls(thread).await[1].status, ToolCallStatus::Denied);
}

#[tokio::test]
async fn a_plan_that_is_refused_leaves_plan_mode_as_it_is() {
    let brain = Brain::saying(vec![vec![call("1", "plan", PLAN), stop(StopReason::ToolUse)], done()]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread_with(options(Mode::Plan, Posture::Yolo)).await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    answer(&bench, &mut watch, ApprovalAnswer::Deny { reason: Some("too bold".into()) }).await;
    watch.turn().await.1.unwrap();
    let nothing = ThreadConfigure { thread_id: thread, model: None, mode: None, posture: None, effort: None };
    assert_eq!(ask!(bench.engine, ThreadConfigure, nothing).unwrap().mode, Mode::Plan);
    assert!(brain.shapes()[1].iter().any(|line| line.contains("too bold")), "{:?}", brain.shapes()[1]);
}

#[tokio::test]
async fn a_task_that_looks_large_begins_with_a_plan_in_any_posture_where_that_is_wanted() {
    let large = "- read it\n- change it\n- test it\n- write it down";
    for (auto_plan, task, posture, expected) in [
        (true, large, Posture::Ask, Mode::Plan),
        (true, large, Posture::Yolo, Mode::Plan),
        (true, "fix the typo", Posture::Ask, Mode::Normal),
        (false, large, Posture::Ask, Mode::Normal),
    ] {
        let brain = Brain::saying(vec![vec![call("1", "change", "{}"), stop(StopReason::ToolUse)], done()]);
        let mut setup = Setup::new(brain.clone());
        setup.settings.agent.auto_plan = auto_plan;
        let bench = setup.engine().await;
        let thread = bench.thread_with(options(Mode::Normal, posture)).await.id;
        bench.turn(thread, task).await.1.unwrap();
        let nothing =
            ThreadConfigure { thread_id: thread, model: None, mode: None, posture: None, effort: None };
        let now = ask!(bench.engine, ThreadConfigure, nothing).unwrap();
        assert_eq!((now.mode, now.posture), (expected, posture), "{task}");
        let status = bench.calls(thread).await[0].status;
        assert_eq!(status == ToolCallStatus::Denied, expected == Mode::Plan, "{task}: {status:?}");
    }
}
