//! Messages of version 1 of the protocol, received and sent by the agent.
//!
//! They are defined here and not taken from a crate: see the README.

mod content;
mod received;
mod sent;
mod update;

pub(crate) use self::content::{ContentBlock, ResourceContents};
pub(crate) use self::received::{
    AuthenticateParams, CancelParams, CancelRequestParams, ClientCapabilities, InitializeParams,
    ListSessionsParams, McpServerParams, NamedValue, NewSessionParams, OpenSessionParams, PromptParams,
    SessionIdParams, SetConfigOptionParams, SetModeParams,
};
pub(crate) use self::sent::{
    AgentCapabilities, ConfigOptionsResult, Implementation, InitializeResult, ListSessionsResult,
    ListedSession, NamedItem, OpenSessionResult, PermissionOption, PermissionOptionKind, PermissionOutcome,
    PermissionRequest, PermissionSelection, SessionMethods, StopReason, SupportedCapability, config_options,
    modes,
};
pub(crate) use self::update::{
    AvailableCommand, CallContent, CallStatus, CallUpdate, FileLocation, PlanEntry, SessionCost,
    SessionUpdate, ToolKind,
};

/// Supported version of the protocol.
pub(crate) const PROTOCOL_VERSION: u16 = 1;
