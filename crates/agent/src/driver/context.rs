//! Loading of the context of a request (loop specification, section 6).

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle_env::{EnvError, ExecutionEnvironment, Redactions};
use pintle_llm::{Error, ErrorKind};
use pintle_tools::ToolRegistry;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::environment::EnvironmentInit;
use super::{Driver, Report};
use crate::profile::ProviderProfile;
use crate::prompt::{EnvironmentContext, SystemPrompt};
use crate::protocol::{CallKind, InputKind, LoadId, LoadedProject, TurnContext};
use crate::subagent::Subagents;

impl Driver {
    /// Runs later calls in `env`.
    pub(super) fn set_environment(&mut self, env: Arc<dyn ExecutionEnvironment>) {
        self.environment.replace(env);
        // Which tools can leave a sandbox depends on it.
        self.set_profile(self.base_profile.clone());
    }

    /// Starts a load and cancels the earlier one. The machine ignores it by its id if it has already ended.
    pub(super) fn load_context(&mut self, load: LoadId) {
        let reports = self.reports.clone();
        let loader = ContextLoader {
            env: Arc::clone(self.environment.current()),
            environment: self.environment.description(),
            init: self.environment.initialization(),
            profile: self.profile.clone(),
            user_instructions: self.config.user_instructions.clone(),
            redactions: self.config.redactions.clone(),
            date: self.clock.now().date(),
        };
        let cancelled = CancellationToken::new();
        self.loading = Some(cancelled.clone().drop_guard());
        let task = async move {
            let loaded = AssertUnwindSafe(loader.run()).catch_unwind().await;
            let loaded = loaded.unwrap_or_else(|_| {
                tracing::error!("loading the context of a request panicked");
                Err(Error::new(ErrorKind::Configuration, "loading the context of a request panicked"))
            });
            let input = match loaded {
                Ok(context) => InputKind::ContextLoaded { load, context: Box::new(context) },
                Err(error) => InputKind::ContextFailed { load, error: error.info().clone() },
            };
            // If the driver is gone, the context is no longer needed.
            let _ = reports.send(Report::input(input)).await;
        };
        let task = async move { cancelled.run_until_cancelled(task).await };
        self.spawn(task.map(drop).instrument(self.trace.run()));
    }
}

/// Returns a profile with the session's additions: tools for subagents, and, where the environment has a sandbox that
/// can be left, an argument by which a command asks for that.
pub(super) fn in_session(
    profile: &ProviderProfile,
    subagents: &Subagents,
    env: &dyn ExecutionEnvironment,
) -> ProviderProfile {
    let mut profile = subagents.add_tools(profile);
    if env.outside_sandbox().is_some()
        && let Err(error) = profile.tool_registry.offer_outside_sandbox()
    {
        tracing::error!(%error, "a command cannot ask to leave the sandbox");
    }
    profile
}

struct ContextLoader {
    env: Arc<dyn ExecutionEnvironment>,
    /// Gathered by the first load that succeeds, so that the prompt stays the same bytes.
    environment: Arc<OnceCell<EnvironmentContext>>,
    init: EnvironmentInit,
    profile: ProviderProfile,
    user_instructions: Option<String>,
    redactions: Redactions,
    date: String,
}

impl ContextLoader {
    async fn run(self) -> Result<TurnContext, Error> {
        let environment = self.environment.get_or_try_init(|| self.gather_environment()).await?;
        let root = environment.git_root();
        let profile = &self.profile;
        let docs = profile.project_docs(self.env.as_ref(), root).await;
        let layers = profile.prompt_layers(environment, &docs, self.user_instructions.as_deref());
        let prompt = SystemPrompt::from_layers(&layers).redacted(&self.redactions);
        let mut context = TurnContext::new(
            profile.provider.clone(),
            profile.model.clone(),
            prompt.text,
            profile.context_window_size,
        );
        context.stable_prompt = prompt.stable;
        context.project = LoadedProject::from(&docs);
        context.tools = profile.offered_tools(!docs.skills.is_empty());
        context.call_kinds = call_kinds(&profile.tool_registry);
        context.provider_options.clone_from(&profile.provider_options);
        context.max_tokens = profile.max_output_tokens;
        context.pricing.clone_from(&profile.pricing);
        context.bounds = profile.token_bounds();
        context.parallel_tool_calls = profile.supports_parallel_tool_calls;
        context.supports_reasoning = profile.supports_reasoning;
        Ok(context)
    }

    async fn gather_environment(&self) -> Result<EnvironmentContext, Error> {
        let ready = async {
            self.init.ensure().await?;
            expect_working_directory(self.env.as_ref()).await
        };
        ready.await.map_err(|error| {
            Error::new(ErrorKind::Configuration, "the execution environment cannot be used")
                .with_source(error)
        })?;
        Ok(EnvironmentContext::gather(self.env.as_ref(), self.date.clone()).await)
    }
}

/// Returns an error if the working directory is missing or is a file. The session does not initialise a shared
/// environment or one that was set later, and not every `initialize` checks the directory.
async fn expect_working_directory(env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
    let directory = env.working_directory();
    match env.metadata(directory).await {
        Ok(metadata) if !metadata.is_dir() => Err(EnvError::NotADirectory { path: directory.to_path_buf() }),
        Err(error @ (EnvError::NotFound { .. } | EnvError::NotADirectory { .. })) => Err(error),
        // Any other failure is reported by the tool that meets it.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the kinds of the calls of these tools, except [`CallKind::Other`].
fn call_kinds(tools: &ToolRegistry) -> BTreeMap<String, CallKind> {
    let kind = |name: &str| {
        let tool = tools.get(name)?;
        let kind = CallKind::of_tool(tool.kind(), tool.effect());
        (kind != CallKind::Other).then(|| (name.to_owned(), kind))
    };
    tools.names().filter_map(kind).collect()
}
