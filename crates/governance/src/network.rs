//! The hosts that a session may reach.

use std::collections::BTreeSet;

use pintle_egress::{Host, HostPattern, HostRules, InvalidPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Allowed and denied hosts. A denial takes precedence.
///
/// A pattern is a name (`docs.example.org`), all names below one (`*.example.com`), or an address, each with an optional port.
/// [`HostPattern`] has the details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "HostForm", into = "HostForm")]
#[non_exhaustive]
pub struct HostScope {
    /// Hosts that may be reached.
    pub allow: BTreeSet<HostPattern>,
    /// Hosts that may not be reached.
    pub deny: BTreeSet<HostPattern>,
}

/// Network access that a grant allows. Its JSON form is `true`, `false` or an object with the lists `allow` and `deny`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NetworkForm", into = "NetworkForm")]
pub enum NetworkScope {
    /// No other machine.
    #[default]
    None,
    /// These hosts.
    Hosts(HostScope),
    /// All machines.
    All,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum NetworkForm {
    Switch(bool),
    Hosts(HostForm),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostForm {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
}

impl HostScope {
    /// Parses patterns.
    ///
    /// # Errors
    ///
    /// [`InvalidPattern`] for the first that is invalid.
    pub fn parse<'p>(
        allow: impl IntoIterator<Item = &'p str>,
        deny: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, InvalidPattern> {
        Ok(Self { allow: patterns(allow)?, deny: patterns(deny)? })
    }

    /// Returns the rules that a connection has to pass.
    #[must_use]
    pub fn rules(&self) -> HostRules {
        HostRules::new(self.allow.iter().cloned(), self.deny.iter().cloned())
    }

    /// Returns whether a host, as a URL has it, is allowed on some port. Connections are checked with their port.
    #[must_use]
    pub fn names(&self, host: &str) -> bool {
        let Ok(host) = Host::parse(host) else { return false };
        self.allow.iter().any(|pattern| pattern.has_host(&host))
            && !self.deny.iter().any(|pattern| pattern.denies_all_ports() && pattern.has_host(&host))
    }

    /// Returns the hosts that both allow.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        let pairs = self.allow.iter().flat_map(|ours| other.allow.iter().map(move |theirs| (ours, theirs)));
        let common: BTreeSet<HostPattern> =
            pairs.filter_map(|(ours, theirs)| ours.common_part(theirs)).collect();
        let is_redundant =
            |pattern: &HostPattern| common.iter().any(|wide| wide != pattern && allows_all_of(wide, pattern));
        Self {
            allow: common.iter().filter(|pattern| !is_redundant(pattern)).cloned().collect(),
            deny: self.deny.union(&other.deny).cloned().collect(),
        }
    }

    /// Returns whether it allows no host that the limit does not allow. Each of its patterns has to be within one pattern of the
    /// limit, and each denial of the limit has to be among its denials.
    #[must_use]
    pub fn is_within(&self, limit: &Self) -> bool {
        let is_allowed = |pattern| limit.allow.iter().any(|wide| allows_all_of(wide, pattern));
        let is_denied = |denied| self.deny.iter().any(|wide| wide.denies_all_of(denied));
        self.allow.is_empty() || self.allow.iter().all(is_allowed) && limit.deny.iter().all(is_denied)
    }
}

fn patterns<'p>(texts: impl IntoIterator<Item = &'p str>) -> Result<BTreeSet<HostPattern>, InvalidPattern> {
    texts.into_iter().map(str::parse).collect()
}

fn allows_all_of(wide: &HostPattern, narrow: &HostPattern) -> bool {
    wide.common_part(narrow).as_ref() == Some(narrow)
}

impl NetworkScope {
    /// Returns whether it allows some machine.
    #[must_use]
    pub fn is_any(&self) -> bool {
        match self {
            Self::None => false,
            Self::Hosts(hosts) => !hosts.allow.is_empty(),
            Self::All => true,
        }
    }

    /// Returns whether it allows all machines.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Returns whether it allows nothing that the limit does not allow.
    #[must_use]
    pub fn is_within(&self, limit: &Self) -> bool {
        match (self, limit) {
            (Self::Hosts(hosts), Self::Hosts(limit)) => hosts.is_within(limit),
            (_, Self::All) => true,
            (Self::All | Self::Hosts(_) | Self::None, _) => !self.is_any(),
        }
    }

    /// Returns the rules that a connection has to pass; `None` without a limit.
    #[must_use]
    pub fn rules(&self) -> Option<HostRules> {
        match self {
            Self::None => Some(HostRules::nothing()),
            Self::Hosts(hosts) => Some(hosts.rules()),
            Self::All => None,
        }
    }
}

impl TryFrom<HostForm> for HostScope {
    type Error = InvalidPattern;

    fn try_from(form: HostForm) -> Result<Self, InvalidPattern> {
        let HostForm { allow, deny } = form;
        Self::parse(allow.iter().map(String::as_str), deny.iter().map(String::as_str))
    }
}

impl From<HostScope> for HostForm {
    fn from(hosts: HostScope) -> Self {
        let texts = |patterns: BTreeSet<HostPattern>| patterns.iter().map(ToString::to_string).collect();
        Self { allow: texts(hosts.allow), deny: texts(hosts.deny) }
    }
}

impl TryFrom<NetworkForm> for NetworkScope {
    type Error = InvalidPattern;

    fn try_from(form: NetworkForm) -> Result<Self, InvalidPattern> {
        Ok(match form {
            NetworkForm::Switch(true) => Self::All,
            NetworkForm::Switch(false) => Self::None,
            NetworkForm::Hosts(hosts) => Self::Hosts(hosts.try_into()?),
        })
    }
}

impl From<NetworkScope> for NetworkForm {
    fn from(scope: NetworkScope) -> Self {
        match scope {
            NetworkScope::None => Self::Switch(false),
            NetworkScope::Hosts(hosts) => Self::Hosts(hosts.into()),
            NetworkScope::All => Self::Switch(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hosts(allow: &[&str], deny: &[&str]) -> HostScope {
        HostScope::parse(allow.iter().copied(), deny.iter().copied()).unwrap()
    }

    #[test]
    fn scopes_have_the_form_of_a_switch_or_of_lists() {
        for (form, scope) in [
            (json!(false), NetworkScope::None),
            (json!(true), NetworkScope::All),
            (json!({"allow": []}), NetworkScope::Hosts(HostScope::default())),
            (
                json!({"allow": ["*.example.com:443", "a.example"], "deny": ["b.example.com"]}),
                NetworkScope::Hosts(hosts(&["a.example", "*.example.com:443"], &["b.example.com"])),
            ),
        ] {
            assert_eq!(serde_json::from_value::<NetworkScope>(form.clone()).unwrap(), scope);
            let again = serde_json::to_value(&scope).unwrap();
            assert_eq!(serde_json::from_value::<NetworkScope>(again).unwrap(), scope);
        }
        assert_eq!(serde_json::to_value(NetworkScope::All).unwrap(), json!(true));
        for wrong in [
            json!("on"),
            json!({"allow": ["https://a.example"]}),
            json!({"allow": ["a.example"], "deni": []}),
            json!({"allow": "a.example"}),
        ] {
            assert!(serde_json::from_value::<NetworkScope>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scope_is_within_another_only_if_it_is_narrower() {
        for (narrow, wide, is_within) in [
            (hosts(&["a.example"], &[]), hosts(&["a.example"], &[]), true),
            (hosts(&["a.example:443"], &[]), hosts(&["a.example"], &[]), true),
            (hosts(&["a.example:22"], &[]), hosts(&["a.example"], &[]), false),
            (hosts(&["a.example:*"], &[]), hosts(&["a.example"], &[]), false),
            (hosts(&["a.example:22"], &[]), hosts(&["a.example:*"], &[]), true),
            (hosts(&["b.a.example"], &[]), hosts(&["*.a.example"], &[]), true),
            (hosts(&["a.example"], &[]), hosts(&["*.a.example"], &[]), false),
            (hosts(&["xa.example"], &[]), hosts(&["*.a.example"], &[]), false),
            (hosts(&["*.b.a.example"], &[]), hosts(&["*.a.example"], &[]), true),
            (hosts(&["*.a.example"], &[]), hosts(&["*"], &[]), true),
            (hosts(&["10.0.0.1"], &[]), hosts(&["*"], &[]), false),
            (hosts(&["10.1.0.0/16"], &[]), hosts(&["10.0.0.0/8"], &[]), true),
            (hosts(&["10.0.0.0/8"], &[]), hosts(&["10.1.0.0/16"], &[]), false),
            (hosts(&["*"], &[]), hosts(&["*"], &["a.example"]), false),
            (hosts(&["*"], &["*.example", "a.example"]), hosts(&["*"], &["a.example"]), true),
            (hosts(&["*"], &["a.example:22"]), hosts(&["*"], &["a.example"]), false),
            (hosts(&["*"], &["a.example"]), hosts(&["*"], &["a.example:22"]), true),
            (hosts(&[], &[]), hosts(&["*"], &["a.example"]), true),
        ] {
            assert_eq!(narrow.is_within(&wide), is_within, "{narrow:?} {wide:?}");
            let common = narrow.narrowed_by(&wide);
            assert!(common.is_within(&narrow) && common.is_within(&wide), "{common:?}");
        }
    }

    #[test]
    fn a_host_is_named_by_an_allowed_pattern_that_is_not_denied() {
        let scope = hosts(&["*.a.example", "b.example:8080"], &["x.a.example", "y.a.example:22"]);
        for (host, is_named) in [
            ("w.a.example", true),
            ("W.a.example.", true),
            ("b.example", true),
            ("y.a.example", true),
            ("x.a.example", false),
            ("a.example", false),
            ("192.0.2.1", false),
            ("[::1]", false),
            ("", false),
        ] {
            assert_eq!(scope.names(host), is_named, "{host}");
        }
    }

    #[test]
    fn switches_are_the_ends_of_all_scopes() {
        let some = NetworkScope::Hosts(hosts(&["a.example"], &[]));
        let empty = NetworkScope::Hosts(HostScope::default());
        for (narrow, wide, is_within) in [
            (&NetworkScope::None, &NetworkScope::None, true),
            (&NetworkScope::None, &some, true),
            (&some, &NetworkScope::None, false),
            (&empty, &NetworkScope::None, true),
            (&some, &NetworkScope::All, true),
            (&NetworkScope::All, &some, false),
            (&NetworkScope::All, &NetworkScope::None, false),
            (&NetworkScope::All, &NetworkScope::All, true),
        ] {
            assert_eq!(narrow.is_within(wide), is_within, "{narrow:?} {wide:?}");
        }
    }

    #[test]
    fn the_common_part_has_no_redundant_pattern() {
        let common = hosts(&["*.a.example", "*.example"], &["x.example"])
            .narrowed_by(&hosts(&["*.a.example:443", "b.example", "other"], &["y.example"]));
        assert_eq!(common, hosts(&["*.a.example:443", "b.example"], &["x.example", "y.example"]));
    }
}
