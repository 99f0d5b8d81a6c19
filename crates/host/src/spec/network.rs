//! The setting for the network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use pintle_egress::InvalidPattern;
use pintle_governance::{HostScope, NetworkScope};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Breadth;
use super::values::UnknownName;

/// Network access of sandboxed commands and web tools: `on`, `off`, or lists of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkAccess {
    /// No access.
    Off,
    /// Access to these hosts, by a proxy.
    Hosts(HostScope),
    /// Access to every address.
    On,
}

/// Hosts of package managers by name. Sources of version control are not among them.
const PRESETS: &[(&str, &[&str])] = &[
    (
        "apt",
        &[
            "archive.ubuntu.com",
            "deb.debian.org",
            "ports.ubuntu.com",
            "security.debian.org",
            "security.ubuntu.com",
        ],
    ),
    ("cargo", &["crates.io", "index.crates.io", "static.crates.io"]),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
    ("npm", &["registry.npmjs.org"]),
    ("pip", &["files.pythonhosted.org", "pypi.org"]),
];

/// Error for text or a value that is not a [`NetworkAccess`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidNetwork {
    /// It is neither a switch nor an object.
    #[error(transparent)]
    Switch(#[from] UnknownName),
    /// It is not an object with the lists.
    #[error("invalid lists of hosts: {0}")]
    Form(String),
    /// A pattern is invalid.
    #[error(transparent)]
    Pattern(#[from] InvalidPattern),
    /// No package manager has the name.
    #[error("unknown preset `{0}`, expected one of apt, cargo, go, npm, pip")]
    Preset(String),
    /// Mirrors are given for a preset that is not selected.
    #[error("`mirrors` has `{0}`, which is not among `presets`")]
    UnusedMirror(String),
}

/// Form of lists of hosts in settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostLists {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    /// Package managers whose hosts are allowed as well.
    #[serde(default)]
    presets: BTreeSet<String>,
    /// Hosts that replace the hosts of a preset, by its name.
    #[serde(default)]
    mirrors: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AccessForm {
    Name(String),
    Lists(serde_json::Value),
}

impl NetworkAccess {
    /// Names of the values without lists.
    pub const NAMES: &'static [&'static str] = &["off", "on"];

    /// Returns the hosts; `None` for a switch.
    #[must_use]
    pub fn hosts(&self) -> Option<&HostScope> {
        match self {
            Self::Hosts(hosts) => Some(hosts),
            Self::Off | Self::On => None,
        }
    }

    /// Returns this access without the hosts that a grant does not allow. A switch stays: the grant is enforced elsewhere.
    #[must_use]
    pub(crate) fn limited_by(&self, grant: &NetworkScope) -> Self {
        match (self, grant) {
            (Self::Hosts(_), NetworkScope::None) => Self::Off,
            (Self::Hosts(hosts), NetworkScope::Hosts(granted)) => Self::Hosts(hosts.narrowed_by(granted)),
            (Self::On, NetworkScope::Hosts(granted)) => Self::Hosts(granted.clone()),
            (Self::Off | Self::Hosts(_) | Self::On, _) => self.clone(),
        }
    }

    fn from_lists(value: serde_json::Value) -> Result<Self, InvalidNetwork> {
        let lists: HostLists =
            serde_json::from_value(value).map_err(|error| InvalidNetwork::Form(error.to_string()))?;
        if let Some(unused) = lists.mirrors.keys().find(|name| !lists.presets.contains(*name)) {
            return Err(InvalidNetwork::UnusedMirror(unused.clone()));
        }
        let mut allow: Vec<&str> = lists.allow.iter().map(String::as_str).collect();
        for name in &lists.presets {
            let preset = PRESETS.iter().find(|(preset, _)| preset == name);
            let (_, hosts) = preset.ok_or_else(|| InvalidNetwork::Preset(name.clone()))?;
            match lists.mirrors.get(name) {
                Some(mirrors) => allow.extend(mirrors.iter().map(String::as_str)),
                None => allow.extend(hosts.iter().copied()),
            }
        }
        Ok(Self::Hosts(HostScope::parse(allow, lists.deny.iter().map(String::as_str))?))
    }
}

impl Breadth for NetworkAccess {
    fn within(&self, limit: &Self) -> Result<Self, String> {
        Ok(match (self, limit) {
            (Self::Hosts(hosts), Self::Hosts(limit)) => Self::Hosts(hosts.narrowed_by(limit)),
            (Self::Off, _) | (_, Self::Off) => Self::Off,
            (access, Self::On) | (Self::On, access) => access.clone(),
        })
    }

    fn is_within(&self, limit: &Self) -> bool {
        match (self, limit) {
            (Self::Hosts(hosts), Self::Hosts(limit)) => hosts.is_within(limit),
            (Self::Off, _) | (_, Self::On) => true,
            (Self::On | Self::Hosts(_), _) => false,
        }
    }

    fn is_narrowest(&self) -> bool {
        *self == Self::Off
    }
}

/// Writes the name, or the lists as JSON.
impl fmt::Display for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On => f.write_str("on"),
            // A list of patterns has a JSON form.
            Self::Hosts(hosts) => f.write_str(&serde_json::to_string(hosts).unwrap_or_default()),
        }
    }
}

impl FromStr for NetworkAccess {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            _ if text.starts_with('{') => {
                let value = serde_json::from_str(text);
                Self::from_lists(value.map_err(|error| InvalidNetwork::Form(error.to_string()))?)
            }
            _ => Err(UnknownName { found: text.to_owned(), expected: Self::NAMES }.into()),
        }
    }
}

impl Serialize for NetworkAccess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::On => serializer.serialize_str("on"),
            Self::Hosts(hosts) => hosts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for NetworkAccess {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match AccessForm::deserialize(deserializer)? {
            AccessForm::Name(name) if name.starts_with('{') => {
                Err(serde::de::Error::custom("found text, expected on, off or an object with lists of hosts"))
            }
            AccessForm::Name(name) => name.parse().map_err(serde::de::Error::custom),
            AccessForm::Lists(lists) => Self::from_lists(lists).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn access(text: &str) -> NetworkAccess {
        text.parse().unwrap()
    }

    #[test]
    fn text_and_serialized_forms_agree() {
        for (form, text) in [
            (json!("on"), "on"),
            (json!("off"), "off"),
            (json!({"allow": ["a.example"]}), r#"{"allow":["a.example"]}"#),
            (
                json!({"allow": ["a.example"], "deny": ["b.example:22"]}),
                r#"{"allow":["a.example"],"deny":["b.example:22"]}"#,
            ),
        ] {
            let access: NetworkAccess = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(access.to_string(), text);
            assert_eq!(text.parse(), Ok(access.clone()));
            assert_eq!(serde_json::to_value(access).unwrap(), form);
        }
    }

    #[test]
    fn presets_become_hosts_and_mirrors_replace_them() {
        let both =
            r#"{"allow": ["a.example"], "presets": ["go", "pip"], "mirrors": {"pip": ["pip.example:8443"]}}"#;
        let expected =
            r#"{"allow": ["a.example", "proxy.golang.org", "sum.golang.org", "pip.example:8443"]}"#;
        assert_eq!(access(both), access(expected));
        for (name, hosts) in PRESETS {
            let preset = access(&json!({ "presets": [name] }).to_string());
            assert_eq!(preset, access(&json!({ "allow": hosts }).to_string()), "{name}");
        }
    }

    #[test]
    fn invalid_values_are_refused_with_the_reason() {
        for (text, problem) in [
            ("all", "found `all`, expected one of off, on"),
            (r#"{"alow": []}"#, "invalid lists of hosts: unknown field `alow`"),
            (r#"{"allow": ["https://a.example"]}"#, "invalid host `https://a.example`"),
            (r#"{"presets": ["gem"]}"#, "unknown preset `gem`"),
            (r#"{"mirrors": {"npm": ["n.example"]}}"#, "`mirrors` has `npm`"),
            ("{", "invalid lists of hosts"),
        ] {
            let error = text.parse::<NetworkAccess>().unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    #[test]
    fn layers_and_grants_only_narrow() {
        let (wide, narrow) = (access(r#"{"allow": ["*.example"]}"#), access(r#"{"allow": ["a.example"]}"#));
        let other = access(r#"{"allow": ["b.test"]}"#);
        let nothing = access(r#"{"allow": []}"#);
        let off = NetworkAccess::Off;
        let on = NetworkAccess::On;
        for (value, limit, expected) in [
            (&on, &wide, &wide),
            (&wide, &on, &wide),
            (&wide, &narrow, &narrow),
            (&narrow, &wide, &narrow),
            (&narrow, &other, &nothing),
            (&narrow, &off, &off),
            (&off, &on, &off),
        ] {
            assert_eq!(value.within(limit).as_ref(), Ok(expected), "{value} {limit}");
            assert_eq!(value.is_within(limit), value == expected, "{value} {limit}");
        }
        let granted = |access: &NetworkAccess| NetworkScope::Hosts(access.hosts().unwrap().clone());
        for (value, grant, expected) in [
            (&on, &granted(&narrow), &narrow),
            (&wide, &granted(&narrow), &narrow),
            (&wide, &NetworkScope::None, &off),
            (&wide, &NetworkScope::All, &wide),
            (&off, &NetworkScope::All, &off),
            (&off, &granted(&narrow), &off),
        ] {
            assert_eq!(&value.limited_by(grant), expected, "{value} {grant:?}");
        }
    }
}
