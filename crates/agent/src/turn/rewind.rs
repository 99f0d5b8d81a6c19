//! Rewinding: the session continues after an earlier entry of its history.

use serde::{Deserialize, Serialize};

use super::compaction::Compactions;
use super::loop_detection::LoopWindow;
use super::start::not_run_since;
use super::{Machine, Phase};
use crate::count::Count;
use crate::protocol::{Action, Checkpoint, CheckpointReason, EventKind, SessionState, Turn};

pub(super) const REWOUND: &str = include_str!("../../prompts/calls/rewound.md").trim_ascii_end();

/// Conversation before a rewind, so that it can be undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RewoundHistory {
    history: Vec<Turn>,
    compactions: Compactions,
}

impl Machine {
    /// Returns the highest number of entries to which the session can be rewound. Right after a rewind, it is more than
    /// the history has.
    #[must_use]
    pub fn rewindable_entries(&self) -> usize {
        self.rewound.as_ref().map_or(self.history.len(), |rewound| rewound.history.len())
    }

    /// Returns why the session cannot be rewound to this many entries now; `None` if it can.
    #[must_use]
    pub fn rewind_refusal(&self, entries: usize) -> Option<String> {
        if self.state == SessionState::Closed || matches!(self.phase, Phase::CleaningUp) {
            Some("the session is closed".to_owned())
        } else if self.progress.is_some() || !matches!(self.phase, Phase::Resting) {
            Some("the session is processing: interrupt it, or wait for the run to end".to_owned())
        } else if entries > self.rewindable_entries() {
            Some(format!("the history has {}", Count(self.rewindable_entries() as u64, "entry")))
        } else {
            None
        }
    }

    /// Goes back to the first `entries` entries of the history; or, right after that, forward again. Calls whose results
    /// are cut off are answered as not run. Queued messages stay queued, subagents stay open, and spending still
    /// counts.
    pub(super) fn rewind(&mut self, entries: usize, out: &mut Vec<Action>) {
        if let Some(problem) = self.rewind_refusal(entries) {
            if self.state != SessionState::Closed {
                let message = format!("the session was not rewound: {problem}");
                out.push(Action::emit(EventKind::Warning { message }));
            }
            return;
        }
        let before = self.rewound.take().unwrap_or_else(|| RewoundHistory {
            history: self.history.clone(),
            compactions: self.compactions.clone(),
        });
        self.history = before.history.iter().take(entries).cloned().collect();
        self.compactions = before.compactions.clone();
        self.rewound = (entries < before.history.len()).then_some(before);
        if let Some(last) = self.history.last() {
            let results: Vec<_> = last.item.tool_calls().map(|call| not_run_since(call, REWOUND)).collect();
            if !results.is_empty() {
                self.history.push(Turn::tool_results(results, self.now));
            }
        }
        let kept = self.history.len();
        let chars = self.history.iter().fold(0, |chars: u64, turn| chars.saturating_add(turn.chars()));
        self.size.set_history(chars);
        self.accepted = self.accepted.min(kept);
        // Makes subscribers replace their history.
        self.repairs += 1;
        self.state = SessionState::Idle;
        self.end_reasons.rewind();
        self.calls = LoopWindow::default();
        self.prefix.reset();
        self.start_compacted(self.compactions.of_history(entries));
        out.push(Action::emit(EventKind::Rewound { turns: kept }));
    }

    pub(super) fn checkpoint_taken(
        &self,
        reason: CheckpointReason,
        checkpoint: Checkpoint,
        out: &mut Vec<Action>,
    ) {
        if self.state != SessionState::Closed {
            let turns = self.history.len();
            out.push(Action::emit(EventKind::CheckpointTaken { reason, checkpoint, turns }));
        }
    }
}
