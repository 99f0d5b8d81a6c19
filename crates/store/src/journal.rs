//! The record of a session in a store.

mod fork;
mod reading;
mod stored_session;
mod workspace;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use pintle_agent::protocol::InputKind;
use pintle_agent::protocol::{Start, SubagentOrigin};
use pintle_agent::{
    Barrier, Clock as _, Fence, Journal, PostedInput, PostedInputs, PostedItem, Record, RecordEntry,
    RecordHeader, SessionId, SessionState, SessionStatus, SubagentJournals, SystemClock,
};
use serde::Serialize;
use tokio::sync::Mutex;

use self::fork::ForkHeader;
pub use self::fork::{ForkError, StoredFork, fork};
pub use self::reading::{IntactRecord, read_intact, read_objects, read_record};
pub use self::stored_session::StoredSession;
pub use self::workspace::{WorkspaceMatch, match_workspace};
use crate::blob::MAX_INLINE_LINE;
use crate::error::StoreError;
use crate::format::summary_line;
use crate::store::{self, InboxSignal, OpenedSession, Posting, SessionStore, SessionWriter, Summary};

/// Longest title, in characters.
const MAX_TITLE: usize = 80;

/// [`Journal`] of an agent's session in a store. It also keeps the summary up to date.
#[derive(Debug)]
pub struct StoredJournal {
    /// Shared with the inbox.
    writer: Arc<Mutex<Box<dyn SessionWriter>>>,
    fence: Fence,
    /// First line of the record, until the first entry is written.
    header: Option<String>,
    summary: Summary,
    /// Title in the newest line from which the summary can be rebuilt.
    recorded_title: Option<String>,
    /// Store of the subagents' journals.
    store: Option<Arc<dyn SessionStore>>,
    /// Start whose history is in the lines of the origin, for a fork.
    inherited: Option<Start>,
}

impl StoredJournal {
    /// Name of the summary property with the state of the session, as [`SessionState`](pintle_agent::SessionState) is
    /// serialised. The last process wrote it. A session that is `PROCESSING` without a writer was therefore left
    /// unfinished.
    pub const STATE: &str = "state";

    /// Name of the property with the number of calls that wait for a decision.
    pub const PENDING_APPROVALS: &str = "pending_approvals";

    /// Name of the property with the cost so far, in millionths of a US dollar; absent if it is unknown.
    pub const COST_MICROS: &str = "cost_micros";

    /// Name of the property with the identity of the workspace of the tools, as
    /// [`ExecutionEnvironment::place`](pintle_env::ExecutionEnvironment::place) returns it.
    pub const WORKSPACE: &str = "place";

    /// Name of the property with the number of tokens so far.
    pub const TOKENS: &str = "tokens";

    /// Creates the journal of a new or resumed session. `summary` is its present summary.
    #[must_use]
    pub fn new(writer: Box<dyn SessionWriter>, summary: Summary) -> Self {
        let fence = writer.fence();
        Self {
            writer: Arc::new(Mutex::new(writer)),
            fence,
            header: None,
            summary,
            store: None,
            recorded_title: None,
            inherited: None,
        }
    }

    /// Keeps the journals of subagents, at any depth, in the same store. They are sessions whose summaries name their
    /// parent, and are resumed with it.
    #[must_use]
    pub fn with_subagents(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Returns the line from which the summary can be rebuilt: once per writer, and again when the title changes.
    ///
    /// The line records the session as unfinished, since a session whose summary was lost may be.
    fn summary_line(&mut self) -> Option<String> {
        if self.recorded_title.as_ref() == Some(&self.summary.title) {
            return None;
        }
        self.recorded_title = Some(self.summary.title.clone());
        let state = serde_json::to_value(SessionState::Processing).unwrap_or_default();
        let state = state.as_str().unwrap_or_default();
        Some(summary_line(&self.summary.clone().with_property(Self::STATE, state)))
    }

    /// Updates the title and the time from new entries.
    fn follow(&mut self, entries: &[Arc<RecordEntry>]) {
        for entry in entries {
            self.summary.updated_at = self.summary.updated_at.max(entry.input.at);
            if let InputKind::Submit { message, .. } = &entry.input.kind
                && self.summary.title.is_empty()
            {
                self.summary.title = title_of(&message.text);
            }
        }
    }
}

/// Returns the title of a session with this first message: the start of its first line that is not blank.
#[must_use]
pub fn title_of(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().chars().take(MAX_TITLE).collect()
}

#[async_trait]
impl Journal for StoredJournal {
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()> {
        let inherits = self.inherited.take().is_some_and(|start| {
            start.history == header.start.history && start.forked_from == header.start.forked_from
        });
        self.header = Some(if inherits { ForkHeader::new(header).json()? } else { json(header)? });
        Ok(())
    }

    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: Barrier) -> io::Result<()> {
        self.follow(entries);
        let objects = entries.iter().map(|entry| json(entry.as_ref()));
        let before = self.summary_line().into_iter().chain(self.header.take());
        let objects = before.map(Ok).chain(objects).collect::<io::Result<_>>()?;
        self.writer.lock().await.append(objects, barrier).await?;
        Ok(())
    }

    fn fence(&self) -> Fence {
        self.fence.clone()
    }

    fn subagents(&self) -> Option<Arc<dyn SubagentJournals>> {
        let store = Arc::clone(self.store.as_ref()?);
        let mut properties = self.summary.properties.clone();
        for name in [Self::STATE, Self::PENDING_APPROVALS, Self::COST_MICROS, Self::TOKENS] {
            properties.remove(name);
        }
        Some(Arc::new(StoredSubagents { store, properties }))
    }

    fn posted(&mut self) -> Option<Box<dyn PostedInputs>> {
        Some(Box::new(StoredInbox {
            writer: Arc::downgrade(&self.writer),
            signal: None,
            seen: HashSet::new(),
        }))
    }

    async fn report_status(&mut self, status: &SessionStatus) -> io::Result<()> {
        let state = serde_json::to_value(status.state)?;
        let mut set = |name: &str, value: Option<String>| match value {
            Some(value) => {
                self.summary.properties.insert(name.to_owned(), value);
            }
            None => {
                self.summary.properties.remove(name);
            }
        };
        set(Self::STATE, state.as_str().map(str::to_owned));
        let pending = Some(status.pending_approvals).filter(|pending| *pending > 0);
        set(Self::PENDING_APPROVALS, pending.map(|pending| pending.to_string()));
        set(Self::TOKENS, Some(status.spent.tokens().to_string()));
        set(Self::COST_MICROS, status.spent.cost.map(|cost| cost.micros().to_string()));
        Ok(self.writer.lock().await.set_summary(self.summary.clone()).await?)
    }

    async fn sync(&mut self) -> io::Result<()> {
        self.writer.lock().await.append(Vec::new(), Barrier::Synced).await?;
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.close().await?;
        Ok(())
    }
}

/// Posts an input to a session, whether a process runs it or not. The input survives a crash of the machine once this
/// returns. Posting again with the same `input_id` has no effect.
///
/// # Errors
///
/// As for [`SessionStore::post`].
pub async fn post_input(
    store: &dyn SessionStore,
    id: &SessionId,
    input_id: &str,
    input: PostedInput,
) -> Result<Posting, StoreError> {
    let text = serde_json::to_string(&input).unwrap_or_default();
    // A message can have tens of megabytes, and the text contains a copy.
    drop(input);
    store.post(id, input_id, text).await
}

/// Inbox of a session, for its only writer.
#[derive(Debug)]
struct StoredInbox {
    writer: Weak<Mutex<Box<dyn SessionWriter>>>,
    /// `None` before the first wait.
    signal: Option<Box<dyn InboxSignal>>,
    /// Ids of the inputs that were returned or cannot be read.
    seen: HashSet<String>,
}

impl StoredInbox {
    /// Returns the oldest input that was not returned yet.
    async fn oldest(&mut self) -> io::Result<Option<PostedItem>> {
        let Some(writer) = self.writer.upgrade() else { return std::future::pending().await };
        let waiting = writer.lock().await.inbox().await?;
        for store::PostedInput { input_id, input } in waiting {
            if !self.seen.insert(input_id.clone()) {
                continue;
            }
            match serde_json::from_str(&input) {
                Ok(input) => return Ok(Some(PostedItem::new(input_id, input))),
                // A newer version may have written it, and be able to read it.
                Err(error) => tracing::warn!(%error, input_id, "a posted input cannot be read, and stays"),
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl PostedInputs for StoredInbox {
    async fn next(&mut self) -> io::Result<PostedItem> {
        loop {
            // Subscribes before the inbox is read, so that no input is missed in between.
            if self.signal.is_none()
                && let Some(writer) = self.writer.upgrade()
            {
                self.signal = Some(writer.lock().await.inbox_signal());
            }
            if let Some(posted) = self.oldest().await? {
                return Ok(posted);
            }
            if let Some(signal) = &mut self.signal {
                signal.wait().await;
            }
        }
    }

    async fn take(&mut self, input_id: &str) -> io::Result<()> {
        let Some(writer) = self.writer.upgrade() else { return Ok(()) };
        Ok(writer.lock().await.take(input_id).await?)
    }
}

/// Journals of subagents in the store of their parent's journal.
#[derive(Debug)]
struct StoredSubagents {
    store: Arc<dyn SessionStore>,
    /// Properties that they share with their parent.
    properties: BTreeMap<String, String>,
}

impl StoredSubagents {
    async fn journal(&self, opened: OpenedSession) -> io::Result<Box<dyn Journal>> {
        let id = opened.writer.id().clone();
        let summary = self.store.summary(&id).await?.ok_or(StoreError::NotFound(id))?;
        Ok(self.journal_of(opened.writer, summary))
    }

    fn journal_of(&self, writer: Box<dyn SessionWriter>, summary: Summary) -> Box<dyn Journal> {
        Box::new(StoredJournal::new(writer, summary).with_subagents(Arc::clone(&self.store)))
    }
}

#[async_trait]
impl SubagentJournals for StoredSubagents {
    async fn create(&self, origin: &SubagentOrigin) -> io::Result<Box<dyn Journal>> {
        let mut summary = Summary::new(origin.session_id.clone(), SystemClock.now());
        summary.parent = Some(origin.parent.clone());
        summary.properties.clone_from(&self.properties);
        match self.store.create(summary.clone()).await {
            Ok(writer) => Ok(self.journal_of(writer, summary)),
            // Its process crashed before it recorded an entry.
            Err(StoreError::Exists(id)) => {
                let opened = self.store.open(&id).await?;
                self.journal(opened).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn open(&self, origin: &SubagentOrigin) -> io::Result<Option<(Record, Box<dyn Journal>)>> {
        let opened = match self.store.open(&origin.session_id).await {
            Err(StoreError::NotFound(_)) => return Ok(None),
            opened => opened?,
        };
        match read_record(self.store.as_ref(), &origin.session_id).await {
            Ok(record) => Ok(Some((record, self.journal(opened).await?))),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn json(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string(value).map_err(io::Error::from)?;
    if text.len() > MAX_INLINE_LINE {
        // The text grew by doubling, and a large one is copied into blobs while it is held.
        text.shrink_to_fit();
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
