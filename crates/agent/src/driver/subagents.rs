//! Subagents, from the driver's side: what they are made of, and what becomes of them.

use pintle_tools::ToolKind;
use pintle_tools::pipeline::PreparedCall;

use super::Driver;
use crate::profile::ProviderProfile;
use crate::subagent::SubagentSpec;
use crate::turn::Spent;

impl Driver {
    /// Tells the machine what is new of subagents.
    pub(super) async fn follow_subagents(&mut self) {
        if self.subagents.has_inputs() {
            for kind in self.subagents.take_inputs() {
                self.step(kind).await;
            }
            self.subagents.acknowledge();
        }
    }

    /// Tells the session above what this one has spent, itself and below, since it had spent `before`.
    pub(super) fn tell_spent(&self, before: Spent) {
        let now = self.machine.spent();
        if now != before
            && let Some(parent) = &self.lineage.parent_link
        {
            parent.report_spent(now.since(&before));
        }
    }

    pub(super) fn set_profile(&mut self, profile: ProviderProfile) {
        self.profile = self.subagents.add_tools(&profile);
        self.given = profile;
    }

    /// Says what the subagent of a call is made of, if the call is one that spawns any: what is newest, and not what
    /// the answer was asked for with, for all its requests come after any change so far, and it hears of none later.
    pub(super) fn reserve_subagent(&self, call: &PreparedCall) {
        if call.kind() == ToolKind::SpawnAgent.as_str() {
            let mut config = self.config.clone();
            config.limits = self.machine.limits_below();
            config.reasoning_effort = self.machine.reasoning_effort().cloned();
            let spec = SubagentSpec {
                client: self.client.clone(),
                profile: self.given.clone(),
                env: self.env.clone(),
                config,
                gates: self.gates.to_vec(),
                approver: self.approver.clone(),
                clock: self.clock.clone(),
                record: self.recording.recorder.as_ref().is_some_and(|recorder| recorder.keeps()),
                span: self.trace.session(),
            };
            self.subagents.reserve(call.call_id(), spec);
        }
    }
}
