//! Just enough HTTP/1.1 to read a client's requests.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;

use super::reply::Api;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST`, usually.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// When its last byte was read.
    pub at: Instant,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("the request's body is not JSON: {error}"))
    }

    /// The messages of the conversation, in the protocol's own form.
    pub fn messages(&self) -> Vec<Value> {
        self.json()["messages"].as_array().cloned().unwrap_or_default()
    }

    /// The protocol the path asks for.
    pub fn api(&self) -> Option<Api> {
        let path = self.path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            Some(Api::OpenAi)
        } else if path.ends_with("/messages") {
            Some(Api::Anthropic)
        } else {
            None
        }
    }
}

/// The next request on a connection; `None` when the client has no more.
pub(super) fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Vec::new(), at: Instant::now() };
    if request.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        read_chunks(stream, &mut request.body)?;
    } else {
        let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body)?;
    }
    request.at = Instant::now();
    Ok(Some(request))
}

fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk)?;
        if size == 0 {
            return Ok(());
        }
        body.extend_from_slice(&chunk[..size]);
    }
}
