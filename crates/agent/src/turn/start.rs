//! Start with a history, forks, and resumption after the driving process is gone.

use pintle_llm::{ErrorInfo, ToolCall, ToolResult};

use super::children::Children;
use super::cycle::system_message;
use super::ending::Ending;
use super::round::Resumption;
use super::{Machine, Phase};
use crate::protocol::{
    Action, EventKind, ForkedFrom, SessionId, SessionState, Start, Timestamp, Turn, TurnContext,
};

pub(super) const FORKED: &str = include_str!("../../prompts/calls/forked.md").trim_ascii_end();

impl Machine {
    /// Returns whether the history started as the history of another session.
    pub(crate) fn is_fork(&self) -> bool {
        self.forked_from.is_some()
    }

    /// Creates a machine with this initial state, which waits for
    /// [`InputKind::Opened`](crate::protocol::InputKind::Opened).
    #[must_use]
    pub fn starting(start: Start) -> Self {
        let mut machine = Self::new(start.limits, start.reasoning_effort);
        for turn in start.history {
            machine.call_ids.extend(turn.item.tool_calls().map(|call| call.id.clone()));
            machine.turns += u64::from(turn.is_complete_response());
            machine.record(turn);
        }
        machine.context_is_current = start.context.is_some();
        machine.context = start.context.map(|context| *context);
        if let Some(context) = &machine.context {
            machine.size.set_tools(context);
        }
        machine.system = machine.context.as_mut().map(|context| system_message(context).into());
        machine.forked_from = start.forked_from;
        machine.children = Children::after(start.subagents_named);
        machine.take_source(start.asks);
        machine.start_compacted(start.compactions);
        machine
    }

    /// Returns the start of a fork after the first `entries` entries of the history, or `None` if there are fewer.
    ///
    /// The fork has the same limits, effort, prompt and tools, so that its first request begins with the same bytes. Queued
    /// messages are not taken over. Calls whose results are beyond the cut are answered as not run.
    #[must_use]
    pub fn fork(&self, entries: usize, session_id: SessionId) -> Option<Start> {
        let mut history = self.history.get(..entries)?.to_vec();
        if let Some(last) = history.last() {
            let results: Vec<_> = last.item.tool_calls().map(|call| not_run_since(call, FORKED)).collect();
            if !results.is_empty() {
                let at = last.timestamp;
                history.push(Turn::tool_results(results, at));
            }
        }
        let mut context = self.context.clone().filter(|_| self.context_is_current);
        if let (Some(context), Some(system)) = (&mut context, &self.system) {
            context.system_prompt = system.text();
        }
        Some(Start {
            limits: self.limits.clone(),
            reasoning_effort: self.reasoning_effort.clone(),
            history,
            context: context.map(Box::new),
            forked_from: Some(ForkedFrom { session_id, turns: entries }),
            compactions: self.compactions.of_history(entries),
            subagents_named: self.subagents_named(),
            asks: None,
        })
    }

    /// Returns the context of the newest request, without the system prompt, which is that request's first message.
    #[must_use]
    pub fn context(&self) -> Option<&TurnContext> {
        self.context.as_ref()
    }

    pub(super) fn opened(
        &self,
        provider: String,
        model: String,
        working_directory: String,
        out: &mut Vec<Action>,
    ) {
        let forked_from = self.forked_from.clone();
        let start = EventKind::SessionStart { provider, model, working_directory, forked_from };
        out.push(Action::emit(start));
        let project = self.context.as_ref().map(|context| &context.project);
        if let Some(project) = project.filter(|project| !project.is_empty()) {
            out.push(Action::emit(EventKind::ProjectLoaded(project.clone())));
        }
    }

    /// Ends the session, since it must not act without a record.
    pub(super) fn unrecorded(&mut self, error: ErrorInfo, out: &mut Vec<Action>) {
        if self.state != SessionState::Closed && !matches!(self.phase, Phase::CleaningUp) {
            out.push(Action::emit(EventKind::Error { error: error.clone() }));
            self.stop(Ending::Failure(error), out);
        }
    }

    /// Continues after the driving process is gone. `last` is the time of the last input before that. The `attached`
    /// subagents also continue. Work that is safe to repeat is requested again; all other work is answered.
    pub(super) fn resumed(&mut self, last: Timestamp, attached: &[String], out: &mut Vec<Action>) {
        if self.state == SessionState::Closed {
            return;
        }
        self.take_resumption(last, attached, out);
        let stopping = self.ending.is_some();
        match self.phase {
            Phase::Resting => {}
            Phase::Compacting { .. } => self.compaction_lost(out),
            Phase::LoadingContext { .. } | Phase::AwaitingBudget | Phase::AwaitingModel(_) if stopping => {
                self.conclude(out);
            }
            Phase::LoadingContext { .. } | Phase::AwaitingBudget | Phase::AwaitingModel(_) => {
                self.proceed(out);
            }
            Phase::RunningTools(_) => self.settle_round(out),
            Phase::CleaningUp => out.push(Action::CleanUp),
        }
    }

    /// Handles the end of the process that drove the session: answers the calls that it left open, or requests them
    /// again.
    pub(super) fn take_resumption(&mut self, last: Timestamp, attached: &[String], out: &mut Vec<Action>) {
        let stopping = self.ending.is_some();
        let attached_calls = self.calls_of_children(attached);
        let mut answers = Vec::new();
        let Resumption { interrupted, repeated, reconciled, not_finished } = match &mut self.phase {
            Phase::RunningTools(round) => round.resume(stopping, last, &attached_calls, &mut answers),
            Phase::Resting
            | Phase::LoadingContext { .. }
            | Phase::AwaitingBudget
            | Phase::AwaitingModel(_)
            | Phase::Compacting { .. }
            | Phase::CleaningUp => Resumption::default(),
        };
        self.spent.tool_calls = self.spent.tool_calls.saturating_sub(not_finished);
        out.push(Action::emit(EventKind::SessionResumed { interrupted, repeated, reconciled }));
        self.lose_attempt();
        self.children_lost(attached, out);
        out.append(&mut answers);
        self.exclude_downtime(last, out);
    }

    /// Excludes the time in which no process drove the session from the time of the run.
    fn exclude_downtime(&mut self, last: Timestamp, out: &mut Vec<Action>) {
        let gap = self.now.as_millis().saturating_sub(last.as_millis());
        if let Some(progress) = &mut self.progress {
            progress.since = Timestamp::from_millis(progress.since.as_millis().saturating_add(gap));
            progress.timed = None;
        }
        self.time_run(out);
    }
}

/// Answers a call whose result was cut off.
pub(super) fn not_run_since(call: &ToolCall, why: &str) -> ToolResult {
    ToolResult::new(call.id.clone(), why, true)
}
