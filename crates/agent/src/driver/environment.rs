//! Execution environment of a session: where its next request and its running calls work, and which calls the session
//! makes to it at its start and end.

use std::path::Path;
use std::sync::Arc;

use pintle_env::{EnvError, ExecutionEnvironment};
use tokio::sync::OnceCell;

use crate::prompt::EnvironmentContext;

/// Calls that a session makes to its execution environment at its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvironmentLifecycle {
    /// `initialize` and `cleanup`.
    Owned,
    /// `cleanup`. The embedding application has initialised the environment.
    Initialized,
    /// None. The embedding application, or the parent of a subagent, makes both.
    Shared,
}

/// State of the execution environment that a session and its forks share.
#[derive(Clone, Debug)]
pub(crate) struct SharedEnvironment {
    /// Description in the prompt.
    description: Arc<OnceCell<EnvironmentContext>>,
    /// Whether the first of them that uses the environment has to initialise it.
    initialize: bool,
    /// Environment of the first of them.
    owned: Arc<dyn ExecutionEnvironment>,
    initialized: Arc<OnceCell<()>>,
}

/// Execution environment of a session.
#[derive(Debug)]
pub(super) struct SessionEnvironment {
    /// Environment of the next request.
    current: Arc<dyn ExecutionEnvironment>,
    /// Environment of the newest request, in which its calls run.
    requested: Arc<dyn ExecutionEnvironment>,
    /// Environment that the session cleans up.
    cleaned_up: Option<Arc<dyn ExecutionEnvironment>>,
    shared: SharedEnvironment,
}

impl SessionEnvironment {
    pub(super) fn new(env: Arc<dyn ExecutionEnvironment>, lifecycle: EnvironmentLifecycle) -> Self {
        let initialize = lifecycle == EnvironmentLifecycle::Owned;
        let is_shared = lifecycle == EnvironmentLifecycle::Shared;
        Self {
            requested: Arc::clone(&env),
            cleaned_up: (!is_shared).then(|| Arc::clone(&env)),
            shared: SharedEnvironment {
                description: Arc::default(),
                initialize,
                owned: Arc::clone(&env),
                initialized: Arc::default(),
            },
            current: env,
        }
    }

    /// Uses the state that another session shares with its fork.
    pub(super) fn join(&mut self, shared: SharedEnvironment) {
        if self.cleaned_up.is_some() {
            self.cleaned_up = Some(Arc::clone(&shared.owned));
        }
        self.shared = shared;
    }

    /// Returns the state for a fork.
    pub(super) fn share(&self) -> SharedEnvironment {
        self.shared.clone()
    }

    /// Returns the environment of the next request.
    pub(super) fn current(&self) -> &Arc<dyn ExecutionEnvironment> {
        &self.current
    }

    pub(super) fn working_directory(&self) -> &Path {
        self.current.working_directory()
    }

    /// Returns the environment of the newest request, in which its calls run.
    pub(super) fn requested(&self) -> &Arc<dyn ExecutionEnvironment> {
        &self.requested
    }

    /// Makes the calls of the next response run in the current environment.
    pub(super) fn start_request(&mut self) {
        self.requested = Arc::clone(&self.current);
    }

    /// Replaces the environment of later requests. If the working directory changes, its description is gathered again.
    pub(super) fn replace(&mut self, env: Arc<dyn ExecutionEnvironment>) {
        if env.working_directory() != self.working_directory() {
            self.shared.description = Arc::default();
        }
        self.current = env;
    }

    /// Returns the description of the environment, which is gathered once so that the prompt stays the same bytes.
    pub(super) fn description(&self) -> Arc<OnceCell<EnvironmentContext>> {
        Arc::clone(&self.shared.description)
    }

    /// Returns the initialisation that must precede any use of the environment. A session that starts with a prompt loads
    /// nothing before its first call, so calls need it, too.
    pub(super) fn initialization(&self) -> EnvironmentInit {
        let env = self.shared.initialize.then(|| Arc::clone(&self.shared.owned));
        EnvironmentInit { env, done: Arc::clone(&self.shared.initialized) }
    }

    /// Cleans up the environment, unless it is shared.
    pub(super) async fn clean_up(&self) {
        if let Some(env) = &self.cleaned_up
            && let Err(error) = env.cleanup().await
        {
            tracing::warn!(%error, "the environment could not be cleaned up");
        }
    }
}

/// One-time initialisation of a session's own environment. Does nothing for an environment with another owner.
#[derive(Clone, Debug)]
pub(super) struct EnvironmentInit {
    env: Option<Arc<dyn ExecutionEnvironment>>,
    done: Arc<OnceCell<()>>,
}

impl EnvironmentInit {
    /// Initialises the environment, unless that has been done.
    pub(super) async fn ensure(&self) -> Result<(), EnvError> {
        if let Some(env) = &self.env {
            self.done.get_or_try_init(|| env.initialize()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;

    use super::*;

    fn memory(directory: &str) -> Arc<dyn ExecutionEnvironment> {
        Arc::new(MemoryEnvironment::new(directory))
    }

    fn owned() -> SessionEnvironment {
        SessionEnvironment::new(memory("/one"), EnvironmentLifecycle::Owned)
    }

    #[test]
    fn calls_stay_in_the_environment_of_their_request() {
        let mut environment = owned();
        environment.replace(memory("/two"));
        assert_eq!(environment.working_directory(), Path::new("/two"));
        assert_eq!(environment.requested().working_directory(), Path::new("/one"));
        environment.start_request();
        assert_eq!(environment.requested().working_directory(), Path::new("/two"));
    }

    #[test]
    fn the_description_lasts_as_long_as_the_working_directory() {
        let mut environment = owned();
        let first = environment.description();
        environment.replace(memory("/one"));
        assert!(Arc::ptr_eq(&first, &environment.description()));
        environment.replace(memory("/two"));
        assert!(!Arc::ptr_eq(&first, &environment.description()));
    }

    #[test]
    fn the_lifecycle_decides_who_initialises_and_cleans_up() {
        use EnvironmentLifecycle::{Initialized, Owned, Shared};
        for (lifecycle, initializes, cleans_up) in
            [(Owned, true, true), (Initialized, false, true), (Shared, false, false)]
        {
            let environment = SessionEnvironment::new(memory("/one"), lifecycle);
            assert_eq!(environment.initialization().env.is_some(), initializes, "{lifecycle:?}");
            assert_eq!(environment.cleaned_up.is_some(), cleans_up, "{lifecycle:?}");
        }
    }

    #[test]
    fn a_fork_initialises_the_environment_of_its_origin_and_does_not_clean_it_up() {
        let mut origin = owned();
        origin.replace(memory("/two"));
        let mut fork = SessionEnvironment::new(memory("/two"), EnvironmentLifecycle::Shared);
        fork.join(origin.share());
        let (init, shared) = (fork.initialization(), origin.initialization());
        assert_eq!(init.env.unwrap().working_directory(), Path::new("/one"));
        assert!(Arc::ptr_eq(&init.done, &shared.done));
        assert!(fork.cleaned_up.is_none());
        assert_eq!(fork.working_directory(), Path::new("/two"));
    }
}
