//! Limits the number of concurrent commands by the file descriptors of this process.
//!
//! Descriptors belong to the process and not to an environment, so all environments share one
//! queue. Its size is derived from the system limit (`ulimit -n`) when the first command starts.
//! This is an estimate, since the embedding application has its own descriptors. A command that
//! finds no free descriptor waits until another command has ended and retries.

use std::{
    future::Future,
    io,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use nix::sys::resource::{Resource, getrlimit};
use tokio::{
    sync::{Mutex, Notify, Semaphore, SemaphorePermit},
    time::{sleep, timeout},
};

use crate::error::EnvError;

/// Descriptors left to the embedding application, its runtime and the supervisor.
const RESERVED: u64 = 16;

/// Descriptors per command: two or three pipes, its handle, the handle of its PID namespace, and a share of those opened
/// briefly while a process is started or looked up.
const PER_COMMAND: u64 = 6;

/// Minimum number of concurrent commands, however low the limit.
const MIN_COMMANDS: usize = 2;

/// Maximum number of concurrent commands, however high the limit.
const MAX_COMMANDS: usize = 4096;

/// Free slots with which one may be used for a command that is not known yet.
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
const SPARE_SLOTS: usize = 8;

/// Time that a command waits for a slot while no other command ends. After that commands start
/// without a slot, one after another: the running ones may be servers that never end.
const SLOT_WAIT: Duration = Duration::from_secs(5);

/// Time that a command waits for a free descriptor before it fails.
const MAX_SHORTAGE: Duration = Duration::from_secs(60);

/// Retry interval meanwhile, since the embedding application may release descriptors unnoticed.
const RETRY: Duration = Duration::from_millis(250);

/// The queue of this process.
static ADMISSION: LazyLock<Admission> = LazyLock::new(|| Admission::new(max_commands(open_files())));

/// The queue of commands.
#[derive(Debug)]
struct Admission {
    slots: Semaphore,
    /// Held by the command that will start next without a slot.
    next_without_slot: Mutex<()>,
    running: AtomicUsize,
    ended: Notify,
}

/// Permission to run a command, held while it runs.
#[derive(Debug)]
pub(super) struct Slot {
    admission: &'static Admission,
    /// `None` if it started without a slot.
    _permit: Option<SemaphorePermit<'static>>,
}

impl Admission {
    fn new(max_commands: usize) -> Self {
        Self {
            slots: Semaphore::new(max_commands),
            next_without_slot: Mutex::default(),
            running: AtomicUsize::new(0),
            ended: Notify::new(),
        }
    }

    async fn acquire(&'static self) -> Slot {
        let without_slot = async {
            let _next = self.next_without_slot.lock().await;
            sleep(SLOT_WAIT).await;
        };
        let permit = tokio::select! {
            biased;
            // The semaphore is never closed.
            permit = self.slots.acquire() => permit.ok(),
            () = without_slot => None,
        };
        self.running.fetch_add(1, Ordering::Relaxed);
        Slot { admission: self, _permit: permit }
    }

    async fn retry_on_shortage<T, F>(
        &self,
        slot: Option<&Slot>,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, EnvError>
    where
        F: Future<Output = Result<T, EnvError>>,
    {
        // The caller's own slot will not be released.
        let own = usize::from(slot.is_some());
        let mut waited = Duration::ZERO;
        loop {
            let ended = self.ended.notified();
            let error = match attempt().await {
                Err(error) if error.is_shortage() => error,
                done => return done,
            };
            if self.running.load(Ordering::Relaxed) <= own || waited >= MAX_SHORTAGE {
                return Err(with_hint(error));
            }
            tracing::debug!(?waited, "no file descriptor left, waiting for a command to exit");
            waited = if timeout(RETRY, ended).await.is_ok() { Duration::ZERO } else { waited + RETRY };
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.running.fetch_sub(1, Ordering::Relaxed);
        self.admission.ended.notify_waiters();
    }
}

/// Returns whether so many slots are free that one may be used for a command that is not known yet.
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
pub(super) fn has_spare_slots() -> bool {
    ADMISSION.slots.available_permits() >= SPARE_SLOTS
}

/// Waits until a command may start. Dropping the future leaves the queue.
pub(super) async fn acquire_slot() -> Slot {
    ADMISSION.acquire().await
}

/// Retries `attempt` while no descriptor is free and running commands may still release some.
///
/// # Errors
///
/// Those of `attempt`, among them a shortage of descriptors if no command is running or none ended
/// in time.
pub(super) async fn retry_on_shortage<T, F>(
    slot: Option<&Slot>,
    attempt: impl FnMut() -> F,
) -> Result<T, EnvError>
where
    F: Future<Output = Result<T, EnvError>>,
{
    ADMISSION.retry_on_shortage(slot, attempt).await
}

/// Adds a hint to an error about missing descriptors.
fn with_hint(mut error: EnvError) -> EnvError {
    if let EnvError::Spawn { source, .. } | EnvError::Io { source, .. } = &mut error {
        let message = format!("{source}; help: raise the limit of open files (ulimit -n)");
        *source = io::Error::new(source.kind(), message);
    }
    error
}

/// Returns the maximum number of concurrent commands with this many descriptors.
fn max_commands(descriptors: u64) -> usize {
    let commands = descriptors.saturating_sub(RESERVED) / PER_COMMAND;
    usize::try_from(commands).unwrap_or(MAX_COMMANDS).clamp(MIN_COMMANDS, MAX_COMMANDS)
}

/// Returns the limit of open files of this process.
fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use nix::errno::Errno;

    use super::*;

    #[test]
    fn command_limit_follows_from_descriptors() {
        let cases = [(0, 2), (32, 2), (64, 8), (256, 40), (1024, 168), (65_536, 4096), (u64::MAX, 4096)];
        for (descriptors, commands) in cases {
            assert_eq!(max_commands(descriptors), commands, "{descriptors}");
        }
    }

    fn admission(max_commands: usize) -> &'static Admission {
        Box::leak(Box::new(Admission::new(max_commands)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_is_granted_on_release_or_after_a_wait() {
        let admission = admission(1);
        let first = admission.acquire().await;
        let started = tokio::time::Instant::now();
        let (second, ()) = tokio::join!(admission.acquire(), async {
            sleep(SLOT_WAIT / 2).await;
            drop(first);
        });
        assert_eq!(started.elapsed(), SLOT_WAIT / 2);
        // No further command ends: one starts after the other.
        let started = tokio::time::Instant::now();
        let (third, fourth) = tokio::join!(admission.acquire(), admission.acquire());
        assert_eq!(started.elapsed(), 2 * SLOT_WAIT);
        assert_eq!(admission.running.load(Ordering::Relaxed), 3);
        drop((second, third, fourth));
        assert_eq!(admission.running.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_waiter_leaves_the_queue() {
        let admission = admission(1);
        let first = admission.acquire().await;
        assert!(timeout(SLOT_WAIT / 2, admission.acquire()).await.is_err());
        drop(first);
        let second = timeout(Duration::ZERO, admission.acquire()).await.expect("the queue is empty");
        drop(second);
        assert_eq!(admission.running.load(Ordering::Relaxed), 0);
    }

    fn shortage() -> EnvError {
        let source = io::Error::from_raw_os_error(Errno::EMFILE as i32);
        EnvError::Spawn { program: "x".to_owned(), source }
    }

    #[tokio::test(start_paused = true)]
    async fn a_descriptor_shortage_is_retried_while_commands_run() {
        let admission = admission(3);
        let mut attempts = 0;
        let error = admission.retry_on_shortage(None, || {
            attempts += 1;
            async { Err::<(), _>(shortage()) }
        });
        let error = error.await.unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("ulimit -n"), "{source}");
        assert_eq!(attempts, 1);

        let other = admission.acquire().await;
        let own = admission.acquire().await;
        let mut attempts = 0;
        let (done, ()) = tokio::join!(
            admission.retry_on_shortage(Some(&own), || {
                attempts += 1;
                let found = if attempts > 1 { Ok(()) } else { Err(shortage()) };
                async { found }
            }),
            async {
                sleep(RETRY / 2).await;
                drop(other);
            }
        );
        done.unwrap();
        assert_eq!(attempts, 2);

        let hog = admission.acquire().await;
        let started = tokio::time::Instant::now();
        let failed = admission.retry_on_shortage(Some(&own), || async { Err::<(), _>(shortage()) }).await;
        assert!(failed.is_err() && started.elapsed() >= MAX_SHORTAGE);
        drop(hog);
        let other = admission.retry_on_shortage(Some(&own), || async {
            Err::<(), _>(EnvError::Unsupported { operation: "x".to_owned(), environment: "y".to_owned() })
        });
        assert!(matches!(other.await, Err(EnvError::Unsupported { .. })));
    }
}
