//! The session of a conversation, and its store.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_governance::WorkspacePolicy;

use super::files::{Files, Point};
use super::{export, files, list};
use crate::arguments::{ExportFormat, ListFormat, RewindArgs};
use crate::environment::EnvSession;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;
use crate::sessions::{Place, Sessions};
use crate::terminal::StoredSession;

/// Maximum number of sessions in a list of a conversation.
const LISTED: usize = 20;

/// Stored session in which this process converses.
#[derive(Clone, Debug)]
pub(crate) struct Conversed {
    sessions: Sessions,
    id: SessionId,
    environment: Arc<dyn ExecutionEnvironment>,
    workspace: WorkspacePolicy,
    process_env: ProcessEnv,
}

impl Conversed {
    /// Returns the session with this id, whose tools work in the environment.
    pub(crate) async fn open(
        id: SessionId,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let sessions = Sessions::open(process_env).await?;
        let (environment, workspace) = (env_session.environment(), env_session.workspace().clone());
        Ok(Self { sessions, id, environment, workspace, process_env: process_env.clone() })
    }

    async fn files(&self) -> Result<Files<'_>, Failure> {
        let summary = self.sessions.find(self.id.as_str()).await?;
        let record = self.sessions.record(&self.id).await?;
        let replay = record.replay().or_failed("the session cannot be read")?;
        let environment = Arc::clone(&self.environment);
        Files::open(&self.sessions, summary, replay, (environment, &self.workspace), &self.process_env).await
    }
}

#[async_trait]
impl StoredSession for Conversed {
    async fn find(&self, prefix: &str) -> Result<SessionId, Failure> {
        let id = self.sessions.find(prefix).await?.id;
        if id == self.id {
            return Err(Failure::usage(format!("session {id} is already open here")));
        }
        if self.sessions.is_live(&id).await {
            return Err(Failure::failed(format!("session {id} runs in another process")));
        }
        Ok(id)
    }

    async fn diff(&self) -> Result<String, Failure> {
        self.files().await?.diff(&Point::Turns(0), ListFormat::Text).await
    }

    async fn preview_rewind(&self, turns: usize) -> Result<String, Failure> {
        let args = rewind_args(&self.id, turns, false, true);
        self.files().await?.rewind(&Point::Turns(turns), &args).await
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
        export::text(&self.sessions, self.id.as_str(), format).await
    }

    async fn neighbours(&self) -> Result<Vec<String>, Failure> {
        let here = Place::of_summary(&self.sessions.find(self.id.as_str()).await?);
        list::lines(&self.sessions, &here.filter(), LISTED).await
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
    let work = async |files: &Files<'_>| files.rewind(&Point::Turns(turns), &args).await;
    files::in_place(&sessions, id.as_str(), process_env, work).await
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
