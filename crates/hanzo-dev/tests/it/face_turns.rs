//! Consent, plans, rewinding and the queue in a real terminal.

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::json;

use crate::face::{Tmux, world};

fn shell(command: &str) -> Reply {
    Reply::tool_call("proc", json!({"action": "exec", "command": command}))
}

/// Waits for a request for consent that takes keys.
fn wait_for_consent(tmux: &Tmux) {
    tmux.wait_for_dialog("Allow this?");
}

#[cfg(target_os = "linux")]
#[test]
fn files_a_command_changed_are_taken_back_turn_by_turn() {
    let server = Server::start([
        shell("echo one > shell.txt"),
        Reply::text("The first is done."),
        shell("echo two > shell.txt; echo x > other.txt; mkdir -p kept && echo y > kept/big"),
        Reply::text("The second is done."),
        Reply::text("What was I to do?"),
    ]);
    let world = world(&server);
    world.write("project/.gitignore", "kept/\n");
    let here = world.workspace();
    let Some(tmux) = Tmux::start(&world, 110, 40, "") else { return };
    for (task, done) in [("first task", "The first is done."), ("second task", "The second is done.")] {
        tmux.wait_for_rest();
        tmux.type_line(task);
        wait_for_consent(&tmux);
        tmux.key("y");
        tmux.wait_for(done);
    }
    tmux.wait_for_rest();
    assert_eq!(std::fs::read_to_string(here.join("shell.txt")).unwrap(), "two\n");

    tmux.key("Escape");
    tmux.key("Escape");
    tmux.wait_for("❯ Never mind");
    tmux.wait_for("before: second task");
    tmux.key("Down");
    tmux.key("Enter");
    tmux.wait_for("Take back what?");
    let screen = tmux.screen();
    for words in [
        "❯ Never mind",
        "Would be again what they were: shell.txt",
        "Would be removed: other.txt",
        "What happened outside the workspace",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    // By default nothing happens.
    tmux.key("Enter");
    tmux.wait_for_rest();
    assert_eq!(std::fs::read_to_string(here.join("shell.txt")).unwrap(), "two\n");

    tmux.type_line("/rewind");
    tmux.wait_for("before: second task");
    for key in ["Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_for("Take back what?");
    for key in ["Down", "Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_for_line("the files were taken back");
    assert_eq!(std::fs::read_to_string(here.join("shell.txt")).unwrap(), "one\n");
    assert!(!here.join("other.txt").exists());
    assert!(here.join("kept/big").exists(), "what is ignored is not touched");

    // And further, the conversation with it.
    tmux.wait_for_rest();
    tmux.type_line("/rewind");
    tmux.wait_for("before: first task");
    for key in ["Down", "Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_for("Would be removed: shell.txt");
    tmux.wait_for("Cannot be brought back: kept/ (ignored)");
    for key in ["Down", "Down", "Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_for_line("the conversation was taken back");
    tmux.wait_until("the file is gone", |_| !here.join("shell.txt").exists());
    tmux.wait_for_rest();
    tmux.type_line("go on");
    tmux.wait_for("What was I to do?");
    let asked = server.requests().pop().unwrap().json().to_string();
    assert!(!asked.contains("first task") && !asked.contains("second task"), "{asked}");
}

#[test]
fn an_approved_plan_is_carried_out_without_asking_and_then_the_window_is_closed() {
    let server = Server::start([
        Reply::tool_call("fs", json!({"action": "write", "uri": "made.txt", "content": "x"})),
        Reply::text("1. Make made.txt"),
        shell("echo made > made.txt"),
        Reply::text("It is carried out."),
        shell("echo more > more.txt"),
        Reply::text("You said no."),
    ]);
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 100, 30, "") else { return };
    tmux.wait_for("── ask · ");
    // Nothing of the first screen, drawn before there was a thread, is left above.
    assert!(!tmux.everything().contains("opening…"), "{}", tmux.everything());
    tmux.key("BTab");
    tmux.wait_for("what no rule speaks of is allowed");
    tmux.key("BTab");
    tmux.wait_for("the agent looks and plans");
    tmux.wait_for("── plan · ");
    tmux.type_line("make a file");
    tmux.wait_for("Carry out this plan?");
    tmux.wait_for_dialog("❯ Keep planning");
    assert!(
        tmux.screen().contains("what no rule speaks of is allowed until this turn ends"),
        "{}",
        tmux.screen()
    );
    assert!(!world.workspace().join("made.txt").exists(), "plan mode changes nothing");
    tmux.key("Down");
    tmux.key("Down");
    tmux.wait_for("❯ Carry it out with posture auto");
    tmux.key("Enter");
    tmux.wait_for("It is carried out.");
    assert!(world.workspace().join("made.txt").exists());
    assert!(!tmux.everything().contains("Allow this?"), "the plan was the consent");
    tmux.wait_for_rest();
    tmux.wait_for("── ask · ");
    // What is not in the plan is asked about again.
    tmux.type_line("and more");
    wait_for_consent(&tmux);
    tmux.key("n");
    tmux.wait_for("why not?");
    tmux.type_line("because it is late");
    tmux.wait_for("You said no.");
    assert!(server.requests().pop().unwrap().json().to_string().contains("because it is late"));
    assert!(!world.workspace().join("more.txt").exists());
}

#[test]
fn consent_is_given_once_for_the_thread_or_for_ever_and_says_exactly_for_what() {
    let server = Server::start([
        shell("echo one"),
        Reply::text("Answer one."),
        shell("echo two"),
        shell("echo two"),
        Reply::text("Answer two."),
        shell("echo three"),
        Reply::text("Answer three."),
    ]);
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 100, 40, "") else { return };
    tmux.type_line("one");
    wait_for_consent(&tmux);
    let screen = tmux.screen();
    assert!(
        screen.contains("Yes, until this thread ends: Bash(echo one)")
            && screen.contains("Always, saved in your settings: Bash(echo one)"),
        "{screen}"
    );
    tmux.key("?");
    tmux.wait_for("covers every call its rule covers, and no other");
    tmux.key("y");
    tmux.wait_for("Answer one.");
    tmux.wait_for_rest();
    tmux.type_line("two");
    wait_for_consent(&tmux);
    tmux.key("a");
    tmux.wait_for("Answer two.");
    tmux.wait_for_rest();
    tmux.type_line("three");
    wait_for_consent(&tmux);
    tmux.key("p");
    tmux.wait_for("Answer three.");
    let saved = std::fs::read_to_string(world.home().join(".config/hanzo/settings.toml")).unwrap();
    assert!(saved.contains("Bash(echo three)") && !saved.contains("Bash(echo two)"), "{saved}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_waits_is_changed_and_what_steers_is_read_in_the_turn() {
    // The turn runs until the test lets it end.
    let server = Server::start([
        shell("while [ ! -e go ]; do sleep 0.1; done"),
        Reply::text("I went on."),
        Reply::text("The end of it."),
    ]);
    let world = world(&server);
    let settings = std::fs::read_to_string(world.home().join(".config/hanzo/settings.toml")).unwrap();
    world.user(&format!("approval = \"yolo\"\n{settings}"));
    let Some(tmux) = Tmux::start(&world, 100, 30, "") else { return };
    tmux.type_line("begin");
    tmux.wait_for("proc.exec while");
    for words in ["first in the queue", "second in the queue"] {
        tmux.run(&["send-keys", "-l", words]);
        tmux.wait_for(&format!("› {words}"));
        tmux.key("Tab");
        tmux.wait_for(&format!("after it: {words}"));
    }
    tmux.type_line("/queue");
    tmux.wait_for("❯ first in the queue");
    tmux.key("Enter");
    tmux.wait_for("What shall become of it?");
    for key in ["Down", "Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_until("it is dropped", |screen| {
        !screen.contains("after it: first") && screen.contains("after it: second")
    });
    tmux.type_line("and mind this");
    tmux.wait_for("for this turn: and mind this");
    world.write("project/go", "");
    tmux.wait_for_line("The end of it.");
    let all: Vec<String> = server.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(all[1].contains("and mind this") && !all[1].contains("second in the queue"), "{all:#?}");
    assert!(all[2].contains("second in the queue") && !all[2].contains("first in the queue"), "{all:#?}");
}

#[test]
fn leaving_in_the_middle_of_a_plan_takes_back_what_was_granted_for_it() {
    let server = Server::start([Reply::text("1. Wait"), shell("sleep 30")]);
    let world = world(&server);
    {
        let Some(tmux) = Tmux::start(&world, 100, 30, "") else { return };
        tmux.wait_for("── ask · ");
        tmux.key("BTab");
        tmux.key("BTab");
        tmux.wait_for("the agent looks and plans");
        tmux.type_line("plan it");
        tmux.wait_for_dialog("❯ Keep planning");
        tmux.key("Down");
        tmux.key("Down");
        tmux.wait_for("❯ Carry it out with posture auto");
        tmux.key("Enter");
        tmux.wait_for("○ proc.exec sleep 30");
        tmux.wait_for("── auto · ");
        tmux.key("C-d");
        tmux.wait_for("ended");
    }
    let Some(tmux) = Tmux::start(&world, 100, 30, "--continue") else { return };
    tmux.wait_for("── ask · ");
}

#[test]
fn the_change_is_in_the_dialog_and_what_a_command_prints_is_seen_while_it_runs() {
    let server = Server::start([
        Reply::tool_call("fs", json!({"action": "write", "uri": "made.txt", "content": "one quokka\ntwo\n"})),
        shell("echo printed early; while [ ! -e go ]; do sleep 0.1; done"),
        Reply::text("The end of it."),
    ]);
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 100, 30, "") else { return };
    tmux.type_line("begin");
    wait_for_consent(&tmux);
    let screen = tmux.screen();
    for words in ["fs.write made.txt  waits for your consent", "    + one quokka", "    + two"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    tmux.key("y");
    tmux.wait_for_dialog("Run `echo printed early");
    tmux.key("y");
    tmux.wait_for("│ printed early");
    assert!(!tmux.everything().contains("The end of it."));
    world.write("project/go", "");
    tmux.wait_for_line("The end of it.");
}
