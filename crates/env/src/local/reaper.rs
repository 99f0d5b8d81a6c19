//! Terminates dropped processes: a drop cannot wait, a thread can.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    launch::Child,
    lifeline::Lifeline,
    pipes::Discard,
    process,
    procfs::{self, ProcessRow},
    scope::Scope,
};
use crate::{error::EnvError, process::TERMINATE_GRACE};
use nix::{
    sys::{
        signal::Signal,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};

/// Poll interval for exited processes.
const POLL: Duration = Duration::from_millis(20);

/// Time after the first kill signal after which a process is given up.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Time that shutdown waits for processes that are being started. The supervisor takes care of
/// those that take longer.
const START_LIMIT: Duration = Duration::from_secs(5);

/// Tracks the running processes of an environment and terminates dropped ones.
///
/// Its thread starts when the first running process is dropped.
#[derive(Debug)]
pub(super) struct Reaper {
    state: Mutex<ReaperState>,
    /// Does the same when this process dies; `None` if disabled.
    lifeline: Option<Arc<Lifeline>>,
    /// Held while waiting for a thread, so that a concurrent caller waits for the same thread.
    waiting: Mutex<()>,
    /// Kill at once, without a terminate signal.
    kill_at_once: Arc<AtomicBool>,
    /// Notified when no process is being started any more.
    started: Condvar,
}

/// A process about to start, from before the system call until it is registered and watched.
///
/// Keeps [`Reaper::finish`] and the supervisor from overlooking it, although its id is not known
/// yet.
#[derive(Debug)]
pub(super) struct StartingProcess {
    reaper: Arc<Reaper>,
}

/// Identifies a running process to its reaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Registration(u64);

#[derive(Debug, Default)]
struct ReaperState {
    registrations: u64,
    /// The number of [`StartingProcess`] guards.
    starting: usize,
    /// Everything was killed; nothing may start any more.
    is_killed: bool,
    running: BTreeMap<Registration, Scope>,
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    sender: Sender<AbandonedProcess>,
    thread: JoinHandle<()>,
}

/// A process being terminated.
#[derive(Debug)]
struct AbandonedProcess {
    scope: Scope,
    /// The first process, unless it is already reaped or owned elsewhere.
    child: Option<Child>,
    /// Its output, drained while it exits.
    output: Option<Discard>,
    /// `None` until the terminate signal was sent.
    terminated: Option<Instant>,
}

impl Reaper {
    pub(super) fn new(lifeline: Option<Arc<Lifeline>>) -> Self {
        Self {
            state: Mutex::default(),
            lifeline,
            waiting: Mutex::default(),
            kill_at_once: Arc::default(),
            started: Condvar::new(),
        }
    }

    /// Announces a process before it is started, and starts the supervisor if it is not running.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] for the supervisor, or [`EnvError::Refused`] after [`kill`](Self::kill).
    pub(super) fn prepare(self: &Arc<Self>) -> Result<StartingProcess, EnvError> {
        let mut state = self.lock();
        if state.is_killed {
            return Err(EnvError::Refused {
                operation: "starting a process".to_owned(),
                reason: "the environment was shut down".to_owned(),
            });
        }
        state.starting += 1;
        drop(state);
        let starting = StartingProcess { reaper: Arc::clone(self) };
        if let Some(lifeline) = &self.lifeline {
            lifeline.ensure_running().map_err(process::not_watched)?;
        }
        Ok(starting)
    }

    /// Instructs the supervisor to terminate a registered process if this process dies.
    pub(super) fn watch(&self, scope: &Scope) -> io::Result<()> {
        self.lifeline.as_ref().map_or(Ok(()), |lifeline| lifeline.watch(scope))
    }

    /// Records a started process.
    pub(super) fn register(&self, scope: Scope) -> Registration {
        let mut state = self.lock();
        state.registrations += 1;
        let registration = Registration(state.registrations);
        state.running.insert(registration, scope);
        registration
    }

    /// Records that all processes of a command are gone.
    pub(super) fn unregister(&self, registration: Registration) {
        let scope = self.lock().running.remove(&registration);
        if let (Some(scope), Some(lifeline)) = (scope, &self.lifeline) {
            lifeline.forget(&scope);
        }
    }

    /// Starts to terminate a process: terminate signal, grace period, kill signal. Does not wait.
    pub(super) fn abandon(
        &self,
        registration: Registration,
        scope: Scope,
        child: Option<Child>,
        output: Discard,
    ) {
        let mut state = self.lock();
        state.running.remove(&registration);
        self.enqueue(&mut state, AbandonedProcess { scope, child, output: Some(output), terminated: None });
    }

    /// Terminates all processes, running or being started, and waits until they are gone along with
    /// those already being terminated; blocks.
    pub(super) fn finish(&self) {
        let _guard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut leaders = Vec::new();
        let worker = {
            let mut state = self.wait_until_started();
            for scope in std::mem::take(&mut state.running).into_values() {
                leaders.push(scope.leader());
                self.enqueue(
                    &mut state,
                    AbandonedProcess { scope, child: None, output: None, terminated: None },
                );
            }
            state.worker.take()
        };
        if let Some(Worker { sender, thread }) = worker {
            drop(sender);
            if thread.join().is_err() {
                tracing::error!("the reaper thread panicked");
            }
        }
        if self.kill_at_once.load(Ordering::Relaxed) {
            leaders.into_iter().for_each(reap);
        }
        if let Some(lifeline) = &self.lifeline {
            // Holding the lock keeps the supervisor alive for a process that is just being
            // announced.
            let state = self.lock();
            if state.starting == 0 {
                lifeline.finish();
            }
        }
    }

    /// Like [`finish`](Self::finish), but kills, and refuses later starts. Also speeds up a
    /// concurrent `finish`.
    pub(super) fn kill(&self) {
        self.kill_at_once.store(true, Ordering::Relaxed);
        self.lock().is_killed = true;
        self.finish();
    }

    /// Waits until every announced process is registered.
    fn wait_until_started(&self) -> MutexGuard<'_, ReaperState> {
        let waited = self.started.wait_timeout_while(self.lock(), START_LIMIT, |state| state.starting > 0);
        let (state, elapsed) = waited.unwrap_or_else(PoisonError::into_inner);
        if elapsed.timed_out() {
            tracing::warn!(count = state.starting, "processes take too long to start");
        }
        state
    }

    fn enqueue(&self, state: &mut ReaperState, abandoned: AbandonedProcess) {
        let worker = match state.worker.take().map_or_else(|| self.spawn_worker(), Ok) {
            Ok(worker) => worker,
            Err(error) => {
                tracing::error!(%error, "cannot start the reaper thread: killing the process");
                abandoned.scope.send(&abandoned.scope.scan(), Signal::SIGKILL);
                return;
            }
        };
        if worker.sender.send(abandoned).is_err() {
            tracing::error!("the reaper thread is gone");
        }
        state.worker = Some(worker);
    }

    fn spawn_worker(&self) -> io::Result<Worker> {
        let (sender, receiver) = mpsc::channel();
        let (kill_at_once, lifeline) = (Arc::clone(&self.kill_at_once), self.lifeline.clone());
        let thread = thread::Builder::new()
            .name("pintle-reaper".to_owned())
            .spawn(move || run(&receiver, &kill_at_once, lifeline.as_deref()))?;
        Ok(Worker { sender, thread })
    }

    /// Returns true once a process was dropped, until [`finish`](Self::finish).
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn has_thread(&self) -> bool {
        self.lock().worker.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, ReaperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StartingProcess {
    fn drop(&mut self) {
        let mut state = self.reaper.lock();
        state.starting -= 1;
        if state.starting == 0 {
            self.reaper.started.notify_all();
        }
    }
}

/// Waits for a killed child that its owner may not have waited for yet, and may not get to: the process is about to
/// exit, and not every init reaps the zombies that it inherits. The owner finds no child and reports that as an error.
fn reap(leader: i32) {
    // An error means that its owner was quicker.
    if waitpid(Pid::from_raw(leader), Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive) {
        tracing::warn!(id = leader, "a killed process does not exit");
    }
}

/// Terminates processes until the channel is closed and none is left.
fn run(receiver: &Receiver<AbandonedProcess>, kill_at_once: &AtomicBool, lifeline: Option<&Lifeline>) {
    let mut abandoned = Vec::new();
    while receive(receiver, &mut abandoned) || !abandoned.is_empty() {
        // One read of the table serves all of them.
        let since = abandoned.iter().filter_map(|one| one.scope.since()).min();
        let table = since.and_then(procfs::read_table);
        // Without a lifeline, nothing ends a process if this one exits during the grace period.
        let kills_at_once = lifeline.is_none() || kill_at_once.load(Ordering::Relaxed);
        let grace = if kills_at_once { Duration::ZERO } else { TERMINATE_GRACE };
        abandoned.retain_mut(|one| {
            let is_left = one.advance(table.as_deref(), grace);
            if !is_left && let Some(lifeline) = lifeline {
                lifeline.forget(&one.scope);
            }
            is_left
        });
    }
}

/// Receives dropped processes: waits for one poll interval, or indefinitely if no process is being
/// terminated. Returns true if more can follow.
fn receive(receiver: &Receiver<AbandonedProcess>, abandoned: &mut Vec<AbandonedProcess>) -> bool {
    let first = if abandoned.is_empty() {
        receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
    } else {
        receiver.recv_timeout(POLL)
    };
    match first {
        Ok(one) => {
            abandoned.push(one);
            abandoned.extend(receiver.try_iter());
            true
        }
        Err(RecvTimeoutError::Timeout) => true,
        Err(RecvTimeoutError::Disconnected) => {
            if !abandoned.is_empty() {
                thread::sleep(POLL);
            }
            false
        }
    }
}

impl AbandonedProcess {
    /// Sends the signal that is due and returns true if any process is left.
    fn advance(&mut self, table: Option<&[ProcessRow]>, grace: Duration) -> bool {
        if let Some(output) = &mut self.output {
            output.discard();
        }
        // An error means that the process was waited for elsewhere.
        if let Some(child) = &mut self.child
            && !matches!(child.try_wait(), Ok(None))
        {
            self.scope.mark_leader_reaped();
            self.child = None;
        }
        let members = self.scope.scan_table(table);
        if self.child.is_none() && members.is_empty() {
            return false;
        }
        match self.terminated {
            None if grace.is_zero() => {
                self.scope.send(&members, Signal::SIGKILL);
                self.terminated = Some(Instant::now());
            }
            None => {
                self.scope.send(&members, Signal::SIGTERM);
                self.scope.send(&members, Signal::SIGCONT);
                self.terminated = Some(Instant::now());
            }
            Some(at) if at.elapsed() > grace + KILL_LIMIT => {
                tracing::warn!(id = self.scope.leader(), "a killed process does not exit");
                return false;
            }
            Some(at) if at.elapsed() > grace => {
                self.scope.send(&members, Signal::SIGKILL);
            }
            Some(_) => {}
        }
        true
    }
}
