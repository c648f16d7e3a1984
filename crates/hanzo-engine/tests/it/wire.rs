//! The engine over the real clients and a scripted model server: bytes, faults, truncation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use hanzo_protocol::item::{ToolCallStatus, TurnEnd};
use hanzo_protocol::roles::ApiClient;
use hanzo_providers::{ProviderConfig, Registry, RetryPolicy};
use hanzo_testkit::scale;
use hanzo_testkit::scripted::{Api, Call, Reply, Request, Server};
use serde_json::json;

use crate::harness::Setup;

pub fn client(server: &Server, kind: &str) -> Arc<dyn ApiClient> {
    let config = ProviderConfig {
        base_url: Some(server.base_url()),
        retry: RetryPolicy { max_retries: 3, base_ms: 1, max_ms: 5 },
        ..ProviderConfig::new("scripted", kind)
    };
    Registry::standard().build(config).unwrap()
}

fn look(number: u64) -> Reply {
    Reply::text("Looking").and_tool_call("look", json!({"n": number}))
}

/// A body without what closes it.
fn open_end(body: &[u8]) -> &[u8] {
    let end = body.iter().rposition(|byte| !matches!(byte, b']' | b'}' | b' ' | b'\n')).unwrap();
    &body[..=end]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_begins_with_the_bytes_of_the_one_before() {
    let server = Server::start([look(3), look(4), Reply::text("Done"), look(5), Reply::text("Done")]);
    let bench = Setup::new(client(&server, "openai")).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "One").await.1.unwrap();
    bench.turn(thread, "Two").await.1.unwrap();
    let bodies: Vec<Vec<u8>> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 5);
    for pair in bodies.windows(2) {
        let (before, after) = (open_end(&pair[0]), &pair[1]);
        assert!(
            after.starts_with(before),
            "{}\n{}",
            String::from_utf8_lossy(before),
            String::from_utf8_lossy(after)
        );
    }
    // Another thread in the same place begins with the very same bytes, up to what the user says.
    let server = Server::start([Reply::text("Done")]);
    let other = Setup {
        workspace: bench.setup.workspace.clone(),
        home: bench.setup.home.clone(),
        ..Setup::new(client(&server, "openai"))
    };
    let other = other.engine().await;
    let second = other.thread().await.id;
    other.turn(second, "One").await.1.unwrap();
    assert_eq!(server.requests()[0].body, bodies[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_vendors_get_a_valid_conversation_after_an_interruption() {
    for kind in ["openai", "anthropic"] {
        let hang =
            Reply::text("Both").and_tool_call("look", json!({"n": 3})).and_tool_call("hang", json!({}));
        let server = Server::start([hang, Reply::text("Done")]);
        let bench = Setup::new(client(&server, kind)).engine().await;
        let thread = bench.thread().await.id;
        let mut watch = bench.watch(thread).await;
        bench.say(thread, "Go").await;
        bench.until_logged("begin hang {}").await;
        bench.interrupt(thread).await;
        assert_eq!(watch.turn().await.1.unwrap().ended, TurnEnd::Interrupted);
        bench.turn(thread, "Go on").await.1.unwrap();
        let text = String::from_utf8(server.requests()[1].body.clone()).unwrap();
        assert_eq!(text.matches("interrupted: the turn was cancelled").count(), 1, "{kind}: {text}");
        assert!(text.contains("Go on"), "{kind}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupting_aborts_the_request_within_a_fifth_of_a_second() {
    let server = Server::start([Reply::text("Slowly does it").hang_after(200)]);
    let bench = Setup::new(client(&server, "openai")).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    server.wait_for_requests(1);
    let begun = Instant::now();
    bench.interrupt(thread).await;
    assert_eq!(watch.turn().await.1.unwrap().ended, TurnEnd::Interrupted);
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    server.wait_for_aborted(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_the_last_answer_is_under_way_is_answered_in_the_same_turn() {
    let server =
        Server::start([Reply::text("First").after(Duration::from_millis(300)), Reply::text("Second")]);
    let bench = Setup::new(client(&server, "openai")).engine().await;
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    server.wait_for_requests(1);
    bench.steer(thread, "Hear this").await;
    let summary = watch.turn().await.1.unwrap();
    assert_eq!((summary.ended, summary.steps), (TurnEnd::Completed, 2));
    let second = String::from_utf8(server.requests()[1].body.clone()).unwrap();
    assert!(second.find("First").unwrap() < second.find("Hear this").unwrap(), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_faults_is_survived_and_every_call_reached() {
    for (kind, api) in [("openai", Api::OpenAi), ("anthropic", Api::Anthropic)] {
        let whole = look(5).bytes(api);
        let server = Server::start([
            Reply::status(429).header("retry-after", "0"),
            look(3),
            Reply::status(500),
            look(4),
            look(5).truncate(whole.len() / 2),
            look(5),
            Reply::status(529),
            Reply::status(503),
            look(6),
            Reply::text("DONE"),
        ]);
        let bench = Setup::new(client(&server, kind)).engine().await;
        let thread = bench.thread().await.id;
        let summary = bench.turn(thread, "Go").await.1.unwrap();
        assert_eq!((summary.ended, summary.steps), (TurnEnd::Completed, 5), "{kind}");
        let calls = bench.calls(thread).await;
        assert_eq!(calls.len(), 4, "{kind}");
        assert!(calls.iter().all(|call| call.status == ToolCallStatus::Completed), "{kind}");
        assert_eq!(server.requests().len(), 10, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_at_any_byte_runs_nothing_of_it_and_the_turn_goes_on() {
    for (kind, api) in [("openai", Api::OpenAi), ("anthropic", Api::Anthropic)] {
        let reply = || Reply::text("Ok").and_tool_call("change", json!({"n": 3}));
        let length = reply().bytes(api).len();
        // Some of the bytes in an ordinary run, all of them in a soak.
        let points = scale::rounds(u32::try_from(length).unwrap()) as usize;
        let points = (0..points).map(|index| index * length / points);
        // Several at a time: most of it is waiting before asking again.
        stream::iter(points)
            .for_each_concurrent(8, |point| async move {
                let server = Server::start([reply().truncate(point), Reply::text("Again")]);
                let bench = Setup::new(client(&server, kind)).engine().await;
                let thread = bench.thread().await.id;
                let summary = bench.turn(thread, "Go").await.1;
                assert_eq!(summary.unwrap().ended, TurnEnd::Completed, "{kind} at {point} of {length}");
                assert!(bench.log().is_empty(), "{kind} at {point} of {length}: {:?}", bench.log());
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_cut_in_half_by_the_model_are_never_run() {
    let half = Call { id: None, name: "change".into(), arguments: r#"{"path": "/etc/pas"#.into() };
    let server = Server::start([Reply::empty().and_call(half), Reply::text("Sorry")]);
    let bench = Setup::new(client(&server, "openai")).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    assert!(bench.log().is_empty());
    let second = String::from_utf8(server.requests()[1].body.clone()).unwrap();
    assert!(second.contains("INVALID_ARGUMENTS"), "{second}");
}

/// The memory of this process, in kilobytes.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_long_turn_takes_no_more_memory_at_its_end_than_in_its_middle() {
    let answer = |request: &Request| {
        let size = request.body.len() as u64;
        // Not parsed: that would take most of the test's time.
        if !String::from_utf8_lossy(&request.body).contains(r#""tools":["#) {
            return Reply::text("They were looked at.").with_usage(size / 4, 10);
        }
        let text = format!("{size} {}", "q".repeat(2_000));
        Reply::tool_call("look", json!({"n": size, "text": text})).with_usage(size / 4, 10)
    };
    let steps = scale::rounds(2_000).max(200);
    let server = Server::with(answer);
    let bench = Setup { window: Some(64_000), ..Setup::new(client(&server, "openai")) }.engine().await;
    let options = hanzo_protocol::engine::ThreadOptions { max_steps: Some(steps / 2), ..Default::default() };
    let thread = bench.thread_with(options).await.id;
    assert_eq!(bench.turn(thread, "Go").await.1.unwrap().ended, TurnEnd::StepLimit);
    let middle = resident();
    let summary = bench.turn(thread, "Go on").await.1.unwrap();
    let end = resident();
    assert!(summary.prefix_breaks > 0, "it was folded");
    // The server keeps every request it has seen; that is the test's memory and not the engine's.
    let kept: usize = server.requests().iter().map(|request| request.body.len()).sum();
    let grown = end.saturating_sub(middle).saturating_sub(kept as u64 / 1024);
    assert!(grown < 16 * 1024, "{middle} kB, then {end} kB");
}
