//! Reports from a subagent to the session that spawned it.

use std::sync::Weak;

use super::roster::{Roster, State};
use crate::protocol::{InputKind, Spent, SubagentStatus};

/// Connection of a subagent to its parent. Reports to a parent that is gone are discarded.
#[derive(Clone, Debug)]
pub(crate) struct ParentLink {
    roster: Weak<Roster>,
    agent: String,
}

impl ParentLink {
    pub(super) fn new(roster: Weak<Roster>, agent: String) -> Self {
        Self { roster, agent }
    }

    /// Reports what was spent since the last report. Consecutive reports are merged.
    pub(crate) fn report_spent(&self, more: Spent) {
        self.update(|state| {
            if let Some(InputKind::ChildSpent { agent, spent }) = state.inputs.back_mut()
                && *agent == self.agent
            {
                *spent += more;
            } else {
                state.inputs.push_back(InputKind::ChildSpent { agent: self.agent.clone(), spent: more });
            }
        });
    }

    /// Reports that the subagent is closed.
    pub(super) fn report_end(&self, status: SubagentStatus, turns_used: u64) {
        let agent = self.agent.clone();
        self.update(|state| state.inputs.push_back(InputKind::ChildEnded { agent, status, turns_used }));
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        if let Some(roster) = self.roster.upgrade() {
            change(&mut roster.lock());
            roster.notify();
        }
    }
}
