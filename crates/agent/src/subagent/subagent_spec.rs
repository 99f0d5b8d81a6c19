//! Configuration of a subagent.

use std::sync::Arc;

use pintle_env::EnvError;
use pintle_llm::Catalog;
use pintle_tools::gate::{Delegate, EffectGate, Permission};
use pintle_tools::{Effect, ToolError, ToolErrorKind};

use super::subdirectory::Subdirectory;
use super::{SubagentType, prompt, subagent_type};
use crate::driver::Parts;
use crate::profile::{ModelFamily, ProviderProfile, SubagentTools, Toolset};
use crate::protocol::{SubagentOrigin, SubagentRole, SubagentSettings};
use crate::record::SubagentJournals;

/// State that a parent passes to a subagent when the spawning call starts, including changes that were made after the
/// model call.
#[derive(Clone, Debug)]
pub(crate) struct SubagentSpec {
    /// The parent's parts. The profile is without its tools for subagents.
    pub(crate) parts: Parts,
    /// Whether the parent is recorded in memory.
    pub(crate) record: bool,
    /// Store of the subagent's journal, if the parent's journal has such a store.
    pub(crate) journals: Option<Arc<dyn SubagentJournals>>,
    /// Span of the parent's session, which outlives the subagent.
    pub(crate) span: tracing::Span,
}

impl SubagentSpec {
    /// Applies the settings of a call.
    ///
    /// # Errors
    ///
    /// A directory or a model that is not available, with a message for the model.
    pub(super) async fn adapt_to(mut self, settings: &SubagentSettings) -> Result<Self, ToolError> {
        let parts = &mut self.parts;
        if let Some(directory) = &settings.working_dir {
            let parent = Arc::clone(&parts.env);
            parts.env = Subdirectory::enter(parent, directory).await.map_err(unusable_directory)?;
        }
        if let Some(model) = &settings.model {
            parts.profile = profile_for(model, parts)?;
        }
        let kind = self::kind(parts, settings)?.cloned();
        if let Some(tools) = kind.as_ref().and_then(|kind| kind.tools.clone()) {
            parts.profile.tool_registry = tools;
        }
        let limits = &mut parts.config.limits;
        limits.max_turns = settings.max_turns;
        limits.budget = limits.budget.lower(&settings.limits);
        let base = kind.as_ref().and_then(|kind| kind.prompt.as_deref());
        let base = base.unwrap_or(&parts.profile.base_instructions);
        let instructions = prompt::instructions(base, settings.role);
        parts.profile.base_instructions = instructions.into();
        if settings.role == SubagentRole::Explorer {
            parts.gates.push(Arc::new(EffectGate::new().with_permission(Effect::Write, Permission::Deny)));
        }
        Ok(self)
    }
}

impl SubagentSpec {
    /// Replaces the gates with the gates for this subagent.
    ///
    /// # Errors
    ///
    /// The reason of a gate to refuse the subagent.
    pub(super) fn held_by_gates_for(
        mut self,
        origin: &SubagentOrigin,
        settings: &SubagentSettings,
        task: &str,
    ) -> Result<Self, ToolError> {
        let model = self.parts.profile.model.clone();
        let delegate = Delegate::new(&origin.agent_id, origin.session_id.as_str())
            .with_role(settings.role.as_str())
            .with_kind(settings.kind.as_deref())
            .with_task(task)
            .with_model(&model);
        for gate in &mut self.parts.gates {
            if let Some(narrower) = gate.for_subagent(&delegate).map_err(refused)? {
                *gate = narrower;
            }
        }
        let of_kind = kind(&self.parts, settings)?.map(|kind| kind.gates.clone());
        self.parts.gates.extend(of_kind.into_iter().flatten());
        Ok(self)
    }
}

/// Returns the type of a subagent with these settings, if it has one.
fn kind<'parts>(
    parts: &'parts Parts,
    settings: &SubagentSettings,
) -> Result<Option<&'parts SubagentType>, ToolError> {
    let found = settings.kind.as_deref().map(|name| subagent_type::find(&parts.subagent_types, name));
    found.transpose().map_err(ToolError::invalid_arguments)
}

/// Returns the profile for another model. A model of another provider that the client reaches has its own family's
/// profile, in the same toolset.
fn profile_for(model: &str, parent: &Parts) -> Result<ProviderProfile, ToolError> {
    let ours = &parent.profile;
    let provider = match Catalog::built_in().get(model) {
        // Chat Completions servers and custom providers may serve any model under any name.
        Some(info) if info.provider != ours.id && family_with_own_models(&ours.id).is_some() => {
            &info.provider
        }
        Some(_) | None => return Ok(ours.clone().with_model(model)),
    };
    let family = family_with_own_models(provider)
        .filter(|_| parent.client.adapter(Some(provider)).is_ok())
        .ok_or_else(|| unreachable_provider(model, provider, &ours.model))?;
    let toolset = ours.subagent_tools.map_or_else(Toolset::default, SubagentTools::toolset);
    let profile = family.profile(model).with_toolset(toolset);
    Ok(if ours.is_unpriced { profile.without_prices() } else { profile })
}

/// Returns the family of this name if its model names belong to it alone.
fn family_with_own_models(name: &str) -> Option<ModelFamily> {
    name.parse().ok().filter(|family| *family != ModelFamily::OpenAiCompatible)
}

fn unreachable_provider(model: &str, provider: &str, default: &str) -> ToolError {
    let message = format!(
        "the model {model:?} is one of {provider}, which this session cannot reach; leave model out to have {default}"
    );
    ToolError::invalid_arguments(message)
}

fn refused(reason: String) -> ToolError {
    ToolError::new(ToolErrorKind::Denied, reason)
}

fn unusable_directory(error: EnvError) -> ToolError {
    let error = ToolError::from(error);
    let message = format!("working_dir cannot be used: {}", error.for_model());
    ToolError::new(error.kind(), message).with_source(error)
}
