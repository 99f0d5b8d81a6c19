//! Which commands may start: this process has so many file descriptors, and a command takes some of them.
//!
//! Descriptors belong to the process and not to an environment, so that all environments share one queue. It is derived
//! from the limit of the system (`ulimit -n`) when the first command starts. The limit is an estimate, since the host has
//! descriptors of its own: a command that finds none left waits until another one has ended, and tries again.

use std::{
    error::Error,
    future::Future,
    io,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::resource::{Resource, getrlimit},
};
use tokio::{
    sync::{Mutex, Notify, Semaphore, SemaphorePermit},
    time::{sleep, timeout},
};

use crate::error::EnvError;

/// Descriptors that are left to the host, its runtime and the supervisor of commands.
const RESERVED: u64 = 16;

/// Descriptors of a command: two or three pipes, its handle, and its part of those that are open for a moment while one is
/// started or its processes are looked up.
const PER_COMMAND: u64 = 6;

/// The fewest commands that may run at a time, however low the limit is.
const FEWEST: usize = 2;

/// The most commands that may run at a time, however high the limit is.
const MOST: usize = 4096;

/// How long a command waits for its turn while none ends. Then it starts out of turn, one at a time: those that run may
/// be servers that never end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a command that found no descriptor waits for others to end before it fails.
const LONGEST_SHORTAGE: Duration = Duration::from_secs(60);

/// How often it is tried again meanwhile, since descriptors of the host become free unnoticed.
const RETRY: Duration = Duration::from_millis(250);

/// Those of this process.
static COMMANDS: LazyLock<Admission> = LazyLock::new(|| Admission::new(at_most(open_files())));

/// The queue of commands.
#[derive(Debug)]
struct Admission {
    turns: Semaphore,
    /// Held by the command that starts next if none ends.
    next_out_of_turn: Mutex<()>,
    running: AtomicUsize,
    ended: Notify,
}

/// What a command holds while it runs.
#[derive(Debug)]
pub(super) struct Turn {
    admission: &'static Admission,
    /// `None` if it has started out of turn.
    _permit: Option<SemaphorePermit<'static>>,
}

impl Admission {
    fn new(at_most: usize) -> Self {
        Self {
            turns: Semaphore::new(at_most),
            next_out_of_turn: Mutex::default(),
            running: AtomicUsize::new(0),
            ended: Notify::new(),
        }
    }

    async fn enter(&'static self) -> Turn {
        let out_of_turn = async {
            let _next = self.next_out_of_turn.lock().await;
            sleep(PATIENCE).await;
        };
        let permit = tokio::select! {
            biased;
            // The semaphore is never closed.
            permit = self.turns.acquire() => permit.ok(),
            () = out_of_turn => None,
        };
        self.running.fetch_add(1, Ordering::Relaxed);
        Turn { admission: self, _permit: permit }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.admission.running.fetch_sub(1, Ordering::Relaxed);
        self.admission.ended.notify_waiters();
    }
}

/// Waits until a command may start. Dropping the future leaves the queue.
pub(super) async fn enter() -> Turn {
    COMMANDS.enter().await
}

/// Tries again while there are no descriptors and commands run whose end may bring some.
///
/// # Errors
///
/// Those of `attempt`. A lack of descriptors is one of them if no command runs or none has ended in time.
pub(super) async fn with_descriptors<T, F>(
    turn: Option<&Turn>,
    mut attempt: impl FnMut() -> F,
) -> Result<T, EnvError>
where
    F: Future<Output = Result<T, EnvError>>,
{
    // The caller's own turn is none that ends.
    let own = usize::from(turn.is_some());
    let mut waited = Duration::ZERO;
    loop {
        let ended = COMMANDS.ended.notified();
        let error = match attempt().await {
            Err(error) if is_shortage(&error) => error,
            done => return done,
        };
        if COMMANDS.running.load(Ordering::Relaxed) <= own || waited >= LONGEST_SHORTAGE {
            return Err(advised(error));
        }
        tracing::debug!(?waited, "no file descriptor is left: waiting for a command to end");
        waited = if timeout(RETRY, ended).await.is_ok() { Duration::ZERO } else { waited + RETRY };
    }
}

/// Whether the process or the system has no descriptor left.
fn is_shortage(error: &EnvError) -> bool {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error: &&(dyn Error + 'static)| (*error).source())
        .filter_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())
        .any(|code| [Errno::EMFILE as i32, Errno::ENFILE as i32].contains(&code))
}

/// The same error with what to do about it.
fn advised(mut error: EnvError) -> EnvError {
    if let EnvError::Spawn { source, .. } | EnvError::Io { source, .. } = &mut error {
        let message = format!("{source}; help: raise the limit of open files (ulimit -n)");
        *source = io::Error::new(source.kind(), message);
    }
    error
}

/// How many commands may run at a time with so many descriptors.
fn at_most(descriptors: u64) -> usize {
    let commands = descriptors.saturating_sub(RESERVED) / PER_COMMAND;
    usize::try_from(commands).unwrap_or(MOST).clamp(FEWEST, MOST)
}

/// How many descriptors this process may have.
fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_follow_from_descriptors() {
        let cases = [(0, 2), (32, 2), (64, 8), (256, 40), (1024, 168), (65_536, 4096), (u64::MAX, 4096)];
        for (descriptors, commands) in cases {
            assert_eq!(at_most(descriptors), commands, "{descriptors}");
        }
    }

    fn admission(at_most: usize) -> &'static Admission {
        Box::leak(Box::new(Admission::new(at_most)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_when_another_ends_or_after_a_while() {
        let admission = admission(1);
        let first = admission.enter().await;
        let begun = tokio::time::Instant::now();
        let (second, ()) = tokio::join!(admission.enter(), async {
            sleep(PATIENCE / 2).await;
            drop(first);
        });
        assert_eq!(begun.elapsed(), PATIENCE / 2);
        // Nobody ends any more: one starts after the other.
        let begun = tokio::time::Instant::now();
        let (third, fourth) = tokio::join!(admission.enter(), admission.enter());
        assert_eq!(begun.elapsed(), 2 * PATIENCE);
        assert_eq!(admission.running.load(Ordering::Relaxed), 3);
        drop((second, third, fourth));
        assert_eq!(admission.running.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_dropped_leaves_the_queue() {
        let admission = admission(1);
        let first = admission.enter().await;
        assert!(timeout(PATIENCE / 2, admission.enter()).await.is_err());
        drop(first);
        let second = timeout(Duration::ZERO, admission.enter()).await.expect("nobody is before it");
        drop(second);
        assert_eq!(admission.running.load(Ordering::Relaxed), 0);
    }

    fn shortage() -> EnvError {
        let source = io::Error::from_raw_os_error(Errno::EMFILE as i32);
        EnvError::Spawn { program: "x".to_owned(), source }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shortage_is_told_at_once_if_nothing_runs_and_waited_for_else() {
        let mut attempts = 0;
        let error = with_descriptors(None, || {
            attempts += 1;
            async { Err::<(), _>(shortage()) }
        });
        let error = error.await.unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("ulimit -n"), "{source}");
        assert_eq!(attempts, 1);

        let other = enter().await;
        let own = enter().await;
        let mut attempts = 0;
        let (done, ()) = tokio::join!(
            with_descriptors(Some(&own), || {
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

        let hog = enter().await;
        let begun = tokio::time::Instant::now();
        let failed = with_descriptors(Some(&own), || async { Err::<(), _>(shortage()) }).await;
        assert!(failed.is_err() && begun.elapsed() >= LONGEST_SHORTAGE);
        drop(hog);
        let other = with_descriptors(Some(&own), || async {
            Err::<(), _>(EnvError::Unsupported { operation: "x".to_owned(), environment: "y".to_owned() })
        });
        assert!(matches!(other.await, Err(EnvError::Unsupported { .. })));
    }
}
