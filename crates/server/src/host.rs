//! Traits that an application implements to be served: [`SessionHost`] and [`SessionControls`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{Principal, Session, SessionId};
use pintle_llm::{ToolList, Usage};
use pintle_store::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::{FileChanges, FilePoint, RestoreReport, RestoreRequest};

/// Opens the sessions of a server. Implemented by embedding applications.
///
/// Each session writes its record to the store of the server, so that it outlives the server. Methods may be called for
/// several sessions at once. Their futures are not dropped when a client goes away.
#[async_trait]
pub trait SessionHost: fmt::Debug + Send + Sync {
    /// Creates a session with this id in the store, and opens it.
    ///
    /// # Errors
    ///
    /// [`HostError::Exists`] if there is one with this id, [`HostError::Invalid`] for a request that cannot be met.
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError>;

    /// Opens a session of the store, which goes on where its record ends.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], [`HostError::Damaged`], and [`HostError::Held`] if another process has it.
    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError>;

    /// Creates a session with id `fork` that begins with the first `turns` entries of the history of `origin`, which may be
    /// in use, and opens it. The fork inherits the present mode, rules, environment and limits of `origin`.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], [`HostError::Exists`] for `fork`, [`HostError::Invalid`] for more entries than there are, and
    /// [`HostError::Damaged`] for more entries than there are before a damage.
    async fn fork(&self, origin: &SessionId, turns: usize, fork: SessionId)
    -> Result<OpenSession, HostError>;

    /// Deletes a session that this server does not have open.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Held`] if another process has it.
    async fn delete(&self, id: &SessionId) -> Result<(), HostError>;

    /// Compares the files of a session with what they were. By default no files are known.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Invalid`] for a point that there is not.
    async fn changes(&self, id: &SessionId, since: &FilePoint) -> Result<FileChanges, HostError> {
        let _ = (id, since);
        Err(HostError::Invalid("the files of sessions are not known here".to_owned()))
    }

    /// Restores files of a session that this server does not have open, and takes its conversation back if that is asked
    /// for. By default no files are known.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], [`HostError::Held`], and [`HostError::Invalid`] for a point that there is not.
    async fn restore(&self, id: &SessionId, request: &RestoreRequest) -> Result<RestoreReport, HostError> {
        let _ = (id, request);
        Err(HostError::Invalid("the files of sessions are not known here".to_owned()))
    }

    /// Returns whether a session that begins with these settings lets more calls run without a decision than sessions here do
    /// by default. It takes the scope `approve` then. By default each mode does.
    fn widens(&self, settings: &SettingsChange) -> bool {
        settings.mode.is_some()
    }

    /// Returns the reason why a fork of a session may let more calls run without a decision than sessions here do by default,
    /// as text for the client; `None` if it does not. Such a fork takes the scope `approve`. By default each fork does.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Damaged`] if no entry of the record can be read.
    async fn fork_widening(&self, origin: &SessionId) -> Result<Option<String>, HostError> {
        let _ = origin;
        Ok(Some("the fork inherits the permissions of its origin".to_owned()))
    }

    /// Returns the cost of one response in US dollars; `None` if a price is unknown, as all are by default.
    fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
        let _ = (provider, model, usage);
        None
    }

    /// Returns a session as one document. By default there are none.
    ///
    /// # Errors
    ///
    /// [`HostError::NotFound`], and [`HostError::Invalid`] for a kind that there is not.
    async fn document(&self, id: &SessionId, kind: DocumentKind) -> Result<String, HostError> {
        let _ = (id, kind);
        Err(HostError::Invalid("there are no such documents here".to_owned()))
    }

    /// Returns what the summary of a session that is not open says about its settings. By default nothing.
    fn settings_of(&self, summary: &Summary) -> SessionSettings {
        let _ = summary;
        SessionSettings::default()
    }

    /// Lists the models that a session can use. By default none are known.
    fn models(&self) -> Vec<ModelSummary> {
        Vec::new()
    }
}

const _: fn(&dyn SessionHost) = |_| {};

/// Sets what a client can set of one session, and closes it. Implemented by embedding applications.
#[async_trait]
pub trait SessionControls: fmt::Debug + Send + Sync {
    /// Returns the present settings.
    fn settings(&self) -> SessionSettings {
        SessionSettings::default()
    }

    /// Returns the tools that the model is offered. None by default.
    fn tools(&self) -> ToolList {
        ToolList::default()
    }

    /// Returns whether a change lets more calls run without a decision. It takes the scope `approve` then. By default each
    /// change of the mode does.
    fn widens(&self, change: &SettingsChange) -> bool {
        change.mode.is_some()
    }

    /// Changes settings on behalf of a principal, which is recorded; `None` if callers have no names. Settings that are `None`
    /// are unchanged.
    ///
    /// # Errors
    ///
    /// [`HostError::Invalid`] for a setting that does not exist here. Nothing is changed then.
    async fn set(&self, change: &SettingsChange, by: Option<&Principal>) -> Result<(), HostError>;

    /// Ends the session in this process, and everything that it uses here. By default it is suspended, so that it goes on
    /// where it was when it is opened again.
    async fn close(&self, session: Session) {
        session.suspend().await;
    }
}

const _: fn(&dyn SessionControls) = |_| {};

/// Kind of a document about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// The record, as JSON lines from which it can be read back.
    Record,
    /// The conversation as Markdown.
    Markdown,
    /// The conversation as one page of HTML that needs nothing else.
    Html,
    /// The audit of its calls as JSON.
    Audit,
    /// The audit as text.
    AuditText,
    /// The audit as one page of HTML that needs nothing else.
    AuditHtml,
}

/// Session that a host has opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenSession {
    /// The session.
    pub session: Session,
    /// Sets what a client can set, and closes the session.
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
    /// Working directory of the tools, absolute. Default: that of the server.
    pub directory: Option<String>,
    /// Execution environment, by a name of the host such as `docker:CONTAINER`. Default: that of the server.
    pub environment: Option<String>,
    /// Rules for calls, besides those that the host has already.
    pub rules: NewRules,
    /// Grant as JSON: no rule, mode or decision goes beyond it. Default: none.
    pub grant: Option<serde_json::Value>,
    /// Settings at the beginning.
    #[serde(flatten)]
    pub settings: SettingsChange,
    /// Properties in the store, which the server sets.
    #[serde(skip)]
    pub properties: BTreeMap<String, String>,
}

/// Rules for the calls of a new session, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewRules {
    /// Calls that nobody has to approve. It takes the scope `approve`.
    pub allow: Vec<String>,
    /// Calls that are denied.
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

/// Reason why a host did not do what a client asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no session with this id.
    #[error("there is no session `{0}`")]
    NotFound(SessionId),
    /// There is a session with this id already.
    #[error("there is a session `{0}` already")]
    Exists(SessionId),
    /// Another process has the session.
    #[error("session `{id}` is in use by {holder}")]
    Held {
        /// Id of the session.
        id: SessionId,
        /// Holder, for people.
        holder: String,
    },
    /// The record of the session is damaged, and the request needs all of it.
    #[error("{damage}; {}", possible_fork(id, *entries))]
    Damaged {
        /// Id of the session.
        id: SessionId,
        /// The damage, as text.
        damage: String,
        /// Number of entries of the history before the damage.
        entries: usize,
    },
    /// The request cannot be met as it is.
    #[error("{0}")]
    Invalid(String),
    /// The request is not allowed here.
    #[error("{0}")]
    Forbidden(String),
    /// The request is well-formed but cannot be processed.
    #[error("{0}")]
    Unprocessable(String),
    /// Anything else.
    #[error("{what}")]
    Failed {
        /// Description of the failure, for people. A client gets it.
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
