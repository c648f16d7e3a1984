//! A server on loopback that says what a test tells it to, byte by byte.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The whole head.
    pub head: String,
    pub body: String,
}

impl Asked {
    /// Such as `GET /x`.
    pub fn line(&self) -> String {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned()
    }

    pub fn path(&self) -> String {
        self.line().split(' ').nth(1).unwrap().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// What is answered.
pub enum Reply {
    /// These bytes, and the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, and then nothing.
    Stall(Vec<u8>),
    /// These bytes at first, then one of these after another with a pause, without an end.
    Drip(Vec<u8>, u8, Duration),
}

impl Reply {
    pub fn ok(media_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::with(200, &[("content-type", media_type)], body)
    }

    pub fn with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head =
            format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        Self::Bytes([head.as_bytes(), b"\r\n", body].concat())
    }

    pub fn redirect(status: u16, location: &str) -> Self {
        Self::with(status, &[("location", location)], "moved")
    }
}

/// The server. It ends with the test's runtime.
pub struct Site {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Site {
    pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), answer).await
    }

    pub async fn start_at(
        address: SocketAddr,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move {
                    // A client that goes away is what some tests are about.
                    let _ = talk(stream, &log, answer.as_ref()).await;
                });
            }
        });
        Self { address, asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn talk(
    mut stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    answer: &(impl Fn(&Asked) -> Reply + ?Sized),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let asked = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let asked = Asked { head: head.to_owned(), body: body.to_owned() };
        let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            break asked;
        }
    };
    log.lock().unwrap().push(asked.clone());
    match answer(&asked) {
        Reply::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        Reply::Stall(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending().await
        }
        Reply::Drip(first, byte, pause) => {
            stream.write_all(&first).await?;
            loop {
                tokio::time::sleep(pause).await;
                stream.write_all(&[byte]).await?;
            }
        }
    }
}
