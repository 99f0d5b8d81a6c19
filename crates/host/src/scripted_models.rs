//! Models whose answers come from a script.

use std::fmt::Debug;
use std::path::Path;

use async_trait::async_trait;

use crate::failure::Failure;
use crate::provider::Provider;

/// Server of a script, which shuts down when it is dropped.
pub type ScriptServer = Box<dyn Debug + Send + Sync>;

/// Starts models whose answers come from a script.
#[async_trait]
pub trait ScriptedModels: Debug + Send + Sync {
    /// Starts the model of a script file. `provider` and `model` replace the values in the script.
    ///
    /// Fails if the file is not a script, or if its server cannot be started.
    async fn start(
        &self,
        file: &Path,
        provider: Option<Provider>,
        model: Option<String>,
    ) -> Result<ScriptedModel, Failure>;
}

/// Running model whose answers come from a script. It is called over HTTP like any other.
#[derive(Debug)]
pub struct ScriptedModel {
    /// Provider whose dialect it is called in.
    pub provider: Provider,
    /// The only accepted model name; any name if it is `None`.
    pub model: Option<String>,
    /// Base URL of its server.
    pub base_url: String,
    /// Its server.
    pub server: ScriptServer,
}
