//! Limits on concurrent lines per remote system: a server allows a handful of sessions per
//! connection.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Commands per slot for helper scripts; there is at least one such slot.
const COMMANDS_PER_SCRIPT_SLOT: usize = 8;

/// One of this many slots is reserved for commands with a time limit; at least one if there are
/// two.
const SLOTS_PER_RESERVED: usize = 4;

/// Slots for concurrent lines, each kind with its queue.
#[derive(Debug)]
pub(super) struct Slots {
    commands: Arc<Semaphore>,
    /// Slots for spawned processes, which may run forever. Some slots are never given to them, so
    /// that a command with a time limit always gets one.
    spawned: Arc<Semaphore>,
    scripts: Arc<Semaphore>,
}

/// An acquired slot, released on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    _line: OwnedSemaphorePermit,
    _spawned: Option<OwnedSemaphorePermit>,
}

impl Slots {
    pub(super) fn new(concurrency: usize) -> Self {
        let concurrency = concurrency.max(1);
        let reserved = concurrency.div_ceil(SLOTS_PER_RESERVED).min(concurrency - 1);
        let semaphore = |count: usize| Arc::new(Semaphore::new(count));
        Self {
            commands: semaphore(concurrency),
            spawned: semaphore(concurrency - reserved),
            scripts: semaphore((concurrency / COMMANDS_PER_SCRIPT_SLOT).max(1)),
        }
    }

    /// Acquires a slot for a command with a time limit.
    pub(super) async fn for_command(&self) -> Result<Slot, AcquireError> {
        Ok(Slot { _line: Arc::clone(&self.commands).acquire_owned().await?, _spawned: None })
    }

    /// Acquires a slot for a process that may run indefinitely.
    pub(super) async fn for_process(&self) -> Result<Slot, AcquireError> {
        let spawned = Arc::clone(&self.spawned).acquire_owned().await?;
        Ok(Slot { _spawned: Some(spawned), ..self.for_command().await? })
    }

    /// Acquires a slot for a helper script.
    pub(super) async fn for_script(&self) -> Result<Slot, AcquireError> {
        Ok(Slot { _line: Arc::clone(&self.scripts).acquire_owned().await?, _spawned: None })
    }
}
