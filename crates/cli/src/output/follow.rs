//! Runs a session, writes its events to standard output, and ends it on signals.

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pintle_agent::{
    EventKind, Money, Outcome, OutcomeStatus, ReachedBudget, Run, RunError, Session, SessionEvent,
    SessionHandle, SessionId, Timestamp, TreeEvents, TurnKind, TurnLimits, UserMessage,
};
use pintle_host::answered_run::{AnsweredRun, RunInput, RunUser, run_until_answered};
use pintle_host::cost::CostTracker;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::model::Model;
use pintle_llm::{AnswerSchema, UnmatchedAnswer};
use pintle_tui::approve::Prompter;
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;
use pintle_tui::render::{Footer, Frame, Header, SubagentTotals, TICK, View};
use serde_json::Value;
use tokio::sync::MutexGuard;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::exit::command_failure::error_object;

/// How long an interrupted run waits for a stalled reader.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// Task for a session.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// Prompt of the user. `None` only continues the unfinished run.
    pub(crate) prompt: Option<UserMessage>,
    /// Run that an earlier process left unfinished.
    pub(crate) unfinished: Option<Run>,
    /// Whether the session can be resumed after this process exits.
    pub(crate) is_stored: bool,
    /// Whether an earlier process started the session. Its events are not shown again.
    pub(crate) is_resumed: bool,
    /// Model of the session.
    pub(crate) model: &'a Model,
    /// Working directory of the tools.
    pub(crate) directory: &'a Path,
    /// User who answers questions, if any.
    pub(crate) user: Option<User<'a>>,
    /// Prompter that decides on calls, if any.
    pub(crate) approvals: Option<&'a Prompter>,
    /// Turn limits of the session.
    pub(crate) limits: TurnLimits,
    /// Schema of the final answer.
    pub(crate) answers: Option<AnswerSchema>,
}

/// User at a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User<'a> {
    pub(crate) prompter: &'a Prompter,
    /// Whether the model's text is written to the same terminal.
    pub(crate) sees_text: bool,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct RunReport {
    session_id: SessionId,
    pub(crate) outcome: Outcome,
    /// Newest limit of the budget that was reached.
    pub(crate) reached: Option<ReachedBudget>,
    /// Time from submission until the session was closed.
    duration: Duration,
    /// Cost in US dollars, if known.
    cost: Option<Money>,
    subagents: SubagentTotals,
    /// Whether a signal arrived while a question of the model was open.
    question_abandoned: bool,
    is_stored: bool,
    /// Reason why the answer cannot be used.
    unmatched: Option<UnmatchedAnswer>,
    /// The answer, if it had to match a schema and does.
    answer: Option<Value>,
}

impl RunReport {
    /// Returns a failure if the answer does not match its schema, and a silent failure if a question was abandoned. The
    /// user was notified when the signal arrived.
    pub(crate) fn failure(&self) -> Option<Failure> {
        if self.question_abandoned {
            return Some(Failure::silent(FailureKind::Interrupted));
        }
        let unmatched = self.unmatched.as_ref()?;
        Some(
            Failure::new(FailureKind::UnmatchedAnswer, "the run ended without a usable answer")
                .caused_by(unmatched),
        )
    }

    /// Returns the data for the footer of a view.
    pub(crate) fn footer<'a>(&'a self, failure: Option<&'a Failure>) -> Footer<'a> {
        Footer {
            session_id: &self.session_id,
            is_stored: self.is_stored,
            outcome: &self.outcome,
            answer: self.answer.as_ref(),
            exit_code: failure.map_or(Exit::Done, |failure| failure.kind().into()).code(),
            failure,
            error: failure.map(error_object),
            duration: self.duration,
            cost: self.cost,
            subagents: Some(&self.subagents),
            demo: None,
        }
    }
}

/// Submits the task, shows the events of the session and its subagents, and closes the session. A signal or a closed
/// standard output aborts the session.
///
/// The session is closed after an error as well.
pub(crate) async fn follow(
    session: Session,
    task: Task<'_>,
    view: &mut View,
    console: &mut Console,
    interrupts: &Interrupts,
) -> Result<RunReport, Failure> {
    let session_id = session.id().clone();
    let Task {
        prompt,
        unfinished,
        is_stored,
        is_resumed,
        model,
        directory,
        user,
        approvals,
        limits,
        answers,
    } = task;
    let (provider, model_name) = (model.route.provider.name(), model.route.model.as_str());
    let header = Header { session_id: &session_id, provider, model: model_name, directory };
    console.write(&view.header(&header)?).await?;

    let handle = session.handle();
    let events = session.tree_events();
    let closed = CancellationToken::new();
    let unanswered = CancellationToken::new();
    let left = CancellationToken::new();
    let ending = SessionStopper { handle: &handle, is_stored, approvals, left: &left };
    let mut printer = EventPrinter {
        view,
        console,
        started: Instant::now(),
        cost: CostTracker::new(model.catalog_entry(), model.catalog()),
        subagents: SubagentTotals::default(),
        prompter: user.map(|user| user.prompter),
        finished_runs: 0,
        reached: None,
        ending,
        first_new_event: session.first_new_event(),
        is_in_past: is_resumed,
        resumed_at: None,
    };
    let work = async {
        let input = RunInput { prompt, unfinished, limits, answers };
        let outcome = converse(&session, input, user, &unanswered).await;
        if is_stored {
            // Fails only if the session has ended.
            let _ = session.handle().stop_turn();
            session.detach().await;
        } else {
            session.close().await;
        }
        closed.cancel();
        outcome
    };
    let print = async {
        // Stop waiting for an answer when printing ends, because the question is no longer visible.
        let _guard = unanswered.clone().drop_guard();
        tokio::select! {
            biased;
            printed = printer.run(events) => printed,
            () = reader_timeout(interrupts, &closed) => Err(Failure::silent(FailureKind::Interrupted)),
        }
    };
    let (outcome, printed) = tokio::select! {
        both = async { tokio::join!(work, print) } => both,
        never = stop_on_signal(interrupts, ending, &unanswered) => match never {},
    };
    if left.is_cancelled() {
        let hint =
            format!("`pintle approvals decide` decides, and `pintle run --resume {session_id}` resumes");
        return Err(Failure::new(
            FailureKind::Interrupted,
            "the terminal is gone while a call waits for approval",
        )
        .with_hint(&hint));
    }
    printed?;
    let AnsweredRun { outcome, answer, unmatched, .. } =
        outcome.or_failed("the session ended unexpectedly")?;
    let question_abandoned = outcome.status == OutcomeStatus::AwaitingInput && interrupts.is_interrupted();
    let EventPrinter { started, cost, subagents, reached, .. } = printer;
    let (duration, cost) = (started.elapsed(), cost.total());
    Ok(RunReport {
        session_id,
        outcome,
        reached,
        duration,
        cost,
        subagents,
        question_abandoned,
        is_stored,
        unmatched,
        answer,
    })
}

/// Runs the session. The user answers the questions of the model, until `unanswered` is cancelled.
async fn converse(
    session: &Session,
    input: RunInput,
    user: Option<User<'_>>,
    unanswered: &CancellationToken,
) -> Result<AnsweredRun, RunError> {
    let user = user.map(|user| TerminalUser { user, session, unanswered });
    run_until_answered(session, input, user.as_ref().map(|user| user as &dyn RunUser)).await
}

/// User who answers the questions of the model at the terminal.
struct TerminalUser<'a> {
    user: User<'a>,
    session: &'a Session,
    /// Cancelled when no answer can follow.
    unanswered: &'a CancellationToken,
}

#[async_trait]
impl RunUser for TerminalUser<'_> {
    async fn answer(&self, run: u64, question: &str) -> Option<String> {
        // A question at the end of the model's text may already be on screen, unlike a question of a tool.
        let is_on_screen = self.user.sees_text && !is_asked_by_tool(self.session);
        let question = (!is_on_screen).then_some(question);
        let key = run_end_key(run);
        tokio::select! {
            () = self.unanswered.cancelled() => None,
            answer = self.user.prompter.ask(&key, question) => answer,
        }
    }
}

/// Returns whether a tool asked the question: the model has not responded to the last results.
fn is_asked_by_tool(session: &Session) -> bool {
    session.history().last().map(|turn| turn.kind) == Some(TurnKind::ToolResults)
}

/// Returns the key under which the end of a run is reported to the prompter.
fn run_end_key(run: u64) -> String {
    format!("the end of run {run}")
}

/// Writes the events of a session and adds up its cost.
struct EventPrinter<'a, 'm> {
    view: &'a mut View,
    console: &'a mut Console,
    started: Instant,
    cost: CostTracker<'m>,
    subagents: SubagentTotals,
    prompter: Option<&'a Prompter>,
    /// Number of inputs processed.
    finished_runs: u64,
    /// Newest limit of the budget that was reached.
    reached: Option<ReachedBudget>,
    ending: SessionStopper<'a>,
    /// Number of the first event of this process.
    first_new_event: u64,
    /// Whether an earlier process emitted the events that are read.
    is_in_past: bool,
    /// Time at which this process resumed the session.
    resumed_at: Option<Timestamp>,
}

impl EventPrinter<'_, '_> {
    /// Writes events until the session's last. Aborts the session if writing fails.
    async fn run(&mut self, mut events: TreeEvents) -> Result<(), Failure> {
        let mut ticker = Ticker::new();
        loop {
            let written = tokio::select! {
                biased;
                () = ticker.next(self.view.is_animated()) => self.tick().await,
                event = events.next() => match event {
                    Some(event) => self.event(&event).await,
                    None => return Ok(()),
                },
            };
            if let Err(failure) = written {
                if console::is_terminal_gone() {
                    self.ending.hang_up();
                } else {
                    self.ending.stop();
                }
                return Err(failure);
            }
        }
    }

    async fn tick(&mut self) -> Result<(), Failure> {
        let _screen = lock_screen(self.prompter).await;
        let text = self.view.tick(self.frame());
        self.console.write(&text).await
    }

    async fn event(&mut self, event: &SessionEvent) -> Result<(), Failure> {
        if self.is_past(event) {
            return Ok(());
        }
        self.cost.add(event);
        self.subagents.add(event);
        if let EventKind::BudgetReached { budget, limit, spent, scope, .. } = &event.kind {
            self.reached = Some(ReachedBudget::new(*scope, *budget, *limit, *spent));
        }
        {
            let _screen = lock_screen(self.prompter).await;
            let update = self.view.event(event, self.frame())?;
            self.console.write(&update.text).await?;
            if let (Some(prompter), Some(key)) = (self.prompter, &update.approval) {
                prompter.mark_shown(key);
            }
        }
        if let EventKind::ProcessingEnd { .. } = &event.kind
            && event.depth == 0
        {
            self.finished_runs += 1;
            if let Some(prompter) = self.prompter {
                prompter.mark_shown(&run_end_key(self.finished_runs));
            }
        }
        Ok(())
    }

    /// Returns whether an earlier process emitted the event, for the session or for a subagent that is resumed with it.
    fn is_past(&mut self, event: &SessionEvent) -> bool {
        if self.is_in_past && event.depth == 0 && event.seq >= self.first_new_event {
            self.is_in_past = false;
            self.resumed_at = Some(event.timestamp);
            return matches!(event.kind, EventKind::SessionResumed { .. });
        }
        self.is_in_past || self.resumed_at.is_some_and(|resumed_at| event.timestamp < resumed_at)
    }

    fn frame(&self) -> Frame {
        Frame { now: self.started.elapsed(), size: console::size() }
    }
}

/// Locks the screen if questions are asked on it.
async fn lock_screen(prompter: Option<&Prompter>) -> Option<MutexGuard<'_, ()>> {
    match prompter {
        Some(prompter) => Some(prompter.screen().await),
        None => None,
    }
}

/// Timer that fires every [`TICK`] while the view is animated.
struct Ticker {
    interval: Interval,
    is_running: bool,
}

impl Ticker {
    fn new() -> Self {
        let mut interval = tokio::time::interval(TICK);
        // Do not catch up on ticks missed while writing to a slow terminal.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, is_running: false }
    }

    /// Waits for the next tick. The first one comes a full tick after the animation started. Cancel safe.
    async fn next(&mut self, is_animated: bool) {
        if !is_animated {
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

async fn stop_on_signal(
    interrupts: &Interrupts,
    ending: SessionStopper<'_>,
    unanswered: &CancellationToken,
) -> Infallible {
    let terminal_gone = async {
        match ending.approvals {
            Some(approvals) => approvals.terminal_gone().await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = interrupts.first_signal() => {}
        () = terminal_gone => {}
    }
    if !interrupts.is_interrupted() || interrupts.is_hangup() {
        ending.hang_up();
    } else {
        console::notice("interrupted: stopping running commands; interrupt again to exit immediately");
        ending.stop();
    }
    unanswered.cancel();
    pending().await
}

/// How to end the session before its run completes.
#[derive(Clone, Copy)]
struct SessionStopper<'a> {
    handle: &'a SessionHandle,
    is_stored: bool,
    approvals: Option<&'a Prompter>,
    /// Cancelled if the session is left to another process.
    left: &'a CancellationToken,
}

impl SessionStopper<'_> {
    /// Stops the run. A kept session is only interrupted.
    fn stop(self) {
        // Fails only if the session has already ended.
        let _ = if self.is_stored { self.handle.stop_turn() } else { self.handle.close() };
    }

    /// Stops the run because the terminal is gone. A call of a kept session that waits for approval is left to another
    /// process.
    fn hang_up(self) {
        let is_waiting = self.is_stored && self.approvals.is_some_and(Prompter::can_be_left);
        if is_waiting && self.handle.detach().is_ok() {
            self.left.cancel();
        } else {
            console::notice("interrupted: stopping running commands; interrupt again to exit immediately");
            self.stop();
        }
    }
}

/// Completes [`READER_TIMEOUT`] after an interrupted session has closed.
async fn reader_timeout(interrupts: &Interrupts, closed: &CancellationToken) {
    interrupts.first_signal().await;
    closed.cancelled().await;
    tokio::time::sleep(READER_TIMEOUT).await;
}
