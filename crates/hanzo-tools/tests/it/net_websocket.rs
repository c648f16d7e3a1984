//! `net.websocket`: connections between calls, and servers that talk too much.

use futures_util::{SinkExt as _, StreamExt as _};
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::ToolCaller;
use serde_json::{Value, json};

use crate::net::{code, data};
use crate::site::{Reply, Site};
use crate::world::World;

/// A server that says everything back, and more on request.
async fn echo() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
                while let Some(Ok(message)) = socket.next().await {
                    let text = message.to_text().unwrap_or_default().to_owned();
                    let sent = match text.as_str() {
                        "flood" => {
                            let mut sent = Ok(());
                            for number in 0..10_000 {
                                sent = socket.send(format!("{number}").into()).await;
                            }
                            sent
                        }
                        "huge" => socket.send("x".repeat(3 << 20).into()).await,
                        "bytes" => socket.send(vec![0_u8, 1, 2].into()).await,
                        "bye" => socket.close(None).await,
                        "silence" => Ok(()),
                        _ if message.is_text() => socket.send(format!("echo {text}").into()).await,
                        _ => Ok(()),
                    };
                    if sent.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("ws://{address}/")
}

#[tokio::test]
async fn a_websocket_lives_between_calls() {
    let url = echo().await;
    let world = World::new();
    let result = world.call("net", json!({"action": "websocket", "url": url, "send": ["one"]})).await;
    assert_eq!(result.taint, Some(Taint::Network), "{}", result.output);
    let got = result.envelope.unwrap()["data"].clone();
    assert_eq!(got["messages"], json!([{"text": "echo one"}]));
    let id = got["ws_id"].clone();
    let talk = |more: Value| {
        let mut arguments = json!({"action": "websocket", "ws_id": id});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let got = data(&world, talk(json!({"send": ["two", "three"], "messages": 2}))).await;
    assert_eq!(got["messages"], json!([{"text": "echo two"}, {"text": "echo three"}]));
    let got = data(&world, talk(json!({"send": ["silence"], "wait": 0.05}))).await;
    assert_eq!(got["messages"], json!([]));
    let got = data(&world, talk(json!({"send": ["bytes"]}))).await;
    assert!(got["messages"][0]["ref"].as_str().unwrap().starts_with("blob:sha256:"), "{got}");
    let got = data(&world, talk(json!({"send": ["bye"]}))).await;
    assert!(got["closed"].is_object() && got["ws_id"].is_null(), "{got}");
    assert_eq!(world.error("net", talk(json!({}))).await.0, "NOT_FOUND");
}

#[tokio::test]
async fn websockets_are_bounded_in_number_size_and_amount() {
    let url = echo().await;
    let world = World::new();
    let flood = data(
        &world,
        json!({"action": "websocket", "url": url, "send": ["flood"], "messages": 1000, "wait": 3}),
    )
    .await;
    assert_eq!(flood["messages"].as_array().unwrap().len(), 100);
    let next = data(&world, json!({"action": "websocket", "ws_id": flood["ws_id"], "close": true})).await;
    assert_eq!(next["messages"][0]["text"], "100", "nothing is lost: the server waits");
    let huge = data(&world, json!({"action": "websocket", "url": url, "send": ["huge"]})).await;
    assert!(huge["closed"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{huge}");
    for _ in 0..8 {
        data(&world, json!({"action": "websocket", "url": url, "messages": 0})).await;
    }
    assert_eq!(world.error("net", json!({"action": "websocket", "url": url})).await.0, "RATE_LIMITED");
    let plain = Site::start(|_| Reply::with(403, &[], "no")).await;
    let other = World::new();
    let refused =
        other.error("net", json!({"action": "websocket", "url": plain.url("/").replace("http", "ws")})).await;
    assert_eq!(refused.0, "UNAVAILABLE");
    assert!(refused.1.contains("403"), "{}", refused.1);
    // Another caller's connection is not to be had.
    let mine = data(&other, json!({"action": "websocket", "url": url, "messages": 0})).await;
    let theirs = other
        .call_as(ToolCaller::Remote, "net", json!({"action": "websocket", "ws_id": mine["ws_id"]}))
        .await;
    assert_eq!(code(theirs), "NOT_FOUND");
}
