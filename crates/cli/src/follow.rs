//! One run of a session, shown as it goes: the events to standard output, signals to the session.

mod watch;

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;
use std::time::{Duration, Instant};

use pintle_agent::{
    EventKind, Outcome, OutcomeStatus, Session, SessionError, SessionEvent, SessionHandle, SessionId,
    TreeEvents, Turn, TurnKind, TurnLimits,
};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

pub(crate) use self::watch::Watch;

use crate::approve::Terminal;
use crate::console::{self, Console};
use crate::cost::Bill;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::render::{Below, Closing, Moment, Opening, TICK, View};

/// How long an interrupted run waits for a reader that does not read.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is done, where, and by which model.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// What the agent is told.
    pub(crate) prompt: String,
    /// Whose answers are followed.
    pub(crate) model: &'a Model,
    /// Where the tools run.
    pub(crate) directory: &'a Path,
    /// Who is asked about calls, once the request has been shown, and answers the model's questions.
    pub(crate) person: Option<Person<'a>>,
    /// Those of the session.
    pub(crate) limits: TurnLimits,
}

/// Somebody at a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Person<'a> {
    pub(crate) terminal: &'a Terminal,
    /// The model's text is written to the same terminal.
    pub(crate) reads_along: bool,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Followed {
    session_id: SessionId,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// From the submission until the session was closed.
    duration: Duration,
    /// In US dollars, where known.
    cost: Option<f64>,
    /// What subagents have done.
    below: Below,
    /// A question of the model stood there when a signal came, and nobody will answer it.
    is_left: bool,
}

impl Followed {
    /// The failure that a run is which was left at a question; it was told when the signal came.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.is_left.then(|| Failure::silent(Exit::Interrupted))
    }

    /// What a view says last.
    pub(crate) fn closing<'a>(&'a self, failure: Option<&'a Failure>) -> Closing<'a> {
        Closing {
            session_id: &self.session_id,
            outcome: &self.outcome,
            exit: failure.map_or(Exit::Done, Failure::exit),
            failure,
            duration: self.duration,
            cost: self.cost,
            below: Some(&self.below),
            demonstration: None,
        }
    }
}

/// Submits the task, shows every event of the session and of its subagents, and closes it. A signal aborts the session, and so does a
/// reader of standard output who goes away.
///
/// # Errors
///
/// Those of [`Console::write`] and [`View::event`]; the session is closed then, too.
pub(crate) async fn follow(
    session: Session,
    task: Task<'_>,
    view: &mut View,
    console: &mut Console,
    interrupts: &Interrupts,
) -> Result<Followed, Failure> {
    let session_id = session.id().clone();
    let Task { prompt, model, directory, person, limits } = task;
    let terminal = person.map(|person| person.terminal);
    let mut bill = Bill::of(model.priced(), model.catalog());
    let mut below = Below::default();
    let (provider, model) = (model.route.provider.name(), model.route.model.as_str());
    let opening = Opening { session_id: &session_id, provider, model, directory };
    console.write(&view.opening(&opening)?).await?;

    let started = Instant::now();
    let handle = session.handle();
    let events = session.tree_events();
    let closed = CancellationToken::new();
    let gone = CancellationToken::new();
    let work = async {
        let outcome = converse(&session, prompt, person, limits, &gone).await;
        session.close().await;
        closed.cancel();
        outcome
    };
    let shown = async {
        // However it ends: without anybody who sees the question there is no answer to wait for.
        let _gone = gone.clone().drop_guard();
        let follower =
            Follower { view, console, started, bill: &mut bill, below: &mut below, terminal, runs: 0 };
        tokio::select! {
            biased;
            shown = follower.show(events, &handle) => shown,
            () = out_of_patience(interrupts, &closed) => Err(Failure::silent(Exit::Interrupted)),
        }
    };
    let (outcome, shown) = tokio::select! {
        both = async { tokio::join!(work, shown) } => both,
        never = abort_on_signal(interrupts, &handle) => match never {},
    };
    shown?;
    let outcome = outcome.map_err(|error| Failure::failed("the run was lost").because(&error))?;
    let is_left = outcome.status == OutcomeStatus::AwaitingInput && interrupts.have_come();
    Ok(Followed { session_id, outcome, duration: started.elapsed(), cost: bill.total(), below, is_left })
}

/// Submits the task, and what is answered to each question of the model. Each answer is a run of its own for the session
/// and part of one run for the person, so the outcome counts all of them, and so do the limits.
async fn converse(
    session: &Session,
    prompt: String,
    person: Option<Person<'_>>,
    limits: TurnLimits,
    gone: &CancellationToken,
) -> Result<Outcome, SessionError> {
    let started = Instant::now();
    let mut outcome = session.submit(prompt).await?;
    for run in 1_u64.. {
        if outcome.status != OutcomeStatus::AwaitingInput {
            break;
        }
        let Some(Person { terminal, reads_along }) = person else { break };
        let Some(limits) = remaining(&limits, session, started.elapsed()) else {
            // The answer could not be used any more.
            outcome.status = OutcomeStatus::RoundLimit;
            break;
        };
        let mark = end_of(run);
        // A final text that asks something may be on the screen already; a tool's question is not.
        let is_on_screen = reads_along && !asks_by_tool(session);
        let question = (!is_on_screen).then_some(outcome.text.as_str());
        let answer = tokio::select! {
            () = gone.cancelled() => None,
            answer = terminal.ask(&mark, question) => answer,
        };
        let Some(answer) = answer else { break };
        session.handle().set_limits(limits)?;
        outcome = session.submit(answer).await?.continuing(&outcome);
    }
    Ok(outcome)
}

/// The limits with as many rounds of tool calls and as much time as are left; `None` if there are no rounds left. The
/// session counts both from each input on, and all other limits from its beginning.
fn remaining(limits: &TurnLimits, session: &Session, elapsed: Duration) -> Option<TurnLimits> {
    let mut remaining = limits.clone();
    remaining.budget.wall_time = limits.budget.wall_time.map(|limit| limit.saturating_sub(elapsed));
    if limits.max_tool_rounds_per_input > 0 {
        let is_round = |turn: &Turn| turn.kind == TurnKind::ToolResults;
        let rounds = session.history().iter().filter(|turn| is_round(turn)).count() as u64;
        let left = limits.max_tool_rounds_per_input.saturating_sub(rounds);
        remaining.max_tool_rounds_per_input = Some(left).filter(|left| *left > 0)?;
    }
    Some(remaining)
}

/// Whether a tool has put the question: then the model has said nothing after the results.
fn asks_by_tool(session: &Session) -> bool {
    session.history().last().map(|turn| turn.kind) == Some(TurnKind::ToolResults)
}

/// Stands for the end of the run of this number, for whom waits until it is on the screen.
fn end_of(run: u64) -> String {
    format!("the end of run {run}")
}

/// Who looks on.
struct Follower<'a, 'm> {
    view: &'a mut View,
    console: &'a mut Console,
    started: Instant,
    bill: &'a mut Bill<'m>,
    below: &'a mut Below,
    terminal: Option<&'a Terminal>,
    /// How many inputs have been worked off.
    runs: u64,
}

impl Follower<'_, '_> {
    /// Writes until the session's last event, and adds up what the answers cost. A run that nobody can see is stopped.
    async fn show(mut self, mut events: TreeEvents, handle: &SessionHandle) -> Result<(), Failure> {
        let mut ticks = Ticks::new();
        loop {
            let done = tokio::select! {
                biased;
                () = ticks.next(self.view.waits()) => self.tick().await,
                event = events.next() => match event {
                    Some(event) => self.event(&event).await,
                    None => return Ok(()),
                },
            };
            if let Err(failure) = done {
                // A session that takes no command any more is at its end already.
                let _ = handle.abort();
                return Err(failure);
            }
        }
    }

    async fn tick(&mut self) -> Result<(), Failure> {
        let shown = self.view.tick(self.moment());
        self.console.write(&shown).await
    }

    async fn event(&mut self, event: &SessionEvent) -> Result<(), Failure> {
        self.bill.add(event);
        self.below.add(event);
        let shown = self.view.event(event, self.moment())?;
        self.console.write(&shown.text).await?;
        if let (Some(terminal), Some(mark)) = (self.terminal, &shown.asks) {
            terminal.shown(mark);
        }
        if let EventKind::ProcessingEnd { .. } = &event.kind
            && event.depth == 0
        {
            self.runs += 1;
            if let Some(terminal) = self.terminal {
                terminal.shown(&end_of(self.runs));
            }
        }
        Ok(())
    }

    fn moment(&self) -> Moment {
        Moment { now: self.started.elapsed(), size: console::size() }
    }
}

/// Comes every [`TICK`] while something waits, and not at all else.
struct Ticks {
    interval: Interval,
    is_running: bool,
}

impl Ticks {
    fn new() -> Self {
        let mut interval = tokio::time::interval(TICK);
        // Who writes to a slow terminal has no ticks to make up for.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, is_running: false }
    }

    /// Waits for the next one, the first a whole tick after something began to wait. Cancel safe.
    async fn next(&mut self, something_waits: bool) {
        if !something_waits {
            self.is_running = false;
            return pending().await;
        }
        if !self.is_running {
            self.interval.reset();
            self.is_running = true;
        }
        self.interval.tick().await;
    }
}

async fn abort_on_signal(interrupts: &Interrupts, handle: &SessionHandle) -> Infallible {
    interrupts.first().await;
    console::notice("interrupted: ending what runs; once more leaves at once");
    // As above.
    let _ = handle.abort();
    pending().await
}

/// Ends some time after an interrupted session has closed.
async fn out_of_patience(interrupts: &Interrupts, closed: &CancellationToken) {
    interrupts.first().await;
    closed.cancelled().await;
    tokio::time::sleep(PATIENCE).await;
}
