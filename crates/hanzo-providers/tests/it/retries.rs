//! Trying again: when, how often, after how long, and never when it could be seen twice.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hanzo_protocol::message::ApiErrorKind;
use hanzo_providers::{RetryNotice, RetryPolicy};
use hanzo_testkit::scripted::{Api, Reply, Server};
use serde_json::json;

use crate::support::{APIS, Answer, answer, ask, build, config, request};

const QUICK: RetryPolicy = RetryPolicy { max_retries: 3, base_ms: 1, max_ms: 20 };

type Notices = Arc<Mutex<Vec<(u32, u32, Duration, ApiErrorKind)>>>;

struct Outcome {
    answer: Answer,
    requests: usize,
    notices: Vec<(u32, u32, Duration, ApiErrorKind)>,
    took: Duration,
}

async fn with_policy(replies: Vec<Reply>, api: Api, retry: RetryPolicy) -> Outcome {
    let server = Server::start(replies);
    let notices = Notices::default();
    let seen = Arc::clone(&notices);
    let mut config = config(&server, api);
    config.retry = retry;
    config.timeouts.idle = Duration::from_millis(300);
    config.observer = Some(Arc::new(move |notice: &RetryNotice<'_>| {
        assert_eq!((notice.provider, notice.model), ("test", "scripted"));
        seen.lock().unwrap().push((notice.retry, notice.max_retries, notice.delay, notice.error.kind));
    }));
    let client = build(config);
    let started = Instant::now();
    let answer = answer(&ask(&*client, &request()).await);
    let notices = notices.lock().unwrap().clone();
    Outcome { answer, requests: server.requests().len(), notices, took: started.elapsed() }
}

async fn quickly(replies: Vec<Reply>, api: Api) -> Outcome {
    with_policy(replies, api, QUICK).await
}

#[tokio::test]
async fn a_failure_that_passes_is_survived_and_told() {
    for api in APIS {
        for (failure, kind) in [
            (Reply::status(429), ApiErrorKind::Rate),
            (Reply::status(500), ApiErrorKind::Overloaded),
            (Reply::status(502), ApiErrorKind::Overloaded),
            (Reply::status(503), ApiErrorKind::Overloaded),
            (Reply::status(529), ApiErrorKind::Overloaded),
            (Reply::status(408), ApiErrorKind::Network),
            (Reply::reset(), ApiErrorKind::Network),
            (Reply::text("x").truncate(0), ApiErrorKind::Network),
            (Reply::text("x").truncate(40), ApiErrorKind::Network),
            (Reply::response(""), ApiErrorKind::Network),
            // Nothing of a call is given out before it is whole, so a cut in the middle of one can be repaired unseen.
            (
                Reply::tool_call("fs", json!({"path": "a long way to go"})).truncate(650),
                ApiErrorKind::Network,
            ),
        ] {
            let got = quickly(vec![failure.clone(), Reply::text("fine")], api).await;
            assert_eq!((got.answer.error, got.answer.text.as_str()), (None, "fine"), "{api:?} {failure:?}");
            assert_eq!(got.requests, 2);
            let [(retry, max, _, told)] = got.notices[..] else { panic!("{:?}", got.notices) };
            assert_eq!((retry, max, told), (1, 3, kind));
        }
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_is_survived_before_anything_was_said() {
    let event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    for api in APIS {
        let got = quickly(vec![Reply::text("x").with_raw_event(1, event), Reply::text("fine")], api).await;
        assert_eq!((got.answer.text.as_str(), got.requests), ("fine", 2));
    }
}

#[tokio::test]
async fn there_are_never_more_tries_than_allowed() {
    for max_retries in [0, 1, 4] {
        let retry = RetryPolicy { max_retries, ..QUICK };
        let got = with_policy(vec![Reply::status(503); 10], Api::OpenAi, retry).await;
        assert_eq!(got.requests, 1 + max_retries as usize);
        assert_eq!(got.notices.len(), max_retries as usize);
        assert_eq!(got.answer.error.unwrap().status, Some(503), "the last failure is the one that is told");
    }
}

#[tokio::test]
async fn what_stays_wrong_is_not_tried_again() {
    let quota =
        json!({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}})
            .to_string();
    for api in APIS {
        for reply in [
            Reply::status(400),
            Reply::status(401),
            Reply::status(403),
            Reply::status(404),
            Reply::status(413),
            Reply::status(422),
            Reply::status(429).with_body(quota.clone()),
            Reply::body("data: {nonsense\n\n"),
        ] {
            let got = quickly(vec![reply.clone(), Reply::text("never asked for")], api).await;
            assert!(got.answer.error.is_some(), "{reply:?}");
            assert_eq!((got.requests, got.notices.len()), (1, 0), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn nothing_is_tried_again_once_something_was_said() {
    for api in APIS {
        for reply in [
            Reply::text("some words and more").truncate(650),
            Reply::reasoning("a thought or two").truncate(650),
        ] {
            let got = quickly(vec![reply, Reply::text("never asked for")], api).await;
            assert_eq!(got.answer.error.unwrap().kind, ApiErrorKind::Network);
            assert!(!(got.answer.text + &got.answer.thought).is_empty());
            assert_eq!((got.requests, got.notices.len()), (1, 0));
        }
    }
}

#[tokio::test]
async fn the_vendors_wish_to_wait_is_honoured() {
    let retry = RetryPolicy { max_retries: 1, base_ms: 0, max_ms: 5000 };
    for (name, value, least) in [
        ("retry-after-ms", "350".to_owned(), Duration::from_millis(350)),
        ("retry-after", "1".to_owned(), Duration::from_secs(1)),
    ] {
        let replies = vec![Reply::status(429).header(name, value), Reply::text("fine")];
        let got = with_policy(replies, Api::OpenAi, retry).await;
        assert_eq!(got.answer.text, "fine");
        assert_eq!(got.notices[0].2, least);
        assert!(got.took >= least && got.took < least + Duration::from_secs(1), "{:?}", got.took);
    }
}

#[tokio::test]
async fn a_wish_to_wait_long_is_capped() {
    for value in ["86400", "99999999999999999999", "Fri, 31 Dec 2100 23:59:59 GMT"] {
        let replies = vec![Reply::status(503).header("retry-after", value), Reply::text("fine")];
        let got = quickly(replies, Api::OpenAi).await;
        assert_eq!(
            (got.answer.text.as_str(), got.notices[0].2),
            ("fine", Duration::from_millis(20)),
            "{value}"
        );
    }
}

#[tokio::test]
async fn delays_stay_below_their_ceiling() {
    let retry = RetryPolicy { max_retries: 4, base_ms: 4, max_ms: 10 };
    let got = with_policy(vec![Reply::status(500); 5], Api::OpenAi, retry).await;
    for (index, (_, _, delay, _)) in got.notices.iter().enumerate() {
        assert!(*delay <= Duration::from_millis((4 << index).min(10)), "{:?}", got.notices);
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_given_one_more_chance_only() {
    let got = quickly(vec![Reply::hang(), Reply::hang(), Reply::text("too late")], Api::OpenAi).await;
    assert_eq!(got.requests, 2);
    assert_eq!(got.answer.error.unwrap().kind, ApiErrorKind::Network);
    let got = quickly(vec![Reply::hang(), Reply::text("fine")], Api::OpenAi).await;
    assert_eq!((got.answer.text.as_str(), got.requests), ("fine", 2));
}

#[tokio::test]
async fn the_same_request_is_sent_again() {
    let server = Server::start([Reply::status(500), Reply::reset(), Reply::text("fine")]);
    let mut config = config(&server, Api::Anthropic);
    config.retry = QUICK;
    ask(&*build(config), &request()).await;
    let sent = server.requests();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|one| one.body == sent[0].body && one.path == sent[0].path));
}
