//! What is begun while the model thinks.

use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use futures_util::Stream;
use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ModelRequest, StreamEvent};
use hanzo_protocol::roles::ApiClient;

/// A model whose first answer is waited for usefully: `begin` is called once, when the first request is on its way.
pub struct WhileThinking {
    inner: Arc<dyn ApiClient>,
    begin: Arc<BeginOnce>,
}

struct BeginOnce {
    once: Once,
    begin: Box<dyn Fn() + Send + Sync>,
}

impl WhileThinking {
    /// `inner`, with `begin` beside its first request.
    pub fn new(inner: Arc<dyn ApiClient>, begin: impl Fn() + Send + Sync + 'static) -> Self {
        Self { inner, begin: Arc::new(BeginOnce { once: Once::new(), begin: Box::new(begin) }) }
    }
}

impl ApiClient for WhileThinking {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        let answer = self.inner.send_message(request);
        if self.begin.once.is_completed() {
            return answer;
        }
        Box::pin(Beside { answer, begin: Arc::clone(&self.begin) })
    }
}

struct Beside {
    answer: BoxStream<'static, StreamEvent>,
    begin: Arc<BeginOnce>,
}

impl Stream for Beside {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let polled = self.answer.as_mut().poll_next(context);
        // Not before: the request itself comes first.
        if polled.is_pending() {
            self.begin.once.call_once(|| (self.begin.begin)());
        }
        polled
    }
}
