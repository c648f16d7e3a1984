//! A connection without HTTP, to an address that was checked.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use crate::client::install_tls;
use crate::guard::{Guard, GuardError};

/// Bytes both ways, secured or not.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection.
pub type Connection = Box<dyn Duplex>;

/// A connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host may not be reached, or is not known.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Nothing answered.
    #[error("cannot connect to `{host}`: {source}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// The other side could not prove who it is.
    #[error("cannot secure the connection to `{host}`: {reason}")]
    Tls {
        /// Host and port.
        host: String,
        /// What was wrong.
        reason: String,
    },
}

/// Connects to the host of `url`, with TLS for `https` and `wss`.
pub async fn connect(guard: &Guard, url: &Url) -> Result<Connection, ConnectError> {
    guard.check_literal(url)?;
    let host = url.host_str().ok_or(GuardError::NoHost)?;
    let port = url.port_or_known_default().unwrap_or(80);
    let named = || format!("{host}:{port}");
    let addresses = guard.addresses(host).await?;
    let mut fault = io::Error::other("no address");
    let mut connected = None;
    for address in addresses {
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => {
                connected = Some(stream);
                break;
            }
            Err(error) => fault = error,
        }
    }
    let Some(stream) = connected else {
        return Err(ConnectError::Connect { host: named(), source: fault });
    };
    // Small messages are to leave at once; a system that cannot do that still works.
    let _ = stream.set_nodelay(true);
    if !matches!(url.scheme(), "https" | "wss") {
        return Ok(Box::new(stream));
    }
    let wrong = |reason: String| ConnectError::Tls { host: named(), reason };
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|error| wrong(error.to_string()))?;
    let connector = TlsConnector::from(tls_config());
    let secured = connector.connect(name, stream).await.map_err(|error| wrong(error.to_string()))?;
    Ok(Box::new(secured))
}

fn tls_config() -> Arc<ClientConfig> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Arc::clone(config);
    }
    install_tls();
    let config = match ClientConfig::builder().with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(_) => carried(),
    };
    Arc::clone(CONFIG.get_or_init(|| Arc::new(config)))
}

/// With the certificates we carry, for a system that has none.
fn carried() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

impl fmt::Debug for dyn Duplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{Exceptions, Range, SystemLookup};

    fn guard(range: Range) -> Guard {
        Guard::new(range, Arc::new(Exceptions::default()), Arc::new(SystemLookup))
    }

    #[tokio::test]
    async fn a_connection_goes_only_where_the_guard_allows() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("ws://{}/", listener.local_addr().unwrap())).unwrap();
        connect(&guard(Range::Anywhere), &url).await.unwrap();
        let refused = connect(&guard(Range::Public), &url).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Guard(GuardError::NotPublic { .. })), "{refused}");
        let named =
            Url::parse(&format!("ws://localhost:{}/", listener.local_addr().unwrap().port())).unwrap();
        let refused = connect(&guard(Range::Public), &named).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Guard(GuardError::NotPublic { .. })), "{refused}");
    }

    #[tokio::test]
    async fn a_server_without_tls_is_not_taken_for_one_with() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("wss://{}/", listener.local_addr().unwrap())).unwrap();
        let server = tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        });
        let error = connect(&guard(Range::Anywhere), &url).await.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        server.await.unwrap();
    }

    #[test]
    fn the_certificates_we_carry_make_a_configuration() {
        install_tls();
        carried();
        tls_config();
    }
}
