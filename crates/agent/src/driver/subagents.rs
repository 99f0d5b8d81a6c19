//! Subagents, as the driver handles them.

use std::sync::Arc;

use pintle_tools::ToolKind;
use pintle_tools::pipeline::PreparedCall;
use tokio::sync::oneshot;

use super::hooks::HookPoint;
use super::{Driver, Parts};
use crate::error::SessionError;
use crate::profile::ProviderProfile;
use crate::protocol::Account;
use crate::subagent::{SubagentHandle, SubagentSpec};

impl Driver {
    /// Passes new inputs about subagents to the machine.
    pub(super) async fn follow_subagents(&mut self) {
        if self.subagents.has_inputs() {
            for kind in self.subagents.take_inputs() {
                self.step(kind).await;
            }
            self.subagents.acknowledge();
        }
    }

    /// Returns the account of this session, if it has a parent.
    pub(super) fn account(&self) -> Option<Account> {
        self.lineage.parent_link.is_some().then(|| self.machine.account())
    }

    /// Reports the account of this session to its parent, if it differs from `before`.
    pub(super) fn report_account(&self, before: Option<Account>) {
        if let Some(parent) = &self.lineage.parent_link
            && let Some(now) = self.account()
            && before != Some(now)
        {
            parent.report_account(now);
        }
    }

    pub(super) fn set_profile(&mut self, profile: ProviderProfile) {
        self.profile =
            super::context::in_session(&profile, &self.subagents, self.environment.current().as_ref());
        self.base_profile = profile;
    }

    /// Reserves the subagent of a call that spawns one, with the current configuration of this session. The
    /// configuration at the model call may be outdated, and later changes do not reach the subagent.
    pub(super) fn reserve_subagent(&self, call: &PreparedCall) {
        if call.kind() == ToolKind::SpawnAgent.as_str() {
            self.subagents.reserve(call.call_id(), self.subagent_spec());
        }
    }

    /// Spawns a subagent of a type for the application.
    pub(super) fn spawn_subagent(
        &mut self,
        kind: &str,
        task: String,
        done: oneshot::Sender<Result<SubagentHandle, SessionError>>,
    ) {
        let spawning = self.subagents.spawn(kind, task, self.subagent_spec());
        self.spawn(async move {
            // A caller that has stopped waiting needs no handle.
            let _ = done.send(spawning.await);
        });
    }

    /// Returns the current configuration of this session, for a subagent.
    pub(super) fn subagent_spec(&self) -> SubagentSpec {
        let mut config = self.config.clone();
        config.limits = self.machine.subagent_limits();
        config.reasoning_effort = self.machine.reasoning_effort().cloned();
        let parts = Parts {
            client: self.client.clone(),
            profile: self.base_profile.clone(),
            env: Arc::clone(self.environment.current()),
            config,
            gates: self.gates.to_vec(),
            approver: self.approver.clone(),
            hooks: self.hooks.as_ref().map(HookPoint::hooks),
            clock: self.clock.clone(),
            checkpoints: self.checkpoints.source(),
            budget: None,
            subagent_types: self.subagents.types(),
        };
        let (record, span) = (self.recording.is_kept(), self.trace.session());
        SubagentSpec { parts, record, journals: self.recording.subagents(), span }
    }
}
