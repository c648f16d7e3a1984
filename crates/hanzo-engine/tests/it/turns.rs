//! Turns through the engine API: order, parallel readers and lone writers, steering, queueing, limits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hanzo_config::Settings;
use hanzo_engine::parts::{JobInfo, JobStatus, Jobs};
use hanzo_protocol::engine::{
    Attendance, ListKind, Mode, ThreadConfigure, ThreadOptions, ToolCallRequest, TurnStarted,
};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::{ItemContent, ToolCallStatus, TurnEnd};
use hanzo_protocol::message::{Effort, Reasoning, StopReason, StreamEvent};
use hanzo_protocol::usage::{Cost, Price};
use serde_json::json;

use crate::harness::{Brain, Said, Setup, ask, completed};
use crate::mocks::{call, locked, stop, text};

fn done() -> Vec<StreamEvent> {
    vec![text("Done"), stop(StopReason::EndTurn)]
}

#[tokio::test]
async fn a_turn_is_told_in_order_and_every_item_is_stored_when_it_is_completed() {
    let brain = Brain::saying(vec![
        vec![
            StreamEvent::ReasoningDelta { text: "hm".into() },
            StreamEvent::Reasoning(Reasoning { text: "hm".into(), signature: Some("s".into()) }),
            text("Looking"),
            call("1", "look", r#"{"n":1}"#),
            stop(StopReason::ToolUse),
        ],
        done(),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let (events, summary) = bench.turn(thread, "Go").await;
    let summary = summary.unwrap();
    assert_eq!((summary.ended, summary.steps, summary.prefix_breaks), (TurnEnd::Completed, 2, 0));
    assert_eq!((summary.usage.input_tokens, summary.usage.output_tokens), (20, 2));
    assert_eq!(
        completed(&events),
        [
            "fragment environment",
            "user: Go",
            "reasoning: hm Active",
            "agent: Looking Active",
            "1: Completed",
            "agent: Done Active",
        ]
    );
    let numbers: Vec<u64> = events.iter().map(|event| event.cursor.0).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    // Each item begins, grows and ends, in this order and under one id.
    let of_item = |wanted: &str| -> Vec<&'static str> {
        let kind = |event: &hanzo_protocol::event::Event| match &event.content {
            EventContent::ItemStarted { item } if item.id.to_string() == wanted => Some("started"),
            EventContent::ItemDelta { item_id, .. } if item_id.to_string() == wanted => Some("delta"),
            EventContent::ItemCompleted { item } if item.id.to_string() == wanted => Some("completed"),
            _ => None,
        };
        events.iter().filter_map(kind).collect()
    };
    for item in bench.items(thread).await {
        match &item.content {
            ItemContent::AgentMessage { .. } | ItemContent::Reasoning(_) => {
                assert_eq!(of_item(&item.id.to_string()), ["started", "delta", "completed"], "{item:?}");
            }
            ItemContent::ToolCall(_) => assert_eq!(of_item(&item.id.to_string()), ["started", "completed"]),
            _ => assert_eq!(of_item(&item.id.to_string()), ["completed"]),
        }
    }
    assert_eq!(
        brain.shapes()[1],
        ["system", "environment", "user: Go", "assistant: Looking [\"1\"]", "1: look {\"n\":1}"]
    );
    assert_eq!(locked(&brain.requests)[1].messages[3].reasoning[0].signature.as_deref(), Some("s"));
}

#[tokio::test]
async fn readers_run_side_by_side_writers_alone_and_results_keep_the_order_of_the_calls() {
    let brain = Brain::saying(vec![
        vec![
            call("a", "look", r#"{"n":0}"#),
            call("b", "look", r#"{"n":1}"#),
            call("c", "change", r#"{"n":2}"#),
            call("d", "change", r#"{"n":2}"#),
            call("e", "look", r#"{"n":2}"#),
            stop(StopReason::ToolUse),
        ],
        done(),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    let log = bench.log();
    let at =
        |entry: &str| log.iter().position(|line| line == entry).unwrap_or_else(|| panic!("{entry}: {log:?}"));
    assert!(at(r#"end look {"n":1}"#) < at(r#"end look {"n":0}"#), "the two readers overlapped: {log:?}");
    assert_eq!(bench.setup.seen.most_at_once.load(Ordering::SeqCst), 2, "nothing ran beside a writer");
    assert_eq!(
        log[4..],
        [
            r#"begin change {"n":2}"#,
            r#"end change {"n":2}"#,
            r#"begin change {"n":2}"#,
            r#"end change {"n":2}"#,
            r#"begin look {"n":2}"#,
            r#"end look {"n":2}"#,
        ]
    );
    let ids: Vec<String> = brain.shapes()[1][4..].iter().map(|line| line[..1].to_owned()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn an_input_during_a_turn_waits_or_joins_it_as_it_was_sent() {
    let brain = Brain::with([
        Said::Whole(vec![call("1", "change", r#"{"n":0}"#), stop(StopReason::ToolUse)]),
        Said::Whole(done()),
        Said::Whole(vec![text("Second"), stop(StopReason::EndTurn)]),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    let TurnStarted::Started { turn_id } = bench.say(thread, "First").await else { panic!("it was idle") };
    watch.until(|content| matches!(content, EventContent::ItemStarted { .. }).then_some(())).await;
    assert_eq!(bench.say(thread, "Later").await, TurnStarted::Queued { ahead: 0 });
    assert_eq!(bench.say(thread, "Even later").await, TurnStarted::Queued { ahead: 1 });
    assert_eq!(bench.steer(thread, "At once").await, TurnStarted::Steered { turn_id });
    watch.turn().await.1.unwrap();
    watch.turn().await.1.unwrap();
    let shapes = brain.shapes();
    assert_eq!(shapes[1][3..], ["assistant:  [\"1\"]", "1: change {\"n\":0}", "user: At once"]);
    assert_eq!(shapes[2].last().unwrap(), "user: Later");
    assert_eq!(shapes[2].len(), shapes[1].len() + 2);
}

#[tokio::test]
async fn an_input_that_came_too_late_for_an_interrupted_turn_begins_the_next_one() {
    let brain = Brain::with([Said::AndHangs(vec![text("Wait")]), Said::Whole(done())]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "First").await;
    watch.until_delta().await;
    bench.steer(thread, "Hear this").await;
    bench.interrupt(thread).await;
    // The turn was stopped before its next step: the input begins the next one and is not lost.
    assert_eq!(watch.turn().await.1.unwrap().ended, TurnEnd::Interrupted);
    assert_eq!(watch.turn().await.1.unwrap().ended, TurnEnd::Completed);
    assert_eq!(brain.shapes()[1][2..], ["user: First", "assistant: Wait", "user: Hear this"]);
}

#[tokio::test]
async fn arguments_that_are_no_json_are_answered_and_never_run() {
    let brain = Brain::saying(vec![
        vec![
            call("1", "change", r#"{"path":"/tmp/x""#),
            call("2", "nothing", "{}"),
            call("3", "look", "{}"),
            stop(StopReason::ToolUse),
        ],
        done(),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!(bench.log(), ["begin look {}", "end look {}"]);
    let calls = bench.calls(thread).await;
    assert_eq!(calls[0].status, ToolCallStatus::Failed);
    assert!(calls[0].result.as_ref().unwrap().output.contains("not valid JSON"), "{:?}", calls[0].result);
    assert!(calls[1].result.as_ref().unwrap().output.contains("there is no tool `nothing`"));
    assert_eq!(brain.shapes()[1].len(), 7, "every call has its result");
}

#[tokio::test]
async fn a_limit_of_steps_ends_the_turn_with_every_call_answered() {
    let step = || vec![call("1", "look", "{}"), stop(StopReason::ToolUse)];
    let brain = Brain::saying((0..3).map(|_| step()).chain([done()]).collect());
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread_with(ThreadOptions { max_steps: Some(3), ..ThreadOptions::default() }).await.id;
    let summary = bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!((summary.ended, summary.steps), (TurnEnd::StepLimit, 3));
    assert_eq!(bench.turn(thread, "Go on").await.1.unwrap().ended, TurnEnd::Completed);
    assert_eq!(brain.shapes()[3].last().unwrap(), "user: Go on");
}

#[tokio::test]
async fn money_that_is_spent_ends_the_turn_and_the_next_one_before_it_asks() {
    let step = || vec![call("1", "look", "{}"), stop(StopReason::ToolUse)];
    let brain = Brain::saying((0..10).map(|_| step()).collect());
    // A step takes 10 + 1 tokens at a dollar per million each: 11,000 billionths.
    let price = Price { input: 1.0, output: 1.0, cache_read: None, cache_write: None };
    let bench = Setup { price: Some(price), ..Setup::new(brain.clone()) }.engine().await;
    let options = ThreadOptions { max_cost: Some(Cost::from_nano_usd(25_000)), ..ThreadOptions::default() };
    let thread = bench.thread_with(options).await.id;
    let summary = bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!((summary.ended, summary.steps), (TurnEnd::BudgetReached, 3));
    assert_eq!(summary.cost, Some(Cost::from_nano_usd(33_000)));
    let summary = bench.turn(thread, "Go on").await.1.unwrap();
    assert_eq!((summary.ended, summary.steps), (TurnEnd::BudgetReached, 0));
    assert_eq!(locked(&brain.requests).len(), 3);
}

#[tokio::test]
async fn a_turn_that_keeps_coming_to_the_same_ends_without_progress() {
    let step = || vec![call("1", "change", "{}"), stop(StopReason::ToolUse)];
    let brain = Brain::saying((0..30).map(|_| step()).collect());
    let bench = Setup::new(brain).engine().await;
    let thread = bench.thread().await.id;
    let summary = bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!(summary.ended, TurnEnd::NoProgress);
    assert!(summary.steps < 30, "{summary:?}");
}

#[tokio::test]
async fn what_is_configured_holds_from_the_next_turn_on_and_another_model_breaks_the_prefix() {
    let thought = StreamEvent::Reasoning(Reasoning { text: "hm".into(), signature: Some("mine".into()) });
    let brain = Brain::saying(vec![vec![thought, text("One"), stop(StopReason::EndTurn)], done()]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    let change = ThreadConfigure {
        thread_id: thread,
        model: Some("test/two".into()),
        mode: Some(Mode::Plan),
        posture: None,
        effort: Some(Effort::High),
    };
    let summary = ask!(bench.engine, ThreadConfigure, change).unwrap();
    assert_eq!((summary.model.as_str(), summary.mode), ("test/two", Mode::Plan));
    let (events, summary) = bench.turn(thread, "Go on").await;
    assert_eq!(summary.unwrap().prefix_breaks, 1);
    assert!(completed(&events).contains(&"prefixBreak".to_owned()));
    let requests = locked(&brain.requests).clone();
    assert_eq!((requests[0].model.as_str(), requests[1].model.as_str()), ("one", "two"));
    assert_eq!(requests[1].effort, Some(Effort::High));
    assert!(
        requests[1].messages.iter().all(|message| message.reasoning.is_empty()),
        "it was another vendor's"
    );
    let wrong = ThreadConfigure {
        thread_id: thread,
        model: Some("nobody/x".into()),
        mode: None,
        posture: None,
        effort: None,
    };
    assert!(ask!(bench.engine, ThreadConfigure, wrong).is_err());
}

#[tokio::test]
async fn plan_mode_has_no_writers_and_says_so_to_the_model() {
    let brain = Brain::saying(vec![vec![call("1", "change", "{}"), stop(StopReason::ToolUse)], done()]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread =
        bench.thread_with(ThreadOptions { mode: Some(Mode::Plan), ..ThreadOptions::default() }).await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    assert!(bench.log().is_empty());
    assert_eq!(bench.calls(thread).await[0].status, ToolCallStatus::Denied);
    assert!(brain.shapes()[1].last().unwrap().contains("plan mode"), "{:?}", brain.shapes()[1]);
}

#[tokio::test]
async fn the_agents_options_of_the_settings_are_honoured() {
    let brain = Brain::saying(vec![done()]);
    let mut settings = Settings::default();
    settings.agent.temperature = Some(0.25);
    settings.agent.system_prompt = Some("You are terse.".into());
    settings.agent.reasoning_language = "de".into();
    let bench = Setup { settings, ..Setup::new(brain.clone()) }.engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    let requests = locked(&brain.requests);
    assert_eq!(requests[0].temperature, Some(0.25));
    let system = &requests[0].messages[0].content;
    assert!(system.starts_with("You are terse.") && system.contains("German"), "{system}");
}

#[tokio::test]
async fn what_the_user_refers_to_is_part_of_the_message_and_failures_stop_nothing() {
    let brain = Brain::saying(vec![done()]);
    let bench = Setup::new(brain.clone()).engine().await;
    std::fs::write(bench.file("notes.txt"), "remember the milk").unwrap();
    let thread = bench.thread().await.id;
    bench.turn(thread, "Read @notes.txt and @nothing.txt").await.1.unwrap();
    let message = &brain.shapes()[0][2];
    assert!(
        message.contains("remember the milk") && message.ends_with("Read @notes.txt and @nothing.txt"),
        "{message}"
    );
}

#[tokio::test]
async fn content_from_elsewhere_taints_the_turn_and_not_the_next_one() {
    let send = |id: &str| vec![call(id, "send", "{}"), stop(StopReason::ToolUse)];
    let far = vec![call("1", "far", "{}"), stop(StopReason::ToolUse)];
    let brain = Brain::saying(vec![far, send("2"), done(), send("3"), done()]);
    let mut setup = Setup::new(brain);
    setup.policy.allow.push(hanzo_permissions::Rule::parse("send").unwrap());
    let bench = setup.engine().await;
    let options = ThreadOptions { attendance: Attendance::Headless, ..ThreadOptions::default() };
    let thread = bench.thread_with(options).await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    bench.turn(thread, "Again").await.1.unwrap();
    let list = hanzo_protocol::engine::List { kind: ListKind::Audit, thread_id: Some(thread) };
    let audit = ask!(bench.engine, List, list).unwrap().entries;
    // The newest first: the call of the second turn, then those of the first.
    let taints: Vec<_> = audit.iter().map(|entry| entry["record"].get("taint").cloned()).collect();
    assert_eq!(taints, [None, Some(json!("network")), None], "{audit:?}");
}

#[tokio::test]
async fn a_call_from_a_face_is_gated_kept_and_not_the_models() {
    let brain = Brain::saying(vec![done()]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let request =
        ToolCallRequest { thread_id: thread, tool: "look".into(), arguments: json!({"n": 3}), item_id: None };
    let result = ask!(bench.engine, ToolCall, request).unwrap();
    assert_eq!(result.output, r#"look {"n":3}"#);
    assert_eq!(bench.calls(thread).await[0].status, ToolCallStatus::Completed);
    bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!(brain.shapes()[0], ["system", "environment", "user: Go"]);
}

#[tokio::test]
async fn a_call_from_a_face_ends_with_the_request_or_with_an_interruption() {
    let bench = Arc::new(Setup::new(Brain::saying(vec![])).engine().await);
    let thread = bench.thread().await.id;
    let hang = move || ToolCallRequest {
        thread_id: thread,
        tool: "hang".into(),
        arguments: json!({}),
        item_id: None,
    };
    for how in ["dropped", "interrupted"] {
        let other = Arc::clone(&bench);
        let mut watch = bench.watch(thread).await;
        let task = tokio::spawn(async move { ask!(other.engine, ToolCall, hang()) });
        watch.until(|content| matches!(content, EventContent::ItemStarted { .. }).then_some(())).await;
        let begun = if how == "dropped" { 1 } else { 2 };
        while bench.log().len() < begun {
            tokio::task::yield_now().await;
        }
        if how == "dropped" {
            task.abort();
        } else {
            bench.interrupt(thread).await;
        }
        watch.until(|content| matches!(content, EventContent::ItemCompleted { .. }).then_some(())).await;
    }
    assert_eq!(bench.setup.seen.dropped.load(Ordering::SeqCst), 2);
    assert!(bench.calls(thread).await.iter().all(|call| call.status == ToolCallStatus::Interrupted));
}

#[tokio::test]
async fn the_context_of_a_thread_has_this_shape() {
    let brain = Brain::saying(vec![
        vec![text("Looking"), call("1", "look", "{}"), call("2", "change", "{"), stop(StopReason::ToolUse)],
        done(),
        done(),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    std::fs::write(bench.file("AGENTS.md"), "Be kind.").unwrap();
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    bench.turn(thread, "And?").await.1.unwrap();
    insta::assert_snapshot!(brain.shapes()[2].join("\n"), @r#"
    system
    environment
    user: Go
    assistant: Looking ["1", "2"]
    1: look {}
    2: error INVALID_ARGUMENTS: the arguments of `change` are not valid JSON: EOF while parsing an object at line 1 column 1; nothing was run. Send them as one JSON object.
    assistant: Done
    user: And?
    "#);
    assert!(locked(&brain.requests)[0].messages[0].content.contains("Be kind."));
}

struct TwoJobs;

impl Jobs for TwoJobs {
    fn list(&self) -> Vec<JobInfo> {
        let job = |id: &str, status, exit_code| JobInfo {
            id: id.into(),
            command: "sleep 5".into(),
            status,
            exit_code,
            duration_ms: 1,
            output_bytes: 2,
            detached: false,
        };
        vec![job("proc_1", JobStatus::TimedOut, None), job("proc_2", JobStatus::Exited, Some(3))]
    }
}

#[tokio::test]
async fn processes_and_servers_are_listed_for_a_thread() {
    let bench = Setup { jobs: Arc::new(TwoJobs), ..Setup::new(Brain::saying(vec![])) }.engine().await;
    let thread = bench.thread().await.id;
    let list = |kind, thread_id| hanzo_protocol::engine::List { kind, thread_id };
    let jobs = ask!(bench.engine, List, list(ListKind::Jobs, Some(thread))).unwrap().entries;
    let running = json!({
        "id": "proc_1", "command": "sleep 5", "status": "timedOut", "durationMs": 1, "outputBytes": 2, "detached": false,
    });
    assert_eq!(jobs[0], running);
    assert_eq!((&jobs[1]["status"], &jobs[1]["exitCode"]), (&json!("exited"), &json!(3)));
    let servers = ask!(bench.engine, List, list(ListKind::McpServers, Some(thread))).unwrap().entries;
    assert_eq!(servers, [] as [serde_json::Value; 0]);
    let unnamed = ask!(bench.engine, List, list(ListKind::Jobs, None)).unwrap_err();
    assert!(unnamed.message.contains("name one"), "{unnamed:?}");
}
