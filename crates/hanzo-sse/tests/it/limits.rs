//! Events past the limit, one kind of excess at a time.

use hanzo_sse::{DEFAULT_LIMIT, SseError, SseFrameBuffer};

const LIMIT: usize = 100;

/// Feeds `stream` whole and byte by byte to buffers with [`LIMIT`]; the data that came out and whether it reported.
fn survivors(stream: &str) -> (Vec<String>, bool) {
    let mut outcomes = [stream.len(), 1].map(|size| {
        let mut buffer = SseFrameBuffer::with_limit(LIMIT);
        let data: Vec<String> = stream
            .as_bytes()
            .chunks(size)
            .flat_map(|chunk| buffer.feed_bytes(chunk))
            .map(|frame| frame.data)
            .collect();
        let error = buffer.take_error();
        assert_eq!(buffer.take_error(), None, "an error is reported once");
        assert!(matches!(error, None | Some(SseError::EventTooLarge { limit: LIMIT })));
        (data, error.is_some())
    });
    assert_eq!(outcomes[0], outcomes[1], "whole and byte by byte differ for {stream:?}");
    std::mem::take(&mut outcomes[0])
}

fn assert_dropped(event: &str) {
    let (data, reported) = survivors(&format!("data: before\n\n{event}\n\ndata: after\n\n"));
    assert_eq!(data, ["before", "after"], "{event:?}");
    assert!(reported, "{event:?}");
}

fn assert_delivered(event: &str) {
    let (data, reported) = survivors(&format!("data: before\n\n{event}\n\ndata: after\n\n"));
    assert_eq!(data.len(), 3, "{event:?}");
    assert!(!reported, "{event:?}");
}

#[test]
fn one_long_line() {
    assert_delivered(&format!("data: {}", "x".repeat(LIMIT)));
    assert_dropped(&format!("data: {}", "x".repeat(LIMIT + 1)));
    assert_dropped(&format!("data: {}\ndata: the rest of it\nid: 4", "x".repeat(LIMIT + 1)));
}

#[test]
fn many_lines() {
    // Fifty lines of one byte and the forty-nine line feeds between them.
    assert_delivered(&"data: x\n".repeat(50));
    assert_dropped(&"data: x\n".repeat(51));
    assert_dropped(&"data\n".repeat(LIMIT + 2));
}

#[test]
fn type_and_id_count_as_well() {
    assert_dropped(&format!("event: {}\ndata: x", "e".repeat(LIMIT)));
    assert_dropped(&format!("id: {}\ndata: x", "i".repeat(LIMIT)));
    assert_dropped(&format!("data: x\nid: {}\0", "i".repeat(LIMIT)));
    assert_dropped(&format!("event: {0}\nid: {0}\ndata: {0}", "x".repeat(LIMIT / 2)));
    // A field given again takes the place of the first: nothing adds up.
    assert_delivered(&format!("{}data: x", format!("event: {}\n", "e".repeat(60)).repeat(10)));
    assert_delivered(&format!("{}data: x", format!("id: {}\n", "i".repeat(60)).repeat(10)));
}

#[test]
fn comments_and_unknown_fields_do_not_count() {
    let long = "x".repeat(10 * LIMIT);
    assert_delivered(&format!(":{long}\n{long}\n{long}: {long}\ndatax: {long}\ndata: x\nretry: {long}"));
}

#[test]
fn a_dropped_event_leaves_no_id_behind() {
    let mut buffer = SseFrameBuffer::with_limit(LIMIT);
    buffer.feed("id: 1\ndata: x\n\n");
    buffer.feed(&format!("id: 2\ndata: {}\nid: 3\n\n", "x".repeat(LIMIT)));
    assert_eq!(buffer.last_event_id(), "1");
}

#[test]
fn an_error_is_reported_once_for_all_it_befell_and_says_what_the_limit_was() {
    let mut buffer = SseFrameBuffer::with_limit(3);
    buffer.feed("data: 1234\n\ndata: 5678\n\n");
    let error = buffer.take_error().expect("two events were too large");
    assert_eq!(error.to_string(), "a server-sent event was dropped because it is larger than 3 bytes");
    assert_eq!(buffer.take_error(), None);
    buffer.feed("data: 9012\n\n");
    assert!(buffer.take_error().is_some(), "the next excess is reported again");
}

#[test]
fn the_default_limit_lets_megabytes_through() {
    let mut buffer = SseFrameBuffer::new();
    let frames = buffer.feed(&format!("data: {}\n\n", "x".repeat(DEFAULT_LIMIT)));
    assert_eq!(frames.len(), 1);
    let frames = buffer.feed(&format!("data: {}\n\n", "x".repeat(DEFAULT_LIMIT + 1)));
    assert!(frames.is_empty());
}
