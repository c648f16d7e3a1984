//! What the face asks of a terminal and is told by it: keys that come while a dialog opens, the alternate screen, the mouse,
//! the background, the clipboard.

use std::io::Write as _;
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::json;

use crate::face::{Tmux, world};
use crate::face_composer::programs;
use crate::pty::Pty;

const READY: &str = "what shall be done?";

fn shell(command: &str) -> Reply {
    Reply::tool_call("proc", json!({"action": "exec", "command": command}))
}

/// What a terminal shows that was told all of it.
fn screen(pty: &Pty, width: u16, height: u16) -> vt100::Parser {
    let cells = |n| NonZeroU16::new(n).unwrap();
    let mut terminal = vt100::Parser::new(cells(height), cells(width), 1_000);
    terminal.process(&pty.heard(0));
    terminal
}

#[test]
fn what_is_typed_while_a_dialog_opens_goes_into_the_turn_and_answers_nothing() {
    // Where the machine stops us for longer than the dialog waits, the key is a late one, and rightly an answer.
    for _ in 0..5 {
        let server = Server::start([shell("echo made > made.txt"), Reply::text("As you like.")]);
        let world = world(&server);
        let pty = Pty::start(&world, 80, 24, &[]);
        pty.wait_for(READY, 0);
        let from = pty.length();
        pty.send("make it\r");
        let (at, heard) = pty.wait_for("Allow this?", from);
        pty.send("yes, a p and y\r");
        if heard.elapsed() > Duration::from_millis(200) {
            continue;
        }
        let (at, _) = pty.wait_for("for this turn: yes, a p and y", at);
        // It takes keys again once nobody types.
        pty.wait_for("? explain", at);
        let shown = screen(&pty, 80, 24).screen().contents();
        assert!(shown.contains("Allow this?") && shown.contains("❯ y  Yes, this once"), "{shown}");
        assert!(!world.workspace().join("made.txt").exists(), "it was not allowed");
        assert_eq!(server.requests().len(), 1);
        pty.send("n");
        pty.wait_for("why not?", at);
        pty.send("not now\r");
        pty.wait_for("As you like.", at);
        let asked = server.requests()[1].json().to_string();
        assert!(asked.contains("not now") && asked.contains("yes, a p and y"), "{asked}");
        assert!(!world.workspace().join("made.txt").exists());
        return;
    }
    panic!("this machine is too busy for anybody to type on");
}

#[test]
fn the_alternate_screen_is_paged_through_and_leaves_the_transcript_behind() {
    let lines = (1..=60).map(|n| format!("line {n} of the answer.\n\n")).collect::<Vec<_>>().concat();
    let server = Server::start([Reply::text(lines).fragment(50)]);
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 80, 24, "--alternate-screen --mouse") else { return };
    let flag = |name: &str| tmux.run(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned();
    assert_eq!(flag("alternate_on"), "1");
    assert_eq!((flag("mouse_standard_flag").as_str(), flag("mouse_sgr_flag").as_str()), ("1", "1"));
    tmux.type_line("go");
    tmux.wait_for("line 60 of the answer.");
    tmux.wait_for_rest();
    // Ten turns of the wheel upwards, as a terminal reports them.
    for _ in 0..10 {
        tmux.run(&["send-keys", "-l", "\x1b[<64;5;5M"]);
    }
    tmux.wait_for("more rows below");
    tmux.wait_until("earlier lines", |screen| {
        !screen.contains("line 60 of") && screen.contains("line 45 of")
    });
    tmux.run(&["send-keys", "-l", "\x1b[<65;5;5M"]);
    tmux.wait_until("three rows further", |screen| screen.contains("27 more rows below"));
    tmux.key("C-Home");
    tmux.wait_for("line 1 of the answer.");
    tmux.key("C-End");
    tmux.wait_for("line 60 of the answer.");
    tmux.key("C-d");
    tmux.wait_for("ended");
    assert_eq!((flag("alternate_on").as_str(), flag("mouse_standard_flag").as_str()), ("0", "0"));
    let all = tmux.everything();
    for n in 1..=60 {
        assert_eq!(all.matches(&format!("line {n} of the answer.")).count(), 1, "line {n}\n{all}");
    }
    assert!(all.contains("› go") && !all.contains(READY), "{all}");
}

#[test]
fn an_entry_is_chosen_by_a_click_and_taken_by_a_second_one() {
    for arguments in ["--mouse", "--mouse --alternate-screen"] {
        let server = Server::start([shell("echo x > made.txt"), Reply::text("Then not.")]);
        let world = world(&server);
        let Some(tmux) = Tmux::start(&world, 80, 24, arguments) else { return };
        tmux.type_line("go");
        tmux.wait_for_dialog("Allow this?");
        let click = |words: &str| {
            let row = tmux.screen().lines().position(|line| line.contains(words)).unwrap() + 1;
            tmux.run(&["send-keys", "-l", &format!("\x1b[<0;9;{row}M\x1b[<0;9;{row}m")]);
        };
        // A click beside the answers is none.
        click("Allow this?");
        click("n  No, and say why");
        tmux.wait_for("❯ n  No, and say why");
        click("n  No, and say why");
        tmux.wait_for("why not?");
        tmux.type_line("no");
        tmux.wait_for_line("Then not.");
        assert!(!world.workspace().join("made.txt").exists(), "{arguments}");
        // The wheel moves in a list.
        tmux.wait_for_rest();
        tmux.type_line("/theme");
        tmux.wait_for("❯ ansi");
        tmux.run(&["send-keys", "-l", "\x1b[<65;5;5M"]);
        tmux.wait_for("❯ dark");
        tmux.key("Escape");
        // And a menu is pointed at.
        tmux.wait_for_rest();
        tmux.run(&["send-keys", "-l", "/the"]);
        tmux.wait_for("❯ /theme");
        click("❯ /theme");
        tmux.wait_for("❯ ansi");
    }
}

/// A terminal with this background, as it says when it is asked.
fn with_background(colour: &'static str, variables: &[(&str, &str)]) -> (Pty, Server) {
    let server = Server::start([]);
    let world = world(&server);
    let pty = Pty::with(&world, (80, 24), variables, &[], move |bytes, mut master| {
        if bytes.windows(6).any(|window| window == b"\x1b]11;?") {
            let _ = master.write_all(format!("\x1b]11;{colour}\x1b\\").as_bytes());
        }
        for _ in bytes.windows(4).filter(|window| *window == b"\x1b[6n") {
            let _ = master.write_all(b"\x1b[24;80R");
        }
    });
    pty.wait_for(READY, 0);
    pty.send("/theme\r");
    (pty, server)
}

#[test]
fn the_theme_is_the_one_for_the_background_the_terminal_tells() {
    // The sign of the composer is blue on a light background, where cyan is hard to read.
    for (colour, sign) in [("rgb:ffff/ffff/ffff", "\x1b[34m❯"), ("rgb:1e1e/1e1e/2e2e", "\x1b[36m❯")] {
        let (pty, _server) = with_background(colour, &[]);
        pty.wait_for(sign, 0);
    }
    let (pty, _server) = with_background("rgb:ffff/ffff/ffff", &[("NO_COLOR", "1")]);
    pty.wait_for("Which theme?", 0);
    let heard = String::from_utf8_lossy(&pty.heard(0)).into_owned();
    assert!(!heard.contains("\x1b]11;?"), "who wants no colours is not asked for the background");
    let is_colour = |code: &str| matches!(code.parse::<u8>(), Ok(30..=49 | 90..=107));
    for sequence in heard.split("\x1b[").skip(1) {
        let end = sequence.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
        let coloured = sequence[end..].starts_with('m') && sequence[..end].split(';').any(is_colour);
        assert!(!coloured, "a colour is written: {sequence:?}");
    }
}

#[test]
fn what_is_copied_is_said_with_the_way_it_went() {
    let answer = || Server::start([Reply::text("The answer.")]);
    let copy = |pty: &Pty| {
        pty.wait_for(READY, 0);
        let from = pty.length();
        pty.send("go\r");
        let (at, _) = pty.wait_for("The answer.", from);
        pty.wait_for(READY, at.saturating_sub(200));
        pty.send("/copy\r");
        at
    };
    // Over a connection, and where there is no desktop, the terminal is the one to do it.
    let server = answer();
    let place = world(&server);
    let pty = Pty::start_with(&place, (80, 24), &[("SSH_CONNECTION", "x"), ("DISPLAY", ":9")], &[]);
    let from = copy(&pty);
    pty.wait_for("\x1b]52;c;VGhlIGFuc3dlci4=\x07", from);
    pty.wait_for("Sent 11 characters to the terminal's clipboard (OSC 52)", from);
    // tmux takes it itself or passes it on, as it is configured.
    let server = answer();
    let place = world(&server);
    let pty = Pty::start_with(&place, (80, 24), &[("TMUX", "x")], &[]);
    let from = copy(&pty);
    let twice = "\x1b]52;c;VGhlIGFuc3dlci4=\x07\x1bPtmux;\x1b\x1b]52;c;VGhlIGFuc3dlci4=\x07\x1b\\";
    pty.wait_for(twice, from);
    // On a desktop its own program does it, and nothing is sent to the terminal.
    let server = answer();
    let place = world(&server);
    let path = programs(&place, &[("wl-copy", "cat > \"$HOME/copied\"")]);
    let path = path.trim_start_matches("PATH=").trim_matches('\'').to_owned();
    let variables = [("WAYLAND_DISPLAY", "wayland-0"), ("PATH", path.as_str())];
    let pty = Pty::start_with(&place, (80, 24), &variables, &[]);
    let from = copy(&pty);
    pty.wait_for("Copied 11 characters with wl-copy", from);
    assert_eq!(std::fs::read_to_string(place.home().join("copied")).unwrap(), "The answer.");
    assert!(!String::from_utf8_lossy(&pty.heard(from)).contains("\x1b]52"));
}

/// Nothing of ours is left on a terminal that is given back, however it is left.
#[test]
fn the_modes_of_the_terminal_are_given_back_when_the_program_is_told_to_end() {
    let server = Server::start([]);
    let world = world(&server);
    let pty = Pty::start(&world, 80, 24, &["--mouse", "--alternate-screen"]);
    pty.wait_for(READY, 0);
    assert!(screen(&pty, 80, 24).screen().alternate_screen());
    let id = rustix::process::Pid::from_raw(i32::try_from(pty.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    pty.wait_for("\x1b[?1049l", 0);
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let terminal = screen(&pty, 80, 24);
        let left = terminal.screen();
        let no_mouse = left.mouse_protocol_mode() == vt100::MouseProtocolMode::None;
        if no_mouse && !left.alternate_screen() && !left.bracketed_paste() && !left.hide_cursor() {
            return;
        }
        assert!(Instant::now() < end, "{:?}", String::from_utf8_lossy(&pty.heard(0)));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_shell_has_the_terminal_until_the_face_is_gone_on_with() {
    let server = Server::start([Reply::text("Here again.")]);
    let world = world(&server);
    let Some(tmux) = Tmux::shell(&world) else { return };
    tmux.type_line("\"$HANZO\"");
    tmux.wait_for(READY);
    tmux.run(&["send-keys", "-l", "half a draft"]);
    tmux.wait_for("› half a draft");
    tmux.key("C-z");
    tmux.wait_until("the shell", |screen| screen.trim_end().ends_with("shell>"));
    assert!(!tmux.screen().contains("› half a draft"), "the viewport is gone\n{}", tmux.screen());
    tmux.type_line("echo in $((40 + 2)) the shell");
    tmux.wait_for("in 42 the shell");
    tmux.type_line("fg");
    tmux.wait_for("› half a draft");
    tmux.key("Enter");
    tmux.wait_for("Here again.");
}
