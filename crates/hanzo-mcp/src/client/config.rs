//! How a server is reached, as the composition root read it from the settings.

use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use url::Url;

use super::address;
use super::fault::McpError;

/// How many calls one server gets at once, where nobody says otherwise.
pub const USUAL_CONCURRENCY: usize = 32;
/// How long a request may take, where nobody says otherwise.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// One server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name in the settings.
    pub name: String,
    /// How it is reached.
    pub transport: TransportConfig,
    /// How long a request may take.
    pub timeout: Duration,
    /// How many calls it gets at once.
    pub concurrency: usize,
    /// Whether it is believed what it says about its tools.
    pub trust: ServerTrust,
    /// Whether it is used from the start.
    pub switch: Switch,
}

/// Whether a server is used. One that is not can be switched on later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Switch {
    /// It is connected to and what it has is offered.
    #[default]
    On,
    /// It is only known of.
    Off,
}

impl ServerConfig {
    /// A server with the usual limits that is not believed anything.
    pub fn new(name: impl Into<String>, transport: TransportConfig) -> Self {
        Self {
            name: name.into(),
            transport,
            timeout: USUAL_TIMEOUT,
            concurrency: USUAL_CONCURRENCY,
            trust: ServerTrust::Untrusted,
            switch: Switch::On,
        }
    }

    /// Identifies what the server is, for the cache of its lists. Variables and values of headers are left out: a new token
    /// is not a new server, and a variable that is passed on may not be set today.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(self.transport.kind().as_bytes());
        match &self.transport {
            TransportConfig::Stdio(stdio) => {
                stdio.argv.iter().for_each(|word| add(word.as_encoded_bytes()));
            }
            TransportConfig::Http(remote)
            | TransportConfig::Sse(remote)
            | TransportConfig::WebSocket(remote) => {
                add(remote.url.as_bytes());
                remote.headers.iter().for_each(|(name, _)| add(name.as_bytes()));
            }
        }
        let digest: [u8; 32] = hash.finalize().into();
        digest.iter().fold(String::new(), |mut text, byte| {
            use fmt::Write as _;
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Looks for what could never work, or must never be tried.
    pub fn check(&self) -> Result<(), McpError> {
        let refuse = |reason: String| McpError::Settings { server: self.name.clone(), reason };
        match &self.transport {
            TransportConfig::Stdio(stdio) => stdio.check().map_err(refuse),
            TransportConfig::Http(remote) | TransportConfig::Sse(remote) => {
                remote.parse(&["http", "https"]).map(drop).map_err(refuse)
            }
            TransportConfig::WebSocket(remote) => {
                remote.parse(&["ws", "wss", "http", "https"]).map(drop).map_err(refuse)
            }
        }
    }
}

/// Whether a server is believed what it says about its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerTrust {
    /// Its `readOnlyHint` counts.
    Trusted,
    /// Whatever it says, its tools may change anything.
    Untrusted,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum TransportConfig {
    /// A child process; one JSON message per line.
    Stdio(StdioConfig),
    /// Streamable HTTP.
    Http(RemoteConfig),
    /// Streamable HTTP, or the older transport of an event stream and a second address to post to.
    Sse(RemoteConfig),
    /// WebSocket.
    WebSocket(RemoteConfig),
}

impl TransportConfig {
    /// The word for it in listings.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::WebSocket(_) => "websocket",
        }
    }
}

/// A server that is a program.
#[derive(Clone)]
pub struct StdioConfig {
    /// The program and its arguments. No shell is involved.
    pub argv: Vec<OsString>,
    /// Everything it sees of the environment beside `PATH`.
    pub env: Vec<(OsString, OsString)>,
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values are secrets more often than not, and arguments sometimes.
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("StdioConfig")
            .field("program", &self.argv.first())
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

impl StdioConfig {
    fn check(&self) -> Result<(), String> {
        let program = self.argv.first().filter(|program| !program.is_empty());
        let program = program.ok_or("`command` is empty")?;
        if Path::new(program).components().any(|part| part == Component::ParentDir) {
            return Err(format!(
                "`{}` has `..` in it\n\nhint: name the program by its absolute path or by a name on `PATH`",
                program.display()
            ));
        }
        if self.argv.iter().any(|word| word.as_encoded_bytes().contains(&0)) {
            return Err("`command` or `args` has a NUL character in it".to_owned());
        }
        Ok(())
    }
}

/// A server at an address.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// The address.
    pub url: String,
    /// Sent with every request.
    pub headers: Vec<(String, SecretText)>,
    /// Which addresses a name may stand for.
    pub reachable: Reachable,
}

impl RemoteConfig {
    /// A server at `url` without headers, whose name must not stand for a private address.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), reachable: Reachable::Public }
    }

    /// The address, when it has one of `schemes` and is not one that nobody may be sent to.
    pub(crate) fn parse(&self, schemes: &[&str]) -> Result<Url, String> {
        let url = Url::parse(&self.url).map_err(|error| format!("`url` is not an address: {error}"))?;
        if !schemes.contains(&url.scheme()) {
            return Err(format!(
                "`url` begins with `{}:`, not with `{}:`",
                url.scheme(),
                schemes.join(":` or `")
            ));
        }
        address::check(&url)?;
        self.header_map()?;
        Ok(url)
    }

    /// The headers as requests have them.
    pub(crate) fn header_map(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let header = |(name, value): &(String, SecretText)| {
            let parsed = HeaderName::try_from(name.as_str())
                .map_err(|_| format!("`{name}` cannot be the name of a header"))?;
            let mut value = HeaderValue::try_from(value.expose()).map_err(|_| {
                format!("the value of the header `{name}` has characters that headers cannot have")
            })?;
            value.set_sensitive(true);
            Ok((parsed, value))
        };
        self.headers.iter().map(header).collect()
    }
}

/// Which addresses a host name may stand for. An address that is written out as numbers, and `localhost`, mean what they
/// say whatever this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reachable {
    /// Those that everybody can reach.
    #[default]
    Public,
    /// Also those of this machine and of private networks. Never link-local ones and those of cloud metadata services.
    AlsoPrivate,
}

/// Text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Keeps `text` from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio(words: &[&str]) -> ServerConfig {
        let argv = words.iter().map(OsString::from).collect();
        ServerConfig::new(
            "s",
            TransportConfig::Stdio(StdioConfig { argv, env: vec![("KEY".into(), "v".into())] }),
        )
    }

    #[test]
    fn a_program_reached_through_the_parent_directory_is_refused() {
        for bad in ["../server", "bin/../../server", "/usr/../tmp/server", ".."] {
            let error = stdio(&[bad]).check().unwrap_err();
            assert!(error.to_string().contains("`..`") && error.is_final(), "{error}");
        }
        for good in ["server", "/usr/bin/node", "./server", "a..b", "..c/x"] {
            assert_eq!(stdio(&[good, "../argument"]).check(), Ok(()), "{good}");
        }
        assert!(stdio(&[]).check().is_err() && stdio(&[""]).check().is_err());
    }

    #[test]
    fn values_are_neither_shown_nor_part_of_the_fingerprint() {
        let mut other = stdio(&["a"]);
        let TransportConfig::Stdio(config) = &mut other.transport else { unreachable!("made as one") };
        config.env[0].1 = "canary-value".into();
        assert!(!format!("{other:?}").contains("canary"));
        assert_eq!(other.fingerprint(), stdio(&["a"]).fingerprint());
        assert_ne!(stdio(&["a", "b"]).fingerprint(), stdio(&["ab"]).fingerprint());

        let mut remote = RemoteConfig::new("https://x.test/mcp");
        remote.headers.push(("Authorization".into(), SecretText::new("canary-value")));
        let server = ServerConfig::new("s", TransportConfig::Http(remote));
        assert!(!format!("{server:?}").contains("canary"));
        assert_eq!(server.check(), Ok(()));
    }

    #[test]
    fn addresses_and_headers_are_looked_at_before_anything_is_sent() {
        let fault = |url: &str| ServerConfig::new("s", TransportConfig::Http(RemoteConfig::new(url))).check();
        for bad in ["not a url", "ftp://x.test", "file:///etc/passwd", "http://169.254.169.254/latest"] {
            assert!(fault(bad).is_err(), "{bad}");
        }
        let mut remote = RemoteConfig::new("https://x.test");
        remote.headers.push(("bad header".into(), SecretText::new("x")));
        assert!(ServerConfig::new("s", TransportConfig::Sse(remote)).check().is_err());
    }
}
