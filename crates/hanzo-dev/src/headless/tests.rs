//! The face against an engine that plays a script.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use hanzo_protocol::engine::{
    Done, EngineClient, EngineError, Listed, Mode, Page, Posture, Request, Response, ThreadOptions,
    ThreadSummary, TurnStarted,
};
use hanzo_protocol::event::{Event, EventContent, EventCursor};
use hanzo_protocol::ids::{ItemId, ThreadId, ToolCallId, TraceId, TurnId};
use hanzo_protocol::item::{
    Item, ItemContent, ToolCallItem, ToolCallStatus, TurnEnd, TurnSummary, Visibility,
};
use hanzo_protocol::message::{ApiError, ApiErrorKind};
use hanzo_protocol::tool::ToolResult;
use hanzo_protocol::usage::{Cost, Usage};
use hanzo_protocol::{BoxFuture, BoxStream};
use serde_json::{Value, json};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::*;
use crate::cli::OutputFormat;

/// What a turn of the script does.
enum Turn {
    Events(Vec<EventContent>),
    /// Nothing until it is interrupted.
    Hangs,
}

struct Script {
    thread: ThreadSummary,
    turns: Mutex<VecDeque<Turn>>,
    asked: Mutex<Vec<Request>>,
    events: mpsc::UnboundedSender<Event>,
    stream: Mutex<Option<mpsc::UnboundedReceiver<Event>>>,
}

impl Script {
    fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let (events, stream) = mpsc::unbounded_channel();
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let thread = ThreadSummary {
            id: ThreadId::new(),
            title: String::new(),
            workspace: PathBuf::from("/w"),
            agent: "coder".into(),
            model: "p/m".into(),
            mode: Mode::Normal,
            posture: Posture::Ask,
            parent: None,
            created_at: now,
            updated_at: now,
            cursor: EventCursor(0),
        };
        Self {
            thread,
            turns: Mutex::new(turns.into_iter().collect()),
            asked: Mutex::default(),
            events,
            stream: Mutex::new(Some(stream)),
        }
    }

    fn emit(&self, content: EventContent) {
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        let event = Event { cursor: EventCursor(1), thread_id: self.thread.id, at, content };
        self.events.send(event).unwrap();
    }

    fn answer(&self, request: Request) -> Response {
        self.asked.lock().unwrap().push(request.clone());
        match request {
            Request::ThreadStart(_) => Response::ThreadStart(self.thread.clone()),
            Request::ThreadResume(_) => Response::ThreadResume(self.thread.clone()),
            Request::ThreadFork(_) => Response::ThreadFork(self.thread.clone()),
            Request::ThreadList(_) => {
                Response::ThreadList(Page { entries: vec![self.thread.clone()], next: None })
            }
            Request::List(_) => {
                Response::List(Listed { entries: vec![json!({"name": "fs", "reference": "p/m"})] })
            }
            Request::TurnStart(_) => {
                match self.turns.lock().unwrap().pop_front().expect("a turn of the script") {
                    Turn::Events(events) => events.into_iter().for_each(|event| self.emit(event)),
                    Turn::Hangs => {}
                }
                Response::TurnStart(TurnStarted::Started { turn_id: TurnId::new() })
            }
            Request::TurnInterrupt(_) => {
                self.emit(rests(TurnEnd::Interrupted, 0));
                Response::TurnInterrupt(Done {})
            }
            other => panic!("not in the script: {other:?}"),
        }
    }
}

impl EngineClient for Script {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, EngineError>> {
        Box::pin(async move { Ok(self.answer(request)) })
    }

    fn subscribe(&self, _: ThreadId, _: EventCursor) -> BoxStream<'_, Event> {
        let stream = self.stream.lock().unwrap().take().expect("one subscriber");
        Box::pin(futures_util::stream::unfold(stream, |mut stream| async {
            let event = stream.recv().await?;
            Some((event, stream))
        }))
    }
}

fn item(content: ItemContent) -> EventContent {
    EventContent::ItemCompleted {
        item: Item {
            id: ItemId::new(),
            thread_id: ThreadId::new(),
            turn_id: None,
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            visibility: Visibility::Active,
            taint: None,
            content,
        },
    }
}

fn says(text: &str) -> EventContent {
    item(ItemContent::AgentMessage { text: text.to_owned() })
}

fn calls(tool: &str, status: ToolCallStatus) -> EventContent {
    item(ItemContent::ToolCall(ToolCallItem {
        call_id: ToolCallId::new("c"),
        tool: tool.to_owned(),
        called_as: None,
        arguments: r#"{"command":"true"}"#.to_owned(),
        effect: None,
        status,
        result: Some(ToolResult::success("done")),
        full_output: None,
        trace_id: TraceId::new(),
        duration_ms: Some(5),
    }))
}

fn rests(ended: TurnEnd, refused: u32) -> EventContent {
    let usage = Usage { input_tokens: 10, cache_read_tokens: 90, output_tokens: 7, ..Usage::default() };
    let cost = Some(Cost::from_nano_usd(2_000_000));
    let summary = TurnSummary {
        ended,
        steps: 2,
        usage,
        cost,
        checkpoint: None,
        refused,
        prefix_breaks: 0,
        context_tokens: None,
        context_window: None,
    };
    EventContent::TurnCompleted { turn_id: TurnId::new(), summary }
}

/// What was written, for the test to look at.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl AsyncWrite for Written {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Ran {
    exit: Exit,
    data: Written,
    messages: Written,
    asked: Vec<Request>,
}

fn task() -> Task {
    Task {
        thread: ThreadChoice::New,
        workspace: PathBuf::from("/w"),
        agent: None,
        ephemeral: false,
        options: ThreadOptions::default(),
        prompts: VecDeque::from([Prompt { text: "do it".into(), attachments: Vec::new() }]),
        schema: None,
    }
}

fn run_script(script: &Script, task: Task, format: OutputFormat, stop: Stop) -> Ran {
    let (data, messages) = (Written::default(), Written::default());
    let mut output = Output::new(
        format,
        Verbosity::Progress,
        Paint::Plain,
        Box::new(data.clone()),
        Box::new(messages.clone()),
    );
    let explain = |error: EngineError| Failure::message(exit_of(&error), error.message);
    let sandbox = |_: ThreadId| "full".to_owned();
    let around = Surroundings { client: script, explain: &explain, sandbox: &sandbox };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(run(&around, task, &mut output, stop));
    let exit = done.unwrap_or_else(|failure| failure.exit());
    let asked = script.asked.lock().unwrap().clone();
    Ran { exit, data, messages, asked }
}

fn never() -> Stop {
    Box::pin(std::future::pending())
}

fn ran(events: Vec<EventContent>, format: OutputFormat) -> Ran {
    run_script(&Script::new([Turn::Events(events)]), task(), format, never())
}

#[test]
fn text_is_the_last_word_alone_and_progress_is_elsewhere() {
    let events = vec![
        says("Let me look."),
        calls("proc.exec", ToolCallStatus::Completed),
        says("All is well."),
        rests(TurnEnd::Completed, 0),
    ];
    let ran = ran(events, OutputFormat::Text);
    assert_eq!(ran.exit, Exit::Ok);
    assert_eq!(ran.data.text(), "All is well.\n");
    let progress = ran.messages.text();
    assert!(progress.starts_with("proc.exec  true  5 ms\n"), "{progress}");
    assert!(
        progress.contains("2 model requests · 100 tokens in, 7 out · 90 % from the cache · $0.0020"),
        "{progress}"
    );
}

#[test]
fn json_is_one_object_with_the_shared_names() {
    let ran = ran(vec![says("Yes."), rests(TurnEnd::Completed, 0)], OutputFormat::Json);
    let [result] = &ran.data.lines()[..] else { panic!("{}", ran.data.text()) };
    let expected = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 2, "result": "Yes.",
        "usage": {"input_tokens": 10, "output_tokens": 7, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0},
        "total_cost_usd": 0.002, "refused": 0, "exit_code": 0,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&result[name], value, "{name}");
    }
    assert!(result["duration_ms"].is_u64() && result["session_id"] == result["thread_id"]);
}

#[test]
fn a_stream_begins_with_init_passes_events_on_and_ends_with_the_result() {
    let ran = ran(vec![says("Yes."), rests(TurnEnd::Completed, 0)], OutputFormat::StreamJson);
    let lines = ran.data.lines();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["init", "item.completed", "turn.completed", "result"]);
    assert_eq!(lines[0]["model"], "p/m");
    assert_eq!(lines[0]["sandbox"], "full");
    assert_eq!(lines[0]["tools"], json!(["fs"]));
    assert!(lines[0]["capabilities"].as_array().unwrap().contains(&json!("interrupt")));
}

#[test]
fn each_end_of_a_turn_has_its_code() {
    for (ended, exit) in [
        (TurnEnd::Completed, Exit::Ok),
        (TurnEnd::StepLimit, Exit::TurnLimit),
        (TurnEnd::BudgetReached, Exit::Budget),
        (TurnEnd::NoProgress, Exit::NoProgress),
        (TurnEnd::Interrupted, Exit::Interrupted),
    ] {
        let ran = ran(vec![says("so far"), rests(ended, 0)], OutputFormat::Json);
        assert_eq!(ran.exit, exit);
        let result = &ran.data.lines()[0];
        assert_eq!(
            (&result["exit_code"], &result["is_error"]),
            (&json!(exit.code()), &json!(exit != Exit::Ok))
        );
        assert_eq!(result["result"], "so far", "what there is of an answer is given");
    }
}

#[test]
fn a_failed_request_is_a_result_too() {
    for (kind, exit) in [(ApiErrorKind::Auth, Exit::Auth), (ApiErrorKind::Network, Exit::Failure)] {
        let error = ApiError { kind, message: "it broke".into(), status: None, retry_after_ms: None };
        let failed = EventContent::TurnFailed { turn_id: TurnId::new(), error };
        let ran = ran(vec![failed], OutputFormat::StreamJson);
        assert_eq!(ran.exit, exit);
        let result = ran.data.lines().pop().unwrap();
        assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(true)));
        assert!(result["error"].as_str().unwrap().starts_with("it broke"), "{result}");
    }
}

#[test]
fn a_refusal_counts_only_when_nothing_succeeded_after_it() {
    use ToolCallStatus::{Completed, Denied, Failed};
    for (statuses, exit) in [
        (vec![Denied], Exit::ApprovalNeeded),
        (vec![Completed, Denied], Exit::ApprovalNeeded),
        (vec![Denied, Failed], Exit::ApprovalNeeded),
        (vec![Denied, Completed], Exit::Ok),
    ] {
        let mut events: Vec<EventContent> =
            statuses.iter().map(|status| calls("proc.exec", *status)).collect();
        events.push(says("That is all."));
        events.push(rests(TurnEnd::Completed, 1));
        assert_eq!(ran(events, OutputFormat::Text).exit, exit, "{statuses:?}");
    }
    // Refused by a rule: nobody was missing.
    let events = vec![calls("proc.exec", Denied), rests(TurnEnd::Completed, 0)];
    assert_eq!(ran(events, OutputFormat::Text).exit, Exit::Ok);
}

#[test]
fn being_stopped_interrupts_the_turn_and_still_ends_with_a_result() {
    for exit in [Exit::Terminated, Exit::Interrupted, Exit::Timeout] {
        let stop: Stop = Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            exit
        });
        let ran = run_script(&Script::new([Turn::Hangs]), task(), OutputFormat::StreamJson, stop);
        assert_eq!(ran.exit, exit);
        assert!(ran.asked.iter().any(|request| matches!(request, Request::TurnInterrupt(_))));
        let result = ran.data.lines().pop().unwrap();
        assert_eq!((&result["type"], &result["exit_code"]), (&json!("result"), &json!(exit.code())));
    }
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schema.json");
    std::fs::write(&file, json!({"type": "object", "required": ["n"]}).to_string()).unwrap();
    let with_schema = || Task { schema: Some(AnswerSchema::load(&file).unwrap()), ..task() };
    let turn = |text: &str| Turn::Events(vec![says(text), rests(TurnEnd::Completed, 0)]);

    let script = Script::new([turn("sorry"), turn("```json\n{\"n\": 1}\n```")]);
    let ran = run_script(&script, with_schema(), OutputFormat::Json, never());
    assert_eq!(ran.exit, Exit::Ok);
    assert_eq!(ran.data.lines()[0]["structured_output"], json!({"n": 1}));
    let said: Vec<String> = ran
        .asked
        .iter()
        .filter_map(|request| match request {
            Request::TurnStart(start) => Some(start.text.clone()),
            _ => None,
        })
        .collect();
    assert!(said[0].starts_with("do it\n\n") && said[0].contains("\"required\""), "{}", said[0]);
    assert!(said[1].starts_with("That answer is not valid: it is not JSON"), "{}", said[1]);

    let script = Script::new([turn("a"), turn("b"), turn("{}")]);
    let ran = run_script(&script, with_schema(), OutputFormat::StreamJson, never());
    assert_eq!(ran.exit, Exit::Schema);
    assert_eq!(ran.data.lines().pop().unwrap()["subtype"], "error_schema");
}

#[test]
fn a_thread_is_found_and_copied_when_that_is_asked() {
    let events = || [Turn::Events(vec![says("ok"), rests(TurnEnd::Completed, 0)])];
    let script = Script::new(events());
    let id = script.thread.id.to_string();
    let choice = ThreadChoice::Id(id[..8].to_owned(), Continue::Copy);
    let ran = run_script(&script, Task { thread: choice, ..task() }, OutputFormat::Text, never());
    assert_eq!(ran.exit, Exit::Ok);
    let methods: Vec<&str> = ran.asked.iter().map(Request::method).collect();
    assert_eq!(methods, ["thread/list", "thread/fork", "thread/resume", "turn/start"]);

    let missing = ThreadChoice::Id("nope".into(), Continue::Itself);
    let ran = run_script(&Script::new([]), Task { thread: missing, ..task() }, OutputFormat::Json, never());
    assert_eq!(ran.exit, Exit::BadInput);
    assert_eq!(ran.data.lines()[0]["subtype"], "error_input");
}

#[test]
fn a_budget_that_cannot_be_kept_is_refused() {
    let options = ThreadOptions { max_cost: Some(cost(0.5)), ..ThreadOptions::default() };
    let ran = run_script(&Script::new([]), Task { options, ..task() }, OutputFormat::Json, never());
    assert_eq!(ran.exit, Exit::BadInput);
    assert!(ran.data.lines()[0]["error"].as_str().unwrap().contains("price"));
}
