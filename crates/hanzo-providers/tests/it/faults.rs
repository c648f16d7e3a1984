//! What goes wrong on a network and in a server: each ends in one error that says what happened, in time.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use hanzo_protocol::message::{ApiError, ApiErrorKind};
use hanzo_testkit::scripted::{Api, Reply, Server};

use crate::support::{APIS, KEY, answer, ask, ask_for, build, config, request};

const IDLE: Duration = Duration::from_millis(300);

/// What comes of a reply when the client waits [`IDLE`], and how long it took.
async fn impatient(reply: Reply, api: Api) -> (crate::support::Answer, Duration) {
    let server = Server::start([reply]);
    let mut config = config(&server, api);
    config.timeouts.idle = IDLE;
    let client = build(config);
    let started = Instant::now();
    let got = answer(&ask(&*client, &request()).await);
    (got, started.elapsed())
}

fn assert_in_time(took: Duration) {
    assert!(took >= IDLE && took < IDLE + Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn silence_is_noticed_in_time() {
    for api in APIS {
        for reply in
            [Reply::hang(), Reply::text("some").hang_after(0), Reply::text("some words").hang_after(650)]
        {
            let (got, took) = impatient(reply, api).await;
            let error = got.error.unwrap();
            assert_eq!(error.kind, ApiErrorKind::Network);
            assert!(error.message.contains("sent nothing for 300ms"), "{}", error.message);
            assert_in_time(took);
        }
    }
}

#[tokio::test]
async fn dripping_comments_are_silence() {
    for api in APIS {
        let whole = String::from_utf8(Reply::text("some words").bytes(api)).unwrap();
        let said_something =
            whole.match_indices("\n\n").nth(if api == Api::OpenAi { 1 } else { 3 }).unwrap().0 + 2;
        for after in [0, said_something] {
            let reply = Reply::text("some words").drip_after(after, Duration::from_millis(20));
            let (got, took) = impatient(reply, api).await;
            assert_eq!(got.error.unwrap().kind, ApiErrorKind::Network);
            assert_in_time(took);
        }
    }
}

#[tokio::test]
async fn dripping_pings_and_empty_deltas_are_silence() {
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n".repeat(100);
    let empty = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n".repeat(100);
    for (api, body) in [(Api::Anthropic, ping), (Api::OpenAi, empty)] {
        let size = body.len() / 100;
        let (got, took) =
            impatient(Reply::body(body).chunk(size).delay(Duration::from_millis(20)), api).await;
        assert_eq!(got.error.unwrap().kind, ApiErrorKind::Network);
        assert_in_time(took);
    }
}

#[tokio::test]
async fn a_slow_answer_is_not_silence() {
    for api in APIS {
        // Three times as long as the client waits, but never quiet for so long.
        let reply = Reply::text("slowly but surely").fragment(2).delay(Duration::from_millis(90));
        let (got, took) = impatient(reply, api).await;
        assert_eq!((got.error, got.text.as_str()), (None, "slowly but surely"));
        assert!(took > IDLE * 2, "{took:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_closes_does_not_hold_a_finished_answer() {
    let whole = Reply::text("done").bytes(Api::OpenAi);
    let mark = b"data: [DONE]\n\n".len();
    let server = Server::start([Reply::text("done").hang_after(whole.len())]);
    let started = Instant::now();
    let got = answer(&ask(&*build(config(&server, Api::OpenAi)), &request()).await);
    assert_eq!((got.error, got.text.as_str()), (None, "done"));
    assert!(started.elapsed() < Duration::from_secs(1), "the closing mark ends it");
    let (got, took) = impatient(Reply::text("done").hang_after(whole.len() - mark), Api::OpenAi).await;
    assert_eq!((got.error, got.text.as_str()), (None, "done"), "without the mark the model's word is enough");
    assert!(took < Duration::from_secs(1));
}

#[tokio::test]
async fn nobody_listening_is_an_error_that_names_the_address() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start([]);
    let config = config(&server, Api::OpenAi).with_base_url(format!("http://{closed}/v1"));
    let error = answer(&ask(&*build(config), &request()).await).error.unwrap();
    assert_eq!(error.kind, ApiErrorKind::Network);
    assert!(
        error.message.contains("cannot connect") && error.message.contains(&closed.to_string()),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn connecting_takes_no_longer_than_allowed() {
    // A listener whose queue is full drops further attempts, as an unreachable machine does.
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let fill = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address.into());
        socket
    };
    let _queue: Vec<socket2::Socket> = (0..8).map(|_| fill()).collect();
    let server = Server::start([]);
    let mut config = config(&server, Api::OpenAi).with_base_url(format!("http://{address}/v1"));
    config.timeouts.connect = Duration::from_millis(200);
    let started = Instant::now();
    let error = answer(&ask(&*build(config), &request()).await).error.unwrap();
    assert_eq!(error.kind, ApiErrorKind::Network);
    assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
}

#[tokio::test]
async fn invalid_json_ends_the_answer() {
    for api in APIS {
        let got = ask_for(Reply::text("some words").with_raw_event(4, "data: {not json\n\n"), api).await;
        let error = got.error.unwrap();
        assert_eq!(error.kind, ApiErrorKind::Malformed);
        assert!(error.message.contains("not JSON"), "{}", error.message);
    }
}

#[tokio::test]
async fn invalid_utf8_is_repaired_in_text_and_never_runs() {
    let text = |bytes: &[u8]| {
        let mut body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a".to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"b\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        body
    };
    for bytes in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f"] {
        let got = ask_for(Reply::body(text(bytes)), Api::OpenAi).await;
        assert_eq!(got.error, None);
        assert!(
            got.text.starts_with('a') && got.text.ends_with('b') && got.text.contains('\u{fffd}'),
            "{:?}",
            got.text
        );
    }
    for api in APIS {
        let got =
            ask_for(Reply::text("words").with_raw_event(3, b"\xff\xfe\x00data: \xff\n\n".to_vec()), api)
                .await;
        assert!(got.error.is_none() || got.error.unwrap().kind == ApiErrorKind::Malformed);
    }
}

#[tokio::test]
async fn statuses_are_sorted_and_carry_no_credential() {
    for api in APIS {
        for (status, kind) in [
            (400, ApiErrorKind::BadRequest),
            (401, ApiErrorKind::Auth),
            (403, ApiErrorKind::Auth),
            (404, ApiErrorKind::BadRequest),
            (413, ApiErrorKind::ContextOverflow),
            (429, ApiErrorKind::Rate),
            (500, ApiErrorKind::Overloaded),
            (503, ApiErrorKind::Overloaded),
            (529, ApiErrorKind::Overloaded),
        ] {
            let body = format!("{{\"error\":{{\"message\":\"key {KEY} \\u001b[2J was seen\"}}}}");
            let ApiError { kind: got, message, status: said, .. } =
                ask_for(Reply::status(status).with_body(body), api).await.error.unwrap();
            assert_eq!((got, said), (kind, Some(status)));
            assert!(!message.contains(KEY) && !message.contains('\u{1b}'), "{message}");
            assert!(message.contains("key *** [2J was seen"), "{message}");
        }
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_carries_no_credential() {
    for api in APIS {
        let event = format!(
            "data: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{KEY}\\u001b]0;x\"}}}}\n\n"
        );
        let error = ask_for(Reply::text("some").with_raw_event(3, event), api).await.error.unwrap();
        assert_eq!(error.message, "***]0;x");
    }
}

#[tokio::test]
async fn what_is_no_api_is_recognised() {
    let page = Reply::body("<!DOCTYPE html><title>Sign in</title>")
        .header("content-type", "text/html; charset=utf-8");
    let error = ask_for(page, Api::OpenAi).await.error.unwrap();
    assert_eq!(error.kind, ApiErrorKind::Malformed);
    assert!(error.message.contains("web page") && error.message.contains("\n\nhint: "), "{}", error.message);
    for nonsense in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"", b"HTTP/1.1 200 OK\r\n"] {
        let error = ask_for(Reply::response(nonsense), Api::OpenAi).await.error.unwrap();
        assert_eq!(error.kind, ApiErrorKind::Network);
    }
    let error = ask_for(Reply::status(500).with_body(vec![b'x'; 3 << 20]), Api::OpenAi).await.error.unwrap();
    assert!(error.message.len() < 2000, "a long body is cut");
}
