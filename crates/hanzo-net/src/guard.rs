//! Who may be reached, for whom.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::address::{AddressKind, Block, kind};

/// Turns names into addresses. [`SystemLookup`] in earnest, a table in tests.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of `host`, in the order in which to try them.
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// Asks the system, its hosts file included.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            let mut addresses = Vec::new();
            for address in found.map(|address| address.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses)
        })
    }
}

/// Which addresses may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Range {
    /// Any: the user at this machine could as well.
    Anywhere,
    /// Public ones, and those the user named.
    Public,
}

/// What is not public and may be reached all the same: names, names below a domain, addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exceptions {
    names: Vec<String>,
    blocks: Vec<Block>,
}

impl Exceptions {
    /// From `intranet.example`, `*.example`, `10.1.2.3` or `10.0.0.0/8`.
    pub fn new<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Self {
        let mut exceptions = Self::default();
        for entry in entries {
            let entry = entry.as_ref().trim();
            match entry.parse::<Block>() {
                Ok(block) => exceptions.blocks.push(block),
                Err(_) => exceptions.names.push(entry.trim_end_matches('.').to_ascii_lowercase()),
            }
        }
        exceptions
    }

    fn names(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
            None => *name == host,
        })
    }

    fn holds(&self, address: IpAddr) -> bool {
        self.blocks.iter().any(|block| block.contains(address))
    }
}

/// A host may not be reached, or is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// It has an address that is not public.
    #[error("`{host}` is at {address}, a {kind} address, which is not reached for a remote caller")]
    NotPublic {
        /// The host as it was named.
        host: String,
        /// Its address.
        address: IpAddr,
        /// What that is.
        kind: AddressKind,
    },
    /// No address was found.
    #[error("`{host}` has no address: {reason}")]
    Unknown {
        /// The host as it was named.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// The URL has no host.
    #[error("the URL names no host")]
    NoHost,
}

/// Checks hosts and turns them into addresses. Given to a client as its resolver, it makes the client connect to the addresses
/// it has checked.
#[derive(Clone)]
pub struct Guard {
    range: Range,
    exceptions: Arc<Exceptions>,
    lookup: Arc<dyn Lookup>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("range", &self.range).finish_non_exhaustive()
    }
}

impl Guard {
    /// A guard of `range` that finds addresses with `lookup`.
    pub fn new(range: Range, exceptions: Arc<Exceptions>, lookup: Arc<dyn Lookup>) -> Self {
        Self { range, exceptions, lookup }
    }

    /// The range it keeps to.
    pub fn range(&self) -> Range {
        self.range
    }

    /// The addresses of `host`, every one of which may be reached. One that may not refuses the host: a name with a public and
    /// a private address is a trick or a mistake.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, GuardError> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            self.check(host, address)?;
            return Ok(vec![address]);
        }
        let unknown = |reason: String| GuardError::Unknown { host: host.to_owned(), reason };
        let found = self.lookup.lookup(host.to_owned()).await.map_err(|fault| unknown(fault.to_string()))?;
        if found.is_empty() {
            return Err(unknown("the name has none".to_owned()));
        }
        for address in &found {
            self.check(host, *address)?;
        }
        Ok(found)
    }

    /// The check of a URL that can be made without asking anybody: a client does not resolve an address, so it would not be
    /// checked on the way.
    pub fn check_literal(&self, url: &Url) -> Result<(), GuardError> {
        match url.host() {
            Some(Host::Ipv4(address)) => self.check(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.check(&address.to_string(), address.into()),
            Some(Host::Domain(name)) if !name.is_empty() => Ok(()),
            Some(Host::Domain(_)) | None => Err(GuardError::NoHost),
        }
    }

    fn check(&self, host: &str, address: IpAddr) -> Result<(), GuardError> {
        let kind = kind(address);
        let free = self.range == Range::Anywhere
            || kind == AddressKind::Public
            || self.exceptions.names(host)
            || self.exceptions.holds(address);
        if free { Ok(()) } else { Err(GuardError::NotPublic { host: host.to_owned(), address, kind }) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = guard.addresses(name.as_str()).await?;
            // The client puts the port of the URL in.
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// The guard's refusal inside an error of the client, wherever in the chain of causes it is.
pub fn refusal<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a GuardError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<GuardError>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table(Vec<(&'static str, Vec<&'static str>)>);

    impl Lookup for Table {
        fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
            let found = self.0.iter().find(|(name, _)| *name == host).map(|(_, addresses)| {
                addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<IpAddr>>()
            });
            Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
        }
    }

    fn guard(range: Range, exceptions: &[&str]) -> Guard {
        let table = Table(vec![
            ("good.test", vec!["93.184.216.34", "2606:2800::1"]),
            ("bad.test", vec!["10.0.0.1"]),
            ("mixed.test", vec!["93.184.216.34", "127.0.0.1"]),
            ("nothing.test", vec![]),
        ]);
        Guard::new(range, Arc::new(Exceptions::new(exceptions)), Arc::new(table))
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    #[test]
    fn only_hosts_with_nothing_but_public_addresses_are_reached_for_others() {
        let public = guard(Range::Public, &[]);
        assert_eq!(run(public.addresses("good.test")).unwrap().len(), 2);
        for host in ["bad.test", "mixed.test", "127.0.0.1", "[::1]", "::ffff:8.8.8.8"] {
            let refused = run(public.addresses(host)).unwrap_err();
            assert!(matches!(refused, GuardError::NotPublic { .. }), "{host}: {refused}");
        }
        for host in ["nothing.test", "missing.test"] {
            assert!(matches!(run(public.addresses(host)).unwrap_err(), GuardError::Unknown { .. }));
        }
        let anywhere = guard(Range::Anywhere, &[]);
        for host in ["good.test", "bad.test", "mixed.test", "127.0.0.1"] {
            run(anywhere.addresses(host)).unwrap();
        }
    }

    #[test]
    fn exceptions_are_names_domains_addresses_and_blocks() {
        for (entry, host, free) in [
            ("bad.test", "bad.test", true),
            ("BAD.test.", "bad.test", true),
            ("*.test", "bad.test", true),
            ("*.bad.test", "bad.test", false),
            ("*.est", "bad.test", false),
            ("10.0.0.0/8", "bad.test", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.2", "bad.test", false),
            ("other.test", "bad.test", false),
        ] {
            assert_eq!(
                run(guard(Range::Public, &[entry]).addresses(host)).is_ok(),
                free,
                "{entry} for {host}"
            );
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_checked() {
        let public = guard(Range::Public, &[]);
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
            "http://０x7f.1/",
            "http://127。0。0。1/",
            "http://user:pass@10.0.0.1:80/",
            "http://169.254.169.254/latest/meta-data/",
        ] {
            let url = Url::parse(url).unwrap();
            assert!(matches!(public.check_literal(&url), Err(GuardError::NotPublic { .. })), "{url}");
        }
        assert_eq!(public.check_literal(&Url::parse("data:text/plain,x").unwrap()), Err(GuardError::NoHost));
        assert_eq!(public.check_literal(&Url::parse("http://good.test/").unwrap()), Ok(()));
    }
}
