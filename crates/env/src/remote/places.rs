//! How many lines may run at the same time on a far side: a server gives a connection a handful of sessions.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// For so many commands at a time there is one line for files, at least one.
const COMMANDS_PER_TOOL: usize = 8;

/// Of so many places one is kept free of processes that may run for ever, at least one where there are two.
const PLACES_PER_FREE_ONE: usize = 4;

/// The places, and who waits for one in turn.
#[derive(Debug)]
pub(super) struct Places {
    commands: Arc<Semaphore>,
    /// A process that a host spawned may run for ever. Some places are not given to such, so that a command with a
    /// time-out always has its turn.
    spawned: Arc<Semaphore>,
    tools: Arc<Semaphore>,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _line: OwnedSemaphorePermit,
    _spawned: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new(concurrency: usize) -> Self {
        let concurrency = concurrency.max(1);
        let kept_free = concurrency.div_ceil(PLACES_PER_FREE_ONE).min(concurrency - 1);
        let places = |count: usize| Arc::new(Semaphore::new(count));
        Self {
            commands: places(concurrency),
            spawned: places(concurrency - kept_free),
            tools: places((concurrency / COMMANDS_PER_TOOL).max(1)),
        }
    }

    /// For a command that ends at its time-out.
    pub(super) async fn for_command(&self) -> Result<Place, AcquireError> {
        Ok(Place { _line: Arc::clone(&self.commands).acquire_owned().await?, _spawned: None })
    }

    /// For a process that runs for as long as it likes.
    pub(super) async fn for_process(&self) -> Result<Place, AcquireError> {
        let spawned = Arc::clone(&self.spawned).acquire_owned().await?;
        Ok(Place { _spawned: Some(spawned), ..self.for_command().await? })
    }

    /// For an operation on files.
    pub(super) async fn for_tool(&self) -> Result<Place, AcquireError> {
        Ok(Place { _line: Arc::clone(&self.tools).acquire_owned().await?, _spawned: None })
    }
}
