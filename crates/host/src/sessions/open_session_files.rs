//! Files of an open session, as slash commands show them.

use std::sync::Arc;

use pintle_agent::{Count, SessionId};
use pintle_env::ExecutionEnvironment;
use pintle_governance::WorkspacePolicy;
use pintle_store::checkpoint::Comparison;

use super::Sessions;
use super::files::{SessionFiles, SessionPoint};
use crate::environment::EnvSession;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;
use crate::sanitize::to_single_line;

/// Files of a stored session that this process has open.
#[derive(Clone, Debug)]
pub struct OpenSessionFiles {
    sessions: Sessions,
    id: SessionId,
    environment: Arc<dyn ExecutionEnvironment>,
    workspace: WorkspacePolicy,
    process_env: ProcessEnv,
}

impl OpenSessionFiles {
    /// Opens the store for the session with this id, whose tools work in the environment.
    ///
    /// # Errors
    ///
    /// The directory of the state cannot be used, or the database cannot be reached.
    pub async fn open(
        id: SessionId,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let sessions = Sessions::open(process_env).await?;
        let (environment, workspace) = (env_session.environment(), env_session.workspace().clone());
        Ok(Self { sessions, id, environment, workspace, process_env: process_env.clone() })
    }

    /// Returns the id of the session.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the store of the session.
    #[must_use]
    pub const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the files in their present state.
    ///
    /// # Errors
    ///
    /// A record or rules that cannot be read, and an environment that cannot be used.
    pub async fn files(&self) -> Result<SessionFiles<'_>, Failure> {
        let summary = self.sessions.find(self.id.as_str()).await?;
        let record = self.sessions.record(&self.id).await?;
        let replay = record.replay().or_failed("the session cannot be read")?;
        let place = (Arc::clone(&self.environment), &self.workspace);
        SessionFiles::open(&self.sessions, summary, replay, place, &self.process_env).await
    }

    /// Returns the changes since the session started, as [`SessionFiles::diff_text`] does; empty without changes. Dropping the
    /// future changes nothing.
    ///
    /// # Errors
    ///
    /// As [`files`](Self::files), and files that cannot be read.
    pub async fn diff(&self) -> Result<String, Failure> {
        let files = self.files().await?;
        match files.changes(&SessionPoint::Entries(0)).await? {
            Some((_, changes)) => files.diff_text(&changes).await,
            None => Ok(String::new()),
        }
    }
}

impl SessionFiles<'_> {
    /// Returns changes as a unified diff, followed by the number of files that it leaves out and the files whose changes are not
    /// known.
    ///
    /// # Errors
    ///
    /// Contents that cannot be read.
    pub async fn diff_text(&self, changes: &Comparison) -> Result<String, Failure> {
        let mut diff = self.unified_diff(changes).await?;
        if diff.left_out > 0 {
            diff.text.push_str(&format!("[{}]\n", Count(diff.left_out as u64, "more file")));
        }
        for path in &changes.unknown {
            diff.text.push_str(&format!("not known: {}\n", to_single_line(&path.to_string_lossy())));
        }
        Ok(diff.text)
    }
}
