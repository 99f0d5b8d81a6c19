//! The host of a user's sessions.

use std::sync::Arc;

use crate::failure::Failure;
use crate::model::Model;
use crate::process_env::ProcessEnv;
use crate::route::ModelChoice;
use crate::sessions::Sessions;
use crate::spec::SessionSpec;

/// Opens sessions with the rules, keys, catalog and stored sessions of a user.
///
/// All of them are found through the variables of a [`ProcessEnv`], which also receives the notices. A program creates it with
/// [`ProcessEnv::capture`], and a test with [`ProcessEnv::from_variables`].
#[derive(Clone, Debug)]
pub struct Host {
    process_env: ProcessEnv,
}

impl Host {
    /// Creates a host.
    #[must_use]
    pub const fn new(process_env: ProcessEnv) -> Self {
        Self { process_env }
    }

    /// Returns the environment of the process.
    #[must_use]
    pub const fn process_env(&self) -> &ProcessEnv {
        &self.process_env
    }

    /// Returns the environment of the process for a session, which can write to its working directory.
    pub(crate) fn process_env_for(&self, spec: &SessionSpec) -> ProcessEnv {
        self.process_env.clone().with_workspace(spec.environment.dir.as_deref())
    }

    /// Opens the store of the sessions.
    ///
    /// # Errors
    ///
    /// The directory of the state cannot be used, or the database cannot be reached.
    pub async fn sessions(&self) -> Result<Sessions, Failure> {
        Sessions::open(&self.process_env).await
    }

    /// Selects the model of a session, and reports a model that the catalog does not contain.
    ///
    /// # Errors
    ///
    /// A missing key, or settings that do not fit together. Dropping the future ends the program that prints a key.
    pub async fn choose_model(&self, spec: &SessionSpec) -> Result<Arc<Model>, Failure> {
        let process_env = self.process_env_for(spec);
        let model = Model::choose(&ModelChoice::try_from(spec)?, &process_env).await?;
        process_env.notices().report_all(model.unknown_model());
        Ok(Arc::new(model))
    }
}
