//! The handle of one subagent.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::Tree;
use super::grant::{Grant, Grants};
use super::mailbox::Mailbox;
use super::report::{Report, SubagentResult};
use crate::driver::Command;
use crate::error::SessionError;
use crate::protocol::{Limits, SubagentOrigin, SubagentStatus};
use crate::session::{Session, SessionHandle};

/// Handle of one subagent: reports its status, sends it messages and awaits its result (loop specification, section
/// 7.3).
///
/// The parent's tools use the same handle. Cheap to clone. It keeps no session alive, and stays valid after the end of
/// the subagent with the final status and result.
#[derive(Clone, Debug)]
pub struct SubagentHandle {
    origin: SubagentOrigin,
    pub(super) mailbox: Arc<watch::Sender<Mailbox>>,
    pub(super) closing: CancellationToken,
    grants: Arc<watch::Sender<Option<Grant>>>,
    tree: Arc<Tree>,
}

impl SubagentHandle {
    /// Creates the handle of a subagent whose worker is about to start.
    pub(super) fn new(origin: SubagentOrigin, mailbox: Mailbox, tree: Arc<Tree>) -> Self {
        let mailbox = Arc::new(watch::Sender::new(mailbox));
        let grants = Arc::new(watch::Sender::new(None));
        Self { origin, mailbox, closing: CancellationToken::new(), grants, tree }
    }

    /// Creates the handle of a subagent that ended before its session was resumed.
    pub(super) fn ended(origin: SubagentOrigin, report: Report, tree: Arc<Tree>) -> Self {
        let handle = Self::new(origin, Mailbox::closed(report), tree);
        handle.closing.cancel();
        handle
    }

    /// Returns the name among the subagents of its parent, such as `agent_1`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.origin.agent_id
    }

    /// Returns the position of the subagent in its tree of sessions.
    #[must_use]
    pub fn origin(&self) -> &SubagentOrigin {
        &self.origin
    }

    /// Returns a handle of the subagent's own session, to steer it, decide on its calls or list its own subagents; `None`
    /// before the session is built and after it has ended.
    #[must_use]
    pub fn session(&self) -> Option<SessionHandle> {
        self.tree.handle(&self.origin.session_id)
    }

    /// Returns the current status.
    #[must_use]
    pub fn status(&self) -> SubagentStatus {
        self.mailbox.borrow().report().status
    }

    /// Returns the result of the last message; `None` while the subagent is running.
    #[must_use]
    pub fn result(&self) -> Option<SubagentResult> {
        let mailbox = self.mailbox.borrow();
        (!mailbox.is_running()).then(|| mailbox.report().result())
    }

    /// Returns whether the subagent is closed and accepts no more messages.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.mailbox.borrow().is_closed()
    }

    /// Sends a message. A running subagent reads it after its current round of tool calls; an idle one starts to work
    /// on it, in the same conversation.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] for a closed subagent, [`SessionError::Full`] if 64 messages are waiting already.
    pub fn send(&self, message: impl Into<String>) -> Result<(), SessionError> {
        self.post(message.into(), false)
    }

    /// Waits until the subagent is not running and returns its result. Cancel safe.
    pub async fn wait(&self) -> SubagentResult {
        self.wait_until_idle().await.result()
    }

    /// Closes the subagent and waits for the end of its session. A subagent at work is aborted and counts as failed.
    ///
    /// Cancel safe: the subagent closes even if the future is dropped.
    pub async fn close(&self) -> SubagentResult {
        self.close_and_report().await.result()
    }

    /// Answers the request for more budget with this number.
    pub(super) fn grant(&self, ask: u64, slice: Limits) {
        self.grants.send_replace(Some(Grant { ask, slice }));
    }

    /// Returns the receiver of these answers.
    pub(super) fn grants(&self) -> Grants {
        Grants::new(self.grants.subscribe())
    }

    /// Sends a message; with `interrupt`, the current run is interrupted first.
    pub(super) fn post(&self, message: String, interrupt: bool) -> Result<(), SessionError> {
        if self.closing.is_cancelled() {
            return Err(SessionError::Closed);
        }
        let mut posted = Ok(());
        self.mailbox.send_if_modified(|mailbox| {
            posted = mailbox.post(message, interrupt);
            posted.is_ok()
        });
        posted
    }

    pub(super) fn report(&self) -> Report {
        self.mailbox.borrow().report().clone()
    }

    /// Interrupts the current run and discards unread messages.
    pub(super) fn interrupt(&self) {
        self.mailbox.send_if_modified(Mailbox::interrupt);
    }

    /// Returns whether the subagent is neither closed nor closing.
    pub(super) fn is_open(&self) -> bool {
        !self.closing.is_cancelled() && !self.is_closed()
    }

    pub(super) async fn wait_until_idle(&self) -> Report {
        self.wait_for(|mailbox| !mailbox.is_running()).await
    }

    pub(super) async fn close_and_report(&self) -> Report {
        self.closing.cancel();
        self.wait_for(Mailbox::is_closed).await
    }

    async fn wait_for(&self, condition: impl FnMut(&Mailbox) -> bool) -> Report {
        let mut mailbox = self.mailbox.subscribe();
        match mailbox.wait_for(condition).await {
            Ok(mailbox) => mailbox.report().clone(),
            // Unreachable: this handle owns the sender.
            Err(_) => self.report(),
        }
    }
}

impl Session {
    /// Spawns a subagent of a [type](crate::SubagentType), which works on a task. It starts with the current configuration of
    /// the session, and its spending is part of the session's.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotSpawned`] for an unknown type, an empty task or too many running subagents,
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub async fn spawn(
        &self,
        kind: impl Into<String>,
        task: impl Into<String>,
    ) -> Result<SubagentHandle, SessionError> {
        self.handle.spawn(kind, task).await
    }

    /// Lists the open subagents of this session and the newest 64 closed ones, by the numbers in their names, which is the
    /// order in which their calls started. The handle of a subagent's [session](SubagentHandle::session) lists the subagents
    /// of that subagent.
    #[must_use]
    pub fn subagents(&self) -> Vec<SubagentHandle> {
        self.handle().subagents()
    }
}

impl SessionHandle {
    /// As [`Session::spawn`].
    ///
    /// # Errors
    ///
    /// As for [`Session::spawn`].
    pub async fn spawn(
        &self,
        kind: impl Into<String>,
        task: impl Into<String>,
    ) -> Result<SubagentHandle, SessionError> {
        let (done, answer) = oneshot::channel();
        self.send(Command::Spawn { kind: kind.into(), task: task.into(), done })?;
        answer.await.unwrap_or(Err(SessionError::Closed))
    }

    /// As [`Session::subagents`]. Empty once the session has ended.
    #[must_use]
    pub fn subagents(&self) -> Vec<SubagentHandle> {
        self.link().tree.subagents_of(&self.link().commands)
    }
}
