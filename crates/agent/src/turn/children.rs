//! Open subagents and their spending, as the machine tracks them (loop specification, section 7).

use std::collections::BTreeMap;

use pintle_llm::ReasoningEffort;
use serde::{Deserialize, Serialize};

use super::Machine;
use crate::protocol::{
    Action, EventKind, SessionId, SessionState, Spent, SubagentStatus, TurnLimits, agent_number,
};

/// Subagents of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Children {
    /// Open subagents, by name.
    open: BTreeMap<String, SessionId>,
    /// Number of subagents spawned so far.
    spawned: u64,
    /// Highest number in a name that the history may mention.
    #[serde(default)]
    named: u64,
}

impl Children {
    /// Creates the table of a session whose history comes from another one, which has used the names up to `named`.
    pub(super) fn after(named: u64) -> Self {
        Self { named, ..Self::default() }
    }
}

impl Machine {
    /// Returns the number of subagents spawned so far.
    #[must_use]
    pub fn subagents_spawned(&self) -> u64 {
        self.children.spawned
    }

    /// Returns the highest number in a name of a subagent so far, including those before a fork. The next one is higher, so
    /// that a name in the history always means the same agent.
    pub(crate) fn subagents_named(&self) -> u64 {
        self.children.named
    }

    /// Returns the limits of a subagent that is spawned now: those of this session, with the remaining budget and no turn
    /// limit.
    pub(crate) fn subagent_limits(&self) -> TurnLimits {
        TurnLimits { max_turns: 0, budget: self.budget_left(), ..self.limits.clone() }
    }

    pub(crate) fn reasoning_effort(&self) -> Option<&ReasoningEffort> {
        self.reasoning_effort.as_ref()
    }

    pub(super) fn child_spawned(
        &mut self,
        agent: String,
        session: SessionId,
        task: String,
        out: &mut Vec<Action>,
    ) {
        // No event may follow the end of the session.
        if self.state == SessionState::Closed {
            return;
        }
        self.children.spawned += 1;
        self.children.named = self.children.named.max(agent_number(&agent).unwrap_or(0));
        self.children.open.insert(agent.clone(), session.clone());
        out.push(Action::emit(EventKind::SubagentSpawned { agent_id: agent, child: session, task }));
        if self.ending.is_some() {
            // The spawning call was already running when everything was stopped.
            self.stop_children(out);
        }
    }

    /// Counts what a subagent spent as spent here. At a limit, all subagents are stopped. Since they work concurrently,
    /// each may make one more call until then.
    pub(super) fn child_spent(&mut self, agent: &str, spent: Spent, out: &mut Vec<Action>) {
        if self.children.open.contains_key(agent) {
            self.spent += spent;
            if self.limit_on_tool_call().is_some() {
                self.stop_children(out);
                if self.ending.is_none() {
                    self.hold_calls(out);
                    self.settle_round(out);
                }
            }
        }
    }

    pub(super) fn child_ended(
        &mut self,
        agent: &str,
        status: SubagentStatus,
        turns_used: u64,
        out: &mut Vec<Action>,
    ) {
        if let Some((agent_id, child)) = self.children.open.remove_entry(agent) {
            out.push(Action::emit(EventKind::SubagentEnded { agent_id, child, status, turns_used }));
        }
    }

    /// Interrupts all subagents: stopping an agent includes the work that it delegated.
    pub(super) fn stop_children(&self, out: &mut Vec<Action>) {
        if !self.children.open.is_empty() {
            out.push(Action::StopSubagents);
        }
    }

    /// Ends all subagents, which are gone with the process that drove them.
    pub(super) fn children_lost(&mut self, out: &mut Vec<Action>) {
        for (agent_id, child) in std::mem::take(&mut self.children.open) {
            let status = SubagentStatus::Failed;
            out.push(Action::emit(EventKind::SubagentEnded { agent_id, child, status, turns_used: 0 }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Input, InputKind, RunId, Timestamp};

    fn machine() -> Machine {
        Machine::new(TurnLimits::default(), None)
    }

    fn step(machine: &mut Machine, kind: InputKind) -> Vec<Action> {
        machine.step(Input::new(Timestamp::from_millis(0), kind))
    }

    fn spawned(name: &str) -> InputKind {
        InputKind::ChildSpawned { agent: name.into(), session: SessionId::new(name), task: "Look.".into() }
    }

    fn ended(name: &str) -> InputKind {
        InputKind::ChildEnded { agent: name.into(), status: SubagentStatus::Completed, turns_used: 2 }
    }

    fn spent(name: &str) -> InputKind {
        let spent = Spent { input_tokens: 7, tool_calls: 1, ..Spent::default() };
        InputKind::ChildSpent { agent: name.into(), spent }
    }

    fn is_end(action: &Action, name: &str) -> bool {
        matches!(action, Action::Emit(kind)
            if matches!(kind.as_ref(), EventKind::SubagentEnded { agent_id, .. } if agent_id == name))
    }

    #[test]
    fn each_spawned_subagent_ends_once() {
        let mut machine = machine();
        assert!(step(&mut machine, ended("agent_1")).is_empty(), "it has not begun");
        assert_eq!(step(&mut machine, spawned("agent_1")).len(), 1);
        assert!(is_end(&step(&mut machine, ended("agent_1"))[0], "agent_1"));
        assert!(step(&mut machine, ended("agent_1")).is_empty());
        step(&mut machine, spawned("agent_2"));
        assert_eq!(machine.subagents_spawned(), 2);
    }

    #[test]
    fn spending_of_a_subagent_counts_for_its_parent() {
        let mut machine = machine();
        step(&mut machine, spawned("agent_1"));
        step(&mut machine, spent("agent_1"));
        step(&mut machine, spent("agent_2"));
        assert_eq!((machine.spent().tokens(), machine.spent().tool_calls), (7, 1));
        let before = machine.spent();
        step(&mut machine, spent("agent_1"));
        assert_eq!(machine.spent().since(&before).input_tokens, 7);
    }

    #[test]
    fn subagent_spawned_during_abort_is_stopped() {
        let mut machine = machine();
        step(&mut machine, InputKind::Submit { run: RunId(0), text: "go".into() });
        assert!(!step(&mut machine, InputKind::Abort).contains(&Action::StopSubagents), "there is none");
        assert!(step(&mut machine, spawned("agent_1")).contains(&Action::StopSubagents));
        assert!(is_end(&step(&mut machine, ended("agent_1"))[0], "agent_1"));
        step(&mut machine, InputKind::CleanedUp);
        assert!(step(&mut machine, spawned("agent_2")).is_empty(), "no event follows the end");
    }

    #[test]
    fn interrupt_stops_subagents_between_turns() {
        let mut machine = machine();
        step(&mut machine, spawned("agent_1"));
        assert_eq!(step(&mut machine, InputKind::Interrupt), [Action::StopSubagents]);
    }

    #[test]
    fn resume_ends_all_open_subagents() {
        let mut machine = machine();
        step(&mut machine, spawned("agent_1"));
        let resumed = step(&mut machine, InputKind::Resumed);
        assert!(is_end(resumed.last().unwrap(), "agent_1"), "{resumed:?}");
        assert!(step(&mut machine, ended("agent_1")).is_empty());
    }
}
