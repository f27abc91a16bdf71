//! Networks, and which of them are not public.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: `10.0.0.0/8`, `fd00::/8`, or a single address such as `127.0.0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    length: u32,
}

impl Network {
    const fn v4(a: u8, b: u8, c: u8, d: u8, length: u32) -> Network {
        Network { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length }
    }

    const fn v6(a: u16, b: u16, c: u16, length: u32) -> Network {
        Network { first: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), length }
    }

    /// Whether the network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differing = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => u128::from(first.to_bits() ^ address.to_bits()) << 96,
            (IpAddr::V6(first), IpAddr::V6(address)) => first.to_bits() ^ address.to_bits(),
            _ => return false,
        };
        differing.leading_zeros() >= self.length
    }

    /// Whether the network contains all addresses of another one.
    pub fn covers(&self, other: &Network) -> bool {
        self.length <= other.length && self.contains(other.first)
    }

    fn bits(address: IpAddr) -> u32 {
        if address.is_ipv4() { 32 } else { 128 }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("“{text}” is not a network such as 127.0.0.1, 10.0.0.0/8, ::1 or fd00::/8");
        let (first, length) = text.split_once('/').map_or((text, None), |(first, length)| (first, Some(length)));
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let length = match length {
            None => Network::bits(first),
            Some(length) if length.bytes().all(|b| b.is_ascii_digit()) => length.parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        let beyond = match first {
            _ if length > Network::bits(first) => return Err(wrong()),
            IpAddr::V4(first) => first.to_bits().checked_shl(length).unwrap_or(0) != 0,
            IpAddr::V6(first) => first.to_bits().checked_shl(length).unwrap_or(0) != 0,
        };
        // 10.1.2.3/8 is ambiguous.
        if beyond {
            return Err(format!(
                "“{text}” is an address inside a network: use the first address of the network, or omit the prefix length"
            ));
        }
        Ok(Network { first, length })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == Network::bits(self.first) {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// Networks that are not called unless allowed, with the reason.
const CLOSED: &[(Network, &str)] = &[
    (Network::v4(0, 0, 0, 0, 8), "it does not belong to a machine"),
    (Network::v4(10, 0, 0, 0, 8), "it is in a private network"),
    (Network::v4(100, 64, 0, 0, 10), "it is in the internal network of a provider"),
    (Network::v4(127, 0, 0, 0, 8), "it is this machine"),
    // Azure's agent responds here, on an address that looks public.
    (Network::v4(168, 63, 129, 16, 32), "it belongs to the internal network of a cloud"),
    // 169.254.169.254 gives a cloud machine its secrets.
    (Network::v4(169, 254, 0, 0, 16), "it is a link-local address"),
    (Network::v4(172, 16, 0, 0, 12), "it is in a private network"),
    (Network::v4(192, 0, 0, 0, 24), "it is reserved"),
    (Network::v4(192, 0, 2, 0, 24), "it is for documentation"),
    (Network::v4(192, 88, 99, 0, 24), "it is reserved"),
    (Network::v4(192, 168, 0, 0, 16), "it is in a private network"),
    (Network::v4(198, 18, 0, 0, 15), "it is for benchmarks"),
    (Network::v4(198, 51, 100, 0, 24), "it is for documentation"),
    (Network::v4(203, 0, 113, 0, 24), "it is for documentation"),
    (Network::v4(224, 0, 0, 0, 4), "it is for multicast"),
    (Network::v4(240, 0, 0, 0, 4), "it is reserved"),
    (Network { first: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 128 }, "it does not belong to a machine"),
    (Network { first: IpAddr::V6(Ipv6Addr::LOCALHOST), length: 128 }, "it is this machine"),
    // Teredo, benchmarks and other protocols.
    (Network::v6(0x2001, 0, 0, 23), "it is reserved"),
    (Network::v6(0x2001, 0xdb8, 0, 32), "it is for documentation"),
    (Network::v6(0x3fff, 0, 0, 20), "it is for documentation"),
    // fd00:ec2::254 is the IPv6 equivalent of 169.254.169.254.
    (Network::v6(0xfc00, 0, 0, 7), "it is in a private network"),
    (Network::v6(0xfe80, 0, 0, 10), "it is a link-local address"),
    (Network::v6(0xfec0, 0, 0, 10), "it is in a private network"),
    (Network::v6(0xff00, 0, 0, 8), "it is for multicast"),
];

/// All public IPv6 addresses assigned so far.
const PUBLIC_V6: Network = Network::v6(0x2000, 0, 0, 3);

/// Returns the reason if this address must not be called.
pub(crate) fn check(address: IpAddr, allowed: &[Network]) -> Result<(), &'static str> {
    let inner = inner(address);
    if allowed.iter().any(|network| network.contains(address) || network.contains(inner)) {
        return Ok(());
    }
    match CLOSED.iter().find(|(network, _)| network.contains(inner)) {
        Some((_, why)) => Err(why),
        None if inner.is_ipv6() && !PUBLIC_V6.contains(inner) => Err("it is not a public address"),
        None => Ok(()),
    }
}

/// Returns the IPv4 address embedded in an IPv6 address; other addresses unchanged.
fn inner(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let bits = six.to_bits();
    let segments = six.segments();
    let four = match segments {
        // Mapped (::ffff:10.0.0.1) and NAT64 (64:ff9b::10.0.0.1).
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => bits,
        // Compatible (::10.0.0.1), but not :: and ::1.
        [0, 0, 0, 0, 0, 0, _, _] if bits > 1 => bits,
        // 6to4.
        [0x2002, ..] => bits >> 80,
        _ => return address,
    };
    let [.., a, b, c, d] = four.to_be_bytes();
    Ipv4Addr::new(a, b, c, d).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(address: &str) -> bool {
        check(address.parse().unwrap(), &[]).is_err()
    }

    #[test]
    fn allows_only_public_addresses() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.251",
            "239.255.255.250",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "4000::1",
            "fd00:ec2::254",
            "fc00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(closed(address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "168.63.129.17",
            "198.17.255.255",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "2606:4700:4700::1111",
            "2a00::1",
        ] {
            assert!(!closed(address), "{address}");
        }
    }

    #[test]
    fn allows_listed_networks_in_all_notations() {
        let allowed = ["127.0.0.1".parse().unwrap(), "10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let open = |address: &str| check(address.parse().unwrap(), &allowed).is_ok();
        assert!(open("127.0.0.1") && open("::ffff:127.0.0.1") && open("10.9.8.7") && open("fd12::1"));
        assert!(!open("127.0.0.2") && !open("::1") && !open("192.168.0.1") && !open("fc00::1"));
        assert!(check("10.0.0.1".parse().unwrap(), &["0.0.0.0/0".parse().unwrap()]).is_ok());
        assert!(check("10.0.0.1".parse().unwrap(), &["::/0".parse().unwrap()]).is_err());
    }

    #[test]
    fn a_network_covers_the_smaller_ones_in_it() {
        let covers = |one: &str, other: &str| one.parse::<Network>().unwrap().covers(&other.parse().unwrap());
        assert!(covers("10.0.0.0/8", "10.1.0.0/16") && covers("10.0.0.0/8", "10.0.0.0/8") && covers("::/0", "::1"));
        assert!(!covers("10.1.0.0/16", "10.0.0.0/8") && !covers("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!covers("0.0.0.0/0", "::1") && !covers("::/0", "10.0.0.1"));
    }

    #[test]
    fn networks_are_read_strictly_and_written_as_read() {
        for text in ["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8", "0.0.0.0/0", "::/0"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.1/8", "10/8", "010.0.0.1", "fd00::/+8", "host", "10.0.0.0/"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
