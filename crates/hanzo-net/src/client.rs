//! HTTP clients that can be made on every machine.

use std::net::IpAddr;

use reqwest::{Client, ClientBuilder};
use url::Url;

/// A client could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot make an HTTP client: {0}")]
pub struct ClientError(String);

impl ClientError {
    /// What the library said.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

/// Whether a client speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tls {
    /// It does, with the certificates the system trusts, or those we carry where the system has none.
    Needed,
    /// Nothing it reaches does: reading the system's certificates would cost milliseconds of every start.
    Unneeded,
}

impl Tls {
    /// What a client for `url` alone needs. A proxy in between may want TLS for itself.
    pub fn for_url(url: &Url) -> Self {
        if url.scheme() == "http" && !may_use_proxy(url) { Self::Unneeded } else { Self::Needed }
    }
}

/// Makes a client. `configure` is called once for each attempt; it sees a builder with our name and nothing else set.
pub fn build(tls: Tls, configure: impl Fn(ClientBuilder) -> ClientBuilder) -> Result<Client, ClientError> {
    install_tls();
    let builder =
        || configure(Client::builder().user_agent(concat!("hanzo-dev/", env!("CARGO_PKG_VERSION"))));
    let built = match tls {
        Tls::Unneeded => builder().tls_certs_only([]).build(),
        // Without a certificate store on the system the client cannot be made: then with the one we carry.
        Tls::Needed => builder().build().or_else(|_| builder().tls_certs_only(carried_roots()).build()),
    };
    built.map_err(|error| ClientError(error.without_url().to_string()))
}

/// Chooses the code behind TLS for the process. It fails when somebody chose before, which is as good.
pub(crate) fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Whether a URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// Whether a proxy may stand between us and a plain address.
fn may_use_proxy(url: &Url) -> bool {
    !is_loopback(url)
        && ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some())
}

fn carried_roots() -> Vec<reqwest::Certificate> {
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    roots.filter_map(|root| reqwest::Certificate::from_der(root).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_recognised_in_all_its_spellings() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://0x7f.1/", true),
            ("http://localhost/v1", true),
            ("http://[::1]:8080", true),
            ("http://example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn the_roots_we_carry_make_a_client() {
        install_tls();
        assert!(carried_roots().len() > 50);
        Client::builder().tls_certs_only(carried_roots()).build().unwrap();
        build(Tls::Needed, |builder| builder).unwrap();
        build(Tls::Unneeded, |builder| builder).unwrap();
    }
}
