//! URLs as rules see them.
//!
//! A rule compares host with host and path with path. Comparing whole texts would let `https://*.good.org/*` cover
//! `https://evil.org/x.good.org/`.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::glob::{Case, Glob, Stars};
use crate::verdict::Match;

/// The parts of a URL that rules look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NormalUrl {
    scheme: String,
    host: String,
    port: Option<String>,
    /// Path and query, starting with `/`.
    path: String,
}

const MAX_URL: usize = 16 * 1024;

impl NormalUrl {
    /// `None` for whatever different readers of URLs might understand differently.
    pub(crate) fn new(raw: &str) -> Option<Self> {
        if raw.len() > MAX_URL || raw.bytes().any(|b| b <= b' ' || b == b'\\' || b == 0x7f) {
            return None;
        }
        let (scheme, rest) = raw.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        // User information (`good.org@evil.org`) is the classic way to show one host and reach another.
        if authority.contains('@') || authority.contains('%') || !authority.is_ascii() {
            return None;
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.to_owned())),
            _ => (authority, None),
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if host.is_empty() || scheme.is_empty() {
            return None;
        }
        let host = address(host)?;
        let tail = tail.split('#').next().unwrap_or_default();
        let path = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        Some(Self { scheme: scheme.to_ascii_lowercase(), host, port, path })
    }

    /// The rule for this host, when its name is plain.
    pub(crate) fn as_rule(&self) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        self.host.chars().all(plain).then(|| format!("Net({}://{})", self.scheme, self.host))
    }

    fn path_is_plain(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default().to_ascii_lowercase();
        !path.split('/').any(|s| s == "." || s == "..")
            && !["%2e", "%2f", "%5c"].iter().any(|e| path.contains(e))
    }
}

/// A host that is an address in the one spelling rules use; `None` for another spelling of an IPv4 address (`127.1`,
/// `2130706433`, `0x7f.0.0.1`), which a client reaches and a rule would not recognise.
fn address(host: String) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let number = last.strip_prefix("0x").map_or_else(
        || !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()),
        |digits| digits.bytes().all(|b| b.is_ascii_hexdigit()),
    );
    (!number || host.parse::<Ipv4Addr>().is_ok()).then_some(host)
}

/// The specifier of a `Net(...)` rule: `host`, `host/path*`, `scheme://host:port/path*`; `*` alone is every URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPattern {
    scheme: Option<String>,
    host: Glob,
    port: Option<String>,
    path: Option<Stars>,
}

impl UrlPattern {
    pub(crate) fn new(specifier: &str) -> Self {
        let specifier = specifier.strip_prefix("domain:").unwrap_or(specifier);
        let (scheme, rest) = match specifier.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()).filter(|s| s != "*"), rest),
            None => (None, specifier),
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], Some(Stars::parse(&rest[at..]))),
            None => (rest, None),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.to_owned()).filter(|p| p != "*")),
            _ => (authority, None),
        };
        Self { scheme, host: Glob::name(&host.to_ascii_lowercase()), port, path }
    }

    fn authority_matches(&self, url: &NormalUrl) -> bool {
        self.scheme.as_ref().is_none_or(|scheme| *scheme == url.scheme)
            && self.host.matches(&url.host, Case::Sensitive)
            && self.port.as_ref().is_none_or(|port| Some(port) == url.port.as_ref())
    }

    pub(crate) fn covers(&self, url: &NormalUrl) -> bool {
        self.authority_matches(url)
            && self.path.as_ref().is_none_or(|path| url.path_is_plain() && path.matches(&url.path))
    }

    pub(crate) fn catches(&self, url: &NormalUrl) -> Match {
        if !self.authority_matches(url) {
            return Match::No;
        }
        match &self.path {
            None => Match::Yes,
            Some(path) if path.matches(&url.path) => Match::Yes,
            Some(_) if !url.path_is_plain() => Match::Unproven,
            Some(_) => Match::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        let host = |raw: &str| NormalUrl::new(raw).map(|url| url.host);
        assert_eq!(host("http://127.0.0.1:8/").as_deref(), Some("127.0.0.1"));
        assert_eq!(host("http://[0:0:0:0:0:0:0:1]:8/").as_deref(), Some("[::1]"));
        assert_eq!(host("http://a.0x.org/").as_deref(), Some("a.0x.org"));
        for raw in [
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://1.2.3.0x4/",
            "http://[x]/",
            "http://[::1",
        ] {
            assert_eq!(host(raw), None, "{raw}");
        }
    }

    #[test]
    fn hosts_are_compared_with_hosts() {
        let rule = UrlPattern::new("https://*.good.org/*");
        let covers = |raw: &str| NormalUrl::new(raw).is_some_and(|url| rule.covers(&url));
        assert!(covers("https://api.good.org/x"));
        assert!(covers("https://API.GOOD.ORG./x"));
        for raw in [
            "https://evil.org/x.good.org/",
            "https://api.good.org@evil.org/",
            "http://api.good.org/x",
            "https://evil.org?.good.org/",
            "https://evil.org\\.good.org/",
            "https://good.org.evil.org/",
            "https://api.good.org/a/../b",
        ] {
            assert!(!covers(raw), "{raw}");
        }
    }

    #[test]
    fn a_bare_host_covers_every_path_and_port() {
        let rule = UrlPattern::new("docs.rs");
        assert!(rule.covers(&NormalUrl::new("https://docs.rs:443/serde").expect("a url")));
        assert_eq!(rule.catches(&NormalUrl::new("https://docs.rs.evil/").expect("a url")), Match::No);
    }
}
