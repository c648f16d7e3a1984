//! The server as a client on a pipe sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hanzo_mcp::server::{Server, ServerOptions, pipe};
use hanzo_protocol::engine::{Attendance, Request};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

use crate::server_engine::FakeEngine;

pub struct Client {
    output: WriteHalf<DuplexStream>,
    input: BufReader<ReadHalf<DuplexStream>>,
    pub next: u64,
    pub engine: Arc<FakeEngine>,
    serving: tokio::task::JoinHandle<()>,
}

impl Client {
    pub fn start(options: ServerOptions) -> Self {
        let engine = FakeEngine::new();
        let server = Server::new(Arc::clone(&engine) as _, options);
        Self::of(server, engine)
    }

    pub fn of(server: Server, engine: Arc<FakeEngine>) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(theirs);
        let serving = tokio::spawn(pipe::serve(server, input, output));
        let (input, output) = tokio::io::split(ours);
        Self { output, input: BufReader::new(input), next: 1, engine, serving }
    }

    /// Says its last; whatever is still under way may answer.
    pub async fn say_its_last(&mut self) {
        self.output.shutdown().await.unwrap();
    }

    /// A client that has greeted.
    pub async fn greeted(capabilities: Value) -> Self {
        let mut client = Self::start(ServerOptions::new("/project"));
        let answer = client.greet("2025-11-25", capabilities).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client
    }

    pub async fn greet(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "0"}});
        let answer = self.ask("initialize", params).await;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer
    }

    pub async fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    /// The answer to `id`, and the methods of what came before it.
    pub async fn answer_to(&mut self, id: u64) -> (Value, Vec<String>) {
        let mut before = Vec::new();
        loop {
            let heard = self.hear().await;
            if let Some(method) = heard["method"].as_str() {
                before.push(method.to_owned());
            } else {
                assert_eq!(heard["id"], id, "{heard}");
                return (heard, before);
            }
        }
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).await.unwrap();
    }

    pub async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(10), self.input.read_line(&mut line));
        assert!(read.await.expect("an answer in time").unwrap() > 0, "the server hung up");
        serde_json::from_str(&line).unwrap()
    }

    pub async fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Hangs up, and waits for the server to be done with it.
    pub async fn leave(self) {
        let Self { output, input, serving, .. } = self;
        drop((output, input));
        tokio::time::timeout(Duration::from_secs(20), serving).await.expect("it ends").unwrap();
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }
}

pub fn modern(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

#[tokio::test]
async fn every_protocol_version_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::start(ServerOptions::new("/project"));
        let answer = client.greet(version, json!({})).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "hanzo-dev");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
        assert_eq!(
            client.call("echo", json!({"text": version})).await["result"]["content"][0]["text"],
            version
        );
    }
    let mut client = Client::start(ServerOptions::new("/project"));
    let found = client.ask("server/discover", modern(json!({}), &json!({}))).await;
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")),
        "{found}"
    );
    let answer = client
        .ask("tools/call", modern(json!({"name": "echo", "arguments": {"text": "x"}}), &json!({})))
        .await;
    assert_eq!(
        (&answer["result"]["content"][0]["text"], &answer["result"]["resultType"]),
        (&json!("x"), &json!("complete"))
    );
}

#[tokio::test]
async fn tools_have_hints_and_agents_are_tools() {
    let mut client = Client::greeted(json!({})).await;
    let tools = client.ask("tools/list", json!({})).await["result"]["tools"].as_array().unwrap().clone();
    let named = |name: &str| {
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let hints = |name: &str| named(name)["annotations"].clone();
    assert_eq!(
        hints("think"),
        json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false})
    );
    assert_eq!(hints("fs"), json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false}));
    assert_eq!(hints("net")["openWorldHint"], true);
    let reviewer = named("hanzo_agent_code_reviewer");
    assert_eq!(reviewer["inputSchema"]["required"], json!(["message"]));
    assert_eq!(reviewer["inputSchema"]["properties"]["message"]["type"], "string");
    assert!(!tools.iter().any(|tool| tool["name"] == "agent" || tool["name"] == "ask"));

    let done = client.call("hanzo_agent_code_reviewer", json!({"message": "look"})).await;
    assert_eq!(done["result"]["content"][0]["text"], "\"code-reviewer\" did: \"look\"");
    assert_eq!(client.call("hanzo_agent_nobody", json!({"message": "x"})).await["error"]["code"], -32602);
    assert_eq!(client.call("hanzo_agent_coder", json!({"message": 5})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn agents_are_not_called_deeper_than_three() {
    let mut options = ServerOptions::new("/project");
    options.depth = 3;
    let mut client = Client::start(options);
    client.greet("2025-11-25", json!({})).await;
    let tools = client.ask("tools/list", json!({})).await;
    assert!(!tools.to_string().contains("hanzo_agent_"));
    let refused = client.call("hanzo_agent_coder", json!({"message": "x"})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("3 agents stand above"), "{refused}");
}

#[tokio::test]
async fn results_have_text_and_the_envelope_and_say_when_they_failed() {
    let mut client = Client::greeted(json!({})).await;
    let good = client.call("echo", json!({"text": "hi"})).await;
    assert_eq!(good["result"]["content"], json!([{"type": "text", "text": "hi"}]));
    assert_eq!(good["result"]["structuredContent"], json!({"ok": true, "data": {"text": "hi"}}));
    assert_eq!(good["result"]["isError"], false);
    let bad = client.call("fail", json!({})).await;
    assert_eq!(
        (&bad["result"]["isError"], &bad["result"]["content"][0]["text"]),
        (&json!(true), &json!("it broke"))
    );
    assert_eq!(client.call("nothing", json!({})).await["error"]["code"], -32602);
    assert_eq!(client.ask("tools/call", json!({"nonsense": 1})).await["error"]["code"], -32602);
    assert_eq!(client.ask("no/such", json!({})).await["error"]["code"], -32601);
}

#[tokio::test]
async fn commands_are_prompts_and_files_are_resources() {
    let mut client = Client::greeted(json!({})).await;
    let prompts = client.ask("prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"].as_array().unwrap().len(), 1);
    assert_eq!(prompts["result"]["prompts"][0]["arguments"][0]["name"], "arguments");
    let prompt =
        client.ask("prompts/get", json!({"name": "review", "arguments": {"arguments": "speed"}})).await;
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "review speed");

    let files = client.ask("resources/list", json!({})).await;
    assert_eq!(files["result"]["resources"][0]["uri"], "file:///project/a.txt");
    let next = files["result"]["nextCursor"].clone();
    let threads = client.ask("resources/list", json!({ "cursor": next })).await;
    assert_eq!(
        (&threads["result"]["resources"], &threads["result"]["nextCursor"]),
        (&json!([]), &Value::Null)
    );
    let read = client.ask("resources/read", json!({"uri": "file:///project/a.txt"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "hello");
    for missing in ["file:///project/b.txt", "http://example.com", "thread:///nonsense"] {
        assert_eq!(
            client.ask("resources/read", json!({ "uri": missing })).await["error"]["code"],
            -32002,
            "{missing}"
        );
    }
    assert_eq!(client.ask("resources/list", json!({"cursor": "mine"})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn output_is_progress_for_those_who_want_it() {
    let mut client = Client::greeted(json!({})).await;
    let id = client
        .request("tools/call", json!({"name": "chatty", "arguments": {}, "_meta": {"progressToken": "p"}}))
        .await;
    for (count, text) in [(1.0, "one"), (2.0, "two")] {
        let shown = client.hear().await;
        assert_eq!(shown["method"], "notifications/progress");
        assert_eq!(shown["params"], json!({"progressToken": "p", "progress": count, "message": text}));
    }
    assert_eq!(client.hear().await["id"], id);
    assert_eq!(client.call("chatty", json!({})).await["result"]["content"][0]["text"], "one\ntwo\n");
}

#[tokio::test]
async fn cancelling_interrupts_the_call_and_nothing_else() {
    let mut client = Client::greeted(json!({})).await;
    let id = client.request("tools/call", json!({"name": "hang", "arguments": {}})).await;
    assert_eq!(
        client.call("echo", json!({"text": "beside"})).await["result"]["content"][0]["text"],
        "beside"
    );
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    assert_eq!(client.call("echo", json!({"text": "after"})).await["result"]["content"][0]["text"], "after");
    let engine = Arc::clone(&client.engine);
    tokio::time::timeout(Duration::from_secs(5), async {
        while engine.interrupted.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the call is interrupted");
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_calls_and_its_thread_along() {
    let mut client = Client::greeted(json!({})).await;
    client.request("tools/call", json!({"name": "hang", "arguments": {}})).await;
    client.call("echo", json!({})).await;
    let Client { output, input, serving, engine, .. } = client;
    drop((output, input));
    tokio::time::timeout(Duration::from_secs(20), serving).await.expect("it ends").unwrap();
    assert_eq!(engine.interrupted.load(Ordering::SeqCst), 1);
    tokio::time::timeout(Duration::from_secs(5), async {
        while !engine.asked.lock().unwrap().iter().any(|request| matches!(request, Request::ThreadDelete(_)))
        {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("its thread is forgotten");
}

#[tokio::test]
async fn consent_is_asked_of_the_person_at_the_client() {
    for (answer, expected) in [
        (json!({"action": "accept", "content": {"decision": "Allow once"}}), json!({"type": "once"})),
        (
            json!({"action": "accept", "content": {"decision": "Allow `Edit(a)` until the connection ends"}}),
            json!({"type": "session", "rule": "Edit(a)"}),
        ),
        (json!({"action": "accept", "content": {"decision": "Deny"}}), json!({"type": "deny"})),
        (json!({"action": "accept", "content": {}}), json!({"type": "deny"})),
        (json!({"action": "decline"}), json!({"type": "deny"})),
    ] {
        let mut client = Client::greeted(json!({"elicitation": {}})).await;
        let id = client.request("tools/call", json!({"name": "careful", "arguments": {}})).await;
        let form = client.hear().await;
        assert_eq!(form["method"], "elicitation/create");
        let shown = form["params"]["message"].as_str().unwrap();
        assert!(shown.contains("delete everything") && shown.contains("no rule speaks of it"), "{shown}");
        client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": answer})).await;
        let done = client.hear().await;
        let told: Value =
            serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&done["id"], told), (&json!(id), expected));
        assert_eq!(client.engine.threads()[0].options.attendance, Attendance::Attended);
    }
    let mut client = Client::greeted(json!({})).await;
    client.call("echo", json!({})).await;
    assert_eq!(client.engine.threads()[0].options.attendance, Attendance::Headless, "nobody can be asked");
}

#[tokio::test]
async fn since_2026_consent_is_asked_by_the_result() {
    let mut client = Client::start(ServerOptions::new("/project"));
    let can = json!({"elicitation": {"form": {}}});
    let call = || json!({"name": "careful", "arguments": {"n": 1}});
    let first = client.ask("tools/call", modern(call(), &can)).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let (name, form) = first["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(form["method"], "elicitation/create");
    let answered = |state: &Value, mut call: Value| {
        call["requestState"] = state.clone();
        call["inputResponses"] = json!({name: {"action": "accept", "content": {"decision": "Allow once"}}});
        call
    };
    let state = &first["result"]["requestState"];
    let forged = client.ask("tools/call", modern(answered(&json!("0123456789"), call()), &can)).await;
    assert_eq!(forged["error"]["code"], -32602);
    let other = json!({"name": "careful", "arguments": {"n": 2}});
    let other = client.ask("tools/call", modern(answered(state, other), &can)).await;
    assert_eq!(other["error"]["code"], -32602, "an answer is for the call it was asked for");
    let done = client.ask("tools/call", modern(answered(state, call()), &can)).await;
    assert_eq!(done["result"]["content"][0]["text"], "{\"type\":\"once\"}");
    let again = client.ask("tools/call", modern(answered(state, call()), &can)).await;
    assert_eq!(again["error"]["code"], -32602, "and only once");
}

#[tokio::test]
async fn content_length_is_answered_in_kind() {
    let mut client = Client::start(ServerOptions::new("/project"));
    let hello = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "2024-11-05",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}})
    .to_string();
    client.raw(format!("Content-Length: {}\r\n\r\n{hello}", hello.len()).as_bytes()).await;
    let mut header = String::new();
    client.input.read_line(&mut header).await.unwrap();
    let length: usize = header.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
    client.input.read_line(&mut header).await.unwrap();
    let mut body = vec![0; length];
    client.input.read_exact(&mut body).await.unwrap();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("a"), &json!("2024-11-05")));
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_and_the_next_one_answered() {
    let mut client = Client::greeted(json!({})).await;
    let large = "x".repeat(11 * 1024 * 1024);
    let message =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"ping\",\"params\":{{\"x\":\"{large}\"}}}}\n");
    client.raw(message.as_bytes()).await;
    let refused = client.hear().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(
        client.call("echo", json!({"text": "still here"})).await["result"]["content"][0]["text"],
        "still here"
    );
}

#[tokio::test]
async fn a_batch_is_answered_as_one() {
    let mut client = Client::greeted(json!({})).await;
    let call = |id: Value, text: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}});
    client
        .send(&json!([call(json!(7), "a"), call(json!("eight"), "b"), {"jsonrpc": "2.0", "method": "x"}, 5]))
        .await;
    let answers = client.hear().await;
    let answers = answers.as_array().unwrap();
    let text = |id: Value| {
        answers.iter().find(|answer| answer["id"] == id).unwrap()["result"]["content"][0]["text"].clone()
    };
    assert_eq!((answers.len(), text(json!(7)), text(json!("eight"))), (3, json!("a"), json!("b")));
    client.send(&json!([])).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_the_first_call_goes_on() {
    let mut client = Client::greeted(json!({})).await;
    let ask = json!({"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": {"name": "chatty", "arguments": {}}});
    client.send(&ask).await;
    client.send(&ask).await;
    let (first, second) = (client.hear().await, client.hear().await);
    assert_eq!(first["error"]["code"], -32600, "{first}");
    assert_eq!(second["result"]["content"][0]["text"], "one\ntwo\n");
}

#[tokio::test]
async fn many_calls_at_once_are_all_answered() {
    let mut client = Client::greeted(json!({})).await;
    let Client { mut output, mut input, .. } = client;
    let writing = tokio::spawn(async move {
        for id in 0..3000 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": id.to_string()}}});
            output.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        }
        output
    });
    let mut seen = std::collections::HashSet::new();
    for _ in 0..3000 {
        let mut line = String::new();
        tokio::time::timeout(Duration::from_secs(20), input.read_line(&mut line)).await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], answer["id"].to_string());
        seen.insert(answer["id"].as_u64().unwrap());
    }
    assert_eq!(seen.len(), 3000);
    client = Client {
        output: writing.await.unwrap(),
        input,
        next: 5000,
        engine: client.engine,
        serving: client.serving,
    };
    client.call("echo", json!({})).await;
}

fn nasty() -> impl Strategy<Value = Vec<u8>> {
    let text = |text: &str| Just(text.as_bytes().to_vec());
    prop_oneof![
        text("nonsense\n"),
        text("{\n"),
        text("{\"jsonrpc\":\"2.0\"}\n"),
        text("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}\n"),
        text("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n"),
        text("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\"}\n"),
        text("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":[]}\n"),
        text("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":5}\n"),
        text("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n"),
        text("{\"jsonrpc\":\"2.0\",\"id\":6,\"error\":{\"code\":1,\"message\":\"x\"}}\n"),
        text("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}\n"),
        text("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n"),
        text("[[[[]]]]\n"),
        text("null\n\"text\"\n5\n"),
        text("Content-Length: x\r\n\r\n"),
        text("content-nothing\n"),
        Just([vec![b'['; 5000], b"\n".to_vec()].concat()),
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(|mut bytes| {
            bytes.push(b'\n');
            bytes
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: hanzo_testkit::scale::rounds(800), ..ProptestConfig::default() })]

    #[test]
    fn after_anything_the_next_message_is_answered(
        before in proptest::collection::vec(nasty(), 0..6),
        after in proptest::collection::vec(nasty(), 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = Client::start(ServerOptions::new("/project"));
            // A header without an end would rightly take what follows for one of its lines.
            for bytes in &before {
                client.raw(bytes).await;
            }
            client.raw(b"\n\n").await;
            let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": "2025-06-18",
                "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}});
            client.send(&hello).await;
            while client.hear_any().await["id"] != "hello" {}
            for bytes in &after {
                client.raw(bytes).await;
            }
            client.raw(b"\n\n").await;
            client.send(&json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}})).await;
            loop {
                let answer = client.hear_any().await;
                if answer["id"] == "call" {
                    assert_eq!(answer["result"]["content"][0]["text"], "x");
                    break;
                }
            }
        });
    }
}

impl Client {
    /// An answer in either framing: what comes first decides it, and it may be nonsense that looks like a header.
    async fn hear_any(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(10), self.input.read_line(&mut line));
        assert!(read.await.expect("an answer in time").unwrap() > 0, "the server hung up");
        let Some(length) = line.trim().strip_prefix("Content-Length: ") else {
            return serde_json::from_str(&line).unwrap();
        };
        let length: usize = length.parse().unwrap();
        self.input.read_line(&mut line).await.unwrap();
        let mut body = vec![0; length];
        self.input.read_exact(&mut body).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}
