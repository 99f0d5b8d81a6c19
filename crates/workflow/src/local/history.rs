//! The journal of a task, line by line, also while a process writes it.

#[cfg(test)]
mod tests;

use std::fmt;

use pintle_agent::{Principal, Timestamp};
use pintle_store::format::move_from_blobs;
use pintle_store::{Blobs, Line as StoredLine, Reader, SessionId, SessionStore, StoreError};

use super::TaskHostError;
use super::journal_line::JournalLine;
use crate::contract::Contract;
use crate::task::{Task, TaskInput};

/// Line of the journal of a task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskLine {
    /// The contract, in the first line.
    Contract(Box<Contract>),
    /// An input, in each other line.
    Input(Box<RecordedInput>),
}

/// Recorded input of a task, with its time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedInput {
    /// Number of its line in the journal, from 1. It does not change.
    pub seq: u64,
    /// Time at which it was recorded.
    pub at: Timestamp,
    /// Id under which it was posted, if it is a signal.
    pub posted: Option<String>,
    /// Principal that posted it, if the application names one.
    pub by: Option<Principal>,
    /// The input.
    pub input: TaskInput,
}

/// Reads the journal of a task from its first line, and follows it.
pub struct TaskReader {
    id: SessionId,
    reader: Box<dyn Reader>,
    blobs: Box<dyn Blobs>,
    /// Line whose large values are being read.
    pending: Option<StoredLine>,
}

impl fmt::Debug for TaskReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskReader").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TaskReader {
    /// Opens the journal at its first line.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], and other errors of the store.
    pub async fn open(store: &dyn SessionStore, id: &SessionId) -> Result<Self, StoreError> {
        let reader = store.read(id, 1).await?;
        Ok(Self { id: id.clone(), reader, blobs: store.blobs(id), pending: None })
    }

    /// Returns the next line; `None` after the last one. May be called again then.
    ///
    /// Cancel safe: the next call returns the line that a cancelled call would have returned.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::NotATask`], and [`TaskHostError::Store`]. After [`StoreError::Reset`], read again from the first
    /// line.
    pub async fn next(&mut self) -> Result<Option<TaskLine>, TaskHostError> {
        loop {
            if self.pending.is_none() {
                self.pending = self.reader.next().await?;
            }
            let Some(line) = &self.pending else { return Ok(None) };
            let object = move_from_blobs(line.object.clone(), self.blobs.as_ref()).await?;
            let parsed = parse(line.seq, &object);
            self.pending = None;
            match parsed {
                Ok(Some(line)) => return Ok(Some(line)),
                // A line of the store itself.
                Ok(None) => {}
                Err(reason) => return Err(TaskHostError::NotATask { id: self.id.clone(), reason }),
            }
        }
    }

    /// Waits until there may be more lines, as [`Reader::wait`]. Cancel safe.
    pub async fn wait(&mut self) {
        self.reader.wait().await;
    }
}

/// Task up to the first damaged line of its journal.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntactTask {
    /// The task as it was before the damaged line.
    pub task: Task,
    /// Its inputs, in order.
    pub inputs: Vec<RecordedInput>,
    /// The damage; `None` if the journal is complete.
    pub damage: Option<StoreError>,
}

impl IntactTask {
    /// Returns the state as text: that of the task, or `queued` if no process has had the task open. `is_running` is whether a
    /// process has it open now.
    #[must_use]
    pub fn state(&self, is_running: bool) -> &'static str {
        let is_queued = self.inputs.is_empty() && self.damage.is_none() && !is_running;
        if is_queued { "queued" } else { self.task.state() }
    }
}

/// Reads a task up to the first damaged line of its journal, also while a process has it open.
///
/// Cancel safe: it only reads.
///
/// # Errors
///
/// [`TaskHostError::NotATask`], and [`TaskHostError::Store`], also for damage that leaves no contract.
pub async fn read_intact_task(store: &dyn SessionStore, id: &SessionId) -> Result<IntactTask, TaskHostError> {
    let not_a_task = |reason: &str| TaskHostError::NotATask { id: id.clone(), reason: reason.to_owned() };
    let (mut task, mut inputs) = (None::<Task>, Vec::new());
    let mut reader = TaskReader::open(store, id).await?;
    let damage = loop {
        match reader.next().await {
            Ok(Some(TaskLine::Contract(contract))) => task = Some(Task::new(*contract)?),
            Ok(Some(TaskLine::Input(recorded))) => {
                let task = task.as_mut().ok_or_else(|| not_a_task("its first line is no contract"))?;
                task.apply(recorded.input.clone());
                inputs.push(*recorded);
            }
            Ok(None) => break None,
            Err(TaskHostError::Store(error)) if error.is_damage() && task.is_some() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    let task = task.ok_or_else(|| not_a_task("it has no contract"))?;
    Ok(IntactTask { task, inputs, damage })
}

/// Reads the inputs of a task, in order.
///
/// # Errors
///
/// As for [`TaskReader::next`].
pub async fn read_inputs(
    store: &dyn SessionStore,
    id: &SessionId,
) -> Result<Vec<RecordedInput>, TaskHostError> {
    let (mut reader, mut inputs) = (TaskReader::open(store, id).await?, Vec::new());
    while let Some(line) = reader.next().await? {
        if let TaskLine::Input(recorded) = line {
            inputs.push(*recorded);
        }
    }
    Ok(inputs)
}

fn parse(seq: u64, object: &str) -> Result<Option<TaskLine>, String> {
    Ok(JournalLine::parse(object)?.map(|line| match line {
        JournalLine::Contract(contract) => TaskLine::Contract(contract),
        JournalLine::Input { at, posted, by, input } => {
            TaskLine::Input(Box::new(RecordedInput { seq, at, posted, by, input }))
        }
    }))
}
