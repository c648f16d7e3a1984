//! Any bytes in any chunks: the parser agrees with the naive one of its tests.

#![no_main]

use hanzo_sse::SseFrameBuffer;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hanzo-sse/tests/it/reference.rs"]
mod reference;

fuzz_target!(|input: &[u8]| {
    // The first byte says how large the chunks are.
    let Some((&size, stream)) = input.split_first() else { return };
    let mut buffer = SseFrameBuffer::new();
    let frames = stream.chunks(usize::from(size).max(1)).flat_map(|chunk| buffer.feed_bytes(chunk)).collect();
    let seen = reference::Outcome {
        frames,
        last_event_id: buffer.last_event_id().to_owned(),
        reconnection_time: buffer.reconnection_time(),
    };
    assert_eq!(seen, reference::parse(stream));
});
