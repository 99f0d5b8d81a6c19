//! Parts of a session.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use pintle_tools::pipeline::Gate;

use crate::approval::Approver;
use crate::clock::Clock;
use crate::config::SessionConfig;
use crate::profile::ProviderProfile;
use crate::subagent::Lineage;

/// Parts that a builder collects and a driver takes over.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) profile: ProviderProfile,
    pub(crate) env: Arc<dyn ExecutionEnvironment>,
    pub(crate) config: SessionConfig,
    pub(crate) gates: Vec<Arc<dyn Gate>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the owner of the environment initialises it and cleans it up, rather than the session.
    pub(crate) keep_environment: bool,
    pub(crate) lineage: Lineage,
}
