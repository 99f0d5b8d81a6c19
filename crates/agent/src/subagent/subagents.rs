//! The driver's side of a session's subagents.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

use super::request::SpawnRequest;
use super::roster::{Roster, Shutdown};
use super::{Lineage, RecordedSubagent, SubagentHandle, SubagentSpec, SubagentType, subagent_type, tool};
use crate::error::SessionError;
use crate::profile::ProviderProfile;
use crate::protocol::{InputKind, Limits, SessionId, SubagentLimits};

/// Smallest context window, in tokens, in which a session offers tools for subagents.
const MIN_WINDOW: u64 = 16_384;

/// The subagents of a session, owned by its driver. Dropping it aborts them all at once; [`Subagents::close`] closes
/// them in order.
#[derive(Debug)]
pub(crate) struct Subagents {
    roster: Arc<Roster>,
    published: watch::Receiver<u64>,
    /// Number of the last notification whose inputs were taken.
    taken: u64,
}

impl Subagents {
    pub(crate) fn new(
        session: SessionId,
        lineage: Lineage,
        limits: SubagentLimits,
        types: Arc<[SubagentType]>,
    ) -> Self {
        let roster = Roster::new(session, lineage, limits, types);
        Self { published: roster.notifications(), roster, taken: 0 }
    }

    /// Returns `profile` with the tools for subagents, if the session may have any. A tool that the embedding
    /// application registered under the same name is kept.
    pub(crate) fn add_tools(&self, profile: &ProviderProfile) -> ProviderProfile {
        let mut extended = profile.clone();
        if self.roster.is_too_deep() || profile.context_window_size < MIN_WINDOW {
            return extended;
        }
        if let Some(tools) = profile.subagent_tools {
            tool::register(tools, &mut extended.tool_registry, &self.roster);
        }
        tool::delegate::register(&mut extended.tool_registry, &self.roster);
        extended
    }

    /// Returns the types that the embedding application defined.
    pub(crate) fn types(&self) -> Arc<[SubagentType]> {
        Arc::clone(&self.roster.types)
    }

    /// Spawns a subagent of a type, under the next name.
    pub(crate) fn spawn(
        &self,
        kind: &str,
        task: String,
        spec: SubagentSpec,
    ) -> impl Future<Output = Result<SubagentHandle, SessionError>> + Send + use<> {
        let found = subagent_type::find(&self.roster.types, kind);
        let request = found.map(|kind| SpawnRequest { task, settings: kind.settings() });
        let roster = Arc::clone(&self.roster);
        let reservation = request.is_ok().then(|| roster.lock().next_reservation(spec));
        async move {
            let request = request.map_err(SessionError::NotSpawned)?;
            let Some(reservation) = reservation else { return Err(SessionError::Closed) };
            let spawned = roster.spawn_from_host(reservation, request).await;
            spawned.map_err(|error| SessionError::NotSpawned(error.for_model().to_owned()))
        }
    }

    /// Reserves the next name for a call that is about to run, so that names follow the order of the calls and not the
    /// order in which they reach the roster.
    pub(crate) fn reserve(&self, call_id: &str, spec: SubagentSpec) {
        self.roster.lock().reserve(call_id, spec);
    }

    /// Discards reservations of calls that are over.
    pub(crate) fn clear_reservations(&self) {
        self.roster.lock().clear_reservations();
    }

    /// Numbers new subagents after the subagents of the session from which this one was forked.
    pub(crate) fn inherit_names(&self, last_number: u64) {
        self.roster.lock().inherit_names(last_number);
    }

    /// Restores the subagents of a record, and numbers new subagents after `last_number`. With `keep_open`, open subagents
    /// wait for [`Subagents::attach`].
    pub(crate) fn restore(&self, recorded: Vec<RecordedSubagent>, last_number: u64, keep_open: bool) {
        self.roster.restore(recorded, last_number, keep_open);
    }

    /// Resumes the open subagents of a record from their own journals, and returns the names of the resumed ones. They start
    /// once the turn machine has processed the next inputs.
    pub(crate) async fn attach(&self, spec: SubagentSpec) -> Vec<String> {
        self.roster.attach(spec).await
    }

    /// Waits for new inputs. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        // Cannot fail: the roster owns the sender.
        let _ = self.published.changed().await;
    }

    /// Takes the inputs for the turn machine, oldest first.
    pub(crate) fn take_inputs(&mut self) -> VecDeque<InputKind> {
        let mut state = self.roster.lock();
        // Read under the lock that is held when a spawn is announced: a notification never counts as taken before its
        // inputs.
        self.taken = *self.published.borrow_and_update();
        std::mem::take(&mut state.inputs)
    }

    /// Returns whether there may be inputs that were not taken.
    pub(crate) fn has_inputs(&self) -> bool {
        *self.published.borrow() != self.taken
    }

    /// Confirms that the turn machine has processed the inputs that were taken last.
    pub(crate) fn acknowledge(&self) {
        self.roster.acknowledged.send_replace(self.taken);
    }

    /// Sends a subagent its budget, in answer to its request with this number.
    pub(crate) fn grant(&self, agent: &str, ask: u64, slice: Limits) {
        if let Some(handle) = self.roster.handles().iter().find(|handle| handle.id() == agent) {
            handle.grant(ask, slice);
        }
    }

    /// Interrupts every running subagent.
    pub(crate) fn interrupt(&self) {
        self.roster.handles().iter().for_each(SubagentHandle::interrupt);
    }

    /// Ends all subagents concurrently, and waits until the last one has ended.
    pub(crate) async fn close(&self, shutdown: Shutdown) {
        let mut tasks = self.roster.begin_shutdown(shutdown);
        while tasks.join_next().await.is_some() {}
    }
}

impl Drop for Subagents {
    fn drop(&mut self) {
        // Tools that are still running hold the roster, so dropping the roster would abort the tasks too late.
        drop(self.roster.begin_shutdown(Shutdown::Close));
    }
}

impl ProviderProfile {
    /// Returns the profile that a session with these limits presents to its model, with the tools for subagents.
    ///
    /// For inspection only: the added tools work only in a session, and every session adds its own.
    #[must_use]
    pub fn as_in_session(&self, limits: SubagentLimits) -> Self {
        Subagents::new(SessionId::new(""), Lineage::root(), limits, Arc::from([])).add_tools(self)
    }
}
