//! `hanzo-dev mcp` and `hanzo-mcp serve` as other programs start them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::support::World;

struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, next: 0 }
    }

    fn start(world: &World, arguments: &[&str]) -> Self {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        let mut client = Self::of(world.command(&all));
        client.greet(&json!({}));
        client
    }

    fn greet(&mut self, capabilities: &Value) -> Value {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "0"}});
        let answer = self.ask("initialize", &hello);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let answer = self.hear();
            if answer["id"] == self.next && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// Ends it as a client does, by hanging up, and says how it ended.
    fn end(self) -> (i32, String) {
        let Self { child, input, .. } = self;
        drop(input);
        let done = child.wait_with_output().unwrap();
        (done.status.code().unwrap_or(-1), String::from_utf8(done.stderr).unwrap())
    }
}

#[test]
fn a_client_lists_and_calls_tools_reads_resources_and_leaves() {
    let world = World::new();
    world
        .write("project/a.txt", "hello\n")
        .write("project/.hanzo/commands/review.md", "Review $ARGUMENTS now");
    let mut client = Client::start(&world, &[]);
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for wanted in ["fs", "proc", "vcs", "test", "ws", "think", "hanzo_agent_coder", "hanzo_agent_reviewer"] {
        assert!(names.contains(&wanted), "{wanted} is missing in {names:?}");
    }
    let hint = |name: &str| {
        tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"]["readOnlyHint"].clone()
    };
    assert_eq!((hint("think"), hint("proc")), (json!(true), json!(false)));

    let read = client.call("fs", &json!({"action": "read", "path": "a.txt"}));
    assert_eq!(read["structuredContent"]["data"]["text"], "hello\n", "{read}");
    assert_eq!(read["isError"], false);
    assert!(read["content"][0]["text"].as_str().unwrap().contains("hello"));
    // The names of other documents mean the same (R216).
    for (tool, arguments) in [
        ("read_file", json!({"path": "a.txt"})),
        ("write_file", json!({"path": "b.txt", "content": "new\n"})),
        ("list_directory", json!({"path": "."})),
        ("create_directory", json!({"path": "dir"})),
    ] {
        let done = client.call(tool, &arguments);
        assert_eq!(done["isError"], false, "{tool}: {done}");
    }
    assert_eq!(std::fs::read_to_string(world.workspace().join("b.txt")).unwrap(), "new\n");

    let uri = format!("file://{}", world.workspace().canonicalize().unwrap().join("a.txt").display());
    let listed = client.ask("resources/list", &json!({}));
    assert!(listed["result"]["resources"].as_array().unwrap().iter().any(|it| it["uri"] == uri), "{listed}");
    let contents = client.ask("resources/read", &json!({ "uri": uri }));
    assert_eq!(contents["result"]["contents"][0]["text"], "hello\n", "{contents}");
    let prompt = client.ask("prompts/get", &json!({"name": "review", "arguments": {"arguments": "it"}}));
    assert!(
        prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("Review it now"),
        "{prompt}"
    );

    let (code, stderr) = client.end();
    assert_eq!(code, 0, "{stderr}");
    let audit = world.run(&["audit", "--json"]).ok();
    assert!(audit.lines().count() >= 6 && audit.contains("\"read\""), "every call is in the audit: {audit}");
}

#[test]
fn somebody_from_elsewhere_reaches_the_workspace_alone() {
    let world = World::new();
    world.write("outside.txt", "secret").write("project/a.txt", "x");
    let mut client = Client::start(&world, &[]);
    let outside = world.home().join("outside.txt");
    let read = client.call("fs", &json!({"action": "read", "path": outside}));
    assert_eq!(read["isError"], true);
    assert!(!read.to_string().contains("secret"), "{read}");
    let resource = client.ask("resources/read", &json!({"uri": format!("file://{}", outside.display())}));
    assert!(resource["error"]["code"].is_i64() && !resource.to_string().contains("secret"), "{resource}");
    let write =
        client.call("fs", &json!({"action": "write", "path": world.home().join("new.txt"), "content": "x"}));
    assert_eq!(write["isError"], true, "{write}");
    assert!(!world.home().join("new.txt").exists());
}

#[test]
fn what_needs_a_person_is_asked_of_them_or_refused_with_the_rule_that_would_allow_it() {
    let world = World::new();
    world.user("[sandbox]\nmode = \"off\"\n");
    let run = || json!({"action": "exec", "command": "touch made.txt"});
    let mut alone = Client::start(&world, &[]);
    let refused = alone.call("proc", &run());
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("Bash(touch"), "{refused}");
    assert!(!world.workspace().join("made.txt").exists());

    let mut asked = Client::of(world.command(&["mcp"]));
    asked.greet(&json!({"elicitation": {}}));
    asked.next += 1;
    let id = asked.next;
    asked.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "proc", "arguments": run()}}));
    let form = asked.hear();
    assert_eq!(form["method"], "elicitation/create", "{form}");
    asked.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"decision": "Allow once"}}}));
    let done = asked.hear();
    assert_eq!((&done["id"], &done["result"]["isError"]), (&json!(id), &json!(false)), "{done}");
    assert!(world.workspace().join("made.txt").exists());
}

#[test]
fn a_connection_has_no_more_than_its_agent() {
    let world = World::new();
    world.write("project/a.txt", "x");
    let mut client = Client::start(&world, &["--agent", "planner"]);
    let listed = client.ask("tools/list", &json!({})).to_string();
    assert!(!listed.contains("\"proc\"") && !listed.contains("hanzo_agent_"), "{listed}");
    let read = client.call("fs", &json!({"action": "read", "path": "a.txt"}));
    assert_eq!(read["isError"], false, "{read}");
    let write = client.call("fs", &json!({"action": "write", "path": "b.txt", "content": "x"}));
    assert_eq!(write["isError"], true);
    assert!(!world.workspace().join("b.txt").exists());
    let run = client.ask(
        "tools/call",
        &json!({"name": "proc", "arguments": {"action": "exec", "command": "touch c.txt"}}),
    );
    assert!(run["error"].is_object() || run["result"]["isError"] == true, "{run}");
    assert!(!world.workspace().join("c.txt").exists());
}

#[test]
fn an_agent_does_a_task_for_a_client() {
    let read = Reply::tool_call("fs", json!({"action": "read", "path": "a.txt"}));
    let server = Server::start([read, Reply::text("The file says hello.")]);
    let world = World::new();
    world.user(&format!(
        "[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"test-model\"]\n",
        server.base_url()
    ));
    world.write("project/a.txt", "hello\n");
    let mut client = Client::start(&world, &[]);
    let done = client.call("hanzo_agent_reviewer", &json!({"message": "What does a.txt say?"}));
    assert_eq!(done["content"][0]["text"], "The file says hello.", "{done}");

    let bare = World::new();
    let mut client = Client::start(&bare, &[]);
    let missing = client.call("hanzo_agent_coder", &json!({"message": "x"}));
    assert_eq!(missing["isError"], true);
    assert!(missing["content"][0]["text"].as_str().unwrap().contains("no model"), "{missing}");
}

#[test]
fn the_same_call_again_and_again_is_nobodys_loop() {
    let world = World::new();
    world.write("project/a.txt", "x");
    let mut client = Client::start(&world, &[]);
    for _ in 0..30 {
        let read = client.call("fs", &json!({"action": "read", "path": "a.txt"}));
        assert_eq!(read["isError"], false, "{read}");
    }
}

/// The commands in README's client configurations start a server.
#[test]
fn the_client_configurations_in_the_readme_work() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let section = readme.split("## As an MCP server").nth(1).expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let blocks: Vec<&str> =
        section.split("```json").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3, "Claude Desktop, Cursor and VS Code");
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_hanzo-dev")).parent().unwrap();
    for block in blocks {
        let config: Value = serde_json::from_str(block).unwrap_or_else(|error| panic!("{error} in {block}"));
        let servers = config.get("mcpServers").or_else(|| config.get("servers")).expect("a list of servers");
        for server in servers.as_object().unwrap().values() {
            let world = World::new();
            let workspace = world.workspace().display().to_string();
            let fill = |text: &str| {
                text.replace("/path/to/project", &workspace).replace("${workspaceFolder}", &workspace)
            };
            let program = programs.join(server["command"].as_str().unwrap());
            let mut command = Command::new(program);
            let arguments =
                server["args"].as_array().unwrap().iter().map(|argument| fill(argument.as_str().unwrap()));
            command
                .env_clear()
                .env("HOME", world.home())
                .env("PATH", std::env::var_os("PATH").unwrap())
                .args(arguments);
            command.current_dir(world.workspace());
            if let Some(environment) = server.get("env").and_then(Value::as_object) {
                command.envs(environment.iter().map(|(name, value)| (name, fill(value.as_str().unwrap()))));
            }
            let mut client = Client::of(command);
            assert_eq!(client.greet(&json!({}))["result"]["serverInfo"]["name"], "hanzo-dev");
            assert!(client.ask("tools/list", &json!({})).to_string().contains("\"fs\""));
            assert_eq!(client.end().0, 0);
        }
    }
}
