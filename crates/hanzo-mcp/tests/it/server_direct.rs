//! The short way of calls: it is taken when it may be, and nobody can tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hanzo_mcp::server::direct::{Direct as _, PlainCall};
use hanzo_mcp::server::{Server, ServerOptions};
use serde_json::{Value, json};

use crate::server::Client;
use crate::server_engine::FakeEngine;

async fn connected(capabilities: Value) -> (Client, Server) {
    let engine = FakeEngine::new();
    let server = Server::new(Arc::clone(&engine) as _, ServerOptions::new("/project"));
    let mut client = Client::of(server.clone(), engine);
    client.greet("2025-11-25", capabilities).await;
    (client, server)
}

/// A client whose calls go the short way.
async fn hurried() -> Client {
    let (mut client, server) = connected(json!({})).await;
    client.call("echo", json!({"text": "first"})).await;
    assert!(is_direct(&server, &json!({"name": "echo"})));
    client
}

fn is_direct(server: &Server, params: &Value) -> bool {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    server.directly(serde_json::from_value::<PlainCall>(call).unwrap()).is_ok()
}

#[tokio::test]
async fn plain_calls_go_the_short_way() {
    let (mut client, server) = connected(json!({})).await;
    let plain = json!({"name": "echo", "arguments": {"text": "x"}});
    assert!(!is_direct(&server, &plain), "nothing is known of the client yet");
    client.call("echo", json!({"text": "x"})).await;
    assert!(is_direct(&server, &plain));
    assert!(!is_direct(&server, &json!({"name": "hanzo_agent_coder", "arguments": {"message": "x"}})));
    assert!(is_direct(&server, &json!({"name": "echo", "_meta": {"progressToken": 1}})));
    let version = json!({"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    assert!(
        !is_direct(&server, &json!({"name": "echo", "_meta": version})),
        "it says who it is with each call"
    );
    let lent = json!({"name": "echo", "description": "d", "input_schema": {"type": "object"}});
    let id = client.request("tools/register", lent).await;
    assert!(client.answer_to(id).await.0["error"].is_null());
    assert!(!is_direct(&server, &plain), "the client's own tool is called back");
    // Greeting again, it may be somebody who can be asked.
    let again = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "0"}});
    let id = client.request("initialize", again).await;
    client.answer_to(id).await;
    assert!(!is_direct(&server, &json!({"name": "fail"})));

    let (mut client, server) = connected(json!({"elicitation": {}})).await;
    assert!(!is_direct(&server, &plain));
    client.call("echo", json!({"text": "x"})).await;
    assert!(is_direct(&server, &plain), "and those of clients that can be asked");
}

/// A client that can be asked is asked, and sees what happens, whichever way its calls go.
#[tokio::test]
async fn consent_and_progress_come_by_the_short_way_too() {
    let (mut client, server) = connected(json!({"elicitation": {}})).await;
    client.call("echo", json!({"text": "first"})).await;
    for (decision, means) in [("Allow once", "once"), ("Deny", "deny"), ("Allow once", "once")] {
        assert!(is_direct(&server, &json!({"name": "careful"})));
        let id = client.request("tools/call", json!({"name": "careful", "arguments": {}})).await;
        let form = client.hear().await;
        assert_eq!(form["method"], "elicitation/create", "{form}");
        let answer = json!({"action": "accept", "content": {"decision": decision}});
        client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": answer})).await;
        let done = client.hear().await;
        let said = done["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(done["id"] == id && said.to_lowercase().contains(means), "{done}");
    }
    let shown = json!({"name": "chatty", "arguments": {}, "_meta": {"progressToken": "p"}});
    assert!(is_direct(&server, &shown));
    let id = client.request("tools/call", shown).await;
    let (answer, before) = client.answer_to(id).await;
    assert_eq!(answer["result"]["content"][0]["text"], "one\ntwo\n");
    assert_eq!(before, ["notifications/progress"; 2]);
}

#[tokio::test]
async fn both_ways_answer_the_same() {
    for (tool, arguments) in [
        ("echo", json!({"text": "h\u{e9} \"quoted\"\n"})),
        ("fail", json!({})),
        ("nothing", json!({})),
        ("fs", json!({"action": "read", "path": "/project/a.txt"})),
        ("large", json!({})),
        ("slow", json!({})),
    ] {
        let (mut client, server) = connected(json!({})).await;
        let mut long = client.call(tool, arguments.clone()).await;
        if long["error"].is_null() {
            assert!(is_direct(&server, &json!({"name": tool, "arguments": arguments})));
        } else {
            client.call("echo", json!({})).await;
        }
        let mut short = client.call(tool, arguments).await;
        (long["id"], short["id"]) = (json!(0), json!(0));
        assert_eq!(long.to_string(), short.to_string(), "{tool}");
    }
}

#[tokio::test]
async fn an_answer_larger_than_the_pipe_arrives_whole_and_others_behind_it() {
    let mut client = hurried().await;
    let mut ids = Vec::new();
    for tool in ["large", "echo", "large", "slow", "large", "echo"] {
        ids.push(client.request("tools/call", json!({"name": tool, "arguments": {"text": "small"}})).await);
        // Nothing is read meanwhile: the pipe is full from the first answer on.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut heard = Vec::new();
    for _ in &ids {
        let answer = client.hear().await;
        let length = answer["result"]["content"][0]["text"].as_str().unwrap().len();
        assert!([300_000, "small".len(), "at last".len()].contains(&length), "{length}");
        heard.push(answer["id"].as_u64().unwrap());
    }
    heard.sort_unstable();
    assert_eq!(heard, ids);
}

#[tokio::test]
async fn a_call_on_the_short_way_can_be_cancelled() {
    let mut client = hurried().await;
    let id = client.request("tools/call", json!({"name": "hang", "arguments": {}})).await;
    let again = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo"}});
    client.send(&again).await;
    assert_eq!(client.hear().await["error"]["code"], -32600, "its id is in use");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    tokio::time::timeout(Duration::from_secs(5), async {
        while client.engine.interrupted.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the call is interrupted");
    client.send(&again).await;
    assert_eq!(client.hear().await["id"], id, "its id is free again");
}

#[tokio::test]
async fn too_many_calls_wait_for_each_other_on_the_short_way_too() {
    let mut client = hurried().await;
    for _ in 0..64 {
        client.request("tools/call", json!({"name": "hang", "arguments": {}})).await;
    }
    let waiting = client.request("tools/call", json!({"name": "echo", "arguments": {"text": "late"}})).await;
    let hears = tokio::time::timeout(Duration::from_millis(200), client.hear());
    assert!(hears.await.is_err(), "no place is free");
    let first = waiting - 64;
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": first}}))
        .await;
    assert_eq!(client.hear().await["id"], waiting);
}

#[tokio::test]
async fn a_client_that_has_said_its_last_still_gets_the_answer() {
    let mut client = hurried().await;
    let id = client.request("tools/call", json!({"name": "slow", "arguments": {}})).await;
    client.say_its_last().await;
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("at last")));
}
