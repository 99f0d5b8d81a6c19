//! The session: what a host holds (loop specification, section 2.1; design, section 4).

mod beginning;
mod builder;
mod handle;
mod owner;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use self::builder::SessionBuilder;
pub(crate) use self::handle::Shared;
pub use self::handle::{Decision, SessionHandle};
pub(crate) use self::owner::Owner;
use crate::driver::Command;
use crate::error::SessionError;
use crate::event_log::{Cursor, EventLog};
use crate::id::{RunId, SessionId};
use crate::profile::ProviderProfile;
use crate::record::{Record, Replay, ReplayError};
use crate::run::{Events, Run};
use crate::subagent::TreeEvents;
use crate::turn::{SessionState, Turn};

/// Commands that may wait before the session takes no more.
const MAX_COMMANDS: usize = 1_024;

/// A coding agent at work: submit to it, watch it, steer it, stop it.
///
/// One task drives it; dropping the session ends that task and everything that it started.
/// [`Session::close`] does the same in order and waits for it.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    handle: SessionHandle,
    runs: AtomicU64,
    log: Arc<EventLog>,
    /// The run that a record left unfinished.
    resumed: Mutex<Option<Run>>,
    driver: JoinSet<()>,
}

impl Session {
    /// Begins a session of this profile, whose models `client` reaches and whose tools run in `env`.
    #[must_use]
    pub fn builder(
        client: Client,
        profile: ProviderProfile,
        env: Arc<dyn ExecutionEnvironment>,
    ) -> SessionBuilder {
        SessionBuilder::new(client, profile, env)
    }

    /// Has the agent handle this input.
    ///
    /// One input at a time: while a run goes on, another one ends at once as failed; steer, or queue a follow-up. One
    /// input that comes while a run is being interrupted waits for its end.
    pub fn submit(&self, text: impl Into<String>) -> Run {
        let run = RunId(self.runs.fetch_add(1, Ordering::Relaxed));
        let (owner, run_of) = Owner::of_run(&self.log);
        let refused = self.handle.send(Command::Submit { run, text: text.into(), owner }).err();
        run_of(refused)
    }

    /// Every event from `seq` on, those of the past first. Any number of subscribers may read at their own pace.
    #[must_use]
    pub fn events_from(&self, seq: u64) -> Events {
        Events::of_session(Cursor::new(Arc::clone(&self.log), seq))
    }

    /// Every event from the first on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.events_from(0)
    }

    /// The events of this session and of every subagent below it in one stream, from the first on. Those of a
    /// subagent carry its session's id, its depth and its parent, and their own numbers.
    #[must_use]
    pub fn tree_events(&self) -> TreeEvents {
        TreeEvents::new(Arc::clone(&self.handle.tree), self.id.clone(), Arc::clone(&self.log))
    }

    /// Frees the memory of the events before `before`, for a host that keeps them elsewhere or needs them no more.
    ///
    /// What a subscriber has still to read stays, and so does what is open; subscribers that come later begin with the
    /// first event that is kept, whose number is given back. Nothing is freed otherwise: a session keeps its events,
    /// as it keeps its history, until it is dropped. The events of subagents go with that of their end; of those that
    /// have ended, only the newest 64 are kept anyway.
    pub fn forget_events(&self, before: u64) -> u64 {
        let (first, ended) = self.log.forget(before);
        self.handle.tree.forget(ended);
        first
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// A handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        self.handle.clone()
    }

    /// The state that the session is in.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.handle.shared.borrow().state
    }

    /// The conversation as of the last change of state or of the history.
    #[must_use]
    pub fn history(&self) -> Vec<Turn> {
        self.handle.shared.borrow().history.clone()
    }

    /// The run that was going on when the record ended that this session goes on from, once. Its events are those from
    /// there on. Dropping it interrupts it; while nobody takes it, it goes on.
    pub fn resumed(&mut self) -> Option<Run> {
        self.resumed.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What has happened so far, in the middle of a turn as well. Also to be had from a
    /// [handle](SessionHandle::record), after the end.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRecorded`] unless the session was built with [`SessionBuilder::record`].
    pub fn record(&self) -> Result<Record, SessionError> {
        self.handle.record()
    }

    /// What has happened so far in this session and in every subagent that it has had, at any depth: a record of each,
    /// in the order in which they began. The events of their replays are those of [`Session::tree_events`].
    ///
    /// # Errors
    ///
    /// As for [`Session::record`].
    pub fn tree_records(&self) -> Result<Vec<Record>, SessionError> {
        self.handle.tree_records()
    }

    /// Has the events, requests and outcomes of a record come about once more, without a model and without a place
    /// where tools run.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Diverged`] at the first input that leads to another request than it did.
    pub fn replay(record: &Record) -> Result<Replay, ReplayError> {
        record.replay()
    }

    /// A session of its own that goes on from the first `turns` entries of the [history](Session::history), with the
    /// same configuration as this one has now: its requests begin with the same bytes, so that the provider's cache
    /// serves both. This session goes on, in the middle of a turn as well; what waits in its queues stays with it.
    ///
    /// Tools run in the same place. It stays this session's to clean up, so that the fork has to be closed first.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchTurn`] if the history has fewer entries, else as for [`SessionHandle::steer`]. A session
    /// that is closed can be forked from its [record](Record::fork).
    pub async fn fork(&self, turns: usize) -> Result<SessionBuilder, SessionError> {
        let (reply, forked) = oneshot::channel();
        self.handle.send(Command::Fork { turns, reply })?;
        match forked.await.map_err(|_| SessionError::Closed)? {
            Ok(builder) => Ok(*builder),
            Err(there_are) => Err(SessionError::NoSuchTurn { asked: turns, turns: there_are }),
        }
    }

    /// Stops what runs, cleans up and waits for the end. [`EventKind::SessionEnd`](crate::EventKind::SessionEnd) is
    /// the last event.
    pub async fn close(mut self) {
        // A session that takes no command any more is at its end already. One that has many waiting is waited for.
        let _ = self.handle.commands.send(Command::Close).await;
        while self.driver.join_next().await.is_some() {}
    }
}

const _: fn() = || {
    fn is_shared_between_tasks<T: Send + Sync>() {}
    is_shared_between_tasks::<Session>();
};

#[cfg(test)]
mod tests;
