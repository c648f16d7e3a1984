//! Resources and prompts of other servers: each is a call in a thread of the client's, with consent asked in the way its protocol has.

use std::sync::Arc;

use hanzo_mcp::client::MethodCall;
use hanzo_mcp::server::{OtherResource, Others, ServerOptions};
use serde_json::{Value, json};

use crate::server::{Client, modern};

#[derive(Debug)]
struct Notes;

impl Others for Notes {
    fn resources(&self) -> Vec<OtherResource> {
        let mime_type = Some("text/markdown".to_owned());
        vec![OtherResource {
            server: "s".into(),
            uri: "notes://one".into(),
            name: None,
            description: None,
            mime_type,
        }]
    }

    fn report(&self) -> Value {
        Value::Null
    }

    fn resource_call(&self, resource: &OtherResource) -> Option<MethodCall> {
        let arguments = json!({"uri": resource.uri});
        Some(MethodCall { tool: "mcp__s__resources/read".into(), arguments })
    }

    fn prompt_call(&self, command: &str, typed: &str) -> Option<Result<MethodCall, String>> {
        let call = |name: &str| match typed {
            "" => Err("it needs `who`".to_owned()),
            who => Ok(MethodCall {
                tool: "mcp__s__prompts/get".into(),
                arguments: json!({"name": name, "who": who}),
            }),
        };
        command.strip_prefix("mcp__s__").map(call)
    }
}

fn client() -> Client {
    let mut options = ServerOptions::new("/project");
    options.others = Some(Arc::new(Notes));
    Client::start(options)
}

const ONE: &str = "mcp://s/notes%3A%2F%2Fone";

fn read() -> Value {
    json!({ "uri": ONE })
}

fn greet() -> Value {
    json!({"name": "mcp__s__greet", "arguments": {"arguments": "Ada"}})
}

#[tokio::test]
async fn consent_is_asked_by_a_request_before_2026() {
    let mut client = client();
    client.greet("2025-11-25", json!({"elicitation": {}})).await;
    for (method, params) in [("resources/read", read()), ("prompts/get", greet())] {
        let id = client.request(method, params).await;
        let form = client.hear().await;
        assert_eq!(form["method"], "elicitation/create", "{form}");
        let answer = json!({"action": "accept", "content": {"decision": "Allow once"}});
        client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": answer})).await;
        let (done, _) = client.answer_to(id).await;
        assert!(done["result"].to_string().contains("once"), "{done}");
    }
    let wrong = client.ask("prompts/get", json!({"name": "mcp__s__greet"})).await;
    assert!(wrong["error"]["message"].as_str().unwrap().contains("`who`"), "{wrong}");
}

#[tokio::test]
async fn since_2026_consent_is_asked_by_the_result() {
    let mut client = client();
    let can = json!({"elicitation": {"form": {}}});
    for (method, params, at) in [
        ("resources/read", read(), "/result/contents/0/text"),
        ("prompts/get", greet(), "/result/messages/0/content/text"),
    ] {
        let first = client.ask(method, modern(params.clone(), &can)).await;
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        let name = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let answered = |mut params: Value| {
            params["requestState"] = first["result"]["requestState"].clone();
            params["inputResponses"] =
                json!({&name: {"action": "accept", "content": {"decision": "Allow once"}}});
            params
        };
        // The answer is for what was asked about, and not for a call of a tool of that name.
        let tool = json!({"name": "careful", "arguments": {}});
        let forged = client.ask("tools/call", modern(answered(tool), &can)).await;
        assert_eq!(forged["error"]["code"], -32602, "{forged}");
        let done = client.ask(method, modern(answered(params), &can)).await;
        let text = done.pointer(at).and_then(Value::as_str).unwrap_or_else(|| panic!("{done}"));
        assert!(text.contains("once"), "{done}");
    }
}

#[tokio::test]
async fn what_is_listed_is_read_and_nothing_else() {
    let mut client = client();
    client.greet("2025-11-25", json!({})).await;
    for missing in ["mcp://s/notes%3A%2F%2Ftwo", "mcp://t/notes%3A%2F%2Fone", "mcp://"] {
        let answer = client.ask("resources/read", json!({ "uri": missing })).await;
        assert_eq!(answer["error"]["code"], -32_002, "{answer}");
    }
    // This engine would expand anything.
    let ours = client.ask("prompts/get", json!({"name": "review"})).await;
    assert!(ours["result"]["messages"].is_array(), "{ours}");
    let gone = client.ask("prompts/get", json!({"name": "mcp__t__gone"})).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
}
