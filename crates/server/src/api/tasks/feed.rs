//! Inputs of one task from any point, from all processes that write them.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_store::{SessionStore, StoreError};
use pintle_workflow::task::{Task, TaskInput};
use pintle_workflow::{RecordedInput, TaskHostError, TaskLine, TaskReader};

use crate::feed::EventId;

/// Item of a feed.
#[derive(Debug)]
pub(super) enum TaskFeedItem {
    /// The next input.
    Input { id: EventId, input: Box<TaskInput> },
    /// The client's last input is not in the journal. The feed restarts from the first input.
    Reset(&'static str),
    /// All inputs that existed when the feed started have been sent.
    Ready,
    /// The task has ended in this state. No item follows.
    End(&'static str),
}

/// Inputs of one task. Reads nothing ahead, so that a slow client costs one input.
#[derive(Debug)]
pub(super) struct TaskFeed {
    store: Arc<dyn SessionStore>,
    id: SessionId,
    /// Last input that the client has, until it is found in the journal.
    after: Option<EventId>,
    reader: Option<TaskReader>,
    /// The task after the last line that was read.
    task: Option<Task>,
    is_ready: bool,
}

impl TaskFeed {
    pub(super) fn new(store: Arc<dyn SessionStore>, id: SessionId, after: Option<EventId>) -> Self {
        Self { store, id, after, reader: None, task: None, is_ready: false }
    }

    /// Returns the next item. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] once the task is deleted, and the errors of reading a task.
    pub(super) async fn next(&mut self) -> Result<TaskFeedItem, TaskHostError> {
        loop {
            if self.has_ended() && self.after.is_none() {
                return Ok(self.end_item());
            }
            let Some(reader) = &mut self.reader else {
                self.reader = Some(TaskReader::open(self.store.as_ref(), &self.id).await?);
                continue;
            };
            match reader.next().await {
                Ok(Some(TaskLine::Contract(contract))) => self.task = Some(Task::new(*contract)?),
                Ok(Some(TaskLine::Input(recorded))) => {
                    if let Some(item) = self.take(*recorded)? {
                        return Ok(item);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) if self.after.is_some() => return Ok(self.restart()),
                Ok(None) if !self.is_ready => {
                    self.is_ready = true;
                    return Ok(TaskFeedItem::Ready);
                }
                Ok(None) => reader.wait().await,
                Err(TaskHostError::Store(StoreError::Reset { .. })) => return Ok(self.restart()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies an input, and returns it unless the client already has it.
    fn take(&mut self, recorded: RecordedInput) -> Result<Option<TaskFeedItem>, TaskHostError> {
        let RecordedInput { seq: place, at, input, .. } = recorded;
        let id = EventId { seq: place, millis: Some(at.as_millis()) };
        if let Some(after) = self.after
            && (place > after.seq
                || place == after.seq && after.millis.is_some_and(|_| after.millis != id.millis))
        {
            return Ok(Some(self.restart()));
        }
        let reason = "it has no contract".to_owned();
        let task =
            self.task.as_mut().ok_or_else(|| TaskHostError::NotATask { id: self.id.clone(), reason })?;
        task.apply(input.clone());
        match self.after {
            Some(after) => {
                self.after = self.after.filter(|_| place < after.seq);
                Ok(None)
            }
            None => Ok(Some(TaskFeedItem::Input { id, input: Box::new(input) })),
        }
    }

    fn restart(&mut self) -> TaskFeedItem {
        (self.after, self.reader, self.task) = (None, None, None);
        TaskFeedItem::Reset("inputs that you have were lost, or never were")
    }

    fn has_ended(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.outcome().is_some())
    }

    fn end_item(&mut self) -> TaskFeedItem {
        if !self.is_ready {
            self.is_ready = true;
            return TaskFeedItem::Ready;
        }
        TaskFeedItem::End(self.task.as_ref().map_or("failed", Task::state))
    }
}
