//! Subagents that are resumed with their parent, each from its own journal.

use std::sync::Arc;

use super::mailbox::Mailbox;
use super::recorded::LOST;
use super::report::Report;
use super::roster::Roster;
use super::worker::WorkerStart;
use super::{RecordedSubagent, SubagentHandle, SubagentSpec};
use crate::protocol::SessionState;
use crate::record::{Record, Replay};

impl Roster {
    /// Resumes the open subagents of a record, and returns the names of the resumed ones. A subagent whose journal is
    /// missing or unusable is lost.
    pub(super) async fn attach(self: &Arc<Self>, spec: SubagentSpec) -> Vec<String> {
        let unattached = std::mem::take(&mut self.lock().unattached);
        let mut attached = Vec::new();
        for (handle, past) in unattached {
            let name = handle.id().to_owned();
            match self.attach_one(&handle, past, spec.clone()).await {
                Ok(()) => attached.push(name),
                Err(reason) => close(&handle, Report::failed(reason, String::new(), 0)),
            }
        }
        attached
    }

    /// Resumes one subagent.
    ///
    /// # Errors
    ///
    /// The reason why it is lost.
    async fn attach_one(
        self: &Arc<Self>,
        handle: &SubagentHandle,
        past: RecordedSubagent,
        spec: SubagentSpec,
    ) -> Result<(), String> {
        let because = |error: &dyn std::fmt::Display| format!("{LOST} ({error})");
        let journals = spec.journals.clone().ok_or_else(|| LOST.to_owned())?;
        let opened = journals.open(handle.origin()).await.map_err(|error| because(&error))?;
        let task = past.task.clone();
        let mut beginning = WorkerStart::default();
        let mut ended = None;
        match opened {
            Some((record, journal)) => {
                let replay = record.replay().map_err(|error| because(&error))?;
                ended = beginning.go_on_from(&record, replay, handle, past.task);
                beginning.resume = Some((record, journal));
            }
            None => handle.mailbox.send_modify(|mailbox| mailbox.repeat_task(past.task)),
        }
        let spec = spec.adapt_to(&past.settings).await.map_err(|error| because(&error.for_model()))?;
        let held = spec.held_by_gates_for(handle.origin(), &past.settings, &task);
        let spec = held.map_err(|error| because(&error.for_model()))?;
        let mut state = self.lock();
        state.resumed_calls.extend(past.call_id.map(|call_id| (call_id, handle.clone())));
        if let Some(report) = ended {
            // The subagent closed, and its parent died before the end was reported.
            state.inputs.push_back(report.as_end_of(handle.id()));
            close(handle, report);
            self.notify();
        } else {
            let announcement = self.notify();
            self.start_worker(&mut state, spec, handle, announcement, beginning);
        }
        Ok(())
    }
}

impl WorkerStart {
    /// Restores the state at the end of a record, and puts it into the mailbox. Returns the final report of a subagent that
    /// was closed.
    fn go_on_from(
        &mut self,
        record: &Record,
        replay: Replay,
        handle: &SubagentHandle,
        task: String,
    ) -> Option<Report> {
        for event in &replay.events {
            self.progress.observe(&event.kind);
        }
        let Some((_, outcome)) = replay.outcomes.into_iter().next_back() else {
            // Without a run, the subagent has not received its task.
            if record.next_run() == 0 {
                handle.mailbox.send_modify(|mailbox| mailbox.repeat_task(task));
            }
            return None;
        };
        if replay.state == SessionState::Processing {
            return None;
        }
        let report = self.progress.report(outcome);
        if replay.state == SessionState::Closed {
            return Some(report);
        }
        handle.mailbox.send_modify(|mailbox| mailbox.finish_run(report));
        None
    }
}

/// Closes a subagent that has no worker.
fn close(handle: &SubagentHandle, report: Report) {
    handle.closing.cancel();
    handle.mailbox.send_modify(|mailbox| Mailbox::close(mailbox, report));
}
