//! Layers of settings, and the rules by which they form one specification.

mod fields;
mod flags;
mod merge;
mod row;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::fields::FIELDS;
pub use self::flags::UnreadableFlag;
pub use self::merge::merge;
pub use self::row::{Access, ClientScope, DefaultValue, FieldRetention, FieldRow, HttpField, ValueKind};
pub use self::stored::{StoredSpec, limit_recorded_mode};
use crate::spec::{PartialSpec, SessionSpec};

/// Kind of a layer, from the weakest to the strongest.
///
/// Projects, stored sessions and clients are *below the user*: whatever their strength, they never exceed the limits that the
/// user set in the other layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Defaults of a surface that differ from the defaults of [`SessionSpec`].
    Default,
    /// The user's configuration.
    User,
    /// The selected profile of the user's configuration.
    UserProfile,
    /// The configuration of the project.
    Project {
        /// Whether the user trusts it in its current state.
        trusted: bool,
    },
    /// The selected profile of the project's configuration.
    ProjectProfile {
        /// Whether the user trusts it in its current state.
        trusted: bool,
    },
    /// Environment variables.
    Variables,
    /// Settings with which a stored session was started.
    Remembered {
        /// Values of the user's configuration when the session was started, for the fields that it limits. A value of the
        /// session that exceeded them was a decision of the user. It applies until the configuration becomes stricter. If
        /// they are unknown, the current configuration limits each value.
        user: Option<Box<PartialSpec>>,
    },
    /// Flags of the process, including the flags of an SDK that started it.
    CommandLine,
    /// Request of a client for a new session.
    Request {
        /// Kind of the client.
        client: RequestClient,
        /// Whether the client may decide on approvals, and thus also allow calls in advance.
        can_approve: bool,
    },
}

/// Client that requests a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClient {
    /// Client of the HTTP server.
    Http,
    /// Editor, over ACP.
    Editor,
}

impl Layer {
    /// Returns the position in the order of strength.
    const fn strength(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::User => 1,
            Self::UserProfile => 2,
            Self::Project { .. } => 3,
            Self::ProjectProfile { .. } => 4,
            Self::Variables => 5,
            Self::Remembered { .. } => 6,
            Self::CommandLine => 7,
            Self::Request { .. } => 8,
        }
    }

    /// Returns whether the layer is a setting of the user. Other layers except the defaults are below the user.
    const fn belongs_to_user(&self) -> bool {
        matches!(self, Self::User | Self::UserProfile | Self::Variables | Self::CommandLine)
    }
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ValueOrigin {
    /// No layer sets the field.
    Default,
    /// File.
    File {
        /// Name for messages.
        name: String,
        /// Line of the value, from 1.
        line: usize,
        /// Profile of the file that has the value.
        profile: Option<String>,
    },
    /// Environment variable, by name.
    Variable(String),
    /// Flag, with its dashes.
    Flag(String),
    /// A stored session, with the origin that the value had when the session was started, if it is known.
    Remembered(Option<Box<ValueOrigin>>),
    /// Field of a client's request, by name.
    Request(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line, profile: None } => write!(f, "{name}:{line}"),
            Self::File { name, line, profile: Some(profile) } => {
                write!(f, "{name}:{line}, profile {profile}")
            }
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
            Self::Remembered(None) => f.write_str("kept session"),
            Self::Remembered(Some(origin)) => write!(f, "kept session, {origin}"),
            Self::Request(name) => write!(f, "request, field {name}"),
        }
    }
}

/// Settings of one layer, with their origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSpec {
    /// Kind of the layer.
    pub layer: Layer,
    /// The settings.
    pub spec: PartialSpec,
    /// Origin of the fields that have no entry in `origins`.
    pub origin: ValueOrigin,
    /// Origins by the path of the field.
    pub origins: BTreeMap<String, ValueOrigin>,
}

impl LayerSpec {
    /// Creates a layer whose values have one origin.
    #[must_use]
    pub fn new(layer: Layer, spec: PartialSpec, origin: ValueOrigin) -> Self {
        Self { layer, spec, origin, origins: BTreeMap::new() }
    }

    /// Sets the origin of a field.
    #[must_use]
    pub fn with_origin(mut self, path: impl Into<String>, origin: ValueOrigin) -> Self {
        self.origins.insert(path.into(), origin);
        self
    }

    /// Returns the origin of a field.
    fn origin_of(&self, path: &str) -> ValueOrigin {
        self.origins.get(path).unwrap_or(&self.origin).clone()
    }
}

/// Settings that a client requests for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    /// Kind of the client.
    pub client: RequestClient,
    /// Whether the client may decide on approvals.
    pub can_approve: bool,
    /// The settings.
    pub spec: PartialSpec,
}

impl From<RequestSpec> for LayerSpec {
    /// Returns the layer of the request, with its fields as the origins.
    fn from(request: RequestSpec) -> Self {
        let RequestSpec { client, can_approve, spec } = request;
        let set = spec.set_paths();
        let mut layer = Self::new(Layer::Request { client, can_approve }, spec, ValueOrigin::Default);
        for row in FIELDS.iter().filter(|row| set.contains(&row.path)) {
            let name = match client {
                RequestClient::Http => row.http.map(|field| field.name),
                RequestClient::Editor => row.acp,
            };
            layer = layer.with_origin(row.path, ValueOrigin::Request(name.unwrap_or(row.path).to_owned()));
        }
        layer
    }
}

/// The specification that several layers form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The specification.
    pub spec: SessionSpec,
    /// Origins of the fields that a layer set, by path: one for each element of a list that combines by
    /// [`Combine::Append`](crate::Combine::Append), and else one for each layer that the value depends on.
    pub origins: BTreeMap<&'static str, Vec<ValueOrigin>>,
    /// Values of projects that do not apply because the project may not set them.
    pub left_out: Vec<SpecProblem>,
    /// Values that were reduced to the value of the user.
    pub bounded: Vec<BoundedValue>,
}

impl Resolved {
    /// Returns the origin that decided about a field.
    #[must_use]
    pub fn origin(&self, path: &str) -> &ValueOrigin {
        static DEFAULT: ValueOrigin = ValueOrigin::Default;
        self.origins.get(path).and_then(|origins| origins.last()).unwrap_or(&DEFAULT)
    }
}

/// Value that a layer may not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: `{path}`: expected {expected}")]
#[non_exhaustive]
pub struct SpecProblem {
    /// Path of the field.
    pub path: &'static str,
    /// Origin of the value.
    pub origin: ValueOrigin,
    /// Kind.
    pub kind: ProblemKind,
    /// Description of what would be accepted.
    pub expected: String,
}

/// Reason why a layer may not set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The user does not trust the project.
    Untrusted,
    /// This kind of layer never sets the field.
    NotAllowed,
    /// The client needs the scope for approvals.
    MissingScope,
    /// The value allows more than the limit.
    Wider,
    /// The command line of the process has another value.
    Fixed,
}

/// Value of a layer below the user that allows more than the user's own value, which therefore applies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundedValue {
    /// Path of the field.
    pub path: &'static str,
    /// Origin of the value that does not apply.
    pub origin: ValueOrigin,
    /// Origin of the value that applies.
    pub limit: ValueOrigin,
}

impl fmt::Display for BoundedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, origin, limit } = self;
        // Users know the field by its key.
        let name = FieldRow::find(path).and_then(|row| row.key).unwrap_or(*path);
        write!(f, "{origin}: `{name}` allows more than {limit}, which applies instead")
    }
}
