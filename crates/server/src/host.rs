//! Traits that an application implements to provide sessions: [`SessionHost`] and [`SessionControls`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{Principal, Session, SessionId};
use pintle_llm::{Money, ToolList, Usage};
use pintle_store::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::{FileChanges, FilePoint, RestoreReport, RestoreRequest};

/// Opens the sessions of a server. Implemented by embedding applications.
///
/// Each session writes its record to the store of the server, so that it outlives the server. Methods may be called for
/// several sessions at once. Their futures are not dropped when a client disconnects.
#[async_trait]
pub trait SessionHost: fmt::Debug + Send + Sync {
    /// Creates a session with this id in the store, and opens it.
    ///
    /// # Errors
    ///
    /// [`HostError::Exists`] if there is a session with this id, [`HostError::Invalid`] for a request that cannot be
    /// fulfilled.
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError>;

    /// Opens a session of the store. The session continues where its record ends.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], [`HostError::Damaged`], and [`HostError::Held`] if another process has it.
    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError>;

    /// Creates a session with id `fork` that starts with the first `entries` entries of the history of `origin`, which may be
    /// in use, and opens it. The fork inherits the current mode, rules, environment and limits of `origin`.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], [`HostError::Exists`] for `fork`, [`HostError::Invalid`] for more entries than exist, and
    /// [`HostError::Damaged`] for more entries than exist before a damage.
    async fn fork(
        &self,
        origin: &SessionId,
        entries: usize,
        fork: SessionId,
    ) -> Result<OpenSession, HostError>;

    /// Deletes a session that this server does not have open.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Held`] if another process has it.
    async fn delete(&self, id: &SessionId) -> Result<(), HostError>;

    /// Compares the files of a session with an earlier state. Not supported by default.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Invalid`] for an unknown point.
    async fn changes(&self, id: &SessionId, since: &FilePoint) -> Result<FileChanges, HostError> {
        let _ = (id, since);
        Err(HostError::Invalid("the files of sessions are not known here".to_owned()))
    }

    /// Restores files of a session that this server does not have open, and rewinds its conversation if requested. Not
    /// supported by default.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], [`HostError::Held`], and [`HostError::Invalid`] for an unknown point.
    async fn restore(&self, id: &SessionId, request: &RestoreRequest) -> Result<RestoreReport, HostError> {
        let _ = (id, request);
        Err(HostError::Invalid("the files of sessions are not known here".to_owned()))
    }

    /// Returns whether a session that starts with these settings lets more calls run without a decision than sessions of
    /// this host do by default. Such settings require the scope `approve`. By default, returns true for every mode.
    fn widens(&self, settings: &SettingsChange) -> bool {
        settings.mode.is_some()
    }

    /// Returns the reason why a fork of a session may let more calls run without a decision than sessions of this host do
    /// by default, as text for the client; `None` if it does not. Such a fork requires the scope `approve`. By default,
    /// returns a reason for every fork.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Damaged`] if no entry of the record can be read.
    async fn fork_widening(&self, origin: &SessionId) -> Result<Option<String>, HostError> {
        let _ = origin;
        Ok(Some("the fork inherits the permissions of its origin".to_owned()))
    }

    /// Returns the cost of one response; `None` if a price is unknown. By default, all prices are unknown.
    fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        let _ = (provider, model, usage);
        None
    }

    /// Returns a session as one document. Not supported by default.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Invalid`] for an unsupported kind.
    async fn document(&self, id: &SessionId, kind: DocumentKind) -> Result<String, HostError> {
        let _ = (id, kind);
        Err(HostError::Invalid("there are no such documents here".to_owned()))
    }

    /// Returns the settings in the summary of a session that is not open. Empty by default.
    fn settings_of(&self, summary: &Summary) -> SessionSettings {
        let _ = summary;
        SessionSettings::default()
    }

    /// Lists the models that a session can use. Empty by default.
    fn models(&self) -> Vec<ModelSummary> {
        Vec::new()
    }
}

const _: fn(&dyn SessionHost) = |_| {};

/// Controls of one session: settings, tools and closing. Implemented by embedding applications.
#[async_trait]
pub trait SessionControls: fmt::Debug + Send + Sync {
    /// Returns the current settings.
    fn settings(&self) -> SessionSettings {
        SessionSettings::default()
    }

    /// Returns the tools that the model can call. Empty by default.
    fn tools(&self) -> ToolList {
        ToolList::default()
    }

    /// Returns whether a change lets more calls run without a decision. Such a change requires the scope `approve`. By
    /// default, returns true for every change of the mode.
    fn widens(&self, change: &SettingsChange) -> bool {
        change.mode.is_some()
    }

    /// Changes settings on behalf of a principal, which is recorded; `None` if callers have no names. Settings that are
    /// `None` stay unchanged.
    ///
    /// # Errors
    ///
    /// [`HostError::Invalid`] for an unsupported setting. No setting is changed then.
    async fn set(&self, change: &SettingsChange, by: Option<&Principal>) -> Result<(), HostError>;

    /// Ends the session in this process and releases its resources. By default, stops its turn and detaches from it, so
    /// that it continues where it stopped when it is opened again.
    async fn close(&self, session: Session) {
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
    }
}

const _: fn(&dyn SessionControls) = |_| {};

/// Kind of a document about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentKind {
    /// The record as JSON lines, which can be read back.
    Record,
    /// The conversation as Markdown.
    Markdown,
    /// The conversation as a self-contained HTML page.
    Html,
    /// The audit of its calls as JSON.
    Audit,
    /// The audit as text.
    AuditText,
    /// The audit as a self-contained HTML page.
    AuditHtml,
}

/// Session that a host has opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenSession {
    /// The session.
    pub session: Session,
    /// Controls of the session.
    pub controls: Arc<dyn SessionControls>,
}

impl OpenSession {
    /// Creates an open session.
    #[must_use]
    pub fn new(session: Session, controls: Arc<dyn SessionControls>) -> Self {
        Self { session, controls }
    }
}

/// Request for a new session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NewSession {
    /// Working directory in the environment, absolute. Default: the directory of the server.
    pub directory: Option<String>,
    /// Execution environment, by a name of the host such as `docker:CONTAINER`. Default: the environment of the server.
    pub environment: Option<String>,
    /// Rules for calls, in addition to the rules of the host.
    pub rules: NewRules,
    /// Grant that no rule, mode or decision exceeds, as JSON. Default: none.
    pub grant: Option<serde_json::Value>,
    /// Settings at the beginning.
    #[serde(flatten)]
    pub settings: SettingsChange,
    /// Whether the client has the scope `approve`, which the server sets.
    #[serde(skip)]
    pub can_approve: bool,
    /// Properties in the store, which the server sets.
    #[serde(skip)]
    pub properties: BTreeMap<String, String>,
}

/// Rules for the calls of a new session, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewRules {
    /// Rules for calls that need no decision. Requires the scope `approve`.
    pub allow: Vec<String>,
    /// Rules for calls that do not run.
    pub deny: Vec<String>,
}

/// Settings to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct SettingsChange {
    /// Model, from the next request on.
    pub model: Option<String>,
    /// Mode: what happens to calls that no rule names.
    pub mode: Option<String>,
    /// Reasoning effort, from the next request on.
    pub effort: Option<String>,
}

/// Settings of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionSettings {
    /// Working directory of the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Mode: what happens to calls that no rule names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// Model that a session can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ModelSummary {
    /// Id.
    pub id: String,
    /// Context window in tokens.
    pub context_window: u64,
}

impl ModelSummary {
    /// Creates a summary.
    #[must_use]
    pub fn new(id: impl Into<String>, context_window: u64) -> Self {
        Self { id: id.into(), context_window }
    }
}

/// Reason why a host did not fulfil a client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no session with this id.
    #[error("there is no session `{0}`")]
    NotFound(SessionId),
    /// A session with this id already exists.
    #[error("there is a session `{0}` already")]
    Exists(SessionId),
    /// Another process has the session.
    #[error("session `{id}` is in use by {holder}")]
    Held {
        /// Id of the session.
        id: SessionId,
        /// Holder, as text for users.
        holder: String,
    },
    /// The record of the session is damaged, and the request needs the complete record.
    #[error("{damage}; {}", possible_fork(id, *entries))]
    Damaged {
        /// Id of the session.
        id: SessionId,
        /// The damage, as text.
        damage: String,
        /// Number of entries of the history before the damage.
        entries: usize,
    },
    /// The request cannot be fulfilled in this form.
    #[error("{0}")]
    Invalid(String),
    /// The request is not allowed here.
    #[error("{0}")]
    Forbidden(String),
    /// The request is well-formed but cannot be processed.
    #[error("{0}")]
    Unprocessable(String),
    /// Any other failure.
    #[error("{what}")]
    Failed {
        /// Description of the failure for users. The client gets it.
        what: String,
        /// The cause. Only the operator gets it.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl HostError {
    /// Creates [`Failed`](Self::Failed) with a cause.
    #[must_use]
    pub fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed { what: what.into(), source: Some(source.into()) }
    }
}

/// Returns the request that continues a session with a damaged record, as text for a client.
fn possible_fork(id: &SessionId, entries: usize) -> String {
    match entries {
        0 => "no entry of its history can be read".to_owned(),
        _ => format!(
            "`POST /v1/sessions/{id}/fork` with `{{\"turns\": {entries}}}` or fewer continues in a new session with the entries before the damage"
        ),
    }
}
