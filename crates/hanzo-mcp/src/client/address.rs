//! Which addresses a server may have. A name is resolved once and the address that was looked at is the one that is
//! connected to, so that a name which stands for something else a moment later gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::config::Reachable;

/// Names of cloud metadata services.
const METADATA_NAMES: &[&str] = &["metadata", "metadata.google", "metadata.google.internal", "instance-data"];

/// Refuses an address that nobody may be sent to, as far as that can be told without asking anybody.
pub fn check(url: &Url) -> Result<(), String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "`url` has a user name or password in it\n\nhint: put credentials in `headers`".to_owned()
        );
    }
    match url.host() {
        None => Err("`url` has no host".to_owned()),
        Some(Host::Ipv4(address)) => allow(address.into(), Reachable::AlsoPrivate),
        Some(Host::Ipv6(address)) => allow(address.into(), Reachable::AlsoPrivate),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let is_metadata =
                METADATA_NAMES.contains(&name.as_str()) || name.ends_with(".metadata.google.internal");
            if is_metadata { Err(format!("`{name}` is a cloud metadata service")) } else { Ok(()) }
        }
    }
}

/// How far a name in `url` may reach: `localhost` means this machine.
pub(crate) fn reach_of(url: &Url, configured: Reachable) -> Reachable {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            if name == "localhost" || name.ends_with(".localhost") {
                Reachable::AlsoPrivate
            } else {
                configured
            }
        }
        _ => Reachable::AlsoPrivate,
    }
}

/// Whether an address may be connected to; the error says what it is.
pub fn allow(address: IpAddr, reachable: Reachable) -> Result<(), String> {
    let plain = plain(address);
    let refuse = |what: &str| Err(format!("{address} is {what}"));
    if is_metadata(plain) {
        return refuse("the address of a cloud metadata service");
    }
    if plain.is_unspecified() || plain.is_multicast() || plain == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return refuse("no server's address");
    }
    if is_link_local(plain) {
        return refuse("a link-local address");
    }
    match reachable {
        Reachable::Public if plain.is_loopback() => refuse("this machine"),
        Reachable::Public if is_private(plain) => refuse("in a private network"),
        _ => Ok(()),
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, NAT64 and 6to4.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let [first, second, third, .., last_but_one, last] = six.segments();
    let four = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match six.segments()[..6] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => four(last_but_one, last),
        [0, 0, 0, 0, 0, 0] if last_but_one != 0 || last > 1 => four(last_but_one, last),
        _ if first == 0x2002 => four(second, third),
        _ => address,
    }
}

fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            [[169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [192, 0, 0, 192]]
                .contains(&four.octets())
        }
        IpAddr::V6(six) => six == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [a, b, ..] = four.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let benchmark = a == 198 && (18..20).contains(&b);
            four.is_private() || shared || benchmark || a == 0 || a >= 240
        }
        IpAddr::V6(six) => six.segments()[0] & 0xfe00 == 0xfc00,
    }
}

/// The addresses of `host` that may be connected to; an error when there are none.
pub(crate) async fn resolve(host: &str, port: u16, reachable: Reachable) -> Result<Vec<SocketAddr>, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found = found.map_err(|error| format!("`{host}` cannot be resolved: {error}"))?;
    let mut refused = None;
    let mut allowed = Vec::new();
    for address in found {
        match allow(address.ip(), reachable) {
            Ok(()) => allowed.push(address),
            Err(reason) => refused = Some(reason),
        }
    }
    if allowed.is_empty() {
        let reason = refused.unwrap_or_else(|| "there is no such host".to_owned());
        let hint =
            "write the address itself into `url`, or set `allow_private` for this server, if that is meant";
        return Err(format!("`{host}` may not be connected to: {reason}\n\nhint: {hint}"));
    }
    Ok(allowed)
}

/// Resolves names for HTTP clients, and leaves out what may not be connected to.
pub(crate) struct Guarded(pub(crate) Reachable);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let reachable = self.0;
        Box::pin(async move {
            let found = resolve(name.as_str(), 0, reachable).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(address: &str, reachable: Reachable) -> bool {
        allow(address.parse().unwrap(), reachable).is_ok()
    }

    #[test]
    fn metadata_and_link_local_addresses_are_never_connected_to() {
        for never in [
            "169.254.169.254",
            "169.254.1.1",
            "100.100.100.200",
            "fd00:ec2::254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!verdict(never, Reachable::AlsoPrivate), "{never}");
        }
    }

    #[test]
    fn private_addresses_are_connected_to_only_when_they_are_meant() {
        for private in [
            "127.0.0.1",
            "::1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "100.64.0.1",
            "fc00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!verdict(private, Reachable::Public), "{private}");
            assert!(verdict(private, Reachable::AlsoPrivate), "{private}");
        }
        assert!(verdict("93.184.216.34", Reachable::Public) && verdict("2606:4700::1111", Reachable::Public));
    }

    #[test]
    fn spellings_of_an_address_are_the_address() {
        let refused = |text: &str| check(&Url::parse(text).unwrap()).is_err();
        for spelling in [
            "http://169.254.169.254/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0251.0376.0251.0376/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://metadata.google.internal/",
            "http://METADATA.google.internal./",
            "http://user:secret@example.com/",
        ] {
            assert!(refused(spelling), "{spelling}");
        }
        assert!(!refused("http://127.0.0.1:3000/mcp") && !refused("https://example.com/mcp"));
    }

    #[tokio::test]
    async fn a_name_that_stands_for_this_machine_is_refused_unless_meant() {
        let error = resolve("localhost", 80, Reachable::Public).await.unwrap_err();
        assert!(error.contains("hint:"), "{error}");
        assert!(!resolve("localhost", 80, Reachable::AlsoPrivate).await.unwrap().is_empty());
        let localhost = Url::parse("http://localhost:1/").unwrap();
        assert_eq!(reach_of(&localhost, Reachable::Public), Reachable::AlsoPrivate);
    }
}
