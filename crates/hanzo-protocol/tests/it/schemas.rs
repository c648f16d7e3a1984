use std::path::PathBuf;

use hanzo_protocol::engine::{
    ApprovalAnswer, ApprovalRespond, Mode, Page, Posture, Request, Response, ThreadOptions, ThreadStart,
    ThreadSummary, TurnStarted,
};
use hanzo_protocol::envelope::{Envelope, ErrorCode, Meta, ToolError};
use hanzo_protocol::event::{Event, EventContent, EventCursor};
use hanzo_protocol::ids::{ApprovalId, ItemId, ThreadId, ToolCallId, TraceId, TurnId};
use hanzo_protocol::item::{
    Item, ItemContent, PlanStatus, PlanStep, ToolCallItem, ToolCallStatus, TurnEnd, TurnSummary, Visibility,
};
use hanzo_protocol::message::{Message, ModelRequest, StopReason, StreamEvent, ToolCall, ToolSchema};
use hanzo_protocol::tool::{Effect, ToolResult};
use hanzo_protocol::usage::{Cost, Usage};
use hanzo_protocol::{roles::PermissionDecision, schema};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

fn faults(file: &str, value: &Value) -> Vec<String> {
    let (_, schema) = schema::all().into_iter().find(|(name, _)| *name == file).expect("the schema exists");
    let validator = jsonschema::validator_for(schema.as_value()).expect("a schema of ours is a JSON Schema");
    validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

fn assert_valid(file: &str, value: impl Serialize) {
    let value = serde_json::to_value(value).expect("our types are JSON");
    let faults = faults(file, &value);
    assert!(faults.is_empty(), "{file} does not describe {value:#}:\n{}", faults.join("\n"));
}

fn now() -> jiff::Timestamp {
    "2026-01-02T03:04:05.678Z".parse().expect("a timestamp")
}

fn item(content: ItemContent) -> Item {
    Item {
        id: ItemId::new(),
        thread_id: ThreadId::new(),
        turn_id: Some(TurnId::new()),
        created_at: now(),
        visibility: Visibility::Active,
        taint: None,
        content,
    }
}

fn tool_call() -> Item {
    item(ItemContent::ToolCall(ToolCallItem {
        call_id: ToolCallId::new("call_1"),
        tool: "proc.exec".into(),
        called_as: None,
        arguments: "{\"command\":\"ls\"}".into(),
        effect: Some(Effect::Execute),
        status: ToolCallStatus::Completed,
        result: Some(ToolResult::success("a\nb")),
        full_output: None,
        trace_id: TraceId::new(),
        duration_ms: Some(12),
    }))
}

fn thread() -> ThreadSummary {
    ThreadSummary {
        id: ThreadId::new(),
        title: "Fix the parser".into(),
        workspace: PathBuf::from("/w"),
        agent: "coder".into(),
        model: "deepseek/chat".into(),
        mode: Mode::Normal,
        posture: Posture::Ask,
        parent: None,
        created_at: now(),
        updated_at: now(),
        cursor: EventCursor(3),
    }
}

#[test]
fn model_traffic_is_described() {
    let call = ToolCall { id: ToolCallId::new("c"), name: "fs".into(), arguments: "{}".into() };
    let message = Message::assistant("x").with_tool_calls(vec![call.clone()]);
    assert_valid("message", &message);
    let parameters = RawValue::from_string("{\"type\":\"object\"}".into()).unwrap();
    assert_valid(
        "model-request",
        ModelRequest {
            model: "m".into(),
            messages: vec![Message::system("s"), message],
            tools: vec![ToolSchema { name: "fs".into(), description: "files".into(), parameters }],
            temperature: Some(0.0),
            ..ModelRequest::default()
        },
    );
    assert_valid("stream-event", StreamEvent::ToolUse(call));
    assert_valid(
        "stream-event",
        StreamEvent::MessageStop { reason: StopReason::ToolUse, usage: Usage::default() },
    );
}

#[test]
fn tool_answers_are_described() {
    let meta = Meta::new("fs", "read", TraceId::new());
    assert_valid("envelope", Envelope::success(json!({"text": "x"}), meta.clone()));
    let error = ToolError::new(ErrorCode::NotFound, "no such file").with_details(json!({"uri": "file:///x"}));
    assert_valid("envelope", Envelope::<Value>::failure(error, meta));
    assert_valid("tool-result", ToolResult::failure("no"));
    assert_valid("permission-decision", PermissionDecision::Deny { reason: "no".into() });
}

#[test]
fn items_and_events_are_described() {
    assert_valid("item", tool_call());
    assert_valid("item", item(ItemContent::AgentMessage { text: "done".into() }));
    let steps = vec![PlanStep { text: "read".into(), status: PlanStatus::Done }];
    assert_valid("item", item(ItemContent::Plan { steps }));
    let event = |content| Event { cursor: EventCursor(9), thread_id: ThreadId::new(), at: now(), content };
    assert_valid("event", event(EventContent::ThreadStarted { thread: thread() }));
    assert_valid("event", event(EventContent::ItemCompleted { item: tool_call() }));
    let summary = TurnSummary {
        ended: TurnEnd::Completed,
        steps: 2,
        usage: Usage::default(),
        cost: Some(Cost::from_nano_usd(5)),
        checkpoint: None,
        refused: 1,
        prefix_breaks: 0,
        context_tokens: Some(100),
        context_window: Some(1_000),
    };
    assert_valid("event", event(EventContent::TurnCompleted { turn_id: TurnId::new(), summary }));
}

#[test]
fn engine_requests_and_responses_are_described() {
    assert_valid(
        "request",
        Request::ThreadStart(ThreadStart {
            workspace: PathBuf::from("/w"),
            agent: None,
            ephemeral: false,
            options: ThreadOptions {
                model: Some("deepseek".into()),
                mode: Some(Mode::Plan),
                posture: Some(Posture::Auto),
                max_cost: Some(Cost::from_nano_usd(5)),
                ..ThreadOptions::default()
            },
        }),
    );
    assert_valid(
        "request",
        Request::ApprovalRespond(ApprovalRespond {
            approval_id: ApprovalId::new(),
            answer: ApprovalAnswer::Always { rule: "Bash(cargo test:*)".into() },
            by: "tui".into(),
        }),
    );
    assert_valid("response", Response::ThreadList(Page { entries: vec![thread()], next: None }));
    assert_valid("response", Response::TurnStart(TurnStarted::Started { turn_id: TurnId::new() }));
}

#[test]
fn what_is_not_ours_is_not_described() {
    assert!(!faults("request", &json!({"method": "thread/explode", "params": {}})).is_empty());
    assert!(!faults("envelope", &json!({"ok": true})).is_empty());
    assert!(!faults("item", &json!({"type": "agentMessage", "text": "no id"})).is_empty());
    assert!(!faults("message", &json!({"role": "developer"})).is_empty());
}
