//! Recording.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures_core::Stream;
use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ModelRequest, Reasoning, StreamEvent, ToolCall};
use hanzo_protocol::roles::ApiClient;

use super::{EventLine, Header, RequestLine, Substitutions, VERSION, digest};
use crate::redact::Redactor;

/// What to leave out of a recording.
#[derive(Debug, Clone, Default)]
pub struct RecorderOptions {
    /// Words for the header.
    pub note: String,
    /// Secrets to take out wherever they occur: API keys, and the values of variables such as `*_KEY` and `*_TOKEN`.
    pub secrets: Vec<String>,
    /// What to put names in place of.
    pub substitutions: Substitutions,
}

/// A client that writes down what another one answers.
pub struct Recorder {
    inner: Arc<dyn ApiClient>,
    tape: Arc<Tape>,
    next: AtomicUsize,
}

impl Recorder {
    /// Records what `inner` answers into `out`. The header is written at once.
    pub fn new(
        inner: Arc<dyn ApiClient>,
        mut out: impl Write + Send + 'static,
        options: RecorderOptions,
    ) -> io::Result<Self> {
        let redactor = Redactor::new(&options.secrets);
        let header = Header { cassette: VERSION, note: redactor.clean(&options.note).into_owned() };
        write_line(&mut out, &header)?;
        out.flush()?;
        let tape = Tape { out: Mutex::new(Output { out: Box::new(out), failure: None }), redactor, options };
        Ok(Self { inner, tape: Arc::new(tape), next: AtomicUsize::new(0) })
    }

    /// The first failure to write, if there was one: answers are passed on all the same.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.tape.out.lock().unwrap_or_else(PoisonError::into_inner).failure.take()
    }
}

impl ApiClient for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        let line = RequestLine {
            request: self.next.fetch_add(1, Ordering::SeqCst),
            digest: Some(digest(request, |text| self.tape.clean(text))),
            model: self.tape.clean(&request.model),
            messages: Some(request.messages.len()),
            tools: Some(request.tools.len()),
        };
        Box::pin(Recording {
            inner: self.inner.send_message(request),
            exchange: Some(Exchange { request: line, events: Vec::new() }),
            started: Instant::now(),
            tape: Arc::clone(&self.tape),
        })
    }
}

struct Tape {
    out: Mutex<Output>,
    redactor: Redactor,
    options: RecorderOptions,
}

struct Output {
    out: Box<dyn Write + Send>,
    failure: Option<io::Error>,
}

struct Exchange {
    request: RequestLine,
    events: Vec<EventLine>,
}

/// A stream that is passed on and written down. The exchange is written when the stream ends or is dropped.
struct Recording {
    inner: BoxStream<'static, StreamEvent>,
    exchange: Option<Exchange>,
    started: Instant,
    tape: Arc<Tape>,
}

impl Stream for Recording {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let polled = self.inner.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(Some(event)) => {
                let ms = Some(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
                let line = EventLine { event: event.clone(), ms };
                if let Some(exchange) = &mut self.exchange {
                    exchange.events.push(line);
                }
                if matches!(event, StreamEvent::MessageStop { .. } | StreamEvent::Error(_)) {
                    self.finish();
                }
            }
            Poll::Ready(None) => self.finish(),
            Poll::Pending => {}
        }
        polled
    }
}

impl Recording {
    fn finish(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            self.tape.write(exchange);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Tape {
    fn clean(&self, text: &str) -> String {
        self.redactor.clean(&self.options.substitutions.abstracted(text)).into_owned()
    }

    fn write(&self, exchange: Exchange) {
        let events = self.cleaned(exchange.events);
        let mut output = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut write = || {
            write_line(&mut output.out, &exchange.request)?;
            for line in &events {
                write_line(&mut output.out, line)?;
            }
            output.out.flush()
        };
        if let Err(error) = write() {
            output.failure.get_or_insert(error);
        }
    }

    /// The events without secrets. A secret may be split over deltas: a run of them is joined where that matters.
    fn cleaned(&self, events: Vec<EventLine>) -> Vec<EventLine> {
        let mut cleaned: Vec<EventLine> = Vec::new();
        let mut events = events.into_iter().peekable();
        while let Some(first) = events.next() {
            let mut run = vec![first];
            while let Some(next) = events.next_if(|next| is_same_delta(&run[0].event, &next.event)) {
                run.push(next);
            }
            let joined: String = run.iter().filter_map(|line| delta(&line.event)).collect();
            if joined.is_empty() {
                cleaned.extend(
                    run.into_iter()
                        .map(|line| EventLine { event: self.clean_event(line.event), ms: line.ms }),
                );
                continue;
            }
            let text = self.clean(&joined);
            if text == joined {
                cleaned.extend(run);
            } else if let Some(EventLine { event, ms }) = run.into_iter().next() {
                let event = match event {
                    StreamEvent::ReasoningDelta { .. } => StreamEvent::ReasoningDelta { text },
                    _ => StreamEvent::ContentDelta { text },
                };
                cleaned.push(EventLine { event, ms });
            }
        }
        cleaned
    }

    fn clean_event(&self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::Reasoning(Reasoning { text, .. }) => {
                // A signature is of no use to anybody but the vendor that signed.
                StreamEvent::Reasoning(Reasoning { text: self.clean(&text), signature: None })
            }
            StreamEvent::ToolUse(call) => {
                StreamEvent::ToolUse(ToolCall { arguments: self.clean(&call.arguments), ..call })
            }
            StreamEvent::Error(mut error) => {
                error.message = self.clean(&error.message);
                StreamEvent::Error(error)
            }
            other => other,
        }
    }
}

fn delta(event: &StreamEvent) -> Option<&str> {
    match event {
        StreamEvent::ContentDelta { text } | StreamEvent::ReasoningDelta { text } => Some(text),
        _ => None,
    }
}

fn is_same_delta(one: &StreamEvent, other: &StreamEvent) -> bool {
    delta(one).is_some() && std::mem::discriminant(one) == std::mem::discriminant(other)
}

fn write_line(out: &mut impl Write, line: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
    text.push(b'\n');
    out.write_all(&text)
}
