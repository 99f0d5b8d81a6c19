//! Settings of a session that clients can change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_agent::{Principal, Session, SessionHandle};
use pintle_governance::{Mode, Policy};
use pintle_host::OpenSession;
use pintle_host::environment::{EnvSession, SandboxState};
use pintle_host::model::Model;
use pintle_host::servers::SessionServers;
use pintle_llm::{ReasoningEffort, ToolList};

use super::request::parse_mode;
use crate::host::{HostError, SessionControls, SessionSettings, SettingsChange};

/// Controls of one session of a user.
#[derive(Debug)]
pub(super) struct UserSessionControls {
    /// Model of the session. A scripted one is served as long as this lives.
    model: Arc<Model>,
    handle: SessionHandle,
    policy: Policy,
    servers: SessionServers,
    env_session: EnvSession,
    directory: String,
    offered: ToolList,
    /// Model and effort, as last set.
    chosen: Mutex<(String, Option<String>)>,
}

impl UserSessionControls {
    /// Returns the session, and the controls with its resources.
    pub(super) fn split(opened: OpenSession) -> (Session, Self) {
        let OpenSession { session, environment, policy, servers, model, effort, offered, .. } = opened;
        let directory = environment.environment().working_directory().display().to_string();
        let chosen = Mutex::new((model.route.model.clone(), effort));
        let handle = session.handle();
        let controls =
            Self { model, handle, policy, servers, env_session: environment, directory, offered, chosen };
        (session.into_session(), controls)
    }

    fn model_and_effort(&self) -> MutexGuard<'_, (String, Option<String>)> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mode(&self, name: &str) -> Result<Mode, HostError> {
        let mode = parse_mode(name)?;
        if mode == Mode::Auto && matches!(self.env_session.sandbox(), SandboxState::Unavailable { .. }) {
            return Err(HostError::Invalid(
                "mode auto needs a sandbox, and no sandbox is available".to_owned(),
            ));
        }
        Ok(mode)
    }
}

#[async_trait]
impl SessionControls for UserSessionControls {
    fn settings(&self) -> SessionSettings {
        let (model, effort) = self.model_and_effort().clone();
        SessionSettings {
            directory: Some(self.directory.clone()),
            model: Some(model),
            mode: Some(self.policy.mode().to_string()),
            effort,
        }
    }

    fn tools(&self) -> ToolList {
        self.offered.clone()
    }

    fn widens(&self, change: &SettingsChange) -> bool {
        let mode: Option<Mode> = change.mode.as_deref().and_then(|mode| mode.parse().ok());
        mode.is_some_and(|mode| mode.is_wider_than(self.policy.mode()))
    }

    async fn set(&self, change: &SettingsChange, by: Option<&Principal>) -> Result<(), HostError> {
        let failed = |error| HostError::failed("the setting cannot be changed", error);
        // Everything is checked before anything changes.
        let mode = change.mode.as_deref().map(|mode| self.mode(mode)).transpose()?;
        let model = change.model.as_deref().map(|name| self.model.resolve_listed(name)).transpose();
        let model = model.map_err(HostError::Unprocessable)?;
        let handle = by.map_or_else(|| self.handle.clone(), |by| self.handle.acting_as(by.clone()));
        if let Some(model) = model {
            handle.set_model(&model).map_err(failed)?;
            self.model_and_effort().0 = model;
        }
        if let Some(effort) = &change.effort {
            handle.set_reasoning_effort(Some(ReasoningEffort::from(effort.clone()))).map_err(failed)?;
            self.model_and_effort().1 = Some(effort.clone());
        }
        if let Some(mode) = mode {
            let set = self.policy.set_mode_by(mode, by.cloned()).await;
            set.map_err(|error| HostError::failed("the mode cannot be changed", error))?;
        }
        Ok(())
    }

    async fn close(&self, session: Session) {
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
        self.servers.clone().close().await;
        self.env_session.close_with_notice().await;
    }
}
