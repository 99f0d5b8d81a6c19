//! Checkpoints that a session takes, in the blobs of its store.

use std::borrow::Cow;
use std::sync::Arc;
use std::{fmt, io};

use async_trait::async_trait;
use pintle_agent::{Checkpoints, SessionId};
use pintle_env::ExecutionEnvironment;
use tokio::sync::Mutex;

use super::take::take_after;
use super::{Checkpoint, CheckpointLimits, Manifest};
use crate::blob::Blobs;
use crate::hash::Hash;
use crate::store::SessionStore;

/// Keeps the checkpoints of a session among the blobs of a store, for
/// [`SessionBuilder::checkpoints`](pintle_agent::SessionBuilder::checkpoints). They are removed with the session.
///
/// The id of a checkpoint is the hash of its [`Manifest`]. A checkpoint of an unchanged workspace is the newest one again, and
/// nothing is written.
pub struct StoredCheckpoints {
    store: Arc<dyn SessionStore>,
    session: SessionId,
    limits: CheckpointLimits,
    is_fresh: bool,
    state: Mutex<CheckpointState>,
}

#[derive(Default)]
struct CheckpointState {
    newest: NewestCheckpoint,
    /// Handle of the latest checkpoint without an error, which knows the values that it has synced.
    blobs: Option<Box<dyn Blobs>>,
}

/// The newest checkpoint, whose unchanged files are not read again.
#[derive(Default)]
enum NewestCheckpoint {
    #[default]
    None,
    Unloaded(Hash),
    Loaded(Box<Checkpoint>),
}

impl StoredCheckpoints {
    /// Keeps the checkpoints of this session in `store`, with the default limits.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, session: SessionId) -> Self {
        Self { store, session, limits: CheckpointLimits::default(), is_fresh: false, state: Mutex::default() }
    }

    /// Sets the limits of each checkpoint.
    #[must_use]
    pub fn with_limits(mut self, limits: CheckpointLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Lists the workspace for each checkpoint, even if the environment knows of no change since its latest walk, for
    /// decisions about the files such as a rewind.
    #[must_use]
    pub fn with_fresh_walks(mut self) -> Self {
        self.is_fresh = true;
        self
    }

    /// Sets the newest checkpoint of a resumed session, so that files which have not changed since then are not read
    /// again.
    #[must_use]
    pub fn after(mut self, newest: Hash) -> Self {
        self.state.get_mut().newest = NewestCheckpoint::Unloaded(newest);
        self
    }
}

impl fmt::Debug for StoredCheckpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCheckpoints")
            .field("store", &self.store)
            .field("session", &self.session)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Checkpoints for StoredCheckpoints {
    async fn take(&self, env: &dyn ExecutionEnvironment) -> io::Result<pintle_agent::Checkpoint> {
        let mut state = self.state.lock().await;
        let blobs = state.blobs.take().unwrap_or_else(|| self.store.blobs(&self.session));
        if let NewestCheckpoint::Unloaded(id) = state.newest {
            // A checkpoint that cannot be loaded only costs time: all files are read again.
            state.newest = match Manifest::load(blobs.as_ref(), &id).await {
                Ok(manifest) => NewestCheckpoint::Loaded(Box::new(Checkpoint { id, manifest })),
                Err(_) => NewestCheckpoint::None,
            };
        }
        let previous = match &state.newest {
            NewestCheckpoint::Loaded(checkpoint) => Some(checkpoint.as_ref()),
            NewestCheckpoint::None | NewestCheckpoint::Unloaded(_) => None,
        };
        let (root, limits) = (env.working_directory(), &self.limits);
        let taken = take_after(env, root, blobs.as_ref(), previous, limits, self.is_fresh);
        let taken = taken.await.map_err(io::Error::other)?;
        let reported = report(&taken);
        let changed = match taken {
            Cow::Borrowed(_) => None,
            Cow::Owned(checkpoint) => Some(checkpoint),
        };
        if let Some(checkpoint) = changed {
            state.newest = NewestCheckpoint::Loaded(Box::new(checkpoint));
        }
        state.blobs = Some(blobs);
        Ok(reported)
    }
}

/// Returns the entry of the record for a checkpoint.
fn report(Checkpoint { id, manifest }: &Checkpoint) -> pintle_agent::Checkpoint {
    let files = manifest.entries().len() as u64;
    pintle_agent::Checkpoint::new(id.to_string(), files).with_partial(lacks(manifest))
}

/// Describes the missing parts of a partial checkpoint.
fn lacks(manifest: &Manifest) -> Option<String> {
    if !manifest.is_partial() {
        return None;
    }
    let mut parts = Vec::new();
    let count = manifest.gaps().count();
    if let Some((path, _)) = manifest.gaps().next() {
        parts.push(match count {
            1 => path.display().to_string(),
            more => format!("{} and {} other files", path.display(), more - 1),
        });
    }
    parts.extend(manifest.unreadable_directories().map(|path| format!("the directory {}", path.display())));
    if manifest.unlisted().is_some() {
        parts.push("files beyond the limits".to_owned());
    }
    Some(parts.join(", "))
}
