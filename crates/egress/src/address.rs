//! Classes of addresses that are not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address at which Azure answers requests of its virtual machines. It is among the public ones.
const AZURE_PLATFORM: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Returns the class of an address that is not public; `None` for a public one.
///
/// An address is public unless it is in one of IANA's special-purpose registries. Loopback, private, shared, link-local,
/// multicast, documentation and reserved addresses are not public, and neither is an IPv6 address that embeds such an IPv4
/// address. Metadata services of clouds have link-local, shared or private addresses, and one that is listed here.
#[must_use]
pub fn special_class(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_class_v4(address),
        IpAddr::V6(address) => special_class_v6(address),
    }
}

fn special_class_v4(address: Ipv4Addr) -> Option<&'static str> {
    if address == AZURE_PLATFORM {
        return Some("a metadata address");
    }
    Some(match address.octets() {
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        [100, 64..=127, ..] => "a shared address",
        [169, 254, ..] => "a link-local address",
        [224..=239, ..] => "a multicast address",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "a documentation address",
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => {
            "a reserved address"
        }
        _ => return None,
    })
}

fn special_class_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    if address == Ipv6Addr::LOCALHOST {
        return Some("a loopback address");
    }
    match segments {
        // Addresses that embed an IPv4 address lead to that address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            special_class_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        [0x2002, high, low, ..] => special_class_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some("a documentation address"),
        [0x2001, 0..=0x01ff, ..] => Some("a reserved address"),
        // Nothing else is allocated.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        let cases = [
            ("1.1.1.1", None),
            ("172.15.0.1", None),
            ("172.32.0.1", None),
            ("100.63.0.1", None),
            ("223.255.255.255", None),
            ("168.63.129.15", None),
            ("168.63.129.16", Some("a metadata address")),
            ("127.0.0.1", Some("a loopback address")),
            ("127.255.1.2", Some("a loopback address")),
            ("10.0.0.1", Some("a private address")),
            ("172.16.0.1", Some("a private address")),
            ("172.31.255.255", Some("a private address")),
            ("192.168.1.1", Some("a private address")),
            ("100.64.0.1", Some("a shared address")),
            ("100.100.100.200", Some("a shared address")),
            ("169.254.169.254", Some("a link-local address")),
            ("224.0.0.1", Some("a multicast address")),
            ("203.0.113.7", Some("a documentation address")),
            ("0.0.0.0", Some("a reserved address")),
            ("192.0.0.192", Some("a reserved address")),
            ("198.18.0.1", Some("a reserved address")),
            ("255.255.255.255", Some("a reserved address")),
            ("2606:4700:4700::1111", None),
            ("::ffff:1.1.1.1", None),
            ("64:ff9b::101:101", None),
            ("2002:101:101::1", None),
            ("::1", Some("a loopback address")),
            ("::", Some("a reserved address")),
            ("::ffff:127.0.0.1", Some("a loopback address")),
            ("::ffff:169.254.169.254", Some("a link-local address")),
            ("::127.0.0.1", Some("a reserved address")),
            ("64:ff9b::7f00:1", Some("a loopback address")),
            ("64:ff9b:1::7f00:1", Some("a reserved address")),
            ("2002:a00:1::1", Some("a private address")),
            ("2001:0:1::1", Some("a reserved address")),
            ("fd12::1", Some("a private address")),
            ("fd00:ec2::254", Some("a private address")),
            ("fe80::1", Some("a link-local address")),
            ("fec0::1", Some("a reserved address")),
            ("ff02::1", Some("a multicast address")),
            ("2001:db8::1", Some("a documentation address")),
        ];
        for (address, expected) in cases {
            assert_eq!(special_class(address.parse().unwrap()), expected, "{address}");
        }
    }
}
