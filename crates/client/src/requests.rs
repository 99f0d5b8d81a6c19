//! Bodies and parameters of requests.

use pintle_agent::{Decision, SessionId, SessionState, UserMessage};
use pintle_llm::{Fingerprint, MediaSource};
use serde::Serialize;
use serde_json::Value;

use crate::error::ClientError;

/// Media type of an image without one.
const IMAGE: &str = "image/png";

/// Filter of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// Maximum number of sessions on a page, up to 500. Default: 50.
    pub limit: Option<usize>,
    /// Cursor of the page: `next` of the previous page. Default: the first page.
    pub cursor: Option<String>,
    /// Text in the title.
    pub search: Option<String>,
    /// State.
    pub state: Option<SessionState>,
    /// Session whose subagents are listed.
    pub parent: Option<SessionId>,
}

/// A session to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Absolute working directory of the tools. Default: the server's directory.
    pub directory: Option<String>,
    /// Execution environment: `local`, `docker:CONTAINER` or `ssh:HOST`. Default: the server's environment.
    pub environment: Option<String>,
    /// Rules for calls, in addition to the rules of the server's user and of the project.
    pub rules: NewRules,
    /// Grant as a JSON object. No rule, mode or decision exceeds it.
    pub grant: Option<Value>,
    /// Settings. Default: the server's settings.
    pub settings: SettingsChange,
    /// First message.
    pub message: Option<UserMessage>,
}

/// Rules for the calls of a session, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewRules {
    /// Calls that need no approval. Requires a token with the scope `approve`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// Settings to change. A setting that is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SettingsChange {
    /// Model, from the next request on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Mode: what happens to calls that no rule names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Reasoning effort, from the next request on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// Earlier state of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePoint {
    /// State before the first change after this number of history entries.
    Entries(usize),
    /// State of the checkpoint with this id.
    Checkpoint(String),
}

/// Restore of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreRequest {
    /// State to restore.
    pub to: FilePoint,
    /// Whether the conversation goes back to `turns` as well.
    pub conversation: bool,
    /// Whether the restore is only planned: the report lists the changes, and no file changes.
    pub dry_run: bool,
    /// Whether files that another process may have changed are restored too.
    pub force: bool,
}

impl RestoreRequest {
    /// Creates a restore of the files alone.
    #[must_use]
    pub fn new(to: FilePoint) -> Self {
        Self { to, conversation: false, dry_run: false, force: false }
    }
}

/// Format of an exported session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// The journal.
    #[default]
    Jsonl,
    /// The conversation as Markdown.
    Markdown,
    /// The conversation as a page.
    Html,
}

impl ExportFormat {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
            Self::Html => "html",
        }
    }
}

/// Format of an audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditFormat {
    /// JSON.
    #[default]
    Json,
    /// Text.
    Text,
    /// A page.
    Html,
}

impl AuditFormat {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::Html => "html",
        }
    }
}

#[derive(Serialize)]
pub(crate) struct CreateBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    rules: NewRules,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Value>,
    #[serde(flatten)]
    settings: SettingsChange,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageBody>,
}

impl TryFrom<NewSession> for CreateBody {
    type Error = ClientError;

    fn try_from(new: NewSession) -> Result<Self, ClientError> {
        let NewSession { directory, environment, rules, grant, settings, message } = new;
        let message = message.map(MessageBody::try_from).transpose()?;
        Ok(Self { directory, environment, rules, grant, settings, message })
    }
}

#[derive(Serialize)]
pub(crate) struct MessageBody {
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageBody>,
}

#[derive(Serialize)]
struct ImageBody {
    data: pintle_llm::Blob,
    media_type: String,
}

impl TryFrom<UserMessage> for MessageBody {
    type Error = ClientError;

    fn try_from(message: UserMessage) -> Result<Self, ClientError> {
        let images = message.images.into_iter().map(|image| match image.source {
            MediaSource::Data(data) => {
                Ok(ImageBody { data, media_type: image.media_type.unwrap_or_else(|| IMAGE.to_owned()) })
            }
            MediaSource::Url(_) | MediaSource::Path(_) | _ => Err(ClientError::ImageSource),
        });
        Ok(Self { text: message.text, images: images.collect::<Result<_, _>>()? })
    }
}

#[derive(Serialize)]
pub(crate) struct TurnsBody {
    pub(crate) turns: usize,
}

#[derive(Serialize)]
pub(crate) struct DecisionBody {
    fingerprint: Fingerprint,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
}

impl DecisionBody {
    pub(crate) fn new(fingerprint: Fingerprint, decision: Decision) -> Result<Self, ClientError> {
        let (decision, reason, arguments) = match decision {
            Decision::Approve => ("approve", None, None),
            Decision::Deny { reason } => ("deny", reason, None),
            Decision::Change { arguments } => ("change", None, Some(arguments)),
            other => return Err(ClientError::Decision(format!("{other:?}"))),
        };
        Ok(Self { fingerprint, decision, reason, arguments })
    }
}

#[derive(Serialize)]
pub(crate) struct RestoreBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    conversation: bool,
    dry_run: bool,
    force: bool,
}

impl From<RestoreRequest> for RestoreBody {
    fn from(restore: RestoreRequest) -> Self {
        let RestoreRequest { to, conversation, dry_run, force } = restore;
        let (turns, checkpoint) = match to {
            FilePoint::Entries(entries) => (Some(entries), None),
            FilePoint::Checkpoint(id) => (None, Some(id)),
        };
        Self { turns, checkpoint, conversation, dry_run, force }
    }
}
