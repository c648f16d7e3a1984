//! The terminal face in a real terminal: tmux, driven by keys, against a scripted model.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hanzo_testkit::scripted::{Reply, Server};

use crate::support::World;

/// A tmux server of its own with the program in it.
pub struct Tmux {
    socket: String,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Tmux {
    /// Starts the program; `None`, and a line that says so, where there is no tmux.
    pub fn start(world: &World, width: u16, height: u16, arguments: &str) -> Option<Self> {
        Self::start_with(world, (width, height), "", arguments, "what shall be done?")
    }

    /// The same with more variables, as a shell writes them, and another text to wait for.
    pub fn start_with(
        world: &World,
        (width, height): (u16, u16),
        variables: &str,
        arguments: &str,
        first: &str,
    ) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            hanzo_testkit::not_run("tmux");
            return None;
        }
        // A server that was told to end may be there for a moment: each has a name of its own.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let tmux = Self { socket: format!("hanzo-test-{}-{count}", std::process::id()) };
        let program = env!("CARGO_BIN_EXE_hanzo-dev");
        let home = world.home().display();
        let path = std::env::var("PATH").unwrap_or_default();
        // The shell stays, so that what the program leaves on the terminal can be seen.
        let line = format!(
            "cd {}; env -i HOME={home} PATH='{path}' TERM=xterm-256color LANG=C.UTF-8 TMUX=x {variables} {program} {arguments}; echo ended; exec cat",
            world.workspace().display()
        );
        let (width, height) = (width.to_string(), height.to_string());
        // A server takes its first window's history limit from its options, so those are set before that window is made.
        tmux.run(&[
            "-f",
            "/dev/null",
            "start-server",
            ";",
            "set",
            "-g",
            "history-limit",
            "50000",
            ";",
            "set",
            "-g",
            "escape-time",
            "10",
            ";",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            "sh",
            "-c",
            &line,
        ]);
        tmux.wait_for(first);
        Some(tmux)
    }

    /// A shell a person types at, with jobs to be stopped and gone on with.
    pub fn shell(world: &World) -> Option<Self> {
        let program = env!("CARGO_BIN_EXE_hanzo-dev");
        let path = std::env::var("PATH").unwrap_or_default();
        let variables = format!("PS1='shell> ' HANZO={program} PATH='{path}'");
        let home = world.home().display();
        let line = format!(
            "cd {}; exec env -i HOME={home} TERM=xterm-256color LANG=C.UTF-8 {variables} sh -i",
            world.workspace().display()
        );
        if Command::new("tmux").arg("-V").output().is_err() {
            hanzo_testkit::not_run("tmux");
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let tmux = Self { socket: format!("hanzo-test-{}-{count}", std::process::id()) };
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", &line]);
        tmux.wait_for("shell>");
        Some(tmux)
    }

    pub fn run(&self, arguments: &[&str]) -> String {
        let done = Command::new("tmux").args(["-L", &self.socket]).args(arguments).output().unwrap();
        assert!(done.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub fn type_line(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.key("Enter");
    }

    pub fn key(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    pub fn resize(&self, width: u16, height: u16) {
        self.run(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// The scrollback and the screen, lines the terminal broke joined again.
    pub fn everything(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits for a line that may have scrolled away by the time it is looked for.
    pub fn wait_for_line(&self, text: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.everything().contains(text) {
            assert!(Instant::now() < end, "waited for {text}:\n{}", self.everything());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        let mut screen = String::new();
        while Instant::now() < end {
            screen = self.screen();
            if is_so(&screen) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("waited for {what}:\n{screen}");
    }

    /// Waits for a dialog that takes keys: one that opened by itself does so a moment after it can be seen.
    pub fn wait_for_dialog(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text) && !screen.contains("stop typing"));
    }

    /// Waits until the agent rests.
    pub fn wait_for_rest(&self) {
        self.wait_until("rest", |screen| screen.contains("what shall be done?"));
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

pub fn world(server: &Server) -> World {
    let world = World::new();
    world.user(&format!(
        "model = \"scripted/test-model\"\n\n[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"test-model\"]\n",
        server.base_url()
    ));
    world
}

#[test]
fn a_person_says_something_stops_it_and_leaves_and_the_terminal_is_as_before() {
    let server =
        Server::start([Reply::text("word ".repeat(400)).fragment(5).delay(Duration::from_millis(20))]);
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
    tmux.type_line("be slow");
    tmux.wait_for("word word");
    tmux.key("Escape");
    tmux.wait_for("Stopped.");
    server.wait_for_aborted(1);
    tmux.wait_for_rest();
    tmux.key("C-d");
    tmux.wait_for("ended");
    let screen = tmux.screen();
    assert!(screen.contains("To go on with this thread: hanzo-dev --resume"), "{screen}");
    assert!(!screen.contains("what shall be done?"), "the viewport is gone\n{screen}");
    // Raw mode is off: what is typed is echoed by the terminal.
    tmux.type_line("typed afterwards");
    tmux.wait_for("typed afterwards");
}

#[test]
fn a_thread_is_gone_on_with() {
    let server = Server::start([Reply::text("The first answer."), Reply::text("The second answer.")]);
    let world = world(&server);
    {
        let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
        tmux.type_line("remember the word quokka");
        tmux.wait_for("The first answer.");
        tmux.wait_for_rest();
        tmux.key("C-d");
        tmux.wait_for("ended");
    }
    let Some(tmux) = Tmux::start(&world, 80, 24, "--continue") else { return };
    tmux.wait_for("The first answer.");
    tmux.type_line("which word?");
    tmux.wait_for("The second answer.");
    let last = server.requests().pop().unwrap().json().to_string();
    assert!(last.contains("quokka") && last.contains("which word?"), "{last}");
    // What was typed before is in the history.
    tmux.wait_for_rest();
    tmux.key("Up");
    tmux.wait_for("› which word?");
}

#[test]
fn files_are_completed_and_the_shell_is_asked_without_a_second_question() {
    let server = Server::start([Reply::text("I see it.")]);
    let world = world(&server);
    world.write("project/src/deep/quokka.rs", "fn quokka() {}\n").write("project/notes.md", "x");
    let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
    tmux.run(&["send-keys", "-l", "@quok"]);
    tmux.wait_for("❯ src/deep/quokka.rs");
    tmux.key("Tab");
    tmux.wait_for("› @src/deep/quokka.rs");
    tmux.key("C-c");
    tmux.wait_for_rest();
    tmux.type_line("!echo out-of-the-shell");
    tmux.wait_for("│ out-of-the-shell");
    assert!(!tmux.everything().contains("Allow this?"));
    tmux.wait_for_rest();
    tmux.type_line("what did it print?");
    tmux.wait_for("I see it.");
    let last = server.requests().pop().unwrap().json().to_string();
    assert!(last.contains("out-of-the-shell"), "{last}");
}

#[test]
fn typing_is_answered_at_once_while_very_many_lines_arrive_and_after() {
    let count = hanzo_testkit::scale::rounds(100_000);
    let lines = (1..=count).map(|n| format!("line {n} of very many.\n\n")).collect::<Vec<_>>().concat();
    let server = Server::start([Reply::text(lines).fragment(4_000)]);
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
    tmux.type_line("flood");
    tmux.wait_for_line("line 1 of very many.");
    let echo = |text: &str| {
        let began = Instant::now();
        tmux.run(&["send-keys", "-l", text]);
        tmux.wait_for(&format!("› {text}"));
        let took = began.elapsed();
        tmux.key("C-u");
        took
    };
    // Far more than a person would bear, and far less than writing all of it takes: the machine may be busy.
    let limit = Duration::from_secs(2);
    let during = echo("during the flood");
    assert!(during < limit, "{during:?}");
    tmux.wait_for_rest();
    tmux.wait_for(&format!("line {count} of very many."));
    let after = echo("after the flood");
    assert!(after < limit, "{after:?}");
}
