//! The server: one thread that accepts, one for each connection.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::http::{self, Request};
use super::reply::{Api, Content, End, Framing, Reply};
use super::wire;

/// How often a waiting connection looks whether its client or the server is gone.
const LOOK: Duration = Duration::from_millis(5);

type Script = Box<dyn FnMut(&Request) -> Reply + Send>;

/// Whether requests are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Requests,
    Nothing,
}

struct Shared {
    script: Mutex<Script>,
    keep: Keep,
    seen: Mutex<Seen>,
    changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    aborted: usize,
    connections: Vec<TcpStream>,
}

/// A scripted model server. See the [module](super).
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that gives these answers, one to a request.
    ///
    /// # Panics
    /// When no port can be had.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        Self::with(move |_| {
            replies.pop_front().unwrap_or_else(|| {
                let body = json!({"error": {"type": "invalid_request_error", "message": "script is over"}});
                Reply::status(400).with_body(body.to_string())
            })
        })
    }

    /// Starts a server that asks `script` what to answer.
    ///
    /// # Panics
    /// When no port can be had.
    pub fn with(script: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self::keeping(Keep::Requests, script)
    }

    /// The same, but requests are not kept: for thousands of them.
    ///
    /// # Panics
    /// When no port can be had.
    pub fn forgetful(script: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self::keeping(Keep::Nothing, script)
    }

    fn keeping(keep: Keep, script: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            keep,
            seen: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let for_accepting = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept(&listener, &for_accepting));
        Self { address, shared, accepting: Some(accepting) }
    }

    /// The address a client is configured with: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// The address without a path: `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The model requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen().requests.clone()
    }

    /// Waits until there were `count` model requests.
    ///
    /// # Panics
    /// When there are fewer after ten seconds.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.wait(&format!("{count} requests"), |seen| seen.requests.len() >= count).requests.clone()
    }

    /// Waits until clients have gone away from `count` answers before those were complete.
    ///
    /// # Panics
    /// When that has not happened after ten seconds.
    pub fn wait_for_aborted(&self, count: usize) {
        drop(self.wait(&format!("{count} aborted answers"), |seen| seen.aborted >= count));
    }

    fn wait(&self, what: &str, is_there: impl Fn(&Seen) -> bool) -> MutexGuard<'_, Seen> {
        let limit = Duration::from_secs(10);
        let seen = self.shared.seen();
        let (seen, waited) = self
            .shared
            .changed
            .wait_timeout_while(seen, limit, |seen| !is_there(seen))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !waited.timed_out(),
            "waited {limit:?} for {what}; there were {} requests",
            seen.requests.len()
        );
        seen
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for connection in &self.shared.seen().connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().flatten() {
        if shared.is_stopped() {
            return;
        }
        let _ = stream.set_nodelay(true);
        if let Ok(clone) = stream.try_clone() {
            shared.seen().connections.push(clone);
        }
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            let peer = stream.peer_addr();
            let _ = serve(stream, &shared);
            // A closed connection is forgotten, so that a long script does not run out of descriptors.
            let mut seen = shared.seen();
            seen.connections.retain(|known| known.peer_addr().ok() != peer.as_ref().ok().copied());
        });
    }
}

/// Whether the connection can be used for another request.
#[derive(Debug, PartialEq, Eq)]
enum After {
    KeepAlive,
    Close,
    /// Not to be shut down: closing it resets it.
    Reset,
}

/// The client went away, or the server is stopped.
struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut connection = Connection { stream, shared };
    while let Some(request) = http::read(&mut reader)? {
        let outcome = match request.api() {
            Some(api) => {
                let reply = {
                    let mut script = shared.script.lock().unwrap_or_else(PoisonError::into_inner);
                    if shared.keep == Keep::Requests {
                        shared.seen().requests.push(request.clone());
                    }
                    shared.changed.notify_all();
                    script(&request)
                };
                connection.answer(&request, api, &reply)
            }
            None => connection.answer_other(&request),
        };
        match outcome {
            Ok(After::KeepAlive) => {}
            Ok(After::Close) => break,
            Ok(After::Reset) => return Ok(()),
            Err(Gone) => {
                shared.seen().aborted += 1;
                shared.changed.notify_all();
                break;
            }
        }
    }
    connection.stream.shutdown(Shutdown::Both)
}

struct Connection<'s> {
    stream: TcpStream,
    shared: &'s Shared,
}

impl Connection<'_> {
    fn answer(&mut self, request: &Request, api: Api, reply: &Reply) -> Result<After, Gone> {
        self.pause(reply.first_delay)?;
        match &reply.content {
            // Silence has no proper end: it lasts until the client goes away.
            Content::Silence if reply.end == End::Proper => return self.end(End::Hang),
            Content::Silence => return self.end(reply.end),
            Content::Response(bytes) => {
                self.stream.write_all(bytes)?;
                return Ok(After::Close);
            }
            Content::Answer | Content::Body(_) => {}
        }
        let asked: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if matches!(reply.content, Content::Answer) && asked["stream"] != true {
            return self.document(reply, api);
        }
        let with_usage = asked["stream_options"]["include_usage"] == true;
        self.stream.write_all(head(reply).as_bytes())?;
        let mut left = reply.limit.unwrap_or(usize::MAX);
        for (index, write) in reply.writes(api, with_usage).iter().enumerate() {
            if index > 0 {
                self.pause(reply.delay)?;
            }
            let write = &write[..write.len().min(left)];
            left -= write.len();
            self.send(reply.framing, write)?;
            if left == 0 {
                break;
            }
        }
        match (reply.end, reply.framing) {
            (End::Proper, Framing::Chunked) => {
                self.stream.write_all(b"0\r\n\r\n")?;
                Ok(After::KeepAlive)
            }
            (End::Drip(interval), framing) => loop {
                self.pause(interval.max(Duration::from_millis(1)))?;
                self.send(framing, b": still here\n\n")?;
            },
            (end, _) => self.end(end),
        }
    }

    fn end(&mut self, end: End) -> Result<After, Gone> {
        match end {
            End::Proper | End::Cut => Ok(After::Close),
            End::Hang | End::Drip(_) => {
                self.pause(Duration::MAX)?;
                Ok(After::Close)
            }
            End::Reset => {
                // With no time to linger, the last close of the socket is a reset.
                socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
                Ok(After::Reset)
            }
        }
    }

    fn send(&mut self, framing: Framing, bytes: &[u8]) -> Result<(), Gone> {
        if bytes.is_empty() {
            // An empty chunk would mean the end.
            return Ok(());
        }
        match framing {
            Framing::UntilClosed => self.stream.write_all(bytes)?,
            Framing::Chunked => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(bytes);
                chunk.extend_from_slice(b"\r\n");
                self.stream.write_all(&chunk)?;
            }
        }
        Ok(())
    }

    fn document(&mut self, reply: &Reply, api: Api) -> Result<After, Gone> {
        self.json(200, &wire::document(reply, api).to_string())
    }

    fn json(&mut self, status: u16, body: &str) -> Result<After, Gone> {
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes())?;
        Ok(After::KeepAlive)
    }

    /// What is asked beside model requests: the list of models, as clients look for it.
    fn answer_other(&mut self, request: &Request) -> Result<After, Gone> {
        if request.method == "GET" && request.path.ends_with("/models") {
            let models = json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]});
            return self.json(200, &models.to_string());
        }
        let error =
            json!({"error": {"message": format!("there is no {}", request.path), "type": "not_found_error"}});
        self.json(404, &error.to_string())
    }

    /// Waits, and notices when the client goes away meanwhile or the server is stopped.
    fn pause(&mut self, duration: Duration) -> Result<(), Gone> {
        let end = Instant::now().checked_add(duration);
        loop {
            if self.shared.is_stopped() {
                return Err(Gone);
            }
            let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()).min(LOOK));
            if left.is_zero() {
                return Ok(());
            }
            self.stream.set_read_timeout(Some(left))?;
            let looked = self.stream.peek(&mut [0]);
            self.stream.set_read_timeout(None)?;
            match looked {
                Ok(0) => return Err(Gone),
                // The client sends already what comes next.
                Ok(_) => std::thread::sleep(left),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(_) => return Err(Gone),
            }
        }
    }
}

fn head(reply: &Reply) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
    let has = |name: &str| reply.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !has("content-type") {
        head.push_str("content-type: text/event-stream\r\n");
    }
    head.push_str(match reply.framing {
        Framing::Chunked => "transfer-encoding: chunked\r\n",
        Framing::UntilClosed => "connection: close\r\n",
    });
    for (name, value) in &reply.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + "\r\n"
}
