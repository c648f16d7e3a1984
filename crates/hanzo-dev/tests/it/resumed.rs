//! Threads that are gone on with by another run of the program: what was, is again, and what changed is said.

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::support::{Ran, World};

/// A world whose settings point at `server`, with two models.
fn world(server: &Server) -> World {
    let world = World::new();
    world.user(&format!(
        "model = \"scripted/one\"\n\n[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"one\", \"two\"]\n",
        server.base_url()
    ));
    world
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Why the prompt's prefix broke, by the items of a stream.
fn breaks(lines: &[Value]) -> Vec<&str> {
    let broken = |line: &&Value| line["type"] == "item.completed" && line["item"]["type"] == "prefixBreak";
    lines.iter().filter(broken).filter_map(|line| line["item"]["reason"].as_str()).collect()
}

#[test]
fn a_retry_is_told_while_it_is_waited_for() {
    let faults =
        || [Reply::status(429).header("retry-after", "0"), Reply::status(529), Reply::text("At last")];
    let server = Server::start(faults());
    let ran = world(&server).run(&["run", "well?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "At last\n"), "{ran:#?}");
    let told: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("warning: rate limited, retrying in "), "{told:?}");
    assert!(told[0].ends_with(" s (attempt 2 of 6)"), "{told:?}");
    assert!(told[1].starts_with("warning: the model is overloaded, retrying in "), "{told:?}");
    assert!(told[1].ends_with(" s (attempt 3 of 6)"), "{told:?}");

    let server = Server::start(faults());
    let ran = world(&server).run(&["run", "well?", "--output-format", "stream-json"]);
    let notices: Vec<Value> = lines(&ran).into_iter().filter(|line| line["type"] == "notice").collect();
    assert_eq!(notices.len(), 2, "{ran:#?}");
    assert_eq!(notices[0]["level"], "warning");
    assert!(
        notices[0]["text"].as_str().expect("text").starts_with("rate limited, retrying in"),
        "{notices:?}"
    );
}

#[test]
fn a_changed_prefix_is_recorded_and_counted() {
    let server = Server::start((0..4).map(|_| Reply::text("Yes").with_usage(100, 5).with_cached(300, 0)));
    let world = world(&server);
    world.write("project/AGENTS.md", "Be kind.\n");
    let again = |arguments: &[&str]| {
        let mut all = vec!["run", "go on", "--output-format", "stream-json"];
        all.extend(arguments);
        let ran = world.run(&all);
        assert_eq!(ran.code, 0, "{ran:#?}");
        lines(&ran)
    };
    let first = again(&[]);
    let unchanged = again(&["--continue"]);
    for lines in [&first, &unchanged] {
        assert_eq!(breaks(lines), [""; 0]);
        assert_eq!(lines.last().expect("a line")["prefix_breaks"], 0);
    }
    world.write("project/AGENTS.md", "Be brief.\n");
    let changed = again(&["--continue"]);
    assert_eq!(breaks(&changed), ["instructionsChanged"]);
    let switched = again(&["--continue", "-m", "two"]);
    assert_eq!(breaks(&switched), ["modelSwitch"]);
    for lines in [&changed, &switched] {
        let result = lines.last().expect("a line");
        assert_eq!(result["prefix_breaks"], 1, "{result}");
        assert_eq!(result["usage"]["cache_read_input_tokens"], 300, "{result}");
    }
    let threads: Vec<&Value> =
        [&first, &unchanged, &changed, &switched].map(|lines| &lines[0]["thread_id"]).to_vec();
    assert!(threads.iter().all(|thread| *thread == threads[0]));
}

#[test]
fn a_mode_that_was_activated_holds_in_the_next_run_and_not_in_another_thread() {
    let write = || Reply::tool_call("fs", json!({"action": "write", "uri": "made.txt", "content": "x"}));
    let activate = |name: &str| Reply::tool_call("mode", json!({"action": "activate", "name": name}));
    let server = Server::start([
        activate("reviewer"),
        activate("mine"),
        Reply::text("Reviewing"),
        write(),
        Reply::text("I may not"),
        write(),
        Reply::text("Still not"),
        write(),
        Reply::text("Made"),
    ]);
    let world = world(&server);
    // The user's own modes are found where the settings are.
    world.write(".config/hanzo/modes/mine.toml", "about = 'mine'\ntools = ['fs']\n");
    world.run(&["run", "review"]).ok();
    let made = world.workspace().join("made.txt");
    let answer = |server: &Server| {
        let requests = server.requests();
        let body = requests.last().expect("a request").json();
        body["messages"].as_array().expect("messages").last().expect("a message")["content"].to_string()
    };
    world.run(&["run", "now write", "--continue"]);
    assert!(!made.exists(), "the mode holds");
    assert!(answer(&server).contains("the mode `reviewer`"), "{}", answer(&server));
    // A mode whose file is gone takes away all that it may have taken away.
    std::fs::remove_file(world.home().join(".config/hanzo/modes/mine.toml")).expect("it was there");
    world.run(&["run", "write again", "--continue"]);
    assert!(!made.exists(), "it still holds");
    world.run(&["run", "write"]).ok();
    assert!(made.exists(), "another thread has no mode");
}
