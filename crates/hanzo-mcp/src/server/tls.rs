//! TLS for the server: the owner's certificate, and a listener that secures connections beside each other, so that a caller that
//! says nothing keeps nobody out.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::door::{Door, Reason};

/// How many callers may be about to secure their connection, and for how long each.
const MOST_GREETING: usize = 128;
const GREETING: Duration = Duration::from_secs(10);
/// How many secured connections wait to be taken up.
const WAITING: usize = 16;

/// What connections are secured with.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the {what} `{}`: {source}\n\nhint: it is a PEM file that this user may read", .path.display())]
    Read {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no certificate in the file.
    #[error("there is no certificate in `{}`\n\nhint: a PEM file has it between `-----BEGIN CERTIFICATE-----` and `-----END CERTIFICATE-----`", .path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// There is no key in the file.
    #[error("there is no private key in `{}`\n\nhint: a PEM file has it between `-----BEGIN PRIVATE KEY-----` and `-----END PRIVATE KEY-----`", .path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is locked.
    #[error("the private key in `{}` is encrypted\n\nhint: `openssl pkey -in {} -out unlocked.pem` writes it without its passphrase", .path.display(), .path.display())]
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// The two files are not a pair.
    #[error("the key `{}` does not belong to the certificate `{}`\n\nhint: the first certificate in the file has to be the server's own, and those that vouch for it follow", .key.display(), .certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// Something else is wrong with them.
    #[error("the certificate `{}` and the key `{}` cannot be used: {source}\n\nhint: use an ECDSA, Ed25519 or RSA key and a certificate for it", .key.display(), .certificate.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What.
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a certificate, with those that vouch for it, and its key: two PEM files.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |what: &'static str, path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Read { what, path: path.to_owned(), source })
        };
        let text = read("certificate", certificate)?;
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&text).collect::<Result<_, pem::Error>>().unwrap_or_default();
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: certificate.to_owned() });
        }
        let text = read("private key", key)?;
        let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
            let path = key.to_owned();
            let locked = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
            let is_locked = text.windows(locked.len()).any(|found| found == locked);
            if is_locked { TlsError::Encrypted { path } } else { TlsError::NoKey { path } }
        })?;
        let unusable = |source| match source {
            rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch) => {
                TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }
            }
            source => TlsError::Unusable { certificate: certificate.to_owned(), key: key.to_owned(), source },
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// What somebody hears who speaks HTTP without TLS, such as a person with the wrong link.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 43\r\nconnection: close\r\n\r\nthis address is secured: call it by `https`";
/// What a TLS connection begins with.
const HANDSHAKE: u8 = 0x16;

impl Tls {
    async fn greet(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
            // Taken first: what is left unread would make the system break the connection off before the answer is there.
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await?;
            stream.write_all(PLAIN).await?;
            stream.shutdown().await?;
            return Err(io::Error::other("it is not TLS"));
        }
        self.0.accept(stream).await
    }
}

/// Hands out connections that are secured.
pub(super) struct TlsListener {
    address: SocketAddr,
    secured: mpsc::Receiver<Secured>,
    _accepting: AbortOnDropHandle<()>,
}

type Secured = (TlsStream<TcpStream>, SocketAddr);

impl TlsListener {
    pub(super) fn new(listener: TcpListener, tls: Tls, door: Arc<Door>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (ready, secured) = mpsc::channel(WAITING);
        let accepting = tokio::spawn(accept(listener, tls, door, ready));
        Ok(Self { address, secured, _accepting: AbortOnDropHandle::new(accepting) })
    }
}

async fn accept(mut listener: TcpListener, tls: Tls, door: Arc<Door>, ready: mpsc::Sender<Secured>) {
    let room = Arc::new(Semaphore::new(MOST_GREETING));
    let mut greeting = JoinSet::new();
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        // It sees to errors of the system itself, as it does without TLS.
        let (stream, caller) = Listener::accept(&mut listener).await;
        let (tls, door, ready) = (tls.clone(), Arc::clone(&door), ready.clone());
        greeting.spawn(async move {
            let _ = stream.set_nodelay(true);
            match tokio::time::timeout(GREETING, tls.greet(stream)).await {
                Ok(Ok(stream)) => {
                    drop(place);
                    // Nobody takes it up when the server ends.
                    let _ = ready.send((stream, caller)).await;
                }
                _ => door.show(Some(caller.ip()), Reason::Handshake),
            }
        });
        while greeting.try_join_next().is_some() {}
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Secured {
        match self.secured.recv().await {
            Some(secured) => secured,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
