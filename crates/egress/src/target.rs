//! The host and port that a client asks for.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// Longest name of a host, without a final dot.
const MAX_NAME: usize = 253;

/// Longest part of a name between two dots.
const MAX_LABEL: usize = 63;

/// A host as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name in lower case, without a final dot.
    Name(String),
    /// An address. An IPv4 address that is written as an IPv6 address is an IPv4 address here.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    host: Host,
    port: u16,
}

/// Error for text that is neither a name of a host nor an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid host or port")]
pub struct InvalidTarget;

impl Host {
    /// Parses a name, or an address with or without brackets.
    ///
    /// Names consist of ASCII letters, digits, hyphens and underscores. A name whose last part is a number is invalid,
    /// since resolvers read it as an address: `127.1`, `0x7f000001`.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`].
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        if let Some(inside) = text.strip_prefix('[') {
            let address = inside.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
            return address.map(|address| Self::from(IpAddr::V6(address))).ok_or(InvalidTarget);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::from(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_valid = name.len() <= MAX_NAME && name.split('.').all(is_label) && !ends_in_number(name);
        if is_valid { Ok(Self::Name(name.to_ascii_lowercase())) } else { Err(InvalidTarget) }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl Target {
    /// Returns the target with this host and port.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] for port 0.
    pub fn new(host: Host, port: u16) -> Result<Self, InvalidTarget> {
        if port == 0 { Err(InvalidTarget) } else { Ok(Self { host, port }) }
    }

    /// Parses `HOST:PORT`. A host without a port has the default port, if there is one.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`].
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, InvalidTarget> {
        let (host, port) = match text.rsplit_once(':') {
            // Within brackets, or an address without them.
            Some((host, _)) if !host.starts_with('[') && host.contains(':') => (text, None),
            Some((host, _)) if host.starts_with('[') && !host.ends_with(']') => (text, None),
            Some((host, port)) => (host, Some(parse_port(port)?)),
            None => (text, None),
        };
        Self::new(Host::parse(host)?, port.or(default_port).ok_or(InvalidTarget)?)
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Parses a port in decimal digits; a sign is invalid.
pub(crate) fn parse_port(text: &str) -> Result<u16, InvalidTarget> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port != 0).ok_or(InvalidTarget)
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty() && label.len() <= MAX_LABEL && label.bytes().all(is_allowed)
}

/// Returns true if a resolver may read the name as an address.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_normalized() {
        for (text, expected) in [
            ("Example.COM:443", Some("example.com:443")),
            ("example.com.:443", Some("example.com:443")),
            ("example.com", Some("example.com:80")),
            ("a_b-c.example:1", Some("a_b-c.example:1")),
            ("192.0.2.1:8080", Some("192.0.2.1:8080")),
            ("[2001:DB8::1]:443", Some("[2001:db8::1]:443")),
            ("[::ffff:10.0.0.1]:443", Some("10.0.0.1:443")),
            ("::1", Some("[::1]:80")),
            ("[::1]", Some("[::1]:80")),
            ("", None),
            (".", None),
            (":80", None),
            ("example.com:", None),
            ("example.com:0", None),
            ("example.com:+80", None),
            ("example.com:65536", None),
            ("example..com:80", None),
            ("ex ample.com:80", None),
            ("exämple.com:80", None),
            ("user@example.com:80", None),
            ("127.1:80", None),
            ("2130706433:80", None),
            ("0x7f000001:80", None),
            ("0177.0.0.0x1:80", None),
            ("[fe80::1%eth0]:80", None),
            ("[::1:80", None),
        ] {
            let parsed = Target::parse(text, Some(80)).ok().map(|target| target.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
        assert_eq!(Target::parse("example.com", None), Err(InvalidTarget));
        assert!(Host::parse(&"a.".repeat(127)).is_ok());
        assert!(Host::parse(&"a.".repeat(128)).is_err());
        assert!(Host::parse(&"a".repeat(64)).is_err());
    }
}
