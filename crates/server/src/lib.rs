#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests build sessions without a host"))]

mod access_token;
mod api;
mod audit;
mod authentication;
mod console;
mod counters;
mod damage;
mod feed;
mod files;
mod host;
mod hub;
mod limits;
mod problem;
mod serve;
mod store_session_host;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod unauthenticated;
#[cfg(feature = "host")]
mod user_session_host;

pub use access_token::{AccessToken, AccessTokens, TokenError, TokenScope};
pub use async_trait::async_trait;
pub use audit::{AuditLine, AuditLog};
pub use authentication::{Authenticator, ClientIdentity, RequestParts};
pub use files::{FileChanges, FileLeft, FilePoint, FileStep, RestoreReport, RestoreRequest};
pub use host::{
    DocumentKind, HostError, ModelSummary, NewRules, NewSession, OpenSession, SessionControls, SessionHost,
    SessionSettings, SettingsChange,
};
pub use hub::Reopened;
pub use limits::ServerLimits;
pub use serve::Server;
pub use store_session_host::StoreSessionHost;
#[cfg(feature = "tls")]
pub use tls::{TlsError, TlsIdentity};
#[cfg(feature = "host")]
pub use user_session_host::{UserSessionHost, UserSessionHostBuilder, WorkspaceRoot};
