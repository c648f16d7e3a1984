//! Compaction by the whole engine over the scripted server: when it happens, what is asked, what becomes of the thread.

use hanzo_protocol::engine::ThreadOptions;
use hanzo_protocol::event::{Event, EventContent};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{BreakReason, Item, ItemContent, NoticeLevel, Visibility};
use hanzo_testkit::scripted::{Api, Reply, Request, Server};
use serde_json::{Value, json};

use crate::harness::{Bench, Setup, ask, resume};
use crate::wire::client;

const WINDOW: u64 = 64_000;
const SUMMARY: &str = "They looked at eight files and found the fault in the third.";

/// Eight calls with 24,000 bytes each, their results included, for which the vendor counts a token to four bytes; then a last
/// word for which it reports `tokens`.
fn work(tokens: u64) -> Vec<Reply> {
    let look = |number: u64| {
        let text = format!("{number} {}", "w".repeat(12_000));
        Reply::text(format!("Looking at file {number}"))
            .and_tool_call("look", json!({"n": number + 3, "text": text}))
            .with_usage(1_000 + 6_000 * number, 10)
    };
    let mut replies: Vec<Reply> = (0..8).map(look).collect();
    replies.push(Reply::text("Looked").with_usage(tokens, 10));
    replies
}

async fn bench(server: &Server) -> (Bench, ThreadId) {
    let setup = Setup { window: Some(WINDOW), ..Setup::new(client(server, "openai")) };
    std::fs::write(setup.workspace.join("AGENTS.md"), "Never touch the generated files.").unwrap();
    let bench = setup.engine().await;
    let thread = bench.thread_with(ThreadOptions::default()).await.id;
    (bench, thread)
}

fn is_digest(request: &Request) -> bool {
    request.json().get("tools").is_none()
}

fn digests(server: &Server) -> Vec<Request> {
    server.requests().into_iter().filter(is_digest).collect()
}

fn warnings(events: &[Event]) -> Vec<String> {
    let warning = |event: &Event| match &event.content {
        EventContent::Notice { level: NoticeLevel::Warning, text } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

/// The one compaction of a thread.
fn compaction(items: &[Item]) -> (String, u64, u64) {
    let found: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.content {
            ItemContent::Compaction { digest, folded, tokens_saved, .. } => {
                Some((digest.clone(), *folded, *tokens_saved))
            }
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), 1, "it is folded once");
    found[0].clone()
}

/// What holds of every fold, by whichever line it was led to: `before` is the last request before it, `after` the first after.
async fn is_sound(bench: &Bench, thread: ThreadId, before: &Request, after: &Request) {
    let (before, after) = (before.json(), after.json());
    assert!(after.to_string().len() < before.to_string().len(), "it is smaller");
    for same in ["model", "tools"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    let messages = |body: &Value| body["messages"].as_array().unwrap().clone();
    assert_eq!(messages(&after)[0], messages(&before)[0], "the instructions are the same");
    assert!(messages(&after)[0].to_string().contains("Never touch the generated files."));
    let said = |body: &Value, text: &str| messages(body).iter().filter(|it| it["content"] == text).count();
    assert_eq!(said(&after, "Look at the files"), 1, "what the user said stays word by word");
    // A result without the call it answers is refused by every vendor.
    let mut open = Vec::new();
    for message in messages(&after) {
        for call in message["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            open.push(call["id"].clone());
        }
        if message["role"] == "tool" {
            assert!(open.contains(&message["tool_call_id"]), "{message}");
        }
    }

    let items = bench.items(thread).await;
    let (_, folded, saved) = compaction(&items);
    assert!(saved > 0, "after is less than before");
    let gone: Vec<&Item> = items.iter().filter(|item| item.visibility == Visibility::Folded).collect();
    assert_eq!(gone.len() as u64, folded);
    let calls = items.iter().filter(|item| matches!(item.content, ItemContent::ToolCall(_))).count();
    assert_eq!(calls, 8, "every original is still there");
    let broken = ItemContent::PrefixBreak { reason: BreakReason::Compaction };
    assert_eq!(items.iter().filter(|item| item.content == broken).count(), 1);

    let archive = bench.setup.home.path().join("config/archive");
    let files: Vec<_> = std::fs::read_dir(archive).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].extension().unwrap(), "jsonl");
    let archived: Vec<Value> = std::fs::read_to_string(&files[0])
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // One message a line, and each result as it was.
    let results: Vec<&str> = archived
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    let outputs: Vec<&str> = gone
        .iter()
        .filter_map(|item| match &item.content {
            ItemContent::ToolCall(call) => call.result.as_ref().map(|result| result.output.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        results == outputs && !results.is_empty(),
        "{} archived, {} folded",
        results.len(),
        outputs.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_tokens_at_the_line_fold_before_the_next_turn_and_not_twice_in_a_row() {
    let line = WINDOW * 8 / 10;
    let mut replies = work(line - 1);
    replies.push(Reply::text("Under the line").with_usage(line, 10));
    replies.push(Reply::text(SUMMARY).with_usage(500, 20));
    // The vendor goes on to report more than the line: what little came since is no reason to fold again.
    replies
        .extend([Reply::text("Folded").with_usage(line + 99, 10), Reply::text("Again").with_usage(line, 10)]);
    let server = Server::start(replies);
    let (bench, thread) = bench(&server).await;
    bench.turn(thread, "Look at the files").await.1.unwrap();
    let summary = bench.turn(thread, "One token is missing").await.1.unwrap();
    assert_eq!(
        (digests(&server).len(), summary.prefix_breaks),
        (0, 0),
        "just under the line nothing happens"
    );

    let (events, summary) = bench.turn(thread, "Now it is time").await;
    let summary = summary.unwrap();
    assert_eq!(warnings(&events), [""; 0], "all went well");
    let requests = server.requests();
    let asked = digests(&server);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].json()["model"], requests[0].json()["model"], "the executor's own model is asked");
    let question = asked[0].json()["messages"].to_string();
    assert!(question.contains("Looking at file 0") && !question.contains("Now it is time"), "{question}");
    assert_eq!(summary.prefix_breaks, 1);
    assert_eq!(summary.usage.output_tokens, 30, "what the digest took is counted");
    is_sound(&bench, thread, &requests[9], &requests[11]).await;
    let (digest, _, _) = compaction(&bench.items(thread).await);
    assert!(digest.contains(SUMMARY), "{digest}");
    let after = requests[11].json()["messages"].to_string();
    assert!(after.contains(SUMMARY) && after.contains("Now it is time"), "{after}");

    let summary = bench.turn(thread, "And once more").await.1.unwrap();
    assert_eq!((digests(&server).len(), summary.prefix_breaks), (1, 0), "not twice in a row");
    compaction(&bench.items(thread).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incoming_message_that_crosses_the_force_line_folds_before_its_own_request() {
    let reported = WINDOW * 7 / 10;
    let replies = || {
        let mut replies = work(reported);
        replies.extend([Reply::text(SUMMARY), Reply::text("Done").with_usage(9_000, 10)]);
        replies
    };
    // Between what was reported and the line is a fifth of the window. A message of a few hundred tokens is less than that, one
    // of nearly twenty thousand is more.
    for (bytes, folds) in [(WINDOW / 50, 0), (WINDOW * 12 / 10, 1)] {
        let server = Server::start(replies());
        let (bench, thread) = bench(&server).await;
        bench.turn(thread, "Look at the files").await.1.unwrap();
        let news = "news ".repeat(usize::try_from(bytes).unwrap() / 5);
        let summary = bench.turn(thread, &news).await.1.unwrap();
        assert_eq!(digests(&server).len(), folds, "{bytes} bytes more");
        assert_eq!(summary.prefix_breaks as usize, folds);
        if folds == 1 {
            let requests = server.requests();
            assert!(
                requests.last().unwrap().json()["messages"].to_string().contains(news.trim()),
                "it is told whole"
            );
            // Beside the message that came, there is less than before.
            let last = requests.last().unwrap();
            assert!(last.body.len() - news.len() < requests[8].body.len());
            let items = bench.items(thread).await;
            assert!(compaction(&items).2 > 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_that_fails_is_replaced_by_the_same_truncation_each_time() {
    let refused = || Reply::status(400);
    // All of the words, and then not the end.
    let cut = || Reply::text(SUMMARY).truncate(Reply::text(SUMMARY).bytes(Api::OpenAi).len() - 20);
    let mut written = Vec::new();
    for failing in [refused as fn() -> Reply, cut, || Reply::text("  ")] {
        let mut replies = work(WINDOW * 8 / 10);
        replies.extend([failing(), Reply::text("On it goes")]);
        let server = Server::start(replies);
        let (bench, thread) = bench(&server).await;
        bench.turn(thread, "Look at the files").await.1.unwrap();
        let (events, summary) = bench.turn(thread, "Go on").await;
        assert_eq!(summary.unwrap().prefix_breaks, 1);
        assert!(
            warnings(&events).iter().any(|text| text.contains("shortened without the model")),
            "{events:?}"
        );
        let requests = server.requests();
        is_sound(&bench, thread, &requests[8], requests.last().unwrap()).await;
        let (digest, _, _) = compaction(&bench.items(thread).await);
        assert!(!digest.contains(SUMMARY) && digest.contains("look"), "{digest}");
        written.push(digest);
    }
    assert!(written.iter().all(|digest| *digest == written[0]), "{written:#?}");
}

/// Runs until the server has had `requests` of them, and is gone then as a killed process is: nothing gets to put anything in order.
fn crashes_at(server: &Server, requests: usize) -> (ThreadId, Setup) {
    let setup = Setup { window: Some(WINDOW), ..Setup::new(client(server, "openai")) };
    std::fs::write(setup.workspace.join("AGENTS.md"), "Never touch the generated files.").unwrap();
    let again = Setup {
        window: Some(WINDOW),
        home: setup.home.clone(),
        workspace: setup.workspace.clone(),
        ..Setup::new(client(server, "openai"))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let thread = runtime.block_on(async {
        let bench = setup.engine().await;
        let thread = bench.thread().await.id;
        bench.turn(thread, "Look at the files").await.1.unwrap();
        bench.say(thread, "Go on").await;
        let waiting = tokio::task::block_in_place(|| server.wait_for_requests(requests).len());
        assert_eq!(waiting, requests);
        std::mem::forget(bench);
        thread
    });
    runtime.shutdown_background();
    (thread, again)
}

#[test]
fn a_crash_leaves_the_original_or_the_digest_and_the_thread_goes_on() {
    let line = WINDOW * 8 / 10;
    // While the digest is asked for, and while the first request with it is.
    for (asked, folded) in [(10, false), (11, true)] {
        let mut replies = work(line);
        if folded {
            replies.push(Reply::text(SUMMARY));
        }
        replies.push(Reply::hang());
        // What the next process asks: the digest that is still missing, and the next step.
        if !folded {
            replies.push(Reply::text(SUMMARY));
        }
        replies.push(Reply::text("Here we are").with_usage(9_000, 10));
        let server = Server::start(replies);
        let (thread, again) = crashes_at(&server, asked);
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let bench = again.engine().await;
            // The one before let go of the thread when its runtime ended, which may take it a moment.
            let begun = std::time::Instant::now();
            while let Err(error) = ask!(bench.engine, ThreadResume, resume(thread)) {
                assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{error:?}");
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            let items = bench.items(thread).await;
            let gone = items.iter().filter(|item| item.visibility == Visibility::Folded).count();
            let digests =
                items.iter().filter(|item| matches!(item.content, ItemContent::Compaction { .. })).count();
            assert_eq!((gone > 0, digests), (folded, usize::from(folded)), "both or neither");
            bench.turn(thread, "And now?").await.1.unwrap();
            let requests = server.requests();
            is_sound(&bench, thread, &requests[8], requests.last().unwrap()).await;
        });
    }
}
