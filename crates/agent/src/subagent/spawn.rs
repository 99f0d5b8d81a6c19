//! Spawning one subagent.

use std::sync::Arc;

use pintle_tools::ToolError;

use super::mailbox::Mailbox;
use super::request::SpawnRequest;
use super::roster::{Reservation, Roster, RosterState};
use super::worker::{Worker, WorkerStart};
use super::{ParentLink, SubagentHandle, SubagentSpec};
use crate::protocol::InputKind;

/// Maximum number of closed subagents that are kept with their results.
const MAX_CLOSED: usize = 64;

impl Roster {
    /// Spawns the subagent for which the driver made a reservation under `call_id`.
    ///
    /// # Errors
    ///
    /// A request that cannot be met, with a message for the model; no subagent is created.
    pub(super) async fn spawn(
        self: &Arc<Self>,
        call_id: &str,
        request: SpawnRequest,
    ) -> Result<SubagentHandle, ToolError> {
        request.validate()?;
        // The call ran in an earlier process.
        if let Some(handle) = self.lock().resumed_calls.remove(call_id) {
            return Ok(handle);
        }
        let reservation = self.lock().take_reservation(call_id);
        let reservation = reservation.ok_or_else(|| ToolError::failed("no subagent can be spawned here"))?;
        self.start(reservation, Some(call_id), request).await
    }

    /// Spawns a subagent for the embedding application.
    ///
    /// # Errors
    ///
    /// A request that cannot be met; no subagent is created.
    pub(super) async fn spawn_from_host(
        self: &Arc<Self>,
        reservation: Reservation,
        request: SpawnRequest,
    ) -> Result<SubagentHandle, ToolError> {
        request.validate()?;
        if self.is_too_deep() {
            return Err(ToolError::failed("subagents of this depth are not allowed"));
        }
        self.start(reservation, None, request).await
    }

    /// Returns whether subagents of this session would exceed the limit on nesting.
    pub(super) fn is_too_deep(&self) -> bool {
        self.lineage.depth() >= self.limits.max_depth
    }

    async fn start(
        self: &Arc<Self>,
        reservation: Reservation,
        call_id: Option<&str>,
        request: SpawnRequest,
    ) -> Result<SubagentHandle, ToolError> {
        let Reservation { name, spec } = reservation;
        let handle = self.new_handle(name, &request);
        let SpawnRequest { task, settings } = &request;
        let spec = spec.adapt_to(settings).await?.held_by_gates_for(handle.origin(), settings, task)?;

        let mut state = self.lock();
        state.make_room(self.limits.max_open)?;
        let announcement = self.announce(&mut state, &handle, call_id, request);
        self.start_worker(&mut state, spec, &handle, announcement, WorkerStart::default());
        state.add(handle.clone());
        Ok(handle)
    }

    fn new_handle(&self, name: String, request: &SpawnRequest) -> SubagentHandle {
        let mailbox = Mailbox::new(request.task.clone());
        let origin = self.new_origin(name, request.settings.role);
        SubagentHandle::new(origin, mailbox, Arc::clone(&self.lineage.tree))
    }

    /// Announces the subagent to the turn machine and returns the number of the notification.
    fn announce(
        &self,
        state: &mut RosterState,
        handle: &SubagentHandle,
        call_id: Option<&str>,
        request: SpawnRequest,
    ) -> u64 {
        let origin = handle.origin();
        let SpawnRequest { task, settings } = request;
        state.inputs.push_back(InputKind::ChildSpawned {
            agent: origin.agent_id.clone(),
            session: origin.session_id.clone(),
            task,
            call_id: call_id.map(str::to_owned),
            settings,
        });
        self.notify()
    }

    /// Starts the subagent's task, which waits until the announcement is in the parent's log: `SUBAGENT_SPAWNED`
    /// precedes every event of the subagent.
    pub(super) fn start_worker(
        self: &Arc<Self>,
        state: &mut RosterState,
        spec: SubagentSpec,
        handle: &SubagentHandle,
        announcement: u64,
        beginning: WorkerStart,
    ) {
        let parent = ParentLink::new(Arc::downgrade(self), handle.id().to_owned());
        let lineage = self.lineage.child(handle.origin().clone(), parent.clone(), handle.grants());
        let worker = Worker::new(spec, lineage, parent, handle, beginning);
        let closing = handle.closing.clone();
        let mut acknowledged = self.acknowledged.subscribe();
        state.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = closing.cancelled() => {}
                _ = acknowledged.wait_for(|number| *number >= announcement) => {}
            }
            worker.run().await;
        });
    }
}

impl RosterState {
    /// Makes room for one more subagent: discards old closed subagents and, at the limit, closes an idle one.
    fn make_room(&mut self, max_open: usize) -> Result<(), ToolError> {
        if self.is_closed {
            return Err(ToolError::failed("the session is closing"));
        }
        while self.tasks.try_join_next().is_some() {}
        self.discard_old_closed();
        let open: Vec<&SubagentHandle> = self.handles.iter().filter(|handle| handle.is_open()).collect();
        if open.len() < max_open {
            return Ok(());
        }
        let idle = open.iter().find(|handle| !handle.mailbox.borrow().is_running());
        let idle = idle.ok_or_else(|| {
            ToolError::failed(format!(
                "{} subagents run already, which is the most at a time; wait for one, or close one",
                open.len()
            ))
        })?;
        idle.closing.cancel();
        Ok(())
    }

    fn discard_old_closed(&mut self) {
        let closed = self.handles.iter().filter(|handle| handle.is_closed()).count();
        let mut excess = closed.saturating_sub(MAX_CLOSED);
        self.handles.retain(|handle| {
            let keep = excess == 0 || !handle.is_closed();
            excess -= usize::from(!keep);
            keep
        });
    }
}
