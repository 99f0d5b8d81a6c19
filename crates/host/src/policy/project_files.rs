//! Projects of a session, whose files are read once.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use tokio::sync::OnceCell;

use super::Project;
use crate::failure::Failure;

/// Projects that contain the working directory of a session. Rules, budget and hidden files follow from the same state of their
/// files.
#[derive(Debug)]
pub struct ProjectFiles {
    /// The files, without the limits on file tools.
    environment: Arc<dyn ExecutionEnvironment>,
    projects: OnceCell<Vec<Project>>,
}

impl ProjectFiles {
    /// Creates the projects of the working directory of an environment. Nothing is read yet.
    #[must_use]
    pub fn new(environment: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { environment, projects: OnceCell::new() }
    }

    /// Returns the projects, the nearest first, and reads their files at the first call. Dropping the future stops reading, and
    /// the next call reads them.
    ///
    /// # Errors
    ///
    /// As [`Project::read_all`].
    pub async fn projects(&self) -> Result<&[Project], Failure> {
        let read = self.projects.get_or_try_init(|| Project::read_all(self.environment.as_ref()));
        Ok(read.await?.as_slice())
    }
}
