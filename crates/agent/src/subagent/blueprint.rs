//! What a subagent is made of.

use std::sync::Arc;

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::{Catalog, Client};
use pintle_tools::gate::{EffectGate, Ruling};
use pintle_tools::pipeline::Gate;
use pintle_tools::{Effect, ToolError, ToolErrorKind};

use super::directory::Subdirectory;
use super::prompt;
use super::tool::{Order, Role, SubagentTools};
use crate::approval::Approver;
use crate::clock::Clock;
use crate::config::SessionConfig;
use crate::profile::{ProviderProfile, Toolset};

/// Everything that a parent passes on, as it is when the call begins, whatever it was when the model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(crate) client: Client,
    /// The parent's, without its tools for subagents.
    pub(crate) profile: ProviderProfile,
    pub(crate) env: Arc<dyn ExecutionEnvironment>,
    pub(crate) config: SessionConfig,
    pub(crate) gates: Vec<Arc<dyn Gate>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the parent is recorded in memory.
    pub(crate) record: bool,
    /// That of the parent's session, which the subagent does not outlive.
    pub(crate) span: tracing::Span,
}

impl Blueprint {
    /// With what the call asks for.
    ///
    /// # Errors
    ///
    /// A directory or a model that cannot be had, in words for the model.
    pub(super) async fn adapted(mut self, order: &Order) -> Result<Self, ToolError> {
        if let Some(directory) = &order.working_dir {
            let parent = Arc::clone(&self.env);
            self.env = Subdirectory::enter(parent, directory).await.map_err(refused)?;
        }
        if let Some(model) = &order.model {
            self.profile = self.profile_for(model)?;
        }
        self.config.limits.max_turns = order.max_turns;
        let instructions = prompt::instructions(&self.profile.base_instructions, order.role);
        self.profile = self.profile.with_base_instructions(instructions);
        match order.role {
            Role::Worker => {}
            Role::Explorer => {
                self.gates.push(Arc::new(EffectGate::new().with(Effect::Write, Ruling::Deny)));
            }
        }
        Ok(self)
    }

    /// The parent's profile with another model; that of another family if the model belongs to one that the client
    /// reaches, with the tools of the same set.
    fn profile_for(&self, model: &str) -> Result<ProviderProfile, ToolError> {
        let ours = &self.profile;
        let provider = match Catalog::built_in().get(model) {
            // A server behind Chat Completions, and a host's own provider, may have any model under any name.
            Some(info) if info.provider != ours.id && FAMILIES.contains(&ours.id.as_str()) => &info.provider,
            Some(_) | None => return Ok(ours.clone().with_model(model)),
        };
        let other = family(provider, model).filter(|_| self.client.adapter(Some(provider)).is_ok());
        let toolset = ours.subagent_tools.map_or_else(Toolset::default, SubagentTools::toolset);
        other.map(|profile| profile.with_toolset(toolset)).ok_or_else(|| {
            let message = format!(
                "the model {model:?} is one of {provider}, which this session cannot reach; leave model out to have {}",
                ours.model
            );
            ToolError::new(ToolErrorKind::InvalidArguments, message)
        })
    }
}

/// The families whose models bear names of their own.
const FAMILIES: [&str; 3] = ["openai", "anthropic", "gemini"];

/// The profile of such a family.
fn family(provider: &str, model: &str) -> Option<ProviderProfile> {
    match provider {
        "openai" => Some(ProviderProfile::openai(model)),
        "anthropic" => Some(ProviderProfile::anthropic(model)),
        "gemini" => Some(ProviderProfile::gemini(model)),
        _ => None,
    }
}

fn refused(error: EnvError) -> ToolError {
    let error = ToolError::from(error);
    let message = format!("working_dir cannot be used: {}", error.for_model());
    ToolError::new(error.kind(), message).with_source(error)
}
