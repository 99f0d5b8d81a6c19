//! Gathering what a request is made of beside the history (loop specification, section 6).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::{Error, ErrorKind};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{Driver, Report};
use crate::id::LoadId;
use crate::profile::ProviderProfile;
use crate::project_docs::LoadedProject;
use crate::prompt::{EnvironmentContext, SystemPrompt};
use crate::turn::{InputKind, TurnContext};

impl Driver {
    /// Has what follows take place in `env`, and what the prompt says of the place gathered anew if it is another one.
    pub(super) fn move_to(&mut self, env: Arc<dyn ExecutionEnvironment>) {
        if env.working_directory() != self.env.working_directory() {
            self.environment = Arc::default();
        }
        self.env = env;
    }

    /// A session that begins with a prompt gathers nothing before its first call.
    pub(super) fn readiness(&self) -> Readiness {
        let home = self.initialize.then(|| Arc::clone(&self.home));
        Readiness { home, initialized: Arc::clone(&self.initialized) }
    }

    /// Starts to gather. An earlier loading is given up; should it have come to its end already, it comes too late, and
    /// the machine tells it by its number.
    pub(super) fn load_context(&mut self, load: LoadId) {
        let reports = self.reports.clone();
        let gathering = Load {
            env: Arc::clone(&self.env),
            environment: Arc::clone(&self.environment),
            readiness: self.readiness(),
            profile: self.profile.clone(),
            user_instructions: self.config.user_instructions.clone(),
            date: self.clock.now().date(),
        };
        let unwanted = CancellationToken::new();
        self.loading = Some(unwanted.clone().drop_guard());
        let task = async move {
            let loaded = AssertUnwindSafe(gathering.run()).catch_unwind().await;
            let loaded = loaded.unwrap_or_else(|_| {
                tracing::error!("gathering the prompt's facts panicked");
                Err(Error::new(ErrorKind::Configuration, "gathering the prompt's facts panicked"))
            });
            let input = match loaded {
                Ok(context) => InputKind::ContextLoaded { load, context: Box::new(context) },
                Err(error) => InputKind::ContextFailed { load, error: error.info().clone() },
            };
            // Without a driver nobody wants the facts.
            let _ = reports.send(Report::input(input)).await;
        };
        let task = async move { unwanted.run_until_cancelled(task).await };
        self.spawn(task.map(drop).instrument(self.trace.run()));
    }
}

/// The place that a session has to make ready before anything happens there, once; nothing for one that others care
/// for.
#[derive(Clone, Debug)]
pub(super) struct Readiness {
    home: Option<Arc<dyn ExecutionEnvironment>>,
    initialized: Arc<OnceCell<()>>,
}

impl Readiness {
    pub(super) async fn reach(&self) -> Result<(), EnvError> {
        if let Some(home) = &self.home {
            self.initialized.get_or_try_init(|| home.initialize()).await?;
        }
        Ok(())
    }
}

struct Load {
    env: Arc<dyn ExecutionEnvironment>,
    /// Gathered by the first loading that comes so far, so that the prompt stays the same bytes.
    environment: Arc<OnceCell<EnvironmentContext>>,
    readiness: Readiness,
    profile: ProviderProfile,
    user_instructions: Option<String>,
    date: String,
}

impl Load {
    async fn run(self) -> Result<TurnContext, Error> {
        let environment = self.environment.get_or_try_init(|| self.look_around()).await?;
        let root = environment.git_root();
        let profile = &self.profile;
        let docs = profile.project_docs(self.env.as_ref(), root).await;
        let layers = profile.prompt_layers(environment, &docs, self.user_instructions.as_deref());
        let prompt = SystemPrompt::of(&layers);
        let mut context = TurnContext::new(
            profile.provider.clone(),
            profile.model.clone(),
            prompt.text,
            profile.context_window_size,
        );
        context.stable_prompt = prompt.stable;
        context.project = LoadedProject::from(&docs);
        context.tools = profile.tools();
        context.provider_options.clone_from(&profile.provider_options);
        context.max_tokens = profile.max_output_tokens;
        context.pricing.clone_from(&profile.pricing);
        context.parallel_tool_calls = profile.supports_parallel_tool_calls;
        Ok(context)
    }

    async fn look_around(&self) -> Result<EnvironmentContext, Error> {
        self.readiness.reach().await.map_err(|error| {
            Error::new(ErrorKind::Configuration, "the place where tools run cannot be used")
                .with_source(error)
        })?;
        Ok(EnvironmentContext::gather(self.env.as_ref(), self.date.clone()).await)
    }
}
