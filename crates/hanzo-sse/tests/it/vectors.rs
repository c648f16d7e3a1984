//! Runs `test-vectors/sse-frames.json`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hanzo_sse::{SseError, SseFrame, SseFrameBuffer};
use hanzo_testkit::vectors;
use serde::Deserialize;

use crate::reference;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    /// The stream as text, or as base64 where it is not UTF-8.
    input: Option<String>,
    input_base64: Option<String>,
    /// The limit of one event in bytes, where the case is about that.
    limit: Option<usize>,
    frames: Vec<Frame>,
    #[serde(default)]
    last_event_id: String,
    reconnection_time: Option<u64>,
    error: Option<ErrorKind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    event: Option<String>,
    data: String,
    id: Option<String>,
    retry: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ErrorKind {
    EventTooLarge,
}

impl Case {
    fn bytes(&self) -> Vec<u8> {
        match (&self.input, &self.input_base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(encoded)) => {
                STANDARD.decode(encoded).unwrap_or_else(|e| panic!("{}: {e}", self.name))
            }
            _ => panic!("{}: exactly one of `input` and `inputBase64` is needed", self.name),
        }
    }

    fn expected(&self) -> Vec<SseFrame> {
        self.frames
            .iter()
            .map(|frame| SseFrame {
                event: frame.event.clone(),
                data: frame.data.clone(),
                id: frame.id.clone(),
                retry: frame.retry,
            })
            .collect()
    }

    /// Runs the stream through a fresh buffer, by whatever `feed` does with it, and checks everything that shows.
    fn check(&self, how: &str, feed: impl FnOnce(&mut SseFrameBuffer) -> Vec<SseFrame>) {
        let mut buffer = self.limit.map_or_else(SseFrameBuffer::new, SseFrameBuffer::with_limit);
        let frames = feed(&mut buffer);
        let error = buffer.take_error().map(|error| match error {
            SseError::EventTooLarge { .. } => ErrorKind::EventTooLarge,
            other => panic!("{}: no vector knows the error `{other}`", self.name),
        });
        assert_eq!(frames, self.expected(), "`{}` {how}", self.name);
        assert_eq!(buffer.last_event_id(), self.last_event_id, "last event id of `{}` {how}", self.name);
        assert_eq!(
            buffer.reconnection_time(),
            self.reconnection_time,
            "reconnection time of `{}` {how}",
            self.name
        );
        assert_eq!(error, self.error, "error of `{}` {how}", self.name);
    }
}

#[test]
fn every_case_gives_its_frames_however_it_is_cut() {
    for case in &vectors::cases::<Case>("sse-frames.json", 80) {
        let bytes = case.bytes();
        case.check("whole", |buffer| buffer.feed_bytes(&bytes));
        case.check("byte by byte", |buffer| {
            bytes.chunks(1).flat_map(|byte| buffer.feed_bytes(byte)).collect()
        });
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            case.check(&format!("cut at byte {at}"), |buffer| {
                let mut frames = buffer.feed_bytes(first);
                frames.extend(buffer.feed_bytes(second));
                frames
            });
            if let (Ok(first), Ok(second)) = (std::str::from_utf8(first), std::str::from_utf8(second)) {
                case.check(&format!("as text cut at byte {at}"), |buffer| {
                    let mut frames = buffer.feed(first);
                    frames.extend(buffer.feed(second));
                    frames
                });
            }
        }
    }
}

/// The naive parser is held to the vectors too: it is what the random tests trust.
#[test]
fn the_reference_parser_agrees_with_every_case_without_a_limit() {
    let cases: Vec<Case> = vectors::cases("sse-frames.json", 80);
    for case in cases.iter().filter(|case| case.limit.is_none()) {
        let outcome = reference::parse(&case.bytes());
        assert_eq!(outcome.frames, case.expected(), "`{}`", case.name);
        assert_eq!(outcome.last_event_id, case.last_event_id, "`{}`", case.name);
        assert_eq!(outcome.reconnection_time, case.reconnection_time, "`{}`", case.name);
    }
}
