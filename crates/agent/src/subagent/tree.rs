//! All sessions that come from one session of a host.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pintle_llm::Client;
use tokio::sync::{mpsc, watch};

use crate::driver::Command;
use crate::event_log::EventLog;
use crate::protocol::SessionId;
use crate::record::{Record, Recorder};
use crate::session::{SessionHandle, Shared};

/// Subagents that have ended and whose events are kept for streams that begin later.
const MAX_ENDED: usize = 64;

/// The sessions of a tree, by their ids.
///
/// The events of a subagent are there as long as it is, and those of the newest that have ended. A stream holds what it
/// has still to read by itself, so that it loses nothing, however slow it is.
#[derive(Debug)]
pub(crate) struct Tree {
    state: Mutex<State>,
    /// Told when there is another member.
    grown: watch::Sender<u64>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { state: Mutex::default(), grown: watch::Sender::new(0) }
    }
}

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<SessionId>,
    /// The streams that there are.
    unread: Vec<Weak<Unread>>,
    /// Records of every session that there has been, if they are kept in memory.
    recorders: Vec<Arc<Recorder>>,
}

/// One session of a tree.
#[derive(Debug)]
pub(crate) struct Member {
    id: SessionId,
    parent: Option<SessionId>,
    log: Arc<EventLog>,
    /// `None` once it has ended.
    live: Option<Live>,
}

/// What a handle is made of. It keeps no session alive.
#[derive(Debug)]
struct Live {
    commands: mpsc::WeakSender<Command>,
    shared: watch::Receiver<Shared>,
    client: Client,
    recorder: Option<Arc<Recorder>>,
}

/// The sessions that a stream has not begun to read.
#[derive(Debug, Default)]
pub(super) struct Unread(Mutex<HashMap<SessionId, Arc<EventLog>>>);

impl Unread {
    /// The log of this session, once.
    pub(super) fn take(&self, id: &SessionId) -> Option<Arc<EventLog>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    fn add(&self, id: SessionId, log: Arc<EventLog>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, log);
    }
}

impl Member {
    pub(crate) fn new(log: Arc<EventLog>, handle: &SessionHandle) -> Self {
        let live = Live {
            commands: handle.commands.downgrade(),
            shared: handle.shared.clone(),
            client: handle.client.clone(),
            recorder: handle.recorder.clone(),
        };
        let (id, parent) = (log.session_id().clone(), log.identity().parent.clone());
        Self { id, parent, log, live: Some(live) }
    }
}

impl Tree {
    pub(crate) fn join(&self, member: Member) {
        let mut state = self.lock();
        let recorder = member.live.as_ref().and_then(|live| live.recorder.clone());
        state.recorders.extend(recorder.filter(|recorder| recorder.keeps()));
        state.unread.retain(|unread| unread.strong_count() > 0);
        for unread in state.unread.iter().filter_map(Weak::upgrade) {
            unread.add(member.id.clone(), Arc::clone(&member.log));
        }
        state.members.push(member);
        drop(state);
        self.grown.send_modify(|grown| *grown += 1);
    }

    /// Keeps nothing but the log of a session that has ended, and that only while it is among the newest.
    pub(super) fn leave(&self, id: &SessionId) {
        let mut state = self.lock();
        let Some(member) = state.members.iter_mut().find(|member| member.id == *id) else { return };
        if member.live.take().is_none() {
            return;
        }
        state.ended.push_back(id.clone());
        let oldest = if state.ended.len() > MAX_ENDED { state.ended.pop_front() } else { None };
        if let Some(oldest) = oldest {
            state.members.retain(|member| member.id != oldest);
        }
    }

    /// Drops the logs of these sessions, which have ended, and of all below them.
    pub(crate) fn forget(&self, sessions: Vec<SessionId>) {
        let mut state = self.lock();
        let mut gone = sessions;
        let mut next = 0;
        while let Some(id) = gone.get(next).cloned() {
            gone.extend(
                state.members.iter().filter(|one| one.parent.as_ref() == Some(&id)).map(|one| one.id.clone()),
            );
            next += 1;
        }
        state.members.retain(|member| !gone.contains(&member.id));
        state.ended.retain(|id| !gone.contains(id));
    }

    /// The logs of all sessions that there are, and of those that will be, for a stream that begins now.
    pub(super) fn unread(&self) -> Arc<Unread> {
        let mut state = self.lock();
        let unread = Arc::new(Unread::default());
        for member in &state.members {
            unread.add(member.id.clone(), Arc::clone(&member.log));
        }
        state.unread.push(Arc::downgrade(&unread));
        unread
    }

    /// A handle of this session, as long as it takes commands.
    pub(crate) fn handle(self: &Arc<Self>, id: &SessionId) -> Option<SessionHandle> {
        let state = self.lock();
        let live = state.members.iter().find(|member| member.id == *id)?.live.as_ref()?;
        let commands = live.commands.upgrade().filter(|commands| !commands.is_closed())?;
        Some(SessionHandle {
            commands,
            shared: live.shared.clone(),
            client: live.client.clone(),
            recorder: live.recorder.clone(),
            tree: Arc::clone(self),
        })
    }

    /// What has been recorded in memory, of each session that there has been, in the order in which they began.
    pub(crate) fn records(&self) -> Vec<Record> {
        let recorders = self.lock().recorders.clone();
        recorders.iter().filter_map(|recorder| recorder.record()).collect()
    }

    pub(super) fn grown(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Tree {
    /// The sessions whose events a stream that begins now could read.
    pub(super) fn known(&self) -> usize {
        self.lock().members.len()
    }
}

#[cfg(test)]
mod tests;
