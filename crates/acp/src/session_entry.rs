//! The prompts of a session: one is current, others wait.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_agent::{SessionHandle, UserMessage};
use pintle_llm::ImageData;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::host::SessionControls;
use crate::rpc::{RequestId, RpcError};

/// Session of a connection, as shared with requests. The session's task carries out the requests.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    pub(crate) id: String,
    pub(crate) handle: SessionHandle,
    pub(crate) controls: Arc<dyn SessionControls>,
    pub(crate) directory: PathBuf,
    /// Cancelled once the session is closed.
    pub(crate) closed: CancellationToken,
    turns: Mutex<PromptQueue>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct PromptQueue {
    current: Option<CurrentPrompt>,
    queue: VecDeque<QueuedPrompt>,
    /// Prompts that were cancelled before they started and are not answered yet.
    cancelled: Vec<RequestId>,
    openings: Vec<OpenSessionRequest>,
    /// Whether the settings may have changed.
    changed: bool,
    /// Reason why the session accepts no requests any more.
    refusal: Option<RefusalReason>,
}

/// Reason why a session accepts no requests any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalReason {
    /// The client closes it.
    Closing,
    /// It has ended for good, for instance because the provider rejects the key.
    Ended,
}

/// Prompt whose turn is in progress.
#[derive(Clone, Debug)]
pub(crate) struct CurrentPrompt {
    pub(crate) request: RequestId,
    pub(crate) cancel: CancellationToken,
}

/// Queued prompt.
#[derive(Debug)]
pub(crate) struct QueuedPrompt {
    pub(crate) request: RequestId,
    pub(crate) input: PromptInput,
    /// Whether the client was notified that the prompt waits.
    is_announced: bool,
}

/// Content of a prompt.
#[derive(Debug)]
pub(crate) enum PromptInput {
    Message(UserMessage),
    /// The images become part of the message that the command may return.
    Command {
        name: String,
        input: String,
        images: Vec<ImageData>,
    },
}

/// Request to open the session. The session's task answers it.
#[derive(Debug)]
pub(crate) struct OpenSessionRequest {
    pub(crate) request: RequestId,
    pub(crate) kind: OpenSessionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenSessionKind {
    New,
    /// The client gets the history.
    Load,
    Resume,
}

/// Work of a session's task in addition to turns.
#[derive(Debug, Default)]
pub(crate) struct SessionChores {
    pub(crate) openings: Vec<OpenSessionRequest>,
    pub(crate) cancelled: Vec<RequestId>,
    /// Number of queued prompts without a notification to the client.
    pub(crate) waiting: usize,
    pub(crate) settings_changed: bool,
}

impl SessionEntry {
    pub(crate) fn new(
        handle: SessionHandle,
        id: String,
        controls: Arc<dyn SessionControls>,
        directory: PathBuf,
    ) -> Self {
        let closed = CancellationToken::new();
        Self { id, handle, controls, directory, closed, turns: Mutex::default(), wake: Notify::new() }
    }

    /// Queues a prompt.
    ///
    /// # Errors
    ///
    /// The error of the response, if the session is closing or has ended.
    pub(crate) fn prompt(&self, request: RequestId, input: PromptInput) -> Result<(), RpcError> {
        let mut turns = self.turns();
        turns.accept(&self.id)?;
        turns.queue.push_back(QueuedPrompt { request, input, is_announced: false });
        self.wake.notify_one();
        Ok(())
    }

    /// Queues a request to open the session, which the session's task answers.
    ///
    /// # Errors
    ///
    /// As for [`prompt`](Self::prompt).
    pub(crate) fn open(&self, opening: OpenSessionRequest) -> Result<(), RpcError> {
        let mut turns = self.turns();
        turns.accept(&self.id)?;
        turns.openings.push(opening);
        self.wake.notify_one();
        Ok(())
    }

    /// Makes the session's task send changed settings to the client.
    pub(crate) fn settings_changed(&self) {
        self.turns().changed = true;
        self.wake.notify_one();
    }

    /// Cancels the current and the queued prompts. Does not wait for their end, and may be called again.
    pub(crate) fn cancel(&self) {
        let mut turns = self.turns();
        let waiting: Vec<RequestId> = turns.queue.drain(..).map(|prompt| prompt.request).collect();
        turns.cancelled.extend(waiting);
        if let Some(current) = &turns.current {
            current.cancel.cancel();
        }
        // A turn that another client started ends as well. While the lock is held, no other prompt starts.
        self.interrupt();
        self.wake.notify_one();
    }

    /// Cancels one prompt.
    pub(crate) fn cancel_prompt(&self, request: &RequestId) {
        let mut turns = self.turns();
        if let Some(current) = turns.current.as_ref().filter(|current| current.request == *request) {
            current.cancel.cancel();
            self.interrupt();
        } else if let Some(at) = turns.queue.iter().position(|prompt| prompt.request == *request) {
            turns.queue.remove(at);
            turns.cancelled.push(request.clone());
            self.wake.notify_one();
        }
    }

    /// Interrupts the turn. A failure is only logged.
    pub(crate) fn interrupt(&self) {
        if let Err(error) = self.handle.stop_turn() {
            tracing::debug!(session = self.id, %error, "the turn was not interrupted");
        }
    }

    /// Cancels the prompts, and closes the session once the turn has ended.
    pub(crate) fn close(&self) {
        self.turns().refusal.get_or_insert(RefusalReason::Closing);
        self.cancel();
    }

    /// Waits for new work of the session's task. Cancel safe.
    pub(crate) async fn wait_for_work(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn take_chores(&self) -> SessionChores {
        let mut turns = self.turns();
        let is_busy = turns.current.is_some();
        let mut waiting = 0;
        for prompt in turns.queue.iter_mut().skip(usize::from(!is_busy)) {
            waiting += usize::from(!std::mem::replace(&mut prompt.is_announced, true));
        }
        SessionChores {
            openings: std::mem::take(&mut turns.openings),
            cancelled: std::mem::take(&mut turns.cancelled),
            waiting,
            settings_changed: std::mem::take(&mut turns.changed),
        }
    }

    /// Starts the next prompt, if none is current. Calls `begin` before the prompt can be cancelled.
    pub(crate) fn start_next<T>(&self, begin: impl FnOnce(PromptInput, &CurrentPrompt) -> T) -> Option<T> {
        let mut turns = self.turns();
        if turns.current.is_some() {
            return None;
        }
        let QueuedPrompt { request, input, .. } = turns.queue.pop_front()?;
        let current = CurrentPrompt { request, cancel: CancellationToken::new() };
        let begun = begin(input, &current);
        turns.current = Some(current);
        Some(begun)
    }

    /// Continues the current prompt, unless it was cancelled. Calls `begin` before the prompt can be cancelled.
    pub(crate) fn continue_current<T>(&self, begin: impl FnOnce() -> T) -> Option<T> {
        let turns = self.turns();
        let is_cancelled = turns.current.as_ref().is_none_or(|current| current.cancel.is_cancelled());
        (!is_cancelled).then(begin)
    }

    /// Ends the current prompt. Later cancellations do not affect it.
    pub(crate) fn end(&self) -> Option<CurrentPrompt> {
        self.turns().current.take()
    }

    /// Returns whether prompts are queued although none is current.
    pub(crate) fn has_waiting_prompts(&self) -> bool {
        let turns = self.turns();
        turns.current.is_none() && !turns.queue.is_empty()
    }

    /// Returns whether the session is closing and all its prompts are finished and answered.
    pub(crate) fn is_settled(&self) -> bool {
        let turns = self.turns();
        turns.refusal.is_some()
            && turns.current.is_none()
            && turns.cancelled.is_empty()
            && turns.queue.is_empty()
    }

    /// Returns whether the session has ended without a request of the client to close it.
    pub(crate) fn has_ended(&self) -> bool {
        self.turns().refusal == Some(RefusalReason::Ended)
    }

    /// Refuses requests from now on: unless the client closes the session, it has ended. Returns the unanswered requests.
    pub(crate) fn refuse_requests(&self) -> Vec<RequestId> {
        let mut turns = self.turns();
        turns.refusal.get_or_insert(RefusalReason::Ended);
        let current = turns.current.take().map(|current| current.request);
        let waiting: Vec<RequestId> = turns.queue.drain(..).map(|prompt| prompt.request).collect();
        let openings: Vec<RequestId> = turns.openings.drain(..).map(|opening| opening.request).collect();
        current.into_iter().chain(waiting).chain(turns.cancelled.drain(..)).chain(openings).collect()
    }

    fn turns(&self) -> MutexGuard<'_, PromptQueue> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PromptQueue {
    /// Fails with the error of the response if the session accepts no requests any more.
    fn accept(&self, id: &str) -> Result<(), RpcError> {
        match self.refusal {
            None => Ok(()),
            Some(RefusalReason::Closing) => {
                Err(RpcError::new(RpcError::CONFLICT, format!("session `{id}` is being closed")))
            }
            Some(RefusalReason::Ended) => Err(session_ended(id)),
        }
    }
}

/// Returns the error of a request to a session that has ended for good.
pub(crate) fn session_ended(id: &str) -> RpcError {
    let message = format!(
        "session `{id}` has ended and accepts no more prompts: start a new session, or continue in a fork of it"
    );
    RpcError::new(RpcError::CONFLICT, message).with_data(json!({"reason": "session_ended"}))
}
