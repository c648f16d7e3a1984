//! Streamable HTTP: requests by POST, answers as JSON or as an event stream, sessions and resumption by the SDK.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, StatusCode};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use url::Url;

use super::Way;
use crate::client::MOST_MESSAGE_BYTES;
use crate::client::address::{Guarded, reach_of};
use crate::client::config::{Reachable, RemoteConfig};
use crate::client::fault::McpError;

/// How many redirections of a server to itself are followed.
const MOST_HOPS: usize = 5;

pub(super) fn transport(
    way: &Way<'_>,
    remote: &RemoteConfig,
) -> Result<StreamableHttpClientTransport<Client>, McpError> {
    let url = remote.parse(&["http", "https"]).map_err(|reason| way.settings(reason))?;
    let client = client(remote, &url, way.config.timeout).map_err(|reason| way.unreachable(&reason))?;
    let headers: HashMap<_, _> =
        remote.header_map().map_err(|reason| way.settings(reason))?.into_iter().collect();
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers)
        // One more than calls there can be: notices must not wait for calls.
        .max_concurrent_requests(way.config.concurrency + 8)
        .max_sse_event_size(MOST_MESSAGE_BYTES);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// A client that connects to nothing but what the address allows.
pub(super) fn client(remote: &RemoteConfig, url: &Url, timeout: Duration) -> Result<Client, String> {
    // Fails when somebody installed one before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let reachable = reach_of(url, remote.reachable);
    let builder = Client::builder()
        .user_agent(concat!("hanzo-dev/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeout)
        .dns_resolver(Arc::new(Guarded(reachable)))
        .redirect(Policy::custom(hop));
    let builder = if reachable == Reachable::AlsoPrivate && remote.reachable == Reachable::Public {
        // What is named by its number, or is this machine, is nobody's to stand in between.
        builder.no_proxy()
    } else {
        builder
    };
    // Nothing of a plain address speaks TLS, and reading the system's certificates takes milliseconds.
    let builder = if url.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
    builder.build().map_err(|error| error.without_url().to_string())
}

/// Follows a server to another place of its own and nowhere else: what is sent belongs to the origin that was configured.
fn hop(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_method =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let from = attempt.previous().last();
    let same = from.is_some_and(|from| from.origin() == attempt.url().origin());
    if !keeps_method || !same {
        return attempt.error("the server sends us to another address, which is not followed");
    }
    if attempt.previous().len() > MOST_HOPS {
        return attempt.error("the server sends us in circles");
    }
    attempt.follow()
}
