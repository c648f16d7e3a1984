//! One request and its answer: sending, waiting, trying again, reading. The stream owns everything, so dropping it drops
//! the connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hanzo_backoff::Backoff;
use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ApiError, ApiErrorKind, StreamEvent};
use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use crate::failure;
use crate::http::Endpoint;
use crate::observe::{RetryNotice, RetryObserver};
use crate::reader::{Assembler, Progress, Reader};
use crate::{RetryPolicy, Timeouts};

/// How much of an error's body is read, and how long that may take.
const LONGEST_ERROR_BODY: usize = 64 * 1024;
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// The largest answer that comes as one document.
const LONGEST_DOCUMENT: usize = 16 * 1024 * 1024;
/// How long to wait for formalities once the model has said why it stopped.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// What an exchange needs.
pub(crate) struct Plan {
    pub(crate) provider: Arc<str>,
    pub(crate) model: String,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) body: Bytes,
    pub(crate) assembler: fn() -> Box<dyn Assembler>,
    pub(crate) timeouts: Timeouts,
    pub(crate) retry: RetryPolicy,
    pub(crate) observer: Option<Arc<dyn RetryObserver>>,
}

/// The answer to a request, as it arrives.
pub(crate) fn stream(plan: Plan) -> BoxStream<'static, StreamEvent> {
    let backoff = Backoff::new(plan.retry.base_ms, plan.retry.max_ms);
    let exchange = Exchange {
        plan,
        backoff,
        retries: 0,
        fell_silent: false,
        passed_on: false,
        ready: VecDeque::new(),
        phase: Phase::Send,
    };
    Box::pin(stream::unfold(exchange, |mut exchange| async move {
        exchange.next().await.map(|event| (event, exchange))
    }))
}

struct Exchange {
    plan: Plan,
    backoff: Backoff,
    retries: u32,
    fell_silent: bool,
    /// Something of the answer was given out, so the request cannot be sent again unseen.
    passed_on: bool,
    ready: VecDeque<StreamEvent>,
    phase: Phase,
}

enum Phase {
    Send,
    Read(Box<Reading>),
    Over,
}

struct Reading {
    response: Response,
    reader: Reader,
    /// When the silence has lasted too long.
    deadline: Instant,
}

impl Exchange {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.passed_on = true;
                return Some(event);
            }
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Send => match self.send().await {
                    Ok(response) => self.begin(response).await,
                    Err(error) => self.failed(error).await,
                },
                Phase::Read(reading) => self.read(reading).await,
                Phase::Over => return None,
            }
        }
    }

    async fn send(&mut self) -> Result<Response, ApiError> {
        let plan = &self.plan;
        let sending = plan.endpoint.post(plan.body.clone()).send();
        let response = match timeout(plan.timeouts.idle, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.network(error)),
            Err(_) => return Err(self.silence()),
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let retry_after = failure::retry_after(response.headers());
        let body = collect(response, LONGEST_ERROR_BODY, ERROR_BODY_TIME).await;
        let body = body.unwrap_or_else(|partial| partial);
        Err(failure::from_response(status, retry_after, &body, plan.endpoint.redactor()))
    }

    /// Looks at what sort of answer it is.
    async fn begin(&mut self, response: Response) {
        let media_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        let media_type =
            media_type.and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
        let mut reader = Reader::new((self.plan.assembler)());
        if media_type.contains("html") {
            let message =
                format!("{} answered with a web page, not with an API's answer", self.plan.endpoint.host());
            let hint = "hint: check the provider's `base_url`";
            return self
                .failed(failure::plain(ApiErrorKind::Malformed, format!("{message}\n\n{hint}")))
                .await;
        }
        if media_type.contains("json") && !media_type.contains("stream") {
            let mut out = Vec::new();
            match collect(response, LONGEST_DOCUMENT, self.plan.timeouts.idle).await {
                Ok(body) => reader.document(&String::from_utf8_lossy(&body), &mut out),
                Err(_) => reader
                    .fail(failure::plain(ApiErrorKind::Network, "the answer did not arrive whole"), &mut out),
            }
            return self.take(out).await;
        }
        let deadline = Instant::now() + self.plan.timeouts.idle;
        self.phase = Phase::Read(Box::new(Reading { response, reader, deadline }));
    }

    async fn read(&mut self, mut reading: Box<Reading>) {
        let mut out = Vec::new();
        match timeout_at(reading.deadline, reading.response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let progress = reading.reader.feed(&chunk, &mut out);
                if reading.reader.has_stopped() {
                    reading.deadline = reading.deadline.min(Instant::now() + CLOSING_TIME);
                } else if progress == Progress::Some {
                    reading.deadline = Instant::now() + self.plan.timeouts.idle;
                }
            }
            Ok(Ok(None)) => reading.reader.end(&mut out),
            Ok(Err(error)) => {
                let error = self.network(error);
                reading.reader.fail(error, &mut out);
            }
            Err(_) if reading.reader.has_stopped() => reading.reader.complete(&mut out),
            Err(_) => {
                let error = self.silence();
                reading.reader.fail(error, &mut out);
            }
        }
        if !reading.reader.is_over() {
            self.phase = Phase::Read(reading);
        }
        self.take(out).await;
    }

    /// Takes events to give out; a failure that is all there is may lead to another try instead.
    async fn take(&mut self, mut out: Vec<StreamEvent>) {
        if let Some(StreamEvent::Error(error)) = out.pop_if(|event| matches!(event, StreamEvent::Error(_))) {
            let error = ApiError {
                message: self.plan.endpoint.redactor().message_with_hint(&error.message),
                ..error
            };
            self.passed_on |= !out.is_empty();
            self.ready.extend(out);
            self.failed(error).await;
        } else {
            self.ready.extend(out);
        }
    }

    /// Tries again later when that makes sense, otherwise ends the stream.
    async fn failed(&mut self, error: ApiError) {
        let RetryPolicy { max_retries, .. } = self.plan.retry;
        if self.passed_on || !error.kind.is_transient() || self.retries >= max_retries {
            self.phase = Phase::Over;
            self.ready.push_back(StreamEvent::Error(error));
            return;
        }
        self.retries += 1;
        let delay = self.backoff.next_delay_after(error.retry_after_ms.map(Duration::from_millis));
        if let Some(observer) = &self.plan.observer {
            observer.retrying(&RetryNotice {
                provider: &self.plan.provider,
                model: &self.plan.model,
                retry: self.retries,
                max_retries,
                delay,
                error: &error,
            });
        }
        tokio::time::sleep(delay).await;
        self.phase = Phase::Send;
    }

    fn silence(&mut self) -> ApiError {
        // A server that hangs is given one more chance and not all of them: each costs the whole idle time.
        if std::mem::replace(&mut self.fell_silent, true) {
            self.retries = self.plan.retry.max_retries;
        }
        let (host, idle) = (self.plan.endpoint.host(), self.plan.timeouts.idle);
        failure::plain(ApiErrorKind::Network, format!("{host} sent nothing for {idle:?}"))
    }

    fn network(&self, error: reqwest::Error) -> ApiError {
        let host = self.plan.endpoint.host();
        let what = if error.is_connect() {
            "cannot connect to"
        } else if error.is_timeout() {
            "no answer in time from"
        } else {
            "lost the connection to"
        };
        let reason = self.plan.endpoint.redactor().message(&chain(&error.without_url()));
        failure::plain(ApiErrorKind::Network, format!("{what} {host}: {reason}"))
    }
}

/// An error with its causes: the library's own words say little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The body, up to `limit` bytes and no longer than `time`; what there is so far when it is not whole.
async fn collect(mut response: Response, limit: usize, time: Duration) -> Result<Vec<u8>, Vec<u8>> {
    let mut body = Vec::new();
    let deadline = Instant::now() + time;
    loop {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                body.extend_from_slice(&chunk[..chunk.len().min(limit - body.len())]);
                if body.len() >= limit {
                    return Err(body);
                }
            }
            Ok(Ok(None)) => return Ok(body),
            Ok(Err(_)) | Err(_) => return Err(body),
        }
    }
}
