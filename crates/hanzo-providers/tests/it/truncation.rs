//! An answer cut at every byte, and an answer split at every byte.

use std::collections::HashSet;

use hanzo_protocol::message::ApiErrorKind;
use hanzo_testkit::scripted::{Api, Reply, Server};
use serde_json::json;

use crate::support::{APIS, Answer, answer, ask, client, request};

fn reply() -> Reply {
    Reply::reasoning("Hm, ü. ")
        .and_text("Schaue 🦀. ")
        .and_tool_call("fs", json!({"path": "grün.rs"}))
        .and_tool_call("proc", json!({"command": "rm -rf build"}))
        .with_cached(7, 3)
        .fragment(16)
}

/// How far apart the places are that these loops try: every byte in a soak. An ordinary run tries every byte without a
/// connection (`reader::tests`), where it costs nothing.
fn stride() -> usize {
    if hanzo_testkit::scale::rounds(20) == 20 { 1 } else { 7 }
}

/// The reply as bytes that need not be made again for each of a thousand connections.
fn prepared(api: Api) -> Reply {
    Reply::body(reply().bytes(api))
}

async fn whole(api: Api) -> Answer {
    let server = Server::start([reply()]);
    let whole = answer(&ask(&*client(&server, api), &request()).await);
    assert_eq!((whole.calls.len(), &whole.error), (2, &None));
    whole
}

/// Every answer of a server that gives these replies, in turn, over one client.
async fn answers(replies: Vec<Reply>, api: Api) -> Vec<Answer> {
    let count = replies.len();
    let server = Server::start(replies);
    let client = client(&server, api);
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(answer(&ask(&*client, &request()).await));
    }
    answers
}

#[tokio::test]
async fn a_cut_at_any_byte_is_one_error_and_no_call() {
    for api in APIS {
        let length = reply().bytes(api).len();
        let whole = whole(api).await;
        let mut places: Vec<usize> = (0..length).step_by(stride()).collect();
        // The last bytes are where an answer may pass for whole.
        places.extend(length - 30..length);
        let cuts = places.iter().map(|at| prepared(api).truncate(*at)).collect();
        let mut complete = HashSet::new();
        for (at, got) in places.iter().zip(answers(cuts, api).await) {
            assert!(whole.text.starts_with(&got.text) && whole.thought.starts_with(&got.thought), "{at}");
            if let Some(error) = &got.error {
                let kind = error.kind;
                assert!(matches!(kind, ApiErrorKind::Network | ApiErrorKind::Malformed), "{at}: {error:?}");
                assert_eq!(got.calls, [], "{api:?} cut at {at}");
            } else {
                // The last event may be whole although the cut took what follows it.
                assert_eq!(got, whole, "{api:?} cut at {at}");
                complete.insert(*at);
            }
        }
        assert!(complete.len() <= 1, "{api:?}: cuts at {complete:?} of {length} passed for a whole answer");
    }
}

#[tokio::test]
async fn a_cut_that_looks_like_the_end_never_gives_out_half_a_call() {
    for api in APIS {
        let length = reply().bytes(api).len();
        let whole = whole(api).await;
        let places: Vec<usize> = (0..length).step_by(stride()).collect();
        let cuts = places.iter().map(|at| prepared(api).until_closed().truncate(*at)).collect();
        for (at, got) in places.iter().zip(answers(cuts, api).await) {
            if got.error.is_some() {
                assert_eq!(got.calls, [], "{api:?} cut at {at}");
            } else {
                // The model had said why it stopped: only the count of tokens may be missing.
                assert_eq!((&got.text, &got.calls), (&whole.text, &whole.calls), "{api:?} cut at {at}");
            }
        }
    }
}

#[tokio::test]
async fn a_reset_at_any_event_is_one_error_and_no_call() {
    for api in APIS {
        let length = reply().bytes(api).len();
        let resets = (0..length).step_by(97).map(|at| prepared(api).reset_after(at)).collect();
        for got in answers(resets, api).await {
            assert_eq!(got.error.map(|error| error.kind), Some(ApiErrorKind::Network));
            assert_eq!(got.calls, []);
        }
    }
}

#[tokio::test]
async fn any_split_gives_the_same_answer() {
    for api in APIS {
        let whole = whole(api).await;
        let splits = [1, 2, 3, 5, 7, 11, 64, 100_000].map(|size| reply().chunk(size)).to_vec();
        for got in answers(splits, api).await {
            assert_eq!(got, whole, "{api:?}");
        }
    }
}

#[tokio::test]
async fn a_split_anywhere_gives_the_same_events() {
    for api in APIS {
        let server = Server::with(|_| reply());
        let client = client(&server, api);
        let expected = ask(&*client, &request()).await;
        let bytes = reply().bytes(api);
        // The client is handed each HTTP chunk by itself, so a chunk's end is a split it sees.
        let split = |at: usize| Reply::body(bytes[..at].to_vec()).with_raw_event(1, bytes[at..].to_vec());
        let places: Vec<usize> = (1..bytes.len()).step_by(stride()).collect();
        let server = Server::start(places.iter().map(|at| split(*at)));
        let client = crate::support::client(&server, api);
        for at in places {
            assert_eq!(ask(&*client, &request()).await, expected, "{api:?} split at {at}");
        }
    }
}
