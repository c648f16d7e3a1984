#!/usr/bin/env python3
"""Checks three vector files against an implementation of the same rules that shares nothing with the product.

    python3 test-vectors/check/vectors.py

It needs the standard library only. HANZO_TEST_VECTORS=DIR reads another directory, as the Rust runners do; a file that
such a directory leaves out is skipped, but one that holds no vector file at all is an error. The rules are stated in
the schemas under `test-vectors/schema/`.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent


# --- mcp-normalization -----------------------------------------------------------------------------------------------


def tool_part(text):
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def server_part(text):
    part = tool_part(text)
    if text.startswith("claude.ai "):
        part = re.sub(r"_+", "_", part).strip("_")
    return part


def natural_name(server, tool):
    name = "mcp__" + server_part(server) + "__" + tool_part(tool)
    if len(name) > 64:
        digest = hashlib.sha256(server.encode() + b"\0" + tool.encode()).hexdigest()
        name = name[:55] + "_" + digest[:8]
    return name


def alias(server, tool):
    return ("mcp_" + server_part(server) + "_" + tool_part(tool)).lower().replace("-", "_")


def add_tools(names, tools):
    """Adds tools to `names`, a dict from (server, tool) to name; returns those that were given a suffix."""
    new = sorted(set(tools) - set(names))
    waiting = []
    for key in new:
        if natural_name(*key) in names.values():
            waiting.append(key)
        else:
            names[key] = natural_name(*key)
    for key in waiting:
        number = 2
        while (candidate := natural_name(*key)[: 64 - len(f"_{number}")] + f"_{number}") in names.values():
            number += 1
        names[key] = candidate
    return waiting


def resolve(names, text):
    for key, name in names.items():
        if name == text:
            return key
    fitting = [key for key in names if alias(*key) == text]
    return fitting[0] if len(fitting) == 1 and not text.startswith("mcp__") else None


def check_mcp(case):
    first = [(tool["server"], tool["tool"]) for tool in case["tools"]]
    later = [(tool["server"], tool["tool"]) for tool in case.get("added", [])]
    names = {}
    renamed = add_tools(names, first) + add_tools(names, later)
    both = first + later
    yield "expected", case["expected"], [names[key] for key in both]
    yield "aliases", case["aliases"], [alias(*key) for key in both]
    yield "collisions", case.get("collisions", []), [both.index(key) for key in renamed]
    for text, index in case.get("resolves", {}).items():
        yield f"resolves `{text}`", None if index is None else both[index], resolve(names, text)
    for name in case["expected"]:
        yield f"`{name}` is valid", True, re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) is not None


# --- oauth-pkce ------------------------------------------------------------------------------------------------------


def challenge_of(verifier):
    if re.search(r"[^A-Za-z0-9._~-]", verifier):
        return None, "character"
    if len(verifier) < 43:
        return None, "tooShort"
    if len(verifier) > 128:
        return None, "tooLong"
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("="), None


def openssl_challenge(verifier):
    digest = subprocess.run(
        ["openssl", "dgst", "-sha256", "-binary"], input=verifier.encode(), capture_output=True, check=True
    ).stdout
    text = subprocess.run(["openssl", "base64", "-A"], input=digest, capture_output=True, check=True).stdout
    return text.decode().strip().rstrip("=").replace("+", "-").replace("/", "_")


def check_pkce(case):
    challenge, error = challenge_of(case["verifier"])
    yield "challenge", case.get("challenge"), challenge
    yield "error", case.get("error"), error
    if challenge and shutil.which("openssl"):
        yield "challenge by openssl", case["challenge"], openssl_challenge(case["verifier"])


# --- session-compaction ----------------------------------------------------------------------------------------------


def estimate(text):
    return -(-len(text) // 4)


def tokens(message):
    if message.get("tokenCount") is not None:
        return message["tokenCount"]
    return estimate(message.get("content", "") + "".join(c["arguments"] for c in message.get("toolCalls", [])))


def total(messages):
    return sum(map(tokens, messages))


def cut(text, longest):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plain(message):
    """A message without the fields that say nothing."""
    return {key: value for key, value in message.items() if value not in ("", [], None)}


def start_of(messages):
    """Where the middle begins, and so where the fold stands afterwards."""
    return 1 if messages and messages[0]["role"] == "system" else 0


def compact(case):
    """The result and the most tokens of the fold; the fold's content is None where a transcript is to be shortened."""
    messages, limit = case["messages"], case["maxTokens"]
    reserve = case.get("reserveRecent", 3)
    unchanged = messages, 0, 0, None
    if not total(messages) * 10 > limit * 9:
        return unchanged
    start = start_of(messages)
    turns = [i for i in range(start, len(messages)) if messages[i]["role"] == "user"]
    if reserve == 0:
        end = len(messages)
    elif not turns:
        end = start
    else:
        end = turns[max(0, len(turns) - reserve)]
    head, folded, tail = messages[:start], messages[start:end], messages[end:]
    if not folded or total(folded) <= 3:
        return unchanged
    if len(folded) == 1 and folded[0]["role"] == "assistant" and not folded[0].get("toolCalls"):
        return unchanged
    summary = case.get("summary")
    given = summary is not None and summary.strip(" \t\r\n") != ""
    line = limit * 9 // 10 if given else limit // 2
    room = line - total(head) - total(tail)
    most = min(total(folded) - 1, max(room, limit // 20, 16))
    fold = {"role": "assistant"}
    saved = None
    if given:
        fold["content"] = cut(summary, 4 * most)
        fold["tokenCount"] = estimate(fold["content"])
        saved = total(folded) - fold["tokenCount"]
    else:
        fold["contentUnspecified"] = True
    return head + [fold] + tail, len(folded), saved, most


def check_compaction(case):
    messages, count, saved, most = compact(case)
    expected = case["expected"]
    yield "messages", list(map(plain, expected["messages"])), list(map(plain, messages))
    yield "compactedCount", expected["compactedCount"], count
    yield "tokensSaved", expected["tokensSaved"], saved
    if saved:
        fold = messages[start_of(case["messages"])]
        yield "the fold keeps to its size", True, tokens(fold) <= most
        yield "the conversation is smaller by tokensSaved", total(case["messages"]) - total(messages), saved


# --- the run ---------------------------------------------------------------------------------------------------------

CHECKS = {
    "mcp-normalization.json": check_mcp,
    "oauth-pkce.json": check_pkce,
    "session-compaction.json": check_compaction,
}

# The files of the suite that other programs check. A directory of one's own may hold only those.
ELSEWHERE = ["sse-frames.json", "permission-policy.json", "config-merge.json", "backoff-timing.json"]


def faults_of(check, case):
    try:
        return [
            f"{what}: the vector says {expected!r}, the rules give {actual!r}"
            for what, expected, actual in check(case)
            if expected != actual
        ]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return [f"not a case of this file: {error!r}"]


def cases_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["cases"]


def main():
    other = os.environ.get("HANZO_TEST_VECTORS")
    directory = Path(other) if other else OWN
    passed = failed = 0
    if not any((directory / name).exists() for name in [*CHECKS, *ELSEWHERE]):
        print(f"FAIL {directory} holds none of the vector files ({', '.join([*CHECKS, *ELSEWHERE])})")
        failed += 1
    for name, check in CHECKS.items():
        path = directory / name
        if other and not path.exists():
            print(f"{name}: skipped, not in {directory}")
            continue
        try:
            cases = cases_of(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"FAIL {name}: cannot be read: {error!r}")
            failed += 1
            continue
        for case in cases:
            faults = faults_of(check, case)
            passed, failed = passed + (not faults), failed + bool(faults)
            for fault in faults:
                print(f"FAIL {name}: {case.get('name')}: {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
