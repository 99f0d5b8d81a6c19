//! Gathering what a request is made of beside the history (loop specification, section 6).

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle_env::ExecutionEnvironment;
use pintle_llm::{Error, ErrorKind};

use super::{Driver, Report};
use crate::profile::ProviderProfile;
use crate::project_docs::ProjectDocs;
use crate::prompt::EnvironmentContext;
use crate::turn::{InputKind, TurnContext};

impl Driver {
    /// Starts to gather; the facts of the environment are gathered once per session, so that the prompt stays the
    /// same bytes.
    pub(super) fn load_context(&mut self) {
        let reports = self.reports.clone();
        let load = Load {
            env: Arc::clone(&self.env),
            known: self.environment.clone(),
            initialize: !self.keep_environment,
            profile: self.profile.clone(),
            user_instructions: self.config.user_instructions.clone(),
            date: self.clock.now().date(),
        };
        self.tasks.spawn(async move {
            let loaded = AssertUnwindSafe(load.run()).catch_unwind().await;
            let loaded = loaded.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Configuration, "gathering the prompt's facts panicked"))
            });
            // Without a driver nobody wants the facts.
            match loaded {
                Ok((environment, context)) => {
                    let _ = reports.send(Report::Environment(Box::new(environment))).await;
                    let kind = InputKind::ContextLoaded { context: Box::new(context) };
                    let _ = reports.send(Report::Input(kind)).await;
                }
                Err(error) => {
                    let kind = InputKind::ContextFailed { error: error.info().clone() };
                    let _ = reports.send(Report::Input(kind)).await;
                }
            }
        });
    }
}

struct Load {
    env: Arc<dyn ExecutionEnvironment>,
    known: Option<EnvironmentContext>,
    initialize: bool,
    profile: ProviderProfile,
    user_instructions: Option<String>,
    date: String,
}

impl Load {
    async fn run(self) -> Result<(EnvironmentContext, TurnContext), Error> {
        let environment = match self.known {
            Some(known) => known,
            None => {
                if self.initialize {
                    self.env.initialize().await.map_err(|error| {
                        let message = format!("the place where tools run cannot be used: {error}");
                        Error::new(ErrorKind::Configuration, message).with_source(error)
                    })?;
                }
                EnvironmentContext::gather(self.env.as_ref(), self.date).await
            }
        };
        let root: Option<PathBuf> = environment.git.as_ref().map(|git| git.root.clone());
        let docs = ProjectDocs::discover(self.env.as_ref(), root.as_deref(), &self.profile.doc_files).await;
        let prompt = self.profile.build_system_prompt(&environment, &docs, self.user_instructions.as_deref());
        let profile = self.profile;
        let mut context = TurnContext::new(
            profile.provider.clone(),
            profile.model.clone(),
            prompt,
            profile.context_window_size,
        );
        context.tools = profile.tools();
        context.provider_options.clone_from(&profile.provider_options);
        context.max_tokens = profile.max_output_tokens;
        context.parallel_tool_calls = profile.supports_parallel_tool_calls;
        Ok((environment, context))
    }
}
