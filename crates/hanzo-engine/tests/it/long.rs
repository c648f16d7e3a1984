//! Threads that grow: the prefix, folds, subagents.

use std::sync::Arc;

use hanzo_protocol::engine::{ThreadAt, ThreadOptions};
use hanzo_protocol::item::{BreakReason, ItemContent, TurnEnd, Visibility};
use hanzo_protocol::message::{ApiError, ApiErrorKind, Message, ModelRequest, StopReason, StreamEvent};
use hanzo_protocol::usage::{Cost, Price, Usage};
use hanzo_store::ThreadFilter;
use hanzo_testkit::scale;
use serde_json::json;

use crate::harness::{Brain, Said, Setup, ask, completed, resume, shape};
use crate::mocks::{call, locked, stop, text};

fn done() -> Vec<StreamEvent> {
    vec![text("Done"), stop(StopReason::EndTurn)]
}

#[tokio::test]
async fn each_request_begins_with_the_one_before_also_after_a_restart() {
    let step = |id: &str| {
        vec![text("x"), call(id, "look", "{}"), call("again", "far", "{}"), stop(StopReason::ToolUse)]
    };
    let setup = Setup::new(Brain::saying(vec![]));
    let (home, workspace) = (setup.home.clone(), setup.workspace.clone());
    let mut before: Option<ModelRequest> = None;
    let mut thread = None;
    for round in 0..3 {
        let brain = Brain::saying(vec![
            step("1"),
            vec![call("2", "look", "{}"), stop(StopReason::ToolUse)],
            step("3"),
            done(),
            done(),
        ]);
        let bench = Setup { home: home.clone(), workspace: workspace.clone(), ..Setup::new(brain.clone()) }
            .engine()
            .await;
        let id = match thread {
            None => bench.thread().await.id,
            Some(id) => ask!(bench.engine, ThreadResume, resume(id)).unwrap().id,
        };
        thread = Some(id);
        bench.turn(id, &format!("Round {round}")).await.1.unwrap();
        let summary = bench.turn(id, "And?").await.1.unwrap();
        assert_eq!(summary.prefix_breaks, 0);
        for request in locked(&brain.requests).iter() {
            if let Some(before) = &before {
                assert!(request.messages.starts_with(&before.messages), "{:#?}", shape(&request.messages));
                let tools = |request: &ModelRequest| serde_json::to_string(&request.tools).unwrap();
                assert_eq!(tools(request), tools(before));
            }
            before = Some(request.clone());
        }
        bench.engine.shutdown().await;
    }
}

/// A model with a small window that counts tokens as four bytes each and calls for ever.
fn worker(request: &ModelRequest) -> Vec<StreamEvent> {
    let bytes: usize = request.messages.iter().map(|message| message.content.len() + 40).sum();
    let usage = Usage { input_tokens: bytes as u64 / 4, output_tokens: 5, ..Usage::default() };
    let stopped = |reason| StreamEvent::MessageStop { reason, usage };
    if request.tools.is_empty() {
        return vec![text("The files were looked at."), stopped(StopReason::EndTurn)];
    }
    let number = request.messages.last().map_or(0, |message| message.content.len()) + request.messages.len();
    let arguments = json!({"n": number, "text": format!("{number} {}", "z".repeat(1_000))}).to_string();
    vec![text("Looking on"), call(&number.to_string(), "look", &arguments), stopped(StopReason::ToolUse)]
}

#[tokio::test]
async fn a_long_turn_folds_itself_stays_in_its_window_and_keeps_the_originals() {
    let brain = Arc::new(Brain { always: Some(worker), ..Brain::default() });
    let bench = Setup { window: Some(16_000), ..Setup::new(brain.clone()) }.engine().await;
    let steps = scale::rounds(2_000).max(100);
    let thread =
        bench.thread_with(ThreadOptions { max_steps: Some(steps), ..ThreadOptions::default() }).await.id;
    let (events, summary) = bench.turn(thread, "Keep this sentence").await;
    let summary = summary.unwrap();
    assert_eq!((summary.ended, summary.steps), (TurnEnd::StepLimit, u64::from(steps)));
    let folds = completed(&events).iter().filter(|line| *line == "compaction").count();
    assert!(folds > 0 && u32::try_from(folds).unwrap() == summary.prefix_breaks, "{folds} {summary:?}");
    let items = bench.items(thread).await;
    let breaks = items
        .iter()
        .filter(|item| matches!(item.content, ItemContent::PrefixBreak { reason: BreakReason::Compaction }));
    assert_eq!(breaks.count(), folds);
    assert!(items.iter().any(|item| item.visibility == Visibility::Folded));
    let calls = items.iter().filter(|item| matches!(item.content, ItemContent::ToolCall(_))).count();
    assert_eq!(calls, steps as usize, "every original is still there");
    let archived = std::fs::read_dir(bench.setup.home.path().join("config/archive")).unwrap().count();
    assert_eq!(archived, folds);
    let requests = locked(&brain.requests);
    let size = |request: &ModelRequest| -> usize {
        request.messages.iter().map(|message| message.content.len()).sum()
    };
    assert!(
        requests.iter().all(|request| size(request) < 16_000 * 4),
        "no request is larger than the window"
    );
    let working: Vec<&ModelRequest> = requests.iter().filter(|request| !request.tools.is_empty()).collect();
    assert!(
        working
            .iter()
            .all(|request| request.messages.iter().any(|message| message.content == "Keep this sentence"))
    );
    assert!(
        working.iter().all(|request| request.messages[0] == working[0].messages[0]),
        "the instructions are the same"
    );
    let mut broken = 0;
    for pair in working.windows(2) {
        broken += usize::from(!pair[1].messages.starts_with(&pair[0].messages));
    }
    assert_eq!(broken, folds, "the prefix breaks where that is recorded, and nowhere else");
}

#[tokio::test]
async fn a_request_that_is_too_long_for_the_vendor_is_folded_once_and_asked_again() {
    let overflow = || {
        let kind = ApiErrorKind::ContextOverflow;
        vec![StreamEvent::Error(ApiError {
            kind,
            message: "too long".into(),
            status: Some(400),
            retry_after_ms: None,
        })]
    };
    let long = |id: &str| {
        let arguments = json!({"n": 3, "text": "w".repeat(3_000)}).to_string();
        vec![text("x"), call(id, "look", &arguments), stop(StopReason::ToolUse)]
    };
    let mut answers: Vec<Vec<StreamEvent>> = (0..8).map(|number: u32| long(&number.to_string())).collect();
    answers.extend([overflow(), vec![text("A summary"), stop(StopReason::EndTurn)], done()]);
    answers.extend([overflow(), overflow()]);
    let brain = Brain::saying(answers);
    let bench = Setup { window: Some(100_000), ..Setup::new(brain.clone()) }.engine().await;
    let thread = bench.thread().await.id;
    let summary = bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!((summary.ended, summary.prefix_breaks), (TurnEnd::Completed, 1));
    assert!(shape(&locked(&brain.requests)[10].messages).iter().any(|line| line.contains("A summary")));
    let failed = bench.turn(thread, "More").await.1.unwrap_err();
    assert_eq!(failed.kind, ApiErrorKind::ContextOverflow);
}

#[tokio::test]
async fn a_thread_is_folded_when_the_user_asks_and_the_model_cannot_help() {
    let step = |number: u32| {
        let arguments = json!({"n": number + 3, "text": "w".repeat(9_000 + number as usize)}).to_string();
        Said::Whole(vec![call(&number.to_string(), "look", &arguments), stop(StopReason::ToolUse)])
    };
    let mut answers: Vec<Said> = (0..12).map(step).collect();
    let failing = StreamEvent::Error(ApiError {
        kind: ApiErrorKind::Overloaded,
        message: "busy".into(),
        status: Some(529),
        retry_after_ms: None,
    });
    answers.extend([Said::Whole(done()), Said::Whole(vec![failing]), Said::Whole(done())]);
    let brain = Brain::with(answers);
    let bench = Setup { window: Some(100_000), ..Setup::new(brain.clone()) }.engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    ask!(bench.engine, ThreadCompact, ThreadAt { thread_id: thread }).unwrap();
    bench.turn(thread, "And now?").await.1.unwrap();
    let size = |messages: &[Message]| -> usize { messages.iter().map(|message| message.content.len()).sum() };
    let requests = locked(&brain.requests);
    assert!(size(&requests[14].messages) < size(&requests[12].messages) / 2);
}

fn delegate(agent: &str, task: &str) -> StreamEvent {
    call("sub", "agent", &json!({"agent": agent, "task": task}).to_string())
}

#[tokio::test]
async fn a_subagent_works_in_a_thread_of_its_own_with_less_and_reports() {
    let brain = Brain::saying(vec![
        vec![delegate("reviewer", "Look at it"), stop(StopReason::ToolUse)],
        vec![call("c", "change", "{}"), stop(StopReason::ToolUse)],
        vec![text("It is fine"), stop(StopReason::EndTurn)],
        done(),
    ]);
    let price = Price { input: 1.0, output: 1.0, cache_read: None, cache_write: None };
    let bench = Setup { price: Some(price), ..Setup::new(brain.clone()) }.engine().await;
    let thread = bench
        .thread_with(ThreadOptions {
            max_cost: Some(Cost::from_nano_usd(1_000_000)),
            ..ThreadOptions::default()
        })
        .await
        .id;
    let summary = bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!(summary.cost, Some(Cost::from_nano_usd(44_000)), "what the subagent spent is spent");
    assert!(bench.log().is_empty(), "a reviewer changes nothing");
    let shapes = brain.shapes();
    assert_eq!(
        shapes[1],
        ["system", "environment", "user: Look at it"],
        "it knows nothing of the conversation"
    );
    assert!(shapes[2].last().unwrap().contains("DENIED"), "{:?}", shapes[2]);
    assert_eq!(shapes[3].last().unwrap(), "sub: It is fine");
    let requests = locked(&brain.requests).clone();
    assert_ne!(requests[0].messages[0], requests[1].messages[0], "it has its own role");
    let store = bench.setup.store().await;
    let children = store
        .threads(ThreadFilter { parent: Some(thread), ..ThreadFilter::default() })
        .await
        .unwrap()
        .entries;
    assert_eq!(children.len(), 1);
    assert_eq!((children[0].summary.agent.as_str(), children[0].summary.parent), ("reviewer", Some(thread)));
}

#[tokio::test]
async fn interrupting_the_parent_interrupts_the_subagent() {
    let brain = Brain::with([
        Said::Whole(vec![delegate("helper", "Wait"), stop(StopReason::ToolUse)]),
        Said::Whole(vec![call("h", "hang", "{}"), stop(StopReason::ToolUse)]),
    ]);
    let setup = Setup::new(brain);
    let agents = setup.home.path().join("config/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let manifest = |may_spawn: &str| {
        format!("description = \"x\"\nmay_spawn = [{may_spawn}]\n[capabilities]\ntools = [\"*\"]\n")
    };
    std::fs::write(agents.join("coder.toml"), manifest("\"helper\"")).unwrap();
    std::fs::write(agents.join("helper.toml"), manifest("")).unwrap();
    let bench = setup.engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    bench.until_logged("begin hang {}").await;
    bench.interrupt(thread).await;
    assert_eq!(watch.turn().await.1.unwrap().ended, TurnEnd::Interrupted);
    let seen = &bench.setup.seen;
    let begun = std::time::Instant::now();
    while seen.dropped.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(1), "the subagent's call goes on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_model_is_told_of_the_tools_its_manifest_shows_and_may_call_the_others() {
    let brain = Brain::saying(vec![vec![call("f", "far", "{}"), stop(StopReason::ToolUse)], done()]);
    let setup = Setup::new(brain.clone());
    let agents = setup.home.path().join("config/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let manifest =
        "description = \"x\"\nshow = [\"look\", \"plan\", \"nothing\"]\n[capabilities]\ntools = [\"*\"]\n";
    std::fs::write(agents.join("coder.toml"), manifest).unwrap();
    let bench = setup.engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    let names: Vec<String> = locked(&brain.requests)[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["look", "plan"]);
    assert_eq!(bench.log(), ["begin far {}", "end far {}"]);
}
