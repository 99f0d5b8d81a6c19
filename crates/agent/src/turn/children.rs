//! Subagents as the machine knows them: which there are, and what they have spent (loop specification, section 7).

use super::action::Action;
use super::{Machine, Phase, SessionState, Spent};
use crate::event::EventKind;
use crate::id::SessionId;
use crate::subagent::SubagentStatus;

impl Machine {
    pub(super) fn child_spawned(
        &mut self,
        agent: String,
        session: SessionId,
        task: String,
        out: &mut Vec<Action>,
    ) {
        // After the end no event may follow.
        if self.state != SessionState::Closed {
            self.children.insert(agent.clone(), session.clone());
            out.push(Action::emit(EventKind::SubagentSpawned { agent_id: agent, child: session, task }));
        }
    }

    pub(super) fn child_spent(&mut self, agent: &str, spent: Spent) {
        if self.children.contains_key(agent) {
            self.children_spent += spent;
        }
    }

    pub(super) fn child_ended(
        &mut self,
        agent: String,
        status: SubagentStatus,
        turns_used: u64,
        out: &mut Vec<Action>,
    ) {
        if let Some(child) = self.children.remove(&agent) {
            out.push(Action::emit(EventKind::SubagentEnded { agent_id: agent, child, status, turns_used }));
        }
    }

    /// Has the work of every subagent stopped, with that of the session: who stops an agent means all that it started.
    pub(super) fn stop_children(&self, out: &mut Vec<Action>) {
        if !self.children.is_empty() && !matches!(self.phase, Phase::CleaningUp) {
            out.push(Action::StopSubagents);
        }
    }
}
