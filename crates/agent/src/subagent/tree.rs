//! All sessions that descend from one session of the embedding application.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pintle_llm::Client;
use tokio::sync::{mpsc, watch};

use super::SubagentHandle;
use super::roster::Roster;
use crate::approval::ApprovalRequest;
use crate::driver::SentCommand;
use crate::event_log::EventLog;
use crate::protocol::{BudgetUsage, SessionId};
use crate::record::{Record, Recorder};
use crate::session::{PublishedState, SessionHandle, SessionLink};

/// Maximum number of ended subagents whose events are kept for streams that start later.
const MAX_ENDED: usize = 64;

/// The sessions of a tree.
///
/// Keeps the event logs of live subagents and of the newest ended ones. A stream holds the logs that it has not read yet,
/// so a slow stream loses nothing.
#[derive(Debug)]
pub(crate) struct Tree {
    state: Mutex<TreeState>,
    /// Number of members that have joined.
    joined: watch::Sender<u64>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { state: Mutex::default(), joined: watch::Sender::new(0) }
    }
}

#[derive(Debug, Default)]
struct TreeState {
    members: Vec<Member>,
    /// Members that have ended, oldest first.
    ended: VecDeque<SessionId>,
    /// One entry per event stream.
    streams: Vec<Weak<UnreadLogs>>,
    /// Recorders of all sessions so far that are recorded in memory.
    recorders: Vec<Arc<Recorder>>,
    /// Amounts spent by ended subagents and the sessions below them, by their parents and by model.
    ended_models: HashMap<SessionId, BTreeMap<String, BudgetUsage>>,
    /// One entry per session.
    rosters: Vec<(SessionId, Weak<Roster>)>,
}

/// One session of a tree.
#[derive(Debug)]
pub(crate) struct Member {
    id: SessionId,
    parent: Option<SessionId>,
    log: Arc<EventLog>,
    /// `None` once the session has ended.
    live: Option<LiveHandle>,
}

/// Parts of a session handle that keep no session alive.
#[derive(Debug)]
struct LiveHandle {
    commands: mpsc::WeakSender<SentCommand>,
    shared: watch::Receiver<PublishedState>,
    client: Client,
    recorder: Option<Arc<Recorder>>,
}

/// Event logs that a stream has not started to read.
#[derive(Debug, Default)]
pub(super) struct UnreadLogs(Mutex<HashMap<SessionId, Arc<EventLog>>>);

impl UnreadLogs {
    /// Takes the log of a session.
    pub(super) fn take(&self, id: &SessionId) -> Option<Arc<EventLog>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    fn add(&self, id: SessionId, log: Arc<EventLog>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, log);
    }
}

impl Member {
    pub(crate) fn new(log: Arc<EventLog>, link: &SessionLink) -> Self {
        let live = LiveHandle {
            commands: link.commands.downgrade(),
            shared: link.shared.clone(),
            client: link.client.clone(),
            recorder: link.recorder.clone(),
        };
        let (id, parent) = (log.session_id().clone(), log.identity().parent.clone());
        Self { id, parent, log, live: Some(live) }
    }

    /// Returns whether the session receives its commands from this channel.
    fn receives(&self, commands: &mpsc::Sender<SentCommand>) -> bool {
        let own = self.live.as_ref().and_then(|live| live.commands.upgrade());
        own.is_some_and(|own| own.same_channel(commands))
    }
}

impl Tree {
    pub(crate) fn join(&self, member: Member) {
        let mut state = self.lock();
        let recorder = member.live.as_ref().and_then(|live| live.recorder.clone());
        state.recorders.extend(recorder);
        state.streams.retain(|unread| unread.strong_count() > 0);
        for unread in state.streams.iter().filter_map(Weak::upgrade) {
            unread.add(member.id.clone(), Arc::clone(&member.log));
        }
        state.members.push(member);
        drop(state);
        self.joined.send_modify(|joined| *joined += 1);
    }

    /// Marks a member as ended. Only its log is kept, and only as long as it is among the newest ended members.
    pub(super) fn leave(&self, id: &SessionId) {
        let mut state = self.lock();
        let Some(member) = state.members.iter_mut().find(|member| member.id == *id) else { return };
        let Some(live) = member.live.take() else { return };
        let parent = member.parent.clone();
        let mut models = live.shared.borrow().models.clone();
        add_models(&mut models, state.ended_models.remove(id).unwrap_or_default());
        if let Some(parent) = parent {
            add_models(state.ended_models.entry(parent).or_default(), models);
        }
        state.ended.push_back(id.clone());
        let oldest = if state.ended.len() > MAX_ENDED { state.ended.pop_front() } else { None };
        if let Some(oldest) = oldest {
            state.members.retain(|member| member.id != oldest);
        }
    }

    /// Drops the logs of ended sessions and of all their descendants.
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

    /// Registers a new stream and returns the logs of all current and future members for it.
    pub(super) fn subscribe(&self) -> Arc<UnreadLogs> {
        let mut state = self.lock();
        let unread = Arc::new(UnreadLogs::default());
        for member in &state.members {
            unread.add(member.id.clone(), Arc::clone(&member.log));
        }
        state.streams.push(Arc::downgrade(&unread));
        unread
    }

    /// Returns a handle of this session while it accepts commands.
    pub(crate) fn handle(self: &Arc<Self>, id: &SessionId) -> Option<SessionHandle> {
        let state = self.lock();
        let live = state.members.iter().find(|member| member.id == *id)?.live.as_ref()?;
        let commands = live.commands.upgrade().filter(|commands| !commands.is_closed())?;
        let link = SessionLink {
            commands,
            shared: live.shared.clone(),
            client: live.client.clone(),
            recorder: live.recorder.clone(),
            tree: Arc::clone(self),
        };
        Some(SessionHandle::new(link, None))
    }

    /// Returns the calls that wait for a decision in the session that receives its commands from this channel, and in the
    /// sessions below it.
    pub(crate) fn approvals_of(
        &self,
        commands: &mpsc::Sender<SentCommand>,
    ) -> Vec<(SessionId, Arc<ApprovalRequest>)> {
        let state = self.lock();
        let mut approvals = Vec::new();
        for member in state.subtree_of(commands) {
            if let Some(live) = &member.live {
                let waiting = live.shared.borrow().approvals.clone();
                approvals.extend(waiting.into_iter().map(|request| (member.id.clone(), request)));
            }
        }
        approvals
    }

    /// Returns the amounts spent by the session that receives its commands from this channel, and by the sessions below it, by
    /// model; `None` if it has ended.
    pub(crate) fn models_of(
        &self,
        commands: &mpsc::Sender<SentCommand>,
    ) -> Option<BTreeMap<String, BudgetUsage>> {
        let state = self.lock();
        let members = state.subtree_of(commands);
        let mut models = BTreeMap::new();
        for member in &members {
            let live = member.live.as_ref().map(|live| live.shared.borrow().models.clone());
            let ended = state.ended_models.get(&member.id).cloned();
            live.into_iter().chain(ended).for_each(|more| add_models(&mut models, more));
        }
        (!members.is_empty()).then_some(models)
    }

    /// Registers the roster of a session.
    pub(super) fn add_roster(&self, session: SessionId, roster: &Arc<Roster>) {
        let mut state = self.lock();
        state.rosters.retain(|(_, roster)| roster.strong_count() > 0);
        state.rosters.push((session, Arc::downgrade(roster)));
    }

    /// Lists the subagents of the session that receives its commands from this channel.
    pub(super) fn subagents_of(&self, commands: &mpsc::Sender<SentCommand>) -> Vec<SubagentHandle> {
        let roster = self.lock().roster_of(commands);
        roster.map(|roster| roster.handles()).unwrap_or_default()
    }

    /// Returns the in-memory records of all sessions so far, in the order in which they started.
    pub(crate) fn records(&self) -> Vec<Record> {
        let recorders = self.lock().recorders.clone();
        recorders.iter().map(|recorder| recorder.record()).collect()
    }

    pub(super) fn joined(&self) -> watch::Receiver<u64> {
        self.joined.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, TreeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TreeState {
    /// Returns the session that receives its commands from this channel, and the sessions below it.
    fn subtree_of(&self, commands: &mpsc::Sender<SentCommand>) -> Vec<&Member> {
        let mut members: Vec<&Member> = Vec::new();
        // A session joins after its parent.
        for member in &self.members {
            let is_below = |parent: &SessionId| members.iter().any(|above| above.id == *parent);
            if member.receives(commands) || member.parent.as_ref().is_some_and(is_below) {
                members.push(member);
            }
        }
        members
    }

    fn roster_of(&self, commands: &mpsc::Sender<SentCommand>) -> Option<Arc<Roster>> {
        let id = &self.members.iter().find(|member| member.receives(commands))?.id;
        self.rosters.iter().find(|(session, _)| session == id)?.1.upgrade()
    }
}

/// Adds the amounts of each model.
fn add_models(sum: &mut BTreeMap<String, BudgetUsage>, more: BTreeMap<String, BudgetUsage>) {
    for (model, spent) in more {
        *sum.entry(model).or_default() += spent;
    }
}

#[cfg(test)]
impl Tree {
    /// Returns the number of sessions whose events a new stream can read.
    pub(super) fn member_count(&self) -> usize {
        self.lock().members.len()
    }
}

#[cfg(test)]
mod tests;
