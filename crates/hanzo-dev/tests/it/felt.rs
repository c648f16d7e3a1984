//! What can be felt: how soon the first screen is there, how soon a key is echoed, what is written while words stream in, what
//! is used at rest. Measured on a terminal without an emulator, so that only the program is. The limits of a debug build on a
//! busy machine are generous; a release build is held to the real ones (`cargo xtask soak`).

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::json;

use crate::face::world;
use crate::pty::Pty;
use crate::support::World;

/// The limit: `strict` for a release build in a soak, which has the machine to itself, `generous` otherwise.
fn limit(strict: u64, generous: u64) -> Duration {
    let is_strict = cfg!(not(debug_assertions)) && hanzo_testkit::scale::is_soak();
    Duration::from_millis(if is_strict { strict } else { generous })
}

/// Puts a number, and the limit for it, where a reader of the test run finds it; `cargo xtask bench face` makes a table of them.
#[expect(clippy::print_stderr, reason = "a measurement nobody can read is none")]
fn report(what: &str, limit: &str, value: &str) {
    eprintln!("measured: | {what} | {limit} | {value} |");
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

const READY: &str = "what shall be done?";

/// The median time from a key to its echo.
fn echo(pty: &Pty) -> Duration {
    let mut took: Vec<Duration> = ('a'..='u')
        .map(|key| {
            let from = pty.length();
            let began = Instant::now();
            pty.send(&key.to_string());
            let (_, heard) = pty.wait_for(&key.to_string(), from);
            // The next key must not be taken for a part of this frame.
            std::thread::sleep(Duration::from_millis(30));
            heard - began
        })
        .collect();
    pty.send("\x15");
    took.sort();
    took[took.len() / 2]
}

#[test]
fn a_key_is_echoed_at_once_however_long_the_transcript_is() {
    let count = 100_000;
    let lines = (1..=count).map(|n| format!("line {n} of very many.\n\n")).collect::<Vec<_>>().concat();
    let server = Server::start([Reply::text(lines).fragment(4_000)]);
    let world = world(&server);
    let pty = Pty::start(&world, 80, 24, &[]);
    pty.wait_for(READY, 0);
    let short = echo(&pty);
    let from = pty.length();
    pty.send("flood\r");
    pty.wait_for("line 100 of", from);
    let during = echo(&pty);
    let (end, _) = pty.wait_for(&format!("line {count} of very many."), from);
    pty.wait_for(READY, end.saturating_sub(200));
    std::thread::sleep(Duration::from_millis(200));
    let after = echo(&pty);
    report("key echo, empty transcript", "16 ms", &millis(short));
    report("key echo while 100,000 lines stream in", "50 ms", &millis(during));
    report("key echo at 100,000 lines", "16 ms", &millis(after));
    assert!(after < limit(16, 500), "after: {after:?}");
    assert!(during < limit(50, 2_000), "during: {during:?}");
}

#[test]
fn the_first_screen_does_not_wait_for_servers() {
    let server = Server::start([]);
    let world = world(&server);
    let mut settings = std::fs::read_to_string(world.home().join(".config/hanzo/settings.toml")).unwrap();
    for n in 0..20 {
        // Each would take far longer to answer than anybody waits.
        let _ = write!(settings, "\n[mcp_servers.slow{n}]\ncommand = \"sleep\"\nargs = [\"30\"]\n");
    }
    world.user(&settings);
    // The first start makes directories; the second is the usual one.
    drop(first_frame(&world));
    let mut took: Vec<Duration> = (0..5).map(|_| first_frame(&world).1).collect();
    took.sort();
    report("first frame with 20 MCP servers configured, median of 5", "80 ms", &millis(took[2]));
    assert!(took[2] < limit(80, 5_000), "{took:?}");
}

fn first_frame(world: &World) -> (Pty, Duration) {
    let began = Instant::now();
    let pty = Pty::start(world, 80, 24, &[]);
    // The composer's sign, with or without a thread behind it.
    let (_, at) = pty.wait_for("›", 0);
    (pty, at - began)
}

#[test]
fn while_words_stream_in_little_is_written_and_nothing_is_cleared() {
    let words = (0..1_500).map(|n| format!("word{n} ")).collect::<Vec<_>>();
    let tokens = words.len();
    let text = words.chunks(12).map(<[String]>::concat).collect::<Vec<_>>().join("\n\n");
    let server = Server::start([Reply::text(text).fragment(9).delay(Duration::from_millis(1))]);
    let world = world(&server);
    let pty = Pty::start(&world, 80, 24, &[]);
    pty.wait_for(READY, 0);
    let from = pty.length();
    pty.send("go\r");
    let (end, _) = pty.wait_for("word1499", from);
    pty.wait_for(READY, end.saturating_sub(200));
    let heard = pty.heard(from);
    let has = |sequence: &[u8]| heard.windows(sequence.len()).any(|window| window == sequence);
    for (sequence, name) in
        [(&b"\x1b[2J"[..], "2J"), (b"\x1b[3J", "3J"), (b"\x1bc", "RIS"), (b"\x1b[?1049h", "1049h")]
    {
        assert!(!has(sequence), "{name} was written");
    }
    let each = heard.len() / tokens;
    report("bytes written per streamed token", "200", &each.to_string());
    report("`CSI 2J`, `CSI 3J`, RIS while streaming", "0", "0");
    assert!(each < 200, "{each} bytes for each of {tokens} tokens");
}

#[test]
fn at_rest_nothing_runs_and_memory_is_bounded() {
    // Two thousand items: half of them calls with results, half of them words.
    let rounds = if hanzo_testkit::scale::is_soak() { 1_000 } else { 50 };
    let mut left = rounds;
    let server = Server::forgetful(move |_| {
        left -= 1;
        if left == 0 {
            return Reply::text("All is done.");
        }
        Reply::text(format!("Step {left}: I look at the notes again, to be sure of what they say."))
            .and_tool_call("fs", json!({"action": "read", "uri": format!("notes/{left}.md")}))
    });
    let world = world(&server);
    for n in 1..rounds {
        world.write(&format!("project/notes/{n}.md"), format!("A line of notes {n}.\n").repeat(40));
    }
    let pty = Pty::start(&world, 80, 24, &[]);
    pty.wait_for(READY, 0);
    let from = pty.length();
    pty.send("go\r");
    let (end, _) = pty.wait_for("All is done.", from);
    pty.wait_for(READY, end.saturating_sub(200));
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks(pty.id());
    let length = pty.length();
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks(pty.id()) - before;
    assert_eq!(pty.length(), length, "nothing is written at rest");
    let resident = resident(pty.id());
    report("processor time at rest, in 2 s", "10 ms", &format!("{} ms", 10 * used));
    let items = format!("resident after {} items", 2 * rounds);
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    report(&items, "40 MB", &format!("{:.1} MB", resident as f64 / 1024.0));
    assert!(used <= 1, "{used} ticks of CPU in two seconds at rest");
    let most = if cfg!(debug_assertions) { 80_000 } else { 40_960 };
    assert!(resident < most, "{resident} kB resident");
}

/// The hundredths of a second of CPU a process has used.
fn ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// The memory a process has, in kilobytes.
fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
