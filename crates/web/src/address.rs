//! Rules for the addresses that may be reached.

use std::collections::BTreeSet;
use std::net::IpAddr;

use pintle_egress::special_class;
use pintle_tools::builtin::{WebError, WebErrorKind};
use reqwest::Url;

/// Rules for the addresses that a client may reach.
///
/// An address is public unless it is in one of IANA's special-purpose registries. Loopback, private, shared,
/// link-local, multicast, documentation and reserved addresses are not public, and neither is an IPv6 address that
/// embeds such an IPv4 address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRules {
    any: bool,
    hosts: BTreeSet<String>,
}

/// Error for an address that the rules forbid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} may not be reached: {address} is {class}")]
pub(crate) struct RefusedAddress {
    pub(crate) host: String,
    pub(crate) address: IpAddr,
    pub(crate) class: &'static str,
}

/// Error for a name with an address that a rule denies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} may not be reached: the rule `{rule}` denies its address")]
pub(crate) struct DeniedAddress {
    pub(crate) host: String,
    pub(crate) rule: String,
}

impl AddressRules {
    /// Allows public addresses only. The default.
    #[must_use]
    pub fn public_only() -> Self {
        Self::default()
    }

    /// Allows every address, including addresses of this machine and its network. Use it only where the model may reach all
    /// of them.
    #[must_use]
    pub fn any() -> Self {
        Self { any: true, hosts: BTreeSet::new() }
    }

    /// Also allows this host, whatever its address: a name, or an address as written in a URL (`[::1]` in brackets).
    /// All its ports are allowed.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.insert(host.into().to_ascii_lowercase());
        self
    }

    /// Checks the parts of a URL that are known before its host is resolved.
    pub(crate) fn check_url(&self, url: &Url) -> Result<(), WebError> {
        let invalid = |message: String| Err(WebError::new(WebErrorKind::InvalidUrl, message));
        if !matches!(url.scheme(), "http" | "https") {
            return invalid(format!(
                "the scheme {}: is not supported; the URL must begin with https:// or http://",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return invalid("the URL contains a user name or password, which is not sent".to_owned());
        }
        let Some(host) = url.host_str() else {
            return invalid("the URL has no host".to_owned());
        };
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match literal.parse::<IpAddr>() {
            Ok(address) => self.check_address(host, address).map_err(WebError::from),
            Err(_a_name) => Ok(()),
        }
    }

    /// Checks a resolved address of a host.
    pub(crate) fn check_address(&self, host: &str, address: IpAddr) -> Result<(), RefusedAddress> {
        match special_class(address) {
            Some(class) if !self.any && !self.hosts.contains(&host.to_ascii_lowercase()) => {
                Err(RefusedAddress { host: host.to_owned(), address, class })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl From<DeniedAddress> for WebError {
    fn from(denied: DeniedAddress) -> Self {
        Self::new(WebErrorKind::Refused, denied.to_string())
    }
}

impl From<RefusedAddress> for WebError {
    fn from(refused: RefusedAddress) -> Self {
        Self::new(WebErrorKind::Refused, refused.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_before_resolution() {
        let check = |rules: &AddressRules, url: &str| {
            rules.check_url(&Url::parse(url).unwrap()).map_err(|error| (error.kind(), error.to_string()))
        };
        let rules = AddressRules::public_only();
        for url in ["https://example.com/a?b#c", "http://example.com:8080", "http://1.1.1.1/"] {
            assert_eq!(check(&rules, url), Ok(()), "{url}");
        }
        let cases = [
            (
                "ftp://example.com/",
                WebErrorKind::InvalidUrl,
                "the scheme ftp: is not supported; the URL must begin with https:// or http://",
            ),
            (
                "file:///etc/passwd",
                WebErrorKind::InvalidUrl,
                "the scheme file: is not supported; the URL must begin with https:// or http://",
            ),
            (
                "http://me:pw@example.com/",
                WebErrorKind::InvalidUrl,
                "the URL contains a user name or password, which is not sent",
            ),
            (
                "http://127.0.0.1/",
                WebErrorKind::Refused,
                "127.0.0.1 may not be reached: 127.0.0.1 is a loopback address",
            ),
            (
                "http://0x7f.1/",
                WebErrorKind::Refused,
                "127.0.0.1 may not be reached: 127.0.0.1 is a loopback address",
            ),
            (
                "http://2130706433/",
                WebErrorKind::Refused,
                "127.0.0.1 may not be reached: 127.0.0.1 is a loopback address",
            ),
            (
                "http://[::ffff:10.0.0.1]/",
                WebErrorKind::Refused,
                "[::ffff:a00:1] may not be reached: ::ffff:10.0.0.1 is a private address",
            ),
        ];
        for (url, kind, message) in cases {
            assert_eq!(check(&rules, url), Err((kind, message.to_owned())), "{url}");
            assert_eq!(check(&AddressRules::any(), url).is_ok(), kind == WebErrorKind::Refused, "{url}");
        }
        let rules = AddressRules::public_only().with_host("127.0.0.1").with_host("[::1]");
        assert_eq!(check(&rules, "http://127.0.0.1:9/"), Ok(()));
        assert_eq!(check(&rules, "http://[::1]:9/"), Ok(()));
        assert!(check(&rules, "http://127.0.0.2:9/").is_err());
    }
}
