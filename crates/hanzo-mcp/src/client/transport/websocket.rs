//! WebSocket: one JSON message per text frame, subprotocol `mcp`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _, future};
use http::HeaderValue;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};
use url::Url;

use super::{In, Out};
use crate::client::MOST_MESSAGE_BYTES;
use crate::client::address::{reach_of, resolve};
use crate::client::config::RemoteConfig;

/// A connection.
pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Connects within `timeout`. Certificates in the PEM file `authority` vouch for the server, or those this machine trusts.
pub(crate) async fn dial(
    remote: &RemoteConfig,
    timeout: Duration,
    authority: Option<&Path>,
) -> Result<Socket, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut url = remote.parse(&["ws", "wss", "http", "https"])?;
    let scheme = match url.scheme() {
        "https" | "wss" => "wss",
        _ => "ws",
    };
    // Both names mean the same to the server; only these mean anything to the client.
    url.set_scheme(scheme).map_err(|()| "`url` is not an address".to_owned())?;
    let connector = authority.map(connector).transpose()?;
    let mut request = url.as_str().into_client_request().map_err(|error| error.to_string())?;
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    for (name, value) in remote.header_map()? {
        request.headers_mut().insert(name, value);
    }
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MOST_MESSAGE_BYTES))
        .max_frame_size(Some(MOST_MESSAGE_BYTES));
    let greeted = async {
        let stream = tcp(&url, remote).await?;
        let greeted = client_async_tls_with_config(request, stream, Some(limits), connector).await;
        greeted.map_err(|error| error.to_string())
    };
    let greeted = tokio::time::timeout(timeout, greeted).await;
    let (socket, _) = greeted.map_err(|_| "it does not answer")??;
    Ok(socket)
}

/// Believes those servers that a certificate in the file vouches for.
fn connector(authority: &Path) -> Result<Connector, String> {
    let unusable = |why: &dyn std::fmt::Display| {
        format!(
            "the certificates in `{}` cannot be used: {why}\n\nhint: it is a PEM file with the certificate that vouches for the server",
            authority.display()
        )
    };
    let mut roots = rustls::RootCertStore::empty();
    let text = std::fs::read(authority).map_err(|error| unusable(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"there are none"));
    }
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(Connector::Rustls(Arc::new(config)))
}

pub(super) async fn open(remote: &RemoteConfig, timeout: Duration) -> Result<(Out, In), String> {
    let (sink, stream) = dial(remote, timeout, None).await?.split();
    let sink = sink.sink_map_err(io::Error::other).with(|message: ClientJsonRpcMessage| {
        future::ready(serde_json::to_string(&message).map(Message::text).map_err(io::Error::other))
    });
    let whole = stream.take_while(|frame| future::ready(!is_over(frame)));
    let messages = whole.filter_map(|frame| {
        future::ready(match frame {
            Ok(Message::Text(text)) => serde_json::from_str::<ServerJsonRpcMessage>(&text).ok(),
            Ok(Message::Binary(bytes)) => serde_json::from_slice::<ServerJsonRpcMessage>(&bytes).ok(),
            _ => None,
        })
    });
    Ok((Box::pin(sink), messages.boxed()))
}

fn is_over(frame: &Result<Message, SocketError>) -> bool {
    matches!(frame, Ok(Message::Close(_)) | Err(_))
}

/// A connection to an address that was looked at.
async fn tcp(url: &Url, remote: &RemoteConfig) -> Result<TcpStream, String> {
    let host = url.host_str().ok_or("`url` has no host")?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().ok_or("`url` has no port")?;
    let mut failed = "there is no address".to_owned();
    for address in resolve(host, port, reach_of(url, remote.reachable)).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failed = error.to_string(),
        }
    }
    Err(failed)
}
