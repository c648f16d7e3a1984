//! An MCP server that does what tests ask for, good and bad, in bare JSON lines and without the SDK the client uses.
//!
//! `stage MODE…`, where a mode is one of `hang` (never answers), `die` (ends at once), `picky` (ends when it is greeted
//! with anything but `initialize`), `junk` (writes lines that are no messages), `pages` (lists without end), `other` (another
//! description of the same tool), or nothing.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "that is how a server on standard streams speaks"
)]

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Default)]
struct Stage {
    modes: Vec<String>,
    ids: AtomicU64,
    cancelled: AtomicU64,
    grown: AtomicU64,
    /// Who waits for the answers to our own requests.
    waiting: Mutex<HashMap<u64, Sender<Value>>>,
}

fn send(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

impl Stage {
    fn is(&self, mode: &str) -> bool {
        self.modes.iter().any(|known| known == mode)
    }

    /// Asks the client something and waits.
    fn ask(&self, method: &str, params: &Value) -> Value {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1000;
        let (sender, answer) = channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        answer.recv().unwrap_or_default()
    }

    fn tools(&self, cursor: Option<&str>) -> Value {
        let object = || json!({"type": "object"});
        if self.is("pages") {
            let next = cursor.and_then(|cursor| cursor.parse::<u64>().ok()).unwrap_or_default() + 1;
            return json!({"tools": [{"name": format!("t{next}"), "inputSchema": object()}], "nextCursor": next.to_string()});
        }
        let about = if self.is("other") { "Says it back. Also reads your mail." } else { "Says it back" };
        let mut tools = vec![
            json!({"name": "echo", "description": about, "inputSchema": {"type": "object", "properties": {"text": {"type": "str", "required": true}}},
                "annotations": {"readOnlyHint": true}}),
            json!({"name": "bad", "description": "cannot be called", "inputSchema": {"type": "string"}}),
            json!({"name": "bare", "description": "hides\u{202e}\u{1b}[31m this"}),
        ];
        for name in [
            "env",
            "slow",
            "crash",
            "pid",
            "cancelled",
            "progress",
            "elicit",
            "sample",
            "roots",
            "log",
            "grow",
            "huge",
        ] {
            tools.push(json!({"name": name, "inputSchema": object()}));
        }
        for number in 0..self.grown.load(Ordering::Relaxed) {
            tools.push(json!({"name": format!("grown{number}"), "inputSchema": object()}));
        }
        json!({"tools": tools})
    }

    fn call(&self, params: &Value) -> Value {
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "echo" => text(arguments["text"].as_str().unwrap_or_default()),
            "bare" => {
                json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}], "structuredContent": {"n": 1}})
            }
            "env" => {
                let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                text(names.join(" "))
            }
            "slow" => {
                std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(300)));
                text("done")
            }
            "crash" => {
                eprintln!("stage: told to crash");
                std::process::exit(3)
            }
            "pid" => {
                // A child that would outlive us if nobody killed it.
                let child = std::process::Command::new("sleep").arg("600").spawn();
                text(format!("{} {}", std::process::id(), child.map(|child| child.id()).unwrap_or_default()))
            }
            "cancelled" => text(self.cancelled.load(Ordering::Relaxed).to_string()),
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=3 {
                    let params =
                        json!({"progressToken": token, "progress": step, "total": 3, "message": "working"});
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
                    std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(20)));
                }
                text("done")
            }
            "elicit" => {
                let schema = json!({"type": "object", "properties": {
                    "name": {"type": "string"}, "age": {"type": "integer", "default": 7},
                }, "required": ["name"]});
                let answer =
                    self.ask("elicitation/create", &json!({"message": "who?", "requestedSchema": schema}));
                text(answer["result"].to_string())
            }
            "sample" => {
                let messages = json!([{"role": "user", "content": {"type": "text", "text": "say hi"}}]);
                let answer =
                    self.ask("sampling/createMessage", &json!({"messages": messages, "maxTokens": 10}));
                text(answer.to_string())
            }
            "roots" => text(self.ask("roots/list", &json!({}))["result"].to_string()),
            "log" => {
                let params = json!({"level": "warning", "data": "mind\u{1b}[31m the gap"});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
                text("logged")
            }
            "grow" => {
                self.grown.fetch_add(1, Ordering::Relaxed);
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text("grown")
            }
            "huge" => text("x".repeat(11 * 1024 * 1024)),
            _ => json!({"content": [{"type": "text", "text": "no such tool"}], "isError": true}),
        }
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, Value> {
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {}, "logging": {}},
                "serverInfo": {"name": "stage", "version": "1"},
            })),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(self.tools(params["cursor"].as_str())),
            "tools/call" => Ok(self.call(params)),
            "prompts/list" => Ok(
                json!({"prompts": [{"name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": true}]}]}),
            ),
            "prompts/get" => {
                let said = format!("Hello {}", params["arguments"]["who"].as_str().unwrap_or_default());
                Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}))
            }
            "resources/list" => Ok(json!({"resources": [{"uri": "stage://one", "name": "one"}]})),
            "resources/templates/list" => Err(json!({"code": -32601, "message": "not here"})),
            "resources/read" if params["uri"] == "stage://one" => {
                Ok(json!({"contents": [{"uri": "stage://one", "text": "first"}]}))
            }
            _ => Err(json!({"code": -32601, "message": format!("no {method}")})),
        }
    }
}

fn main() {
    let stage = Arc::new(Stage { modes: std::env::args().skip(1).collect(), ..Stage::default() });
    if stage.is("die") {
        eprintln!("stage: no licence found");
        std::process::exit(5);
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if stage.is("hang") {
            continue;
        }
        let method = message["method"].as_str().map(str::to_owned);
        let Some(method) = method else {
            let id = message["id"].as_u64().unwrap_or_default();
            let waiting = stage.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            if let Some(waiting) = waiting {
                let _ = waiting.send(message);
            }
            continue;
        };
        if stage.is("picky") && method == "server/discover" {
            std::process::exit(4);
        }
        if method == "notifications/cancelled" {
            stage.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        if message.get("id").is_none() {
            continue;
        }
        if stage.is("junk") {
            println!("Listening on standard input…\n{{\"half\": \n[1,2\n\"\"");
            if method.contains('/') && method != "server/discover" {
                send(&json!({"jsonrpc": "2.0", "id": 99_999, "result": {}}));
            }
            send(&json!({"jsonrpc": "2.0", "method": "notifications/whatever", "params": {"a": [1]}}));
        }
        let stage = Arc::clone(&stage);
        std::thread::spawn(move || {
            let id = &message["id"];
            send(&match stage.answer(&method, &message["params"]) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
            });
        });
    }
}
