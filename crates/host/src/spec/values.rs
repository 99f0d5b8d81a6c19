//! Types of settings that no other crate has.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::named_value::NamedValue;

/// Text that is not one of a fixed set of names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found `{found}`, expected one of {}", .expected.join(", "))]
#[non_exhaustive]
pub struct UnknownName {
    /// The text.
    pub found: String,
    /// The names.
    pub expected: &'static [&'static str],
}

/// Declares an enum whose variants have names in configuration files, flags and JSON.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $Choice:ident {
            $( $(#[$variant_meta:meta])* $Variant:ident = $name:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $Choice {
            $( $(#[$variant_meta])* $Variant, )*
        }

        impl $Choice {
            /// Names of the values.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Returns the name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$Variant => $name, )*
                }
            }
        }

        impl fmt::Display for $Choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $Choice {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $( $name => Ok(Self::$Variant), )*
                    _ => Err(UnknownName { found: text.to_owned(), expected: Self::NAMES }),
                }
            }
        }
    };
}

choice! {
    /// Level of the sandbox that commands run in. The order is from the strictest to the weakest.
    SandboxLevel {
        /// Writes only in the workspace; secrets are hidden, and processes and network are separate.
        Full = "full",
        /// The strictest level that the machine supports.
        Auto = "auto",
        /// Writes only in the workspace; every file can be read.
        Writes = "writes",
        /// No sandbox: commands have the permissions of the user.
        Off = "off",
    }
}

choice! {
    /// Starting point of the worktree of a session.
    WorktreeBase {
        /// The commit that is checked out.
        Head = "head",
        /// The commit that is checked out, with the local changes.
        Changes = "changes",
    }
}

impl NamedValue for SandboxLevel {
    const VALUES: &'static [Self] = &[Self::Auto, Self::Full, Self::Writes, Self::Off];

    fn value_name(self) -> &'static str {
        self.as_str()
    }

    fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::Auto => "The strictest level that this machine has",
            Self::Full => {
                "Writes only in the directory; secrets hidden, git's settings protected, own processes and network"
            }
            Self::Writes => "Writes only in the directory; everything can be read",
            Self::Off => "No sandbox: commands have the user's permissions",
        })
    }
}

impl NamedValue for WorktreeBase {
    const VALUES: &'static [Self] = &[Self::Head, Self::Changes];

    fn value_name(self) -> &'static str {
        self.as_str()
    }

    fn meaning(self) -> Option<&'static str> {
        None
    }
}

/// Selection of a profile. The layer that selects it decides between a name and a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileRef {
    /// Profile of a configuration file, by name. Its values are separate layers, and no other setting depends on the name.
    Name(String),
    /// File with a profile of the model: provider, prompt, tools and limits.
    File(PathBuf),
}

/// Base URL of a provider's API. It may contain a password, so `Debug` shows the redacted form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Creates a base URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// Returns the URL, which may contain a password.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL without user, password, query and fragment, which may be secret.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let url = self.0.split(['?', '#']).next().unwrap_or_default();
        let Some((scheme, rest)) = url.split_once("://") else { return Self(url.to_owned()) };
        let (authority, path) =
            rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        Self(format!("{scheme}://{host}{path}"))
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({:?})", self.redacted().0)
    }
}

/// Limit on a number of events of a run. 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CountLimit(pub u64);

impl CountLimit {
    /// No limit.
    pub const NONE: Self = Self(0);

    /// Returns the limit; `None` for no limit.
    #[must_use]
    pub const fn get(self) -> Option<u64> {
        if self.0 == 0 { None } else { Some(self.0) }
    }
}

/// Declaration of an MCP server. It may contain keys, so `Debug` shows only the name.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerDeclaration {
    /// Name of the server.
    pub name: String,
    /// Its declaration, in the form that `.mcp.json` has under `mcpServers`.
    pub declaration: Value,
}

impl ServerDeclaration {
    /// Creates a declaration.
    #[must_use]
    pub fn new(name: impl Into<String>, declaration: Value) -> Self {
        Self { name: name.into(), declaration }
    }
}

impl fmt::Debug for ServerDeclaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDeclaration").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_parse_and_serialize_alike() {
        for name in SandboxLevel::NAMES {
            let level: SandboxLevel = name.parse().unwrap();
            assert_eq!((level.as_str(), serde_json::to_value(level).unwrap()), (*name, json!(name)));
        }
        for name in WorktreeBase::NAMES {
            let base: WorktreeBase = name.parse().unwrap();
            assert_eq!((base.as_str(), serde_json::to_value(base).unwrap()), (*name, json!(name)));
        }
        let error = "none".parse::<SandboxLevel>().unwrap_err().to_string();
        assert_eq!(error, "found `none`, expected one of full, auto, writes, off");
    }

    #[test]
    fn urls_are_redacted() {
        for (url, expected) in [
            ("https://h/v1", "https://h/v1"),
            ("https://user:pass@h:1/v1?key=k#f", "https://h:1/v1"),
            ("https://a@b@h", "https://h"),
            ("h/v1?key=k", "h/v1"),
        ] {
            let url = BaseUrl::new(url);
            assert_eq!(url.redacted().as_str(), expected);
            assert_eq!(format!("{url:?}"), format!("BaseUrl({expected:?})"));
        }
    }

    #[test]
    fn debug_shows_no_keys_of_servers() {
        let server = ServerDeclaration::new("files", json!({"command": "npx", "env": {"KEY": "k-123"}}));
        let shown = format!("{server:?}");
        assert!(shown.contains("files") && !shown.contains("k-123"), "{shown}");
    }
}
