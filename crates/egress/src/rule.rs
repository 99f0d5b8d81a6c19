//! Rules about hosts.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::{
    address::special_class,
    refusal::Refusal,
    target::{Host, Target, parse_port},
};

/// Ports of an allowed host without a port.
const WEB_PORTS: [u16; 2] = [80, 443];

/// A host of a rule.
///
/// | text | hosts |
/// |---|---|
/// | `packages.example.org` | this name |
/// | `*.example.com` | all names below this one, and not this one |
/// | `*` | all names |
/// | `192.0.2.7`, `[2001:db8::1]`, `10.0.0.0/8` | these addresses, and no name |
///
/// A port may follow (`*.example.com:8443`), or `:*` for all ports. Without one, an allowed host has the ports 80 and 443, and
/// a denied host all ports. Names are ASCII: an international name is written as `xn--…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    hosts: Hosts,
    ports: Ports,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Hosts {
    AnyName,
    Name(String),
    Below(String),
    Network { address: IpAddr, bits: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ports {
    Default,
    Any,
    Only(u16),
}

/// Error for text that is not a [`HostPattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid host `{text}`, expected a name such as `example.com`, `*.example.com` or `example.com:443`, or an address"
)]
pub struct InvalidPattern {
    text: String,
}

/// The hosts that may be reached: those that are allowed and not denied.
///
/// Rules only get narrower. [`narrowed_by`](Self::narrowed_by) keeps all earlier rules, and a target has to pass all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// At least one.
    layers: Vec<Layer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    allow: Vec<HostPattern>,
    deny: Vec<HostPattern>,
}

/// Whether a pattern allows or denies.
#[derive(Clone, Copy)]
enum Side {
    Allow,
    Deny,
}

impl HostPattern {
    fn covers(&self, host: &Host, port: u16, side: Side) -> bool {
        let has_port = match (self.ports, side) {
            (Ports::Any, _) | (Ports::Default, Side::Deny) => true,
            (Ports::Default, Side::Allow) => WEB_PORTS.contains(&port),
            (Ports::Only(only), _) => only == port,
        };
        has_port && self.has_host(host)
    }

    /// Returns true if the pattern has a host, on any port.
    #[must_use]
    pub fn has_host(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::AnyName, Host::Name(_)) => true,
            (Hosts::Name(name), Host::Name(found)) => name == found,
            (Hosts::Below(parent), Host::Name(found)) => is_below(found, parent),
            (Hosts::Network { address, bits }, Host::Address(found)) => {
                is_in_network(*found, *address, *bits)
            }
            (Hosts::AnyName | Hosts::Name(_) | Hosts::Below(_), Host::Address(_))
            | (Hosts::Network { .. }, Host::Name(_)) => false,
        }
    }
}

impl HostPattern {
    /// Returns the hosts and ports that both patterns have, as patterns of allowed hosts; `None` if they have none in
    /// common.
    #[must_use]
    pub fn common_part(&self, other: &Self) -> Option<Self> {
        let hosts = if self.hosts.contain(&other.hosts) {
            &other.hosts
        } else if other.hosts.contain(&self.hosts) {
            &self.hosts
        } else {
            return None;
        };
        let ports = match (self.ports, other.ports) {
            (Ports::Any, ports) | (ports, Ports::Any) => ports,
            (Ports::Default, Ports::Default) => Ports::Default,
            (Ports::Default, Ports::Only(port)) | (Ports::Only(port), Ports::Default)
                if WEB_PORTS.contains(&port) =>
            {
                Ports::Only(port)
            }
            (Ports::Only(port), Ports::Only(other)) if port == other => Ports::Only(port),
            (Ports::Default | Ports::Only(_), Ports::Default | Ports::Only(_)) => return None,
        };
        Some(Self { hosts: hosts.clone(), ports })
    }

    /// Returns true if the pattern, as one of denied hosts, has all ports.
    #[must_use]
    pub fn denies_all_ports(&self) -> bool {
        matches!(self.ports, Ports::Default | Ports::Any)
    }

    /// Returns true if this pattern, as one of denied hosts, denies all that the other denies.
    #[must_use]
    pub fn denies_all_of(&self, other: &Self) -> bool {
        let has_ports = match (self.ports, other.ports) {
            (Ports::Default | Ports::Any, _) => true,
            (Ports::Only(port), Ports::Only(other)) => port == other,
            (Ports::Only(_), Ports::Default | Ports::Any) => false,
        };
        has_ports && self.hosts.contain(&other.hosts)
    }
}

impl Hosts {
    /// Returns true if all hosts of the other are among these. Of two sets, one contains the other or they are disjoint.
    fn contain(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AnyName, Self::AnyName | Self::Name(_) | Self::Below(_)) => true,
            (Self::Name(name), Self::Name(other)) => name == other,
            (Self::Below(parent), Self::Name(other)) => is_below(other, parent),
            (Self::Below(parent), Self::Below(other)) => other == parent || is_below(other, parent),
            (Self::Network { address, bits }, Self::Network { address: other, bits: of_other }) => {
                bits <= of_other && is_in_network(*other, *address, *bits)
            }
            (Self::Name(_) | Self::Below(_) | Self::Network { .. }, _)
            | (Self::AnyName, Self::Network { .. }) => false,
        }
    }
}

/// Returns true if a name has this one as a parent.
fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl HostRules {
    /// Returns rules that allow these hosts, unless they are denied as well.
    #[must_use]
    pub fn new(
        allow: impl IntoIterator<Item = HostPattern>,
        deny: impl IntoIterator<Item = HostPattern>,
    ) -> Self {
        let layer = Layer { allow: allow.into_iter().collect(), deny: deny.into_iter().collect() };
        Self { layers: vec![layer] }
    }

    /// Returns rules that allow nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::new([], [])
    }

    /// Returns rules that allow what both allow.
    #[must_use]
    pub fn narrowed_by(mut self, other: &Self) -> Self {
        for layer in &other.layers {
            if !self.layers.contains(layer) {
                self.layers.push(layer.clone());
            }
        }
        self
    }

    /// Checks a target before its name is resolved.
    ///
    /// # Errors
    ///
    /// [`Refusal::Denied`], [`Refusal::Unnamed`] or [`Refusal::UnnamedAddress`].
    pub fn check(&self, target: &Target) -> Result<(), Refusal> {
        let (host, port) = (target.host(), target.port());
        self.check_denied(host, port)?;
        if self.allow_all(host, port) {
            return Ok(());
        }
        Err(match host {
            Host::Name(_) => Refusal::Unnamed,
            Host::Address(_) => Refusal::UnnamedAddress,
        })
    }

    /// Checks an address that the name of an allowed target has. An address that is not public has to be allowed as such.
    ///
    /// # Errors
    ///
    /// [`Refusal::Denied`] or [`Refusal::SpecialAddress`].
    pub fn check_address(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        let host = Host::from(address);
        self.check_denied(&host, port)?;
        match special_class(address) {
            Some(class) if !self.allow_all(&host, port) => Err(Refusal::SpecialAddress { address, class }),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the rule that denies an address on some port; `None` if no rule does. For clients that do not know the port of a
    /// connection when they resolve its name.
    #[must_use]
    pub fn denial_of(&self, address: IpAddr) -> Option<String> {
        let host = Host::from(address);
        let mut denying = self.layers.iter().flat_map(|layer| &layer.deny);
        denying.find(|pattern| pattern.has_host(&host)).map(ToString::to_string)
    }

    fn check_denied(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        let mut denying = self.layers.iter().flat_map(|layer| &layer.deny);
        match denying.find(|pattern| pattern.covers(host, port, Side::Deny)) {
            Some(pattern) => Err(Refusal::Denied { rule: pattern.to_string() }),
            None => Ok(()),
        }
    }

    fn allow_all(&self, host: &Host, port: u16) -> bool {
        let allows =
            |layer: &Layer| layer.allow.iter().any(|pattern| pattern.covers(host, port, Side::Allow));
        self.layers.iter().all(allows)
    }
}

impl FromStr for HostPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        parse(text).ok_or_else(|| InvalidPattern { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<HostPattern> {
    let (host, ports) = match text.rsplit_once(':') {
        // A colon of an IPv6 address.
        Some((before, _)) if is_within_address(before) => (text, Ports::Default),
        Some((host, "*")) => (host, Ports::Any),
        Some((host, port)) => (host, Ports::Only(parse_port(port).ok()?)),
        None => (text, Ports::Default),
    };
    let hosts = if host == "*" {
        Hosts::AnyName
    } else if let Some(parent) = host.strip_prefix("*.") {
        match Host::parse(parent).ok()? {
            Host::Name(parent) => Hosts::Below(parent),
            Host::Address(_) => return None,
        }
    } else if let Some((address, bits)) = host.split_once('/') {
        let Host::Address(address) = Host::parse(address).ok()? else { return None };
        let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= width(address))?;
        Hosts::Network { address, bits }
    } else {
        match Host::parse(host).ok()? {
            Host::Name(name) => Hosts::Name(name),
            Host::Address(address) => Hosts::Network { address, bits: width(address) },
        }
    };
    Some(HostPattern { hosts, ports })
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::AnyName => f.write_str("*")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Below(parent) => write!(f, "*.{parent}")?,
            Hosts::Network { address, bits } if *bits == width(*address) => {
                write!(f, "{}", Host::Address(*address))?;
            }
            Hosts::Network { address: IpAddr::V6(address), bits } if self.ports == Ports::Default => {
                write!(f, "{address}/{bits}")?;
            }
            Hosts::Network { address: IpAddr::V6(address), bits } => write!(f, "[{address}]/{bits}")?,
            Hosts::Network { address, bits } => write!(f, "{address}/{bits}")?,
        }
        match self.ports {
            Ports::Default => Ok(()),
            Ports::Any => f.write_str(":*"),
            Ports::Only(port) => write!(f, ":{port}"),
        }
    }
}

/// Returns true if a colon after this text belongs to an IPv6 address.
fn is_within_address(before: &str) -> bool {
    match before.strip_prefix('[') {
        Some(inside) => !inside.contains(']'),
        None => before.contains(':'),
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_in_network(found: IpAddr, network: IpAddr, bits: u8) -> bool {
    let is_equal = |found: u128, network: u128, width: u32| {
        let rest = width - u32::from(bits).min(width);
        found.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0)
    };
    match (found, network) {
        (IpAddr::V4(found), IpAddr::V4(network)) => {
            is_equal(u32::from(found).into(), u32::from(network).into(), 32)
        }
        (IpAddr::V6(found), IpAddr::V6(network)) => is_equal(found.into(), network.into(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests;
