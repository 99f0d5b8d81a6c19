//! Runs without an outcome, and the ids of new ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use crate::protocol::{Outcome, RunId};
use crate::run::RunEnd;
use crate::session::RunOwner;

/// Runs without an outcome: the current one, and at most one that waits for its end.
#[derive(Debug, Default)]
pub(super) struct OpenRuns {
    owners: HashMap<RunId, RunOwner>,
    /// Counter for run ids, shared with the session.
    counter: Arc<AtomicU64>,
}

impl OpenRuns {
    /// Returns the counter for run ids.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.counter)
    }

    /// Sets the number of the next run.
    pub(super) fn set_next(&self, run: u64) {
        self.counter.store(run, Ordering::Relaxed);
    }

    /// Returns the id of a new run.
    pub(super) fn next_id(&self) -> RunId {
        RunId(self.counter.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn add(&mut self, run: RunId, owner: RunOwner) {
        self.owners.insert(run, owner);
    }

    /// Reports the outcome of an input of the run.
    pub(super) fn finish_input(&self, run: RunId, outcome: Outcome) {
        if let Some(owner) = self.owners.get(&run) {
            owner.input_finished(outcome);
        }
    }

    /// Reports the end of a run. If the run `next` waited for it, it starts with it.
    pub(super) fn finish(&mut self, run: RunId, end: RunEnd, next: Option<RunId>) {
        let first = end.end;
        if let Some(owner) = self.owners.remove(&run) {
            owner.finished(end);
        }
        if let Some(owner) = next.and_then(|next| self.owners.get(&next)) {
            owner.started(first);
        }
    }

    /// Marks the drop of a run as handled. Returns whether another run waits for its end.
    pub(super) fn handle_drop(&mut self, run: RunId) -> bool {
        if let Some(owner) = self.owners.get_mut(&run) {
            owner.dropped = None;
        }
        self.owners.len() > 1
    }

    /// Returns a run that its owner has dropped.
    pub(super) fn dropped(&self) -> Option<RunId> {
        let is_dropped =
            |owner: &RunOwner| owner.dropped.as_ref().is_some_and(CancellationToken::is_cancelled);
        self.owners.iter().find_map(|(run, owner)| is_dropped(owner).then_some(*run))
    }

    /// Returns the next run that its owner drops. Cancel safe.
    pub(super) async fn next_dropped(&self) -> RunId {
        let mut owned = self.owners.iter().filter_map(|(run, owner)| Some((*run, owner.dropped.as_ref()?)));
        // There are at most two: the current run, and one that waits for its end.
        let (one, other) = (owned.next(), owned.next());
        tokio::select! {
            run = dropped(one) => run,
            run = dropped(other) => run,
        }
    }
}

async fn dropped(run: Option<(RunId, &CancellationToken)>) -> RunId {
    let Some((run, dropped)) = run else { return std::future::pending().await };
    dropped.cancelled().await;
    run
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::event_log::{EventLog, Identity};
    use crate::protocol::{OutcomeStatus, SessionId};
    use crate::run::Run;

    fn log() -> Arc<EventLog> {
        let identity = Identity { session_id: SessionId::new("s"), depth: 0, parent: None };
        Arc::new(EventLog::new(identity))
    }

    fn run(runs: &mut OpenRuns, log: &Arc<EventLog>) -> (RunId, Run) {
        let (owner, run_of) = RunOwner::new(log);
        let id = runs.next_id();
        runs.add(id, owner);
        (id, run_of(None))
    }

    #[test]
    fn ids_continue_after_those_of_a_record() {
        let runs = OpenRuns::default();
        runs.set_next(7);
        assert_eq!([runs.next_id(), runs.next_id()], [RunId(7), RunId(8)]);
        assert_eq!(runs.counter().load(Ordering::Relaxed), 9);
    }

    #[test]
    fn the_drop_of_a_run_is_handled_once() {
        let (mut runs, log) = (OpenRuns::default(), log());
        let (one, first) = run(&mut runs, &log);
        assert!(!runs.handle_drop(RunId(99)), "no other run waits");
        let (_, second) = run(&mut runs, &log);
        assert_eq!((runs.dropped(), runs.next_dropped().now_or_never()), (None, None));
        drop(first);
        assert_eq!((runs.dropped(), runs.next_dropped().now_or_never()), (Some(one), Some(one)));
        assert!(runs.handle_drop(one), "another run waits");
        assert_eq!((runs.dropped(), runs.next_dropped().now_or_never()), (None, None));
        drop(second);
    }

    #[tokio::test]
    async fn the_end_of_a_run_reaches_its_owner_alone() {
        let (mut runs, log) = (OpenRuns::default(), log());
        let (one, first) = run(&mut runs, &log);
        let (two, second) = run(&mut runs, &log);
        let end = RunEnd { outcome: Outcome::new(OutcomeStatus::Completed), end: 3 };
        runs.finish(one, end, Some(two));
        assert_eq!(first.await.unwrap().status, OutcomeStatus::Completed);
        assert!(second.outcome().now_or_never().is_none());
    }
}
