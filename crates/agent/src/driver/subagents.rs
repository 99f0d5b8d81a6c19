//! Subagents, as the driver handles them.

use pintle_tools::ToolKind;
use pintle_tools::pipeline::PreparedCall;

use super::{Driver, Parts};
use crate::profile::ProviderProfile;
use crate::protocol::Spent;
use crate::subagent::SubagentSpec;

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

    /// Reports to the parent session what this session and its subagents have spent since `before`.
    pub(super) fn report_spent(&self, before: Spent) {
        let now = self.machine.spent();
        if now != before
            && let Some(parent) = &self.lineage.parent_link
        {
            parent.report_spent(now.since(&before));
        }
    }

    pub(super) fn set_profile(&mut self, profile: ProviderProfile) {
        self.profile = self.subagents.add_tools(&profile);
        self.base_profile = profile;
    }

    /// Reserves the subagent of a call that spawns one, with the current configuration of this session. The one that was
    /// current when the model was asked is outdated, and later changes do not reach the subagent.
    pub(super) fn reserve_subagent(&self, call: &PreparedCall) {
        if call.kind() == ToolKind::SpawnAgent.as_str() {
            let mut config = self.config.clone();
            config.limits = self.machine.subagent_limits();
            config.reasoning_effort = self.machine.reasoning_effort().cloned();
            let parts = Parts {
                client: self.client.clone(),
                profile: self.base_profile.clone(),
                env: self.env.clone(),
                config,
                gates: self.gates.to_vec(),
                approver: self.approver.clone(),
                clock: self.clock.clone(),
            };
            let (record, span) = (self.recording.is_kept(), self.trace.session());
            self.subagents.reserve(call.call_id(), SubagentSpec { parts, record, span });
        }
    }
}
