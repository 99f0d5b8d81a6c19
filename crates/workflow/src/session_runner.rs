//! Sessions and environments that a host provides for a task.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{Limits, Principal};
use pintle_env::ExecutionEnvironment;
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::task::{WorkCost, WorkEnd};

/// A workspace: a directory for a session or for judged commands, with variables that no other workspace shares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workspace {
    /// Root of the clone.
    pub root: PathBuf,
    /// Directory below the root in which commands and sessions work. Empty for the root. They can read the rest of the clone.
    pub subdirectory: PathBuf,
    /// Variables of commands: a target directory, a directory for temporary files, and free ports.
    pub variables: BTreeMap<String, String>,
    /// Directories outside of the workspace that commands can read and not change: the objects of the user's repository.
    pub readable: Vec<PathBuf>,
}

/// Work for a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionAssignment {
    /// Id of the session. An existing session continues.
    pub session: String,
    /// Task that it belongs to, for the record.
    pub task: String,
    /// Message. A message that is already on record is not sent again.
    pub message: String,
    /// Messages that arrived before the session was open.
    pub steering: Vec<SteeringMessage>,
    /// Workspace of the session.
    pub workspace: Workspace,
    /// Model. Default: the model of the host.
    pub model: Option<String>,
    /// Reasoning effort.
    pub effort: Option<String>,
    /// JSON Schema that the last response has to match.
    pub answer: Option<Value>,
    /// Limits of this work.
    pub limits: Limits,
}

/// Message for a session that is working or about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteeringMessage {
    /// Text.
    pub text: String,
    /// User who sent it; the user of this process if absent.
    pub author: Option<Principal>,
}

/// Work that a session has done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkResult {
    /// End.
    pub end: WorkEnd,
    /// The last response, if a schema was required and it matches.
    pub answer: Option<Value>,
    /// Costs.
    pub spent: WorkCost,
    /// Error that ended the work, such as an error of a provider.
    pub error: Option<String>,
}

/// Reason why a session could not work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct WorkError(pub String);

/// Number of loop warnings after which a session is interrupted and its work ends with [`WorkEnd::Loop`].
pub const MAX_LOOPS: u32 = 2;

/// Runs sessions.
#[async_trait]
pub trait SessionRunner: fmt::Debug + Send + Sync {
    /// Carries out an assignment, and closes its session. When `cancel` is cancelled, the session is suspended, and has no
    /// running process when this returns. A session that loops is interrupted after [`MAX_LOOPS`] warnings.
    ///
    /// # Errors
    ///
    /// [`WorkError`] if the session cannot be opened.
    async fn run(
        &self,
        assignment: SessionAssignment,
        cancel: &CancellationToken,
    ) -> Result<WorkResult, WorkError>;

    /// Sends a message to a session that is working, or that [`run`](Self::run) is about to open, on behalf of its author.
    /// Returns whether the session accepts it.
    async fn steer(&self, session: &str, message: SteeringMessage) -> bool;
}

/// An environment in which commands run.
pub struct OpenWorkspace {
    environment: Arc<dyn ExecutionEnvironment>,
    /// Kept while the environment is in use.
    _guard: Box<dyn Any + Send + Sync>,
}

/// Opens environments for judged commands and sessions.
#[async_trait]
pub trait WorkspaceFactory: fmt::Debug + Send + Sync {
    /// Opens an environment whose working directory is the workspace, for judged commands and for sessions alike. Its
    /// commands have the variables of the workspace, can read its readable directories, and should not be able to change
    /// files outside of it. A sandbox may set `TMPDIR` to another directory, which its commands can write to and no other
    /// workspace shares.
    ///
    /// # Errors
    ///
    /// [`WorkError`], with the reason.
    async fn open(&self, workspace: &Workspace) -> Result<OpenWorkspace, WorkError>;

    /// Returns whether the files are lost that commands have left outside of the workspace, such as installed packages. The
    /// workspace has to be prepared again then. The default keeps no such files, and returns `false`.
    async fn is_lost(&self, workspace: &Workspace) -> bool {
        let _ = workspace;
        false
    }

    /// Ends what the factory has started for the workspaces below a directory, before their files are removed. The default
    /// has started nothing.
    ///
    /// # Errors
    ///
    /// [`WorkError`] if a part of it may be left.
    async fn end(&self, directory: &Path) -> Result<(), WorkError> {
        let _ = directory;
        Ok(())
    }
}

impl Workspace {
    /// Creates a workspace with these variables.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, variables: BTreeMap<String, String>) -> Self {
        Self { root: root.into(), subdirectory: PathBuf::new(), variables, readable: Vec::new() }
    }

    /// Sets the directories outside of the workspace that commands can read and not change.
    #[must_use]
    pub fn with_readable(mut self, readable: Vec<PathBuf>) -> Self {
        self.readable = readable;
        self
    }

    /// Sets the directory below the root in which commands and sessions work. Cargo builds there, because a sandbox may keep
    /// commands from writing to other directories.
    #[must_use]
    pub fn in_directory(mut self, directory: &str) -> Self {
        self.subdirectory = directory.into();
        let target = self.working_directory().join("target");
        if let Some(variable) = self.variables.get_mut("CARGO_TARGET_DIR") {
            *variable = target.display().to_string();
        }
        self
    }

    /// Returns the directory in which commands and sessions work.
    #[must_use]
    pub fn working_directory(&self) -> PathBuf {
        // An empty path would add a final slash.
        if self.subdirectory.as_os_str().is_empty() {
            return self.root.clone();
        }
        self.root.join(&self.subdirectory)
    }

    /// Returns the directories that commands and sessions can read and not change: the objects of the user's repository, and
    /// the clone around a subdirectory.
    #[must_use]
    pub fn readable_directories(&self) -> Vec<PathBuf> {
        let around = (!self.subdirectory.as_os_str().is_empty()).then(|| self.root.clone());
        self.readable.iter().cloned().chain(around).collect()
    }

    /// Returns the directory that contains all files of the workspace.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }
}

impl WorkResult {
    /// Creates a result of work.
    #[must_use]
    pub fn new(end: WorkEnd, spent: WorkCost) -> Self {
        Self { end, answer: None, spent, error: None }
    }

    /// Sets the error that ended the work.
    #[must_use]
    pub fn with_error(mut self, error: Option<String>) -> Self {
        self.error = error;
        self
    }

    /// Sets the last response.
    #[must_use]
    pub fn with_answer(mut self, answer: Option<Value>) -> Self {
        self.answer = answer;
        self
    }
}

impl OpenWorkspace {
    /// Creates an open workspace. `guard` is dropped after the environment.
    #[must_use]
    pub fn new(environment: Arc<dyn ExecutionEnvironment>, guard: impl Any + Send + Sync) -> Self {
        Self { environment, _guard: Box::new(guard) }
    }

    /// Returns the environment.
    #[must_use]
    pub fn environment(&self) -> &dyn ExecutionEnvironment {
        self.environment.as_ref()
    }
}

impl fmt::Debug for OpenWorkspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenWorkspace").field("environment", &self.environment).finish_non_exhaustive()
    }
}
