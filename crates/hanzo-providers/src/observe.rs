//! Saying what happens while a stream yields nothing: a request that is tried again may be quiet for half a minute.

use std::time::Duration;

use hanzo_protocol::message::ApiError;

/// Is told when a request failed and will be sent again. Called from inside the stream: it must not block.
pub trait RetryObserver: Send + Sync {
    /// `notice.error` happened, and the request is sent again after `notice.delay`.
    fn retrying(&self, notice: &RetryNotice<'_>);
}

impl<F: Fn(&RetryNotice<'_>) + Send + Sync> RetryObserver for F {
    fn retrying(&self, notice: &RetryNotice<'_>) {
        self(notice);
    }
}

/// A request that will be sent again.
#[derive(Debug, Clone, Copy)]
pub struct RetryNotice<'a> {
    /// The provider's configured name.
    pub provider: &'a str,
    /// The model that was asked.
    pub model: &'a str,
    /// The number of the coming retry, from 1.
    pub retry: u32,
    /// How many retries there are at most.
    pub max_retries: u32,
    /// How long until then.
    pub delay: Duration,
    /// What went wrong.
    pub error: &'a ApiError,
}
