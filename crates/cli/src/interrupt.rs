//! Ctrl-C and SIGTERM: the first stops in order, the second at once.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;

/// How long the second signal leaves to what the first has set going.
const LAST_MOMENT: Duration = Duration::from_millis(50);

/// Listens for the signals that ask the command to stop, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Interrupts {
    first: CancellationToken,
    _listener: JoinSet<()>,
}

impl Interrupts {
    /// Takes the signals over. Before this they end the process.
    ///
    /// # Errors
    ///
    /// A failure if the system does not allow it.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let refused = |error| Failure::failed("cannot listen for signals").because(&error);
        let interrupt = signal(SignalKind::interrupt()).map_err(refused)?;
        let terminate = signal(SignalKind::terminate()).map_err(refused)?;
        let first = CancellationToken::new();
        let mut listener = JoinSet::new();
        listener.spawn(listen(interrupt, terminate, first.clone()));
        Ok(Self { first, _listener: listener })
    }

    /// Waits for the first signal; returns at once if it has come.
    pub(crate) async fn first(&self) {
        self.first.cancelled().await;
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

async fn listen(mut interrupt: Signal, mut terminate: Signal, first: CancellationToken) {
    next(&mut interrupt, &mut terminate).await;
    first.cancel();
    next(&mut interrupt, &mut terminate).await;
    // Commands are told to end right after the first signal; two signals in one moment must not outrun that.
    tokio::time::sleep(LAST_MOMENT).await;
    std::process::exit(Exit::Interrupted.code().into());
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
