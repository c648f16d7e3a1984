//! The composer in a real terminal: editors, images, pastes, the history, the keys, and what survives a crash.

use hanzo_testkit::scripted::{Reply, Server};

use crate::face::{Tmux, world};
use crate::support::World;

pub fn programs(world: &World, scripts: &[(&str, &str)]) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    for (name, script) in scripts {
        world.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        let file = world.home().join("bin").join(name);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("PATH='{}/bin:{}'", world.home().display(), std::env::var("PATH").unwrap())
}

#[test]
fn an_editor_an_image_and_a_large_paste_are_sent_as_one_message() {
    let server = Server::start([Reply::text("I see all of it.")]);
    let world = world(&server);
    let path = programs(
        &world,
        &[
            ("my-editor", "printf ' and more' >> \"$1\""),
            ("xclip", "case \"$*\" in *image/png*) printf '\\211PNG\\r\\n\\032\\nrest';; esac"),
        ],
    );
    let variables = format!("{path} EDITOR=vi VISUAL=my-editor DISPLAY=:9");
    let Some(tmux) = Tmux::start_with(&world, (100, 30), &variables, "", "what shall be done?") else {
        return;
    };
    tmux.run(&["send-keys", "-l", "draft"]);
    tmux.key("C-g");
    tmux.wait_for("› draft and more");
    tmux.key("C-x");
    tmux.key("C-e");
    tmux.wait_for("› draft and more and more");
    // The terminal is ours again: keys are read one by one, and the real cursor is where the next letter goes.
    tmux.run(&["send-keys", "-l", "!"]);
    tmux.wait_for("› draft and more and more!");
    let cursor = tmux.run(&["display-message", "-p", "#{cursor_x}"]);
    assert_eq!(cursor.trim(), (2 + "draft and more and more!".len()).to_string());
    tmux.key("C-v");
    tmux.wait_for("[Image #1: clipboard.png]");
    let pasted = (1..=40).map(|n| format!("pasted line {n}\n")).collect::<Vec<_>>().concat();
    tmux.run(&["set-buffer", &pasted]);
    tmux.run(&["paste-buffer", "-p"]);
    tmux.wait_for("[Pasted #2: 40 lines]");
    tmux.key("Enter");
    tmux.wait_for("I see all of it.");
    let asked = server.requests()[0].json().to_string();
    assert!(asked.contains("pasted line 40") && asked.contains("image"), "{asked}");
    // The history has it, and finds it by a word.
    tmux.wait_for_rest();
    tmux.key("C-r");
    tmux.wait_for("Earlier prompts");
    tmux.run(&["send-keys", "-l", "and more"]);
    tmux.wait_for("1/1");
    tmux.key("Enter");
    tmux.wait_until("the prompt is there again", |screen| screen.matches("pasted line 40").count() == 2);
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_written_survives_a_kill_and_is_offered_again() {
    let server = Server::start([Reply::text("There you are.")]);
    let world = world(&server);
    {
        let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
        tmux.run(&["send-keys", "-l", "half a sentence about quokkas"]);
        let drafts = world.home().join(".local/share/hanzo/drafts");
        tmux.wait_until("the draft is kept", |_| {
            let kept = std::fs::read_dir(&drafts).into_iter().flatten().flatten();
            kept.into_iter().any(|file| {
                std::fs::read_to_string(file.path()).is_ok_and(|text| text.ends_with("about quokkas"))
            })
        });
        let shell = tmux.run(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let child = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        tmux.wait_for("ended");
    }
    let size = (80, 24);
    let Some(tmux) = Tmux::start_with(&world, size, "", "", "› half a sentence about quokkas") else {
        return;
    };
    tmux.wait_for("What you wrote last time");
    tmux.key("Enter");
    tmux.wait_for("There you are.");
    tmux.wait_for_rest();
    // Sent is sent.
    tmux.key("C-d");
    tmux.wait_for("ended");
    drop(tmux);
    let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
    assert!(!tmux.everything().contains("quokkas"), "{}", tmux.everything());
}

#[test]
fn keys_are_the_user_s_and_a_mistake_in_the_file_is_told() {
    let server = Server::start([Reply::text("A quokka.")]);
    let world = world(&server);
    world.write(".config/hanzo/keybindings.json", r#"{"<C-x><C-f>": "find", "<C-t>": "editor"}"#);
    let path = programs(&world, &[("my-editor", "printf 'written elsewhere' > \"$1\"")]);
    let variables = format!("{path} EDITOR=my-editor");
    {
        let started = Tmux::start_with(&world, (100, 30), &variables, "", "what shall be done?");
        let Some(tmux) = started else { return };
        tmux.type_line("what is it?");
        tmux.wait_for("A quokka.");
        tmux.wait_for_rest();
        tmux.key("C-x");
        tmux.key("C-f");
        tmux.wait_for("Find in this thread");
        tmux.key("Escape");
        tmux.wait_for_rest();
        tmux.key("C-t");
        tmux.wait_for("› written elsewhere");
    }
    world.write(".config/hanzo/keybindings.json", r#"{"<C-t>": "edit"}"#);
    let Some(tmux) = Tmux::start_with(&world, (160, 30), "", "", "keybindings.json is not used") else {
        return;
    };
    tmux.wait_for("there is no action `edit` for `<C-t>`");
    tmux.wait_for("the actions are interrupt, cancel");
}
