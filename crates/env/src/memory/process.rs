//! Processes that play a script.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, DuplexStream, duplex},
    sync::{Mutex, watch},
    time::{Instant, sleep_until},
};

use super::{
    RunningToken,
    script::{CommandScript, Step},
};
use crate::{
    command::Stdin,
    error::EnvError,
    output::{OutputChunk, OutputStream},
    process::{ExitStatus, Process, ProcessOutput, Signal},
};

/// Capacity of the standard-input pipe.
const PIPE: usize = 64 << 10;

/// Signal numbers, the same on every Unix.
const INTERRUPT: i32 = 2;
const KILL: i32 = 9;
const TERMINATE: i32 = 15;

/// A process of a memory environment. Its script advances while it is awaited or its output is
/// read.
#[derive(Debug)]
pub(super) struct MemoryProcess {
    shared: Arc<Shared>,
    stdin: Option<DuplexStream>,
    output: Option<MemoryOutput>,
    ignores_terminate: bool,
    _running: Arc<RunningToken>,
}

#[derive(Debug)]
struct MemoryOutput(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    player: Mutex<ScriptPlayer>,
    status: watch::Sender<Option<ExitStatus>>,
    jobs: AtomicUsize,
}

#[derive(Debug)]
struct ScriptPlayer {
    steps: VecDeque<Step>,
    last_status: ExitStatus,
    /// End of the pause that is the current step.
    pause_ends: Option<Instant>,
    input: Option<DuplexStream>,
    printed: VecDeque<OutputChunk>,
}

impl MemoryProcess {
    pub(super) fn start(script: CommandScript, stdin: Stdin, running: Arc<RunningToken>) -> Self {
        let (stdin, input) = match stdin {
            Stdin::Null => (None, None),
            Stdin::Piped => {
                let (writing, reading) = duplex(PIPE);
                (Some(writing), Some(reading))
            }
        };
        let shared = Arc::new(Shared {
            player: Mutex::new(ScriptPlayer {
                steps: script.steps,
                last_status: script.status,
                pause_ends: None,
                input,
                printed: VecDeque::new(),
            }),
            status: watch::Sender::new(None),
            jobs: AtomicUsize::new(script.jobs),
        });
        Self {
            stdin,
            output: Some(MemoryOutput(Arc::clone(&shared))),
            shared,
            ignores_terminate: script.ignores_terminate,
            _running: running,
        }
    }
}

#[async_trait]
impl Process for MemoryProcess {
    fn id(&self) -> Option<u32> {
        None
    }

    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        let stdin = self.stdin.take()?;
        Some(Box::new(stdin))
    }

    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
        let output = self.output.take()?;
        Some(Box::new(output))
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        loop {
            if let Some(status) = self.shared.status() {
                return Ok(status);
            }
            self.shared.play_one().await;
        }
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
        let number = match signal {
            Signal::Kill => KILL,
            Signal::Interrupt | Signal::Terminate if self.ignores_terminate => return Ok(()),
            Signal::Interrupt => INTERRUPT,
            Signal::Terminate => TERMINATE,
        };
        self.shared.exit(ExitStatus::Signaled(number));
        self.shared.jobs.store(0, Ordering::Relaxed);
        Ok(())
    }

    async fn jobs(&mut self) -> Result<usize, EnvError> {
        Ok(self.shared.jobs.load(Ordering::Relaxed))
    }

    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let jobs = self.jobs().await?;
        self.signal(Signal::Terminate).await?;
        if tokio::time::timeout(grace, self.wait()).await.is_err() {
            self.signal(Signal::Kill).await?;
        }
        self.shared.jobs.store(0, Ordering::Relaxed);
        Ok(jobs)
    }
}

#[async_trait]
impl ProcessOutput for MemoryOutput {
    async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError> {
        loop {
            if let Some(chunk) = self.0.player.lock().await.printed.pop_front() {
                return Ok(Some(chunk));
            }
            if self.0.status().is_some() {
                return Ok(None);
            }
            self.0.play_one().await;
        }
    }
}

impl Shared {
    fn status(&self) -> Option<ExitStatus> {
        *self.status.borrow()
    }

    /// Sets the exit status unless there is one already.
    fn exit(&self, status: ExitStatus) {
        self.status.send_if_modified(|current| {
            let is_first = current.is_none();
            current.get_or_insert(status);
            is_first
        });
    }

    /// Plays one step unless a signal terminates the process first. Cancel safe: an incomplete step
    /// is played again.
    async fn play_one(&self) {
        let mut status = self.status.subscribe();
        let signalled = status.wait_for(Option::is_some);
        let mut player = tokio::select! {
            _ = signalled => return,
            player = self.player.lock() => player,
        };
        let mut status = self.status.subscribe();
        tokio::select! {
            _ = status.wait_for(Option::is_some) => {}
            is_done = player.play() => if is_done {
                self.exit(player.last_status);
            },
        }
    }
}

impl ScriptPlayer {
    /// Plays the first step; returns true if there was none.
    async fn play(&mut self) -> bool {
        match self.steps.front() {
            None => return true,
            Some(Step::Print(chunk)) => self.printed.push_back(chunk.clone()),
            Some(Step::Pause(time)) => {
                let end = *self.pause_ends.get_or_insert_with(|| Instant::now() + *time);
                sleep_until(end).await;
                self.pause_ends = None;
            }
            Some(Step::CopyInput) => {
                if self.copy_input().await {
                    // The step is not complete before the end of input.
                    return false;
                }
            }
            Some(Step::Hang) => std::future::pending().await,
        }
        self.steps.pop_front();
        false
    }

    /// Copies some input; returns false at its end.
    async fn copy_input(&mut self) -> bool {
        let Some(input) = &mut self.input else {
            return false;
        };
        let mut buffer = vec![0; PIPE];
        let read = input.read(&mut buffer).await.unwrap_or(0);
        buffer.truncate(read);
        if read > 0 {
            self.printed.push_back(OutputChunk::new(OutputStream::Stdout, buffer));
        }
        read > 0
    }
}
