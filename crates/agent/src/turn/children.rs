//! Subagents as the machine knows them: which are open, and what they have spent (loop specification, section 7).

use std::collections::BTreeMap;

use pintle_llm::ReasoningEffort;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::{Machine, SessionState, Spent};
use crate::config::TurnLimits;
use crate::event::EventKind;
use crate::id::SessionId;
use crate::subagent_info::{SubagentStatus, agent_number};

/// The subagents of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Children {
    /// Those that are open, by name.
    open: BTreeMap<String, SessionId>,
    /// How many there have been.
    spawned: u64,
    /// The highest number in a name that the history may speak of.
    #[serde(default)]
    named: u64,
}

impl Children {
    /// Those of a session whose history comes from another one, which had given names up to this one.
    pub(super) fn after(named: u64) -> Self {
        Self { named, ..Self::default() }
    }
}

impl Machine {
    /// How many subagents there have been.
    #[must_use]
    pub fn subagents_spawned(&self) -> u64 {
        self.children.spawned
    }

    /// The highest number in the name of a subagent so far, those of before a fork included. The next has a higher one,
    /// so that no name of the history ever means another agent.
    pub(crate) fn subagents_named(&self) -> u64 {
        self.children.named
    }

    /// The limits for a subagent that is spawned now: those of this session, with what is left of its budget. Its turns
    /// are its own.
    pub(crate) fn limits_below(&self) -> TurnLimits {
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
        // After the end no event may follow.
        if self.state == SessionState::Closed {
            return;
        }
        self.children.spawned += 1;
        self.children.named = self.children.named.max(agent_number(&agent).unwrap_or(0));
        self.children.open.insert(agent.clone(), session.clone());
        out.push(Action::emit(EventKind::SubagentSpawned { agent_id: agent, child: session, task }));
        if self.ending.is_some() {
            // The call that spawned it was under way when everything was told to stop.
            self.stop_children(out);
        }
    }

    /// What a subagent spends counts as spent here. At a limit all of them stop; that each may make one more call until
    /// it hears of it is the price of their working side by side.
    pub(super) fn child_spent(&mut self, agent: &str, spent: Spent, out: &mut Vec<Action>) {
        if self.children.open.contains_key(agent) {
            self.spent += spent;
            if self.met_before_tool().is_some() {
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

    /// Has the work of every subagent stopped: who stops an agent means all that it has others do.
    pub(super) fn stop_children(&self, out: &mut Vec<Action>) {
        if !self.children.open.is_empty() {
            out.push(Action::StopSubagents);
        }
    }

    /// The host that drove the subagents is gone, and they with it.
    pub(super) fn children_lost(&mut self, out: &mut Vec<Action>) {
        for (agent_id, child) in std::mem::take(&mut self.children.open) {
            let status = SubagentStatus::Failed;
            out.push(Action::emit(EventKind::SubagentEnded { agent_id, child, status, turns_used: 0 }));
        }
    }
}

impl Spent {
    /// What was spent since `before`, which is a part of this.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_micros: self.cost_micros.map(|now| now.saturating_sub(before.cost_micros.unwrap_or(0))),
            tool_calls: self.tool_calls.saturating_sub(before.tool_calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RunId;
    use crate::timestamp::Timestamp;
    use crate::turn::{Input, InputKind};

    fn machine() -> Machine {
        Machine::new(TurnLimits::default(), None)
    }

    fn tell(machine: &mut Machine, kind: InputKind) -> Vec<Action> {
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
        assert!(tell(&mut machine, ended("agent_1")).is_empty(), "it has not begun");
        assert_eq!(tell(&mut machine, spawned("agent_1")).len(), 1);
        assert!(is_end(&tell(&mut machine, ended("agent_1"))[0], "agent_1"));
        assert!(tell(&mut machine, ended("agent_1")).is_empty());
        tell(&mut machine, spawned("agent_2"));
        assert_eq!(machine.subagents_spawned(), 2);
    }

    #[test]
    fn what_a_subagent_spends_is_spent_here() {
        let mut machine = machine();
        tell(&mut machine, spawned("agent_1"));
        tell(&mut machine, spent("agent_1"));
        tell(&mut machine, spent("agent_2"));
        assert_eq!((machine.spent().tokens(), machine.spent().tool_calls), (7, 1));
        let before = machine.spent();
        tell(&mut machine, spent("agent_1"));
        assert_eq!(machine.spent().since(&before).input_tokens, 7);
    }

    #[test]
    fn one_that_is_spawned_while_everything_stops_is_stopped_too() {
        let mut machine = machine();
        tell(&mut machine, InputKind::Submit { run: RunId(0), text: "go".into() });
        assert!(!tell(&mut machine, InputKind::Abort).contains(&Action::StopSubagents), "there is none");
        assert!(tell(&mut machine, spawned("agent_1")).contains(&Action::StopSubagents));
        assert!(is_end(&tell(&mut machine, ended("agent_1"))[0], "agent_1"));
        tell(&mut machine, InputKind::CleanedUp);
        assert!(tell(&mut machine, spawned("agent_2")).is_empty(), "no event follows the end");
    }

    #[test]
    fn an_interrupt_reaches_subagents_that_work_on_after_the_turn() {
        let mut machine = machine();
        tell(&mut machine, spawned("agent_1"));
        assert_eq!(tell(&mut machine, InputKind::Interrupt), [Action::StopSubagents]);
    }

    #[test]
    fn subagents_of_a_host_that_is_gone_have_ended() {
        let mut machine = machine();
        tell(&mut machine, spawned("agent_1"));
        let resumed = tell(&mut machine, InputKind::Resumed);
        assert!(is_end(resumed.last().unwrap(), "agent_1"), "{resumed:?}");
        assert!(tell(&mut machine, ended("agent_1")).is_empty());
    }
}
