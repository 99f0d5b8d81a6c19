//! The directory on this machine in which a task starts.

use std::path::PathBuf;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::failure::Failure;
use pintle_host::{Host, SessionSpec};

use super::clone_containers::shared_host;

/// Directory on this machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalDirectory {
    /// This machine as the user sees it, without a sandbox. Git runs there.
    pub environment: Arc<dyn ExecutionEnvironment>,
    /// Absolute path.
    pub path: PathBuf,
}

impl LocalDirectory {
    /// Returns the directory of the settings, or the current directory. A task whose clones have containers starts from a
    /// directory on this machine as well.
    ///
    /// # Errors
    ///
    /// A remote host as environment, and a directory that does not exist.
    pub fn from_settings(spec: &SessionSpec, host: &Host) -> Result<Self, Failure> {
        let choice = EnvironmentChoice::try_from(spec)?;
        if matches!(choice.spec, EnvSpec::Ssh(_)) {
            return Err(shared_host());
        }
        let path = host.process_env().directory(choice.directory.as_deref())?;
        let environment = Arc::new(host.process_env().local_environment(&path)?);
        Ok(Self { environment, path })
    }
}
