//! `threads`, `audit`, `tool`, `demo` and `setup` as a user runs them.

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::support::World;

fn world(server: &Server) -> World {
    let world = World::new();
    world.user(&format!(
        "[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"test-model\"]\n",
        server.base_url()
    ));
    world
}

fn exec(command: &str) -> Reply {
    Reply::tool_call("proc", json!({"action": "exec", "command": command}))
}

#[test]
fn a_thread_is_listed_shown_exported_imported_and_deleted() {
    let server = Server::start([exec("echo from-the-tool"), Reply::text("The wombat is done.")]);
    let world = world(&server);
    world.run(&["run", "find the wombat"]).ok();

    let list = world.run(&["threads", "list", "--json"]).json();
    let id = list[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert!(world.run(&["threads", "list"]).ok().starts_with(&id));
    assert!(world.run(&["threads", "list", "--search", "wombat"]).ok().contains(&id));
    assert_eq!(world.run(&["threads", "list", "--search", "platypus"]).ok(), "");

    let shown = world.run(&["threads", "show", &id[..13]]).ok();
    for words in ["find the wombat", "proc.exec", "The wombat is done."] {
        assert!(shown.contains(words), "{words} is missing in\n{shown}");
    }
    let items = world.run(&["threads", "show", &id, "--json"]).json();
    assert!(items.as_array().is_some_and(|items| items.len() >= 3), "{items}");

    world.run(&["threads", "export", &id, "-o", "thread.jsonl"]).ok();
    let exported = world.run(&["threads", "export", &id]).ok();
    assert_eq!(std::fs::read_to_string(world.workspace().join("thread.jsonl")).expect("a file"), exported);
    world.run(&["threads", "delete", &id]).ok();
    assert_eq!(world.run(&["threads", "list"]).ok(), "");
    assert_eq!(world.run(&["threads", "show", &id]).code, 42);

    let imported = world.run(&["threads", "import", "thread.jsonl"]).ok();
    assert_eq!(imported.trim(), id);
    assert_eq!(world.run(&["threads", "export", &id]).ok(), exported, "nothing is lost on the way");
    world.write("project/broken.jsonl", "{}\n");
    assert_eq!(world.run(&["threads", "import", "broken.jsonl"]).code, 42);
}

#[test]
fn the_audit_says_what_was_decided_and_why() {
    let server =
        Server::start([exec("echo fine"), exec("touch refused.txt"), Reply::text("Done what I could.")]);
    let world = world(&server);
    world.run(&["run", "go", "--deny", "Bash(touch:*)"]);
    let records = |arguments: &[&str]| -> Vec<Value> {
        let text = world.run(&[&["audit", "--json"], arguments].concat()).ok();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let all = records(&[]);
    assert_eq!(all.len(), 2, "{all:#?}");
    let denied = records(&["--decision", "deny"]);
    assert_eq!(denied.len(), 1, "{all:#?}");
    assert!(denied[0]["reason"].is_string(), "a denial has a reason: {denied:#?}");
    assert_eq!(records(&["--tool", "fs"]).len(), 0);
    assert_eq!(records(&["--tool", "proc"]).len(), 2);
    assert_eq!(records(&["--since", "1h"]).len(), 2);
    assert_eq!(records(&["--since", "2100-01-01"]).len(), 0);
    let shown = world.run(&["audit"]).ok();
    assert!(shown.contains("proc.exec") && shown.contains("echo fine"), "{shown}");
    assert_eq!(world.run(&["audit", "--since", "yesterday"]).code, 42);
}

#[test]
fn a_tool_is_called_through_the_gate() {
    let world = World::new();
    world.write("project/notes.txt", "first line\n");
    let listed = world.run(&["tool"]).ok();
    assert!(listed.lines().any(|line| line.starts_with("fs ")), "{listed}");
    let help = world.run(&["tool", "fs"]).ok();
    assert!(help.contains("apply_patch"), "{help}");

    let read = world.run(&["tool", "fs", "read", "--json", r#"{"uri": "notes.txt"}"#]).json();
    assert_eq!(read["ok"], true, "{read}");
    assert!(read.to_string().contains("first line"), "{read}");
    assert_eq!(read["meta"]["action"], "read");

    // Another vocabulary's name, and an action among the arguments, are calls like any other.
    for call in
        [["read_file", r#"{"path": "notes.txt"}"#], ["fs", r#"{"action": "read", "path": "notes.txt"}"#]]
    {
        let same = world.run(&["tool", call[0], "--json", call[1]]).json();
        assert_eq!((&same["data"], &same["meta"]["action"]), (&read["data"], &read["meta"]["action"]));
    }
    let plan = world.run(&["tool", "plan"]).ok();
    assert!(plan.contains("Keep a plan") && plan.contains("\"properties\""), "{plan}");

    let missing = world.run(&["tool", "fs", "read", "--json", r#"{"uri": "missing.txt"}"#]);
    assert_eq!(missing.code, 1, "{missing:#?}");
    let envelope: Value = serde_json::from_str(&missing.stdout).expect("an envelope");
    assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("NOT_FOUND")));

    let outside = r#"{"uri": "/var/x.txt", "content": "x"}"#;
    let refused = world.run(&["tool", "fs", "write", "--json", outside]);
    assert_eq!(refused.code, 56, "{refused:#?}");
    // The thread of such a call is forgotten, what was decided is not.
    let audit = world.run(&["audit"]).ok();
    assert!(audit.contains("fs.read") && audit.contains("fs.write"), "{audit}");

    let ran = world.run(&["tool", "proc", "exec", "--json", r#"{"command": "echo $((6 * 7))"}"#]).json();
    assert!(ran.to_string().contains("42"), "{ran}");
    assert_eq!(world.run(&["tool", "fs", "read", "--json", "["]).code, 42);
    assert_eq!(world.run(&["tool", "nope", "x"]).code, 1);
}

#[test]
fn the_demo_changes_the_file_and_the_check_passes() {
    let world = World::new();
    let ran = world.run(&["demo", "--keep", "demo"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains("recording"), "it says what it is");
    let directory = world.workspace().join("demo");
    let script = std::fs::read_to_string(directory.join("slug.sh")).expect("the script");
    assert!(script.contains("s/ /-/g"), "{script}");
    let check =
        std::process::Command::new("sh").arg("check.sh").current_dir(&directory).output().expect("sh runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    for words in ["FAILED  Notes On The New Release", "ok      Notes On The New Release", "+printf"] {
        assert!(ran.stderr.contains(words), "{words} is missing in\n{}", ran.stderr);
    }
    assert!(!ran.stdout.trim().is_empty(), "the answer is on stdout");
    // It keeps nothing else.
    assert!(!world.home().join(".local").exists());
    assert_eq!(world.run(&["demo", "--keep", "demo"]).code, 42, "a directory that is in use is left alone");
}

#[test]
fn setup_finds_keys_and_servers_and_can_be_run_again() {
    let server = Server::start([]);
    let world = World::new();
    let url = server.base_url();
    let arguments = ["setup", "--probe", url.as_str()];
    let environment = [("DEEPSEEK_API_KEY", "sk-canary-setup")];
    let ran = world.run_with_env(&arguments, &environment);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains("DEEPSEEK_API_KEY") && ran.stderr.contains(&url), "{}", ran.stderr);
    let path = world.home().join(".config/hanzo/settings.toml");
    let written = std::fs::read_to_string(&path).expect("settings");
    assert!(!written.contains("sk-canary") && !ran.stderr.contains("sk-canary"));
    assert!(written.contains("api_key_env = \"DEEPSEEK_API_KEY\""), "{written}");
    let shown = world.run(&["config", "show", "--json"]).json();
    let names: Vec<&str> = shown["settings"]["providers"]
        .as_array()
        .expect("providers")
        .iter()
        .filter_map(|provider| provider["name"].as_str())
        .collect();
    assert_eq!(names[0], "deepseek");
    assert_eq!(names.len(), 2, "{names:?}");

    let again = world.run_with_env(&arguments, &environment);
    assert_eq!(again.code, 0, "{again:#?}");
    assert_eq!(std::fs::read_to_string(&path).expect("settings"), written, "nothing is written twice");
    let more = world.run_with_env(&arguments, &[("OPENAI_API_KEY", "sk-canary-setup")]);
    assert_eq!(more.code, 0, "{more:#?}");
    let changed = std::fs::read_to_string(&path).expect("settings");
    assert!(changed.contains("api_key_env = \"OPENAI_API_KEY\""), "{changed}");
    assert!(written.lines().all(|line| changed.contains(line)), "nothing is lost: {changed}");
}

#[test]
fn setup_without_any_model_says_what_to_do() {
    let ran = World::new().run(&["setup"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for words in ["ANTHROPIC_API_KEY", "Ollama", "hanzo-dev demo"] {
        assert!(ran.stderr.contains(words), "{words} is missing in {}", ran.stderr);
    }
}
