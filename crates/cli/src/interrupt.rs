//! Ctrl-C, SIGTERM and a terminal that closes: the first signal stops in order, the second at once.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;

/// How long the second signal waits for processes to be gone; only a process that the kernel holds, or a machine that is
/// very busy, takes as long. A supervisor ends what is left then.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How long it waits for the terminal to be tidy; only a terminal that is stopped takes as long.
const TIDY_LIMIT: Duration = Duration::from_secs(1);

/// Listens for the signals that ask the command to stop, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Interrupts {
    first: CancellationToken,
    /// Kills the processes that must not outlive this one.
    kill_all: KillAll,
    _listener: JoinSet<()>,
}

#[derive(Clone, Default)]
struct KillAll(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl fmt::Debug for KillAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KillAll").field(&self.0.get().is_some()).finish()
    }
}

impl Interrupts {
    /// Takes the signals over. Before this they end the process.
    ///
    /// # Errors
    ///
    /// A failure if the system does not allow it.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let refused = |error| Failure::failed("cannot listen for signals").because(&error);
        let signals = Signals::take_over().map_err(refused)?;
        let first = CancellationToken::new();
        let kill_all = KillAll::default();
        let mut listener = JoinSet::new();
        listener.spawn(listen(signals, first.clone(), kill_all.clone()));
        Ok(Self { first, kill_all, _listener: listener })
    }

    /// Has the second signal call this, which blocks until all commands are gone. The first one that is given counts.
    pub(crate) fn guard(&self, kill_all: impl Fn() + Send + Sync + 'static) {
        self.kill_all.0.get_or_init(|| Box::new(kill_all));
    }

    /// Waits for the first signal; returns at once if it has come.
    pub(crate) async fn first(&self) {
        self.first.cancelled().await;
    }

    /// Whether the first signal has come.
    pub(crate) fn have_come(&self) -> bool {
        self.first.is_cancelled()
    }

    /// What a failure is called: what fails while everything is being stopped has been interrupted.
    pub(crate) fn judge(&self, failure: Failure) -> Failure {
        if self.have_come() && failure.exit() == Exit::Failed {
            return failure.interrupted();
        }
        failure
    }

    /// Does the work unless a signal comes first, which drops it.
    ///
    /// # Errors
    ///
    /// The work's own failure, or that it was interrupted.
    pub(crate) async fn unless<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.first() => Err(Failure::new(Exit::Interrupted, "interrupted")),
            done = work => done,
        }
    }
}

async fn listen(mut signals: Signals, first: CancellationToken, kill_all: KillAll) {
    signals.next().await;
    first.cancel();
    signals.next().await;
    let killed = tokio::task::spawn_blocking(move || {
        if let Some(kill_all) = kill_all.0.get() {
            kill_all();
        }
    });
    // Whether or not the last process has gone in time, and whether or not the terminal takes anything, this one
    // leaves now.
    let _ = tokio::time::timeout(KILL_LIMIT, killed).await;
    let tidied = tokio::task::spawn_blocking(|| {
        console::leave();
        console::discard_typed_ahead();
    });
    let _ = tokio::time::timeout(TIDY_LIMIT, tidied).await;
    std::process::exit(Exit::Interrupted.code().into());
}

/// The signals that ask to stop. Commands run in groups of their own, so none of them reaches a command.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn take_over() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
