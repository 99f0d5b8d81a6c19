//! Invariants after every input.

use std::collections::BTreeSet;

use super::super::*;

/// Checks a session after every input.
#[derive(Default)]
pub(super) struct Judge {
    requests: usize,
    actions: usize,
    steered: Vec<String>,
    followed: Vec<String>,
}

impl Judge {
    pub(super) fn look(&mut self, harness: &Harness) -> Result<(), String> {
        let requests = harness.requests.get(self.requests..).unwrap_or_default();
        requests.iter().try_for_each(well_formed)?;
        if !requests.is_empty() {
            chains_are_reported(harness, self.requests)?;
            may_call_the_model(&harness.machine)?;
        }
        self.requests = harness.requests.len();
        if harness.wanted[self.actions..].iter().any(|wanted| wanted.starts_with("start ")) {
            may_have_run_a_tool(&harness.machine)?;
        }
        self.actions = harness.wanted.len();
        in_place(&harness.events)?;
        runs_end_once(harness)?;
        self.queues_keep_everything(harness)
    }

    /// Delivered and queued messages are the sent ones, in order.
    fn queues_keep_everything(&mut self, harness: &Harness) -> Result<(), String> {
        let steered = harness.events.iter().filter_map(|event| match event {
            EventKind::SteeringInjected { content, .. } => Some(content.clone()),
            _ => None,
        });
        let steered: Vec<String> = steered.chain(harness.machine.steering().map(str::to_owned)).collect();
        grows(&mut self.steered, steered, "steering")?;
        let followed = harness.events.iter().filter_map(|event| match event {
            EventKind::UserInput { content, .. } if content.starts_with("follow") => Some(content.clone()),
            _ => None,
        });
        let followed: Vec<String> = followed.chain(harness.machine.follow_ups().map(str::to_owned)).collect();
        grows(&mut self.followed, followed, "follow-ups")
    }
}

fn grows(before: &mut Vec<String>, now: Vec<String>, what: &str) -> Result<(), String> {
    if !now.starts_with(before) || now.len() > before.len() + 1 {
        return Err(format!("{what} were {before:?} and are {now:?}"));
    }
    let different: BTreeSet<&String> = now.iter().collect();
    if different.len() != now.len() {
        return Err(format!("{what} were repeated: {now:?}"));
    }
    *before = now;
    Ok(())
}

/// The reported chain of each request, from this one on, equals the one computed from scratch.
fn chains_are_reported(harness: &Harness, from: usize) -> Result<(), String> {
    let reported = harness.events.iter().filter_map(|event| match event {
        EventKind::RequestPrepared { fingerprint, moved, .. } => Some((Some(*fingerprint), *moved)),
        _ => None,
    });
    let reported: Vec<_> = reported.collect();
    let chain = |index: usize| harness.requests[index].prefix_chain();
    for index in from..harness.requests.len() {
        // A request for a summary is not part of the conversation.
        let is_of_conversation = |index: &usize| {
            let last = harness.requests[*index].messages.last();
            last.is_none_or(|message| !message.text().starts_with("This conversation will be shortened"))
        };
        let (chain, before) = (chain(index), (0..index).rev().find(is_of_conversation).map(chain));
        let moved = before.and_then(|before| before.first_moved(&chain));
        if reported.get(index) != Some(&(chain.last(), moved)) {
            return Err(format!("{:?} was reported, and request {index} has {chain:?}", reported.get(index)));
        }
    }
    Ok(())
}

fn may_call_the_model(machine: &Machine) -> Result<(), String> {
    let (limits, budget, committed) = (&machine.limits, machine.budget(), machine.committed());
    let rounds = machine.progress.as_ref().map_or(0, |progress| progress.rounds);
    let below = |limit: u64, count: u64| limit == 0 || count < limit;
    let within = |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count <= limit);
    let checks = [
        ("turns", below(limits.max_turns, machine.turns)),
        ("rounds", below(limits.max_tool_rounds_per_input, rounds)),
        ("tokens", within(budget.tokens, committed.tokens())),
        ("cost", budget.cost.is_none_or(|limit| committed.cost.is_some_and(|cost| cost <= limit))),
    ];
    match checks.iter().find(|(_, holds)| !holds) {
        Some((what, _)) => Err(format!("the model is called beyond the limit of {what}")),
        None => Ok(()),
    }
}

fn may_have_run_a_tool(machine: &Machine) -> Result<(), String> {
    let (limit, spent) = (machine.budget().tool_calls, machine.spent());
    if limit.is_some_and(|limit| spent.tool_calls > limit) {
        return Err(format!("{} tool calls with a limit of {limit:?}", spent.tool_calls));
    }
    let Phase::RunningTools(round) = &machine.phase else { return Err("a call runs outside a round".into()) };
    let running = round.running();
    if running > machine.limits.max_parallel_tools.max(1) && running > round.at_once() {
        return Err(format!("{running} calls run at once"));
    }
    Ok(())
}

/// Every run has at most one outcome, every cycle one end, and the state says whether a cycle is in progress.
fn runs_end_once(harness: &Harness) -> Result<(), String> {
    let different: BTreeSet<RunId> = harness.finished.iter().copied().collect();
    if different.len() != harness.finished.len() {
        return Err(format!("a run ended twice: {:?}", harness.finished));
    }
    let count =
        |of_kind: fn(&EventKind) -> bool| harness.events.iter().filter(|event| of_kind(event)).count();
    let started = harness.events.iter().filter(
        |event| matches!(event, EventKind::UserInput { content, .. } if content.starts_with("input")),
    );
    let in_progress = usize::from(harness.machine.progress.is_some());
    if started.count() != count(|event| matches!(event, EventKind::ProcessingEnd { .. })) + in_progress {
        return Err("a cycle has no end, or two".into());
    }
    let of_budget = harness.outcomes.iter().filter(|outcome| outcome.status == OutcomeStatus::Budget).count();
    if of_budget != count(|event| matches!(event, EventKind::BudgetReached { .. })) {
        return Err("an outcome and an event say different things of the budget".into());
    }
    let of_window =
        harness.outcomes.iter().filter(|outcome| outcome.status == OutcomeStatus::ContextFull).count();
    let is_of_window = |event: &EventKind| match event {
        EventKind::ContextFull { .. } => true,
        // The provider refused the request, and there was no compaction or it did not make the request smaller.
        EventKind::Warning { message } => {
            message.ends_with("leave no room") || message.ends_with("exceeds the model's context window")
        }
        _ => false,
    };
    if of_window != count(is_of_window) {
        return Err("an outcome and an event say different things of the window".into());
    }
    let is_compacting = matches!(harness.machine.phase, Phase::Compacting { .. });
    if (in_progress == 1 || is_compacting) != (harness.machine.state() == SessionState::Processing) {
        return Err(format!("the state is {:?}", harness.machine.state()));
    }
    Ok(())
}

/// Every call has one result, in order, in the next message, and every id is unique.
fn well_formed(request: &Request) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    let mut messages = request.messages.iter().peekable();
    if messages.next().is_none_or(|first| first.role != Role::System) {
        return Err("the system prompt is not first".into());
    }
    while let Some(message) = messages.next() {
        if message.content.is_empty() {
            return Err("an empty message".into());
        }
        let calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        if calls.iter().any(|id| !ids.insert(*id)) {
            return Err(format!("an id is used twice: {calls:?}"));
        }
        match message.role {
            Role::Assistant if !calls.is_empty() => {
                let results: Vec<&str> = messages
                    .next()
                    .filter(|next| next.role == Role::Tool)
                    .map(|next| next.results().map(|result| result.tool_call_id.as_str()).collect())
                    .unwrap_or_default();
                if results != calls {
                    return Err(format!("calls {calls:?} are answered by {results:?}"));
                }
            }
            Role::Tool => return Err("results without calls".into()),
            Role::Assistant | Role::User => {}
            Role::System | Role::Developer => return Err("instructions in the middle".into()),
        }
    }
    Ok(())
}

/// Starts and ends pair, and all events are between the start and the end of the session.
pub(super) fn in_place(events: &[EventKind]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        let (starts, ends) = match event {
            EventKind::ToolCallStart { call_id, .. } => (Some(format!("call {call_id}")), None),
            EventKind::ToolCallEnd { call_id, .. } => (None, Some(format!("call {call_id}"))),
            EventKind::SubagentSpawned { agent_id, .. } => (Some(format!("subagent {agent_id}")), None),
            EventKind::SubagentEnded { agent_id, .. } => (None, Some(format!("subagent {agent_id}"))),
            _ => (None, None),
        };
        if let Some(what) = starts
            && !open.insert(what.clone())
        {
            return Err(format!("{what} started twice"));
        }
        if let Some(what) = ends
            && !open.remove(&what)
        {
            return Err(format!("{what} ended without a start"));
        }
        if matches!(event, EventKind::SessionStart { .. }) != (index == 0) {
            return Err("SESSION_START must be first, and only there".into());
        }
        if matches!(event, EventKind::SessionEnd { .. }) && (index + 1 != events.len() || !open.is_empty()) {
            return Err(format!("SESSION_END is not last, or leaves {open:?} open"));
        }
        let calls_are_open = open.iter().any(|what| what.starts_with("call"));
        if matches!(event, EventKind::ProcessingEnd { .. }) && calls_are_open {
            return Err(format!("processing ended with open calls: {open:?}"));
        }
    }
    Ok(())
}
