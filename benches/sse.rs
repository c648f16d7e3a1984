//! How fast the server-sent events parser is beside two crates people use for the same job, and whether its cost
//! stays linear when the network cuts the stream small.
//!
//! All candidates read the same bytes in the same chunks, made beforehand. The other two are streams over a stream;
//! theirs is always ready, so `block_on` polls without ever waiting.

use std::convert::Infallible;
use std::fmt::Write as _;

use bytes::Bytes;
use eventsource_stream::Eventsource as _;
use futures::StreamExt as _;
use futures::executor::block_on;
use hanzo_benches::{Candidate, compare, print_table};
use hanzo_sse::{SseDecoder, SseFrameBuffer};

const STREAM_BYTES: usize = 4 * 1024 * 1024;
const ROUNDS: usize = 21;

/// Pieces of an answer as models cut them, with the escapes and the non-ASCII text that real answers have.
const TOKENS: [&str; 16] = [
    "The",
    " function",
    " returns",
    " `Option<usize>`",
    ",",
    " so",
    " you",
    " can",
    " write",
    "\\n\\n```rust\\n",
    "let x = \\\"y\\\";",
    " café",
    " →",
    "。",
    " iterator",
    ".",
];

fn main() {
    let openai = model_stream(|out, token, n| {
        let _ = write!(
            out,
            "data: {{\"id\":\"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG\",\"object\":\"chat.completion.chunk\",\
             \"created\":17415{n:05},\"model\":\"gpt-4o-2024-08-06\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_fc9f1d7035\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{token}\"}},\
             \"logprobs\":null,\"finish_reason\":null}}]}}\n\n"
        );
    });
    let anthropic = model_stream(|out, token, n| {
        if n % 200 == 0 {
            out.push_str("event: ping\ndata: {\"type\": \"ping\"}\n\n");
        }
        let _ = write!(
            out,
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":\"{token}\"}}}}\n\n"
        );
    });

    for (title, stream) in [("OpenAI-style", &openai), ("Anthropic-style", &anthropic)] {
        compare_crates(title, stream, 16 * 1024);
    }
    compare_crates("OpenAI-style", &openai, 1024);

    let one_event = format!("data: {}\n\n", "0123456789abcdef".repeat(STREAM_BYTES / 16));
    let many_lines = format!(
        "{}\n",
        "data: a line of sixty-four bytes, which is what people call short\n".repeat(STREAM_BYTES / 66)
    );
    chunk_sizes(&[
        ("OpenAI-style frames", &openai),
        ("Anthropic-style frames", &anthropic),
        ("one event, one 4 MiB line", &one_event),
        ("one event, 64 K lines", &many_lines),
    ]);
}

fn model_stream(frame: impl Fn(&mut String, &str, usize)) -> String {
    let mut out = String::with_capacity(STREAM_BYTES + 1024);
    for n in 0.. {
        if out.len() >= STREAM_BYTES {
            break;
        }
        frame(&mut out, TOKENS[n * 7 % TOKENS.len()], n);
    }
    out
}

/// Reads all chunks and returns what [`weigh`] found in them.
type Work = fn(&[Bytes]) -> u64;

fn compare_crates(title: &str, stream: &str, chunk_size: usize) {
    let chunks: Vec<Bytes> =
        Bytes::from(stream.to_owned()).chunks(chunk_size).map(Bytes::copy_from_slice).collect();
    let works: [(&str, Work); 4] = [
        ("`hanzo_sse::SseDecoder`", decoder),
        ("`hanzo_sse::SseFrameBuffer` (owned)", frame_buffer),
        ("`sse-stream` 0.2", sse_stream),
        ("`eventsource-stream` 0.2", eventsource_stream),
    ];
    let expected = decoder(&chunks);
    for (label, work) in works {
        assert_eq!(work(&chunks), expected, "{label} reads other events");
    }
    let chunks = &chunks;
    let mut candidates = works.map(|(label, work)| Candidate::new(label, move || work(chunks)));
    let rows = compare(ROUNDS, &mut candidates);
    print_table(&format!("{title}, {chunk_size}-byte chunks"), Some(stream.len()), &rows);
}

/// What every candidate returns: the bytes of data and of event types, so that each has to produce both.
fn weigh(event: &str, data: &str) -> u64 {
    // The others name the default type, ours leaves it out.
    let event = if event == "message" { 0 } else { event.len() };
    (event + data.len()) as u64
}

fn decoder(chunks: &[Bytes]) -> u64 {
    let mut decoder = SseDecoder::new();
    let mut sum = 0;
    for chunk in chunks {
        decoder.decode(chunk, |event| sum += weigh(event.event.unwrap_or_default(), event.data));
    }
    sum
}

fn frame_buffer(chunks: &[Bytes]) -> u64 {
    let mut buffer = SseFrameBuffer::new();
    let mut sum = 0;
    for chunk in chunks {
        for frame in buffer.feed_bytes(chunk) {
            sum += weigh(frame.event.as_deref().unwrap_or_default(), &frame.data);
        }
    }
    sum
}

fn byte_stream(chunks: &[Bytes]) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Unpin {
    // Cloning `Bytes` counts references; the copy was made before the measurement.
    futures::stream::iter(chunks.to_vec()).map(Ok)
}

fn sse_stream(chunks: &[Bytes]) -> u64 {
    let mut events = sse_stream::SseStream::from_bytes_stream(byte_stream(chunks));
    let mut sum = 0;
    block_on(async {
        while let Some(event) = events.next().await {
            let event = event.expect("the stream is well-formed");
            sum +=
                weigh(event.event.as_deref().unwrap_or_default(), event.data.as_deref().unwrap_or_default());
        }
    });
    sum
}

fn eventsource_stream(chunks: &[Bytes]) -> u64 {
    let mut events = byte_stream(chunks).eventsource();
    let mut sum = 0;
    block_on(async {
        while let Some(event) = events.next().await {
            let event = event.expect("the stream is well-formed");
            sum += weigh(&event.event, &event.data);
        }
    });
    sum
}

#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
#[expect(clippy::cast_precision_loss, reason = "a cost per byte is read to two digits")]
fn chunk_sizes(streams: &[(&str, &String)]) {
    const SIZES: [usize; 4] = [1, 7, 1024, 16 * 1024];
    println!("\n### `SseDecoder`: ns per byte by chunk size\n");
    println!("| stream | 1 B | 7 B | 1 KiB | 16 KiB |\n| --- | --- | --- | --- | --- |");
    for (title, stream) in streams {
        let mut candidates = SIZES.map(|size| {
            Candidate::new(format!("{size}"), move || {
                let mut decoder = SseDecoder::new();
                let mut sum = 0;
                for chunk in stream.as_bytes().chunks(size) {
                    decoder.decode(chunk, |event| sum += event.data.len() as u64);
                }
                sum
            })
        });
        let cells: Vec<String> = compare(ROUNDS / 2, &mut candidates)
            .iter()
            .map(|row| format!("{:.2}", row.median.as_nanos() as f64 / stream.len() as f64))
            .collect();
        println!("| {title} | {} |", cells.join(" | "));
    }
}
