//! What clients hear without asking: other tools, prompts and resources than before.

use std::time::Duration;

use hanzo_mcp::server::{Offered, ServerOptions};
use serde_json::json;
use tokio::sync::watch;

use crate::server::{Client, modern};

fn told() -> (watch::Sender<Offered>, ServerOptions) {
    let (offered, news) = watch::channel(Offered::default());
    let mut options = ServerOptions::new("/project");
    options.news = Some(news);
    (offered, options)
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";

#[tokio::test]
async fn a_connected_client_hears_of_the_lists_that_changed_and_of_no_others() {
    let (offered, options) = told();
    let mut client = Client::start(options);
    let greeting = client.greet("2025-11-25", json!({})).await;
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(greeting["result"]["capabilities"][list]["listChanged"], true, "{greeting}");
    }
    // Answered after the greeting was dealt with.
    client.call("echo", json!({})).await;
    offered.send_modify(|now| now.tools += 1);
    assert_eq!(client.hear().await["method"], TOOLS);
    offered.send_modify(|now| now.prompts += 1);
    assert_eq!(client.hear().await["method"], PROMPTS);
    offered.send_modify(|now| (now.tools, now.resources) = (7, 7));
    let both = [client.hear().await["method"].clone(), client.hear().await["method"].clone()];
    assert_eq!(both, [json!(TOOLS), json!("notifications/resources/list_changed")]);
    // What is as it was rings for nobody.
    offered.send_modify(|_| {});
    let id = client.request("ping", json!({})).await;
    assert_eq!(client.answer_to(id).await.1, Vec::<String>::new());
}

#[tokio::test]
async fn a_call_after_a_change_is_made_with_the_tools_there_are_then() {
    let (offered, options) = told();
    let mut client = Client::start(options);
    client.greet("2025-11-25", json!({})).await;
    let listings = |client: &Client| client.engine.tool_listings();
    client.call("echo", json!({})).await;
    client.call("echo", json!({})).await;
    assert_eq!(listings(&client), 0, "a call lists nothing");
    offered.send_modify(|now| now.tools += 1);
    assert_eq!(client.hear().await["method"], TOOLS);
    client.call("echo", json!({})).await;
    client.call("echo", json!({})).await;
    assert_eq!(listings(&client), 1, "the engine takes other tools when they are listed, once");
}

#[tokio::test]
async fn without_other_servers_nothing_changes_and_nothing_is_promised() {
    let mut client = Client::start(ServerOptions::new("/project"));
    let greeting = client.greet("2025-11-25", json!({})).await;
    assert_eq!(greeting["result"]["capabilities"]["prompts"], json!({}), "{greeting}");
    client.call("echo", json!({})).await;
}

#[tokio::test]
async fn since_2026_a_client_hears_of_what_it_subscribed_to() {
    let (offered, options) = told();
    let mut client = Client::start(options);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let id = client.request("subscriptions/listen", modern(wanted, &json!({}))).await;
    let acknowledged = client.hear().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    offered.send_modify(|now| now.prompts += 1);
    offered.send_modify(|now| now.tools += 1);
    let heard = client.hear().await;
    assert_eq!(heard["method"], TOOLS, "{heard}");
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id), "{heard}");
    // What it lends itself is a change, too.
    let lend = json!({"name": "own", "input_schema": {"type": "object"}});
    client.request("tools/register", modern(lend, &json!({}))).await;
    let heard = [client.hear().await, client.hear().await];
    assert!(heard.iter().any(|heard| heard["method"] == TOOLS), "{heard:?}");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    // It hears nothing any more; the next answer is that of the call.
    client.ask("tools/call", modern(json!({"name": "echo", "arguments": {}}), &json!({}))).await;
    offered.send_modify(|now| now.tools += 1);
    client.ask("tools/call", modern(json!({"name": "echo", "arguments": {}}), &json!({}))).await;
}

#[tokio::test]
async fn who_is_gone_is_not_waited_for() {
    let (offered, options) = told();
    let mut client = Client::start(options);
    client.greet("2025-11-25", json!({})).await;
    client.call("echo", json!({})).await;
    let before = offered.receiver_count();
    client.leave().await;
    tokio::time::timeout(Duration::from_secs(5), async {
        while offered.receiver_count() >= before {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("nobody tells it anything any more");
}
