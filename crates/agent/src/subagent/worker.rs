//! The task of one subagent: it owns the session and serves it one message after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::origin::Lineage;
use super::report::{INTERRUPTED, Report};
use super::roster::Above;
use super::{Blueprint, Tree};
use crate::protocol::{EventKind, Outcome, OutcomeStatus, SessionId, SessionState, SubagentStatus};
use crate::run::Run;
use crate::session::{Session, SessionBuilder};

/// What lies before a subagent, and what it has come to. Its parent's tools and its own task share it.
#[derive(Debug)]
pub(super) struct Desk {
    /// What it is told, in order.
    pub(super) messages: VecDeque<String>,
    /// It should drop what it does.
    pub(super) interrupt: bool,
    /// It is closed: nothing comes after the report.
    pub(super) is_closed: bool,
    pub(super) report: Report,
}

impl Desk {
    pub(super) fn with(task: String) -> Self {
        Self {
            messages: VecDeque::from([task]),
            interrupt: false,
            is_closed: false,
            report: Report::running(),
        }
    }

    /// That of an agent that is gone.
    pub(super) fn closed(report: Report) -> Self {
        Self { messages: VecDeque::new(), interrupt: false, is_closed: true, report }
    }
}

/// Begins the next run for messages that came too late for the one before; they follow it.
const LATE: &str = "You had finished before this reached you:";

/// The same, if the one before was stopped.
const STOPPED: &str = "You were stopped before this reached you:";

pub(super) struct Worker {
    blueprint: Option<Blueprint>,
    lineage: Lineage,
    closing: CancellationToken,
    desk: watch::Receiver<Desk>,
    turns: u64,
    /// What the agent said last.
    said: String,
    /// Messages that were steered into runs before and not taken up: they wait in the session.
    left_over: usize,
    /// Tells the parent of the end, however it comes.
    end: End,
}

/// What the desk has for a worker.
enum Told {
    Interrupt,
    Message(String),
}

impl Worker {
    pub(super) fn new(
        blueprint: Blueprint,
        lineage: Lineage,
        above: Above,
        desk: Arc<watch::Sender<Desk>>,
        closing: CancellationToken,
    ) -> Self {
        let tree = Arc::clone(&lineage.tree);
        let session = lineage.origin.as_ref().map(|origin| origin.session_id.clone());
        Self {
            blueprint: Some(blueprint),
            lineage,
            closing,
            desk: desk.subscribe(),
            turns: 0,
            said: String::new(),
            left_over: 0,
            end: End { desk, above, tree, session },
        }
    }

    /// Ready when the subagent should end.
    pub(super) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Serves the session until it is told to close. Its last event comes before the parent is told of the end.
    pub(super) async fn run(mut self) {
        let Some(session) = self.begin() else { return };
        let closing = self.closing.clone();
        let mut shown = session.handle().shared;
        loop {
            let message = tokio::select! {
                biased;
                () = closing.cancelled() => break,
                // A host may end it, and so may an error.
                _ = shown.wait_for(|shown| shown.state == SessionState::Closed) => break,
                message = self.next_message() => message,
            };
            if !self.serve(&session, message).await {
                break;
            }
        }
        session.close().await;
    }

    fn begin(&mut self) -> Option<Session> {
        if self.closing.is_cancelled() {
            return None;
        }
        let blueprint = self.blueprint.take()?;
        let span = blueprint.span.clone();
        match span.in_scope(|| SessionBuilder::subagent(blueprint, self.lineage.clone()).build()) {
            Ok(session) => Some(session),
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                let reason = format!("{error}{}", source.unwrap_or_default());
                self.end.report(Report::failed(reason, String::new(), 0));
                None
            }
        }
    }

    /// The next message for an agent that rests.
    async fn next_message(&mut self) -> String {
        loop {
            match self.told().await {
                Told::Interrupt => self.end.desk.send_modify(|desk| {
                    // It was stopped before it began.
                    if desk.messages.is_empty() && desk.report.status == SubagentStatus::Running {
                        desk.report = Report::failed(INTERRUPTED, String::new(), desk.report.turns_used);
                    }
                }),
                Told::Message(message) => return message,
            }
        }
    }

    /// Takes what lies on the desk; an interrupt comes before any message. Cancel safe.
    async fn told(&mut self) -> Told {
        loop {
            let mut told = None;
            self.end.desk.send_if_modified(|desk| {
                told = if std::mem::take(&mut desk.interrupt) {
                    Some(Told::Interrupt)
                } else {
                    desk.messages.pop_front().map(Told::Message)
                };
                // Nobody waits for a message to be taken.
                false
            });
            if let Some(told) = told {
                return told;
            }
            // The sender lives in this worker.
            let _ = self.desk.changed().await;
        }
    }

    /// Has the agent handle a message, and those that come meanwhile. `false` if it must close.
    async fn serve(&mut self, session: &Session, message: String) -> bool {
        let mut message = message;
        // What it was told before it reads before.
        if self.left_over > 0 && session.handle().steer(message.clone()).is_ok() {
            self.left_over += 1;
            message = STOPPED.to_owned();
        }
        loop {
            let mut run = session.submit(message);
            let Some(late) = self.follow(session, &mut run).await else {
                let report = Report::failed("it was closed", self.said.clone(), self.turns);
                self.end.report(report);
                return false;
            };
            let Ok(outcome) = run.outcome().await else {
                self.end.report(Report::failed("its session is closed", self.said.clone(), self.turns));
                return false;
            };
            if may_go_on(&outcome) {
                if late > 0 {
                    message = LATE.to_owned();
                    continue;
                }
                // Whatever it was told it has read, or its session has refused.
                self.left_over = 0;
            }
            self.settle(outcome);
            return true;
        }
    }

    /// Reads a run to its end and gives the number of messages that were steered into it and not taken up; `None` if
    /// it must close before.
    async fn follow(&mut self, session: &Session, run: &mut Run) -> Option<usize> {
        let (handle, closing) = (session.handle(), self.closing.clone());
        let (mut steered, mut left_over, mut stopped) = (0_usize, self.left_over, false);
        loop {
            let event = tokio::select! {
                biased;
                () = closing.cancelled() => return None,
                // After an interrupt, messages wait for the run after this one.
                told = self.told(), if !stopped => {
                    let sent = match told {
                        Told::Interrupt => {
                            stopped = true;
                            handle.interrupt()
                        }
                        Told::Message(message) => {
                            steered += 1;
                            handle.steer(message)
                        }
                    };
                    // A session that takes no command any more ends its run.
                    if sent.is_err() {
                        tracing::debug!("a message for a subagent was lost with its session");
                    }
                    continue;
                }
                event = run.next() => event,
            };
            let Some(event) = event else {
                // What was steered too late waits in the session for its next input.
                self.left_over = left_over + steered;
                return Some(steered);
            };
            if let EventKind::AssistantTextEnd { text, .. } = &event.kind
                && !text.trim().is_empty()
            {
                self.said.clone_from(text);
            } else if matches!(event.kind, EventKind::ModelResponse { .. }) {
                self.turns += 1;
            } else if matches!(event.kind, EventKind::SteeringInjected { .. }) {
                // Those of before come first.
                if left_over > 0 { left_over -= 1 } else { steered = steered.saturating_sub(1) }
            }
        }
    }

    /// The agent rests, unless a message came in the last moment.
    fn settle(&mut self, outcome: Outcome) {
        let report = Report::of(outcome, std::mem::take(&mut self.said), self.turns);
        self.end.desk.send_modify(|desk| {
            desk.interrupt = false;
            desk.report = report;
            if !desk.messages.is_empty() {
                desk.report.status = SubagentStatus::Running;
            }
        });
    }
}

/// Whether a run ended by itself, so that another message is welcome.
fn may_go_on(outcome: &Outcome) -> bool {
    match outcome.status {
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => true,
        OutcomeStatus::Refused
        | OutcomeStatus::RoundLimit
        | OutcomeStatus::TurnLimit
        | OutcomeStatus::Budget
        | OutcomeStatus::ContextFull
        | OutcomeStatus::Interrupted
        | OutcomeStatus::Aborted
        | OutcomeStatus::Failed => false,
    }
}

/// Closes the desk when the worker is gone, even by a panic.
struct End {
    desk: Arc<watch::Sender<Desk>>,
    above: Above,
    tree: Arc<Tree>,
    session: Option<SessionId>,
}

impl End {
    fn report(&self, report: Report) {
        self.desk.send_modify(|desk| desk.report = report);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut report = self.desk.borrow().report.clone();
        if report.status == SubagentStatus::Running {
            // With what it had come to by the time it was told to do more.
            report.status = SubagentStatus::Failed;
            report.reason.get_or_insert_with(|| "it was closed".to_owned());
        }
        if let Some(session) = &self.session {
            self.tree.leave(session);
        }
        // Who waits for the end goes on when the parent's driver has heard of it.
        self.above.ended(report.status, report.turns_used);
        self.desk.send_modify(|desk| {
            desk.is_closed = true;
            desk.report = report;
        });
    }
}
