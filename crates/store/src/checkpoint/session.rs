//! Checkpoints that a session takes, in the blobs of its store.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{Checkpoints, SessionId};
use pintle_env::ExecutionEnvironment;
use tokio::sync::Mutex;

use super::{CheckpointLimits, Manifest, take};
use crate::hash::Hash;
use crate::store::SessionStore;

/// Keeps the checkpoints of a session among the blobs of a store, for
/// [`SessionBuilder::checkpoints`](pintle_agent::SessionBuilder::checkpoints). They are removed with the session.
///
/// The id of a checkpoint is the hash of its [`Manifest`].
#[derive(Debug)]
pub struct StoredCheckpoints {
    store: Arc<dyn SessionStore>,
    session: SessionId,
    limits: CheckpointLimits,
    newest: Mutex<NewestCheckpoint>,
}

/// The newest checkpoint, whose unchanged files are not read again.
#[derive(Debug)]
enum NewestCheckpoint {
    None,
    Unloaded(Hash),
    Loaded(Box<Manifest>),
}

impl StoredCheckpoints {
    /// Keeps the checkpoints of this session in `store`, with the default limits.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, session: SessionId) -> Self {
        Self {
            store,
            session,
            limits: CheckpointLimits::default(),
            newest: Mutex::new(NewestCheckpoint::None),
        }
    }

    /// Sets the limits of each checkpoint.
    #[must_use]
    pub fn with_limits(mut self, limits: CheckpointLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the newest checkpoint of a resumed session, so that files which have not changed since then are not read
    /// again.
    #[must_use]
    pub fn after(mut self, newest: Hash) -> Self {
        self.newest = Mutex::new(NewestCheckpoint::Unloaded(newest));
        self
    }
}

#[async_trait]
impl Checkpoints for StoredCheckpoints {
    async fn take(&self, env: &dyn ExecutionEnvironment) -> io::Result<pintle_agent::Checkpoint> {
        let blobs = self.store.blobs(&self.session);
        let mut newest = self.newest.lock().await;
        if let NewestCheckpoint::Unloaded(id) = &*newest {
            // A checkpoint that cannot be loaded only costs time: all files are read again.
            *newest = match Manifest::load(blobs.as_ref(), id).await {
                Ok(manifest) => NewestCheckpoint::Loaded(Box::new(manifest)),
                Err(_) => NewestCheckpoint::None,
            };
        }
        let previous =
            if let NewestCheckpoint::Loaded(manifest) = &*newest { Some(manifest.as_ref()) } else { None };
        let root = env.working_directory().to_path_buf();
        let taken =
            take(env, &root, blobs.as_ref(), previous, &self.limits).await.map_err(io::Error::other)?;
        let checkpoint =
            pintle_agent::Checkpoint::new(taken.id.to_string(), taken.manifest.entries().len() as u64);
        let checkpoint = checkpoint.with_partial(lacks(&taken.manifest));
        *newest = NewestCheckpoint::Loaded(Box::new(taken.manifest));
        Ok(checkpoint)
    }
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
