//! All sessions that come from one session of a host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_llm::Client;
use tokio::sync::{mpsc, watch};

use crate::driver::Command;
use crate::event_log::EventLog;
use crate::id::SessionId;
use crate::record::Recorder;
use crate::session::{SessionHandle, Shared};

/// The sessions of a tree, by their ids. Logs of those that have ended stay, for those who read late.
#[derive(Debug)]
pub(crate) struct Tree {
    members: Mutex<Vec<Member>>,
    /// Told when there is another member.
    grown: watch::Sender<usize>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { members: Mutex::default(), grown: watch::Sender::new(0) }
    }
}

/// One session of a tree.
#[derive(Debug)]
pub(crate) struct Member {
    id: SessionId,
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

impl Member {
    pub(crate) fn new(id: SessionId, log: Arc<EventLog>, handle: &SessionHandle) -> Self {
        let live = Live {
            commands: handle.commands.downgrade(),
            shared: handle.shared.clone(),
            client: handle.client.clone(),
            recorder: handle.recorder.clone(),
        };
        Self { id, log, live: Some(live) }
    }
}

impl Tree {
    pub(crate) fn join(&self, member: Member) {
        let mut members = self.lock();
        members.push(member);
        let size = members.len();
        drop(members);
        self.grown.send_replace(size);
    }

    /// Keeps nothing but the log of a session that has ended.
    pub(super) fn leave(&self, id: &SessionId) {
        if let Some(member) = self.lock().iter_mut().find(|member| member.id == *id) {
            member.live = None;
        }
    }

    /// The log of this session, once it is there.
    pub(super) fn log(&self, id: &SessionId) -> Option<Arc<EventLog>> {
        self.lock().iter().find(|member| member.id == *id).map(|member| Arc::clone(&member.log))
    }

    /// A handle of this session, as long as it takes commands.
    pub(crate) fn handle(self: &Arc<Self>, id: &SessionId) -> Option<SessionHandle> {
        let members = self.lock();
        let live = members.iter().find(|member| member.id == *id)?.live.as_ref()?;
        let commands = live.commands.upgrade().filter(|commands| !commands.is_closed())?;
        Some(SessionHandle {
            commands,
            shared: live.shared.clone(),
            client: live.client.clone(),
            recorder: live.recorder.clone(),
            tree: Arc::clone(self),
        })
    }

    pub(super) fn grown(&self) -> watch::Receiver<usize> {
        self.grown.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
