//! What an address is. Everything that is not known to be public counts as not public.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// What an address is, as far as reaching it for somebody else is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressKind {
    /// Everybody on the internet can reach it.
    Public,
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The same link, cloud metadata services among others.
    LinkLocal,
    /// The addresses of a provider's own network, shared between its customers.
    CarrierNat,
    /// A cloud's metadata service at an address that looks public.
    Metadata,
    /// A group, or everybody on a network.
    Multicast,
    /// An IPv4 address inside an IPv6 one.
    Embedded,
    /// Reserved, for documentation, for measurements, or not given to anybody.
    Reserved,
}

impl AddressKind {
    /// The kind in a word for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::CarrierNat => "carrier NAT",
            Self::Metadata => "cloud metadata",
            Self::Multicast => "multicast",
            Self::Embedded => "embedded IPv4",
            Self::Reserved => "reserved",
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The metadata and wire server of a large cloud. It has a public address and answers only its own machines.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// What `address` is.
///
/// ```
/// use hanzo_net::address::{AddressKind, kind};
/// assert_eq!(kind("169.254.169.254".parse().unwrap()), AddressKind::LinkLocal);
/// assert_eq!(kind("::ffff:127.0.0.1".parse().unwrap()), AddressKind::Embedded);
/// ```
pub fn kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        _ if address == WIRE_SERVER => AddressKind::Metadata,
        (127, ..) => AddressKind::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => AddressKind::Private,
        (169, 254, _) => AddressKind::LinkLocal,
        (100, 64..=127, _) => AddressKind::CarrierNat,
        (224..=239, ..) => AddressKind::Multicast,
        // "This network", protocol assignments, documentation, the old 6to4 relay, measurements, the future.
        (0 | 240..=255, ..)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> AddressKind {
    if address.is_loopback() {
        return AddressKind::Loopback;
    }
    let segments = address.segments();
    match segments {
        // Mapped, compatible and translated IPv4: who writes an address like this wants to get past a check.
        // Teredo and 6to4 hold IPv4 addresses too, which a relay on this machine's network would reach.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x2001, 0, ..] | [0x2002, ..] => {
            AddressKind::Embedded
        }
        [0, 0, 0, 0, 0, 0, ..] => {
            if address.is_unspecified() {
                AddressKind::Reserved
            } else {
                AddressKind::Embedded
            }
        }
        // A network without IPv4 reaches it under this prefix: it is what the IPv4 address is.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            kind_v4(Ipv4Addr::new(a, b, c, d))
        }
        // The second is site-local, given up and still routed by some.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Protocol assignments and documentation.
        [0x2001, 1..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Reserved,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// A block of addresses, such as `10.0.0.0/8`; a single address is a block of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    address: IpAddr,
    bits: u8,
}

impl Block {
    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same_start(u128::from(own.to_bits()) << 96, u128::from(other.to_bits()) << 96, self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same_start(own.to_bits(), other.to_bits(), self.bits),
            _ => false,
        }
    }
}

fn same_start(one: u128, other: u128, bits: u8) -> bool {
    bits == 0 || (one ^ other) >> (128 - u32::from(bits)) == 0
}

/// A text that is no block of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address or block of addresses such as `10.0.0.0/8`")]
pub struct BlockError(String);

impl FromStr for Block {
    type Err = BlockError;

    fn from_str(text: &str) -> Result<Self, BlockError> {
        let wrong = || BlockError(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse::<u8>().map_err(|_| wrong()))?;
        if bits > most { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> AddressKind {
        kind(text.parse().unwrap())
    }

    #[test]
    fn what_is_not_public_is_known() {
        for (kind, addresses) in [
            (AddressKind::Loopback, vec!["127.0.0.1", "127.255.255.254", "::1"]),
            (
                AddressKind::Private,
                vec!["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00:ec2::254", "fec0::1"],
            ),
            (AddressKind::LinkLocal, vec!["169.254.169.254", "169.254.0.1", "fe80::1", "febf::1"]),
            (AddressKind::CarrierNat, vec!["100.64.0.1", "100.100.100.200", "100.127.255.255"]),
            (AddressKind::Metadata, vec!["168.63.129.16"]),
            (AddressKind::Multicast, vec!["224.0.0.1", "239.1.2.3", "ff02::1"]),
            (
                AddressKind::Embedded,
                vec![
                    "::ffff:127.0.0.1",
                    "::ffff:8.8.8.8",
                    "::127.0.0.1",
                    "::ffff:0:1.2.3.4",
                    "2002:7f00:1::",
                    "2001:0:1::1",
                ],
            ),
            (
                AddressKind::Reserved,
                vec![
                    "0.0.0.0",
                    "0.1.2.3",
                    "192.0.0.192",
                    "192.0.2.1",
                    "192.88.99.1",
                    "198.18.0.1",
                    "198.51.100.1",
                    "203.0.113.9",
                    "240.0.0.1",
                    "255.255.255.255",
                    "::",
                    "2001:db8::1",
                    "3fff::1",
                    "100::1",
                    "5f00::1",
                    "64:ff9b:1::1",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(of(address), kind, "{address}");
            }
        }
        assert_eq!(of("64:ff9b::7f00:1"), AddressKind::Loopback);
        assert_eq!(of("64:ff9b::a9fe:a9fe"), AddressKind::LinkLocal);
    }

    #[test]
    fn what_is_public_is_not_refused() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.1.1.1",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.167.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::808:808",
        ] {
            assert_eq!(of(address), AddressKind::Public, "{address}");
        }
    }

    #[test]
    fn blocks_hold_what_starts_like_them() {
        let block = |text: &str| text.parse::<Block>().unwrap();
        let holds = |text: &str, address: &str| block(text).contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("192.168.1.7", "192.168.1.7") && !holds("192.168.1.7", "192.168.1.8"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fc12::1"));
        assert!(holds("::/0", "::1"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/-1", "a/8", "10.0.0.0/"] {
            assert!(wrong.parse::<Block>().is_err(), "{wrong}");
        }
    }
}
