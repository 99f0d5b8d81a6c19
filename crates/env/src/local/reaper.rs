//! Ends what was dropped: a drop cannot wait, a thread can.

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

use nix::{
    sys::{
        signal::Signal,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use tokio::process::Child;

use super::{
    lifeline::Lifeline,
    pipes::Discard,
    process,
    procfs::{self, ProcessRow},
    scope::Scope,
};
use crate::{error::EnvError, process::TERMINATE_GRACE};

/// How often it is looked whether processes have gone.
const POLL: Duration = Duration::from_millis(20);

/// How long after the first kill signal a process is given up.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How long the end of everything waits for processes that are just being started. The supervisor outlives this
/// process for those that take longer.
const START_LIMIT: Duration = Duration::from_secs(5);

/// Knows what runs in an environment and ends what nobody holds any more.
///
/// Its thread starts with the first process that is dropped while it runs.
#[derive(Debug)]
pub(super) struct Reaper {
    state: Mutex<State>,
    /// Does the same when this process is gone; `None` if the host wants none.
    lifeline: Option<Arc<Lifeline>>,
    /// Held by who waits for a thread, so that the next one to wait waits for that thread, too.
    waiting: Mutex<()>,
    /// Whether there is no time for the terminate signal.
    hurry: Arc<AtomicBool>,
    /// Notified when the last process that was being started is registered.
    started: Condvar,
}

/// A process that is about to start, from before the system call until the process is registered and watched.
///
/// Neither [`Reaper::finish`] nor the supervisor overlooks it meanwhile, although nobody knows its id.
#[derive(Debug)]
pub(super) struct Starting {
    reaper: Arc<Reaper>,
}

/// Names a running process to its reaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Registration(u64);

#[derive(Debug, Default)]
struct State {
    registrations: u64,
    /// The number of [`Starting`] guards.
    starting: usize,
    /// Everything was killed, and nothing starts any more.
    is_killed: bool,
    running: BTreeMap<Registration, Scope>,
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    sender: Sender<Abandoned>,
    thread: JoinHandle<()>,
}

/// A command on its way out.
#[derive(Debug)]
struct Abandoned {
    scope: Scope,
    /// Its first process, unless that is reaped already or by somebody else.
    child: Option<Child>,
    /// Its output, for as long as it may say something.
    output: Option<Discard>,
    /// `None` until it got the terminate signal.
    terminated: Option<Instant>,
}

impl Reaper {
    pub(super) fn new(lifeline: Option<Arc<Lifeline>>) -> Self {
        Self {
            state: Mutex::default(),
            lifeline,
            waiting: Mutex::default(),
            hurry: Arc::default(),
            started: Condvar::new(),
        }
    }

    /// Announces a process before there is one, and starts its supervisor unless that runs.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] of the supervisor, or [`EnvError::Refused`] once everything was killed.
    pub(super) fn prepare(self: &Arc<Self>) -> Result<Starting, EnvError> {
        let mut state = self.lock();
        if state.is_killed {
            return Err(EnvError::Refused {
                operation: "starting a process".to_owned(),
                reason: "the environment was shut down".to_owned(),
            });
        }
        state.starting += 1;
        drop(state);
        let starting = Starting { reaper: Arc::clone(self) };
        if let Some(lifeline) = &self.lifeline {
            lifeline.start().map_err(process::not_watched)?;
        }
        Ok(starting)
    }

    /// Has a registered process ended with the host.
    pub(super) fn watch(&self, scope: &Scope) -> io::Result<()> {
        self.lifeline.as_ref().map_or(Ok(()), |lifeline| lifeline.watch(scope))
    }

    /// Takes note of a process that was started.
    pub(super) fn register(&self, scope: Scope) -> Registration {
        let mut state = self.lock();
        state.registrations += 1;
        let registration = Registration(state.registrations);
        state.running.insert(registration, scope);
        registration
    }

    /// Takes note that nothing of it is left.
    pub(super) fn settled(&self, registration: Registration) {
        let scope = self.lock().running.remove(&registration);
        if let (Some(scope), Some(lifeline)) = (scope, &self.lifeline) {
            lifeline.forget(&scope);
        }
    }

    /// Ends it: terminate, grace, kill. Does not wait.
    pub(super) fn abandon(
        &self,
        registration: Registration,
        scope: Scope,
        child: Option<Child>,
        output: Discard,
    ) {
        let mut state = self.lock();
        state.running.remove(&registration);
        self.hand_over(&mut state, Abandoned { scope, child, output: Some(output), terminated: None });
    }

    /// Ends everything that runs or is being started and waits until it is gone, with what was on its way out already;
    /// blocks.
    pub(super) fn finish(&self) {
        let _alone = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut leaders = Vec::new();
        let worker = {
            let mut state = self.all_started();
            for scope in std::mem::take(&mut state.running).into_values() {
                leaders.push(scope.leader());
                self.hand_over(&mut state, Abandoned { scope, child: None, output: None, terminated: None });
            }
            state.worker.take()
        };
        if let Some(Worker { sender, thread }) = worker {
            drop(sender);
            if thread.join().is_err() {
                tracing::error!("the thread that ends processes has panicked");
            }
        }
        if self.hurry.load(Ordering::Relaxed) {
            leaders.into_iter().for_each(reap);
        }
        if let Some(lifeline) = &self.lifeline {
            // The lock keeps the supervisor from being taken away from a process that is just announced.
            let state = self.lock();
            if state.starting == 0 {
                lifeline.finish();
            }
        }
    }

    /// As [`finish`](Self::finish), but kills, and for good; whoever waits for the gentle end is served as quickly.
    pub(super) fn kill(&self) {
        self.hurry.store(true, Ordering::Relaxed);
        self.lock().is_killed = true;
        self.finish();
    }

    /// Waits until every announced process is registered.
    fn all_started(&self) -> MutexGuard<'_, State> {
        let waited = self.started.wait_timeout_while(self.lock(), START_LIMIT, |state| state.starting > 0);
        let (state, elapsed) = waited.unwrap_or_else(PoisonError::into_inner);
        if elapsed.timed_out() {
            tracing::warn!(count = state.starting, "processes take too long to start");
        }
        state
    }

    fn hand_over(&self, state: &mut State, abandoned: Abandoned) {
        let worker = match state.worker.take().map_or_else(|| self.start(), Ok) {
            Ok(worker) => worker,
            Err(error) => {
                tracing::error!(%error, "no thread to end a process gently: it is killed");
                abandoned.scope.send(&abandoned.scope.look(), Signal::SIGKILL);
                return;
            }
        };
        if worker.sender.send(abandoned).is_err() {
            tracing::error!("the thread that ends processes is gone");
        }
        state.worker = Some(worker);
    }

    fn start(&self) -> io::Result<Worker> {
        let (sender, receiver) = mpsc::channel();
        let (hurry, lifeline) = (Arc::clone(&self.hurry), self.lifeline.clone());
        let thread = thread::Builder::new()
            .name("pintle-reaper".to_owned())
            .spawn(move || work(&receiver, &hurry, lifeline.as_deref()))?;
        Ok(Worker { sender, thread })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Starting {
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

/// Runs until no more can come and none is left.
fn work(receiver: &Receiver<Abandoned>, hurry: &AtomicBool, lifeline: Option<&Lifeline>) {
    let mut abandoned = Vec::new();
    while receive(receiver, &mut abandoned) || !abandoned.is_empty() {
        // One look at the table serves all.
        let since = abandoned.iter().filter_map(|one| one.scope.since()).min();
        let table = since.and_then(procfs::read_table);
        let grace = if hurry.load(Ordering::Relaxed) { Duration::ZERO } else { TERMINATE_GRACE };
        abandoned.retain_mut(|one| {
            let is_left = one.is_left(table.as_deref(), grace);
            if !is_left && let Some(lifeline) = lifeline {
                lifeline.forget(&one.scope);
            }
            is_left
        });
    }
}

/// Takes in what has come, waiting for it a little, or for long if there is nothing else to do.
/// Returns whether more can come.
fn receive(receiver: &Receiver<Abandoned>, abandoned: &mut Vec<Abandoned>) -> bool {
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

impl Abandoned {
    /// Sends what is due and says whether anything is left.
    fn is_left(&mut self, table: Option<&[ProcessRow]>, grace: Duration) -> bool {
        if let Some(output) = &mut self.output {
            output.discard();
        }
        // An error means that somebody else has waited for it.
        if let Some(child) = &mut self.child
            && !matches!(child.try_wait(), Ok(None))
        {
            self.scope.leader_was_reaped();
            self.child = None;
        }
        let members = self.scope.look_in(table);
        if self.child.is_none() && members.is_empty() {
            return false;
        }
        match self.terminated {
            None => {
                self.scope.send(&members, Signal::SIGTERM);
                self.scope.send(&members, Signal::SIGCONT);
                self.terminated = Some(Instant::now());
            }
            Some(at) if at.elapsed() > grace + KILL_LIMIT => {
                tracing::warn!(id = self.scope.leader(), "a killed process does not go");
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
