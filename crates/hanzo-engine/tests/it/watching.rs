//! Notifications, questions and consent, seen by faces.

use std::sync::Arc;

use futures_util::StreamExt as _;
use hanzo_permissions::{Decision, Policy};
use hanzo_protocol::engine::{
    ApprovalAnswer, ApprovalRespond, Attendance, EngineClient as _, EngineErrorKind, QuestionRespond,
    ThreadOptions,
};
use hanzo_protocol::event::{Event, EventContent};
use hanzo_protocol::item::{AnsweredBy, ItemContent, ToolCallStatus};
use hanzo_protocol::message::{ModelRequest, StopReason, StreamEvent};
use serde_json::json;

use crate::harness::{Brain, Said, Setup, ask, completed, cursor, name, resume};
use crate::mocks::{call, stop, text};

fn done() -> Vec<StreamEvent> {
    vec![text("Done"), stop(StopReason::EndTurn)]
}

#[tokio::test]
async fn a_face_that_comes_back_gets_what_it_missed_and_nothing_twice() {
    let brain = Brain::saying(vec![vec![call("1", "look", "{}"), stop(StopReason::ToolUse)], done(), done()]);
    let bench = Setup::new(brain).engine().await;
    let thread = bench.thread().await.id;
    let (first, _) = bench.turn(thread, "One").await;
    let (second, _) = bench.turn(thread, "Two").await;
    let all: Vec<Event> = first.into_iter().chain(second).collect();
    for seen in [0, 3, all.len() / 2, all.len() - 1] {
        let from = all[seen].cursor;
        let rest: Vec<Event> =
            bench.engine.subscribe(thread, from).take(all.len() - seen - 1).collect().await;
        assert_eq!(rest, all[seen + 1..], "from {from:?}");
    }
}

#[tokio::test]
async fn after_a_restart_completed_items_are_replayed_and_numbers_are_never_used_again() {
    let setup = Setup::new(Brain::saying(vec![done()]));
    let (home, workspace) = (setup.home.clone(), setup.workspace.clone());
    let bench = setup.engine().await;
    let thread = bench.thread().await.id;
    let (events, _) = bench.turn(thread, "One").await;
    bench.engine.shutdown().await;

    let bench = Setup { home, workspace, ..Setup::new(Brain::saying(vec![done()])) }.engine().await;
    // Not even open: what is stored can be watched.
    let replayed: Vec<Event> = bench.engine.subscribe(thread, cursor(0)).take(3).collect().await;
    let items = completed(&events);
    assert_eq!(completed(&replayed), items[items.len() - 3..]);
    let last = events.last().unwrap().cursor;
    let middle = replayed[1].cursor;
    let rest: Vec<Event> = bench.engine.subscribe(thread, middle).take(1).collect().await;
    assert_eq!(rest, replayed[2..]);
    ask!(bench.engine, ThreadResume, resume(thread)).unwrap();
    let (again, _) = bench.turn(thread, "Two").await;
    assert!(again.iter().all(|event| event.cursor > last), "numbers go on");
}

#[tokio::test]
async fn a_reader_that_does_not_read_stalls_nothing_and_misses_no_item() {
    fn chatter(request: &ModelRequest) -> Vec<StreamEvent> {
        let step = request.messages.len();
        if step > 200 {
            return done();
        }
        let words = "word ".repeat(400);
        let arguments = json!({"n": step, "text": "y".repeat(20_000)}).to_string();
        vec![text(&words), call(&step.to_string(), "look", &arguments), stop(StopReason::ToolUse)]
    }
    let brain = Arc::new(Brain { always: Some(chatter), ..Brain::default() });
    let bench = Setup::new(brain).engine().await;
    let thread = bench.thread().await.id;
    let start = ask!(bench.engine, ThreadResume, resume(thread)).unwrap().cursor;
    let mut slow = bench.engine.subscribe(thread, start);
    // It has begun to read, and then does something else.
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    let first = slow.next().await.unwrap();
    assert!(matches!(first.content, EventContent::TurnStarted { .. }));
    watch.turn().await.1.unwrap();
    let mut late = vec![first];
    while !matches!(late.last().unwrap().content, EventContent::TurnCompleted { .. }) {
        late.push(slow.next().await.unwrap());
    }
    let stored: Vec<String> = bench.items(thread).await.iter().map(name).collect();
    assert!(stored.len() > 130, "{}", stored.len());
    assert_eq!(completed(&late), stored);
    assert!(late.windows(2).all(|pair| pair[0].cursor < pair[1].cursor));
}

/// A policy that asks about every writer.
fn asking() -> Policy {
    Policy { mode: Decision::Ask, ..Policy::default() }
}

#[tokio::test]
async fn the_first_answer_to_a_request_for_consent_counts_and_everybody_sees_whose_it_was() {
    let brain = Brain::saying(vec![vec![call("1", "change", "{}"), stop(StopReason::ToolUse)], done()]);
    let bench = Setup { policy: asking(), ..Setup::new(brain) }.engine().await;
    let thread = bench.thread().await.id;
    let (mut one, mut two) = (bench.watch(thread).await, bench.watch(thread).await);
    bench.say(thread, "Go").await;
    let requested = |content: &EventContent| match content {
        EventContent::ApprovalRequested { approval } => Some(approval.clone()),
        _ => None,
    };
    let approval = one.until(requested).await.1;
    assert_eq!(two.until(requested).await.1, approval);
    assert!(bench.log().is_empty(), "it waits");
    let respond =
        |answer, by: &str| ApprovalRespond { approval_id: approval.approval_id, answer, by: by.into() };
    ask!(bench.engine, ApprovalRespond, respond(ApprovalAnswer::Once, "terminal")).unwrap();
    let late = ask!(bench.engine, ApprovalRespond, respond(ApprovalAnswer::Deny { reason: None }, "web"))
        .unwrap_err();
    assert_eq!(late.kind, EngineErrorKind::Conflict);
    assert!(late.message.contains("terminal"), "{}", late.message);
    for watch in [&mut one, &mut two] {
        let resolved = |content: &EventContent| match content {
            EventContent::ApprovalResolved { allowed, by, .. } => Some((*allowed, by.clone())),
            _ => None,
        };
        assert_eq!(watch.until(resolved).await.1, (true, "terminal".to_owned()));
        watch.turn().await.1.unwrap();
    }
    assert_eq!(bench.log().len(), 2);
    let calls = bench.calls(thread).await;
    assert_eq!((calls[0].status, approval.tool.as_str()), (ToolCallStatus::Completed, "change"));
}

#[tokio::test]
async fn a_question_that_is_interrupted_is_withdrawn() {
    let brain = Brain::saying(vec![vec![call("1", "change", "{}"), stop(StopReason::ToolUse)]]);
    let bench = Setup { policy: asking(), ..Setup::new(brain) }.engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    let (_, approval_id) = watch
        .until(|content| match content {
            EventContent::ApprovalRequested { approval } => Some(approval.approval_id),
            _ => None,
        })
        .await;
    bench.interrupt(thread).await;
    let respond = ApprovalRespond { approval_id, answer: ApprovalAnswer::Once, by: "late".into() };
    assert_eq!(ask!(bench.engine, ApprovalRespond, respond).unwrap_err().kind, EngineErrorKind::NotFound);
    assert!(bench.log().is_empty());
    assert_eq!(bench.calls(thread).await[0].status, ToolCallStatus::Interrupted);
}

#[tokio::test]
async fn with_nobody_there_the_box_decides_and_refusals_are_counted() {
    let brain = Brain::saying(vec![
        vec![call("1", "change", "{}"), call("2", "send", "{}"), stop(StopReason::ToolUse)],
        done(),
    ]);
    let bench = Setup { policy: asking(), ..Setup::new(brain.clone()) }.engine().await;
    let options = ThreadOptions { attendance: Attendance::Headless, ..ThreadOptions::default() };
    let thread = bench.thread_with(options).await.id;
    let summary = bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!(summary.refused, 1);
    let statuses: Vec<ToolCallStatus> = bench.calls(thread).await.iter().map(|call| call.status).collect();
    assert_eq!(
        statuses,
        [ToolCallStatus::Completed, ToolCallStatus::Denied],
        "allowed inside, refused at the edge"
    );
    assert!(brain.shapes()[1].last().unwrap().contains("DENIED"), "{:?}", brain.shapes()[1]);
}

fn question() -> Vec<StreamEvent> {
    let arguments = json!({"question": "Which one?", "choices": ["a", "b"]}).to_string();
    vec![call("1", "ask", &arguments), stop(StopReason::ToolUse)]
}

#[tokio::test]
async fn a_question_waits_for_the_user() {
    let brain = Brain::saying(vec![question(), done()]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    let (_, asked) = watch
        .until(|content| match content {
            EventContent::QuestionAsked { question } => Some(question.clone()),
            _ => None,
        })
        .await;
    assert_eq!((asked.text.as_str(), asked.choices.len()), ("Which one?", 2));
    let respond = QuestionRespond { question_id: asked.question_id, text: "b".into() };
    ask!(bench.engine, QuestionRespond, respond.clone()).unwrap();
    assert!(ask!(bench.engine, QuestionRespond, respond).is_err(), "once");
    watch.turn().await.1.unwrap();
    assert_eq!(brain.shapes()[1].last().unwrap(), "1: the user answered: b");
}

#[tokio::test]
async fn somebody_else_may_ask_the_user_of_a_thread() {
    let bench = Setup::new(Brain::saying(vec![done()])).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    let engine = bench.engine.clone();
    let asking = tokio::spawn(async move {
        engine.ask_user(thread, "The server asks: which?".into(), vec!["x".into(), "y".into()]).await
    });
    let (_, asked) = watch
        .until(|content| match content {
            EventContent::QuestionAsked { question } => Some(question.clone()),
            _ => None,
        })
        .await;
    assert_eq!((asked.text.as_str(), asked.choices.len()), ("The server asks: which?", 2));
    let respond = QuestionRespond { question_id: asked.question_id, text: "y".into() };
    ask!(bench.engine, QuestionRespond, respond).unwrap();
    assert_eq!(asking.await.unwrap().as_deref(), Some("y"));

    let options = ThreadOptions { attendance: Attendance::Headless, ..ThreadOptions::default() };
    let alone = bench.thread_with(options).await.id;
    assert_eq!(bench.engine.ask_user(alone, "Anybody?".into(), vec![]).await, None);
}

#[tokio::test]
async fn a_question_with_nobody_there_is_an_assumption_and_recorded_as_one() {
    let brain = Brain::with([Said::Whole(question()), Said::Whole(done())]);
    let bench = Setup::new(brain.clone()).engine().await;
    let options = ThreadOptions { attendance: Attendance::Headless, ..ThreadOptions::default() };
    let thread = bench.thread_with(options).await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    assert!(brain.shapes()[1].last().unwrap().starts_with("1: nobody is there"), "{:?}", brain.shapes()[1]);
    let items = bench.items(thread).await;
    let answer = items.iter().find_map(|item| match &item.content {
        ItemContent::Question(question) => question.answer.clone(),
        _ => None,
    });
    assert_eq!(answer.unwrap().by, AnsweredBy::ModelAssumption);
}

#[tokio::test]
async fn a_plan_is_kept_as_items_and_can_be_looked_at_again() {
    let plan = |id, arguments: serde_json::Value| {
        vec![call(id, "plan", &arguments.to_string()), stop(StopReason::ToolUse)]
    };
    let brain = Brain::saying(vec![
        plan("1", json!({"action": "create", "steps": ["look", "change"]})),
        plan("2", json!({"action": "update", "step": 1, "status": "done"})),
        plan("3", json!({"action": "update", "step": 3, "status": "done"})),
        plan("4", json!({"action": "list"})),
        done(),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    let calls = bench.calls(thread).await;
    assert_eq!(calls[3].result.as_ref().unwrap().output, "1. [done] look\n2. [pending] change");
    assert!(calls[2].result.as_ref().unwrap().is_error);
    let plans = bench
        .items(thread)
        .await
        .iter()
        .filter(|item| matches!(item.content, ItemContent::Plan { .. }))
        .count();
    assert_eq!(plans, 2);
}
