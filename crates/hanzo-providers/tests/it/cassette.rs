//! Recording an answer and playing it back.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use hanzo_protocol::message::{ApiErrorKind, Message, StreamEvent};
use hanzo_protocol::roles::ApiClient;
use hanzo_providers::cassette::{
    Recorder, RecorderOptions, Replay, ReplayOptions, RequestCheck, Substitutions,
};
use hanzo_providers::{ProviderConfig, Registry};
use hanzo_testkit::scripted::{Api, Reply, Server};
use serde_json::json;

use crate::support::{answer, ask, client, request};

/// Somewhere to write that can be read while the recorder still has it.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Tape {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn recorder(server: &Server, options: RecorderOptions) -> (Recorder, Tape) {
    let tape = Tape::default();
    (Recorder::new(client(server, Api::Anthropic), tape.clone(), options).unwrap(), tape)
}

fn replay(text: &str, options: ReplayOptions) -> Replay {
    Replay::from_text("tape", text, options).unwrap()
}

#[tokio::test]
async fn what_was_recorded_is_played() {
    let server = Server::start([
        Reply::reasoning("hm").and_text("Looking.").and_tool_call("fs", json!({"path": "a"})),
        Reply::text("Done.").with_usage(7, 3),
    ]);
    let (recorder, tape) =
        recorder(&server, RecorderOptions { note: "a test".into(), ..RecorderOptions::default() });
    assert_eq!(recorder.name(), "test");
    let mut second = request();
    second.messages.push(Message::user("more"));
    let live = [answer(&ask(&recorder, &request()).await), answer(&ask(&recorder, &second).await)];
    assert!(recorder.take_failure().is_none());
    let first_line: serde_json::Value = serde_json::from_str(tape.text().lines().next().unwrap()).unwrap();
    assert_eq!(first_line, json!({"cassette": 1, "note": "a test"}));

    let player =
        replay(&tape.text(), ReplayOptions { check: RequestCheck::Strict, ..ReplayOptions::default() });
    assert_eq!(player.len(), 2);
    for (request, live) in [request(), second].iter().zip(live) {
        let mut played = answer(&ask(&player, request).await);
        // A signature is worth nothing to anyone but the vendor, and left out.
        for (one, other) in played.reasoning.iter_mut().zip(&live.reasoning) {
            one.signature.clone_from(&other.signature);
        }
        assert_eq!(played, live);
    }
    let over = answer(&ask(&player, &request()).await).error.unwrap();
    assert_eq!(over.kind, ApiErrorKind::BadRequest);
    assert!(
        over.message.contains("2 answers")
            && over.message.contains("request 3")
            && over.message.contains("hint: ")
    );
}

#[tokio::test]
async fn the_kind_replay_plays_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("demo.jsonl");
    let text = "# A cassette may be written by hand.\n\n{\"cassette\":1}\n{\"request\":0}\n\
        {\"event\":{\"type\":\"contentDelta\",\"text\":\"in {{workspace}}\"}}\n\
        {\"event\":{\"type\":\"toolUse\",\"id\":\"c\",\"name\":\"fs\",\"arguments\":\"{\\\"path\\\":\\\"{{workspace}}/a\\\"}\"}}\n\
        {\"event\":{\"type\":\"messageStop\",\"reason\":\"toolUse\",\"usage\":{}}}\n";
    std::fs::write(&file, text).unwrap();
    let config = ProviderConfig::new("demo", "replay")
        .with_extra("file", file.to_string_lossy().into_owned())
        .with_extra("substitute", json!({"workspace": "/tmp/a \"b\""}));
    let player = Registry::standard().build(config).unwrap();
    let played = answer(&ask(&*player, &request()).await);
    assert_eq!(played.text, "in /tmp/a \"b\"");
    let arguments: serde_json::Value = serde_json::from_str(&played.calls[0].arguments).unwrap();
    assert_eq!(arguments["path"], "/tmp/a \"b\"/a", "inside JSON it is escaped as JSON wants");
}

#[tokio::test]
async fn secrets_and_paths_do_not_reach_the_tape() {
    let secret = "hunter2-very-long";
    let reply =
        Reply::text(format!("The key is {secret}, in /home/me/project. Or sk-ant-api03-ABCDEFGH12345678."))
            .and_tool_call("fs", json!({"path": "/home/me/project/a", "token": secret}))
            .fragment(3);
    let server = Server::start([reply, Reply::status(400).with_body(format!("{{\"error\":\"{secret}\"}}"))]);
    let options = RecorderOptions {
        note: format!("with {secret}"),
        secrets: vec![secret.into(), String::new(), "x".into()],
        substitutions: Substitutions::none().with("workspace", "/home/me/project").with("home", "/home/me"),
    };
    let (recorder, tape) = recorder(&server, options);
    let mut request = request();
    request.messages.push(Message::user(format!("use {secret}")));
    let live = answer(&ask(&recorder, &request).await);
    assert!(live.text.contains(secret), "what is passed on is not touched");
    ask(&recorder, &request).await;
    let text = tape.text();
    assert!(!text.contains(secret) && !text.contains("/home/me") && !text.contains("sk-ant"), "{text}");
    let here = ReplayOptions {
        substitutions: Substitutions::none().with("workspace", "/elsewhere").with("home", "/"),
        ..ReplayOptions::default()
    };
    let played = answer(&ask(&replay(&text, here), &request).await);
    assert_eq!(played.text, "The key is ***, in /elsewhere. Or ***");
    let arguments: serde_json::Value = serde_json::from_str(&played.calls[0].arguments).unwrap();
    assert_eq!(arguments, json!({"path": "/elsewhere/a", "token": "***"}));
}

#[tokio::test]
async fn a_stream_that_was_dropped_is_kept_as_far_as_it_came() {
    let server = Server::start([Reply::text("on and on").hang_after(700), Reply::text("second")]);
    let (recorder, tape) = recorder(&server, RecorderOptions::default());
    let mut stream = recorder.send_message(&request());
    let first = stream.next().await;
    assert!(matches!(first, Some(StreamEvent::ContentDelta { .. })));
    drop(stream);
    ask(&recorder, &request()).await;
    let player = replay(&tape.text(), ReplayOptions::default());
    let cut = answer(&ask(&player, &request()).await);
    assert_eq!(cut.error.unwrap().kind, ApiErrorKind::Network);
    assert_eq!(answer(&ask(&player, &request()).await).text, "second");
}

#[tokio::test]
async fn overlapping_requests_are_played_in_the_order_they_were_made() {
    let slow = Reply::text("slow").after(Duration::from_millis(100));
    let server = Server::with(
        move |request| {
            if request.messages().len() > 1 { Reply::text("quick") } else { slow.clone() }
        },
    );
    let (recorder, tape) = recorder(&server, RecorderOptions::default());
    let mut other = request();
    other.messages.extend([Message::assistant("a"), Message::user("b")]);
    let (first, second) = (recorder.send_message(&request()), recorder.send_message(&other));
    let (first, second) = tokio::join!(first.collect::<Vec<_>>(), second.collect::<Vec<_>>());
    assert_eq!((answer(&first).text.as_str(), answer(&second).text.as_str()), ("slow", "quick"));
    let player = replay(&tape.text(), ReplayOptions::default());
    assert_eq!(answer(&ask(&player, &request()).await).text, "slow");
    assert_eq!(answer(&ask(&player, &other).await).text, "quick");
}

#[tokio::test]
async fn played_strictly_another_request_is_refused() {
    let server = Server::start([Reply::text("x")]);
    let (recorder, tape) = recorder(&server, RecorderOptions::default());
    ask(&recorder, &request()).await;
    let mut other = request();
    other.messages[1].content.push('!');
    let strict = || ReplayOptions { check: RequestCheck::Strict, ..ReplayOptions::default() };
    let refused = answer(&ask(&replay(&tape.text(), strict()), &other).await).error.unwrap();
    assert!(refused.message.contains("request 1 is not the one that was recorded"), "{}", refused.message);
    assert_eq!(answer(&ask(&replay(&tape.text(), strict()), &request()).await).text, "x");
    assert_eq!(answer(&ask(&replay(&tape.text(), ReplayOptions::default()), &other).await).text, "x");
}

#[tokio::test]
async fn pauses_are_kept_when_asked_for() {
    let text = "{\"cassette\":1}\n{\"request\":0}\n{\"event\":{\"type\":\"contentDelta\",\"text\":\"a\"},\"ms\":100}\n\
        {\"event\":{\"type\":\"messageStop\",\"reason\":\"endTurn\",\"usage\":{}},\"ms\":200}\n";
    for (speed, least) in [(1.0, 200), (2.0, 100), (0.0, 0)] {
        let player = replay(text, ReplayOptions { speed, ..ReplayOptions::default() });
        let started = Instant::now();
        ask(&player, &request()).await;
        let took = started.elapsed().as_millis();
        assert!(took >= least && took < least + 90, "{speed}: {took}");
    }
}

#[test]
fn a_file_that_is_no_cassette_is_refused_with_its_line() {
    for (text, expected) in [
        ("", "empty"),
        ("{\"request\":0}\n", "line 1: the header is missing"),
        ("{\"cassette\":2}\n", "line 1: version 2"),
        ("{\"cassette\":1}\nnonsense\n", "line 2"),
        (
            "{\"cassette\":1}\n{\"event\":{\"type\":\"contentDelta\",\"text\":\"a\"}}\n",
            "line 2: an event before any request",
        ),
        ("{\"cassette\":1}\n{\"request\":0}\n{\"event\":{\"type\":\"surprise\"}}\n", "line 3"),
    ] {
        let error = Replay::from_text("tape", text, ReplayOptions::default()).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let missing = ProviderConfig::new("p", "replay").with_extra("file", "/nowhere/x.jsonl");
    let error = Registry::standard().build(missing).err().unwrap().to_string();
    assert!(error.contains("/nowhere/x.jsonl") && error.contains("hint: "), "{error}");
    let error = Registry::standard().build(ProviderConfig::new("p", "replay")).err().unwrap().to_string();
    assert!(error.contains("file"), "{error}");
}
