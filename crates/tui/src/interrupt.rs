//! Handles SIGINT, SIGTERM and SIGHUP: the first signal shuts down gracefully, the second exits at once.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pintle_host::environment::EnvSession;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::console;

/// Exit code of a process that a signal has interrupted, as shells report it for SIGINT.
pub const EXIT_CODE: u8 = 130;

/// How long the second signal waits for killed processes to exit. Reached only if a process hangs in the kernel or the
/// machine is overloaded; a supervisor then kills the rest.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the second signal waits for the terminal to accept output. Reached only if output is stopped (Ctrl-S).
const TERMINAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Signal handlers, active until dropped.
#[derive(Debug)]
pub struct Interrupts {
    /// Cancelled by the first signal.
    first: CancellationToken,
    /// Cancelled by the first signal if it reports that the terminal is gone.
    hangup: CancellationToken,
    kill_hook: KillHook,
    taker: Taker,
    _listener: JoinSet<()>,
}

/// Function that kills the processes that must not outlive this one.
#[derive(Clone, Default)]
struct KillHook(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl fmt::Debug for KillHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KillHook").field(&self.0.get().is_some()).finish()
    }
}

/// Takes SIGINT instead, while its receiver exists.
type Taker = Arc<Mutex<Option<UnboundedSender<()>>>>;

impl Interrupts {
    /// Installs the signal handlers. Until then, signals terminate the process.
    ///
    /// Fails if the process cannot handle signals.
    pub fn listen() -> Result<Self, Failure> {
        let signals = Signals::install().or_failed("cannot install signal handlers")?;
        let (first, hangup) = (CancellationToken::new(), CancellationToken::new());
        let (kill_hook, taker) = (KillHook::default(), Taker::default());
        let mut listener = JoinSet::new();
        let listening = listen(signals, first.clone(), hangup.clone(), kill_hook.clone(), Arc::clone(&taker));
        listener.spawn(listening);
        Ok(Self { first, hangup, kill_hook, taker, _listener: listener })
    }

    /// Returns a receiver of SIGINT, which shuts nothing down until the receiver is dropped.
    pub(crate) fn take_over(&self) -> UnboundedReceiver<()> {
        let (sender, receiver) = unbounded_channel();
        *self.taker.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Registers a function for the second signal to call. It blocks until all commands have exited. Later registrations
    /// are ignored.
    pub fn on_second_signal(&self, kill_all: impl Fn() + Send + Sync + 'static) {
        self.kill_hook.0.get_or_init(|| Box::new(kill_all));
    }

    /// Makes the second signal kill the local commands of an environment at once.
    pub fn kill_commands_of(&self, environment: &EnvSession) {
        if let Some(kill_all) = environment.kill_hook() {
            self.on_second_signal(kill_all);
        }
    }

    /// Waits for the first signal. Returns at once if it was received. Cancel safe.
    pub async fn first_signal(&self) {
        self.first.cancelled().await;
    }

    /// Returns whether a signal was received.
    pub fn is_interrupted(&self) -> bool {
        self.first.is_cancelled()
    }

    /// Returns whether the first signal reports that the terminal is gone.
    pub fn is_hangup(&self) -> bool {
        self.hangup.is_cancelled()
    }

    /// Converts a failure into an interruption if a signal was received: a shutdown can cause other failures.
    pub fn reclassify(&self, failure: Failure) -> Failure {
        if self.is_interrupted() && failure.kind() == FailureKind::Other {
            return Failure::silent(FailureKind::Interrupted);
        }
        failure
    }

    /// Runs the work until the first signal, which drops it.
    ///
    /// Fails as the work does, and with [`FailureKind::Interrupted`] after a signal.
    pub async fn race<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.first_signal() => Err(Failure::new(FailureKind::Interrupted, "interrupted")),
            result = work => result,
        }
    }
}

async fn listen(
    mut signals: Signals,
    first: CancellationToken,
    hangup: CancellationToken,
    kill_hook: KillHook,
    taker: Taker,
) {
    loop {
        let kind = signals.next().await;
        let is_taken = |taker: &UnboundedSender<()>| taker.send(()).is_ok();
        let taker = taker.lock().unwrap_or_else(PoisonError::into_inner);
        if kind == SignalKind::interrupt() && taker.as_ref().is_some_and(is_taken) {
            continue;
        }
        if kind == SignalKind::hangup() {
            hangup.cancel();
        }
        break;
    }
    first.cancel();
    signals.next().await;
    let killed = tokio::task::spawn_blocking(move || {
        if let Some(kill_all) = kill_hook.0.get() {
            kill_all();
        }
    });
    // Exit even if a process is still alive or the terminal does not accept output.
    let _ = tokio::time::timeout(KILL_TIMEOUT, killed).await;
    let restored = tokio::task::spawn_blocking(|| {
        console::modes::restore();
        console::clear_live_region();
        console::discard_typeahead();
    });
    let _ = tokio::time::timeout(TERMINAL_TIMEOUT, restored).await;
    std::process::exit(EXIT_CODE.into());
}

/// Signals that request termination. Commands run in their own process groups and do not receive them.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        }
    }
}
