//! Outcomes of the single inputs of a run, for the callers that queued or submitted them.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::Driver;
use crate::protocol::{Outcome, RunId};

/// The side of a [`QueuedInput`](crate::QueuedInput) that reports its outcome.
pub(crate) type InputOwner = oneshot::Sender<Outcome>;

/// Callers that wait for the outcomes of follow-ups.
#[derive(Debug, Default)]
pub(super) struct InputOwners {
    /// One entry for each follow-up in the queue of the machine, the oldest first. A follow-up that another process posted,
    /// or that a record contains, has no owner.
    queued: VecDeque<Option<InputOwner>>,
    /// Owner of the current input, if it is a follow-up with an owner.
    current: Option<InputOwner>,
}

impl InputOwners {
    /// Adds entries for follow-ups without an owner, up to the length of the machine's queue.
    pub(super) fn fill(&mut self, length: usize) {
        self.queued.resize_with(length.max(self.queued.len()), || None);
    }

    /// Adds the owner of the newest follow-up in the machine's queue, which has this length.
    pub(super) fn add(&mut self, owner: InputOwner, length: usize) {
        self.fill(length);
        if let Some(newest) = self.queued.back_mut() {
            *newest = Some(owner);
        }
    }

    fn finish(&mut self, outcome: &Outcome, is_last: bool) {
        if let Some(owner) = self.current.take() {
            // A caller that has stopped waiting needs no outcome.
            let _ = owner.send(outcome.clone());
        }
        if !is_last {
            self.current = self.queued.pop_front().flatten();
        }
    }
}

impl Driver {
    /// Reports the outcome of an input to its owner: to the run whose first input it is, or to the caller that queued it.
    pub(super) fn finish_input(&mut self, run: RunId, outcome: Outcome, is_last: bool) {
        self.inputs.finish(&outcome, is_last);
        self.runs.finish_input(run, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OutcomeStatus;

    #[test]
    fn each_owner_gets_the_outcome_of_its_input() {
        let mut owners = InputOwners::default();
        let (owner, mut receiver) = oneshot::channel();
        // Another process posted the first follow-up.
        owners.fill(1);
        owners.add(owner, 2);
        let outcome = |text: &str| {
            let mut outcome = Outcome::new(OutcomeStatus::Completed);
            outcome.text = text.to_owned();
            outcome
        };
        for text in ["submitted", "posted"] {
            owners.finish(&outcome(text), false);
            assert!(receiver.try_recv().is_err());
        }
        owners.finish(&outcome("queued"), true);
        assert_eq!(receiver.try_recv().unwrap().text, "queued");
    }
}
