//! `hanzo-dev mcp` and `hanzo-mcp serve` as other programs start them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::support::World;

pub struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub next: u64,
}

impl Client {
    pub fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, next: 0 }
    }

    pub fn start(world: &World, arguments: &[&str]) -> Self {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        let mut client = Self::of(world.command(&all));
        client.greet(&json!({}));
        client
    }

    pub fn greet(&mut self, capabilities: &Value) -> Value {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "0"}});
        let answer = self.ask("initialize", &hello);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let answer = self.hear();
            if answer["id"] == self.next && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// Ends it as nobody should.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as a client does, by hanging up, and says how it ended.
    pub fn end(self) -> (i32, String) {
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

#[test]
fn options_for_everything_stand_before_and_after_the_command() {
    let world = World::new();
    world.write("project/a.txt", "here\n");
    let workspace = world.workspace().display().to_string();
    for words in [
        vec!["-C", &workspace, "mcp"],
        vec!["mcp", "-C", &workspace],
        vec!["-C", &workspace, "--config", "agent.max_steps=20", "mcp", "--agent", "coder"],
    ] {
        let mut command = world.command(&words);
        command.current_dir(world.home());
        let mut client = Client::of(command);
        client.greet(&json!({}));
        let read = client.call("fs", &json!({"action": "read", "path": "a.txt"}));
        assert_eq!(read["structuredContent"]["data"]["text"], "here\n", "{words:?}: {read}");
    }
    for words in [
        ["-C", &workspace, "mcp", "list"],
        ["mcp", "-C", &workspace, "list"],
        ["mcp", "list", "-C", &workspace],
    ] {
        world.run(&words).ok();
    }
    let mixed = world.run(&["mcp", "--agent", "coder", "list"]);
    assert!(mixed.code != 0 && mixed.stderr.contains("no meaning"), "{mixed:?}");
}

/// A server of ours that an agent started tells how many agents stand above it, and there the tower ends.
#[test]
fn a_tower_of_agents_ends_at_the_third() {
    let world = World::new();
    world.user(&format!(
        "[mcp_servers.own]\ncommand = {:?}\nargs = [\"mcp\"]\n",
        env!("CARGO_BIN_EXE_hanzo-dev")
    ));
    let names = |depth: Option<&str>| {
        let mut command = world.command(&["mcp"]);
        if let Some(depth) = depth {
            command.env("HANZO_MCP_DEPTH", depth);
        }
        let mut client = Client::of(command);
        client.greet(&json!({}));
        client.ask("tools/list", &json!({})).to_string()
    };
    assert!(names(None).contains("hanzo_agent_coder"));
    assert!(names(Some("2")).contains("hanzo_agent_coder"));
    assert!(!names(Some("3")).contains("hanzo_agent_"));
    assert!(names(Some("nonsense")).contains("hanzo_agent_coder"));
    let mut command = world.command(&["mcp"]);
    command.env("HANZO_MCP_DEPTH", "3");
    let mut client = Client::of(command);
    client.greet(&json!({}));
    let refused =
        client.ask("tools/call", &json!({"name": "hanzo_agent_coder", "arguments": {"message": "x"}}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("3 agents stand above"), "{refused}");
}

/// What a manifest does not name the sandbox does not let through (R212 to R215).
#[test]
fn a_script_with_a_manifest_is_a_tool_that_reaches_what_it_names_and_no_more() {
    if Command::new("python3").arg("--version").output().is_err() {
        hanzo_testkit::not_run("python3 is not installed");
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = "import os, socket\ndef probe(port):\n    found = {'key': os.environ.get('API_KEY'), 'cores': len(os.sched_getaffinity(0))}\n    try:\n        open('made.txt', 'w').close()\n        found['write'] = True\n    except OSError:\n        found['write'] = False\n    try:\n        socket.create_connection(('127.0.0.1', port), 2).close()\n        found['network'] = True\n    except OSError:\n        found['network'] = False\n    return found\n";
    let manifest = |name: &str, permissions: &str| {
        format!(
            "name: {name}\ndescription: Look around\ninput:\n  type: object\n  properties: {{port: integer}}\n  required: [port]\npermissions: [{permissions}]\nimplementation: {{runtime: python, handler: './probe.py:probe', timeout: 20000}}\n"
        )
    };
    let world = World::new();
    world
        .write("project/.hanzo/tools/theirs/mcp-tool.yaml", manifest("theirs", ""))
        .write("project/.hanzo/tools/theirs/probe.py", script);
    for (name, permissions) in
        [("bare", ""), ("open", "'network:http', 'filesystem:write', 'env:API_KEY'"), ("grep", "")]
    {
        world
            .write(&format!(".config/hanzo/tools/{name}/mcp-tool.yaml"), manifest(name, permissions))
            .write(&format!(".config/hanzo/tools/{name}/probe.py"), script);
    }
    let start = || {
        let mut command = world.command(&["mcp"]);
        command.env("API_KEY", "s3cret");
        let mut client = Client::of(command);
        client.greet(&json!({}));
        client
    };
    let mut client = start();
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(listed.contains(&"bare") && listed.contains(&"open"), "{listed:?}");
    assert!(!listed.contains(&"theirs"), "an untrusted project brings no tools");
    assert!(!listed.contains(&"grep"), "a name of ours stays ours");
    let bare = client.call("bare", &json!({ "port": port }));
    assert_eq!(
        bare["structuredContent"]["data"],
        json!({"key": null, "cores": 1, "write": false, "network": false}),
        "{bare}"
    );
    let refused = client.call("open", &json!({ "port": port }));
    assert_eq!(refused["isError"], true, "the network is beyond the sandbox's edge: {refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("`open`"), "{refused}");
    drop(client);

    world.user("[permissions]\nallow = [\"open\"]\n");
    world.run(&["trust", "add"]).ok();
    let mut client = start();
    let open = client.call("open", &json!({ "port": port }));
    assert_eq!(
        open["structuredContent"]["data"],
        json!({"key": "s3cret", "cores": 1, "write": true, "network": true}),
        "{open}"
    );
    assert!(world.workspace().join("made.txt").exists());
    assert!(
        client.ask("tools/list", &json!({})).to_string().contains("\"theirs\""),
        "the project is trusted now"
    );
}

/// A script has 512 MB when nothing else is said. Node sets far more aside than it uses, which must not count, and what it uses must.
#[cfg(target_os = "linux")]
#[test]
fn a_node_script_starts_within_its_memory_and_gets_no_more() {
    if Command::new("node").arg("--version").output().is_err() {
        hanzo_testkit::not_run("node is not installed");
        return;
    }
    let script =
        "export default ({ megabytes }) => ({ got: Buffer.alloc(megabytes << 20, 1).length >> 20 });\n";
    let manifest = "name: take\ndescription: Take memory\ninput:\n  type: object\n  properties: {megabytes: integer}\n  required: [megabytes]\nimplementation: {runtime: node, handler: ./take.mjs, timeout: 60000}\n";
    let world = World::new();
    world
        .write(".config/hanzo/tools/take/mcp-tool.yaml", manifest)
        .write(".config/hanzo/tools/take/take.mjs", script);
    let mut client = Client::of(world.command(&["mcp"]));
    client.greet(&json!({}));
    let taken = client.call("take", &json!({"megabytes": 64}));
    assert_eq!(taken["structuredContent"]["data"], json!({"got": 64}), "{taken}");
    let refused = client.call("take", &json!({"megabytes": 1024}));
    assert_eq!(refused["isError"], true, "{refused}");
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
