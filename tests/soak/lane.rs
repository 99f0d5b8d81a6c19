//! One session after the other, each given inputs and disturbed as chance has it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{EventKind, Events, Outcome, OutcomeStatus, Run, Session, SessionConfig, SessionState};
use pintle_env::LocalEnvironment;
use pintle_llm::{ErrorKind, ReasoningEffort, RetryPolicy};

use crate::chance::Chance;
use crate::law::Law;
use crate::model::{self, Urls};
use crate::tally::Tally;

/// Longer than any input takes; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A row of sessions.
#[derive(Debug)]
pub(crate) struct Lane {
    name: String,
    chance: Chance,
    root: PathBuf,
    sessions: usize,
    inputs: usize,
    /// The session was let go without an end.
    dropped: bool,
}

/// What is done in the middle of an input.
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
    fn draw(chance: &mut Chance) -> Self {
        match chance.below(100) {
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

impl Lane {
    pub(crate) fn new(number: usize, seed: u64, root: &Path) -> Self {
        let name = format!("lane {number}");
        let chance = Chance::of(seed, &name);
        Self { name, chance, root: root.to_path_buf(), sessions: 0, inputs: 0, dropped: false }
    }

    /// Plays until so many inputs were played in all, and ends its session.
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
        let folder = self.root.join(&title);
        std::fs::create_dir(&folder).map_err(|error| format!("no folder can be made: {error}"))?;
        let mut session = Some(self.begin(urls, &folder)?);
        let events = session.as_ref().map(Session::events);
        let lifetime = 3 + self.chance.below(30);
        for number in 0..lifetime {
            if self.inputs >= until || session.as_ref().is_none_or(is_closed) {
                break;
            }
            self.inputs += 1;
            let text = format!("{title}, input {number}");
            let played = tokio::time::timeout(PATIENCE, self.input(&mut session, text, tally)).await;
            played.map_err(|_| format!("{title}, input {number}: it hangs"))??;
        }
        if let Some(session) = session {
            tokio::time::timeout(PATIENCE, session.close())
                .await
                .map_err(|_| format!("{title}: closing hangs"))?;
        }
        let dropped = std::mem::take(&mut self.dropped);
        if let Some(events) = events {
            // A session that was dropped comes to its end in its own time.
            let (count, ended) = tokio::time::timeout(PATIENCE, lawful(events))
                .await
                .map_err(|_| format!("{title}: its events do not end"))?;
            if !ended && !dropped {
                return Err(format!("{title}: SESSION_END is not its last event"));
            }
            tally.session(count);
        }
        remove(&folder, dropped).await.map_err(|error| format!("the folder cannot be removed: {error}"))
    }

    fn begin(&mut self, urls: &Urls, folder: &Path) -> Result<Session, String> {
        let (dialect, url) = urls.get(self.sessions % urls.len()).ok_or("there is no dialect")?;
        let env = LocalEnvironment::with_host_env(folder, std::env::vars_os());
        let env = env.map_err(|error| format!("{} cannot be worked in: {error}", folder.display()))?;
        let quick =
            RetryPolicy::default().with_base_delay(Duration::from_millis(1)).with_retry_timeouts(true);
        Session::builder(model::client(*dialect, url)?, model::profile(*dialect), Arc::new(env))
            .config(SessionConfig::default().with_retry(quick))
            .build()
            .map_err(|error| format!("no session can be built: {error}"))
    }

    /// One input, disturbed after some of its events.
    async fn input(
        &mut self,
        session: &mut Option<Session>,
        text: String,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Some(open) = session else { return Ok(()) };
        let mut run = open.submit(text);
        let act = Act::draw(&mut self.chance);
        if act != Act::Nothing {
            for _ in 0..self.chance.below(40) {
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
        self.disturb(act, open);
        outcome(run, tally).await?;
        // It closes in its own time, and takes no further input.
        if act == Act::Abort
            && let Some(session) = session.take()
        {
            session.close().await;
        }
        Ok(())
    }

    fn disturb(&mut self, act: Act, session: &Session) {
        let handle = session.handle();
        // A session that has closed meanwhile says so, which is all that it has to do.
        let _ = match act {
            Act::Steer => handle.steer("Rather the other way"),
            Act::FollowUp => handle.follow_up("And then this"),
            Act::Interrupt => handle.interrupt(),
            Act::Abort => handle.abort(),
            Act::Configure if self.chance.flip() => handle.set_reasoning_effort(Some(ReasoningEffort::High)),
            Act::Configure => handle.set_reasoning_effort(None),
            Act::Nothing | Act::DropRun | Act::Close | Act::DropSession => Ok(()),
        };
    }
}

fn is_closed(session: &Session) -> bool {
    session.state() == SessionState::Closed
}

/// Waits for the end of a run. Only what the script has failing may fail.
async fn outcome(run: Run, tally: &mut Tally) -> Result<(), String> {
    let Ok(outcome) = run.await else { return Ok(()) };
    tally.ended(&outcome);
    match &outcome {
        Outcome { status: OutcomeStatus::Failed, error: Some(error), .. } => match error.kind {
            ErrorKind::Server | ErrorKind::RateLimit | ErrorKind::Stream => Ok(()),
            _ => Err(format!("a run failed: {error}")),
        },
        _ => Ok(()),
    }
}

/// Holds the events of a session to their law. Gives their number, and whether the last is the session's end.
async fn lawful(mut events: Events) -> (usize, bool) {
    let mut law = Law::default();
    let (mut count, mut ended) = (0, false);
    while let Some(event) = events.next().await {
        law.take(&event);
        count += 1;
        ended = matches!(event.kind, EventKind::SessionEnd { .. });
    }
    (count, ended)
}

/// Removes a session's folder. The writing of a file cannot be called off once it has begun, so that one may end
/// shortly after a session that was dropped.
async fn remove(folder: &Path, dropped: bool) -> std::io::Result<()> {
    for _ in 0..if dropped { 20 } else { 0 } {
        if std::fs::remove_dir_all(folder).is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    std::fs::remove_dir_all(folder)
}
