//! Parts of a session.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use pintle_tools::pipeline::Gate;

use crate::approval::Approver;
use crate::budget::BudgetSource;
use crate::checkpoints::Checkpoints;
use crate::clock::Clock;
use crate::config::SessionConfig;
use crate::hooks::Hooks;
use crate::profile::ProviderProfile;
use crate::subagent::SubagentType;

/// Parts that a builder collects and a driver takes over. A session passes its own on to its subagents.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) profile: ProviderProfile,
    pub(crate) env: Arc<dyn ExecutionEnvironment>,
    pub(crate) config: SessionConfig,
    pub(crate) gates: Vec<Arc<dyn Gate>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Source of more budget. A subagent has its parent.
    pub(crate) budget: Option<Arc<dyn BudgetSource>>,
    /// Types of subagents that the embedding application defined.
    pub(crate) subagent_types: Arc<[SubagentType]>,
}
