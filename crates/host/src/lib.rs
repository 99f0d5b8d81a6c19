#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod answered_run;
pub mod attendant;
pub mod audit;
pub mod boxed_future;
pub mod budget;
pub mod config_file;
pub mod configuration;
pub mod cost;
pub mod env_spec;
pub mod environment;
pub mod explain;
pub mod failure;
pub mod grant_workspace;
mod host;
pub mod host_command;
pub mod instructions;
pub mod keys;
mod layers;
pub mod limit_sources;
#[cfg(feature = "mcp")]
pub mod mcp;
mod missing_key;
pub mod model;
pub mod model_catalog;
pub mod named_value;
pub mod notice;
mod open;
pub mod policy;
pub mod process_env;
pub mod process_secrets;
pub mod profile_file;
pub mod prompt_commands;
pub mod provider;
pub mod reports;
pub mod route;
pub mod sanitize;
pub mod scripted_models;
#[cfg(feature = "mcp")]
pub mod server_tokens;
pub mod servers;
pub mod session_limits;
pub mod session_store;
pub mod sessions;
pub mod slash_commands;
mod spec;
pub mod timeout;
pub mod tool_manifests;
pub mod toolset;
pub mod user_commands;

pub use async_trait::async_trait;
pub use configuration::{GivenSettings, ResolvedSession, SettingSources};
pub use host::Host;
pub use layers::{
    Access, BoundedValue, ClientScope, DefaultValue, FIELDS, FieldRetention, FieldRow, HttpField, Layer,
    LayerSpec, ProblemKind, RequestClient, RequestSpec, Resolved, SpecProblem, StoredSpec, UnreadableFlag,
    ValueKind, ValueOrigin, limit_recorded_mode, merge,
};
pub use open::{EnvironmentCheck, EnvironmentWrapper, OpenRequest, OpenSession, Surface};
pub use spec::{
    BaseUrl, Combine, CountLimit, EnvironmentSpec, InstructionSpec, InvalidNetwork, LimitSpec, ModelSpec,
    NetworkAccess, PartialEnvironment, PartialInstructions, PartialLimits, PartialModel, PartialPersistence,
    PartialPolicy, PartialSpec, PartialTools, PersistenceSpec, PolicySpec, ProfileRef, SandboxLevel,
    ServerDeclaration, SessionSpec, ToolSpec, UnknownName, WorktreeBase,
};
