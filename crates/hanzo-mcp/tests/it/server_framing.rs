//! Messages are found in bytes, however they are cut and whatever is between them.

use bytes::BytesMut;
use hanzo_mcp::server::framing::{Decoder, Frame, Framing};
use proptest::prelude::*;

fn decode(pieces: &[&[u8]], limit: usize) -> Vec<Frame> {
    let mut decoder = Decoder::with_limit(limit);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        while let Some(frame) = decoder.next_frame() {
            frames.push(frame);
        }
    }
    frames.extend(decoder.finish());
    frames
}

fn message(text: &str) -> Frame {
    Frame::Message(text.to_owned().into())
}

#[test]
fn both_framings_are_read_and_known_by_their_first_bytes() {
    for (bytes, framing) in [
        (&b"{\"a\":1}\n{\"b\":2}\r\n\n"[..], Framing::Lines),
        (
            b"Content-Length: 7\r\n\r\n{\"a\":1}content-length:7\r\nContent-Type: x\r\n\r\n{\"b\":2}",
            Framing::Headers,
        ),
        (
            b"Content-Type: x\nCONTENT-LENGTH:   7\n\n{\"a\":1}Content-Length: 7\n\n{\"b\":2}",
            Framing::Headers,
        ),
    ] {
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(bytes);
        assert_eq!(decoder.next_frame(), Some(message("{\"a\":1}")));
        assert_eq!(decoder.next_frame(), Some(message("{\"b\":2}")));
        assert_eq!((decoder.next_frame(), decoder.framing()), (None, Some(framing)));
    }
    assert_eq!(decode(&[b"\xEF\xBB\xBF{}\n"], 100), [message("{}")], "a byte order mark is no part of it");
    assert_eq!(decode(&[b"{}"], 100), [message("{}")], "the last line may lack its end");
}

#[test]
fn what_is_too_large_is_skipped_to_its_end() {
    let large = "x".repeat(50);
    let lines = format!("{large}\n{{}}\n");
    assert_eq!(decode(&[lines.as_bytes()], 20), [Frame::TooLarge, message("{}")]);
    let headers = format!("Content-Length: 50\r\n\r\n{large}Content-Length: 2\r\n\r\n{{}}");
    assert_eq!(decode(&[headers.as_bytes()], 20), [Frame::TooLarge, message("{}")]);
    assert_eq!(decode(&[b"Content-Length: 20\r\n\r\n", &[b'y'; 20]], 20), [message(&"y".repeat(20))]);
}

#[test]
fn headers_without_a_length_do_not_take_the_next_message_along() {
    for bad in [
        "Content-Length: many\r\n\r\n",
        "Content-Type: x\r\n\r\n",
        "Content-Length: 1\nContent-Length: 2\n\n",
        "content-nothing\n",
    ] {
        let text = format!("{bad}{{\"a\":1}}\n");
        let frames = decode(&[text.as_bytes()], 100);
        assert_eq!(
            (frames.first(), frames.last()),
            (Some(&Frame::BadHeader), Some(&message("{\"a\":1}"))),
            "{bad:?}"
        );
    }
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"{\"a\":1}\n".to_vec()),
        Just(b"Content-Length: 7\r\n\r\n{\"b\":2}".to_vec()),
        Just(b"Content-Length: 99999999999999999999\r\n\r\n".to_vec()),
        Just(vec![b'z'; 300]),
        "[ -~\r\n]{0,40}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_frames(
        pieces in proptest::collection::vec(piece(), 0..8),
        cuts in proptest::collection::vec(0_usize..400, 0..12),
    ) {
        let whole: Vec<u8> = pieces.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
        cuts.sort_unstable();
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in cuts {
            parts.push(&whole[from..cut]);
            from = cut;
        }
        parts.push(&whole[from..]);
        let shape = |frames: Vec<Frame>| frames.into_iter().map(|frame| match frame {
            Frame::Message(text) => text.to_vec(),
            Frame::TooLarge => b"too large".to_vec(),
            Frame::BadHeader => b"bad header".to_vec(),
        }).collect::<Vec<_>>();
        prop_assert_eq!(shape(decode(&parts, 200)), shape(decode(&[&whole], 200)));
    }

    #[test]
    fn what_is_written_is_read_again(texts in proptest::collection::vec("[ -~]{1,30}", 1..6), headers: bool) {
        let framing = if headers { Framing::Headers } else { Framing::Lines };
        let texts: Vec<String> = texts.into_iter().map(|text| format!("{{{text}")).collect();
        let mut out = BytesMut::new();
        for text in &texts {
            framing.encode(text.as_bytes(), &mut out);
        }
        let expected: Vec<Frame> = texts.iter().map(|text| message(text)).collect();
        prop_assert_eq!(decode(&[&out], 1000), expected);
    }
}
