//! The kind `anthropic`: what it sends, and what it makes of answers.

use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{
    ApiErrorKind, Attachment, AttachmentSource, Effort, Message, ModelRequest, Reasoning, StopReason,
};
use hanzo_protocol::usage::Usage;
use hanzo_testkit::scripted::{Api, Reply, Server};
use serde_json::{Value, json};

use crate::support::{answer, ask, ask_for, build, call, client, config, request, tool};

async fn sent(request: &ModelRequest, options: Value) -> Value {
    let server = Server::start([Reply::text("ok")]);
    let mut config = config(&server, Api::Anthropic);
    config.extra = options.as_object().unwrap().clone();
    let got = answer(&ask(&*build(config), request).await);
    assert_eq!(got.error, None);
    server.requests()[0].json()
}

const MARK: &str = "ephemeral";

#[tokio::test]
async fn an_answer_is_read_whole() {
    let reply = Reply::reasoning("Let me see. ")
        .and_redacted("b64data")
        .and_text("Grüße, 世界 🦀")
        .and_tool_call("fs", json!({"path": "ü.rs"}))
        .and_tool_call("vcs", json!({}))
        .with_usage(100, 20)
        .with_cached(60, 30)
        .fragment(1);
    let got = ask_for(reply, Api::Anthropic).await;
    assert_eq!(got.text, "Grüße, 世界 🦀");
    assert_eq!(got.thought, "Let me see. ");
    assert_eq!(got.reasoning[0], Reasoning { text: "Let me see. ".into(), signature: Some("sig".into()) });
    assert_eq!(
        got.reasoning[1],
        Reasoning { text: String::new(), signature: Some("redacted_thinking:b64data".into()) }
    );
    assert_eq!(
        got.calls,
        [call("toolu_fs_3", "fs", &json!({"path": "ü.rs"})), call("toolu_vcs_4", "vcs", &json!({}))]
    );
    let usage = Usage {
        input_tokens: 100,
        cache_read_tokens: 60,
        cache_write_tokens: 30,
        output_tokens: 20,
        ..Usage::default()
    };
    assert_eq!(got.stop, Some((StopReason::ToolUse, usage)));
}

#[tokio::test]
async fn the_request_has_the_documented_shape() {
    let mut request = request();
    let mut thinking = Message::assistant("Looking.")
        .with_tool_calls(vec![call("t1", "fs", &json!({"path": "a"})), call("t2", "fs", &json!({}))]);
    thinking.reasoning = vec![
        Reasoning { text: "hm".into(), signature: Some("sig".into()) },
        Reasoning { text: String::new(), signature: Some("redacted_thinking:zz".into()) },
        Reasoning { text: "another vendor's".into(), signature: None },
        Reasoning { text: String::new(), signature: Some("reasoning_details:{}".into()) },
    ];
    request.messages.extend([
        thinking,
        Message::tool(ToolCallId::new("t1"), "fs", "content"),
        Message { is_error: true, ..Message::tool(ToolCallId::new("t2"), "fs", "") },
        Message::user("And now?"),
    ]);
    request.max_tokens = Some(77);
    request.temperature = Some(0.5);
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        sent(&request, json!({})).await,
        json!({
            "model": "scripted", "max_tokens": 77, "stream": true, "temperature": 0.5,
            "tools": [{
                "name": "fs", "description": "Reads files",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}, "cache_control": mark,
            }],
            "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": mark}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "zz"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "t1", "name": "fs", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "t2", "name": "fs", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "content"}]},
                    {"type": "tool_result", "tool_use_id": "t2", "is_error": true},
                    {"type": "text", "text": "And now?", "cache_control": mark},
                ]},
            ],
        })
    );
}

#[tokio::test]
async fn there_are_at_most_four_cache_marks_and_none_where_not_wanted() {
    let mut request = request();
    request.tools = ["a", "b", "c"].map(tool).to_vec();
    for round in 0..10 {
        let body = sent(&request, json!({})).await.to_string();
        assert_eq!(body.matches(MARK).count(), if round == 0 { 3 } else { 4 });
        let id = format!("t{round}");
        request.messages.extend([
            Message::assistant("").with_tool_calls(vec![call(&id, "a", &json!({}))]),
            Message::tool(ToolCallId::new(id.as_str()), "a", "result"),
        ]);
    }
    assert!(!sent(&request, json!({"cache_control": false})).await.to_string().contains(MARK));
    let bare = ModelRequest { messages: vec![Message::user("x")], ..ModelRequest::default() };
    assert_eq!(sent(&bare, json!({})).await.to_string().matches(MARK).count(), 1);
}

#[tokio::test]
async fn what_the_vendor_calls_empty_is_not_sent() {
    let mut request = request();
    request.messages = vec![
        Message::user("a"),
        Message::assistant("  "),
        Message::user(""),
        Message::system("a note from later"),
        Message::user("b"),
    ];
    let body = sent(&request, json!({})).await;
    assert_eq!(body.get("system"), None);
    let texts: Vec<&str> = body["messages"][0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["a", "a note from later", "b"]);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(body["max_tokens"], 8192, "the vendor wants a number");
}

#[tokio::test]
async fn effort_is_told_in_the_models_way() {
    let mut request = request();
    request.temperature = Some(0.5);
    request.max_tokens = Some(1000);
    for (effort, budget) in [(Effort::Low, 2048), (Effort::Medium, 8192), (Effort::High, 24576)] {
        request.effort = Some(effort);
        let body = sent(&request, json!({"effort": "thinking_budget"})).await;
        assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": budget}));
        assert!(body["max_tokens"].as_u64().unwrap() > budget, "the budget counts against the limit");
        assert_eq!(body.get("temperature"), None, "refused while the model thinks");
    }
    request.effort = Some(Effort::Minimal);
    let body = sent(&request, json!({"effort": "thinking_budget"})).await;
    assert_eq!((body.get("thinking"), &body["max_tokens"]), (None, &json!(1000)));
    let body = sent(&request, json!({"effort": "adaptive", "effort_names": {"minimal": "low"}})).await;
    assert_eq!(
        (&body["thinking"]["type"], &body["output_config"]["effort"]),
        (&json!("adaptive"), &json!("low"))
    );
    request.effort = None;
    assert_eq!(sent(&request, json!({"effort": "adaptive"})).await.get("thinking"), None);
}

#[tokio::test]
async fn reasons_to_stop_are_understood() {
    for (reason, expected) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("refusal", StopReason::Refusal),
    ] {
        let got = ask_for(Reply::text("x").with_stop(reason), Api::Anthropic).await;
        assert_eq!(got.stop.unwrap().0, expected, "{reason}");
    }
    let cut = Reply::raw_tool_call("proc", "{\"command\": \"rm -rf /tm").with_stop("max_tokens");
    let got = ask_for(cut, Api::Anthropic).await;
    assert_eq!((got.calls.len(), got.stop.unwrap().0), (0, StopReason::MaxTokens));
}

#[tokio::test]
async fn malformed_arguments_are_passed_on_and_go_back_as_an_object() {
    let got = ask_for(Reply::raw_tool_call("fs", "{\"path\": oops}"), Api::Anthropic).await;
    assert_eq!(got.calls[0].arguments, "{\"path\": oops}");
    let mut again = request();
    again.messages.push(Message::assistant("").with_tool_calls(got.calls));
    let body = sent(&again, json!({})).await;
    assert_eq!(
        body["messages"][1]["content"][0]["input"],
        json!({"malformed_arguments": "{\"path\": oops}"})
    );
}

#[tokio::test]
async fn error_events_are_sorted() {
    for (kind, expected) in [
        ("overloaded_error", ApiErrorKind::Overloaded),
        ("rate_limit_error", ApiErrorKind::Rate),
        ("api_error", ApiErrorKind::Overloaded),
        ("authentication_error", ApiErrorKind::Auth),
        ("invalid_request_error", ApiErrorKind::BadRequest),
    ] {
        let event = json!({"type": "error", "error": {"type": kind, "message": "told so"}});
        let reply = Reply::text("some").with_raw_event(4, format!("event: error\ndata: {event}\n\n"));
        let error = ask_for(reply, Api::Anthropic).await.error.unwrap();
        assert_eq!((error.kind, error.message.as_str()), (expected, "told so"));
    }
}

#[tokio::test]
async fn odd_streams_are_understood() {
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    let start = event(
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}),
    );
    let whole_call = event(json!({"type": "content_block_start", "index": 0, "content_block":
        {"type": "tool_use", "id": "t", "name": "fs", "input": {"path": "x"}}}));
    let unknown = event(json!({"type": "something_new", "x": 1}));
    let stop = event(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
    );
    let body = [start.as_str(), &unknown, &whole_call, &stop].concat();
    let got = ask_for(Reply::body(body), Api::Anthropic).await;
    assert_eq!(
        got.calls,
        [call("t", "fs", &json!({"path": "x"}))],
        "arguments in the block's beginning, no end mark"
    );
    assert_eq!(got.stop.unwrap().1.output_tokens, 9);
    let orphan = event(
        json!({"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": "{"}}),
    );
    let got = ask_for(Reply::body(start + &orphan), Api::Anthropic).await;
    assert_eq!(got.error.unwrap().kind, ApiErrorKind::Malformed);
    let document = json!({"type": "message", "content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2}});
    let reply = Reply::body(document.to_string()).header("content-type", "application/json");
    assert_eq!(ask_for(reply, Api::Anthropic).await.text, "whole");
}

#[tokio::test]
async fn images_and_documents_are_sent() {
    let attachment = |media_type: &str, base64: &str| Attachment {
        media_type: media_type.into(),
        name: Some("thing".into()),
        source: AttachmentSource::Inline { base64: base64.into() },
    };
    let mut request = request();
    request.messages[1].attachments =
        vec![attachment("image/png", "aWNvbg=="), attachment("application/pdf", "cGRm")];
    let mut result = Message::tool(ToolCallId::new("t1"), "fs", "a picture");
    result.attachments = vec![attachment("image/jpeg", "anBn")];
    request
        .messages
        .extend([Message::assistant("").with_tool_calls(vec![call("t1", "fs", &json!({}))]), result]);
    let body = sent(&request, json!({"cache_control": false})).await;
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "text", "text": "Hello"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}},
            {"type": "document", "title": "thing", "source": {"type": "base64", "media_type": "application/pdf", "data": "cGRm"}},
        ])
    );
    assert_eq!(
        body["messages"][2]["content"][0]["content"][1],
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "anBn"}})
    );
}

// With a thread of its own for the client: the test's is blocked while it waits for the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dropped_stream_ends_the_request() {
    let server = Server::start([Reply::text("on and on").hang_after(700)]);
    let client = client(&server, Api::Anthropic);
    let mut stream = client.send_message(&request());
    assert!(futures_util::StreamExt::next(&mut stream).await.is_some());
    drop(stream);
    server.wait_for_aborted(1);
}

#[tokio::test]
async fn features_in_test_are_asked_for() {
    let server = Server::start([Reply::text("ok")]);
    let config = config(&server, Api::Anthropic).with_extra("betas", json!(["a-1", "b-2"]));
    ask(&*build(config), &request()).await;
    assert_eq!(server.requests()[0].header("anthropic-beta"), Some("a-1,b-2"));
}
