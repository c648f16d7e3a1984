//! The kind `openai`: what it sends, and what it makes of answers, the odd ones included.

use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{
    ApiErrorKind, Attachment, AttachmentSource, Effort, Message, ModelRequest, Reasoning, StopReason,
    ToolCall,
};
use hanzo_protocol::usage::Usage;
use hanzo_testkit::scripted::{Api, Reply, Server};
use serde_json::{Value, json};

use crate::support::{Answer, answer, ask, ask_for, build, call, chunks, client, config, request};

/// What is sent for `request` with these options.
async fn sent(request: &ModelRequest, options: Value) -> Value {
    let server = Server::start([Reply::text("ok")]);
    let mut config = config(&server, Api::OpenAi);
    config.extra = options.as_object().unwrap().clone();
    let got = answer(&ask(&*build(config), request).await);
    assert_eq!(got.error, None);
    server.requests()[0].json()
}

async fn read(body: String) -> Answer {
    ask_for(Reply::body(body), Api::OpenAi).await
}

fn delta(delta: impl Into<Value>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta.into()}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[tokio::test]
async fn an_answer_is_read_whole() {
    let reply = Reply::reasoning("Let me see. ")
        .and_text("Grüße, 世界 🦀")
        .and_tool_call("fs", json!({"path": "ü.rs"}))
        .and_tool_call("vcs", json!({}))
        .with_usage(100, 20)
        .with_cached(60, 0)
        .fragment(1);
    let got = ask_for(reply, Api::OpenAi).await;
    assert_eq!(got.text, "Grüße, 世界 🦀");
    assert_eq!(got.thought, "Let me see. ");
    assert_eq!(got.reasoning, [Reasoning { text: "Let me see. ".into(), signature: None }]);
    assert_eq!(
        got.calls,
        [call("call_fs_0", "fs", &json!({"path": "ü.rs"})), call("call_vcs_1", "vcs", &json!({}))]
    );
    let usage = Usage { input_tokens: 100, cache_read_tokens: 60, output_tokens: 20, ..Usage::default() };
    assert_eq!(got.stop, Some((StopReason::ToolUse, usage)));
}

#[tokio::test]
async fn the_request_has_the_documented_shape() {
    let mut request = request();
    request.messages.push(Message::assistant("").with_tool_calls(vec![call(
        "c1",
        "fs",
        &json!({"path": "a"}),
    )]));
    request.messages.push(Message::tool(ToolCallId::new("c1"), "fs", "content"));
    request.temperature = Some(0.5);
    request.max_tokens = Some(77);
    let body = sent(&request, json!({})).await;
    assert_eq!(
        body,
        json!({
            "model": "scripted", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 77, "temperature": 0.5,
            "tools": [{"type": "function", "function": {
                "name": "fs", "description": "Reads files",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            }}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "fs", "arguments": "{\"path\":\"a\"}"}},
                ]},
                {"role": "tool", "content": "content", "tool_call_id": "c1"},
            ],
        })
    );
}

#[tokio::test]
async fn quirks_are_options() {
    let mut request = request();
    request.temperature = Some(0.5);
    request.max_tokens = Some(5);
    request.effort = Some(Effort::Minimal);
    let body = sent(
        &request,
        json!({
            "max_tokens_field": "max_completion_tokens", "temperature": false, "stream_options": false,
            "system_role": "developer", "effort": "reasoning_effort", "effort_names": {"minimal": "none"},
            "tool_choice": "auto", "parallel_tool_calls": true, "body": {"provider": {"sort": "price"}},
        }),
    )
    .await;
    assert_eq!(body["max_completion_tokens"], 5);
    assert_eq!(body["reasoning_effort"], "none");
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("auto"), &json!(true)));
    assert_eq!(body["provider"]["sort"], "price");
    assert_eq!(body["messages"][0]["role"], "developer");
    for absent in ["temperature", "stream_options", "max_tokens"] {
        assert_eq!(body.get(absent), None, "{absent}");
    }
    for (parameter, field, expected) in [
        ("reasoning_object", "reasoning", json!({"effort": "high"})),
        ("thinking_switch", "thinking", json!({"type": "enabled"})),
        ("enable_thinking", "enable_thinking", json!(true)),
    ] {
        request.effort = Some(Effort::High);
        assert_eq!(sent(&request, json!({"effort": parameter})).await[field], expected);
    }
}

#[tokio::test]
async fn reasoning_goes_back_where_the_vendor_needs_it() {
    let mut request = request();
    let mut thinking = Message::assistant("").with_tool_calls(vec![call("c1", "fs", &json!({}))]);
    thinking.reasoning = vec![Reasoning { text: "hm".into(), signature: None }];
    let mut quiet = Message::assistant("").with_tool_calls(vec![call("c2", "fs", &json!({}))]);
    quiet.reasoning = Vec::new();
    let mut talking = Message::assistant("done");
    talking.reasoning = vec![Reasoning { text: "well".into(), signature: None }];
    request.messages.extend([
        thinking,
        Message::tool(ToolCallId::new("c1"), "fs", "x"),
        quiet,
        Message::tool(ToolCallId::new("c2"), "fs", "x"),
        talking,
        Message::user("and?"),
    ]);
    let usual = sent(&request, json!({})).await;
    assert!(!usual.to_string().contains("reasoning"), "not sent unasked: {usual}");
    for field in ["reasoning_content", "reasoning"] {
        let body = sent(&request, json!({"reasoning_echo": field})).await;
        assert_eq!(body["messages"][2][field], "hm");
        assert_eq!(body["messages"][4][field], "", "a call without thought before it has the field too");
        assert_eq!(body["messages"][6].get(field), None, "an answer without calls needs none");
    }
}

#[tokio::test]
async fn reasoning_details_go_back_as_they_came() {
    let detail = |text: &str| json!({"type": "reasoning.text", "index": 0, "format": "x-v1", "text": text});
    let body = chunks(&[
        delta(json!({"reasoning": "I ", "reasoning_details": [detail("I ")]})),
        delta(json!({"reasoning": "think", "reasoning_details": [detail("think")]})),
        delta(json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "sig"}]})),
        delta(json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "zzz"}]})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "fs", "arguments": "{}"}}]}),
        ),
        finish("tool_calls"),
    ]);
    let got = read(body).await;
    assert_eq!(got.thought, "I think", "the text that comes twice is shown once");
    let mut again = request();
    let mut message = Message::assistant("").with_tool_calls(got.calls);
    message.reasoning = got.reasoning;
    again.messages.extend([message, Message::tool(ToolCallId::new("a"), "fs", "x")]);
    let body = sent(&again, json!({"reasoning_echo": "reasoning_details"})).await;
    assert_eq!(
        body["messages"][2]["reasoning_details"],
        json!([
            {"type": "reasoning.text", "index": 0, "format": "x-v1", "text": "I think", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "zzz"},
        ])
    );
}

#[tokio::test]
async fn what_a_vendor_attaches_to_a_call_goes_back_with_it() {
    let extra = json!({"google": {"thought_signature": "abc"}});
    let got = read(chunks(&[
        delta(json!({"tool_calls": [
            {"index": 0, "id": "a", "extra_content": extra, "function": {"name": "fs", "arguments": "{}"}},
            {"index": 1, "id": "b", "function": {"name": "fs", "arguments": "{}"}},
        ]})),
        finish("stop"),
    ]))
    .await;
    assert_eq!(got.stop.unwrap().0, StopReason::ToolUse, "calls are calls, whatever reason is given");
    let mut again = request();
    let mut message = Message::assistant("").with_tool_calls(got.calls);
    message.reasoning = got.reasoning;
    again.messages.push(message);
    let body = sent(&again, json!({})).await;
    let calls = &body["messages"][2]["tool_calls"];
    assert_eq!(calls[0]["extra_content"], extra);
    assert_eq!(calls[1].get("extra_content"), None);
}

#[tokio::test]
async fn usage_is_found_wherever_vendors_put_it() {
    let expected = |input, cached, output| Usage {
        input_tokens: input,
        cache_read_tokens: cached,
        output_tokens: output,
        ..Usage::default()
    };
    for (chunk, usage) in [
        (
            json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}),
            expected(5, 4, 2),
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 1}}),
            expected(1, 8, 2),
        ),
        (
            json!({"choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 3, "completion_tokens": 1, "cached_tokens": 1}}]}),
            expected(2, 1, 1),
        ),
        (
            json!({"choices": [], "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}}),
            expected(3, 0, 1),
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}}}),
            expected(0, 3, 1),
        ),
        (json!({"choices": [], "usage": null}), expected(0, 0, 0)),
    ] {
        let got = read(chunks(&[delta(json!({"content": "x"})), finish("stop"), chunk])).await;
        assert_eq!(got.stop, Some((StopReason::EndTurn, usage)));
    }
}

#[tokio::test]
async fn reasons_to_stop_are_understood() {
    for (reason, expected) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("eos_token", StopReason::EndTurn),
    ] {
        let got = ask_for(Reply::text("x").with_stop(reason), Api::OpenAi).await;
        assert_eq!(got.stop.unwrap().0, expected, "{reason}");
    }
    let refused = ask_for(Reply::empty().and_refusal("I cannot"), Api::OpenAi).await;
    assert_eq!((refused.text.as_str(), refused.stop.unwrap().0), ("I cannot", StopReason::Refusal));
}

#[tokio::test]
async fn a_call_cut_by_the_token_limit_is_not_given_out() {
    let cut = Reply::tool_call("fs", json!({"path": "a"}))
        .and_call(hanzo_testkit::scripted::Call {
            id: None,
            name: "proc".into(),
            arguments: "{\"command\": \"rm -rf /tm".into(),
        })
        .with_stop("length");
    let got = ask_for(cut, Api::OpenAi).await;
    assert_eq!(got.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["fs"]);
    assert_eq!(got.stop.unwrap().0, StopReason::MaxTokens);
}

#[tokio::test]
async fn malformed_arguments_are_passed_on_and_go_back_as_valid_json() {
    let got = ask_for(Reply::raw_tool_call("fs", "{\"path\": oops}"), Api::OpenAi).await;
    assert_eq!(got.calls[0].arguments, "{\"path\": oops}");
    let mut again = request();
    again.messages.push(Message::assistant("").with_tool_calls(got.calls));
    let body = sent(&again, json!({})).await;
    let arguments =
        body["messages"][2]["tool_calls"][0]["function"]["arguments"].as_str().unwrap().to_owned();
    let arguments: Value = serde_json::from_str(&arguments).unwrap();
    assert_eq!(arguments["malformed_arguments"], "{\"path\": oops}");
}

#[tokio::test]
async fn errors_inside_a_stream_are_sorted() {
    for (chunk, kind) in [
        (json!({"error": {"message": "busy", "code": 503}}), ApiErrorKind::Overloaded),
        (json!({"error": {"message": "slow down", "type": "rate_limit_exceeded"}}), ApiErrorKind::Rate),
        (
            json!({"object": "error", "message": "This model's maximum context length is 5", "code": 400}),
            ApiErrorKind::ContextOverflow,
        ),
        (json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}), ApiErrorKind::Overloaded),
        (json!("just text"), ApiErrorKind::Malformed),
    ] {
        let got = read(chunks(&[delta(json!({"content": "x"})), chunk.clone()])).await;
        assert_eq!(got.error.as_ref().map(|error| error.kind), Some(kind), "{chunk}");
        assert_eq!(got.text, "x");
    }
}

#[tokio::test]
async fn an_answer_that_comes_as_one_document_is_read() {
    let message = json!({"role": "assistant", "content": "whole", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "fs", "arguments": "{}"}},
    ]});
    let document = json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    for media_type in ["application/json", "text/event-stream"] {
        let reply = Reply::body(document.to_string()).header("content-type", media_type);
        let got = ask_for(reply, Api::OpenAi).await;
        assert_eq!((got.text.as_str(), got.calls.len()), ("whole", 1), "{media_type}");
        assert_eq!(got.stop.unwrap().0, StopReason::ToolUse);
    }
    let error =
        Reply::body(json!({"error": {"message": "no such model", "type": "not_found_error"}}).to_string())
            .header("content-type", "application/json");
    assert_eq!(ask_for(error, Api::OpenAi).await.error.unwrap().kind, ApiErrorKind::BadRequest);
}

#[tokio::test]
async fn odd_streams_are_understood() {
    let without_mark =
        chunks(&[delta(json!({"content": "a"})), finish("stop")]).replace("data: [DONE]\n\n", "");
    assert_eq!(read(without_mark).await.stop.unwrap().0, StopReason::EndTurn, "no closing mark");
    let without_reason = chunks(&[delta(json!({"content": "a"}))]);
    assert_eq!(read(without_reason).await.stop.unwrap().0, StopReason::EndTurn, "no reason to stop");
    let parts = chunks(&[
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})),
        delta(json!({"content": [{"type": "text", "text": "so"}]})),
        finish("stop"),
    ]);
    let got = read(parts).await;
    assert_eq!((got.thought.as_str(), got.text.as_str()), ("hm", "so"), "content in parts");
    let noisy = ": OPENROUTER PROCESSING\n\nevent: x\nid: 7\nretry: 5\n\n".to_owned()
        + &chunks(&[
            delta(json!({"role": null, "content": null})),
            delta(json!({"content": "a"})),
            finish("stop"),
        ]);
    assert_eq!(read(noisy).await.text, "a", "comments and nulls");
    let mut windows = chunks(&[delta(json!({"content": "a"})), finish("stop")]).replace('\n', "\r\n");
    windows.insert(0, '\u{feff}');
    assert_eq!(read(windows).await.text, "a", "line ends and a byte order mark");
    let half_call = chunks(&[delta(
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "fs", "arguments": "{\"pa"}}]}),
    )]);
    let got = read(half_call).await;
    assert_eq!(
        (got.calls.len(), got.error.unwrap().kind),
        (0, ApiErrorKind::Network),
        "closed in the middle of a call"
    );
}

#[tokio::test]
async fn images_and_documents_are_sent() {
    let attachment = |media_type: &str, base64: &str| Attachment {
        media_type: media_type.into(),
        name: Some("thing".into()),
        source: AttachmentSource::Inline { base64: base64.into() },
    };
    let mut request = request();
    request.messages[1].attachments = vec![
        attachment("image/png", "aWNvbg=="),
        attachment("application/pdf", "cGRm"),
        attachment("text/plain", "aGVsbG8="),
    ];
    let mut result = Message::tool(ToolCallId::new("c1"), "fs", "a picture");
    result.attachments = vec![attachment("image/jpeg", "anBn")];
    let calls: Vec<ToolCall> = ["c1", "c2"].map(|id| call(id, "fs", &json!({}))).to_vec();
    request.messages.extend([
        Message::assistant("").with_tool_calls(calls),
        result,
        Message::tool(ToolCallId::new("c2"), "fs", "text"),
    ]);
    let body = sent(&request, json!({})).await;
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "text", "text": "Hello"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWNvbg=="}},
            {"type": "file", "file": {"filename": "thing", "file_data": "data:application/pdf;base64,cGRm"}},
            {"type": "text", "text": "thing:\nhello"},
        ])
    );
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "user"],
        "nothing stands between results"
    );
    assert_eq!(body["messages"][5]["content"][0]["image_url"]["url"], "data:image/jpeg;base64,anBn");
    let text_only = sent(&request, json!({"attachments": false})).await;
    assert!(!text_only.to_string().contains("aWNvbg=="));
    assert!(text_only["messages"][1]["content"][1]["text"].as_str().unwrap().contains("left out"));
}

// With a thread of its own for the client: the test's is blocked while it waits for the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dropped_stream_ends_the_request() {
    let server = Server::start([Reply::text("on and on").hang_after(400)]);
    let client = client(&server, Api::OpenAi);
    let mut stream = client.send_message(&request());
    let first = futures_util::StreamExt::next(&mut stream).await;
    assert!(first.is_some());
    drop(stream);
    server.wait_for_aborted(1);
}
