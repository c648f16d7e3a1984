//! Items for tests, written as they are on the wire, so that a field added later does not concern them.

use hanzo_protocol::ids::{ItemId, ThreadId, TraceId, TurnId};
use hanzo_protocol::item::{Item, ItemContent};
use serde_json::{Value, json};

/// Makes items of one thread, each at a moment of its own.
pub struct Maker {
    thread: ThreadId,
    turn: TurnId,
    second: i64,
}

impl Maker {
    pub fn new() -> Self {
        Self { thread: ThreadId::new(), turn: TurnId::new(), second: 0 }
    }

    pub fn next_turn(&mut self) {
        self.turn = TurnId::new();
    }

    /// An item as the wire has it, a second after the one before.
    pub fn item(&mut self, content: Value) -> Item {
        self.second += 1;
        self.beside(content)
    }

    /// An item of the same moment as the one before: another call of the same step.
    pub fn beside(&self, mut content: Value) -> Item {
        let at = jiff::Timestamp::from_second(1_700_000_000 + self.second).unwrap();
        let fields = content.as_object_mut().unwrap();
        fields.insert("id".into(), json!(ItemId::new()));
        fields.insert("threadId".into(), json!(self.thread));
        fields.insert("turnId".into(), json!(self.turn));
        fields.insert("createdAt".into(), json!(at));
        serde_json::from_value(content).unwrap()
    }

    pub fn of(&mut self, content: ItemContent) -> Item {
        let mut item = self.user("");
        item.content = content;
        item
    }

    pub fn user(&mut self, text: &str) -> Item {
        self.item(json!({"type": "userMessage", "text": text}))
    }

    pub fn agent(&mut self, text: &str) -> Item {
        self.item(json!({"type": "agentMessage", "text": text}))
    }

    pub fn thought(&mut self, text: &str) -> Item {
        self.item(json!({"type": "reasoning", "text": text, "signature": "s"}))
    }

    pub fn call(&mut self, tool: &str, arguments: &Value, output: &str) -> Item {
        self.item(call(tool, arguments, "completed", output))
    }

    pub fn fragment(&mut self, kind: &str, text: &str) -> Item {
        self.item(json!({"type": "fragment", "kind": kind, "text": text}))
    }
}

/// A call as the wire has it.
pub fn call(tool: &str, arguments: &Value, status: &str, output: &str) -> Value {
    let effect = match tool {
        "fs.apply_patch" => "write",
        "proc.exec" => "execute",
        _ => "read",
    };
    json!({
        "type": "toolCall",
        "callId": format!("call_{}", ItemId::new()),
        "tool": tool,
        "arguments": arguments.to_string(),
        "effect": effect,
        "status": status,
        "result": {"output": output, "isError": status == "failed"},
        "traceId": TraceId::new(),
    })
}

pub fn digests(items: &[Item]) -> Vec<&str> {
    let digest = |item: &'_ Item| matches!(item.content, ItemContent::Compaction { .. });
    items.iter().filter(|item| digest(item)).map(text_of).collect()
}

pub fn users(items: &[Item]) -> Vec<&str> {
    let user = |item: &'_ Item| matches!(item.content, ItemContent::UserMessage { .. });
    items.iter().filter(|item| user(item)).map(text_of).collect()
}

pub fn text_of(item: &Item) -> &str {
    match &item.content {
        ItemContent::UserMessage { text, .. }
        | ItemContent::AgentMessage { text }
        | ItemContent::Fragment { text, .. } => text,
        ItemContent::Compaction { digest, .. } => digest,
        ItemContent::Reasoning(reasoning) => &reasoning.text,
        _ => "",
    }
}
