//! The HTTP side of a provider: where it is, how to prove who we are, and a client that can reach it.

use hanzo_net::client::{self, Tls};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};

use crate::quirks::Auth;
use crate::redact::{Redactor, without_userinfo};
use crate::{ProviderConfig, ProviderError};

/// One vendor's endpoint.
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    redactor: Redactor,
}

/// What a kind knows of its endpoints.
pub(crate) struct Conventions<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) path: &'a str,
    pub(crate) auth: Auth,
    pub(crate) headers: &'a [(&'static str, String)],
}

impl Endpoint {
    pub(crate) fn new(config: &ProviderConfig, usual: &Conventions<'_>) -> Result<Self, ProviderError> {
        let base = config.base_url.as_deref().unwrap_or(usual.base_url);
        let url = url(config, base, usual.path)?;
        let client = client(config, &url)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in usual.headers {
            headers.insert(*name, sensitive(config, name, value)?);
        }
        if let Some(key) = config.api_key.as_ref().filter(|key| !key.is_empty()) {
            let value = |text: &str| sensitive(config, "api_key", text);
            match usual.auth {
                Auth::Bearer => {
                    headers.insert("authorization", value(&format!("Bearer {}", key.expose()))?);
                }
                Auth::XApiKey => {
                    headers.insert("x-api-key", value(key.expose())?);
                }
                Auth::ApiKey => {
                    headers.insert("api-key", value(key.expose())?);
                }
                Auth::None => {}
            }
        }
        for (name, value) in &config.headers {
            let parsed = HeaderName::try_from(name.as_str())
                .map_err(|_| ProviderError::Header { provider: config.name.clone(), header: name.clone() })?;
            headers.insert(parsed, sensitive(config, name, value.expose())?);
        }
        let secrets = config.headers.iter().map(|(_, value)| value).chain(&config.api_key);
        let redactor = Redactor::new(secrets.map(crate::ApiKey::expose));
        Ok(Self { client, url, headers, redactor })
    }

    pub(crate) fn post(&self, body: bytes::Bytes) -> reqwest::RequestBuilder {
        self.client.post(self.url.clone()).headers(self.headers.clone()).body(body)
    }

    /// Takes this provider's secrets out of text.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The host, to name it in messages.
    pub(crate) fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or("the vendor");
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

fn sensitive(config: &ProviderConfig, header: &str, value: &str) -> Result<HeaderValue, ProviderError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| ProviderError::Header { provider: config.name.clone(), header: header.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The address requests go to. People write base URLs with and without a slash, a version or the whole path.
fn url(config: &ProviderConfig, base: &str, path: &str) -> Result<Url, ProviderError> {
    let wrong = |reason: String| ProviderError::BaseUrl {
        provider: config.name.clone(),
        url: without_userinfo(base),
        reason,
    };
    let mut url = Url::parse(base.trim()).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("`{}` is not a scheme for an API", url.scheme())));
    }
    let before = url.path().trim_end_matches('/').to_owned();
    let path = path.trim_start_matches('/');
    let whole = if before.ends_with(path) {
        before
    } else {
        // `…/v1` and `v1/messages` share the version.
        let shared = path.split_once('/').filter(|(first, _)| before.ends_with(&format!("/{first}")));
        format!("{before}/{}", shared.map_or(path, |(_, rest)| rest))
    };
    url.set_path(&whole);
    Ok(url)
}

fn client(config: &ProviderConfig, url: &Url) -> Result<Client, ProviderError> {
    let built = client::build(Tls::for_url(url), |builder| {
        let builder = builder
            .connect_timeout(config.timeouts.connect)
            .tcp_keepalive(std::time::Duration::from_secs(30))
            // A redirection would carry the credential to an address nobody configured.
            .redirect(redirect::Policy::none())
            // A compressed stream arrives in blocks, not as the model speaks.
            .no_gzip();
        if client::is_loopback(url) { builder.no_proxy() } else { builder }
    });
    built.map_err(|error| ProviderError::Client {
        provider: config.name.clone(),
        reason: error.reason().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(base: &str, path: &str) -> Result<String, ProviderError> {
        url(&ProviderConfig::new("p", "k"), base, path).map(|url| url.to_string())
    }

    #[test]
    fn base_urls_are_taken_as_people_write_them() {
        for base in ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions"] {
            assert_eq!(address(base, "/chat/completions").unwrap(), "http://h/v1/chat/completions");
        }
        for base in ["https://h", "https://h/", "https://h/v1", "https://h/v1/messages"] {
            assert_eq!(address(base, "/v1/messages").unwrap(), "https://h/v1/messages");
        }
        assert_eq!(address("https://h/a/?api-version=1", "/b").unwrap(), "https://h/a/b?api-version=1");
        assert_eq!(
            address("https://h/anthropic", "/v1/messages").unwrap(),
            "https://h/anthropic/v1/messages"
        );
    }

    #[test]
    fn an_unusable_address_is_named_without_its_password() {
        for base in ["ftp://me:secret@h/", "h/v1", ""] {
            let error = address(base, "/x").unwrap_err().to_string();
            assert!(
                error.contains("base_url") && error.contains("hint:") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
