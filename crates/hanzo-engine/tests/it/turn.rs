//! The loop with its three roles mocked.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hanzo_engine::compaction::SessionCompactor;
use hanzo_engine::turn::{EndReason, TurnError, TurnLoop, TurnOptions, TurnOutcome};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{
    ApiError, ApiErrorKind, Effort, Message, Reasoning, Role, StopReason, StreamEvent, ToolSchema,
};
use hanzo_protocol::roles::PermissionDecision;
use serde_json::value::RawValue;

use crate::mocks::{Model, Prompter, Tools, block_on, call, locked, stop, text};

/// A loop, its mocks, and a conversation that begins with a user's message.
struct Scene {
    model: Arc<Model>,
    tools: Arc<Tools>,
    prompter: Arc<Prompter>,
    options: TurnOptions,
    messages: Vec<Message>,
    seen: Vec<StreamEvent>,
}

impl Scene {
    fn new(answers: Vec<Vec<StreamEvent>>) -> Self {
        Self {
            model: Arc::new(Model::saying(answers)),
            tools: Arc::default(),
            prompter: Arc::new(Prompter::new(|_, _| PermissionDecision::Allow)),
            options: TurnOptions::default(),
            messages: vec![Message::system("Be brief."), Message::user("Hello")],
            seen: Vec::new(),
        }
    }

    fn deciding(mut self, decide: fn(&str, &serde_json::Value) -> PermissionDecision) -> Self {
        self.prompter = Arc::new(Prompter::new(decide));
        self
    }

    fn turn_loop(&self) -> TurnLoop {
        TurnLoop::new(self.model.clone(), self.tools.clone(), self.prompter.clone())
            .with_options(self.options.clone())
    }

    fn run(&mut self) -> Result<TurnOutcome, TurnError> {
        let turn_loop = self.turn_loop();
        let mut observer = |event: &StreamEvent| self.seen.push(event.clone());
        block_on(turn_loop.run(&mut self.messages, ThreadId::new(), &mut observer))
    }

    /// Polls a turn until it waits for something that never comes, and drops it.
    fn run_until_stuck(&mut self) {
        let turn_loop = self.turn_loop();
        let mut observer = |event: &StreamEvent| self.seen.push(event.clone());
        let mut turn = pin!(turn_loop.run(&mut self.messages, ThreadId::new(), &mut observer));
        for _ in 0..100 {
            assert!(turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending);
        }
    }

    /// The messages after the user's, one line each.
    fn said(&self) -> Vec<String> {
        self.messages[2..].iter().map(line).collect()
    }
}

fn line(message: &Message) -> String {
    let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
    match (message.role, &message.tool_call_id) {
        (Role::Tool, Some(id)) => format!("{id}: {}", message.content),
        (role, _) if calls.is_empty() => format!("{role:?}: {}", message.content),
        (role, _) => format!("{role:?}: {} {calls:?}", message.content),
    }
}

fn api_error() -> ApiError {
    ApiError {
        kind: ApiErrorKind::Overloaded,
        message: "come back later".into(),
        status: Some(529),
        retry_after_ms: None,
    }
}

#[test]
fn an_answer_without_calls_ends_the_turn_and_every_event_is_seen() {
    let events = vec![text("Hel"), text("lo"), stop(StopReason::EndTurn)];
    let mut scene = Scene::new(vec![events.clone()]);
    let end = scene.run().unwrap();
    assert_eq!((end.reason, end.steps), (EndReason::Answered(StopReason::EndTurn), 1));
    assert_eq!((end.usage.input_tokens, end.usage.output_tokens), (10, 1));
    assert_eq!(scene.said(), ["Assistant: Hello"]);
    assert_eq!(scene.seen, events);
    assert_eq!(locked(&scene.prompter.1).len(), 0);
}

#[test]
fn calls_are_run_in_order_and_the_model_is_asked_again_until_it_makes_none() {
    let mut scene = Scene::new(vec![
        vec![
            text("Looking"),
            call("1", "echo", r#"{"b":1}"#),
            call("2", "list", "{}"),
            stop(StopReason::ToolUse),
        ],
        vec![call("3", "echo", r#"{"c":2}"#), stop(StopReason::EndTurn)],
        vec![text("Done"), stop(StopReason::EndTurn)],
    ]);
    let end = scene.run().unwrap();
    assert_eq!((end.steps, end.usage.input_tokens), (3, 30));
    assert_eq!(scene.tools.calls(), [r#"echo {"b":1}"#, "list {}", r#"echo {"c":2}"#]);
    assert_eq!(*locked(&scene.prompter.1), scene.tools.calls(), "consent is asked for each call");
    assert_eq!(
        scene.said(),
        [
            r#"Assistant: Looking ["1", "2"]"#,
            r#"1: ran echo {"b":1}"#,
            "2: ran list {}",
            r#"Assistant:  ["3"]"#,
            r#"3: ran echo {"c":2}"#,
            "Assistant: Done",
        ]
    );
    assert_eq!(scene.model.asked(2), scene.messages[..7], "each request has all that came before");
    let threads: Vec<ThreadId> = locked(&scene.tools.0).iter().map(|(_, _, thread)| *thread).collect();
    assert!(threads.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn text_and_calls_may_be_seen_while_the_stream_still_runs() {
    let mut model = Model::saying(vec![vec![text("partial")]]);
    model.hangs = true;
    let mut scene = Scene::new(vec![]);
    scene.model = Arc::new(model);
    scene.run_until_stuck();
    assert_eq!(scene.seen, [text("partial")]);
}

#[test]
fn a_tools_failure_is_told_to_the_model_and_ends_nothing() {
    let mut scene = Scene::new(vec![
        vec![
            call("1", "fail", "{}"),
            call("2", "fail with output", "{}"),
            call("3", "fail silently", "{}"),
            stop(StopReason::ToolUse),
        ],
        vec![text("I see"), stop(StopReason::EndTurn)],
    ]);
    assert_eq!(scene.run().unwrap().steps, 2);
    assert_eq!(
        scene.said()[1..],
        ["1: IO: the disk is full", "2: cut short\nhalf of it", "3: no reason", "Assistant: I see"]
    );
}

#[test]
fn arguments_that_are_no_json_object_are_never_run_and_nobody_is_asked() {
    let broken = [r#"{"path":"/tmp/x""#, "", "[]", "null", "\"{}\"", "{} {}", "{'a':1}"];
    for arguments in broken {
        let mut scene = Scene::new(vec![
            vec![call("1", "echo", arguments), call("2", "echo", "{}"), stop(StopReason::ToolUse)],
            vec![text("Sorry"), stop(StopReason::EndTurn)],
        ]);
        scene.run().unwrap();
        assert_eq!(scene.tools.calls(), ["echo {}"], "{arguments}");
        assert_eq!(locked(&scene.prompter.1).len(), 1, "{arguments}");
        let said = scene.said();
        assert!(said[1].starts_with("1: the call was not run: its arguments"), "{arguments}: {}", said[1]);
        assert_eq!(said[2], "2: ran echo {}");
    }
}

#[test]
fn a_refused_call_is_not_run_and_the_model_reads_why() {
    let mut scene = Scene::new(vec![
        vec![
            call("1", "shell", r#"{"command":"rm"}"#),
            call("2", "echo", "{}"),
            call("3", "unknown", "{}"),
            stop(StopReason::ToolUse),
        ],
        vec![text("Fine"), stop(StopReason::EndTurn)],
    ])
    .deciding(|name, input| match name {
        "shell" if input["command"] == "rm" => PermissionDecision::Deny { reason: "not today".into() },
        "unknown" => PermissionDecision::Escalate,
        _ => PermissionDecision::Allow,
    });
    scene.run().unwrap();
    assert_eq!(scene.tools.calls(), ["echo {}"]);
    assert_eq!(
        scene.said()[1..4],
        [
            "1: blocked: not today",
            "2: ran echo {}",
            "3: blocked: nobody could decide whether `unknown` may run",
        ]
    );
}

#[test]
fn the_step_limit_ends_the_turn_with_every_call_answered() {
    let step = || vec![call("1", "echo", "{}"), stop(StopReason::ToolUse)];
    let mut scene = Scene::new((0..5).map(|_| step()).collect());
    scene.options.max_steps = 2;
    let end = scene.run().unwrap();
    assert_eq!((end.reason, end.steps), (EndReason::StepLimit, 2));
    assert_eq!(locked(&scene.model.requests).len(), 2);
    assert_eq!(scene.said().last().unwrap(), "1: ran echo {}");
}

#[test]
fn a_limit_of_0_is_none_and_a_limit_that_is_not_reached_does_nothing() {
    for limit in [0, 60] {
        let mut answers: Vec<_> =
            (0..50).map(|_| vec![call("1", "echo", "{}"), stop(StopReason::ToolUse)]).collect();
        answers.push(vec![text("Done"), stop(StopReason::EndTurn)]);
        let mut scene = Scene::new(answers);
        scene.options.max_steps = limit;
        let end = scene.run().unwrap();
        assert_eq!((end.reason, end.steps), (EndReason::Answered(StopReason::EndTurn), 51));
    }
}

#[test]
fn a_stream_that_breaks_off_anywhere_leaves_a_valid_conversation_and_runs_nothing() {
    let whole = [text("Let "), text("me"), call("1", "echo", "{}"), call("2", "echo", "{}")];
    for length in 0..=whole.len() {
        for error in [None, Some(api_error())] {
            let mut events = whole[..length].to_vec();
            events.extend(error.clone().map(StreamEvent::Error));
            let mut scene = Scene::new(vec![events, vec![text("Again"), stop(StopReason::EndTurn)]]);
            let expected = error.clone().map_or(TurnError::CutOff, TurnError::Api);
            assert_eq!(scene.run(), Err(expected));
            let kept: &[&str] = match length {
                1 => &["Assistant: Let "],
                2 => &["Assistant: Let me"],
                _ => &[],
            };
            assert_eq!(scene.said(), kept, "after {length} events");
            assert_eq!(scene.tools.calls().len(), 0);

            scene.messages.push(Message::user("Go on"));
            assert!(scene.run().is_ok(), "the next turn works");
        }
    }
}

#[test]
fn a_failure_after_some_steps_keeps_what_was_done() {
    let mut scene = Scene::new(vec![
        vec![call("1", "echo", "{}"), stop(StopReason::ToolUse)],
        vec![StreamEvent::Error(api_error())],
    ]);
    let error = scene.run().unwrap_err();
    assert_eq!(error.to_string(), "the request to the model failed: come back later");
    assert_eq!(scene.said(), [r#"Assistant:  ["1"]"#, "1: ran echo {}"]);
}

#[test]
fn what_follows_the_end_of_an_answer_is_ignored() {
    let mut scene = Scene::new(vec![vec![
        text("Done"),
        stop(StopReason::EndTurn),
        text(" not"),
        call("1", "echo", "{}"),
        StreamEvent::Error(api_error()),
    ]]);
    assert!(scene.run().is_ok());
    assert_eq!(scene.said(), ["Assistant: Done"]);
    assert_eq!(scene.seen.len(), 2);
    assert_eq!(scene.tools.calls().len(), 0);
}

#[test]
fn dropping_the_turn_aborts_the_request() {
    let mut model = Model::saying(vec![vec![text("One"), call("1", "echo", "{}")]]);
    model.hangs = true;
    let mut scene = Scene::new(vec![]);
    scene.model = Arc::new(model);
    scene.run_until_stuck();
    assert_eq!(*locked(&scene.model.dropped_streams), 1);
    assert_eq!(scene.messages.len(), 2);
    assert_eq!(scene.tools.calls().len(), 0);
}

#[test]
fn dropping_the_turn_while_a_call_runs_answers_every_open_call() {
    let mut scene = Scene::new(vec![vec![
        call("1", "echo", "{}"),
        call("2", "hang", "{}"),
        call("3", "echo", "{}"),
        stop(StopReason::ToolUse),
    ]]);
    scene.run_until_stuck();
    let said = scene.said();
    assert_eq!(said[1], "1: ran echo {}");
    assert!(said[2].starts_with("2: interrupted: ") && said[3].starts_with("3: interrupted: "), "{said:?}");
    assert_eq!(scene.tools.calls(), ["echo {}", "hang {}"], "the third was never begun");
}

#[test]
fn reasoning_is_kept_whole_and_an_empty_answer_is_not_kept() {
    let piece = Reasoning { text: "hm".into(), signature: Some("s".into()) };
    let mut scene = Scene::new(vec![vec![
        StreamEvent::ReasoningDelta { text: "h".into() },
        StreamEvent::ReasoningDelta { text: "m".into() },
        StreamEvent::Reasoning(piece.clone()),
        text("Yes"),
        stop(StopReason::EndTurn),
    ]]);
    scene.run().unwrap();
    assert_eq!(scene.seen.len(), 5);
    assert_eq!(scene.messages[2].reasoning, std::slice::from_ref(&piece));
    assert_eq!(scene.messages[2].content, "Yes");

    let mut empty =
        Scene::new(vec![vec![StreamEvent::Reasoning(piece), text("\n"), stop(StopReason::Refusal)]]);
    assert_eq!(empty.run().unwrap().reason, EndReason::Answered(StopReason::Refusal));
    assert_eq!(empty.messages.len(), 2, "vendors refuse an assistant message without content");
}

#[test]
fn a_request_carries_the_options() {
    let mut scene = Scene::new(vec![vec![stop(StopReason::EndTurn)]]);
    let parameters = RawValue::from_string(r#"{"type":"object"}"#.into()).unwrap();
    let schema = ToolSchema { name: "echo".into(), description: "Says it back".into(), parameters };
    scene.options = TurnOptions {
        model: "m-1".into(),
        tools: vec![schema],
        temperature: Some(0.5),
        max_tokens: Some(100),
        effort: Some(Effort::Low),
        ..TurnOptions::default()
    };
    scene.run().unwrap();
    let requests = locked(&scene.model.requests);
    let request = &requests[0];
    assert_eq!((request.model.as_str(), request.tools[0].name.as_str()), ("m-1", "echo"));
    assert_eq!(
        (request.temperature, request.max_tokens, request.effort),
        (Some(0.5), Some(100), Some(Effort::Low))
    );
}

#[test]
fn a_conversation_past_the_line_is_folded_before_the_request_and_only_then() {
    let long = |number: usize| Message::user(format!("{number} {}", "x".repeat(400)));
    let before: Vec<Message> =
        std::iter::once(Message::system("Be brief.")).chain((0..6).map(long)).collect();
    for (compactor, expected) in [
        (None, before.clone()),
        (Some(SessionCompactor::new(10_000)), before.clone()),
        (Some(SessionCompactor::new(500)), SessionCompactor::new(500).compact(&before).messages),
    ] {
        let mut scene = Scene::new(vec![vec![text("Ok"), stop(StopReason::EndTurn)]]);
        scene.messages.clone_from(&before);
        scene.options.compactor = compactor;
        scene.run().unwrap();
        assert_eq!(scene.model.asked(0), expected);
        assert_eq!(scene.messages.len(), expected.len() + 1);
    }
    assert!(SessionCompactor::new(500).compact(&before).compacted_count > 0);
}
