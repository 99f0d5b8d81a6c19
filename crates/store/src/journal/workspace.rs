//! The workspace in which a session's tools work.

use pintle_env::ExecutionEnvironment;

use super::StoredJournal;
use crate::store::Summary;

/// Whether an environment reaches the files that a session has worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkspaceMatch {
    /// The environment reaches the same files, with proof.
    Same,
    /// The session does not record its workspace.
    Unknown,
    /// It reaches another workspace, or cannot prove that it is the same. An unfinished session is then *stranded*: it
    /// can be read, decided on, and forked.
    Other,
}

/// Compares the workspace of a session with the workspace of an environment.
pub async fn match_workspace(summary: &Summary, env: &dyn ExecutionEnvironment) -> WorkspaceMatch {
    let Some(known) = summary.properties.get(StoredJournal::WORKSPACE) else {
        return WorkspaceMatch::Unknown;
    };
    match env.place().await {
        Ok(Some(place)) if place == *known => WorkspaceMatch::Same,
        Ok(_) | Err(_) => WorkspaceMatch::Other,
    }
}

impl StoredJournal {
    /// Records the workspace in which the tools of the session work from now on, if the environment can identify it.
    pub async fn set_workspace(&mut self, env: &dyn ExecutionEnvironment) {
        match env.place().await {
            Ok(Some(place)) => self.summary.properties.insert(Self::WORKSPACE.to_owned(), place),
            Ok(None) | Err(_) => self.summary.properties.remove(Self::WORKSPACE),
        };
    }

    /// Returns the summary of the session.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}
