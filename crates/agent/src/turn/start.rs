//! How a machine begins with a history, and how it goes on when the host that drove it is gone.

use pintle_llm::{ErrorInfo, ReasoningEffort, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::children::Children;
use super::cycle::system_message;
use super::ending::Ending;
use super::history::Turn;
use super::input::TurnContext;
use super::round::Resumption;
use super::{Machine, Phase, SessionState};
use crate::config::TurnLimits;
use crate::event::{EventKind, ForkedFrom};
use crate::id::SessionId;
use crate::timestamp::Timestamp;

/// What a machine has before its first input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Start {
    /// The limits.
    pub limits: TurnLimits,
    /// How much the model reasons; its default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The conversation so far. Every call in it has its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Turn>,
    /// The facts that the next request is made of; they are gathered before it if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<TurnContext>>,
    /// Where the history comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The highest number in the name of a subagent that the history may speak of; 0 if there was none.
    #[serde(skip_serializing_if = "is_zero")]
    pub subagents_named: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Start {
    /// A beginning without a history.
    #[must_use]
    pub fn new(limits: TurnLimits, reasoning_effort: Option<ReasoningEffort>) -> Self {
        Self { limits, reasoning_effort, ..Self::default() }
    }
}

const FORKED: &str = "Not run here: the session was forked before this call had a result.";

impl Machine {
    /// A machine that begins with this, and waits for [`InputKind::Opened`](super::InputKind::Opened).
    #[must_use]
    pub fn starting(start: Start) -> Self {
        let mut machine = Self::new(start.limits, start.reasoning_effort);
        for turn in start.history {
            machine.call_ids.extend(turn.item.tool_calls().map(|call| call.id.clone()));
            machine.turns += u64::from(turn.is_answer());
            machine.record(turn);
        }
        machine.context_is_current = start.context.is_some();
        machine.context = start.context.map(|context| *context);
        machine.system = machine.context.as_mut().map(|context| system_message(context).into());
        machine.forked_from = start.forked_from;
        machine.children = Children::after(start.subagents_named);
        machine
    }

    /// What a session begins with that goes on from the first `turns` entries of this one's history: the same limits,
    /// effort, prompt and tools, so that its first request begins with the same bytes. `None` if there are not so many.
    ///
    /// What waits in queues stays here. Calls whose results lie beyond are answered as not run.
    #[must_use]
    pub fn fork(&self, turns: usize, session_id: SessionId) -> Option<Start> {
        let mut history = self.history.get(..turns)?.to_vec();
        if let Some(last) = history.last() {
            let results: Vec<_> = last.item.tool_calls().map(not_run_here).collect();
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
            forked_from: Some(ForkedFrom { session_id, turns }),
            subagents_named: self.subagents_named(),
        })
    }

    /// The facts that the newest request was made of, but for the system prompt, which is that request's first message.
    #[must_use]
    pub fn context(&self) -> Option<&TurnContext> {
        self.context.as_ref()
    }

    pub(super) fn opened(&self, out: &mut Vec<Action>) {
        let project = self.context.as_ref().map(|context| &context.project);
        if let Some(project) = project.filter(|project| !project.is_empty()) {
            out.push(Action::emit(EventKind::ProjectLoaded(project.clone())));
        }
    }

    /// What is not on record must not happen, so that the session ends.
    pub(super) fn unrecorded(&mut self, error: ErrorInfo, out: &mut Vec<Action>) {
        if self.state != SessionState::Closed && !matches!(self.phase, Phase::CleaningUp) {
            out.push(Action::emit(EventKind::Error { error: error.clone() }));
            self.stop(Ending::Failure(error), out);
        }
    }

    /// Nothing runs any more of what this machine waited for when it was told something last: what may be done again
    /// is wanted again, and what may not is answered.
    pub(super) fn resumed(&mut self, last: Timestamp, out: &mut Vec<Action>) {
        if self.state == SessionState::Closed {
            return;
        }
        let stopping = self.ending.is_some();
        let mut answers = Vec::new();
        let Resumption { interrupted, repeated, not_made } = match &mut self.phase {
            Phase::RunningTools(round) => round.resume(stopping, last, &mut answers),
            Phase::Resting | Phase::LoadingContext { .. } | Phase::AwaitingModel(_) | Phase::CleaningUp => {
                Resumption::default()
            }
        };
        self.spent.tool_calls = self.spent.tool_calls.saturating_sub(not_made);
        out.push(Action::emit(EventKind::SessionResumed { interrupted, repeated }));
        self.children_lost(out);
        out.append(&mut answers);
        self.count_time_from(last, out);
        match self.phase {
            Phase::Resting => {}
            Phase::LoadingContext { .. } | Phase::AwaitingModel(_) if stopping => self.conclude(out),
            Phase::LoadingContext { .. } | Phase::AwaitingModel(_) => self.proceed(out),
            Phase::RunningTools(_) => self.settle_round(out),
            Phase::CleaningUp => out.push(Action::CleanUp),
        }
    }

    /// The time in which no host ran is not time of the run.
    fn count_time_from(&mut self, last: Timestamp, out: &mut Vec<Action>) {
        let gap = self.now.as_millis().saturating_sub(last.as_millis());
        if let Some(progress) = &mut self.progress {
            progress.since = Timestamp::from_millis(progress.since.as_millis().saturating_add(gap));
            progress.timed = None;
        }
        self.time_run(out);
    }
}

fn not_run_here(call: &ToolCall) -> ToolResult {
    ToolResult::new(call.id.clone(), FORKED, true)
}
