//! Random streams: the parser agrees with the naive one, and with itself however the stream is cut.

use hanzo_sse::{SseError, SseFrame, SseFrameBuffer};
use hanzo_testkit::scale::rounds;
use proptest::prelude::*;

use crate::reference::{self, Outcome};

/// Pieces in which the corners of the format meet often; plain random bytes would hardly ever spell a field.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed: &[&[u8]] = &[
        b"\n",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\r\n\r\n",
        b"\n\r",
        b":",
        b": ",
        b" ",
        b"\0",
        b"data",
        b"data",
        b"data:",
        b"data: ",
        b"data:  ",
        b"event",
        b"event:",
        b"event: ",
        b"id",
        b"id:",
        b"id: ",
        b"retry",
        b"retry:",
        b"retry: ",
        b"Data:",
        b"dat",
        b"datax:",
        b"even",
        b"ident:",
        b"\xEF\xBB\xBF",
        b"\xEF\xBB",
        b"\xEF",
        b"\xBF",
        "é".as_bytes(),
        "🦀".as_bytes(),
        b"\xF0\x9F",
        b"\xC3",
        b"\xED\xA0\x80",
        b"\xFF",
        b"\xC0\x80",
        b"18446744073709551615",
        b"18446744073709551616",
        b"\t",
        b"\x0B",
        b"\x0C",
        b"\xC2\x85",
        b"\xE2\x80\xA8",
        b"{\"delta\":\"some words of an answer that fill more than one block of the scan\"}",
    ];
    prop_oneof![
        12 => proptest::sample::select(fixed.to_vec()).prop_map(<[u8]>::to_vec),
        2 => "[0-9]{1,4}".prop_map(String::into_bytes),
        1 => "[a-z:]{0,40}".prop_map(String::into_bytes),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

/// A stream and the lengths of the chunks it is cut into, repeated as often as needed. Empty chunks included.
fn cut_stream() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    (stream(), proptest::collection::vec(0..12usize, 1..12))
}

fn cut<'a>(bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    let mut rest = bytes;
    let mut lengths = lengths.iter().cycle();
    let mut empty_in_a_row = 0;
    while !rest.is_empty() {
        let length = (*lengths.next().expect("a cycle of at least one length")).min(rest.len());
        empty_in_a_row = if length == 0 { empty_in_a_row + 1 } else { 0 };
        let length = if empty_in_a_row > 12 { 1 } else { length };
        let (chunk, after) = rest.split_at(length);
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

fn finish(buffer: &SseFrameBuffer, frames: Vec<SseFrame>) -> Outcome {
    Outcome {
        frames,
        last_event_id: buffer.last_event_id().to_owned(),
        reconnection_time: buffer.reconnection_time(),
    }
}

fn run<'a>(
    mut buffer: SseFrameBuffer,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Outcome, Option<SseError>) {
    let frames = chunks.into_iter().flat_map(|chunk| buffer.feed_bytes(chunk)).collect();
    let error = buffer.take_error();
    (finish(&buffer, frames), error)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(80_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whole_streams_mean_what_the_standard_says(bytes in stream()) {
        let (outcome, error) = run(SseFrameBuffer::new(), [&bytes[..]]);
        prop_assert_eq!(outcome, reference::parse(&bytes));
        prop_assert_eq!(error, None);
    }

    #[test]
    fn any_cut_gives_the_same_events((bytes, lengths) in cut_stream()) {
        let (outcome, _) = run(SseFrameBuffer::new(), cut(&bytes, &lengths));
        prop_assert_eq!(outcome, reference::parse(&bytes));
    }

    #[test]
    fn a_limit_drops_the_same_events_however_the_stream_is_cut(
        (bytes, lengths) in cut_stream(),
        limit in 0..24usize,
    ) {
        let whole = run(SseFrameBuffer::with_limit(limit), [&bytes[..]]);
        prop_assert_eq!(&run(SseFrameBuffer::with_limit(limit), cut(&bytes, &lengths)), &whole);
        prop_assert_eq!(&run(SseFrameBuffer::with_limit(limit), bytes.chunks(1)), &whole);
        // What survives is what the standard gives, less the events that were too large.
        let unlimited = reference::parse(&bytes).frames;
        let mut others = unlimited.iter();
        for frame in &whole.0.frames {
            prop_assert!(others.any(|other| other == frame), "{frame:?} is not one of {unlimited:?}, in order");
        }
        if whole.1.is_none() {
            prop_assert_eq!(whole.0.frames.len(), unlimited.len());
        }
    }

    #[test]
    fn text_and_bytes_give_the_same_events((bytes, lengths) in cut_stream()) {
        let text = String::from_utf8_lossy(&bytes);
        let mut buffer = SseFrameBuffer::new();
        let mut frames = Vec::new();
        let mut rest = &text[..];
        let mut lengths = lengths.iter().cycle();
        while let Some(first) = rest.chars().next() {
            let wanted = *lengths.next().expect("a cycle of at least one length");
            let at = rest.floor_char_boundary(wanted).max(first.len_utf8());
            let (chunk, after) = rest.split_at(at);
            frames.extend(buffer.feed(chunk));
            rest = after;
        }
        prop_assert_eq!(finish(&buffer, frames), run(SseFrameBuffer::new(), [text.as_bytes()]).0);
    }
}
