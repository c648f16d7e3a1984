//! The HIP-10 client against our own server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hanzo_mcp::client::hip10::{Client, Error, MergeStrategy, Options, ToolDefinition};
use hanzo_mcp::server::http::{HttpOptions, Tls};
use serde_json::{Value, json};

use super::stage::example;
use crate::server_http::{Site, file};

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool", json!({"type": "object"}))
}

async fn connect(site: &Site) -> Client {
    Client::connect(&format!("ws://127.0.0.1:{}/mcp", site.address.port())).await.unwrap()
}

#[tokio::test]
async fn tools_are_lent_and_run_and_contexts_shared() {
    let site = Site::open(HttpOptions::default()).await;
    let client = connect(&site).await;
    let says = |text: Value| {
        move |arguments: Value| {
            let text = text.clone();
            async move {
                match arguments["how"].as_str() {
                    Some("badly") => Err("it did not work".to_owned()),
                    Some("not") => panic!("a tool that breaks"),
                    _ => Ok(text),
                }
            }
        }
    };
    client.register_tool(tool("plain"), says(json!("text"))).await.unwrap();
    client.register_tool(tool("rich"), says(json!({"n": 1}))).await.unwrap();
    let plain = client.execute_tool("plain", json!({}), None).await.unwrap();
    assert_eq!((plain.text.as_str(), plain.structured.as_ref(), plain.is_error), ("text", None, false));
    let rich = client.execute_tool("rich", json!({}), None).await.unwrap();
    assert_eq!((rich.text.as_str(), rich.structured), ("{\"n\":1}", Some(json!({"n": 1}))));
    let failed = client.execute_tool("plain", json!({"how": "badly"}), None).await.unwrap();
    assert_eq!((failed.text.as_str(), failed.is_error), ("it did not work", true));
    let broke = client.execute_tool("plain", json!({"how": "not"}), None).await.unwrap();
    assert_eq!((broke.text.as_str(), broke.is_error), ("the tool broke", true));

    let own = client.execute_tool("echo", json!({"text": "of the server"}), None).await.unwrap();
    assert_eq!((own.text.as_str(), own.structured.is_some()), ("of the server", true));
    let missing = client.execute_tool("nothing", json!({}), None).await.unwrap_err();
    assert!(matches!(missing, Error::Refused { code: -32_602, .. }), "{missing}");
    let taken = client.register_tool(tool("fs"), says(json!(1))).await.unwrap_err();
    assert!(matches!(taken, Error::Refused { .. }), "{taken}");

    client.context_update(Some("c"), &[("k", json!({"a": 1}))], MergeStrategy::Replace).await.unwrap();
    client.context_update(Some("c"), &[("k", json!({"b": 2}))], MergeStrategy::Merge).await.unwrap();
    let context = client.context_get(Some("c"), Some(&["k"])).await.unwrap();
    assert_eq!(context["entries"][0]["value"], json!({"a": 1, "b": 2}));
    let large =
        client.context_update(None, &[("k", json!("x".repeat(11 << 20)))], MergeStrategy::Merge).await;
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
    assert!(client.request("ping", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_connection_that_breaks_is_made_anew_and_tools_are_lent_again() {
    let site = Site::open(HttpOptions::default()).await;
    let address = site.address;
    let client = Arc::new(connect(&site).await);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let count = move |_| {
        let runs = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(json!(runs.to_string())) }
    };
    client.register_tool(tool("count"), count).await.unwrap();
    assert_eq!(client.execute_tool("count", json!({}), None).await.unwrap().text, "1");

    let caller = Arc::clone(&client);
    let under_way = tokio::spawn(async move { caller.execute_tool("hang", json!({}), None).await });
    while site.calls() == 0 {
        tokio::task::yield_now().await;
    }
    drop(site);
    let lost = under_way.await.unwrap().unwrap_err();
    assert_eq!(lost, Error::Lost { method: "tools/execute".to_owned() }, "a call is not repeated by itself");

    // A call meanwhile waits for the connection.
    let caller = Arc::clone(&client);
    let waits = tokio::spawn(async move { caller.execute_tool("count", json!({}), None).await });
    let site = Site::at(address, HttpOptions::default()).await;
    let again = tokio::time::timeout(Duration::from_secs(20), waits).await.expect("connected in time");
    assert_eq!(again.unwrap().unwrap().text, "2");
    assert_eq!(site.calls(), 0, "it ran here");
}

#[tokio::test]
async fn a_server_is_told_when_an_answer_is_not_awaited_any_more() {
    let site = Site::open(HttpOptions::default()).await;
    let mut options = Options::new(format!("ws://127.0.0.1:{}/mcp", site.address.port()));
    options.timeout = Duration::from_millis(300);
    let client = Client::connect_with(options).await.unwrap();
    let late = client.execute_tool("hang", json!({}), None).await.unwrap_err();
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    tokio::time::timeout(Duration::from_secs(5), async {
        while site.engine.interrupted.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the call is interrupted");
}

#[tokio::test]
async fn secured_and_with_a_token() {
    let tls = Tls::load(&file("server.pem"), &file("server.key")).unwrap();
    let options = HttpOptions { token: Some("s3cret".into()), tls: Some(tls), ..HttpOptions::default() };
    let site = Site::open(options).await;
    let to = || Options::new(format!("wss://localhost:{}/mcp", site.address.port()));
    let client = Client::connect_with(to().authority(file("ca.pem")).token("s3cret")).await.unwrap();
    assert_eq!(client.execute_tool("echo", json!({"text": "x"}), None).await.unwrap().text, "x");
    for (options, says) in [
        (to().authority(file("ca.pem")).token("guess"), "401"),
        (to().authority(file("ca.pem")), "401"),
        (to().token("s3cret"), "certificate"),
        (to().authority(file("server.key")), "there are none"),
        (to().authority(file("nothing")), "cannot be used"),
        (Options::new(format!("ws://localhost:{}/mcp", site.address.port())), "cannot connect"),
        (Options::new("ftp://localhost/mcp"), "ftp"),
        (Options::new("ws://127.0.0.1:9/mcp"), "refused"),
    ] {
        let error = Client::connect_with(options).await.err().unwrap().to_string();
        assert!(error.contains(says) && error.contains("hint:"), "{says}: {error}");
        assert!(!error.contains("s3cret") && !error.contains("guess"), "{error}");
    }
}

#[tokio::test]
async fn the_example_lends_a_calculator_and_uses_it() {
    let site = Site::open(HttpOptions { token: Some("s3cret".into()), ..HttpOptions::default() }).await;
    let mut command = tokio::process::Command::new(example("hip10"));
    command.arg(format!("ws://127.0.0.1:{}/mcp", site.address.port())).args(["echo", r#"{"text": "hello"}"#]);
    let done = command.env("HANZO_MCP_TOKEN", "s3cret").env_remove("HANZO_MCP_CA").output().await.unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    let expected = "calculator: {\"result\":42.0}\nbatch: {\"result\":3.0}\nbatch: error: nothing can be divided by zero\ncontext: [42]\necho: hello\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&done.stderr));
}
