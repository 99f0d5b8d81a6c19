//! Settings of a session that clients can change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_agent::{Principal, Session, SessionHandle};
use pintle_governance::{Mode, Policy};
use pintle_host::OpenSession;
use pintle_llm::{ReasoningEffort, ToolList};
use pintle_server::{HostError, SessionControls, SessionSettings, SettingsChange};

use crate::environment::{EnvSession, SandboxState};
use crate::model::Model;
use crate::servers::SessionServers;

/// Controls of one session.
#[derive(Debug)]
pub(super) struct ServeControls {
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

impl ServeControls {
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
        let mode: Mode = name.parse().map_err(|_| {
            HostError::Invalid(format!("there is no mode `{name}`: expected plan, ask, edit or auto"))
        })?;
        if mode == Mode::Auto && matches!(self.env_session.sandbox(), SandboxState::Unavailable { .. }) {
            return Err(HostError::Invalid(
                "mode auto needs a sandbox, and no sandbox is available".to_owned(),
            ));
        }
        Ok(mode)
    }
}

#[async_trait]
impl SessionControls for ServeControls {
    fn settings(&self) -> SessionSettings {
        let (model, effort) = self.model_and_effort().clone();
        let mut settings = SessionSettings::default();
        settings.directory = Some(self.directory.clone());
        settings.model = Some(model);
        settings.mode = Some(self.policy.mode().to_string());
        settings.effort = effort;
        settings
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
        session.suspend().await;
        self.servers.clone().close().await;
        self.env_session.close_with_notice().await;
    }
}
