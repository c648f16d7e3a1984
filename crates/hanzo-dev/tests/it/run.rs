//! `hanzo-dev run`: the real program against a scripted model.

use std::process::Stdio;
use std::time::{Duration, Instant};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::support::{Ran, World, finish};

/// A world whose settings point at `server`.
fn world(server: &Server) -> World {
    let world = World::new();
    world.user(&settings(server));
    world
}

fn settings(server: &Server) -> String {
    format!(
        "model = \"scripted/test-model\"\n\n[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"test-model\"]\nprice = {{ input = 1.0, output = 10.0 }}\n",
        server.base_url()
    )
}

fn exec(command: &str) -> Reply {
    Reply::tool_call("proc", json!({"action": "exec", "command": command}))
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The text of the last message the model was sent.
fn last_message(server: &Server) -> String {
    let requests = server.requests();
    let body = requests.last().expect("a request").json();
    body["messages"].as_array().expect("messages").last().expect("a message")["content"].to_string()
}

#[test]
fn the_answer_is_all_there_is_on_stdout() {
    let server = Server::start([Reply::text("Forty-two.")]);
    let ran = world(&server).run(&["run", "what is the answer?"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "Forty-two.\n", ""));
    assert!(last_message(&server).contains("what is the answer?"));
}

#[test]
fn what_is_piped_in_is_the_prompt_or_joins_it() {
    let server = Server::start([Reply::text("a"), Reply::text("b")]);
    let world = world(&server);
    world.run_with_input(&["run"], "say a").ok();
    assert!(last_message(&server).contains("say a"));
    world.run_with_input(&["run", "explain this"], "1 + 1\n").ok();
    let seen = last_message(&server);
    assert!(seen.contains("explain this") && seen.contains("1 + 1"), "{seen}");
}

#[test]
fn a_file_goes_with_the_prompt() {
    let server = Server::start([Reply::text("ok")]);
    let world = world(&server);
    world.write("project/notes.txt", "the canary sings\n");
    world.run(&["run", "read it", "-f", "notes.txt"]).ok();
    let seen = last_message(&server);
    assert!(seen.contains("the canary sings") && seen.contains("notes.txt"), "{seen}");
    let ran = world.run(&["run", "read it", "-f", "missing.txt"]);
    assert_eq!(ran.code, 42, "{ran:#?}");
}

#[test]
fn json_is_one_result() {
    let server = Server::start([Reply::text("Yes.").with_usage(1000, 100)]);
    let result = world(&server).run(&["run", "well?", "--output-format", "json"]).json();
    assert_eq!(result["type"], "result");
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["result"], "Yes.");
    assert_eq!(result["num_turns"], 1);
    assert_eq!(result["usage"]["input_tokens"], 1000);
    assert_eq!(result["usage"]["output_tokens"], 100);
    assert_eq!(result["total_cost_usd"], 0.002);
    assert_eq!(result["session_id"], result["thread_id"]);
}

#[test]
fn a_stream_is_init_notifications_and_result() {
    let server = Server::start([exec("echo hello > made.txt"), Reply::text("Made.")]);
    let world = world(&server);
    let ran = world.run(&["run", "make it", "--output-format", "stream-json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let lines = lines(&ran);
    let first = &lines[0];
    assert_eq!(first["type"], "init");
    assert_eq!(first["model"], "scripted/test-model");
    assert_eq!(first["posture"], "ask");
    assert_eq!(first["sandbox"], "full");
    assert!(first["tools"].as_array().expect("tools").contains(&json!("proc")), "{first}");
    let last = lines.last().expect("a line");
    assert_eq!((&last["type"], &last["result"]), (&json!("result"), &json!("Made.")));
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    for expected in ["turn.started", "item.started", "item.delta", "item.completed", "turn.completed"] {
        assert!(types.contains(&expected), "{expected} is missing in {types:?}");
    }
    let thread = &first["thread_id"];
    let middle = &lines[1..lines.len() - 1];
    assert!(middle.iter().all(|line| &line["threadId"] == thread && line["cursor"].is_u64()));
    assert_eq!(std::fs::read_to_string(world.workspace().join("made.txt")).expect("made"), "hello\n");
}

#[test]
fn inside_the_sandbox_runs_and_its_edge_is_refused() {
    // The edge: a file outside the workspace.
    let server = Server::start([
        Reply::tool_call("fs", json!({"action": "write", "uri": "/var/outside.txt", "content": "x"})),
        Reply::text("I could not write it."),
    ]);
    let ran = world(&server).run(&["run", "write outside"]);
    assert_eq!(ran.code, 56, "{ran:#?}");
    assert_eq!(ran.stdout, "I could not write it.\n");
    assert!(ran.stderr.contains("hint: `--allow RULE`"), "{}", ran.stderr);
    assert!(!std::path::Path::new("/var/outside.txt").exists());
}

#[test]
fn after_a_refusal_the_agent_may_find_another_way() {
    let server = Server::start([
        Reply::tool_call("fs", json!({"action": "write", "uri": "/var/outside.txt", "content": "x"})),
        exec("echo x > inside.txt"),
        Reply::text("I wrote it inside."),
    ]);
    let world = world(&server);
    assert_eq!(world.run(&["run", "write"]).ok(), "I wrote it inside.\n");
    assert!(world.workspace().join("inside.txt").exists());
}

#[test]
fn a_rule_of_the_command_line_denies() {
    let server = Server::start([exec("touch made.txt"), Reply::text("Not allowed.")]);
    let world = world(&server);
    let ran = world.run(&["run", "make it", "--deny", "Bash(touch:*)"]);
    assert_eq!(ran.code, 0, "nobody was missing: {ran:#?}");
    assert!(!world.workspace().join("made.txt").exists());
    assert!(ran.stderr.contains("refused"), "{}", ran.stderr);
}

#[test]
fn plan_mode_refuses_every_writer() {
    let server = Server::start([exec("touch made.txt"), Reply::text("Here is the plan.")]);
    let world = world(&server);
    let ran = world.run(&["run", "make it", "--mode", "plan"]);
    assert_eq!(ran.stdout, "Here is the plan.\n", "{ran:#?}");
    assert!(!world.workspace().join("made.txt").exists());
}

#[test]
fn a_mode_of_the_mode_tool_is_kept_to_by_the_gate() {
    let mode = Reply::tool_call("mode", json!({"action": "activate", "name": "reviewer"}));
    let server = Server::start([mode, exec("touch made.txt"), Reply::text("I only look.")]);
    let world = world(&server);
    let ran = world.run(&["run", "review it", "--posture", "yolo"]);
    assert_eq!(ran.stdout, "I only look.\n", "{ran:#?}");
    assert!(!world.workspace().join("made.txt").exists());
    let told = server.requests()[2].json().to_string();
    assert!(told.contains("is left out by the mode `reviewer`"), "{told}");
}

#[test]
fn a_thread_goes_on_and_a_copy_goes_its_own_way() {
    let replies = ["one", "two", "three", "four"].map(Reply::text);
    let server = Server::start(replies);
    let world = world(&server);
    let first = world.run(&["run", "first", "--output-format", "json"]).json();
    let id = first["thread_id"].as_str().expect("an id").to_owned();

    let second = world.run(&["run", "second", "--continue", "--output-format", "json"]).json();
    assert_eq!(second["thread_id"], first["thread_id"]);
    let sent = server.requests()[1].json().to_string();
    assert!(sent.contains("first") && sent.contains("one") && sent.contains("second"), "{sent}");

    let resume = ["run", "third", "--resume", &id[..13], "--fork", "--output-format", "json"];
    let third = world.run(&resume).json();
    assert_ne!(third["thread_id"], first["thread_id"]);
    let sent = server.requests()[2].json().to_string();
    assert!(sent.contains("second") && sent.contains("two"), "{sent}");

    let fourth = world.run(&["run", "fourth", "-r", &id, "--output-format", "json"]).json();
    assert_eq!(fourth["thread_id"], first["thread_id"]);
    assert!(!server.requests()[3].json().to_string().contains("third"), "the copy is another thread");
}

#[test]
fn there_must_be_a_thread_to_go_on_with() {
    let server = Server::start([]);
    let world = world(&server);
    for arguments in [&["run", "x", "--continue"][..], &["run", "x", "--resume", "0123"]] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, 42, "{ran:#?}");
        assert!(ran.stderr.contains("hanzo-dev threads list"), "{}", ran.stderr);
    }
    assert_eq!(world.run(&["run", "x", "--fork"]).code, 2);
}

#[test]
fn an_answer_is_made_to_fit_its_schema() {
    let world_of = |replies: Vec<Reply>| {
        let server = Server::start(replies);
        let world = world(&server);
        world.write(
            "project/schema.json",
            r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#,
        );
        (server, world)
    };
    let arguments = ["run", "count", "--json-schema", "schema.json"];
    let (_server, world) = world_of(vec![Reply::text("{\"n\": 3}")]);
    assert_eq!(world.run(&arguments).ok(), "{\"n\": 3}\n");
    let (server, world) = world_of(vec![Reply::text("three"), Reply::text("{\"n\": 3}")]);
    assert_eq!(world.run(&arguments).ok(), "{\"n\": 3}\n");
    assert!(last_message(&server).contains("not valid"), "the model is told what is wrong");
    let (_server, world) = world_of(["a", "b", "c"].map(Reply::text).to_vec());
    assert_eq!(world.run(&arguments).code, 58);
    world.write("project/schema.json", "{");
    assert_eq!(world.run(&arguments).code, 42);
}

#[test]
fn limits_end_a_run_with_their_own_codes() {
    let server = Server::with(|_| exec("true").with_usage(100_000, 1000));
    let world = world(&server);
    let turns = world.run(&["run", "go", "--max-turns", "2", "--output-format", "json"]);
    assert_eq!(turns.code, 53, "{turns:#?}");
    assert_eq!(lines(&turns)[0]["num_turns"], 2);
    let cost = world.run(&["run", "go", "--max-cost", "0.15", "--output-format", "json"]);
    assert_eq!(cost.code, 57, "{cost:#?}");

    let slow = Server::start([Reply::text("late").after(Duration::from_secs(30))]);
    let world = self::world(&slow);
    let began = Instant::now();
    let late = world.run(&["run", "go", "--timeout", "1", "--output-format", "json"]);
    assert_eq!(late.code, 124, "{late:#?}");
    assert_eq!(lines(&late)[0]["subtype"], "error_timeout");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_budget_needs_a_price() {
    let server = Server::start([]);
    let world = World::new();
    world.user(&settings(&server).replace("price", "#price"));
    let ran = world.run(&["run", "go", "--max-cost", "1"]);
    assert_eq!(ran.code, 42, "{ran:#?}");
    assert!(ran.stderr.contains("price"), "{}", ran.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_interrupts_and_the_last_line_is_a_result() {
    use rustix::process::{Pid, Signal, kill_process};
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let server = Server::start([exec("sleep 60"), Reply::text("never")]);
        let world = world(&server);
        let mut command = world.command(&["run", "go", "--output-format", "stream-json"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the program starts");
        server.wait_for_requests(1);
        // The command must run, or there would be nothing to interrupt.
        std::thread::sleep(Duration::from_millis(300));
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
        kill_process(pid, signal).expect("a signal");
        let began = Instant::now();
        let done = child.wait_with_output().expect("it ends");
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(done.status.code(), Some(code));
        let text = String::from_utf8(done.stdout).expect("UTF-8");
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        assert_eq!((&last["type"], &last["exit_code"]), (&json!("result"), &json!(code)), "{text}");
    }
}

#[test]
fn every_error_is_a_result_when_a_program_reads() {
    let result = |ran: &Ran| lines(ran).pop().expect("a result");
    let server = Server::start([Reply::status(401), Reply::status(400)]);
    let world = world(&server);
    let stream = ["run", "go", "--output-format", "stream-json"];
    let denied = world.run(&stream);
    assert_eq!(denied.code, 41, "{denied:#?}");
    assert_eq!(
        (result(&denied)["type"].clone(), result(&denied)["subtype"].clone()),
        (json!("result"), json!("error_auth"))
    );
    let refused = world.run(&stream);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert_eq!(result(&refused)["is_error"], true);
    world.user("model = [");
    let broken = world.run(&stream);
    assert_eq!(broken.code, 52, "{broken:#?}");
    assert_eq!(result(&broken)["subtype"], "error_config");
    let nothing = world.run(&["run", "--output-format", "json"]);
    assert_eq!(nothing.code, 42, "{nothing:#?}");
    assert_eq!(result(&nothing)["subtype"], "error_input");
}

#[test]
fn without_a_model_it_says_what_to_do() {
    let ran = World::new().run(&["run", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (41, ""));
    assert!(
        ran.stderr.contains("hanzo-dev setup") && ran.stderr.contains("hanzo-dev demo"),
        "{}",
        ran.stderr
    );
    let world = World::new();
    let ran = world.run(&["run", "hello", "-m", "anthropic"]);
    assert_eq!(ran.code, 41, "{ran:#?}");
    assert!(ran.stderr.contains("ANTHROPIC_API_KEY"), "{}", ran.stderr);
}

#[test]
fn a_model_of_an_untrusted_workspace_does_not_count() {
    let world = World::new();
    world.user("[[providers]]\nname = \"mine\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n");
    world.project(
        "[[providers]]\nname = \"theirs\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m2\"]\n",
    );
    let ran = world.run(&["run", "hello", "-m", "theirs"]);
    assert_eq!(ran.code, 55, "{ran:#?}");
    assert!(ran.stderr.contains("trust"), "{}", ran.stderr);
}

#[test]
fn without_a_place_for_the_jail_nothing_is_run() {
    let server = Server::start([Reply::text("no")]);
    let ran = world(&server).run_with_env(&["run", "hello"], &[("TMPDIR", "/no/such/place")]);
    assert_eq!(ran.code, 44, "{ran:#?}");
    assert!(server.requests().is_empty());
}

#[test]
fn nothing_is_kept_when_nothing_is_to_be_kept() {
    let server = Server::start([exec("echo hi"), Reply::text("done")]);
    let world = world(&server);
    world.run(&["run", "go", "--no-store"]).ok();
    let kept: Vec<_> = world.files().into_iter().filter(|file| !file.ends_with("settings.toml")).collect();
    assert_eq!(kept, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let server = Server::with(|_| exec("true"));
    let world = world(&server);
    let mut command = world.command(&["run", "go", "--output-format", "stream-json", "--max-turns", "50"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("it ends");
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_secret_is_never_printed_or_recorded() {
    const CANARY: &str = "sk-canary-0123456789abcdef";
    let server = Server::start([
        exec("env; echo $CANARY_KEY"),
        Reply::text(format!("the key is {CANARY}")),
        Reply::status(401),
    ]);
    let world = world(&server);
    world.user(&format!("{}api_key_env = \"CANARY_KEY\"\n", settings(&server)));
    let environment = [("CANARY_KEY", CANARY)];
    let run = |arguments: &[&str]| finish(world.command(arguments).envs(environment), "");
    let ran = run(&["run", "go", "--output-format", "stream-json", "--record", "tape.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    // The model said it; the tools, the settings and our own words did not.
    let tape = std::fs::read_to_string(world.workspace().join("tape.jsonl")).expect("a recording");
    assert!(!tape.contains(CANARY), "{tape}");
    let calls: Vec<Value> =
        lines(&ran).into_iter().filter(|line| line["item"]["type"] == "toolCall").collect();
    assert!(!calls.is_empty() && !format!("{calls:?}").contains(CANARY), "{calls:?}");
    let failed = run(&["run", "go"]);
    assert_eq!(failed.code, 41, "{failed:#?}");
    assert!(!format!("{failed:?}").contains(CANARY));
}

#[test]
fn a_recording_is_played_without_the_model() {
    let server = Server::start([exec("echo played >> log.txt"), Reply::text("Written.")]);
    let world = world(&server);
    world.run(&["run", "write the log", "--record", "tape.jsonl"]).ok();
    drop(server);
    let played = world.run(&["replay", "tape.jsonl"]);
    assert_eq!((played.code, played.stdout.as_str()), (0, "Written.\n"), "{played:#?}");
    let log = std::fs::read_to_string(world.workspace().join("log.txt")).expect("a log");
    assert_eq!(log, "played\nplayed\n", "the tools are real");
    world.write("project/broken.jsonl", "{\"cassette\": 9}\n");
    assert_eq!(world.run(&["replay", "broken.jsonl"]).code, 42);
    assert_eq!(world.run(&["replay", "missing.jsonl"]).code, 42);
}

#[test]
fn several_messages_are_several_turns() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let input = "{\"type\":\"user\",\"text\":\"first\"}\n{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"second\"}}\n";
    let arguments = ["run", "--input-format", "stream-json", "--output-format", "json"];
    let ran = world(&server).run_with_input(&arguments, input);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let result = &lines(&ran)[0];
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("two"), &json!(2)));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_hook_has_a_say() {
    let server = Server::start([exec("touch made.txt"), Reply::text("It was not to be.")]);
    let world = world(&server);
    let hook = "[[hooks]]\nevent = \"pre_tool_use\"\ntool_pattern = \"proc.*\"\ncommand = \"grep -q touch && { echo 'no touching' >&2; exit 2; }\"\n";
    world.user(&format!("{}\n{hook}", settings(&server)));
    let ran = world.run(&["run", "go"]);
    assert!(ran.stderr.contains("no touching"), "{ran:#?}");
    assert!(last_message(&server).contains("no touching"), "the model is told why");
    assert!(!world.workspace().join("made.txt").exists());
}

#[test]
fn without_a_sandbox_a_command_needs_consent_or_a_posture_that_gives_it() {
    let off = "\n[sandbox]\nmode = \"off\"\n";
    let server = Server::start([exec("touch made.txt"), Reply::text("no")]);
    let world = world(&server);
    world.user(&format!("{}{off}", settings(&server)));
    let ran = world.run(&["run", "go"]);
    assert_eq!(ran.code, 56, "{ran:#?}");
    assert!(!world.workspace().join("made.txt").exists());

    let server = Server::start([exec("touch made.txt; echo $CANARY_KEY; sleep 60 &"), Reply::text("yes")]);
    world.user(&format!("{}{off}", settings(&server)));
    let ran =
        finish(world.command(&["run", "go", "--posture", "yolo"]).env("CANARY_KEY", "sk-canary-outside"), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "yes\n"), "{ran:#?}");
    assert!(world.workspace().join("made.txt").exists());
    assert!(!last_message(&server).contains("sk-canary"), "even outside, keys stay where they are");
}
