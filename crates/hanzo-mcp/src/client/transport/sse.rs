//! The transport of protocol 2024-11-05: an event stream that begins with a second address, to which messages are posted.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, sink, stream};
use hanzo_sse::{SseFrame, SseFrameBuffer};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Client;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use url::Url;

use super::{In, Out, Way};
use crate::client::MOST_MESSAGE_BYTES;
use crate::client::config::RemoteConfig;

/// Messages that wait to be read. A server that sends faster than it is listened to waits.
const WAITING: usize = 64;
/// How long the server has to say where messages go.
const FIRST_EVENT: Duration = Duration::from_secs(10);

pub(super) async fn open(way: &Way<'_>, remote: &RemoteConfig) -> Result<(Out, In), String> {
    let url = remote.parse(&["http", "https"])?;
    let client = super::http::client(remote, &url, way.config.timeout)?;
    let headers: HeaderMap<HeaderValue> = remote.header_map()?.into_iter().collect::<HeaderMap<_>>();
    let asked = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream").send();
    let answer = asked.await.map_err(|error| super::chain(&error.without_url()))?;
    if !answer.status().is_success() {
        return Err(format!("it answered with HTTP {}", answer.status()));
    }
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Err("it does not answer with an event stream".to_owned());
    }
    let (frames, mut incoming) = mpsc::channel(WAITING);
    tokio::spawn(read(answer, frames));
    let first = tokio::time::timeout(FIRST_EVENT, incoming.recv()).await;
    let first =
        first.map_err(|_| "it does not say where messages go")?.ok_or("its event stream ended at once")?;
    if first.event.as_deref() != Some("endpoint") {
        return Err("its event stream does not begin with an endpoint".to_owned());
    }
    let endpoint = endpoint(&url, &first.data)?;
    let messages = stream::unfold(incoming, |mut incoming| async move {
        loop {
            let frame = incoming.recv().await?;
            let is_message = frame.event.as_deref().is_none_or(|event| event == "message");
            if let (true, Ok(message)) =
                (is_message, serde_json::from_str::<ServerJsonRpcMessage>(&frame.data))
            {
                return Some((message, incoming));
            }
        }
    });
    let poster = Arc::new(Poster { client, endpoint, headers, timeout: way.config.timeout });
    let out = sink::unfold(poster, |poster, message: ClientJsonRpcMessage| async move {
        poster.post(&message).await?;
        Ok::<_, io::Error>(poster)
    });
    Ok((Box::pin(out), messages.boxed()))
}

/// Where messages go. A server that names another origin would have our credentials sent there.
fn endpoint(url: &Url, said: &str) -> Result<Url, String> {
    let endpoint = url.join(said.trim()).map_err(|_| "its endpoint is not an address".to_owned())?;
    if endpoint.origin() != url.origin() {
        let origin = endpoint.origin().ascii_serialization();
        return Err(format!("it wants messages to be sent to {origin}, which is another origin"));
    }
    Ok(endpoint)
}

struct Poster {
    client: Client,
    endpoint: Url,
    headers: HeaderMap<HeaderValue>,
    timeout: Duration,
}

impl Poster {
    async fn post(&self, message: &ClientJsonRpcMessage) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let sent = self
            .client
            .post(self.endpoint.clone())
            .headers(self.headers.clone())
            .header(HeaderName::from_static("content-type"), "application/json")
            .timeout(self.timeout)
            .body(body)
            .send();
        let answer = sent.await.map_err(|error| io::Error::other(error.without_url()))?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(io::Error::other(format!("it answered with HTTP {}", answer.status())))
    }
}

async fn read(answer: reqwest::Response, frames: mpsc::Sender<SseFrame>) {
    let mut bytes = answer.bytes_stream();
    let mut buffer = SseFrameBuffer::with_limit(MOST_MESSAGE_BYTES);
    while let Some(Ok(chunk)) = bytes.next().await {
        for frame in buffer.feed_bytes(&chunk) {
            if frames.send(frame).await.is_err() {
                return;
            }
        }
        // An event that was too large is dropped; the stream goes on.
        let _ = buffer.take_error();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_with_the_origin_that_was_configured() {
        let url = Url::parse("https://a.test:8443/sse?key=1").unwrap();
        assert_eq!(endpoint(&url, "/messages?s=1").unwrap().as_str(), "https://a.test:8443/messages?s=1");
        assert_eq!(endpoint(&url, " messages ").unwrap().path(), "/messages");
        for other in [
            "https://b.test/m",
            "//b.test/m",
            "http://a.test:8443/m",
            "https://a.test/m",
            "file:///etc/passwd",
        ] {
            assert!(endpoint(&url, other).unwrap_err().contains("another origin"), "{other}");
        }
    }
}
