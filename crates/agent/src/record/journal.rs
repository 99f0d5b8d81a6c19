//! Journal: where the record of a session is kept outside of its process.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Record, RecordEntry, RecordHeader, line};
use crate::protocol::{Posted, SessionState, Spent, SubagentOrigin};

/// Durability that entries must have reached before anything follows from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Barrier {
    /// They survive the death of the process.
    #[default]
    Written,
    /// They survive the death of the machine.
    Synced,
}

/// Receives the [record](crate::Record) of a session, each entry before anything follows from it.
///
/// [`JsonLines`] is the plainest one. The session calls one method at a time. After an error it calls none of them any
/// more, makes no model call, starts no tool, and ends as failed.
#[async_trait]
pub trait Journal: fmt::Debug + Send + 'static {
    /// Takes the header of a new record; not called for a resumed session. Must not block for long.
    ///
    /// # Errors
    ///
    /// Any error; [`SessionBuilder::build`](crate::SessionBuilder::build) returns it.
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()>;

    /// Appends entries and passes the barrier. There is at least one entry.
    ///
    /// Not cancelled by the session, except when it is dropped; the entries may then be recorded or not.
    ///
    /// # Errors
    ///
    /// Any error, unless all entries have passed the barrier.
    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: Barrier) -> io::Result<()>;

    /// Returns the check before each effect. Default: one that always passes.
    fn fence(&self) -> Fence {
        Fence::default()
    }

    /// Returns what keeps the journals of the session's subagents, which are then resumed with it. Default: nothing, and
    /// subagents end with the process.
    fn subagents(&self) -> Option<Arc<dyn SubagentJournals>> {
        None
    }

    /// Returns the inputs that others post to the session, once. Default: none.
    fn posted(&mut self) -> Option<Box<dyn PostedInputs>> {
        None
    }

    /// Takes the state of the session, for lists of sessions: when a run starts or ends, and when a call begins to wait
    /// for a decision. Default: nothing. An error is only logged, since the entries tell the same.
    ///
    /// # Errors
    ///
    /// Any error.
    async fn report_status(&mut self, status: &SessionStatus) -> io::Result<()> {
        let _ = status;
        Ok(())
    }

    /// Ends the journal after its last entry. Not called if the session is dropped. Default: nothing.
    ///
    /// # Errors
    ///
    /// Any error; it is only logged.
    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Inputs that others post to a session, also while no process runs it. They are durable before the session sees them, and
/// the session takes each one exactly once.
#[async_trait]
pub trait PostedInputs: fmt::Debug + Send + 'static {
    /// Waits for the next input that was not returned before, and not [taken](Self::take). Cancel safe.
    ///
    /// # Errors
    ///
    /// Any error; the session asks again after a while.
    async fn next(&mut self) -> io::Result<Posted>;

    /// Removes an input, which is on record now. Its id stays known, so that it cannot be posted again.
    ///
    /// # Errors
    ///
    /// Any error; it is only logged, since the record has the id as well.
    async fn take(&mut self, input_id: &str) -> io::Result<()>;
}

/// Keeps the journals of a session's subagents, each as a session of its own.
#[async_trait]
pub trait SubagentJournals: fmt::Debug + Send + Sync + 'static {
    /// Returns the journal of a subagent that has recorded nothing yet.
    ///
    /// # Errors
    ///
    /// Any error; the subagent then fails, and its parent is told.
    async fn create(&self, origin: &SubagentOrigin) -> io::Result<Box<dyn Journal>>;

    /// Opens the journal of a subagent whose process is gone, and returns it with its record; `None` if nothing was
    /// recorded.
    ///
    /// # Errors
    ///
    /// Any error; the subagent is then lost, and its parent is told.
    async fn open(&self, origin: &SubagentOrigin) -> io::Result<Option<(Record, Box<dyn Journal>)>>;
}

/// State of a session, as a list of sessions shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// State.
    pub state: SessionState,
    /// Number of calls that wait for a decision.
    pub pending_approvals: usize,
    /// Amounts spent by the session and its subagents.
    pub spent: Spent,
    /// Number of entries of the history.
    pub turns: usize,
}

/// Check immediately before each effect, whether the process still owns the session.
///
/// A journal with a lease fails it once the lease has run out or somebody has taken over, so that a process that was
/// suspended in the middle of a step has no effect when it wakes up. Cheap to clone.
#[derive(Clone, Default)]
pub struct Fence(Option<Arc<dyn Fn() -> io::Result<()> + Send + Sync>>);

impl Fence {
    /// Creates a fence that passes as long as `check` does. It must not block.
    #[must_use]
    pub fn new(check: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Checks.
    ///
    /// # Errors
    ///
    /// The error of the check.
    pub fn check(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |check| check())
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("checks", &self.0.is_some()).finish()
    }
}

/// Journal that writes JSON lines, as [`Record::read`](crate::Record::read) reads them.
///
/// Entries that pass a barrier together are written with one `write_all` and one `flush`, whatever the barrier: a writer
/// has to sync on `flush` if entries must survive the death of the machine. Writing blocks the task that drives the
/// session.
pub struct JsonLines<W>(W);

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Creates a journal of new entries at the end of `writer`.
    #[must_use]
    pub fn new(writer: W) -> Self {
        Self(writer)
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.0.write_all(text)?;
        self.0.flush()
    }
}

#[async_trait]
impl<W: Write + Send + 'static> Journal for JsonLines<W> {
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()> {
        let mut text = Vec::new();
        line(header, &mut text)?;
        self.write(&text)
    }

    async fn append(&mut self, entries: &[Arc<RecordEntry>], _barrier: Barrier) -> io::Result<()> {
        // In one write, so that incomplete lines are rare.
        let mut text = Vec::new();
        entries.iter().try_for_each(|entry| line(entry.as_ref(), &mut text))?;
        self.write(&text)
    }
}

impl<W> fmt::Debug for JsonLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").finish_non_exhaustive()
    }
}
