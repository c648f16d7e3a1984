//! Who may come in over HTTP: decided before anything else, by the name they call us, by the page they come from, by how often they
//! come, by the token. Whoever is turned away is shown to the owner of the server.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::tls::Tls;
use crate::rate::{Limit, Rate};

/// Of how many callers it is known how often they came. A caller that is forgotten begins anew.
const MOST_CALLERS: usize = 1_024;
/// How many are shown to the owner; a flood of callers is not a flood of lines.
const SHOWN: &str = "30/min";

/// Who may come in, and how they are talked to.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// Names by which we may be called beside those of this machine's loopback.
    pub hosts: Vec<String>,
    /// Pages that may call us, as `scheme://host:port`, beside those of our own address.
    pub origins: Vec<String>,
    /// What a caller has to show; without it everybody on this machine may come in.
    pub token: Option<String>,
    /// How often one caller may ask; as often as they like when absent.
    pub rate: Option<Rate>,
    /// With what connections are secured; they are not when absent.
    pub tls: Option<Tls>,
    /// Is shown who was turned away.
    pub refused: Option<OnRefusal>,
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "***");
        f.debug_struct("HttpOptions")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("token", &token)
            .field("rate", &self.rate)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

/// What is called for whoever was turned away.
pub type OnRefusal = Arc<dyn Fn(&Refusal) + Send + Sync>;

/// Somebody who was turned away. Nothing they sent is in it: it may be a secret, or written to mislead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Where they called from, where that is known.
    pub caller: Option<IpAddr>,
    /// Why.
    pub reason: Reason,
    /// How many were turned away before them without being shown.
    pub unshown: u64,
}

/// Why somebody is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// They call us by no name at all.
    NoHost,
    /// They call us by a name that is not ours.
    Host,
    /// They come from a page that may not call us.
    Origin,
    /// Their token is missing or wrong.
    Token,
    /// They come too often.
    Rate {
        /// When they may come again.
        wait: Duration,
    },
    /// They do not speak TLS, or not one we speak.
    Handshake,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHost => "the request names no host",
            Self::Host => "this server does not answer to that host name",
            Self::Origin => "pages of that origin may not call this server",
            Self::Token => "a bearer token is needed",
            Self::Rate { .. } => "too many requests",
            Self::Handshake => "the connection could not be secured",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.caller {
            Some(caller) => write!(f, "refused a caller at {caller}: ")?,
            None => f.write_str("refused a caller: ")?,
        }
        match self.reason {
            Reason::Token => f.write_str("the bearer token is missing or wrong")?,
            reason => write!(f, "{reason}")?,
        }
        if self.unshown > 0 {
            write!(f, " (and {} more before)", self.unshown)?;
        }
        Ok(())
    }
}

impl Reason {
    fn status(self) -> StatusCode {
        match self {
            Self::NoHost | Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Rate { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Handshake => StatusCode::BAD_REQUEST,
        }
    }

    /// The answer to whoever is turned away.
    pub(super) fn answer(self, rate: Option<Rate>) -> Response {
        let text = match (self, rate) {
            (Self::Rate { wait }, Some(rate)) => too_many(rate, wait),
            _ => self.to_string(),
        };
        let mut response = (self.status(), text).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Token => {
                headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            Self::Rate { wait } => {
                headers.insert(header::RETRY_AFTER, whole_seconds(wait).into());
            }
            _ => {}
        }
        response
    }
}

/// What is said to those who come too often.
fn too_many(rate: Rate, wait: Duration) -> String {
    let seconds = whole_seconds(wait);
    format!(
        "too many requests: one client may send {rate}\n\nhint: send it again in {seconds} s, or ask the owner for a higher `--rate-limit`"
    )
}

/// Never too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Counts what a request asks for beyond itself. It goes along with the request to whoever knows how much that is.
#[derive(Clone)]
pub(super) struct Meter {
    door: Arc<Door>,
    caller: Option<IpAddr>,
}

impl Meter {
    /// That of `caller`; none where nothing is counted.
    pub(super) fn new(door: &Arc<Door>, caller: Option<IpAddr>) -> Option<Self> {
        door.options.rate.map(|_| Self { door: Arc::clone(door), caller })
    }

    /// Whether `more` things may be asked for; when not, what to answer.
    pub(super) fn admit(&self, more: usize) -> Result<(), ErrorData> {
        let wait = (0..more).find_map(|_| self.door.admit(self.caller).err());
        match (wait, self.door.options.rate) {
            (Some(wait), Some(rate)) => Err(too_early(rate, wait)),
            _ => Ok(()),
        }
    }
}

/// The code of the answer to a request that came too early: one of those left to servers.
pub(super) const TOO_MANY: i32 = -32_029;

/// The answer to a request that came too early.
pub(super) fn too_early(rate: Rate, wait: Duration) -> ErrorData {
    let data = json!({"retry_after_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)});
    ErrorData::new(ErrorCode(TOO_MANY), too_many(rate, wait), Some(data))
}

/// The door.
pub(super) struct Door {
    options: HttpOptions,
    callers: Mutex<HashMap<Option<IpAddr>, (Instant, Limit)>>,
    shown: Mutex<(Option<Limit>, u64)>,
}

impl Door {
    pub(super) fn new(options: HttpOptions) -> Self {
        let shown = Mutex::new((Rate::parse(SHOWN).map(Limit::new), 0));
        Self { options, callers: Mutex::default(), shown }
    }

    pub(super) fn rate(&self) -> Option<Rate> {
        self.options.rate
    }

    /// Whether a request may come in.
    pub(super) fn check(&self, caller: Option<IpAddr>, headers: &HeaderMap, uri: &Uri) -> Result<(), Reason> {
        // How often they come is looked at before the token, so that tokens cannot be tried out.
        let checked = self
            .check_names(headers, uri)
            .and_then(|()| self.count(caller))
            .and_then(|()| self.check_token(headers));
        checked.inspect_err(|reason| self.show(caller, *reason))
    }

    /// Whether `caller` may ask for something more now.
    pub(super) fn admit(&self, caller: Option<IpAddr>) -> Result<(), Duration> {
        match self.count(caller) {
            Err(reason @ Reason::Rate { wait }) => {
                self.show(caller, reason);
                Err(wait)
            }
            _ => Ok(()),
        }
    }

    fn check_names(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Reason> {
        let options = &self.options;
        let host = text(headers, header::HOST).or_else(|| uri.authority().map(Authority::as_str));
        let host = host.ok_or(Reason::NoHost)?;
        let known =
            is_loopback(host_name(host)) || options.hosts.iter().any(|known| is_same_host(known, host));
        if !known {
            return Err(Reason::Host);
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let own = origin.split_once("://").is_some_and(|(_, from)| from.eq_ignore_ascii_case(host));
        if own || options.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return Ok(());
        }
        Err(Reason::Origin)
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Reason> {
        let Some(token) = &self.options.token else { return Ok(()) };
        let shown = text(headers, header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        let shown =
            shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        if shown.is_some_and(|shown| is_same_secret(shown, token)) { Ok(()) } else { Err(Reason::Token) }
    }

    fn count(&self, caller: Option<IpAddr>) -> Result<(), Reason> {
        let Some(rate) = self.options.rate else { return Ok(()) };
        let now = Instant::now();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let caller = caller.map(household);
        if callers.len() >= MOST_CALLERS && !callers.contains_key(&caller) {
            // Whoever has not come for longest has most of their rate back.
            let oldest = callers.iter().min_by_key(|(_, (last, _))| *last).map(|(caller, _)| *caller);
            if let Some(oldest) = oldest {
                callers.remove(&oldest);
            }
        }
        let (last, limit) = callers.entry(caller).or_insert_with(|| (now, Limit::new(rate)));
        *last = now;
        limit.take(now).map_err(|wait| Reason::Rate { wait })
    }

    /// Shows the owner who was turned away.
    pub(super) fn show(&self, caller: Option<IpAddr>, reason: Reason) {
        let Some(refused) = &self.options.refused else { return };
        let unshown = {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            let (limit, unshown) = &mut *shown;
            if limit.as_mut().is_some_and(|limit| limit.take(Instant::now()).is_err()) {
                *unshown += 1;
                return;
            }
            std::mem::take(unshown)
        };
        refused(&Refusal { caller, reason, unshown });
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whom an address stands for: with version 6 everybody has a whole network of them.
fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        four @ IpAddr::V4(_) => four,
    }
}

/// A host without its port.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_same_host(known: &str, host: &str) -> bool {
    known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(host_name(host))
}

/// Compares digests, so that the time it takes says nothing about how much of the secret is right.
fn is_same_secret(shown: &str, secret: &str) -> bool {
    let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
    let (shown, secret) = (digest(shown), digest(secret));
    shown.iter().zip(secret).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knock(options: &HttpOptions, headers: &[(&'static str, &str)]) -> u16 {
        enter(&Door::new(options.clone()), None, headers)
    }

    fn enter(door: &Door, caller: Option<&str>, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let caller = caller.map(|caller| caller.parse().unwrap());
        door.check(caller, &map, &Uri::from_static("/mcp"))
            .map_or_else(|reason| reason.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_known_hosts_and_origins_come_in() {
        let options = HttpOptions {
            hosts: vec!["box.example".into()],
            origins: vec!["https://app.example".into()],
            ..HttpOptions::default()
        };
        for (headers, expected) in [
            (&[("host", "localhost:80")][..], 200),
            (&[("host", "127.0.0.1:3000")], 200),
            (&[("host", "[::1]:3000")], 200),
            (&[("host", "box.example:3000")], 200),
            (&[("host", "evil.example")], 421),
            (&[("host", "localhost.evil.example:80")], 421),
            (&[], 421),
            (&[("host", "localhost:80"), ("origin", "http://localhost:80")], 200),
            (&[("host", "localhost:80"), ("origin", "https://app.example")], 200),
            (&[("host", "localhost:80"), ("origin", "http://localhost:81")], 403),
            (&[("host", "localhost:80"), ("origin", "http://evil.example")], 403),
            (&[("host", "localhost:80"), ("origin", "null")], 403),
        ] {
            assert_eq!(knock(&options, headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_token_is_needed_where_one_is_set() {
        let options = HttpOptions { token: Some("s3cret".into()), ..HttpOptions::default() };
        let with = |value| knock(&options, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(knock(&options, &[("host", "localhost")]), 401);
        assert_eq!(with("Bearer s3cret"), 200);
        assert_eq!(with("bearer s3cret"), 200);
        for wrong in ["Bearer s3cre", "Bearer s3cretX", "Basic s3cret", "s3cret", "Bearer "] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert!(!format!("{options:?}").contains("s3cret"));
    }

    #[test]
    fn each_caller_has_a_rate_of_its_own_and_wrong_tokens_count() {
        let options =
            HttpOptions { token: Some("s3cret".into()), rate: Rate::parse("2/h"), ..HttpOptions::default() };
        let door = Door::new(options);
        let come = |from, token| enter(&door, Some(from), &[("host", "localhost"), ("authorization", token)]);
        assert_eq!(come("10.0.0.1", "Bearer wrong"), 401);
        assert_eq!(come("10.0.0.1", "Bearer s3cret"), 200);
        assert_eq!(come("10.0.0.1", "Bearer s3cret"), 429);
        assert_eq!(come("10.0.0.2", "Bearer s3cret"), 200);
        assert_eq!(come("::ffff:10.0.0.2", "Bearer s3cret"), 200, "the same address in another spelling");
        assert_eq!(come("10.0.0.2", "Bearer s3cret"), 429);
        assert_eq!(come("2001:db8::1", "Bearer s3cret"), 200);
        assert_eq!(come("2001:db8::2", "Bearer s3cret"), 200);
        assert_eq!(come("2001:db8::3", "Bearer s3cret"), 429, "a network of addresses is one caller");
    }

    #[test]
    fn no_number_of_callers_fills_the_memory() {
        let door = Door::new(HttpOptions { rate: Rate::parse("5/h"), ..HttpOptions::default() });
        for number in 0..5_000_u32 {
            let caller: IpAddr = std::net::Ipv4Addr::from(number).into();
            assert!(door.admit(Some(caller)).is_ok());
        }
        assert_eq!(door.callers.lock().unwrap().len(), MOST_CALLERS);
    }

    #[test]
    fn the_owner_sees_who_is_turned_away_but_no_secret_and_no_flood() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&seen);
        let options = HttpOptions {
            token: Some("s3cret".into()),
            refused: Some(Arc::new(move |refusal: &Refusal| told.lock().unwrap().push(refusal.to_string()))),
            ..HttpOptions::default()
        };
        let door = Door::new(options);
        for _ in 0..100 {
            enter(&door, Some("10.0.0.9"), &[("host", "localhost"), ("authorization", "Bearer guess")]);
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 30);
        assert_eq!(seen[0], "refused a caller at 10.0.0.9: the bearer token is missing or wrong");
        assert!(!seen.concat().contains("guess") && !seen.concat().contains("s3cret"));
        assert_eq!(door.shown.lock().unwrap().1, 70, "the others are counted");
    }

    #[test]
    fn whoever_comes_too_often_is_told_when_to_come_again() {
        let wait = Duration::from_millis(1_200);
        let answer = Reason::Rate { wait }.answer(Rate::parse("600/min"));
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (429, &"2".parse().unwrap())
        );
        assert!(
            too_many(Rate::parse("600/min").unwrap(), wait).contains("600/min\n\nhint: send it again in 2 s")
        );
    }
}
