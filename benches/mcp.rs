//! `tools/call` over standard input and output: a trivial read beside the reference file server on Node, calls per second when they are
//! sent without waiting, and the memory after many of them.
//!
//! `HANZO_NODE` and `HANZO_SERVER_FILESYSTEM` name Node and the package's `dist/index.js`; `cargo xtask bench mcp` sets them.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark's product is what it prints")]
#![expect(clippy::cast_precision_loss, reason = "rates are read to three digits")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use hanzo_benches::{Candidate, Measured, compare, print_table};
use serde_json::{Value, json};

struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Peer {
    fn start(command: &mut Command, capabilities: &Value) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut peer = Self { child, input, output, line: String::new() };
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
            "capabilities": capabilities, "clientInfo": {"name": "bench", "version": "0"}}});
        peer.write(format!("{hello}\n").as_bytes());
        peer.hear();
        peer.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        peer
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).unwrap();
    }

    fn hear(&mut self) -> &str {
        self.line.clear();
        assert!(self.output.read_line(&mut self.line).unwrap() > 0, "the server hung up");
        &self.line
    }

    fn call(&mut self, request: &str) -> u64 {
        self.write(request.as_bytes());
        self.hear().len() as u64
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() -> ExitCode {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("project");
    std::fs::create_dir_all(&workspace).unwrap();
    let workspace = workspace.canonicalize().unwrap();
    let file = workspace.join("a.txt");
    std::fs::write(&file, "hello\n").unwrap();
    let ours = |capabilities: &Value| {
        let mut command = Command::new(target().join("release/hanzo-mcp"));
        command.arg("serve").env_clear().env("HOME", home.path()).current_dir(&workspace);
        Peer::start(&mut command, capabilities)
    };
    let request = |id: u64| call(id, "fs", &json!({"action": "read", "path": "a.txt"}));
    let mut held = true;

    let mut server = ours(&json!({}));
    // Most editors and agents can ask their user.
    let mut asked = ours(&json!({"elicitation": {}}));
    asked.call(&request(1));
    assert!(server.call(&request(1)) > 0 && server.line.contains("hello"), "{}", server.line);
    let node = std::env::var_os("HANZO_NODE").zip(std::env::var_os("HANZO_SERVER_FILESYSTEM"));
    let mut peer =
        node.map(|(node, script)| Peer::start(Command::new(node).arg(script).arg(&workspace), &json!({})));
    let theirs = call(1, "read_text_file", &json!({ "path": file }));
    let mut candidates = vec![Candidate::new("`hanzo-mcp serve`", || server.call(&request(1)))];
    if let Some(peer) = &mut peer {
        assert!(peer.call(&theirs) > 0 && peer.line.contains("hello"), "{}", peer.line);
        candidates.push(Candidate::new("`server-filesystem` on Node", || peer.call(&theirs)));
    }
    // A client that reads one file after the other, and one that does so once in a while: there everything has gone cold in between.
    let seldom = compare(2000, &mut candidates);
    drop(candidates);
    let mut here = || server.call(&request(1));
    let mut with_consent = || asked.call(&request(1));
    let mut reads: Vec<Read<'_>> = vec![
        ("`hanzo-mcp serve`", &mut here),
        ("`hanzo-mcp serve`, a client that can be asked", &mut with_consent),
    ];
    let mut there = peer.as_mut().map(|peer| || peer.call(&theirs));
    if let Some(there) = &mut there {
        reads.push(("`server-filesystem` on Node", there));
    }
    let rows = in_blocks(&mut reads);
    drop(reads);
    print_table("A trivial read, there and back: one after the other", None, &rows);
    if let [us @ .., them] = rows.as_slice()
        && us.len() == 2
    {
        for us in us {
            let ratio = them.median.as_secs_f64() / us.median.as_secs_f64();
            held &=
                verdict(&format!("{}: {ratio:.1}× faster than on Node, limit 5×", us.label), ratio >= 5.0);
        }
    }
    print_table("A trivial read, there and back: single ones, the servers in turns", None, &seldom);

    let (count, took) = pipelined(server, &request);
    let rate = count as f64 / took.elapsed.as_secs_f64();
    held &= verdict(&format!("{rate:.0} calls/s without waiting, limit 10,000"), rate >= 10_000.0);
    let memory = took.resident as f64 / 1024.0;
    held &= verdict(&format!("{memory:.1} MB resident after {count} calls, limit 30"), memory < 30.0);
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A server's name, and one read of it.
type Read<'a> = (&'a str, &'a mut dyn FnMut() -> u64);

/// The median time of a read among many: 200 of one server, one after the other, then 200 of the next, twenty times over after once
/// unmeasured.
fn in_blocks(reads: &mut [Read<'_>]) -> Vec<Measured> {
    const BLOCKS: usize = 20;
    const READS: usize = 200;
    let mut samples = vec![Vec::with_capacity(BLOCKS * READS); reads.len()];
    for block in 0..=BLOCKS {
        for ((_, read), samples) in reads.iter_mut().zip(&mut samples) {
            for _ in 0..READS {
                let begun = Instant::now();
                std::hint::black_box(read());
                let elapsed = begun.elapsed();
                if block > 0 {
                    samples.push(elapsed);
                }
            }
        }
    }
    let measured = reads.iter().zip(samples).map(|((label, _), mut samples)| {
        samples.sort_unstable();
        Measured { label: (*label).to_owned(), median: samples[samples.len() / 2] }
    });
    measured.collect()
}

struct Took {
    elapsed: Duration,
    resident: u64,
}

/// Sends calls as fast as they are taken, reads answers as fast as they come.
fn pipelined(server: Peer, request: &dyn Fn(u64) -> String) -> (u64, Took) {
    const CALLS: u64 = 100_000;
    let text: String = (10..CALLS + 10).map(request).collect();
    let mut server = server;
    let mut input = std::mem::replace(&mut server.input, ours_nowhere());
    let begun = Instant::now();
    let writer = std::thread::spawn(move || {
        input.write_all(text.as_bytes()).unwrap();
        input
    });
    for _ in 0..CALLS {
        let answer = server.hear();
        assert!(answer.contains("hello"), "{answer}");
    }
    let elapsed = begun.elapsed();
    let resident = server.resident_kib();
    server.input = writer.join().unwrap();
    (CALLS, Took { elapsed, resident })
}

/// Something to hold the place of a pipe.
fn ours_nowhere() -> ChildStdin {
    Command::new("true").stdin(Stdio::piped()).spawn().unwrap().stdin.take().unwrap()
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

fn verdict(what: &str, held: bool) -> bool {
    println!("\n{what}: {}", if held { "held" } else { "MISSED" });
    held
}

fn target() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(own, PathBuf::from)
}
