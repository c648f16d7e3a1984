//! Turns that do not end by themselves: interrupted, cut off, crashed, out of room.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hanzo_protocol::engine::{
    EngineErrorKind, RewindWhat, ThreadFork, ThreadOptions, ThreadPreview, ThreadRewind, ThreadStart,
};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::{ItemContent, ToolCallStatus, TurnEnd, Visibility};
use hanzo_protocol::message::{ApiError, ApiErrorKind, Reasoning, StopReason, StreamEvent};

use crate::harness::{Brain, Said, Setup, ask, completed, name, resume};
use crate::mocks::{call, locked, stop, text};

fn done() -> Vec<StreamEvent> {
    vec![text("Done"), stop(StopReason::EndTurn)]
}

fn cut(kind: ApiErrorKind) -> StreamEvent {
    StreamEvent::Error(ApiError {
        kind,
        message: "the line went dead".into(),
        status: None,
        retry_after_ms: None,
    })
}

#[tokio::test]
async fn interrupting_a_stream_keeps_what_was_said_and_is_quick() {
    let brain = Brain::with([
        Said::AndHangs(vec![
            StreamEvent::ReasoningDelta { text: "hm".into() },
            text("Once upon"),
            call("1", "change", "{}"),
        ]),
        Said::Whole(done()),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Tell").await;
    watch.until_delta().await;
    watch.until_delta().await;
    let begun = Instant::now();
    bench.interrupt(thread).await;
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    let (events, summary) = watch.turn().await;
    assert_eq!(summary.unwrap().ended, TurnEnd::Interrupted);
    assert_eq!(completed(&events), ["reasoning: hm Rewound", "agent: Once upon Active"]);
    assert!(bench.log().is_empty(), "no call of an answer that is not whole is run");
    bench.turn(thread, "Go on").await.1.unwrap();
    assert_eq!(brain.shapes()[1][2..], ["user: Tell", "assistant: Once upon", "user: Go on"]);
}

#[tokio::test]
async fn interrupting_calls_stops_them_and_answers_every_one() {
    let brain = Brain::with([
        Said::Whole(vec![
            text("Both"),
            call("1", "look", r#"{"n":3}"#),
            call("2", "hang", "{}"),
            call("3", "look", "{}"),
            stop(StopReason::ToolUse),
        ]),
        Said::Whole(done()),
    ]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    bench.until_logged("begin hang {}").await;
    let begun = Instant::now();
    bench.interrupt(thread).await;
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    assert_eq!(watch.turn().await.1.unwrap().ended, TurnEnd::Interrupted);
    assert_eq!(bench.setup.seen.dropped.load(Ordering::SeqCst), 1);
    let statuses: Vec<ToolCallStatus> = bench.calls(thread).await.iter().map(|call| call.status).collect();
    let expected = [ToolCallStatus::Completed, ToolCallStatus::Interrupted, ToolCallStatus::Interrupted];
    assert_eq!(statuses, expected);
    bench.turn(thread, "Go on").await.1.unwrap();
    let shape = &brain.shapes()[1];
    assert!(
        shape[5].starts_with("2: interrupted: ") && shape[6].starts_with("3: interrupted: "),
        "{shape:?}"
    );
    assert_eq!(
        bench.log().iter().filter(|line| line.starts_with("begin")).count(),
        2,
        "the third was never begun"
    );
}

#[test]
fn after_a_crash_open_calls_are_interrupted_and_nothing_is_run_again() {
    let brain = Brain::with([Said::Whole(vec![
        text("Now"),
        call("1", "hang", "{}"),
        call("2", "change", "{}"),
        stop(StopReason::ToolUse),
    ])]);
    let setup = Setup::new(brain.clone());
    let home = setup.home.clone();
    let workspace = setup.workspace.clone();
    // A runtime that is torn down under the engine: nothing gets to put anything in order.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (thread, seen) = runtime.block_on(async {
        let bench = setup.engine().await;
        let thread = bench.thread().await.id;
        bench.say(thread, "Go").await;
        bench.until_logged("begin hang {}").await;
        let seen = bench.setup.seen.clone();
        std::mem::forget(bench);
        (thread, seen)
    });
    runtime.shutdown_background();
    assert_eq!(locked(&seen.log).len(), 1);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let brain = Brain::with([Said::Whole(done())]);
        let again = Setup { home, workspace, ..Setup::new(brain.clone()) };
        let bench = again.engine().await;
        ask!(bench.engine, ThreadResume, resume(thread)).unwrap();
        let statuses: Vec<ToolCallStatus> =
            bench.calls(thread).await.iter().map(|call| call.status).collect();
        assert_eq!(statuses, [ToolCallStatus::Interrupted; 2]);
        bench.turn(thread, "What happened?").await.1.unwrap();
        let shape = &brain.shapes()[0];
        assert_eq!(shape[2..4], ["user: Go", "assistant: Now [\"1\", \"2\"]"]);
        assert!(
            shape[4].starts_with("1: interrupted") && shape[5].starts_with("2: interrupted"),
            "{shape:?}"
        );
        assert_eq!(shape[6], "user: What happened?");
        assert!(!bench.log().iter().any(|line| line.starts_with("begin")), "nothing is run again");
    });
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_asked_for_again_and_what_was_shown_is_ended() {
    let half = vec![
        StreamEvent::Reasoning(Reasoning { text: "hm".into(), signature: None }),
        text("I will"),
        call("1", "change", "{}"),
    ];
    let mut cut_off = half.clone();
    cut_off.push(cut(ApiErrorKind::Network));
    let brain = Brain::with([Said::Whole(half), Said::Whole(cut_off), Said::Whole(done())]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let (events, summary) = bench.turn(thread, "Go").await;
    assert_eq!(summary.unwrap().steps, 1);
    assert!(bench.log().is_empty(), "no call of an answer that is not whole is run");
    let told: Vec<String> = completed(&events).into_iter().skip(2).collect();
    assert_eq!(
        told,
        [
            "reasoning: hm Rewound",
            "agent: I will Rewound",
            "reasoning: hm Rewound",
            "agent: I will Rewound",
            "agent: Done Active"
        ]
    );
    let notices = events.iter().filter(|event| matches!(event.content, EventContent::Notice { .. })).count();
    assert_eq!(notices, 2);
    let requests = locked(&brain.requests);
    assert!(
        requests.iter().all(|request| request.messages == requests[0].messages),
        "the same question each time"
    );
}

#[tokio::test]
async fn a_failure_that_will_not_pass_ends_the_turn_and_the_next_one_works() {
    for kind in [ApiErrorKind::Auth, ApiErrorKind::BadRequest, ApiErrorKind::Malformed] {
        let brain = Brain::with([Said::Whole(vec![text("Well"), cut(kind)]), Said::Whole(done())]);
        let bench = Setup::new(brain.clone()).engine().await;
        let thread = bench.thread().await.id;
        let error = bench.turn(thread, "Go").await.1.unwrap_err();
        assert_eq!(error.kind, kind);
        bench.turn(thread, "Again").await.1.unwrap();
        assert_eq!(brain.shapes()[1][2..], ["user: Go", "assistant: Well", "user: Again"]);
    }
}

#[tokio::test]
async fn what_fails_before_it_begins_is_not_tried_again_by_the_engine_too() {
    let brain = Brain::with([Said::Whole(vec![cut(ApiErrorKind::Overloaded)])]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    assert_eq!(bench.turn(thread, "Go").await.1.unwrap_err().kind, ApiErrorKind::Overloaded);
    assert_eq!(locked(&brain.requests).len(), 1);
}

#[tokio::test]
async fn asking_again_has_an_end() {
    let brain = Brain::with((0..10).map(|_| Said::Whole(vec![text("x"), cut(ApiErrorKind::Network)])));
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    assert_eq!(bench.turn(thread, "Go").await.1.unwrap_err().kind, ApiErrorKind::Network);
    assert_eq!(locked(&brain.requests).len(), 5);
}

#[tokio::test]
async fn two_engines_do_not_write_to_one_thread() {
    let setup = Setup::new(Brain::saying(vec![done(), done()]));
    let (home, workspace) = (setup.home.clone(), setup.workspace.clone());
    let first = setup.engine().await;
    let thread = first.thread().await.id;
    first.turn(thread, "Go").await.1.unwrap();
    let brain = Brain::saying(vec![done(), done()]);
    let second = Setup { home, workspace, ..Setup::new(brain.clone()) }.engine().await;
    let error = ask!(second.engine, ThreadResume, resume(thread)).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Conflict);
    assert!(error.message.contains("a test") && error.message.contains("fork"), "{}", error.message);

    let copy = ask!(second.engine, ThreadFork, ThreadFork { thread_id: thread, until: None }).unwrap().id;
    ask!(second.engine, ThreadResume, resume(copy)).unwrap();
    second.turn(copy, "My own way").await.1.unwrap();
    assert_eq!(brain.shapes()[0][2..], ["user: Go", "assistant: Done", "user: My own way"]);
    first.engine.shutdown().await;
    ask!(second.engine, ThreadResume, resume(thread)).unwrap();
    second.turn(thread, "Mine now").await.1.unwrap();
}

#[tokio::test]
async fn an_ephemeral_thread_leaves_nothing_behind() {
    let bench = Setup::new(Brain::saying(vec![done()])).engine().await;
    let start = ThreadStart {
        workspace: bench.setup.workspace.clone(),
        agent: None,
        ephemeral: true,
        options: ThreadOptions::default(),
    };
    let thread = ask!(bench.engine, ThreadStart, start).unwrap().id;
    bench.turn(thread, "Go").await.1.unwrap();
    assert_eq!(bench.items(thread).await.len(), 3);
    assert!(bench.setup.store().await.thread(thread).await.unwrap().is_none());
}

#[tokio::test]
async fn files_and_conversation_go_back_to_before_a_turn() {
    let brain = Brain::saying(vec![
        vec![call("1", "change", "{}"), stop(StopReason::ToolUse)],
        done(),
        vec![call("2", "change", r#"{"n":1}"#), stop(StopReason::ToolUse)],
        vec![text("Twice"), stop(StopReason::EndTurn)],
        done(),
    ]);
    let bench = Setup { checkpoints: true, ..Setup::new(brain.clone()) }.engine().await;
    std::fs::write(bench.file("a.txt"), "one").unwrap();
    let thread = bench.thread().await.id;
    let first = bench.turn(thread, "First").await.1.unwrap().checkpoint.expect("something was changed");
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Second").await;
    bench.until_logged(r#"begin change {"n":1}"#).await;
    std::fs::write(bench.file("a.txt"), "two").unwrap();
    watch.turn().await.1.unwrap();
    // What would happen is told, and nothing happens.
    let preview = ThreadPreview { thread_id: thread, checkpoint: first };
    let would = ask!(bench.engine, ThreadPreview, preview).unwrap();
    assert_eq!((would.written, would.removed, would.kept), (vec!["a.txt".to_owned()], vec![], vec![]));
    assert_eq!(std::fs::read_to_string(bench.file("a.txt")).unwrap(), "two");
    let rewind = ThreadRewind { thread_id: thread, checkpoint: first, what: RewindWhat::Both };
    ask!(bench.engine, ThreadRewind, rewind).unwrap();
    assert_eq!(std::fs::read_to_string(bench.file("a.txt")).unwrap(), "one");
    bench.turn(thread, "Third").await.1.unwrap();
    let shape = &brain.shapes()[4];
    assert!(!shape.iter().any(|line| line.contains("Second") || line.contains("Twice")), "{shape:?}");
    assert_eq!(shape.last().unwrap(), "user: Third");
    let items = bench.items(thread).await;
    let gone = items.iter().find(|item| name(item) == "user: Second").unwrap();
    assert_eq!(gone.visibility, Visibility::Rewound, "nothing is deleted");
    assert!(
        items
            .iter()
            .any(|item| matches!(&item.content, ItemContent::AgentMessage { text } if text == "Twice"))
    );
}
