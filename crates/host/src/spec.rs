//! The specification of a session: every setting that determines it, as plain data.
//!
//! Settings with a fixed set of values are types, such as [`Mode`] and [`SandboxLevel`]. Settings whose form depends on the
//! workspace or the provider stay text: rules, environments, providers and models. The code that opens a session parses them.

mod breadth;
mod network;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use pintle_agent::{CompactionPolicy, Toolset};
use pintle_governance::{AtLimit, Grant, HostScope, Mode, ScopedLimits, UnknownPrice};
use serde::{Deserialize, Serialize};

pub(crate) use self::breadth::Breadth;
pub use self::network::{InvalidNetwork, NetworkAccess};
pub use self::values::{
    BaseUrl, CountLimit, ProfileRef, SandboxLevel, ServerDeclaration, UnknownName, WorktreeBase,
};

/// How the values of several layers form one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Combine {
    /// The strongest layer decides.
    Replace,
    /// The values of all layers apply.
    Append,
    /// The strongest layer decides, but a layer below the user allows at most as much as the user's own value.
    Bounded,
    /// Each layer below the user can only narrow the value. The layers of the user replace each other.
    Narrow,
}

/// Access to one field of a specification.
pub(crate) type FieldGetter<T> = fn(&PartialSpec) -> &T;

/// Computes each field from several layers, one function for each [`Combine`].
pub(crate) trait Combiner {
    fn replace<T: Clone + Default + PartialEq>(&mut self, path: &'static str, get: FieldGetter<T>) -> T;

    fn append<T: Clone + PartialEq>(&mut self, path: &'static str, get: FieldGetter<Vec<T>>) -> Vec<T>;

    /// `default` is the value that applies if no layer has one.
    fn bounded<T: Breadth>(
        &mut self,
        path: &'static str,
        get: FieldGetter<Option<T>>,
        default: Option<T>,
    ) -> Option<T>;

    fn narrow<T: Breadth>(&mut self, path: &'static str, get: FieldGetter<Option<T>>) -> Option<T>;
}

/// Types of the fields of [`PartialSpec`], by kind of field.
mod partial {
    pub(super) type Optional<T> = Option<T>;
    pub(super) type Required<T> = Option<T>;
    pub(super) type List<T> = Vec<T>;
}

/// Types of the fields of [`SessionSpec`], by kind of field.
mod full {
    pub(super) type Optional<T> = Option<T>;
    pub(super) type Required<T> = T;
    pub(super) type List<T> = Vec<T>;
}

/// Returns whether a field of [`PartialSpec`] is unset.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Value of a field of [`SessionSpec`].
macro_rules! resolved {
    (Required, $value:expr, $default:expr) => {
        $value.unwrap_or($default)
    };
    ($kind:ident, $value:expr,) => {
        $value
    };
}

/// Default of a field as an option.
macro_rules! default_value {
    (Required, $default:expr) => {
        Some($default)
    };
    ($kind:ident,) => {
        None
    };
}

/// Call of a [`Combiner`].
macro_rules! combined {
    (replace, $combiner:expr, $path:expr, $get:expr, $default:expr) => {
        $combiner.replace($path, $get)
    };
    (append, $combiner:expr, $path:expr, $get:expr, $default:expr) => {
        $combiner.append($path, $get)
    };
    (bounded, $combiner:expr, $path:expr, $get:expr, $default:expr) => {
        $combiner.bounded($path, $get, $default)
    };
    (narrow, $combiner:expr, $path:expr, $get:expr, $default:expr) => {
        $combiner.narrow($path, $get)
    };
}

/// Adds the value of a stronger layer to a field.
macro_rules! overlay {
    (append, $value:expr, $stronger:expr) => {
        for value in &$stronger {
            if !$value.contains(value) {
                $value.push(value.clone());
            }
        }
    };
    ($combine:ident, $value:expr, $stronger:expr) => {
        if !is_default(&$stronger) {
            $value.clone_from(&$stronger);
        }
    };
}

/// The variant of [`Combine`].
macro_rules! combine {
    (replace) => {
        Combine::Replace
    };
    (append) => {
        Combine::Append
    };
    (bounded) => {
        Combine::Bounded
    };
    (narrow) => {
        Combine::Narrow
    };
}

/// Declares [`SessionSpec`] and [`PartialSpec`] with their sections, and the list of their fields.
///
/// A field is `Optional(Type)`, `Required(Type = default)` or `List(Type)`. The word after it is its [`Combine`].
macro_rules! spec {
    ($(
        $(#[$section_meta:meta])*
        $section:ident: $Full:ident, $Partial:ident {
            $(
                $(#[$meta:meta])*
                $field:ident: $kind:ident($type:ty $(= $default:expr)?) $combine:ident;
            )*
        }
    )*) => {
        /// Every setting that determines a session. `Default` has the defaults of the command.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[non_exhaustive]
        pub struct SessionSpec {
            $(
                $(#[$section_meta])*
                pub $section: $Full,
            )*
        }

        impl SessionSpec {
            /// Path of each field, such as `policy.mode`, and how its values combine, in the order of declaration.
            pub const FIELDS: &'static [(&'static str, Combine)] = &[
                $( $( (concat!(stringify!($section), ".", stringify!($field)), combine!($combine)), )* )*
            ];
        }

        impl Default for SessionSpec {
            fn default() -> Self {
                PartialSpec::default().resolve()
            }
        }

        /// The fields of [`SessionSpec`], each of which may be unset: the settings of one layer.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[non_exhaustive]
        pub struct PartialSpec {
            $(
                $(#[$section_meta])*
                #[serde(skip_serializing_if = "is_default")]
                pub $section: $Partial,
            )*
        }

        impl PartialSpec {
            /// Returns the specification with defaults for the fields that are unset.
            #[must_use]
            pub fn resolve(self) -> SessionSpec {
                SessionSpec { $( $section: self.$section.resolve(), )* }
            }

            /// Returns whether a field is set, by its path. No other path is set.
            #[must_use]
            pub fn is_set(&self, path: &str) -> bool {
                $( $(
                    if path == concat!(stringify!($section), ".", stringify!($field)) {
                        return !is_default(&self.$section.$field);
                    }
                )* )*
                false
            }

            /// Returns the paths of the fields that are set, in the order of declaration.
            #[must_use]
            pub fn set_paths(&self) -> Vec<&'static str> {
                SessionSpec::FIELDS.iter().map(|(path, _)| *path).filter(|path| self.is_set(path)).collect()
            }

            /// Unsets a field, by its path.
            pub fn clear(&mut self, path: &str) {
                $( $(
                    if path == concat!(stringify!($section), ".", stringify!($field)) {
                        self.$section.$field = Default::default();
                    }
                )* )*
            }

            /// Returns whether a field has the same value in another specification, by its path.
            pub(crate) fn has_same(&self, other: &Self, path: &str) -> bool {
                $( $(
                    if path == concat!(stringify!($section), ".", stringify!($field)) {
                        return self.$section.$field == other.$section.$field;
                    }
                )* )*
                false
            }

            /// Adds the values of a stronger layer without limits.
            pub(crate) fn overlay(&mut self, stronger: &Self) {
                $( $( overlay!($combine, self.$section.$field, stronger.$section.$field); )* )*
            }

            /// Computes each field.
            pub(crate) fn combine(combiner: &mut impl Combiner) -> Self {
                Self { $( $section: $Partial::combine(combiner), )* }
            }
        }

        $(
            $(#[$section_meta])*
            #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            #[non_exhaustive]
            pub struct $Full {
                $(
                    $(#[$meta])*
                    pub $field: full::$kind<$type>,
                )*
            }

            impl Default for $Full {
                fn default() -> Self {
                    $Partial::default().resolve()
                }
            }

            $(#[$section_meta])*
            #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            #[non_exhaustive]
            pub struct $Partial {
                $(
                    $(#[$meta])*
                    #[serde(skip_serializing_if = "is_default")]
                    pub $field: partial::$kind<$type>,
                )*
            }

            impl $Partial {
                fn resolve(self) -> $Full {
                    $Full { $( $field: resolved!($kind, self.$field, $($default)?), )* }
                }

                fn combine(combiner: &mut impl Combiner) -> Self {
                    Self {
                        $(
                            $field: {
                                fn get(spec: &PartialSpec) -> &partial::$kind<$type> {
                                    &spec.$section.$field
                                }
                                combined!(
                                    $combine,
                                    combiner,
                                    concat!(stringify!($section), ".", stringify!($field)),
                                    get,
                                    default_value!($kind, $($default)?)
                                )
                            },
                        )*
                    }
                }
            }
        )*
    };
}

spec! {
    /// The model and its endpoint.
    model: ModelSpec, PartialModel {
        /// Provider of the model, or `scripted`. Default: the provider of a known model, else the first with a key.
        provider: Optional(String) replace;
        /// Name of the model. Default: the best model of the provider.
        name: Optional(String) replace;
        /// Base URL of the provider's API. Default: the URL of the provider.
        base_url: Optional(BaseUrl) replace;
        /// Script of the provider `scripted`.
        script: Optional(PathBuf) replace;
        /// Wire dialect of the provider `scripted`.
        dialect: Optional(String) replace;
        /// Profile.
        profile: Optional(ProfileRef) replace;
        /// Reasoning effort. Default: the effort of the model.
        reasoning_effort: Optional(String) replace;
        /// Time after which a model call without output is aborted.
        timeout: Optional(Duration) replace;
        /// Catalog of models and prices. Default: the built-in catalog.
        catalog: Optional(PathBuf) replace;
    }

    /// The environment of the tools, and its limits.
    environment: EnvironmentSpec, PartialEnvironment {
        /// Environment: `local`, `docker:CONTAINER` or `ssh:[USER@]HOST[:PORT]`.
        kind: Required(String = "local".to_owned()) replace;
        /// Working directory in the environment. Default: the directory in which the environment starts commands.
        dir: Optional(PathBuf) replace;
        /// Level of the sandbox that commands run in.
        sandbox: Required(SandboxLevel = SandboxLevel::Auto) bounded;
        /// Network access of sandboxed commands and web tools. Default: off in a sandbox, otherwise on.
        network: Optional(NetworkAccess) bounded;
        /// Whether file tools are restricted to the working directory.
        confine: Required(bool = false) bounded;
        /// Directories in and below which the session may work, absolute and without links. Default: every directory.
        roots: Optional(BTreeSet<PathBuf>) narrow;
    }

    /// Which calls run, and which need a decision.
    policy: PolicySpec, PartialPolicy {
        /// Treatment of calls that no rule names.
        mode: Required(Mode = Mode::Auto) bounded;
        /// Mode after an accepted plan.
        after_plan: Required(Mode = Mode::Edit) bounded;
        /// Rules for calls that need no decision.
        allow: List(String) append;
        /// Rules for calls that need a decision.
        ask: List(String) append;
        /// Rules for calls that do not run.
        deny: List(String) append;
        /// Paths that tools and sandboxed commands cannot read.
        hidden: List(PathBuf) append;
        /// Grant that no rule, mode or decision exceeds. Default: unrestricted.
        grant: Optional(Grant) narrow;
        /// Whether calls wait for a decision by another process if no user can be asked.
        wait_approval: Required(bool = false) replace;
        /// Whether changes to files that the model has not read are rejected.
        read_before_write: Required(bool = false) bounded;
    }

    /// Limits on runs and on spending.
    limits: LimitSpec, PartialLimits {
        /// Limit on model responses of a run.
        max_turns: Required(CountLimit = CountLimit::NONE) bounded;
        /// Limit on rounds of tool calls of a run.
        max_tool_rounds: Required(CountLimit = CountLimit::NONE) bounded;
        /// Share of the context window, in percent, at which the conversation is summarized; 0 is never.
        compact_at: Required(u8 = CompactionPolicy::AUTOMATIC) replace;
        /// Limits on tokens, cost, calls and time.
        budget: Required(ScopedLimits = ScopedLimits::default()) narrow;
        /// Behaviour at a limit on tokens, cost or calls. Default: the behaviour of the user's budget file, or else to stop.
        at_limit: Optional(AtLimit) replace;
        /// Behaviour under a limit on cost for a model without a known price. Default: the behaviour of the user's budget file,
        /// or else to refuse.
        unknown_price: Optional(UnknownPrice) replace;
    }

    /// The tools that the model is offered.
    tools: ToolSpec, PartialTools {
        /// Toolset.
        toolset: Required(Toolset = Toolset::Native) replace;
        /// Names of the only tools that are offered, besides the tools of MCP servers. Default: all.
        only: Optional(BTreeSet<String>) narrow;
        /// MCP servers. They may contain keys.
        servers: List(ServerDeclaration) append;
        /// Files that declare MCP servers.
        server_files: List(PathBuf) replace;
        /// Whether MCP servers of files are used.
        use_servers: Required(bool = true) replace;
    }

    /// The system prompt.
    instructions: InstructionSpec, PartialInstructions {
        /// Text that replaces the base instructions of the profile.
        base: Optional(String) replace;
        /// Text at the end of the system prompt.
        extra: Optional(String) replace;
    }

    /// How the session is stored.
    persistence: PersistenceSpec, PartialPersistence {
        /// Whether the session is stored.
        keep: Required(bool = true) replace;
        /// Id of a new session. Default: a generated one.
        id: Optional(String) replace;
        /// Additional properties of a new session in the store.
        properties: Optional(BTreeMap<String, String>) replace;
        /// Base of the git worktree that belongs to the session. Default: no worktree.
        worktree: Optional(WorktreeBase) replace;
    }
}

impl EnvironmentSpec {
    /// Returns whether sandboxed commands and web tools may use the network without a limit to [some hosts](Self::hosts).
    #[must_use]
    pub fn has_network(&self) -> bool {
        match &self.network {
            Some(access) => *access == NetworkAccess::On,
            None => self.sandbox == SandboxLevel::Off,
        }
    }

    /// Returns the hosts that sandboxed commands and web tools may reach; `None` without such a limit.
    #[must_use]
    pub fn hosts(&self) -> Option<&HostScope> {
        self.network.as_ref()?.hosts()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_specification_is_an_empty_object() {
        assert_eq!(serde_json::to_value(PartialSpec::default()).unwrap(), json!({}));
        assert_eq!(serde_json::from_value::<PartialSpec>(json!({})).unwrap(), PartialSpec::default());
        assert_eq!(serde_json::from_value::<SessionSpec>(json!({})).unwrap(), SessionSpec::default());
    }

    #[test]
    fn specifications_are_plain_data() {
        let text = json!({
            "model": {"name": "m", "profile": {"name": "review"}},
            "environment": {"kind": "docker:c", "sandbox": "writes", "network": "off", "roots": ["/w"]},
            "policy": {"mode": "plan", "deny": ["shell(git push *)"]},
            "limits": {"max_turns": 3},
            "tools": {"servers": [{"name": "files", "declaration": {"command": "npx"}}]},
        });
        let spec: PartialSpec = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap(), text);
        let resolved = spec.resolve();
        assert_eq!((resolved.policy.mode, resolved.policy.after_plan), (Mode::Plan, Mode::Edit));
        let again = serde_json::to_value(&resolved).unwrap();
        assert_eq!(serde_json::from_value::<SessionSpec>(again).unwrap(), resolved);
    }

    #[test]
    fn unknown_fields_are_refused() {
        for text in [
            json!({"polcy": {}}),
            json!({"policy": {"denny": []}}),
            json!({"limits": {"budget": {"week": {}}}}),
        ] {
            assert!(serde_json::from_value::<PartialSpec>(text.clone()).is_err(), "{text}");
            assert!(serde_json::from_value::<SessionSpec>(text.clone()).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_are_found_by_their_paths() {
        let mut spec = PartialSpec::default();
        spec.policy.mode = Some(Mode::Plan);
        spec.policy.deny = vec!["shell".to_owned()];
        assert_eq!(spec.set_paths(), ["policy.mode", "policy.deny"]);
        assert!(spec.is_set("policy.mode") && !spec.is_set("policy") && !spec.is_set("policy.moed"));
        let mut other = PartialSpec::default();
        assert!(!spec.has_same(&other, "policy.mode") && spec.has_same(&other, "policy.allow"));
        other.policy.deny = vec!["@write".to_owned(), "shell".to_owned()];
        other.policy.mode = Some(Mode::Ask);
        spec.overlay(&other);
        assert_eq!(
            (spec.policy.mode, spec.policy.deny.join(" ")),
            (Some(Mode::Ask), "shell @write".to_owned())
        );
        spec.clear("policy.mode");
        assert_eq!(spec.set_paths(), ["policy.deny"]);
    }

    #[test]
    fn the_network_follows_the_sandbox() {
        for (sandbox, network, expected) in [
            (SandboxLevel::Auto, None, false),
            (SandboxLevel::Off, None, true),
            (SandboxLevel::Off, Some(NetworkAccess::Off), false),
            (SandboxLevel::Full, Some(NetworkAccess::On), true),
        ] {
            let environment = EnvironmentSpec { sandbox, network, ..EnvironmentSpec::default() };
            assert_eq!(environment.has_network(), expected, "{environment:?}");
        }
    }
}
