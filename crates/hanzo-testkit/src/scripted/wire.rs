//! The two wire formats, written from the vendors' documentation and not from our own client.

use serde_json::{Value, json};

use super::reply::{Api, Call, Part, Reply};

/// The events of an answer.
pub(super) fn events(reply: &Reply, api: Api, with_usage: bool) -> Vec<Vec<u8>> {
    match api {
        Api::OpenAi => openai(reply, with_usage),
        Api::Anthropic => anthropic(reply),
    }
}

/// The answer as one JSON document, for requests that do not ask for a stream.
pub(super) fn document(reply: &Reply, api: Api) -> Value {
    match api {
        Api::OpenAi => openai_document(reply),
        Api::Anthropic => anthropic_document(reply),
    }
}

fn fragments(text: &str, size: usize) -> Vec<String> {
    // One delta of 50 MB is not worth a vector of its characters.
    if size >= text.len() {
        return vec![text.to_owned()];
    }
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn call_id(call: &Call, index: usize, prefix: &str) -> String {
    call.id.clone().unwrap_or_else(|| format!("{prefix}{}_{index}", call.name))
}

fn has_calls(reply: &Reply) -> bool {
    reply.parts.iter().any(|part| matches!(part, Part::Call(_)))
}

fn openai(reply: &Reply, with_usage: bool) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut send = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "scripted",
            "choices": choices, "usage": usage,
        });
        events.push(format!("data: {chunk}\n\n").into_bytes());
    };
    let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    send(choice(json!({"role": "assistant", "content": ""}), Value::Null), Value::Null);
    let mut calls = 0;
    for part in &reply.parts {
        let (field, text) = match part {
            Part::Text(text) => ("content", text),
            Part::Reasoning { text, .. } => ("reasoning_content", text),
            Part::Refusal(text) => ("refusal", text),
            Part::Redacted(_) => continue,
            Part::Call(call) => {
                let head = json!({"tool_calls": [{"index": calls, "id": call_id(call, calls, "call_"),
                    "type": "function", "function": {"name": call.name, "arguments": ""}}]});
                send(choice(head, Value::Null), Value::Null);
                for piece in fragments(&call.arguments, reply.fragment) {
                    let delta = json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]});
                    send(choice(delta, Value::Null), Value::Null);
                }
                calls += 1;
                continue;
            }
        };
        for piece in fragments(text, reply.fragment) {
            send(choice(json!({field: piece}), Value::Null), Value::Null);
        }
    }
    send(choice(json!({}), openai_stop(reply).into()), Value::Null);
    if with_usage {
        send(json!([]), openai_usage(reply));
    }
    events.push(b"data: [DONE]\n\n".to_vec());
    events
}

fn openai_stop(reply: &Reply) -> String {
    let usual = if has_calls(reply) { "tool_calls" } else { "stop" };
    reply.stop.clone().unwrap_or_else(|| usual.to_owned())
}

fn openai_usage(reply: &Reply) -> Value {
    let tokens = reply.tokens;
    let prompt = tokens.input + tokens.cache_read;
    json!({
        "prompt_tokens": prompt, "completion_tokens": tokens.output, "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    })
}

fn openai_document(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Text(text) => message["content"] = text.as_str().into(),
            Part::Reasoning { text, .. } => message["reasoning_content"] = text.as_str().into(),
            Part::Refusal(text) => message["refusal"] = text.as_str().into(),
            Part::Redacted(_) => {}
            Part::Call(call) => calls.push(json!({
                "id": call_id(call, calls.len(), "call_"), "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            })),
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": openai_stop(reply)}],
        "usage": openai_usage(reply),
    })
}

fn anthropic(reply: &Reply) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut send = |name: &str, mut data: Value| {
        data["type"] = name.into();
        events.push(format!("event: {name}\ndata: {data}\n\n").into_bytes());
    };
    let mut usage = anthropic_usage(reply);
    usage["output_tokens"] = 1.into();
    send(
        "message_start",
        json!({"message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        }}),
    );
    send("ping", json!({}));
    let mut index = 0;
    for part in &reply.parts {
        let (start, deltas) = match part {
            Part::Text(text) => {
                let deltas = fragments(text, reply.fragment).into_iter();
                let deltas = deltas.map(|text| json!({"type": "text_delta", "text": text})).collect();
                (json!({"type": "text", "text": ""}), deltas)
            }
            Part::Reasoning { text, signature } => {
                let deltas = fragments(text, reply.fragment).into_iter();
                let mut deltas: Vec<Value> =
                    deltas.map(|text| json!({"type": "thinking_delta", "thinking": text})).collect();
                deltas.extend(signature.iter().map(|it| json!({"type": "signature_delta", "signature": it})));
                (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
            }
            Part::Redacted(data) => (json!({"type": "redacted_thinking", "data": data}), Vec::new()),
            Part::Refusal(_) => continue,
            Part::Call(call) => {
                let deltas = fragments(&call.arguments, reply.fragment).into_iter();
                let deltas =
                    deltas.map(|it| json!({"type": "input_json_delta", "partial_json": it})).collect();
                let id = call_id(call, index, "toolu_");
                (json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}), deltas)
            }
        };
        send("content_block_start", json!({"index": index, "content_block": start}));
        for delta in deltas {
            send("content_block_delta", json!({"index": index, "delta": delta}));
        }
        send("content_block_stop", json!({"index": index}));
        index += 1;
    }
    send(
        "message_delta",
        json!({
            "delta": {"stop_reason": anthropic_stop(reply), "stop_sequence": null},
            "usage": {"output_tokens": reply.tokens.output},
        }),
    );
    send("message_stop", json!({}));
    events
}

fn anthropic_stop(reply: &Reply) -> String {
    let usual = if has_calls(reply) { "tool_use" } else { "end_turn" };
    reply.stop.clone().unwrap_or_else(|| usual.to_owned())
}

fn anthropic_usage(reply: &Reply) -> Value {
    let tokens = reply.tokens;
    json!({
        "input_tokens": tokens.input, "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write, "output_tokens": tokens.output,
    })
}

fn anthropic_document(reply: &Reply) -> Value {
    let mut content = Vec::new();
    for part in &reply.parts {
        content.push(match part {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Reasoning { text, signature } => {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
            Part::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
            Part::Refusal(_) => continue,
            Part::Call(call) => {
                let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                let id = call_id(call, content.len(), "toolu_");
                json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
            }
        });
    }
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
        "stop_reason": anthropic_stop(reply), "stop_sequence": null, "usage": anthropic_usage(reply),
    })
}
