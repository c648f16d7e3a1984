//! Request N+1 begins with the bytes of request N, closing brackets aside: what a vendor's prompt cache lives on.

use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{Attachment, AttachmentSource, Message, ModelRequest, Reasoning};
use hanzo_testkit::scripted::{Api, Reply, Server};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::support::{APIS, ask, call, client, config, request};

/// A body up to where more messages would go on, without the marks that move from request to request.
fn open_end(body: &[u8]) -> String {
    let text =
        String::from_utf8(body.to_vec()).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    text.trim_end_matches([']', '}']).to_owned()
}

fn steps() -> Vec<Vec<Message>> {
    let mut thinking = Message::assistant("Looking.")
        .with_tool_calls(vec![call("t1", "fs", &json!({"path": "a]}"})), call("t2", "fs", &json!({}))]);
    thinking.reasoning = vec![Reasoning { text: "hm".into(), signature: Some("sig".into()) }];
    let mut picture = Message::tool(ToolCallId::new("t1"), "fs", "x");
    picture.attachments = vec![Attachment {
        media_type: "image/png".into(),
        name: None,
        source: AttachmentSource::Inline { base64: "aWNvbg==".into() },
    }];
    vec![
        vec![thinking, picture, Message::tool(ToolCallId::new("t2"), "fs", "y")],
        vec![
            Message::assistant("").with_tool_calls(vec![call("t3", "fs", &json!({"a": [1, 2]}))]),
            Message::tool(ToolCallId::new("t3"), "fs", "z"),
            Message::user("steered meanwhile"),
        ],
        vec![Message::assistant("Done."), Message::user("Thanks. Next?")],
    ]
}

#[tokio::test]
async fn every_request_begins_with_the_one_before_it() {
    for api in APIS {
        let server = Server::with(|_| Reply::text("ok"));
        let client = client(&server, api);
        let mut request = request();
        ask(&*client, &request).await;
        for step in steps() {
            request.messages.extend(step);
            ask(&*client, &request).await;
        }
        let bodies: Vec<String> = server.requests().iter().map(|sent| open_end(&sent.body)).collect();
        assert_eq!(bodies.len(), 4);
        for pair in bodies.windows(2) {
            assert!(pair[1].starts_with(&pair[0]), "{api:?}:\n{}\n{}", pair[0], pair[1]);
            assert!(pair[1].len() > pair[0].len());
        }
        let names: serde_json::Value = server.requests()[0].json();
        assert_eq!(
            names.as_object().unwrap().keys().next_back().unwrap(),
            "messages",
            "the messages come last"
        );
    }
}

fn body(request: &ModelRequest, api: Api) -> Vec<u8> {
    let server_less = hanzo_providers::ProviderConfig::new("p", "x").with_base_url("http://127.0.0.1:1");
    match api {
        Api::OpenAi => hanzo_providers::openai::client(server_less).unwrap().body(request),
        Api::Anthropic => hanzo_providers::anthropic::client(server_less).unwrap().body(request),
    }
}

#[derive(Debug, Clone)]
enum Step {
    User(String),
    Work { text: String, arguments: Vec<String>, results: String },
}

fn step() -> impl Strategy<Value = Step> {
    let text = "\\PC{0,12}";
    prop_oneof![
        text.prop_map(Step::User),
        (text, prop::collection::vec("\\PC{0,12}", 1..3), text)
            .prop_map(|(text, arguments, results)| Step::Work { text, arguments, results }),
    ]
}

#[test]
fn any_conversation_that_only_grows_keeps_its_prefix() {
    let mut runner = TestRunner::new(Config { cases: 64, ..Config::default() });
    runner
        .run(&prop::collection::vec(step(), 1..6), |steps| {
            for api in APIS {
                let mut request = request();
                let mut before = open_end(&body(&request, api));
                for (number, step) in steps.iter().enumerate() {
                    match step {
                        Step::User(text) => request.messages.push(Message::user(text.as_str())),
                        Step::Work { text, arguments, results } => {
                            let id = |index| ToolCallId::new(format!("c{number}-{index}"));
                            let calls = arguments.iter().enumerate().map(|(index, arguments)| {
                                hanzo_protocol::message::ToolCall {
                                    id: id(index),
                                    name: "fs".into(),
                                    arguments: arguments.clone(),
                                }
                            });
                            request
                                .messages
                                .push(Message::assistant(text.as_str()).with_tool_calls(calls.collect()));
                            for index in 0..arguments.len() {
                                request.messages.push(Message::tool(id(index), "fs", results.as_str()));
                            }
                        }
                    }
                    let written = body(&request, api);
                    prop_assert!(serde_json::from_slice::<serde_json::Value>(&written).is_ok());
                    let now = open_end(&written);
                    prop_assert!(now.starts_with(&before), "{}\n{}", before, now);
                    before = now;
                }
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn another_thread_repeats_the_first_ones_beginning() {
    for api in APIS {
        let server = Server::with(|_| Reply::text("ok"));
        let first = crate::support::build(config(&server, api));
        let second = crate::support::build(config(&server, api));
        ask(&*first, &request()).await;
        ask(&*second, &request()).await;
        let sent = server.requests();
        assert_eq!(sent[0].body, sent[1].body);
    }
}
