//! What a session is made of.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use pintle_tools::pipeline::Gate;

use crate::approval::Approver;
use crate::config::SessionConfig;
use crate::profile::ProviderProfile;
use crate::subagent::Lineage;
use crate::timestamp::Clock;

/// What a builder collects and a driver takes over.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) profile: ProviderProfile,
    pub(crate) env: Arc<dyn ExecutionEnvironment>,
    pub(crate) config: SessionConfig,
    pub(crate) gates: Vec<Arc<dyn Gate>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether `initialize` and `cleanup` of the environment are somebody else's.
    pub(crate) keep_environment: bool,
    pub(crate) lineage: Lineage,
}
