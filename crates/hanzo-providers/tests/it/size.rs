//! Answers without measure: they are refused, and memory stays bounded.

use std::time::Duration;

use hanzo_protocol::message::{ApiErrorKind, StreamEvent};
use hanzo_testkit::scripted::{Api, Reply, Server};

use crate::support::{APIS, ask, build, config, request};

const MIB: usize = 1 << 20;

/// Runs this test alone in a process of its own, whose memory is then only its own: the server is in the parent.
fn in_child(name: &str, base_url: &str, api: Api) -> u64 {
    let program = std::env::current_exe().unwrap();
    let child = std::process::Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env("HANZO_SIZE_CHILD", base_url)
        .env("HANZO_SIZE_API", format!("{api:?}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{text}\n{}", String::from_utf8_lossy(&child.stderr));
    let peak = text.lines().find_map(|line| line.split_once("peak-kib ")).unwrap_or_else(|| panic!("{text}"));
    peak.1.trim().parse().unwrap()
}

/// An answer that says `text` in one delta, made without escaping 50 MB.
fn with_text(api: Api, text: &str) -> String {
    String::from_utf8(Reply::text("MARK").bytes(api)).unwrap().replace("MARK", text)
}

#[cfg(target_os = "linux")]
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The child: asks once, expects a refusal, tells its peak.
#[cfg(target_os = "linux")]
fn child(base_url: &str) {
    let api = if std::env::var("HANZO_SIZE_API").unwrap() == "OpenAi" { Api::OpenAi } else { Api::Anthropic };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let before = peak_kib();
    let kind = runtime.block_on(async {
        let server = Server::start([]);
        let mut config = config(&server, api).with_base_url(base_url);
        config.timeouts.idle = Duration::from_secs(30);
        let client = build(config);
        let mut stream = client.send_message(&request());
        let mut last = None;
        while let Some(event) = futures_util::StreamExt::next(&mut stream).await {
            last = Some(event);
        }
        match last {
            Some(StreamEvent::Error(error)) => error.kind,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(kind, ApiErrorKind::Malformed);
    // The test's own output is how the parent hears of it.
    println!("peak-kib {}", peak_kib() - before);
}

#[cfg(target_os = "linux")]
#[test]
fn an_enormous_delta_is_refused_in_bounded_memory() {
    if let Ok(base_url) = std::env::var("HANZO_SIZE_CHILD") {
        return child(&base_url);
    }
    for api in APIS {
        let server = Server::start([Reply::body(with_text(api, &"x".repeat(50 * MIB)))]);
        let peak = in_child("size::an_enormous_delta_is_refused_in_bounded_memory", &server.base_url(), api);
        assert!(peak < 40 * 1024, "{api:?}: {peak} KiB");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn enormous_arguments_are_refused_in_bounded_memory() {
    if let Ok(base_url) = std::env::var("HANZO_SIZE_CHILD") {
        return child(&base_url);
    }
    for api in APIS {
        let whole = String::from_utf8(Reply::raw_tool_call("fs", "MARK").bytes(api)).unwrap();
        let events: Vec<&str> = whole.split_inclusive("\n\n").collect();
        let at = events.iter().position(|event| event.contains("MARK")).unwrap();
        let mut body = events[..at].concat();
        for _ in 0..50 {
            body.push_str(&events[at].replace("MARK", &"y".repeat(MIB)));
        }
        let server = Server::start([Reply::body(body + &events[at + 1..].concat())]);
        let peak =
            in_child("size::enormous_arguments_are_refused_in_bounded_memory", &server.base_url(), api);
        assert!(peak < 72 * 1024, "{api:?}: {peak} KiB");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_ended() {
    let delta = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "z".repeat(MIB)
    );
    let server = Server::start([Reply::body(delta.repeat(20))]);
    let client = build(config(&server, Api::OpenAi));
    let events = ask(&*client, &request()).await;
    let Some(StreamEvent::Error(error)) = events.last() else { panic!("it went on to the end") };
    assert_eq!(error.kind, ApiErrorKind::Malformed);
    assert!(events.len() <= 18, "{}", events.len());
}

#[tokio::test]
async fn a_large_answer_of_ordinary_deltas_is_read() {
    for api in APIS {
        let server = Server::start([Reply::text("w".repeat(MIB)).fragment(64 * 1024)]);
        let events = ask(&*build(config(&server, api)), &request()).await;
        assert_eq!(crate::support::answer(&events).text.len(), MIB);
    }
}
