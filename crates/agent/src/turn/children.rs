//! Open subagents and their spending, as the machine tracks them (loop specification, section 7).

use std::collections::{BTreeMap, BTreeSet};

use pintle_llm::{Money, ReasoningEffort};
use serde::{Deserialize, Serialize};

use super::{Machine, Phase};
use crate::protocol::{
    Account, Action, BudgetUsage, EventKind, Limits, SessionId, SessionState, SubagentStatus, TurnLimits,
    agent_number,
};

/// Divisor for the share of the remaining budget that one grant gives to a subagent.
const SHARE: u64 = 4;

/// Subagents of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Children {
    /// Open subagents, by name.
    open: BTreeMap<String, Child>,
    /// Requests for more of the budget that wait for this session's own request.
    asks: BTreeMap<String, Ask>,
    /// Calls that spawned them, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    calls: BTreeMap<String, String>,
    /// Number of subagents spawned so far.
    spawned: u64,
    /// Highest number in a name that the history may mention.
    #[serde(default)]
    named: u64,
}

/// An open subagent.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Child {
    session: SessionId,
    /// Budget that is reserved for it, counted from its first call.
    slice: Limits,
    /// Its own limits, which the slice does not exceed.
    #[serde(default, skip_serializing_if = "Limits::is_unlimited")]
    cap: Limits,
    account: Account,
}

/// Request of a subagent for more of the budget.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ask {
    ask: u64,
    has: Limits,
    wants: Limits,
}

impl Child {
    /// Returns the part of its reservation that is not spent.
    fn held(&self) -> BudgetUsage {
        let (slice, Account { spent, held, .. }) = (self.slice, self.account);
        let rest = |slice: Option<u64>, spent: u64, held: u64| {
            slice.map_or(held, |slice| slice.saturating_sub(spent).max(held))
        };
        BudgetUsage {
            input_tokens: rest(slice.tokens, spent.tokens(), held.tokens()),
            output_tokens: 0,
            cost: spent
                .cost_micros()
                .zip(held.cost_micros())
                .map(|(spent, held)| Money::from_micros(rest(slice.cost_micros(), spent, held))),
            tool_calls: rest(slice.tool_calls, spent.tool_calls, held.tool_calls),
        }
    }
}

impl Children {
    /// Returns the part of all reservations that is not spent.
    pub(super) fn held(&self) -> BudgetUsage {
        self.open.values().map(Child::held).fold(BudgetUsage::default(), BudgetUsage::and)
    }

    /// Returns whether requests of subagents wait for this session's own request.
    pub(super) fn have_asked(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Creates the table of a session whose history comes from another session, which has used the names up to `named`.
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

    /// Returns the highest number in a name of a subagent so far, including names before a fork. The next number is
    /// higher, so that a name in the history always means the same agent.
    pub(crate) fn subagents_named(&self) -> u64 {
        self.children.named
    }

    /// Returns the limits of a subagent that is spawned now: the limits of this session, without a turn limit, and with
    /// an empty slice of the budget. The subagent asks for its reserved budget before its first call.
    pub(crate) fn subagent_limits(&self) -> TurnLimits {
        let budget = self.budget().exactly(&BudgetUsage::default());
        TurnLimits { max_turns: 0, budget, ..self.limits.clone() }
    }

    pub(crate) fn reasoning_effort(&self) -> Option<&ReasoningEffort> {
        self.reasoning_effort.as_ref()
    }

    pub(super) fn child_spawned(
        &mut self,
        agent: String,
        (session, cap): (SessionId, Limits),
        task: String,
        call_id: Option<String>,
        out: &mut Vec<Action>,
    ) {
        // No event may follow the end of the session.
        if self.state == SessionState::Closed {
            return;
        }
        self.children.spawned += 1;
        self.children.named = self.children.named.max(agent_number(&agent).unwrap_or(0));
        let slice = self.budget_left().with_each(&Limits::default(), |left, _| left / SHARE).lower(&cap);
        let account = Account { rests: false, ..Account::default() };
        self.children.open.insert(agent.clone(), Child { session: session.clone(), slice, cap, account });
        if let (Some(call_id), Phase::RunningTools(round)) = (&call_id, &mut self.phase) {
            round.spawned(call_id);
        }
        self.children.calls.extend(call_id.map(|call_id| (call_id, agent.clone())));
        out.push(Action::emit(EventKind::SubagentSpawned { agent_id: agent, child: session, task }));
        if self.ending.is_some() {
            // The spawning call was already running when everything was stopped.
            self.stop_children(out);
        }
    }

    /// Returns the position of this session against the budget of its parent.
    pub(crate) fn account(&self) -> Account {
        // A running attempt is settled before the account is needed, or lost with the process and counted on
        // resumption.
        let held = self.reservations.unsettled().and(self.children.held());
        Account { spent: self.spent, held, rests: self.state != SessionState::Processing }
    }

    /// Counts the spending of a subagent as spending of this session.
    pub(super) fn child_spent(&mut self, agent: &str, spent: BudgetUsage, out: &mut Vec<Action>) {
        if self.take_child_spent(agent, spent) {
            self.stop_at_limit(out);
        }
    }

    /// Counts the spending of a subagent. Returns whether the subagent is known.
    pub(super) fn take_child_spent(&mut self, agent: &str, spent: BudgetUsage) -> bool {
        let Some(child) = self.children.open.get_mut(agent) else { return false };
        child.account.spent += spent;
        self.spent += spent;
        true
    }

    /// Applies the account of a subagent: its spending counts here. A resting subagent gives back the budget that it
    /// does not hold.
    pub(super) fn child_account(&mut self, agent: &str, account: Account, out: &mut Vec<Action>) {
        if self.take_child_account(agent, account) {
            self.stop_at_limit(out);
        }
    }

    /// Applies the account of a subagent. Returns whether the subagent is known.
    pub(super) fn take_child_account(&mut self, agent: &str, account: Account) -> bool {
        let Some(child) = self.children.open.get_mut(agent) else { return false };
        let spent = account.spent.since(&child.account.spent);
        child.account = account;
        if account.rests {
            child.slice = child.slice.exactly(&account.spent.and(account.held));
        }
        self.spent += spent;
        true
    }

    /// Stops all subagents, and starts no more calls, if a limit on tokens or cost is reached. No subagent exceeds its
    /// slice, so this happens exactly at the limit, or after the limit was lowered.
    fn stop_at_limit(&mut self, out: &mut Vec<Action>) {
        if self.limit_on_model_call().is_some() {
            self.stop_children(out);
            if self.ending.is_none() {
                self.hold_calls(out);
                self.settle_round(out);
            }
        }
    }

    /// Answers a request of a subagent for more of the budget. Asks for more itself first if too little is left.
    pub(super) fn child_asked(
        &mut self,
        agent: String,
        ask: u64,
        has: Limits,
        wants: Limits,
        unpriced: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let request = Ask { ask, has, wants };
        let missing = self.grow_slice(&agent, &request);
        // While this session has a limit on cost, the subagent's limit cannot be lifted.
        let unpriced = unpriced.filter(|_| self.budget().cost.is_some());
        let is_short = missing != Limits::default() || unpriced.is_some();
        if is_short && self.ask_for_budget(missing, unpriced, out) {
            self.children.asks.insert(agent, request);
        } else {
            self.grant(agent, ask, out);
        }
    }

    /// Reserves the budget that a subagent asked for, as far as it is available.
    pub(super) fn take_child_ask(&mut self, agent: &str, ask: u64, has: Limits, wants: Limits) {
        self.grow_slice(agent, &Ask { ask, has, wants });
    }

    /// Answers the requests that waited for this session's own request.
    pub(super) fn answer_asks(&mut self, out: &mut Vec<Action>) {
        for (agent, request) in std::mem::take(&mut self.children.asks) {
            self.grow_slice(&agent, &request);
            self.grant(agent, request.ask, out);
        }
    }

    /// Reserves more for a subagent, as far as it is available. Returns the missing amounts.
    fn grow_slice(&mut self, agent: &str, request: &Ask) -> Limits {
        let left = self.budget_left();
        let Some(child) = self.children.open.get_mut(agent) else { return Limits::default() };
        let mut missing = Limits::default();
        let cap = child.cap;
        let grown = |slice: Option<u64>,
                     (has, wants): (Option<u64>, Option<u64>),
                     left: Option<u64>,
                     cap: Option<u64>| {
            // A subagent is unlimited if neither this session nor the subagent has a limit.
            if left.is_none() && cap.is_none() {
                return (None, None);
            }
            let (slice, left) = (slice.unwrap_or(0), left.unwrap_or(u64::MAX));
            let below_cap = cap.map_or(u64::MAX, |cap| cap.saturating_sub(slice));
            let needed = has.unwrap_or(0).saturating_add(wants.unwrap_or(0)).saturating_sub(slice);
            let needed = needed.min(below_cap);
            let more = if needed == 0 { 0 } else { needed.max(left / SHARE).min(left).min(below_cap) };
            (
                Some(slice.saturating_add(more)),
                Some(needed.saturating_sub(more)).filter(|missing| *missing > 0),
            )
        };
        let slice = child.slice;
        (child.slice.tokens, missing.tokens) =
            grown(slice.tokens, (request.has.tokens, request.wants.tokens), left.tokens, cap.tokens);
        let (has, wants) = (request.has.cost_micros(), request.wants.cost_micros());
        let (cost, missing_cost) =
            grown(slice.cost_micros(), (has, wants), left.cost_micros(), cap.cost_micros());
        (child.slice.cost, missing.cost) =
            (cost.map(Money::from_micros), missing_cost.map(Money::from_micros));
        (child.slice.tool_calls, missing.tool_calls) = grown(
            slice.tool_calls,
            (request.has.tool_calls, request.wants.tool_calls),
            left.tool_calls,
            cap.tool_calls,
        );
        missing
    }

    fn grant(&self, agent: String, ask: u64, out: &mut Vec<Action>) {
        if let Some(child) = self.children.open.get(&agent) {
            out.push(Action::GrantBudget { agent, ask, slice: Box::new(child.slice) });
        }
    }

    pub(super) fn child_ended(
        &mut self,
        agent: &str,
        status: SubagentStatus,
        turns_used: u64,
        out: &mut Vec<Action>,
    ) {
        if let Some((agent_id, Child { session: child, account, .. })) =
            self.children.open.remove_entry(agent)
        {
            // The rest of its slice becomes available again.
            self.charge_unsettled(account.held);
            self.children.asks.remove(agent);
            self.children.calls.retain(|_, of| of != agent);
            out.push(Action::emit(EventKind::SubagentEnded { agent_id, child, status, turns_used }));
        }
    }

    /// Interrupts all subagents: stopping an agent includes the work that it delegated.
    pub(super) fn stop_children(&self, out: &mut Vec<Action>) {
        if self.has_children() {
            out.push(Action::StopSubagents);
        }
    }

    /// Returns whether a subagent is open.
    pub(super) fn has_children(&self) -> bool {
        !self.children.open.is_empty()
    }

    /// Returns the ids of the calls whose subagents are among these.
    pub(super) fn calls_of_children(&self, agents: &[String]) -> BTreeSet<String> {
        let calls = self.children.calls.iter().filter(|(_, agent)| agents.contains(agent));
        calls.map(|(call_id, _)| call_id.clone()).collect()
    }

    /// Ends all subagents that are gone with their driving process; `attached` subagents continue.
    pub(super) fn children_lost(&mut self, attached: &[String], out: &mut Vec<Action>) {
        let (open, gone) = std::mem::take(&mut self.children.open)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(agent, _)| attached.contains(agent));
        self.children.open = open;
        self.children.calls.retain(|_, agent| attached.contains(agent));
        self.children.asks.clear();
        for (agent_id, child) in gone {
            // The spent part of the reservation is unknown, so all of it counts.
            self.charge_unsettled(child.held());
            let child = child.session;
            let status = SubagentStatus::Failed;
            out.push(Action::emit(EventKind::SubagentEnded { agent_id, child, status, turns_used: 0 }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Input, InputKind, RunId, SubagentSettings, Timestamp};

    fn machine() -> Machine {
        Machine::new(TurnLimits::default(), None)
    }

    fn step(machine: &mut Machine, kind: InputKind) -> Vec<Action> {
        machine.step(Input::new(Timestamp::from_millis(0), kind))
    }

    fn spawned(name: &str) -> InputKind {
        InputKind::ChildSpawned {
            agent: name.into(),
            session: SessionId::new(name),
            task: "Look.".into(),
            call_id: None,
            settings: SubagentSettings::default(),
        }
    }

    fn ended(name: &str) -> InputKind {
        InputKind::ChildEnded {
            agent: name.into(),
            status: SubagentStatus::Completed,
            turns_used: 2,
            output: String::new(),
            reason: None,
            warning: None,
        }
    }

    fn spent(name: &str) -> InputKind {
        let spent = BudgetUsage { input_tokens: 7, tool_calls: 1, ..BudgetUsage::default() };
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
        step(&mut machine, InputKind::Submit { run: RunId(0), message: "go".into() });
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
        let resumed = step(&mut machine, InputKind::Resumed { attached: Vec::new(), asks: None });
        assert!(is_end(resumed.last().unwrap(), "agent_1"), "{resumed:?}");
        assert!(step(&mut machine, ended("agent_1")).is_empty());
    }
}
