//! What MCP servers ask in the middle of a call: the question reaches the person, wherever they are, and the answer the server.
//!
//! Here the person is at a client of `hanzo-dev mcp`: it has an agent do a task, the agent calls a server's tool, the server asks,
//! and the question comes out at the client as a form.

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::mcp_server::Client;
use crate::support::World;

/// A server in the shell. Its tools ask before they answer, and what they were answered is what they return.
const SERVER: &str = r#"
question() {
  printf '{"jsonrpc":"2.0","id":900,"method":"%s","params":%s}\n' "$1" "$2"
  while read -r reply; do
    case "$reply" in *'"id":900'*) break;; esac
  done
  told=$(printf '%s' "$reply" | sed 's/\\/\\\\/g; s/"/\\"/g')
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$told"
}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id";;
    *'"method":"tools/list"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"form","inputSchema":{"type":"object"}},{"name":"plain","inputSchema":{"type":"object"}},{"name":"model","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"name":"form"'*)
      question elicitation/create '{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"},"age":{"type":"integer","minimum":18},"colour":{"type":"string","enum":["red","blue"]},"member":{"type":"boolean"}},"required":["name","age"]}}';;
    *'"name":"plain"'*)
      question elicitation/create '{"message":"Go on?","requestedSchema":{"type":"object","properties":{}}}';;
    *'"name":"model"'*)
      question sampling/createMessage '{"messages":[{"role":"user","content":{"type":"text","text":"Say a word"}}],"maxTokens":20,"systemPrompt":"Be brief"}';;
    *'"id":'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

struct Stage {
    world: World,
    model: Server,
}

impl Stage {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let model = Server::start(replies);
        let world = World::new();
        world
            .user(&format!(
                "model = \"scripted/test-model\"\n[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"test-model\"]\n[permissions]\nallow = [\"Mcp(asks)\"]\n[mcp_servers.asks]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n",
                model.base_url()
            ))
            .write("project/server.sh", SERVER);
        // From here on its list is known.
        world.run(&["mcp", "test", "asks"]).ok();
        Self { world, model }
    }

    /// Has an agent call the server's tool, and answers the questions that come.
    fn talk(&self, capabilities: &Value, answers: &[Value]) -> (Vec<Value>, Value) {
        let mut client = Client::of(self.world.command(&["mcp"]));
        client.greet(capabilities);
        client.next += 1;
        let id = client.next;
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "hanzo_agent_coder", "arguments": {"message": "call it"}}}));
        let mut asked = Vec::new();
        loop {
            let heard = client.hear();
            if heard["id"] == id && heard.get("method").is_none() {
                return (asked, heard);
            }
            if heard["method"] == "elicitation/create" {
                let answer =
                    answers.get(asked.len()).unwrap_or_else(|| panic!("one question too many: {heard}"));
                client.send(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": answer}));
                asked.push(heard["params"].clone());
            }
        }
    }

    /// What the server was answered, as the model read it.
    fn told(&self) -> String {
        let requests = self.model.requests();
        let last = requests.last().unwrap().json();
        last["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
    }
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

fn can_be_asked() -> Value {
    json!({"elicitation": {}})
}

fn calls(tool: &str) -> [Reply; 2] {
    [Reply::tool_call(format!("mcp__asks__{tool}"), json!({})), Reply::text("Done.")]
}

#[test]
fn a_form_is_asked_field_by_field_and_again_where_the_answer_cannot_be() {
    let stage = Stage::new(calls("form"));
    let answers = ["Ada", "twelve", "17", "36", "blue", "Yes"].map(accept);
    let (asked, done) = stage.talk(&can_be_asked(), &answers);
    assert_eq!(done["result"]["content"][0]["text"], "Done.", "{done}");
    let message = |at: usize| asked[at]["message"].as_str().unwrap().to_owned();
    assert!(message(0).contains("The MCP server `asks` asks: Who are you?"), "{}", message(0));
    assert!(message(2).len() > message(1).len(), "it says what is wrong with `twelve`: {}", message(2));
    let choices = &asked[4]["requestedSchema"]["properties"]["answer"]["enum"];
    assert_eq!(*choices, json!(["red", "blue", "Decline"]), "{asked:?}");
    let told = stage.told();
    for part in ["accept", "Ada", "36", "blue", "true"] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn a_form_can_be_declined_and_is_cancelled_where_nobody_is() {
    let stage = Stage::new(calls("form").into_iter().chain(calls("plain")).chain(calls("plain")));
    let (asked, _) = stage.talk(&can_be_asked(), &[accept("Ada"), accept("decline")]);
    assert_eq!(asked.len(), 2);
    assert!(stage.told().contains("decline"), "{}", stage.told());
    let (asked, _) = stage.talk(&can_be_asked(), &[accept("Yes")]);
    assert_eq!(asked[0]["requestedSchema"]["properties"]["answer"]["enum"], json!(["Yes", "Decline"]));
    assert!(stage.told().contains("accept"), "{}", stage.told());
    let (asked, _) = stage.talk(&json!({}), &[]);
    assert!(asked.is_empty() && stage.told().contains("cancel"), "{}", stage.told());
}

#[test]
fn a_model_is_asked_for_a_server_when_the_user_agrees_and_not_otherwise() {
    let [call, end] = calls("model");
    let stage = Stage::new([call, Reply::text("Cabbage."), end].into_iter().chain(calls("model")));
    let (asked, _) = stage.talk(&can_be_asked(), &[accept("Allow once")]);
    let question = asked[0]["message"].as_str().unwrap();
    for part in ["`asks`", "test-model", "at your expense", "Say a word"] {
        assert!(question.contains(part), "{part} in {question}");
    }
    assert!(stage.told().contains("Cabbage."), "{}", stage.told());
    let sampled = stage.model.requests()[1].json();
    assert_eq!(sampled["messages"][0]["content"], "Be brief", "{sampled}");
    assert!(sampled.get("tools").is_none_or(|tools| tools.as_array().is_none_or(Vec::is_empty)), "{sampled}");

    let (asked, _) = stage.talk(&can_be_asked(), &[accept("Decline")]);
    assert_eq!(asked.len(), 1);
    assert!(stage.told().contains("did not allow it"), "{}", stage.told());
}
