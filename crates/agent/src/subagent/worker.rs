//! The task of one subagent.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::mailbox::{Delivery, Mailbox};
use super::report::Report;
use super::{Lineage, ParentLink, SubagentHandle, SubagentSpec, Tree};
use crate::error::RunError;
use crate::protocol::{EventKind, Outcome, OutcomeStatus, SessionId, SessionState, SubagentStatus};
use crate::record::{Journal, Record};
use crate::run::Run;
use crate::session::{Session, SessionBuilder, SessionHandle};

/// Input of the run after a run that ended before it read all messages; the messages follow it.
pub(super) const LATE: &str = include_str!("../../prompts/subagent/finished_before.md").trim_ascii_end();

/// The same after a run that was stopped.
pub(super) const STOPPED: &str = include_str!("../../prompts/subagent/stopped_before.md").trim_ascii_end();

/// Owns the session of a subagent and handles one message of its mailbox after the other.
pub(super) struct Worker {
    spec: Option<SubagentSpec>,
    resume: Option<(Record, Box<dyn Journal>)>,
    lineage: Lineage,
    closing: CancellationToken,
    mailbox: watch::Receiver<Mailbox>,
    progress: Progress,
    /// Steering messages that earlier runs did not read: they are still queued in the session.
    queued: usize,
    guard: EndGuard,
}

/// State in which a subagent starts: new by default, or from the record of a subagent whose process has ended.
#[derive(Debug, Default)]
pub(super) struct WorkerStart {
    /// Record and journal to continue.
    pub(super) resume: Option<(Record, Box<dyn Journal>)>,
    pub(super) progress: Progress,
}

/// Work of a subagent so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    turns_used: u64,
    /// Its last text that is not blank.
    last_text: String,
}

impl Progress {
    pub(super) fn observe(&mut self, event: &EventKind) {
        if let EventKind::AssistantTextEnd { text, .. } = event
            && !text.trim().is_empty()
        {
            self.last_text.clone_from(text);
        } else if let EventKind::ModelResponse { .. } = event {
            self.turns_used += 1;
        }
    }

    /// Returns the report of a run with this outcome. The next run starts without a text.
    pub(super) fn report(&mut self, outcome: Outcome) -> Report {
        let last_text = std::mem::take(&mut self.last_text);
        Report::from_outcome(outcome, last_text, self.turns_used)
    }

    fn failed(&self, reason: &str) -> Report {
        Report::failed(reason, self.last_text.clone(), self.turns_used)
    }
}

/// Counts the steering messages that a run has not read yet.
struct Steering {
    /// Unread messages of earlier runs, which are read first.
    earlier: usize,
    /// Unread messages of this run.
    unread: usize,
}

impl Steering {
    fn observe(&mut self, event: &EventKind) {
        if let EventKind::SteeringInjected { .. } = event {
            if self.earlier > 0 {
                self.earlier -= 1;
            } else {
                self.unread = self.unread.saturating_sub(1);
            }
        }
    }

    async fn deliver(&mut self, delivery: Delivery, handle: &SessionHandle) {
        let sent = match delivery {
            Delivery::Interrupt => handle.stop_turn(),
            Delivery::Message(message) => {
                self.unread += 1;
                handle.steer(message).await
            }
        };
        // A session that accepts no commands ends its run.
        if sent.is_err() {
            tracing::debug!("a message for a subagent was lost with its session");
        }
    }
}

impl Worker {
    pub(super) fn new(
        spec: SubagentSpec,
        lineage: Lineage,
        parent: ParentLink,
        handle: &SubagentHandle,
        beginning: WorkerStart,
    ) -> Self {
        let mailbox = Arc::clone(&handle.mailbox);
        let tree = Arc::clone(&lineage.tree);
        let WorkerStart { resume, progress } = beginning;
        let is_journaled = spec.journals.is_some();
        Self {
            spec: Some(spec),
            resume,
            lineage,
            closing: handle.closing.clone(),
            mailbox: mailbox.subscribe(),
            progress,
            queued: 0,
            guard: EndGuard {
                mailbox,
                parent,
                tree,
                session: handle.origin().session_id.clone(),
                is_journaled,
            },
        }
    }

    /// Handles messages until the subagent is closed or its session ends. The session's last event precedes the report of
    /// the end to the parent.
    pub(super) async fn run(mut self) {
        let Some(mut session) = self.build_session().await else { return };
        let closing = self.closing.clone();
        let mut shared = session.handle().link().shared.clone();
        self.queued = session.handle().queued().steering.len();
        let mut goes_on = match session.resumed() {
            Some(run) => self.follow_to_end(&session, run).await,
            None => true,
        };
        while goes_on {
            let message = tokio::select! {
                biased;
                () = closing.cancelled() => break,
                // The embedding application may abort the session, and an error may close it.
                _ = shared.wait_for(|shared| shared.state == SessionState::Closed) => break,
                message = self.next_message() => message,
            };
            goes_on = self.handle_message(&session, message).await;
        }
        if self.guard.is_suspended() {
            session.suspend().await;
        } else {
            session.close().await;
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a subagent has the gates of its parent")]
    async fn build_session(&mut self) -> Option<Session> {
        if self.closing.is_cancelled() {
            return None;
        }
        let spec = self.spec.take()?;
        let span = spec.span.clone();
        let (record, journal) = match (self.resume.take(), &spec.journals, &self.lineage.origin) {
            (Some((record, journal)), _, _) => (Some(record), Some(journal)),
            (None, Some(journals), Some(origin)) => match journals.create(origin).await {
                Ok(journal) => (None, Some(journal)),
                Err(error) => return self.fail(&format!("its journal cannot be created: {error}")),
            },
            (None, _, _) => (None, None),
        };
        let builder = SessionBuilder::subagent(spec, self.lineage.clone()).recorded_in(record, journal);
        match span.in_scope(|| builder.build()) {
            Ok(session) => Some(session),
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                self.fail(&format!("{error}{}", source.unwrap_or_default()))
            }
        }
    }

    /// Reports the reason why the subagent has no session.
    fn fail(&self, reason: &str) -> Option<Session> {
        self.guard.set_report(Report::failed(reason, String::new(), self.progress.turns_used));
        None
    }

    /// Waits for the next message of an idle subagent.
    async fn next_message(&mut self) -> String {
        loop {
            match self.next_delivery().await {
                Delivery::Interrupt => self.guard.mailbox.send_modify(Mailbox::interrupt_idle),
                Delivery::Message(message) => return message,
            }
        }
    }

    /// Waits for the next item of the mailbox. Cancel safe.
    async fn next_delivery(&mut self) -> Delivery {
        loop {
            let mut delivery = None;
            self.guard.mailbox.send_if_modified(|mailbox| {
                delivery = mailbox.take();
                // No task waits for the removal of a message.
                false
            });
            if let Some(delivery) = delivery {
                return delivery;
            }
            // Cannot fail: this worker owns a sender.
            let _ = self.mailbox.changed().await;
        }
    }

    /// Runs the session on a message and on messages that arrive meanwhile. Returns `false` if the subagent must close.
    async fn handle_message(&mut self, session: &Session, message: String) -> bool {
        let input = self.queue_behind_unread(session, message).await;
        self.follow_to_end(session, session.submit(input)).await
    }

    /// Follows a run, and further runs for unread messages. Returns `false` if the subagent must close.
    async fn follow_to_end(&mut self, session: &Session, mut run: Run) -> bool {
        loop {
            let Some(unread) = self.follow(session, &mut run).await else {
                self.guard.set_report(self.progress.failed("it was closed"));
                return false;
            };
            let Ok(outcome) = run.outcome().await.or_else(RunError::into_outcome) else {
                self.guard.set_report(self.progress.failed("its session is closed"));
                return false;
            };
            if is_answered(&outcome) {
                if unread > 0 {
                    run = session.submit(LATE);
                    continue;
                }
                // Every message was read, or refused by the session.
                self.queued = 0;
            }
            self.finish_run(outcome);
            return true;
        }
    }

    /// Queues a message behind the session's unread ones, so that they are read in order. Returns the input to submit.
    async fn queue_behind_unread(&mut self, session: &Session, message: String) -> String {
        if self.queued > 0 && session.handle().steer(message.clone()).await.is_ok() {
            self.queued += 1;
            return STOPPED.to_owned();
        }
        message
    }

    /// Reads the events of a run to its end and steers it with messages that arrive meanwhile. Returns the number of these
    /// messages that it did not read; `None` if the subagent is closed first.
    async fn follow(&mut self, session: &Session, run: &mut Run) -> Option<usize> {
        let (handle, closing) = (session.handle(), self.closing.clone());
        let mut steering = Steering { earlier: self.queued, unread: 0 };
        let mut interrupted = false;
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return None,
                // After an interrupt, messages wait for the next run.
                delivery = self.next_delivery(), if !interrupted => {
                    interrupted = matches!(delivery, Delivery::Interrupt);
                    steering.deliver(delivery, &handle).await;
                }
                event = run.next() => {
                    let Some(event) = event else { break };
                    self.progress.observe(&event.kind);
                    steering.observe(&event.kind);
                }
            }
        }
        // Messages that came too late are queued in the session for its next input.
        self.queued = steering.earlier + steering.unread;
        Some(steering.unread)
    }

    fn finish_run(&mut self, outcome: Outcome) {
        let report = self.progress.report(outcome);
        self.guard.mailbox.send_modify(|mailbox| mailbox.finish_run(report));
    }
}

/// Returns whether a run ended with an answer, so that another message can follow.
fn is_answered(outcome: &Outcome) -> bool {
    matches!(outcome.status, OutcomeStatus::Completed | OutcomeStatus::AwaitingInput)
}

/// Closes the mailbox and reports the end to the parent when the worker is dropped, even by a panic.
struct EndGuard {
    mailbox: Arc<watch::Sender<Mailbox>>,
    parent: ParentLink,
    tree: Arc<Tree>,
    session: SessionId,
    /// Whether the subagent can be resumed from a journal.
    is_journaled: bool,
}

impl EndGuard {
    /// Returns whether this process releases the subagent, which continues in another process.
    fn is_suspended(&self) -> bool {
        self.is_journaled && self.mailbox.borrow().is_suspended()
    }

    fn set_report(&self, report: Report) {
        self.mailbox.send_modify(|mailbox| mailbox.set_report(report));
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let mut report = self.mailbox.borrow().report().clone();
        if report.status == SubagentStatus::Running {
            // A reason of an earlier run is kept.
            report.status = SubagentStatus::Failed;
            report.reason.get_or_insert_with(|| "it was closed".to_owned());
        }
        self.tree.leave(&self.session);
        // The parent's driver is notified before the tasks that wait for the end.
        if !self.is_suspended() {
            self.parent.report_end(&report);
        }
        self.mailbox.send_modify(|mailbox| mailbox.close(report));
    }
}
