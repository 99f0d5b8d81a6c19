//! Messages of version 1 of the protocol, received and sent by the agent.
//!
//! They are defined here and not taken from a crate: see the README.

mod content;
mod received;
mod sent;
mod update;

pub(crate) use self::content::{ContentBlock, ResourceContents};
pub(crate) use self::received::{
    Authenticate, Cancel, CancelRequest, ClientCapabilities, Initialize, ListSessions, McpServer, NamedValue,
    NewSession, OfSession, OpenSession, Prompt, SetConfigOption, SetMode,
};
pub(crate) use self::sent::{
    Capabilities, ConfigOptions, Implementation, Initialized, ListedSession, ListedSessions, Named, Opened,
    Permission, PermissionOption, PermissionOutcome, PermissionRequest, Selection, SessionMethods,
    StopReason, Supported, config_options, modes,
};
pub(crate) use self::update::{
    CallContent, CallStatus, CallUpdate, Command, Cost, Location, PlanEntry, SessionUpdate, ToolKind,
};

/// Supported version of the protocol.
pub(crate) const PROTOCOL_VERSION: u16 = 1;
