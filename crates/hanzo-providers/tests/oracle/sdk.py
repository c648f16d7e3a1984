"""What the vendors' own SDKs make of the scripted server's streams, and what we make of them: the same.

Usage: sdk.py SCRIPTED_SERVER STREAM_EVENTS   (the two examples of this crate, built)
Needs the packages `openai` and `anthropic`. Ends with status 1 when anything differs.
"""
import json
import subprocess
import sys

import anthropic
import openai

SERVER, EVENTS = sys.argv[1], sys.argv[2]

SCRIPTS = [
    [{"text": "Hello, world."}, {"usage": [11, 3, 0]}],
    [{"text": "Grüße, 世界 🦀"}, {"fragment": 1}, {"usage": [120, 9, 100]}],
    [{"reasoning": "Let me think about it."}, {"text": "Forty-two."}, {"usage": [7, 30, 0]}],
    [{"call": "shell", "arguments": {"command": "ls -la \"a b\""}}, {"fragment": 2}],
    [{"text": "Both."}, {"call": "shell", "arguments": {"command": "a"}}, {"call": "shell", "arguments": {"command": "ü", "n": [1, {"x": None}]}}, {"fragment": 5}],
    [{"call": "shell", "arguments": {}}],
    [{"text": "cut here"}, {"stop": {"openai": "length", "anthropic": "max_tokens"}}],
    [{"text": "x" * 5000}, {"fragment": 700}],
]
TOOL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
STOPS = {
    "stop": "endTurn", "tool_calls": "toolUse", "length": "maxTokens",
    "end_turn": "endTurn", "tool_use": "toolUse", "max_tokens": "maxTokens",
}


def theirs_openai(base):
    client = openai.OpenAI(base_url=base, api_key="k", max_retries=0)
    stream = client.chat.completions.create(
        model="m", stream=True, stream_options={"include_usage": True},
        messages=[{"role": "user", "content": "go"}],
        tools=[{"type": "function", "function": {"name": "shell", "parameters": TOOL}}],
    )
    out = {"text": "", "thought": "", "calls": [], "stop": None, "usage": None}
    for chunk in stream:
        if chunk.usage:
            cached = chunk.usage.prompt_tokens_details.cached_tokens or 0
            out["usage"] = [chunk.usage.prompt_tokens - cached, chunk.usage.completion_tokens, cached]
        for choice in chunk.choices:
            delta = choice.delta
            out["text"] += delta.content or ""
            out["thought"] += getattr(delta, "reasoning_content", None) or ""
            for call in delta.tool_calls or []:
                while len(out["calls"]) <= call.index:
                    out["calls"].append({"id": "", "name": "", "arguments": ""})
                mine = out["calls"][call.index]
                mine["id"] += call.id or ""
                mine["name"] += call.function.name or ""
                mine["arguments"] += call.function.arguments or ""
            out["stop"] = STOPS[choice.finish_reason] if choice.finish_reason else out["stop"]
    for call in out["calls"]:
        call["arguments"] = json.loads(call["arguments"])
    return out


def theirs_anthropic(base):
    client = anthropic.Anthropic(base_url=base.removesuffix("/v1"), api_key="k", max_retries=0)
    with client.messages.stream(
        model="m", max_tokens=100, messages=[{"role": "user", "content": "go"}],
        tools=[{"name": "shell", "input_schema": TOOL}],
    ) as stream:
        message = stream.get_final_message()
    out = {"text": "", "thought": "", "calls": [], "stop": STOPS[message.stop_reason], "usage": None}
    for block in message.content:
        if block.type == "text":
            out["text"] += block.text
        elif block.type == "thinking":
            out["thought"] += block.thinking
        elif block.type == "tool_use":
            out["calls"].append({"id": block.id, "name": block.name, "arguments": block.input})
    usage = message.usage
    out["usage"] = [usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens or 0]
    return out


def ours(kind, base):
    run = subprocess.run([EVENTS, kind, base, "m", "go"], capture_output=True, text=True, check=True)
    out = {"text": "", "thought": "", "calls": [], "stop": None, "usage": None}
    for event in map(json.loads, run.stdout.splitlines()):
        match event["type"]:
            case "contentDelta":
                out["text"] += event["text"]
            case "reasoningDelta":
                out["thought"] += event["text"]
            case "toolUse":
                call = {"id": event["id"], "name": event["name"], "arguments": json.loads(event["arguments"])}
                out["calls"].append(call)
            case "messageStop":
                out["stop"] = event["reason"]
                usage = event["usage"]
                out["usage"] = [usage["inputTokens"], usage["outputTokens"], usage["cacheReadTokens"]]
            case "error":
                out["error"] = event
    return out


def main():
    failed = 0
    for kind, theirs in (("openai", theirs_openai), ("anthropic", theirs_anthropic)):
        replies = [
            [{**part, "stop": part["stop"][kind]} if "stop" in part else part for part in script] for script in SCRIPTS
        ]
        server = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        server.stdin.write(json.dumps(replies) + "\n")
        server.stdin.flush()
        base = server.stdout.readline().strip()
        for script in SCRIPTS:
            expected, got = theirs(base), ours(kind, base)
            if expected != got:
                failed += 1
                print(f"{kind}, {json.dumps(script)[:80]}:\n  theirs {expected}\n  ours   {got}", file=sys.stderr)
        server.stdin.close()
        server.wait(10)
    total = 2 * len(SCRIPTS)
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}: {total - failed} of {total} streams read alike")
    sys.exit(failed > 0)


main()
