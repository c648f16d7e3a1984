//! WebSocket: one JSON message per text frame, subprotocol `mcp`.

use std::io;

use futures_util::{SinkExt as _, StreamExt as _, future};
use http::HeaderValue;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async_tls_with_config;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use url::Url;

use super::{In, Out, Way};
use crate::client::MOST_MESSAGE_BYTES;
use crate::client::address::{reach_of, resolve};
use crate::client::config::RemoteConfig;

pub(super) async fn open(way: &Way<'_>, remote: &RemoteConfig) -> Result<(Out, In), String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut url = remote.parse(&["ws", "wss", "http", "https"])?;
    let scheme = match url.scheme() {
        "https" | "wss" => "wss",
        _ => "ws",
    };
    // Both names mean the same to the server; only these mean anything to the client.
    url.set_scheme(scheme).map_err(|()| "`url` is not an address".to_owned())?;
    let stream = tcp(&url, remote).await?;
    let mut request = url.as_str().into_client_request().map_err(|error| error.to_string())?;
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    for (name, value) in remote.header_map()? {
        request.headers_mut().insert(name, value);
    }
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MOST_MESSAGE_BYTES))
        .max_frame_size(Some(MOST_MESSAGE_BYTES));
    let greeted = client_async_tls_with_config(request, stream, Some(limits), None);
    let greeted = tokio::time::timeout(way.config.timeout, greeted).await;
    let (socket, _) = greeted.map_err(|_| "it does not answer")?.map_err(|error| error.to_string())?;
    let (sink, stream) = socket.split();
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
