//! What is said while a client waits to send a request again: the stream is silent for as long.

use std::time::Duration;

use hanzo_protocol::message::ApiErrorKind;

use crate::parts::Retry;

/// A retry in a sentence, such as `rate limited, retrying in 2 s (attempt 2 of 5)`.
pub(crate) fn sentence(retry: &Retry<'_>) -> String {
    let what = match retry.error.kind {
        ApiErrorKind::Rate => "rate limited",
        ApiErrorKind::Overloaded => "the model is overloaded",
        _ => retry.error.message.lines().next().unwrap_or("the request failed"),
    };
    let Retry { attempt, attempts, .. } = retry;
    format!("{what}, retrying in {} (attempt {attempt} of {attempts})", seconds(retry.delay))
}

fn seconds(delay: Duration) -> String {
    let seconds = delay.as_secs_f64();
    if seconds < 1.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::message::ApiError;

    use super::*;

    #[test]
    fn it_says_what_happened_and_when_it_goes_on() {
        let say = |kind, message: &str, milliseconds| {
            let error = ApiError { kind, message: message.into(), status: None, retry_after_ms: None };
            let delay = Duration::from_millis(milliseconds);
            sentence(&Retry { provider: "p", model: "m", attempt: 2, attempts: 5, delay, error: &error })
        };
        assert_eq!(say(ApiErrorKind::Rate, "x", 2_000), "rate limited, retrying in 2 s (attempt 2 of 5)");
        assert_eq!(
            say(ApiErrorKind::Network, "cannot connect to h\n\nhint: x", 340),
            "cannot connect to h, retrying in 0.3 s (attempt 2 of 5)"
        );
    }
}
