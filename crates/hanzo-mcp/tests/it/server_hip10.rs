//! HIP-10 over the server's dispatcher: contexts, batches, tools that a client lends.

use hanzo_mcp::server::ServerOptions;
use serde_json::{Value, json};

use crate::server::Client;

/// Lends a tool, and hears that the list has changed.
async fn register(client: &mut Client, tool: Value) -> Value {
    let id = client.request("tools/register", tool).await;
    let (mut answer, mut told) = (Value::Null, false);
    while answer.is_null() || !told {
        let heard = client.hear().await;
        if heard["method"] == "notifications/tools/list_changed" {
            told = true;
        } else {
            assert_eq!(heard["id"], id, "{heard}");
            answer = heard["result"].clone();
            assert!(answer["registered"].is_string(), "{heard}");
        }
    }
    answer
}

/// Runs a lent tool by `tools/execute`, as the client that lent it.
async fn execute(client: &mut Client, params: Value, result: Option<&str>) -> Value {
    let id = client.request("tools/execute", params).await;
    if let Some(result) = result {
        let asked = client.hear().await;
        assert_eq!(asked["method"], "tools/execute", "{asked}");
        let result = json!({"content": [{"type": "text", "text": result}], "structuredContent": asked["params"]["arguments"]});
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }
    let (answer, before) = client.answer_to(id).await;
    assert!(before.is_empty(), "{before:?}");
    answer["result"].clone()
}

#[tokio::test]
async fn hip_10_methods_are_advertised_and_answered() {
    let mut client = Client::start(ServerOptions::new("/project"));
    let greeting = client.greet("2025-11-25", json!({})).await;
    let methods = &greeting["result"]["capabilities"]["experimental"]["hanzo"]["methods"];
    assert!(methods.as_array().unwrap().contains(&json!("tools/execute")), "{greeting}");
    let done = client
        .ask("tools/execute", json!({"tool": "echo", "arguments": {"text": "hi"}, "context": {"context_id": "c", "entries": [{"key": "k", "value": 1}]}}))
        .await;
    assert_eq!(done["result"]["content"][0]["text"], "hi", "{done}");
    assert_eq!(done["result"]["context"]["context_id"], "c");
    let context = client.ask("context/get", json!({"context_id": "c"})).await;
    assert_eq!(context["result"]["entries"][0]["value"], 1);
    assert_eq!(context["result"]["history"][1]["what"], "echo succeeded", "{context}");

    let calls = json!([{"tool": "echo", "arguments": {"text": "a"}}, {"tool": "nothing"}, {"tool": "echo", "arguments": {"text": "b"}}]);
    let batch = client.ask("tools/batch", json!({ "calls": calls })).await;
    let results = batch["result"]["results"].as_array().unwrap();
    assert_eq!(
        (&results[0]["content"][0]["text"], &results[2]["content"][0]["text"]),
        (&json!("a"), &json!("b"))
    );
    assert_eq!(results[1]["error"]["code"], -32602, "one that fails leaves the others alone");
    assert_eq!(client.ask("tools/execute", json!({"arguments": {}})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_context_is_replaced_merged_and_appended_to_and_outlives_the_server() {
    let place = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::new("/project");
    options.contexts = Some(place.path().join("contexts"));
    let mut client = Client::start(options.clone());
    client.greet("2025-11-25", json!({})).await;
    for (strategy, entries) in [
        ("replace", json!([{"key": "a", "value": {"x": 1}}, {"key": "b", "value": "one", "type": "note"}])),
        ("merge", json!([{"key": "a", "value": {"y": 2}}])),
        ("append", json!([{"key": "b", "value": "two"}, {"key": "c", "value": true}])),
    ] {
        let done =
            client.ask("context/update", json!({"entries": entries, "merge_strategy": strategy})).await;
        assert!(done["result"]["version"].is_u64(), "{done}");
    }
    let expected = [("a", json!({"x": 1, "y": 2})), ("b", json!(["one", "two"])), ("c", json!(true))];
    let mut next = Client::start(options);
    next.greet("2025-11-25", json!({})).await;
    for client in [&mut client, &mut next] {
        let context = client.ask("context/get", json!({})).await["result"].clone();
        for (key, value) in &expected {
            let entry = context["entries"]
                .as_array()
                .unwrap()
                .iter()
                .find(|entry| entry["key"] == *key)
                .unwrap()
                .clone();
            assert_eq!(entry["value"], *value);
            assert!(entry["timestamp"].is_string() && entry["type"].is_string());
        }
        assert_eq!((&context["version"], context["history"].as_array().unwrap().len()), (&json!(3), 3));
    }
    let one = next.ask("context/get", json!({"keys": ["c"]})).await;
    assert_eq!(one["result"]["entries"].as_array().unwrap().len(), 1);
    next.ask("context/update", json!({"entries": [], "merge_strategy": "replace"})).await;
    assert_eq!(next.ask("context/get", json!({})).await["result"]["entries"], json!([]));
    for odd in [
        json!({"entries": 5}),
        json!({"entries": [], "merge_strategy": "shuffle"}),
        json!({"entries": [], "context_id": "../x"}),
    ] {
        assert_eq!(next.ask("context/update", odd.clone()).await["error"]["code"], -32602, "{odd}");
    }
}

#[tokio::test]
async fn a_client_lends_a_tool_to_its_connection() {
    let mut client = Client::greeted(json!({})).await;
    let tool = |name: &str, permissions: Value| json!({"name": name, "description": "d", "input_schema": {"type": "object"}, "permissions": permissions});
    register(&mut client, tool("weather", json!(["network:http", "rate_limit:1/min"]))).await;
    assert!(client.ask("tools/list", json!({})).await.to_string().contains("\"weather\""));
    let id =
        client.request("tools/execute", json!({"tool": "weather", "arguments": {"city": "Paris"}})).await;
    let asked = client.hear().await;
    assert_eq!(
        (&asked["method"], &asked["params"]["arguments"]["city"]),
        (&json!("tools/execute"), &json!("Paris")),
        "{asked}"
    );
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": [{"type": "text", "text": "sunny"}]}})).await;
    let answer = client.hear().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(id), &json!("sunny")),
        "{answer}"
    );
    let again = client.call("weather", json!({})).await;
    assert!(again["error"]["message"].as_str().unwrap().contains("permission denied"), "{again}");
    for odd in [
        tool("fs", json!([])),
        tool("a b", json!([])),
        tool("x", json!(["everything"])),
        tool("x", json!(["rate_limit:fast"])),
    ] {
        assert_eq!(client.ask("tools/register", odd.clone()).await["error"]["code"], -32602, "{odd}");
    }
}

#[tokio::test]
async fn the_result_of_a_tool_that_says_so_is_kept_until_its_context_or_the_tool_changes() {
    let mut client = Client::greeted(json!({})).await;
    let tool = json!({"name": "weather", "version": "1.2.0", "input_schema": {"type": "object"}, "cache": {"ttl": 600_000}});
    assert_eq!(register(&mut client, tool.clone()).await["tool_version"], "1.2.0");
    let ask = |city: &str| json!({"tool": "weather", "arguments": {"city": city}, "context": {"context_id": "trip"}});
    assert_eq!(execute(&mut client, ask("Paris"), Some("sunny")).await["content"][0]["text"], "sunny");
    let again = execute(&mut client, ask("Paris"), None).await;
    assert_eq!((&again["content"][0]["text"], &again["from"]), (&json!("sunny"), &json!("cache")), "{again}");
    assert_eq!(execute(&mut client, ask("Rome"), Some("hot")).await["content"][0]["text"], "hot");

    let elsewhere = json!({"context_id": "other", "entries": [{"key": "k", "value": 1}]});
    client.ask("context/update", elsewhere).await;
    assert_eq!(
        execute(&mut client, ask("Rome"), None).await["from"],
        "cache",
        "another context is another thing"
    );
    client.ask("context/update", json!({"context_id": "trip", "entries": [{"key": "k", "value": 1}]})).await;
    assert_eq!(execute(&mut client, ask("Paris"), Some("rainy")).await["content"][0]["text"], "rainy");

    let newer = json!({"name": "weather", "version": "2.0.0", "input_schema": {"type": "object"}, "cache": {"ttl": 600_000}});
    assert_eq!(register(&mut client, newer).await["replaced"], "1.2.0");
    assert_eq!(execute(&mut client, ask("Paris"), Some("windy")).await["content"][0]["text"], "windy");
}

#[tokio::test]
async fn a_tool_that_takes_the_context_gets_it() {
    let mut client = Client::greeted(json!({})).await;
    let schema = json!({"type": "object", "properties": {"context": {"type": "object"}}});
    register(&mut client, json!({"name": "aware", "input_schema": schema})).await;
    register(&mut client, json!({"name": "plain", "input_schema": {"type": "object"}})).await;
    let call = |tool: &str| json!({"tool": tool, "arguments": {}, "context": {"context_id": "c", "entries": [{"key": "user", "value": "Ada"}]}});
    let aware = execute(&mut client, call("aware"), Some("ok")).await;
    assert_eq!(aware["structuredContent"], json!({"context": {"user": "Ada"}}), "{aware}");
    let plain = execute(&mut client, call("plain"), Some("ok")).await;
    assert_eq!(plain["structuredContent"], json!({}), "{plain}");
}

#[tokio::test]
async fn a_client_that_means_another_version_of_the_extension_is_told() {
    for (said, works) in [
        (json!({}), true),
        (json!({"hanzo": {}}), true),
        (json!({"hanzo": {"version": 1}}), true),
        (json!({"hanzo": {"versions": [1, 2]}}), true),
        (json!({"hanzo": {"version": 2}}), false),
        (json!({"hanzo": {"versions": ["x"]}}), false),
    ] {
        let mut client = Client::greeted(json!({ "experimental": said })).await;
        let answer = client.ask("context/get", json!({})).await;
        assert_eq!(answer["error"].is_null(), works, "{said}: {answer}");
        if !works {
            assert_eq!(answer["error"]["data"]["supported"], json!([1]));
        }
        assert!(
            client.call("echo", json!({"text": "x"})).await["result"].is_object(),
            "the rest is as it was"
        );
    }
}
