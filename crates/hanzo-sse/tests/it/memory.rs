//! What the parser allocates, counted by the allocator itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hanzo_sse::{SseDecoder, SseFrameBuffer};

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { calls: 0, live: 0, peak: 0 }) };
}

/// Counted per thread, because the test runner runs other tests at the same time.
#[derive(Clone, Copy, Default)]
struct Counts {
    calls: usize,
    live: usize,
    peak: usize,
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn record(freed: usize, taken: usize) {
    let counts = COUNTS.get();
    let live = (counts.live + taken).saturating_sub(freed);
    COUNTS.set(Counts { calls: counts.calls + usize::from(taken > 0), live, peak: counts.peak.max(live) });
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; it only counts and passes on")]
// SAFETY: every call goes to the system allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(0, layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        record(layout.size(), 0);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        record(layout.size(), new_size);
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The allocations of `work`, and by how much it raised the memory in use at its highest point.
fn count(work: impl FnOnce()) -> (usize, usize) {
    let before = COUNTS.get();
    COUNTS.set(Counts { peak: before.live, ..before });
    work();
    let after = COUNTS.get();
    (after.calls - before.calls, after.peak - before.live)
}

#[test]
fn the_counter_counts() {
    let (calls, peak) = count(|| drop(std::hint::black_box(vec![0u8; 1000])));
    assert_eq!((calls, peak), (1, 1000));
}

#[test]
fn an_event_inside_one_chunk_allocates_nothing() {
    let chunk = "event: delta\ndata: {\"text\":\"word\"}\n\n".repeat(1000);
    let mut decoder = SseDecoder::new();
    let mut seen = 0;
    let (calls, _) = count(|| decoder.decode(chunk.as_bytes(), |event| seen += event.data.len()));
    assert_eq!((calls, seen), (0, 1000 * "{\"text\":\"word\"}".len()));
}

#[test]
fn a_warm_decoder_allocates_nothing_whatever_the_chunks_and_the_events() {
    let events = b"event: delta\nid: 12\ndata: {\"text\":\"word\"}\ndata: more\nretry: 10\n\n: note\ndata: caf\xC3\xA9 \xFF\n\n";
    let stream = events.repeat(100);
    for size in [1, 7, 64, 1000, stream.len()] {
        let mut decoder = SseDecoder::new();
        let mut seen = 0;
        let mut pass = || stream.chunks(size).for_each(|chunk| decoder.decode(chunk, |_| seen += 1));
        pass();
        let (calls, _) = count(pass);
        assert_eq!((calls, seen), (0, 400), "{size}-byte chunks");
    }
}

#[test]
fn comments_and_unknown_fields_take_no_memory() {
    // Not one call, so it does not matter that a debug build stops at 64 MiB of each.
    let filler = "x".repeat(1 << 20);
    for start in [":", "datax: ", "x", "\u{FEFF}:"] {
        let mut buffer = SseFrameBuffer::new();
        let (calls, _) = count(|| {
            buffer.feed(start);
            for _ in 0..64 {
                buffer.feed(&filler);
            }
        });
        assert_eq!(calls, 0, "{start:?}");
        assert_eq!(buffer.feed("\ndata: x\n\n").len(), 1);
    }
}

#[test]
fn an_endless_event_stays_within_its_limit() {
    const LIMIT: usize = 100_000;
    let filler = "x".repeat(977);
    let line = format!("data: {filler}\n");
    for (start, more) in [("data: ", &filler), ("event: ", &filler), ("id: ", &filler), ("", &line)] {
        let mut buffer = SseFrameBuffer::with_limit(LIMIT);
        let (_, peak) = count(|| {
            buffer.feed(start);
            for _ in 0..2000 {
                buffer.feed(more);
            }
        });
        assert!(peak <= LIMIT, "{start:?} took {peak} bytes");
        assert!(peak >= LIMIT / 2, "{start:?} was not stored at all: {peak} bytes");
        assert!(buffer.take_error().is_some(), "{start:?}");
        assert_eq!(buffer.feed("\n\ndata: x\n\n").len(), 1);
    }
}

#[test]
fn dropping_an_event_gives_its_memory_back() {
    let mut buffer = SseFrameBuffer::with_limit(1_000_000);
    let before = COUNTS.get().live;
    buffer.feed("data: ");
    buffer.feed(&"x".repeat(900_000));
    assert!(COUNTS.get().live >= before + 900_000);
    buffer.feed(&"x".repeat(200_000));
    assert_eq!(COUNTS.get().live, before);
}
