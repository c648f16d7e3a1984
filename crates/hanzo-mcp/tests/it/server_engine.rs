//! An engine that is not one: it plays what the server's tests need, and remembers what it was asked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use hanzo_protocol::engine::{
    Attendance, CommandOutcome, Done, EngineClient, EngineError, EngineErrorKind, Exported, List, ListKind,
    Listed, Mode, Page, Posture, Request, Response, ThreadStart, ThreadSummary, ToolCallRequest,
};
use hanzo_protocol::event::{Event, EventContent, EventCursor};
use hanzo_protocol::ids::{ApprovalId, ItemId, ThreadId};
use hanzo_protocol::item::Approval;
use hanzo_protocol::tool::{ToolCaller, ToolResult};
use hanzo_protocol::{BoxFuture, BoxStream};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

pub struct FakeEngine {
    pub asked: Mutex<Vec<Request>>,
    /// How many calls of `hang` were dropped.
    pub interrupted: AtomicUsize,
    /// Everything that happened: whoever subscribes late is told all of it.
    events: watch::Sender<Vec<Event>>,
    approvals: Mutex<HashMap<ApprovalId, oneshot::Sender<Value>>>,
}

impl FakeEngine {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            interrupted: AtomicUsize::new(0),
            events: watch::channel(Vec::new()).0,
            approvals: Mutex::default(),
        })
    }

    pub fn threads(&self) -> Vec<ThreadStart> {
        let asked = self.asked.lock().unwrap();
        let start = |request: &Request| match request {
            Request::ThreadStart(start) => Some(start.clone()),
            _ => None,
        };
        asked.iter().filter_map(start).collect()
    }

    /// How often the tools were listed.
    pub fn tool_listings(&self) -> usize {
        let is_it = |request: &&Request| matches!(request, Request::List(List { kind: ListKind::Tools, .. }));
        self.asked.lock().unwrap().iter().filter(is_it).count()
    }

    fn emit(&self, thread_id: ThreadId, content: EventContent) {
        let event =
            Event { cursor: EventCursor(1), thread_id, at: "2026-01-02T03:04:05Z".parse().unwrap(), content };
        self.events.send_modify(|events| events.push(event));
    }

    /// Asks for consent; the answer.
    async fn consent(&self, call: &ToolCallRequest, item_id: ItemId) -> String {
        let approval_id = ApprovalId::new();
        let (answer, answered) = oneshot::channel();
        self.approvals.lock().unwrap().insert(approval_id, answer);
        let approval = Approval {
            approval_id,
            item_id,
            tool: "fs.rm".into(),
            summary: "delete everything".into(),
            reason: "no rule speaks of it".into(),
            scopes: vec!["Edit(a)".into()],
        };
        self.emit(call.thread_id, EventContent::ApprovalRequested { approval });
        answered.await.unwrap().to_string()
    }

    async fn tool(&self, call: ToolCallRequest) -> ToolResult {
        let item = call.item_id.unwrap_or_else(ItemId::new);
        match call.tool.as_str() {
            "echo" => {
                let text = call.arguments["text"].as_str().unwrap_or_default().to_owned();
                ToolResult::success(text.clone()).with_envelope(json!({"ok": true, "data": {"text": text}}))
            }
            "large" => ToolResult::success("x".repeat(300_000)),
            "slow" => {
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                ToolResult::success("at last")
            }
            "fail" => ToolResult::failure("it broke"),
            "hang" => {
                let _guard = Interrupted(&self.interrupted);
                std::future::pending().await
            }
            "chatty" => {
                for line in ["one\n", "two\n"] {
                    self.emit(call.thread_id, EventContent::ItemDelta { item_id: item, delta: line.into() });
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                ToolResult::success("one\ntwo\n")
            }
            "careful" => ToolResult::success(self.consent(&call, item).await),
            "mcp__s__resources/read" | "mcp__s__prompts/get" => {
                let text = format!("{} {}", call.arguments, self.consent(&call, item).await);
                ToolResult::success(text.clone()).with_envelope(json!({"ok": true, "data": {"text": text}, "meta": {}}))
            }
            "agent" => ToolResult::success(format!("{} did: {}", call.arguments["agent"], call.arguments["task"])),
            "fs" if call.arguments["action"] == "read" => match call.arguments["path"].as_str() {
                Some("/project/a.txt") => {
                    ToolResult::success("text").with_envelope(json!({"ok": true, "data": {"text": "hello"}, "meta": {"paging": {}}}))
                }
                _ => ToolResult::failure("gone").with_envelope(json!({"ok": false, "error": {"code": "NOT_FOUND"}})),
            },
            "fs" => ToolResult::success("list").with_envelope(
                json!({"ok": true, "data": {"entries": [{"uri": "file:///project/a.txt", "kind": "file"}]}, "meta": {"paging": {}}}),
            ),
            _ => ToolResult::failure("no such tool").with_envelope(json!({"ok": false, "error": {"code": "UNKNOWN_TOOL"}})),
        }
    }
}

struct Interrupted<'a>(&'a AtomicUsize);

impl Drop for Interrupted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn listed(list: &List) -> Vec<Value> {
    let tool = |name: &str, effects: Value| json!({"name": name, "description": format!("About {name}"), "parameters": {"type": "object"}, "effects": effects});
    match list.kind {
        ListKind::Tools => vec![
            tool("fs", json!(["read", "write"])),
            tool("think", json!(["read"])),
            tool("net", json!(["network"])),
            tool("agent", json!(["read"])),
            tool("ask", json!(["read"])),
        ],
        ListKind::Agents => vec![
            json!({"name": "coder", "description": "Writes code"}),
            json!({"name": "code-reviewer", "description": "Reviews"}),
        ],
        ListKind::Commands => vec![
            json!({"name": "help", "description": "Help", "kind": "engine", "origin": "builtIn"}),
            json!({"name": "review", "description": "Review it", "argumentHint": "[focus]", "kind": "turn", "origin": "project"}),
        ],
        _ => Vec::new(),
    }
}

impl EngineClient for FakeEngine {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, EngineError>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            Ok(match request {
                Request::ThreadStart(start) => {
                    assert!(start.ephemeral && start.options.caller == ToolCaller::Remote);
                    assert!(matches!(start.options.attendance, Attendance::Attended | Attendance::Headless));
                    Response::ThreadStart(ThreadSummary {
                        id: ThreadId::new(),
                        title: String::new(),
                        workspace: PathBuf::from("/project"),
                        agent: "coder".into(),
                        model: "none".into(),
                        mode: Mode::Normal,
                        posture: Posture::Ask,
                        parent: None,
                        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
                        updated_at: "2026-01-02T03:04:05Z".parse().unwrap(),
                        cursor: EventCursor(0),
                    })
                }
                Request::List(list) => Response::List(Listed { entries: listed(&list) }),
                Request::ToolCall(call) => Response::ToolCall(self.tool(call).await),
                Request::ApprovalRespond(respond) => {
                    let waiting = self.approvals.lock().unwrap().remove(&respond.approval_id).unwrap();
                    waiting.send(serde_json::to_value(&respond.answer).unwrap()).unwrap();
                    Response::ApprovalRespond(Done {})
                }
                Request::CommandRun(run) => Response::CommandRun(CommandOutcome::Shown {
                    text: format!("{} {}", run.name, run.arguments),
                }),
                Request::ThreadList(_) => Response::ThreadList(Page { entries: Vec::new(), next: None }),
                Request::ThreadExport(_) => Response::ThreadExport(Exported { text: "# thread".into() }),
                Request::ThreadDelete(_) => Response::ThreadDelete(Done {}),
                other => {
                    let message = format!("{} is not played here", other.method());
                    return Err(EngineError { kind: EngineErrorKind::NotFound, message });
                }
            })
        })
    }

    fn subscribe(&self, thread: ThreadId, _: EventCursor) -> BoxStream<'_, Event> {
        let events = self.events.subscribe();
        let stream = futures_util::stream::unfold((events, 0), |(mut events, told)| async move {
            let event = events.wait_for(|events| events.len() > told).await.ok()?[told].clone();
            Some((event, (events, told + 1)))
        });
        Box::pin(stream.filter(move |event| std::future::ready(event.thread_id == thread)))
    }
}
