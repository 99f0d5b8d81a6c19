//! State that a session's driver shares with its tools for subagents.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_tools::{ToolError, ToolErrorKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::mailbox::Mailbox;
use super::{Lineage, RecordedSubagent, SubagentHandle, SubagentSpec, SubagentType};
use crate::protocol::{
    InputKind, SessionId, SubagentLimits, SubagentOrigin, SubagentRole, agent_name, agent_number,
};

/// All subagents of one session. The driver owns it through [`Subagents`](super::Subagents), tools spawn and find
/// subagents in it, and subagents report to it through their [`ParentLink`](super::ParentLink).
#[derive(Debug)]
pub(crate) struct Roster {
    session: SessionId,
    pub(super) lineage: Lineage,
    pub(super) limits: SubagentLimits,
    /// Types that the embedding application defined.
    pub(super) types: Arc<[SubagentType]>,
    state: Mutex<RosterState>,
    /// Number of notifications so far, for the driver.
    published: watch::Sender<u64>,
    /// Number of the last notification whose inputs the turn machine has processed.
    pub(super) acknowledged: watch::Sender<u64>,
}

#[derive(Debug, Default)]
pub(super) struct RosterState {
    /// In the order of the numbers in their names.
    pub(super) handles: Vec<SubagentHandle>,
    /// Number in the newest name.
    last_number: u64,
    /// Names up to this number belong to the history of another session.
    inherited: u64,
    /// Names and specs for calls that are about to spawn, by call id.
    reservations: HashMap<String, Reservation>,
    /// Subagents that the calls of a record spawned, by call id. Such a call runs again and finds its subagent.
    pub(super) resumed_calls: HashMap<String, SubagentHandle>,
    /// Open subagents of a record, until they are attached.
    pub(super) unattached: Vec<(SubagentHandle, RecordedSubagent)>,
    /// Inputs for the turn machine, oldest first.
    pub(super) inputs: VecDeque<InputKind>,
    /// One task per worker.
    pub(super) tasks: JoinSet<()>,
    pub(super) is_closed: bool,
}

/// Name and configuration that the driver has set aside for one spawning call.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) name: String,
    pub(super) spec: SubagentSpec,
}

impl Roster {
    pub(super) fn new(
        session: SessionId,
        lineage: Lineage,
        limits: SubagentLimits,
        types: Arc<[SubagentType]>,
    ) -> Arc<Self> {
        let roster = Arc::new(Self {
            session,
            lineage,
            limits,
            types,
            state: Mutex::default(),
            published: watch::Sender::new(0),
            acknowledged: watch::Sender::new(0),
        });
        roster.lineage.tree.add_roster(roster.session.clone(), &roster);
        roster
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RosterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the subagent of this name.
    ///
    /// # Errors
    ///
    /// An unknown name, with a message for the model that lists the known names.
    pub(super) fn find(&self, name: &str) -> Result<SubagentHandle, ToolError> {
        let state = self.lock();
        let found = state.handles.iter().find(|handle| handle.id() == name.trim());
        found.cloned().ok_or_else(|| ToolError::new(ToolErrorKind::NotFound, state.unknown(name)))
    }

    pub(super) fn handles(&self) -> Vec<SubagentHandle> {
        self.lock().handles.clone()
    }

    /// Creates the identity of a new subagent, with a fresh session id.
    pub(super) fn new_origin(&self, name: String, role: SubagentRole) -> SubagentOrigin {
        self.child_origin(name, SessionId::generate(), role)
    }

    fn child_origin(&self, agent_id: String, session_id: SessionId, role: SubagentRole) -> SubagentOrigin {
        let depth = self.lineage.depth() + 1;
        SubagentOrigin { agent_id, session_id, parent: self.session.clone(), depth, role }
    }

    /// Adds the subagents of a resumed session's record. With `keep_open`, open subagents stay open until they are
    /// [attached](Self::attach) or found to be lost.
    pub(super) fn restore(&self, recorded: Vec<RecordedSubagent>, last_number: u64, keep_open: bool) {
        let mut state = self.lock();
        state.last_number = last_number;
        for past in recorded {
            let origin = self.child_origin(past.name.clone(), past.session_id.clone(), past.settings.role);
            let tree = Arc::clone(&self.lineage.tree);
            if !(keep_open && past.is_open()) {
                state.add(SubagentHandle::ended(origin, past.report(), tree));
                continue;
            }
            let handle = SubagentHandle::new(origin, Mailbox::resuming(), tree);
            state.add(handle.clone());
            state.unattached.push((handle, past));
        }
    }

    /// Refuses further subagents, ends the existing ones, and returns their tasks.
    pub(super) fn begin_shutdown(&self, shutdown: Shutdown) -> JoinSet<()> {
        let mut state = self.lock();
        state.is_closed = true;
        for handle in &state.handles {
            if shutdown != Shutdown::Close {
                handle.mailbox.send_modify(Mailbox::suspend);
            }
            let live = self.lineage.tree.handle(&handle.origin().session_id);
            // A subagent without a session has no record that could change.
            let is_abandoned =
                shutdown == Shutdown::Abandon && live.is_some_and(|live| live.abandon().is_ok());
            if !is_abandoned {
                handle.closing.cancel();
            }
        }
        std::mem::take(&mut state.tasks)
    }

    /// Notifies the driver of new inputs and returns the number of the notification.
    pub(super) fn notify(&self) -> u64 {
        let mut number = 0;
        self.published.send_modify(|published| {
            *published += 1;
            number = *published;
        });
        number
    }

    pub(super) fn notifications(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }
}

/// Way in which a process ends a session and its subagents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// Subagents are closed.
    Close,
    /// Subagents with unfinished work are interrupted and resume in another process, if they have journals.
    Suspend,
    /// Subagents end as if the process had died.
    Abandon,
}

impl RosterState {
    /// Adds a subagent after the subagents with lower numbers. The calls of a round spawn concurrently, so the first call
    /// may be the last to finish.
    pub(super) fn add(&mut self, handle: SubagentHandle) {
        let number = agent_number(handle.id());
        let at = self.handles.partition_point(|known| agent_number(known.id()) <= number);
        self.handles.insert(at, handle);
    }

    /// Reserves the next name for a call, unless its subagent exists.
    pub(super) fn reserve(&mut self, call_id: &str, spec: SubagentSpec) {
        if self.resumed_calls.contains_key(call_id) {
            return;
        }
        let reservation = self.next_reservation(spec);
        self.reservations.insert(call_id.to_owned(), reservation);
    }

    /// Returns a reservation with the next name.
    pub(super) fn next_reservation(&mut self, spec: SubagentSpec) -> Reservation {
        self.last_number += 1;
        Reservation { name: agent_name(self.last_number), spec }
    }

    pub(super) fn take_reservation(&mut self, call_id: &str) -> Option<Reservation> {
        self.reservations.remove(call_id)
    }

    pub(super) fn clear_reservations(&mut self) {
        self.reservations.clear();
    }

    /// Numbers new subagents after the subagents in another session's history.
    pub(super) fn inherit_names(&mut self, last_number: u64) {
        (self.last_number, self.inherited) = (last_number, last_number);
    }

    /// Formats the error message for a name that no subagent has.
    fn unknown(&self, name: &str) -> String {
        if agent_number(name).is_some_and(|number| (1..=self.inherited).contains(&number)) {
            return format!(
                "{} belongs to the session from which this one was forked, and cannot be reached from here",
                name.trim()
            );
        }
        let known: Vec<String> = self.handles.iter().map(description).collect();
        match known.as_slice() {
            [] => format!("there is no subagent {name:?}; none has been spawned"),
            known => format!("there is no subagent {name:?}; there are: {}", known.join(", ")),
        }
    }
}

fn description(handle: &SubagentHandle) -> String {
    let status = if handle.is_closed() { "closed".to_owned() } else { handle.status().to_string() };
    format!("{} ({status})", handle.id())
}
