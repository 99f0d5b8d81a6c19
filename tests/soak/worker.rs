//! A worker that runs sequential sessions with inputs and random disturbances.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{
    EventKind, Events, Outcome, OutcomeStatus, Run, RunError, Session, SessionConfig, SessionState,
};
use pintle_env::LocalEnvironment;
use pintle_llm::{ErrorKind, ReasoningEffort, RetryPolicy};

use crate::event_order::EventOrder;
use crate::model::{self, Urls};
use crate::random::Random;
use crate::tally::Tally;

/// Longer than any input takes; anything longer hangs.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs sequential sessions.
#[derive(Debug)]
pub(crate) struct Worker {
    name: String,
    random: Random,
    root: PathBuf,
    sessions: usize,
    inputs: usize,
    /// The session was dropped without being closed.
    dropped: bool,
}

/// Disturbance during an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    Steer,
    FollowUp,
    Configure,
    Interrupt,
    DropRun,
    Abort,
    Close,
    DropSession,
}

impl Act {
    fn draw(random: &mut Random) -> Self {
        match random.below(100) {
            0..=44 => Self::Nothing,
            45..=56 => Self::Steer,
            57..=62 => Self::FollowUp,
            63..=68 => Self::Configure,
            69..=80 => Self::Interrupt,
            81..=90 => Self::DropRun,
            91..=95 => Self::Abort,
            96..=97 => Self::Close,
            _ => Self::DropSession,
        }
    }
}

impl Worker {
    pub(crate) fn new(number: usize, seed: u64, root: &Path) -> Self {
        let name = format!("worker {number}");
        let random = Random::of(seed, &name);
        Self { name, random, root: root.to_path_buf(), sessions: 0, inputs: 0, dropped: false }
    }

    /// Runs until `until` inputs were played in total, then ends its session.
    pub(crate) async fn play(&mut self, urls: &Urls, until: usize) -> Result<Tally, String> {
        let mut tally = Tally::default();
        while self.inputs < until {
            let before = self.inputs;
            self.session(urls, until, &mut tally).await?;
            tally.inputs += self.inputs - before;
        }
        Ok(tally)
    }

    async fn session(&mut self, urls: &Urls, until: usize, tally: &mut Tally) -> Result<(), String> {
        self.sessions += 1;
        let title = format!("{}, session {}", self.name, self.sessions);
        let directory = self.root.join(&title);
        std::fs::create_dir(&directory).map_err(|error| format!("no directory can be made: {error}"))?;
        let mut session = Some(self.begin(urls, &directory)?);
        let events = session.as_ref().map(Session::events);
        let lifetime = 3 + self.random.below(30);
        for number in 0..lifetime {
            if self.inputs >= until || session.as_ref().is_none_or(is_closed) {
                break;
            }
            self.inputs += 1;
            let text = format!("{title}, input {number}");
            let played = tokio::time::timeout(TIME_LIMIT, self.input(&mut session, text, tally)).await;
            played.map_err(|_| format!("{title}, input {number}: it hangs"))??;
        }
        if let Some(session) = session {
            tokio::time::timeout(TIME_LIMIT, session.close())
                .await
                .map_err(|_| format!("{title}: closing hangs"))?;
        }
        let dropped = std::mem::take(&mut self.dropped);
        if let Some(events) = events {
            // A dropped session ends asynchronously.
            let (count, ended) = tokio::time::timeout(TIME_LIMIT, check_order(events))
                .await
                .map_err(|_| format!("{title}: its events do not end"))?;
            if !ended && !dropped {
                return Err(format!("{title}: SESSION_END is not its last event"));
            }
            tally.session(count);
        }
        remove(&directory, dropped).await.map_err(|error| format!("the directory cannot be removed: {error}"))
    }

    fn begin(&mut self, urls: &Urls, directory: &Path) -> Result<Session, String> {
        let (dialect, url) = urls.get(self.sessions % urls.len()).ok_or("there is no dialect")?;
        let env = LocalEnvironment::with_host_env(directory, std::env::vars_os());
        let env = env.map_err(|error| format!("{} cannot be worked in: {error}", directory.display()))?;
        let quick =
            RetryPolicy::default().with_base_delay(Duration::from_millis(1)).with_retry_timeouts(true);
        Session::builder(model::client(*dialect, url)?, model::profile(*dialect), Arc::new(env))
            .with_config(SessionConfig::default().with_retry(quick))
            .build()
            .map_err(|error| format!("no session can be built: {error}"))
    }

    /// Runs one input, disturbed after some of its events.
    async fn input(
        &mut self,
        session: &mut Option<Session>,
        text: String,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Some(open) = session else { return Ok(()) };
        let mut run = open.submit(text);
        let act = Act::draw(&mut self.random);
        if act != Act::Nothing {
            for _ in 0..self.random.below(40) {
                if run.next().await.is_none() {
                    break;
                }
            }
        }
        tally.count(&format!("did {act:?}"));
        match act {
            Act::Close => {
                if let Some(session) = session.take() {
                    session.close().await;
                }
                return outcome(run, tally).await;
            }
            Act::DropSession => {
                drop(session.take());
                self.dropped = true;
                return Ok(());
            }
            Act::DropRun => {
                drop(run);
                return Ok(());
            }
            Act::Nothing | Act::Steer | Act::FollowUp | Act::Configure | Act::Interrupt | Act::Abort => {}
        }
        self.disturb(act, open).await;
        outcome(run, tally).await?;
        // It closes asynchronously, and accepts no further input.
        if act == Act::Abort
            && let Some(session) = session.take()
        {
            session.close().await;
        }
        Ok(())
    }

    async fn disturb(&mut self, act: Act, session: &Session) {
        let handle = session.handle();
        // A session that has closed in the meantime returns an error, which is expected.
        let _ = match act {
            Act::Steer => handle.steer("Rather the other way").await,
            Act::FollowUp => handle.follow_up("And then this").await.map(drop),
            Act::Interrupt => handle.stop_turn(),
            Act::Abort => handle.close(),
            Act::Configure if self.random.flip() => handle.set_reasoning_effort(Some(ReasoningEffort::High)),
            Act::Configure => handle.set_reasoning_effort(None),
            Act::Nothing | Act::DropRun | Act::Close | Act::DropSession => Ok(()),
        };
    }
}

fn is_closed(session: &Session) -> bool {
    session.state() == SessionState::Closed
}

/// Waits for the end of a run. Only scripted failures are allowed.
async fn outcome(run: Run, tally: &mut Tally) -> Result<(), String> {
    let Ok(outcome) = run.await.or_else(RunError::into_outcome) else { return Ok(()) };
    tally.ended(&outcome);
    match &outcome {
        Outcome { status: OutcomeStatus::Failed, error: Some(error), .. } => match error.kind {
            ErrorKind::Server | ErrorKind::RateLimit | ErrorKind::Stream => Ok(()),
            _ => Err(format!("a run failed: {error}")),
        },
        _ => Ok(()),
    }
}

/// Checks the order of a session's events. Returns their number, and whether the last one is the end of the session.
async fn check_order(mut events: Events) -> (usize, bool) {
    let mut event_order = EventOrder::default();
    let (mut count, mut ended) = (0, false);
    while let Some(event) = events.next().await {
        event_order.take(&event);
        count += 1;
        ended = matches!(event.kind, EventKind::SessionEnd { .. });
    }
    (count, ended)
}

/// Removes a session's directory. A write cannot be cancelled once it has started, so it may end shortly after a
/// session was dropped.
async fn remove(directory: &Path, dropped: bool) -> std::io::Result<()> {
    for _ in 0..if dropped { 20 } else { 0 } {
        if std::fs::remove_dir_all(directory).is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    std::fs::remove_dir_all(directory)
}
