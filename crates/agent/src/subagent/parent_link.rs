//! Reports from a subagent to the session that spawned it.

use std::sync::Weak;

use super::report::Report;
use super::roster::{Roster, RosterState};
use crate::protocol::{Account, InputKind, Limits};

/// Connection of a subagent to its parent. Reports to a parent that has ended are discarded.
#[derive(Clone, Debug)]
pub(crate) struct ParentLink {
    roster: Weak<Roster>,
    agent: String,
}

impl ParentLink {
    pub(super) fn new(roster: Weak<Roster>, agent: String) -> Self {
        Self { roster, agent }
    }

    /// Reports the account of the subagent. A newer report replaces an unread one.
    pub(crate) fn report_account(&self, new: Account) {
        self.update(|state| {
            if let Some(InputKind::ChildAccount { agent, account }) = state.inputs.back_mut()
                && *agent == self.agent
            {
                *account = new;
            } else {
                state.inputs.push_back(InputKind::ChildAccount { agent: self.agent.clone(), account: new });
            }
        });
    }

    /// Requests more budget.
    pub(crate) fn ask_budget(&self, ask: u64, has: Limits, wants: Limits, unpriced: Option<String>) {
        self.update(|state| {
            let agent = self.agent.clone();
            state.inputs.push_back(InputKind::ChildAsked { agent, ask, has, wants, unpriced });
        });
    }

    /// Reports that the subagent is closed.
    pub(super) fn report_end(&self, report: &Report) {
        self.update(|state| state.inputs.push_back(report.as_end_of(&self.agent)));
    }

    fn update(&self, change: impl FnOnce(&mut RosterState)) {
        if let Some(roster) = self.roster.upgrade() {
            change(&mut roster.lock());
            roster.notify();
        }
    }
}
