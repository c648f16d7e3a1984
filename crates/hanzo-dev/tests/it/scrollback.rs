//! The promise about the scrollback, on terminals nobody here wrote: every line of the transcript is there, once, after
//! streaming, after resizing while it streams, and after a dialog.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::{Value, json};

use crate::face::{Tmux, world};
use crate::pty::Pty;
use crate::support::World;

/// A terminal a person could sit at.
pub trait Terminal {
    fn send(&self, text: &str);
    fn enter(&self);
    fn resize(&self, width: u16, height: u16);
    fn screen(&self) -> String;
    /// The scrollback and the screen, lines the terminal broke joined again.
    fn everything(&self) -> String;

    fn type_line(&self, text: &str) {
        self.send(text);
        self.enter();
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_mins(1);
        while !is_so(self) {
            assert!(Instant::now() < end, "waited for {what}:\n{}", self.everything());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for a line that may have scrolled away by the time it is looked for.
    fn wait_for_line(&self, text: &str) {
        self.wait_until(text, |terminal| terminal.everything().contains(text));
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(text, |terminal| terminal.screen().contains(text));
    }

    fn wait_for_rest(&self) {
        self.wait_for("what shall be done?");
    }
}

impl Terminal for Tmux {
    fn send(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    fn enter(&self) {
        self.key("Enter");
    }

    fn resize(&self, width: u16, height: u16) {
        Tmux::resize(self, width, height);
    }

    fn screen(&self) -> String {
        Tmux::screen(self)
    }

    fn everything(&self) -> String {
        Tmux::everything(self)
    }
}

/// xterm.js in a process of its own, with the program on a terminal whose other end it is.
struct Xterm {
    pty: Pty,
    node: Child,
    commands: Arc<Mutex<ChildStdin>>,
    shown: Receiver<Value>,
}

impl Xterm {
    /// Starts both; `None`, and a line that says so, where there is no xterm.js.
    fn start(world: &World, width: u16, height: u16) -> Option<Self> {
        let Some(packages) = std::env::var_os("HANZO_XTERM").map(PathBuf::from) else {
            hanzo_testkit::not_run("xterm.js (`cargo xtask interop` gets it)");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/xterm/terminal.mjs");
        let mut node = Command::new("node")
            .arg(script)
            .arg(packages)
            .args([width.to_string(), height.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = Arc::new(Mutex::new(node.stdin.take().unwrap()));
        let output = BufReader::new(node.stdout.take().unwrap());
        let (answers, answered) = channel::<String>();
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let said: Value = serde_json::from_str(&line).unwrap();
                match said["answer"].as_str() {
                    Some(answer) => {
                        let _ = answers.send(answer.to_owned());
                    }
                    None => {
                        let _ = sender.send(said);
                    }
                }
            }
        });
        let writes = Arc::clone(&commands);
        let mut answered = Some(answered);
        let pty = Pty::with(world, (width, height), &[], &[], move |bytes, master| {
            if let Some(answered) = answered.take() {
                // The answers have a thread of their own: they come when they come.
                let master = master.try_clone().unwrap();
                std::thread::spawn(move || {
                    for answer in answered {
                        let _ = (&master).write_all(answer.as_bytes());
                    }
                });
            }
            tell(&writes, &json!({"write": bytes}));
        });
        let xterm = Self { pty, node, commands, shown };
        xterm.wait_for_rest();
        Some(xterm)
    }

    fn show(&self, what: &str) -> String {
        tell(&self.commands, &json!({"show": 1}));
        let shown = self.shown.recv_timeout(Duration::from_secs(30)).unwrap();
        let lines: Vec<&str> = shown[what].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        lines.join("\n")
    }
}

fn tell(commands: &Mutex<ChildStdin>, command: &Value) {
    let line = format!("{command}\n");
    let _ = commands.lock().unwrap().write_all(line.as_bytes());
}

impl Drop for Xterm {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

impl Terminal for Xterm {
    fn send(&self, text: &str) {
        self.pty.send(text);
    }

    fn enter(&self) {
        self.pty.send("\r");
    }

    fn resize(&self, width: u16, height: u16) {
        tell(&self.commands, &json!({"resize": [width, height]}));
        self.pty.resize(width, height);
    }

    fn screen(&self) -> String {
        self.show("screen")
    }

    fn everything(&self) -> String {
        self.show("lines")
    }
}

fn numbered(tag: &str, count: usize) -> String {
    let line = |n| {
        format!(
            "{tag} line {n} has words and goes on until it is longer than a narrow screen is wide «{tag}{n}»\n\n"
        )
    };
    (1..=count).map(line).collect::<Vec<_>>().concat()
}

/// Each line's beginning and end, once.
fn assert_once(all: &str, tag: &str, count: usize) {
    for n in 1..=count {
        for wanted in [format!("{tag} line {n} has words"), format!("«{tag}{n}»")] {
            assert_eq!(all.matches(&wanted).count(), 1, "{wanted}\n{all}");
        }
    }
}

/// What the model says in the play.
fn script() -> Server {
    let slowly = |tag, count| Reply::text(numbered(tag, count)).fragment(9).delay(Duration::from_millis(4));
    Server::start([
        Reply::text(numbered("first", 40)).fragment(9),
        slowly("second", 60),
        slowly("third", 60),
        Reply::tool_call("proc", json!({"action": "exec", "command": "echo from the command"})),
        Reply::text(numbered("fourth", 20)).fragment(20),
    ])
}

fn play(terminal: &impl Terminal) {
    terminal.type_line("one");
    terminal.wait_for_line("«first40»");
    terminal.wait_for_rest();
    assert_once(&terminal.everything(), "first", 40);

    // At rest, narrower, wider, and back.
    for (width, height) in [(50, 20), (100, 30), (34, 16), (80, 24)] {
        terminal.resize(width, height);
        terminal.wait_until("the new width", |terminal| {
            let screen = terminal.screen();
            let rule = screen.lines().filter(|line| line.starts_with("── ") && line.ends_with('─'));
            rule.map(|line| line.chars().count()).eq([usize::from(width)])
                && screen.contains("what shall be done?")
        });
    }
    assert_once(&terminal.everything(), "first", 40);

    // While lines stream in, both ways, with some time between.
    terminal.type_line("two");
    for (line, (width, height)) in
        [(3, (60, 24)), (12, (100, 28)), (24, (44, 18)), (36, (90, 24)), (48, (70, 20))]
    {
        terminal.wait_for_line(&format!("second line {line} "));
        terminal.resize(width, height);
    }
    terminal.wait_for_line("«second60»");
    terminal.wait_for_rest();
    assert_once(&terminal.everything(), "second", 60);

    // The same as when a window is dragged: one size after the other, with hardly a pause.
    terminal.type_line("three");
    terminal.wait_for_line("third line 5 ");
    for width in (46..70).rev().chain(46..96).step_by(3) {
        terminal.resize(width, 24);
        std::thread::sleep(Duration::from_millis(15));
    }
    terminal.wait_for_line("«third60»");
    terminal.wait_for_rest();

    // With a dialog open in between.
    terminal.type_line("four");
    terminal.wait_for("Allow this?");
    terminal.wait_until("the pause after typing", |terminal| !terminal.screen().contains("stop typing"));
    terminal.resize(70, 22);
    terminal.send("y");
    terminal.wait_for_line("«fourth20»");
    terminal.wait_for_rest();
    let all = terminal.everything();
    for (tag, count) in [("first", 40), ("second", 60), ("third", 60), ("fourth", 20)] {
        assert_once(&all, tag, count);
    }
    for (words, count) in
        [("› one", 1), ("› two", 1), ("› three", 1), ("› four", 1), ("Allow this?", 0), ("Working…", 0)]
    {
        assert_eq!(all.matches(words).count(), count, "{words}\n{all}");
    }
    assert_eq!(all.matches("what shall be done?").count(), 1, "no old viewport is left\n{all}");
}

#[test]
fn every_line_of_the_transcript_is_in_the_scrollback_once_on_tmux() {
    let server = script();
    let world = world(&server);
    let Some(tmux) = Tmux::start(&world, 80, 24, "") else { return };
    play(&tmux);
}

#[test]
fn every_line_of_the_transcript_is_in_the_scrollback_once_on_xterm_js() {
    let server = script();
    let world = world(&server);
    let Some(xterm) = Xterm::start(&world, 80, 24) else { return };
    play(&xterm);
}
