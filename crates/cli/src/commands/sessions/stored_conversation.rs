//! The session of a conversation, and its store.

use std::path::Path;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_host::environment::EnvSession;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::export::{ExportFormat, export_session};
use pintle_host::sessions::files::{SessionFiles, SessionPoint, with_session_files};
use pintle_host::sessions::{OpenSessionFiles, SessionLocation, Sessions};
use pintle_tui::terminal::StoredSession;

use super::files::{self, RewindSurface};
use super::list;
use crate::arguments::{ListFormat, RewindArgs};

/// Maximum number of sessions in a list of a conversation.
const LISTED: usize = 20;

/// Stored session of the conversation in this process.
#[derive(Clone, Debug)]
pub(crate) struct StoredConversation {
    files: OpenSessionFiles,
}

impl StoredConversation {
    /// Returns the session with this id, whose tools work in the environment.
    pub(crate) async fn open(
        id: SessionId,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        Ok(Self { files: OpenSessionFiles::open(id, env_session, process_env).await? })
    }
}

#[async_trait]
impl StoredSession for StoredConversation {
    async fn find(&self, prefix: &str) -> Result<SessionId, Failure> {
        let id = self.files.sessions().find(prefix).await?.id;
        if id == *self.files.id() {
            return Err(Failure::usage(format!("session {id} is already open here")));
        }
        if self.files.sessions().is_live(&id).await {
            return Err(Failure::failed(format!("session {id} runs in another process")));
        }
        Ok(id)
    }

    async fn diff(&self) -> Result<String, Failure> {
        self.files.diff().await
    }

    async fn preview_rewind(&self, turns: usize) -> Result<String, Failure> {
        let args = rewind_args(self.files.id(), turns, false, true);
        let (files, point) = (self.files.files().await?, SessionPoint::Entries(turns));
        files::rewind(&files, &point, &args, RewindSurface::Conversation).await
    }

    async fn export(&self, name: &str) -> Result<String, Failure> {
        let format = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("md" | "markdown") => ExportFormat::Markdown,
            Some("html" | "htm") => ExportFormat::Html,
            Some("jsonl") => ExportFormat::Jsonl,
            _ => {
                let problem = format!("expected a name that ends in .md, .html or .jsonl, found {name}");
                return Err(Failure::usage(problem));
            }
        };
        Ok(export_session(self.files.sessions(), self.files.id().as_str(), format).await?.text)
    }

    async fn neighbours(&self) -> Result<Vec<String>, Failure> {
        let here =
            SessionLocation::from_summary(&self.files.sessions().find(self.files.id().as_str()).await?);
        list::lines(self.files.sessions(), &here.filter(), LISTED).await
    }
}

/// Rewinds a session that no process runs to the first entries of its history, with its files, and returns a report.
///
/// Fails if another process has changed something, unless it is forced, or if a file was not restored.
pub(crate) async fn rewind(
    id: &SessionId,
    turns: usize,
    forced: bool,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let args = rewind_args(id, turns, forced, false);
    let point = SessionPoint::Entries(turns);
    let work = async |files: &SessionFiles<'_>| {
        files::rewind(files, &point, &args, RewindSurface::Conversation).await
    };
    with_session_files(&sessions, id.as_str(), process_env, work).await
}

fn rewind_args(id: &SessionId, turns: usize, force: bool, dry_run: bool) -> RewindArgs {
    RewindArgs {
        id: format!("{id}@{turns}"),
        checkpoint: None,
        conversation: false,
        files: false,
        force,
        dry_run,
        output: ListFormat::Text,
    }
}
