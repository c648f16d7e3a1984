//! Resources and prompts of other people's servers, wanted by clients of ours: calls through the gate, like everything else.

use std::time::{Duration, Instant};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::mcp_server::Client;
use crate::support::World;

/// A server in the shell that has a short and a long resource and a prompt. It leaves a mark for each request for one of them.
const SERVER: &str = r#"
long=$(head -c 150000 /dev/zero | tr '\0' x)
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*)
      say '{"protocolVersion":"2025-06-18","capabilities":{"prompts":{},"resources":{}},"serverInfo":{"name":"sh","version":"1"}}';;
    *'"method":"prompts/list"'*) say '{"prompts":[{"name":"greet","description":"Greets","arguments":[{"name":"who","required":true}]}]}';;
    *'"method":"resources/list"'*)
      say '{"resources":[{"uri":"notes://one","name":"one","mimeType":"text/markdown"},{"uri":"notes://long","name":"long"}]}';;
    *'"method":"resources/read"'*notes://long*) echo read >> asked; say '{"contents":[{"uri":"notes://long","text":"'"$long"'end"}]}';;
    *'"method":"resources/read"'*) echo read >> asked; say '{"contents":[{"uri":"notes://one","text":"what is noted"}]}';;
    *'"method":"prompts/get"'*) echo got >> asked; say '{"messages":[{"role":"user","content":{"type":"text","text":"Greet Ada."}}]}';;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

const ONE: &str = "mcp://s/notes%3A%2F%2Fone";
const LONG: &str = "mcp://s/notes%3A%2F%2Flong";

fn world(permissions: &str) -> World {
    let world = World::new();
    world.write("project/server.sh", SERVER);
    world.user(&format!(
        "[permissions]\n{permissions}\n[mcp_servers.s]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n"
    ));
    world
}

fn was_asked(world: &World) -> String {
    std::fs::read_to_string(world.workspace().join("asked")).unwrap_or_default()
}

fn read(client: &mut Client, uri: &str) -> Value {
    client.ask("resources/read", &json!({ "uri": uri }))
}

fn greet(client: &mut Client) -> Value {
    client.ask("prompts/get", &json!({"name": "mcp__s__greet", "arguments": {"arguments": "Ada"}}))
}

/// The decisions there are about methods of the server, once there are `count`.
fn audited(world: &World, count: usize) -> Vec<(String, String)> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let text = world.run(&["audit", "--json"]).ok();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let said = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let found: Vec<_> = entries
            .filter(|entry| entry.to_string().contains("mcp__s__"))
            .map(|entry| (said(&entry, "tool"), said(&entry, "decision")))
            .collect();
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < end, "{count} of them in {text}");
    }
}

#[test]
fn what_no_rule_allows_is_refused_before_the_server_hears_of_it() {
    let world = world("");
    let mut client = Client::start(&world, &["--with-servers"]);
    assert!(client.ask("prompts/list", &json!({})).to_string().contains("mcp__s__greet"));
    let refused = read(&mut client, ONE)["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.contains("Mcp(s/resources/read)"), "it names the rule that would allow it: {refused}");
    let refused = greet(&mut client)["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.contains("Mcp(s/prompts/get)"), "{refused}");
    // Nor by the names the calls have.
    let called = client.call("mcp__s__resources/read", &json!({"uri": "notes://one"}));
    assert_eq!(called["isError"], true, "{called}");
    assert_eq!(was_asked(&world), "");
    let decisions = audited(&world, 3);
    assert!(decisions.iter().all(|(_, decision)| decision == "deny:nobody-to-ask"), "{decisions:?}");
}

#[test]
fn what_a_rule_allows_is_read_whole_and_is_in_the_audit() {
    let world = world("allow = [\"Mcp(s/resources/read)\", \"Mcp(s/prompts/get)\"]");
    let mut client = Client::start(&world, &["--with-servers"]);
    let one = &read(&mut client, ONE)["result"]["contents"][0];
    assert_eq!((&one["text"], &one["mimeType"]), (&json!("what is noted"), &json!("text/markdown")));
    let long = read(&mut client, LONG);
    let text = long["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{long}"));
    assert!(text.len() == 150_003 && text.ends_with("xend"), "{} bytes", text.len());
    assert_eq!(greet(&mut client)["result"]["messages"][0]["content"]["text"], "Greet Ada.");
    let wrong = client.ask("prompts/get", &json!({"name": "mcp__s__greet"}));
    assert!(wrong["error"]["message"].as_str().unwrap().contains("`who`"), "{wrong}");
    let unlisted = client.call("mcp__s__resources/read", &json!({"uri": "notes://two"}));
    assert!(unlisted["isError"] == true && unlisted.to_string().contains("lists no resource"), "{unlisted}");
    assert_eq!(was_asked(&world), "read\nread\ngot\n");
    let decisions = audited(&world, 4);
    assert!(decisions.iter().all(|(_, decision)| decision == "allow:rule"), "{decisions:?}");
}

#[test]
fn an_agent_without_the_server_does_not_give_its_clients_more() {
    let world = world("allow = [\"Mcp(s/*)\"]");
    let mut client = Client::start(&world, &["--with-servers", "--agent", "planner"]);
    for refused in [read(&mut client, ONE), greet(&mut client)] {
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(message.contains("is not among the tools"), "{message}");
    }
    assert_eq!(was_asked(&world), "");
}

#[test]
fn the_person_at_the_client_is_asked() {
    let world = world("");
    let mut client = Client::of(world.command(&["mcp", "--with-servers"]));
    client.greet(&json!({"elicitation": {}}));
    client.ask("tools/list", &json!({}));
    for (answer, expected) in [("Allow once", "what is noted"), ("Deny", "")] {
        client.next += 1;
        let id = client.next;
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": {"uri": ONE}}));
        let form = client.hear();
        assert_eq!(form["method"], "elicitation/create", "{form}");
        let shown = form["params"]["message"].as_str().unwrap();
        assert!(shown.contains("notes://one") && shown.contains("`s`"), "{shown}");
        client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"decision": answer}}}));
        let done = client.hear();
        let text = done["result"]["contents"][0]["text"].as_str().unwrap_or_default();
        assert_eq!((&done["id"], text), (&json!(id), expected), "{done}");
    }
    assert_eq!(was_asked(&world), "read\n");
}

/// What a client writes to an agent is not what the user writes: its references are read by nobody.
#[test]
fn references_in_a_client_s_task_are_words() {
    let model = Server::start([Reply::text("Done.")]);
    let world = world("");
    world.user(&format!(
        "[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"test-model\"]\n[mcp_servers.s]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n",
        model.base_url()
    ));
    world.write("project/a.txt", "the secret of a.txt\n");
    let mut client = Client::start(&world, &["--with-servers"]);
    client.ask("tools/list", &json!({}));
    let done = client.call("hanzo_agent_coder", &json!({"message": "look at @a.txt and @s:notes://one"}));
    assert_eq!(done["content"][0]["text"], "Done.", "{done}");
    let request = model.requests()[0].json().to_string();
    assert!(request.contains("look at @a.txt and @s:notes://one"), "{request}");
    assert!(!request.contains("the secret of") && !request.contains("what is noted"), "{request}");
    assert_eq!(was_asked(&world), "");
}
