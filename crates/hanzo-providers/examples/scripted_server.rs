//! Runs the scripted model server for a program that is not written in Rust. The first line of standard input is a JSON
//! list of replies, each a list of parts (`{"text": …}`, `{"reasoning": …}`, `{"call": name, "arguments": {…}}`) with an
//! optional `{"stop": …}`, `{"fragment": characters}`, `{"usage": [input, output, cached]}`. Each is given twice: to two clients.
//! The base URL is printed, and the server ends with its standard input.
#![expect(clippy::print_stdout, reason = "whoever started it reads the address")]

use std::io::BufRead as _;

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::Value;

fn reply(parts: &Value) -> Reply {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().fold(Reply::empty(), |reply, part| {
        let text = |name: &str| part[name].as_str().map(str::to_owned);
        if let Some(said) = text("text") {
            reply.and_text(said)
        } else if let Some(thought) = text("reasoning") {
            reply.and_reasoning(thought)
        } else if let Some(name) = text("call") {
            reply.and_tool_call(name, part["arguments"].clone())
        } else if let Some(reason) = text("stop") {
            reply.with_stop(reason)
        } else if let Some(fragment) = part["fragment"].as_u64() {
            reply.fragment(usize::try_from(fragment).unwrap_or(1))
        } else {
            let count = |index: usize| part["usage"][index].as_u64().unwrap_or(0);
            reply.with_usage(count(0), count(1)).with_cached(count(2), 0)
        }
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let script = lines.next().ok_or("no script on standard input")??;
    let script: Value = serde_json::from_str(&script)?;
    let replies = script.as_array().cloned().unwrap_or_default();
    // Two clients are compared: each reply is given twice.
    let server = Server::start(replies.iter().flat_map(|parts| [reply(parts), reply(parts)]));
    println!("{}", server.base_url());
    for line in lines {
        line?;
    }
    Ok(())
}
