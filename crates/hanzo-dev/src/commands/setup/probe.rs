//! Looks for model servers. All at once and briefly: nothing on this machine takes long to say what it is.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use hanzo_providers::presets::Preset;
use serde_json::Value;

use super::Found;

/// How long a server has for its connection, and for each piece of its answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The largest answer we read.
const MAX_ANSWER: u64 = 1024 * 1024;

/// The most models of one server that are written down.
const MAX_MODELS: usize = 20;

/// Where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    name: String,
    title: String,
    kind: String,
    /// With the path of the API, without a slash at the end.
    base_url: String,
}

impl Place {
    /// Where people run it.
    pub fn usual(preset: &Preset) -> Option<Self> {
        let port = preset.local_port?;
        Some(Self {
            name: preset.name.clone(),
            title: preset.title.clone(),
            kind: preset.kind.clone(),
            base_url: format!("http://127.0.0.1:{port}/v1"),
        })
    }

    /// An address of the user's.
    pub fn given(url: &str) -> Option<Self> {
        let base_url = url.trim_end_matches('/').to_owned();
        let (authority, _) = split(&base_url)?;
        let name = authority.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Some(Self { name, title: "a model server".to_owned(), kind: "openai".to_owned(), base_url })
    }

    /// What it serves, if it is there.
    fn ask(&self) -> Option<Found> {
        let models: Vec<String> = models(&get(&format!("{}/models", self.base_url))?)?;
        Some(Found {
            name: self.name.clone(),
            title: self.title.clone(),
            kind: self.kind.clone(),
            base_url: Some(self.base_url.clone()),
            api_key_env: None,
            models,
        })
    }
}

/// Everything that answers at `places`, in their order.
pub fn all(places: &[Place]) -> Vec<Found> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = places.iter().map(|place| scope.spawn(|| place.ask())).collect();
        asked.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}

/// The names in an OpenAI-compatible list of models. A server without any is of no use.
fn models(body: &str) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(body).ok()?;
    let names = value["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    // What a server says goes into a file and onto a screen.
    let plain = |name: &&str| name.len() < 200 && name.chars().all(|c| c.is_ascii_graphic() && c != '"');
    let names: Vec<String> = names.filter(plain).take(MAX_MODELS).map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}

/// The authority and the path of a plain HTTP address.
fn split(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    (!authority.is_empty() && !authority.contains('@')).then_some((authority, path))
}

/// The body of a small HTTP answer. Local servers speak plain HTTP, for which no client is needed.
fn get(url: &str) -> Option<String> {
    let (authority, path) = split(url)?;
    let mut addresses = if authority.contains(':') {
        authority.to_socket_addrs().ok()?
    } else {
        (authority, 80).to_socket_addrs().ok()?
    };
    let address: SocketAddr = addresses.next()?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    // HTTP/1.0: no chunks, and the answer ends with the connection.
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // A server that keeps the connection open in spite of being asked not to has said what it has to say.
    let _ = stream.take(MAX_ANSWER).read_to_end(&mut answer);
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    (status == "200").then(|| if chunked { unchunked(body) } else { body.to_owned() })
}

/// Some servers answer in chunks whatever they are asked.
fn unchunked(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16) else {
            break;
        };
        let Some(chunk) = after.get(..size).filter(|_| size > 0) else { break };
        out.push_str(chunk);
        rest = after.get(size..).map(|rest| rest.trim_start_matches("\r\n")).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_models_is_read_and_nothing_strange_taken_from_it() {
        let body = r#"{"data":[{"id":"qwen3:8b"},{"id":"\u001b[2J"},{"id":5},{}]}"#;
        assert_eq!(models(body).unwrap(), ["qwen3:8b"]);
        for nothing in ["", "{}", r#"{"data":[]}"#, "<html>"] {
            assert_eq!(models(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(unchunked("4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n"), "{\"a\":1}");
        for broken in ["", "zz\r\n", "ff\r\nshort", "1"] {
            assert_eq!(unchunked(broken), "", "{broken}");
        }
    }

    #[test]
    fn an_address_is_a_plain_one() {
        assert_eq!(Place::given("http://127.0.0.1:9/v1/").unwrap().base_url, "http://127.0.0.1:9/v1");
        for bad in ["https://x/v1", "x", "http://", "http://user:secret@host/v1"] {
            assert_eq!(Place::given(bad), None, "{bad}");
        }
    }
}
