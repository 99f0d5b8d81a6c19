//! Journal: storage of a session's record outside of its process.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Record, RecordEntry, RecordHeader, line};
use crate::protocol::{BudgetUsage, PostedItem, SessionState, SubagentOrigin};

/// Durability that entries must reach before they have any effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Barrier {
    /// Entries survive a crash of the process.
    #[default]
    Written,
    /// Entries survive a crash of the machine.
    Synced,
}

/// Receives the [record](crate::Record) of a session, each entry before it has any effect.
///
/// [`JsonLines`] is the simplest implementation. The session does not call methods concurrently. After an error it calls
/// no method again, makes no model call, starts no tool, and ends as failed.
#[async_trait]
pub trait Journal: fmt::Debug + Send + 'static {
    /// Receives the header of a new record. Not called for a resumed session. Must not block for long.
    ///
    /// # Errors
    ///
    /// Any error; [`SessionBuilder::build`](crate::SessionBuilder::build) returns it.
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()>;

    /// Appends entries and passes the barrier. There is at least one entry.
    ///
    /// The session cancels this only when it is dropped. The entries may then be recorded or not.
    ///
    /// # Errors
    ///
    /// Any error, unless all entries have passed the barrier.
    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: Barrier) -> io::Result<()>;

    /// Returns the check before each effect. Default: a check that always passes.
    fn fence(&self) -> Fence {
        Fence::default()
    }

    /// Returns the store of the subagents' journals, from which subagents are resumed together with the session. Default:
    /// none, so subagents end with the process.
    fn subagents(&self) -> Option<Arc<dyn SubagentJournals>> {
        None
    }

    /// Returns, once, the source of the inputs that are posted to the session. Default: none.
    fn posted(&mut self) -> Option<Box<dyn PostedInputs>> {
        None
    }

    /// Receives the state of the session, for lists of sessions. Called when a run starts or ends, and when a call starts to
    /// wait for a decision. Does nothing by default. An error is only logged, since the entries contain the same facts.
    ///
    /// # Errors
    ///
    /// Any error.
    async fn report_status(&mut self, status: &SessionStatus) -> io::Result<()> {
        let _ = status;
        Ok(())
    }

    /// Makes the entries so far survive a crash of the machine. Called when the session starts to end, while its work is
    /// stopped, so that [`close`](Self::close) has less to wait for. Does nothing by default.
    ///
    /// # Errors
    ///
    /// Any error, unless all entries so far survive a crash of the machine.
    async fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Closes the journal after its last entry. Not called if the session is dropped. Does nothing by default.
    ///
    /// # Errors
    ///
    /// Any error; it is only logged.
    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Inputs that are posted to a session, even while no process runs it. They are durable before the session receives them,
/// and the session takes each input exactly once.
#[async_trait]
pub trait PostedInputs: fmt::Debug + Send + 'static {
    /// Waits for the next input that was neither returned nor [taken](Self::take). Cancel safe.
    ///
    /// # Errors
    ///
    /// Any error; the session retries after a delay.
    async fn next(&mut self) -> io::Result<PostedItem>;

    /// Removes an input that is now recorded. Its id is kept, so that the input cannot be posted again.
    ///
    /// # Errors
    ///
    /// Any error; it is only logged, since the record has the id as well.
    async fn take(&mut self, input_id: &str) -> io::Result<()>;
}

/// Keeps the journals of a session's subagents, each as a separate session.
#[async_trait]
pub trait SubagentJournals: fmt::Debug + Send + Sync + 'static {
    /// Returns the journal of a subagent without recorded entries.
    ///
    /// # Errors
    ///
    /// Any error; the subagent then fails, and the failure is reported to its parent.
    async fn create(&self, origin: &SubagentOrigin) -> io::Result<Box<dyn Journal>>;

    /// Opens the journal of a subagent whose process has ended, and returns it with its record; `None` if nothing was
    /// recorded.
    ///
    /// # Errors
    ///
    /// Any error; the subagent is then lost, and the loss is reported to its parent.
    async fn open(&self, origin: &SubagentOrigin) -> io::Result<Option<(Record, Box<dyn Journal>)>>;
}

/// State of a session, for lists of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// State.
    pub state: SessionState,
    /// Number of calls that wait for a decision.
    pub pending_approvals: usize,
    /// Amounts spent by the session and its subagents.
    pub spent: BudgetUsage,
    /// Number of entries of the history.
    pub turns: usize,
}

/// Check immediately before each effect that the process still owns the session.
///
/// In a journal with a lease, it fails once the lease has expired or another process has taken over, so that a process
/// that was suspended in the middle of a step has no effect when it wakes up. Cheap to clone.
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
/// has to sync on `flush` if entries must survive a crash of the machine. Writing blocks the task that drives the
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
