//! A row of the table of fields.

use std::fmt;

use crate::spec::{Combine, NetworkAccess};
use crate::timeout;

/// A field of [`SessionSpec`](crate::SessionSpec), with its names in each source of settings.
///
/// Programs with additional settings declare them as rows as well, with [`new`](Self::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldRow {
    /// Path of the field, such as `policy.mode`.
    pub path: &'static str,
    /// Type of a value as text.
    pub kind: ValueKind,
    /// How the values of layers combine.
    pub combine: Combine,
    /// Meaning.
    pub meaning: &'static str,
    /// Default.
    pub default: DefaultValue,
    /// Files that may set the field.
    pub access: Access,
    /// Key of `config.toml` and of its profiles.
    pub key: Option<&'static str>,
    /// Environment variables other than [`variable`](Self::variable).
    pub variables: &'static [&'static str],
    /// Flags, without dashes.
    pub flags: &'static [&'static str],
    /// Field of a request to the HTTP server.
    pub http: Option<HttpField>,
    /// Option or parameter of ACP.
    pub acp: Option<&'static str>,
    /// Options of the SDKs of other agents, with the name of the agent.
    pub sdk: &'static [&'static str],
    /// Whether a session stores the value.
    pub retention: FieldRetention,
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A text that is not empty.
    Text,
    /// An HTTP or HTTPS URL.
    Url,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A whole number.
    Count,
    /// A whole number from 0 to 100.
    Percent,
    /// A time such as `15m`.
    Time,
    /// True or false.
    Switch,
    /// Path of a file or directory.
    Path,
    /// Name of a profile, or path of a file.
    Profile,
    /// Rule for calls.
    Rule,
    /// A value with parts, which has its own form in each source.
    Structure,
    /// A switch of the network, or a table with lists of hosts, which is JSON as text.
    Network,
}

/// Default of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value.
    Value(&'static str),
    /// This percentage.
    Percent(u8),
    /// No value; the text describes the effect.
    Description(&'static str),
}

/// Files that may set a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The user's file, and the file of every project.
    Safe,
    /// The user's file, and the file of a project that the user trusts.
    Trusted,
    /// Only the user's file.
    User,
}

/// Field of a request to the HTTP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpField {
    /// Name, such as `rules.deny`.
    pub name: &'static str,
    /// Scope that the client needs.
    pub scope: ClientScope,
    /// Whether a flag of the server with another value makes the field invalid.
    pub is_fixed_by_flag: bool,
}

/// Scope that a client needs for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientScope {
    /// The scope for new sessions.
    Create,
    /// The scope for new sessions. A value that allows more than the default of new sessions needs the scope for approvals
    /// as well.
    CreateOrApprove,
    /// The scope for approvals.
    Approve,
}

/// Whether a session stores a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRetention {
    /// It stores the value.
    Always,
    /// It stores the value, unless the value is a flag, which applies to one run.
    UnlessFlag,
    /// It does not store the value.
    Never,
}

impl FieldRow {
    /// Creates a row for a field that only the user can set.
    #[must_use]
    pub const fn new(path: &'static str, kind: ValueKind, combine: Combine, meaning: &'static str) -> Self {
        Self {
            path,
            kind,
            combine,
            meaning,
            default: DefaultValue::Description("none"),
            access: Access::User,
            key: None,
            variables: &[],
            flags: &[],
            http: None,
            acp: None,
            sdk: &[],
            retention: FieldRetention::Never,
        }
    }

    /// Returns the environment variable that sets the key of the field.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        self.key.map(|key| format!("PINTLE_{}", key.to_uppercase()))
    }

    /// Sets the default.
    #[must_use]
    pub const fn with_default(mut self, default: DefaultValue) -> Self {
        self.default = default;
        self
    }

    /// Sets the key, and the flag of the same name.
    #[must_use]
    pub const fn with_key(
        mut self,
        key: &'static str,
        flags: &'static [&'static str],
        access: Access,
    ) -> Self {
        self.key = Some(key);
        self.flags = flags;
        self.access = access;
        self
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the files that may set the field.
    #[must_use]
    pub const fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the additional environment variables.
    #[must_use]
    pub const fn with_variables(mut self, variables: &'static [&'static str]) -> Self {
        self.variables = variables;
        self
    }

    /// Sets the field of a request.
    #[must_use]
    pub const fn with_http(mut self, name: &'static str, scope: ClientScope) -> Self {
        self.http = Some(HttpField { name, scope, is_fixed_by_flag: false });
        self
    }

    /// Sets the field of a request that a flag of the server fixes.
    #[must_use]
    pub const fn with_fixed_http(mut self, name: &'static str, scope: ClientScope) -> Self {
        self.http = Some(HttpField { name, scope, is_fixed_by_flag: true });
        self
    }

    /// Sets the name in ACP.
    #[must_use]
    pub const fn with_acp(mut self, name: &'static str) -> Self {
        self.acp = Some(name);
        self
    }

    /// Sets the options of the SDKs of other agents.
    #[must_use]
    pub const fn with_sdk(mut self, options: &'static [&'static str]) -> Self {
        self.sdk = options;
        self
    }

    /// Sets whether a session stores the value.
    #[must_use]
    pub const fn with_retention(mut self, retention: FieldRetention) -> Self {
        self.retention = retention;
        self
    }
}

impl ValueKind {
    /// Returns the expected values, for messages.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Text => "a text that is not empty".to_owned(),
            Self::Url => "a URL that begins with https:// or http://".to_owned(),
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::Count => "a whole number from 0".to_owned(),
            Self::Percent => "a whole number from 0 to 100".to_owned(),
            Self::Time => "a time from 1ms to 24h, such as \"90s\" or \"15m\"".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Path => "the path of a file".to_owned(),
            Self::Profile => "the name of a profile, or the path of a file".to_owned(),
            Self::Rule => "a rule for calls, such as shell(git *)".to_owned(),
            Self::Structure => "a value with parts".to_owned(),
            Self::Network => "\"on\", \"off\", or hosts such as { allow = [\"*.example.com\"] }".to_owned(),
        }
    }

    /// Returns whether a text is a value. Rules are not parsed, and a value with parts has no common form as text.
    #[must_use]
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::Text | Self::Path | Self::Profile | Self::Rule => !text.trim().is_empty(),
            Self::Url => is_url(text),
            Self::Choice(names) => names.contains(&text),
            Self::Count => text.parse::<u64>().is_ok(),
            Self::Percent => text.parse::<u8>().is_ok_and(|number| number <= 100),
            Self::Time => timeout::parse(text).is_ok(),
            Self::Switch => matches!(text, "true" | "false"),
            Self::Structure => false,
            Self::Network => text.parse::<NetworkAccess>().is_ok(),
        }
    }
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['))
}

/// Writes the value, or the description in parentheses.
impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.write_str(value),
            Self::Percent(percent) => write!(f, "{percent}"),
            Self::Description(text) => write!(f, "({text})"),
        }
    }
}

impl Access {
    /// Returns the name in the reference.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Trusted => "trusted",
            Self::User => "user",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_rejected() {
        let cases = [
            (ValueKind::Text, " "),
            (ValueKind::Url, "ftp://host"),
            (ValueKind::Url, "https://"),
            (ValueKind::Url, "127.0.0.1:8080"),
            (ValueKind::Choice(&["a"]), "b"),
            (ValueKind::Count, "-1"),
            (ValueKind::Percent, "101"),
            (ValueKind::Time, "25h"),
            (ValueKind::Switch, "yes"),
            (ValueKind::Path, ""),
            (ValueKind::Rule, ""),
            (ValueKind::Structure, "{}"),
            (ValueKind::Network, "all"),
            (ValueKind::Network, "{\"allow\": [\"https://host\"]}"),
        ];
        for (kind, value) in cases {
            assert!(!kind.accepts(value), "{kind:?}: {value}");
        }
    }

    #[test]
    fn defaults_are_values_or_descriptions() {
        assert_eq!(DefaultValue::Value("15m").to_string(), "15m");
        assert_eq!(DefaultValue::Percent(85).to_string(), "85");
        assert_eq!(DefaultValue::Description("the model's").to_string(), "(the model's)");
    }
}
