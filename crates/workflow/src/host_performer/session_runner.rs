//! Sessions of a task: each in its workspace, stored, and without a user to ask.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::protocol::InputKind;
use pintle_agent::{
    EventKind, Events, Limits, Money, OutcomeStatus, Session, SessionHandle, SessionId, TreeEvents,
    TurnLimits, UserMessage,
};
use pintle_host::answered_run::{AnsweredRun, REPAIRS, RunInput, run_until_answered};
use pintle_host::attendant::DenyingAttendant;
use pintle_host::cost::CostTracker;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::model::Model;
use pintle_host::route::ModelChoice;
use pintle_host::sessions::{SelectedSession, Sessions};
use pintle_host::{OpenRequest, OpenSession, SessionSpec, Surface};
use pintle_llm::{AnswerSchema, ErrorInfo, ErrorKind};
use pintle_store::{StoreError, read_record};
use tokio_util::sync::CancellationToken;

use super::workspace_factory::{HostWorkspaceFactory, work_error};
use crate::session_runner::{
    MAX_LOOPS, SessionAssignment, SessionRunner, SteeringMessage, WorkError, WorkResult,
};
use crate::task::{ModelCost, WorkCost, WorkEnd};

/// Property of a summary with the task that a session works for.
const TASK: &str = "task";

/// Runs sessions with the settings of a user.
#[derive(Debug)]
pub(super) struct HostSessionRunner {
    workspace_factory: HostWorkspaceFactory,
    running: RunningSessions,
}

/// Sessions that work now, or are being opened.
#[derive(Debug, Default)]
struct RunningSessions(Mutex<BTreeMap<String, RunningSession>>);

#[derive(Debug)]
enum RunningSession {
    /// The session is being opened. These messages follow its first one.
    Opening(Vec<SteeringMessage>),
    Open(SessionHandle),
}

/// Session of [`RunningSessions`], which is removed when this is dropped.
struct RunningEntry<'a> {
    sessions: &'a RunningSessions,
    session: String,
}

impl RunningSessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RunningSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session that is being opened. These messages follow its first one.
    fn enter(&self, session: &str, steering: Vec<SteeringMessage>) -> RunningEntry<'_> {
        self.lock().insert(session.to_owned(), RunningSession::Opening(steering));
        RunningEntry { sessions: self, session: session.to_owned() }
    }

    /// Sends a message to a session. Returns whether the session accepts it.
    async fn steer(&self, session: &str, message: SteeringMessage) -> bool {
        let handle = match self.lock().get_mut(session) {
            Some(RunningSession::Open(handle)) => handle.clone(),
            Some(RunningSession::Opening(steering)) => {
                steering.push(message);
                return true;
            }
            None => return false,
        };
        steer(&handle, message).await
    }
}

impl Drop for RunningEntry<'_> {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.session);
    }
}

impl HostSessionRunner {
    pub(super) fn new(workspace_factory: HostWorkspaceFactory) -> Self {
        Self { workspace_factory, running: RunningSessions::default() }
    }

    async fn try_run(
        &self,
        assignment: SessionAssignment,
        cancel: &CancellationToken,
    ) -> Result<WorkResult, Failure> {
        let workspace = &assignment.workspace;
        let (mut spec, host) = self.workspace_factory.settings_for(workspace);
        let Some(run_limit) = run_limit(&assignment.limits) else {
            return Ok(WorkResult::new(WorkEnd::Limit, WorkCost::default()));
        };
        let is_contained = self.workspace_factory.enter_container(&mut spec, workspace).await?;
        let mut spec = apply_settings(spec, &assignment);
        self.workspace_factory.add_grant(&mut spec)?;
        let sessions = host.sessions().await?;
        let selected = select_session(sessions, &SessionId::new(&assignment.session)).await?;
        let is_sent = selected.as_ref().is_some_and(|selected| has_message(selected, &assignment.message));
        let mut surface = Surface::new(Arc::new(DenyingAttendant::new(Some(host.process_env().principal()))));
        surface.is_disposable = true;
        (surface.readable, surface.is_contained) = (workspace.readable_directories(), is_contained);
        let model = Model::choose(&ModelChoice::try_from(&spec)?, host.process_env()).await?;
        let request = OpenRequest {
            remembered: self.workspace_factory.remembered.clone(),
            selected,
            model: Some(Arc::new(model)),
            run_limit,
            ..OpenRequest::from(spec)
        };
        let opened = host.open(request, surface).await?;
        let OpenSession { session, environment, servers, model, limits, .. } = opened;
        let worked = self.work(session.into_session(), &assignment, is_sent, &model, limits, cancel).await;
        servers.close().await;
        let closed = environment.close().await;
        worked.and_then(|worked| closed.map(|()| worked))
    }

    /// Works on an assignment in its session, and suspends the session.
    async fn work(
        &self,
        mut session: Session,
        assignment: &SessionAssignment,
        is_sent: bool,
        model: &Model,
        limits: TurnLimits,
        cancel: &CancellationToken,
    ) -> Result<WorkResult, Failure> {
        let unfinished = session.resumed();
        let answers = assignment.answer.clone().map(|schema| AnswerSchema::new(schema, REPAIRS));
        let answers = answers.transpose().or_failed("invalid answer schema")?;
        let message = match (is_sent, &unfinished) {
            (false, _) => Some(assignment.message.clone()),
            (true, Some(_)) => None,
            // The process died after the run, and before its result was recorded.
            (true, None) => Some("Give your last answer once more.".to_owned()),
        };
        let events = session.tree_events();
        let handle = session.handle();
        let previous =
            self.running.lock().insert(assignment.session.clone(), RunningSession::Open(handle.clone()));
        if let Some(RunningSession::Opening(steering)) = previous {
            for message in steering {
                // Fails only for a session that has ended.
                steer(&handle, message).await;
            }
        }
        let prompt = message.map(UserMessage::from);
        let work = run_until_answered(&session, RunInput { prompt, unfinished, limits, answers }, None);
        let ended = tokio::select! {
            ended = run_unless_looping(work, &session, &assignment.message) => Some(ended),
            () = cancel.cancelled() => None,
        };
        // The run stays unfinished, for the process that resumes the session.
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
        let spent = sum_cost(events, &assignment.message, model).await;
        let Some(ended) = ended else { return Ok(WorkResult::new(WorkEnd::Failed, spent)) };
        let (ended, is_looping) = ended;
        let AnsweredRun { outcome, answer, .. } = ended.or_failed("the session ended unexpectedly")?;
        if is_looping && outcome.status == OutcomeStatus::Interrupted {
            return Ok(WorkResult::new(WorkEnd::Loop, spent));
        }
        // A limit is not an error: the changes up to it are checked.
        let is_limit = outcome.status == OutcomeStatus::ContextFull;
        let error = outcome.error.as_ref().filter(|_| !is_limit);
        let error = error.map(|error| describe_error(error, &model.route.model));
        Ok(WorkResult::new(work_end(outcome.status), spent).with_answer(answer).with_error(error))
    }
}

#[async_trait]
impl SessionRunner for HostSessionRunner {
    async fn run(
        &self,
        assignment: SessionAssignment,
        cancel: &CancellationToken,
    ) -> Result<WorkResult, WorkError> {
        // No message is accepted after this future has ended or was dropped.
        let _entry = self.running.enter(&assignment.session, assignment.steering.clone());
        self.try_run(assignment, cancel).await.map_err(|failure| work_error(&failure))
    }

    async fn steer(&self, session: &str, message: SteeringMessage) -> bool {
        self.running.steer(session, message).await
    }
}

/// Sends a message on behalf of its author. Returns whether the session accepts it.
async fn steer(handle: &SessionHandle, SteeringMessage { text, author }: SteeringMessage) -> bool {
    let handle = author.map_or_else(|| handle.clone(), |author| handle.acting_as(author));
    handle.steer(text).await.is_ok()
}

/// Returns the session if it exists. A session whose process died before anything was recorded is started again.
async fn select_session(sessions: Sessions, id: &SessionId) -> Result<Option<SelectedSession>, Failure> {
    let summary = sessions.store().summary(id).await.or_failed("the session cannot be read")?;
    let Some(summary) = summary else { return Ok(None) };
    if let Err(StoreError::NotFound(_)) = read_record(sessions.store(), id).await {
        sessions.store().delete(id).await.or_failed("the session cannot be started again")?;
        return Ok(None);
    }
    SelectedSession::load(sessions, summary).await.map(Some)
}

/// Returns whether a session has received a message.
fn has_message(selected: &SelectedSession, text: &str) -> bool {
    selected.record().entries.iter().any(|entry| {
        matches!(&entry.input.kind, InputKind::Submit { message, .. } if message.text.starts_with(text))
    })
}

/// Returns the limits on the run of an assignment; `None` if one of them is exhausted.
fn run_limit(limits: &Limits) -> Option<Limits> {
    let is_exhausted = limits.cost == Some(Money::ZERO)
        || limits.tokens == Some(0)
        || limits.wall_time == Some(Duration::ZERO);
    (!is_exhausted).then_some(*limits)
}

/// Returns the settings with the settings of the assignment.
fn apply_settings(mut spec: SessionSpec, assignment: &SessionAssignment) -> SessionSpec {
    spec.persistence.id = Some(assignment.session.clone());
    spec.persistence.properties = Some([(TASK.to_owned(), assignment.task.clone())].into());
    if let Some(model) = &assignment.model {
        set_model(&mut spec, model.clone());
    }
    spec.model.reasoning_effort = assignment.effort.clone().or(spec.model.reasoning_effort);
    spec
}

/// Sets the model. For a model of the catalog, the catalog decides the provider, unless the settings name an endpoint or a
/// script.
pub(super) fn set_model(spec: &mut SessionSpec, model: String) {
    let settings = &mut spec.model;
    let has_own_endpoint =
        settings.base_url.is_some() || settings.script.is_some() || settings.profile.is_some();
    if !has_own_endpoint && pintle_llm::get_model_info(&model).is_some() {
        settings.provider = None;
    }
    settings.name = Some(model);
}

/// Waits for the end of the work, and interrupts it after repeated loops. Returns whether it was interrupted.
async fn run_unless_looping<T>(work: impl Future<Output = T>, session: &Session, message: &str) -> (T, bool) {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        ended = &mut work => return (ended, false),
        () = wait_for_loops(session.events(), message) => {}
    }
    // A session that cannot be interrupted is about to end.
    let _ = session.handle().stop_turn();
    (work.await, true)
}

/// Waits until loop detection has triggered `MAX_LOOPS` times since the message.
async fn wait_for_loops(mut events: Events, message: &str) {
    let mut loops = 0;
    while let Some(event) = events.next().await {
        if matches!(&event.kind, EventKind::UserInput { content, .. } if content.starts_with(message)) {
            loops = 0;
        } else if matches!(event.kind, EventKind::LoopDetection { .. }) {
            loops += 1;
        }
        if loops == MAX_LOOPS {
            return;
        }
    }
    pending().await
}

/// Adds up the cost of the session since the message, in this process and in an earlier one, for each model.
async fn sum_cost(mut events: TreeEvents, message: &str, model: &Model) -> WorkCost {
    let own = model.catalog_entry();
    let tracker = || CostTracker::new(own, model.catalog());
    let mut subagents = BTreeMap::<SessionId, String>::new();
    let mut models = BTreeMap::<String, (CostTracker<'_>, u64)>::new();
    while let Some(event) = events.next().await {
        if let EventKind::UserInput { content, .. } = &event.kind {
            if event.depth == 0 && content.starts_with(message) {
                models.clear();
            }
        } else if let EventKind::SessionStart { model: name, .. } = &event.kind {
            if event.depth > 0 {
                subagents.insert(event.session_id.clone(), name.clone());
                // From now on, the tracker knows the model of the subagent.
                models.entry(name.clone()).or_insert_with(|| (tracker(), 0)).0.add(&event);
            }
        } else if let EventKind::ModelResponse { usage, .. } = &event.kind {
            let name = subagents.get(&event.session_id).unwrap_or(&model.route.model);
            let (cost, tokens) = models.entry(name.clone()).or_insert_with(|| (tracker(), 0));
            cost.add(&event);
            *tokens = tokens.saturating_add(usage.total_tokens);
        }
    }
    let mut spent = WorkCost::default();
    for (name, (tracker, tokens)) in models {
        let cost = tracker.total().unwrap_or_default();
        // A script costs nothing.
        let is_price_unknown = tracker.total().is_none() && !model.is_scripted();
        spent.add_model(name, ModelCost { cost, is_price_unknown, tokens });
    }
    spent
}

/// Returns the message of an error. The message about a missing model may be its name alone.
fn describe_error(error: &ErrorInfo, model: &str) -> String {
    if error.kind == ErrorKind::NotFound {
        return format!("the provider does not find the model `{model}`: {}", error.message);
    }
    error.message.clone()
}

fn work_end(status: OutcomeStatus) -> WorkEnd {
    match status {
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => WorkEnd::Finished,
        OutcomeStatus::Budget => WorkEnd::Limit,
        OutcomeStatus::RoundLimit | OutcomeStatus::TurnLimit => WorkEnd::TurnLimit,
        OutcomeStatus::ContextFull => WorkEnd::ContextFull,
        OutcomeStatus::OutputLimit => WorkEnd::OutputLimit,
        OutcomeStatus::Refused
        | OutcomeStatus::Interrupted
        | OutcomeStatus::Aborted
        | OutcomeStatus::Failed
        | _ => WorkEnd::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_session_whose_run_was_dropped_accepts_no_message() {
        let message = || SteeringMessage { text: "mind the tests".to_owned(), author: None };
        let sessions = RunningSessions::default();
        assert!(!sessions.steer("s", message()).await);
        let mut run = Box::pin(async {
            let _entry = sessions.enter("s", vec![message()]);
            pending::<()>().await;
        });
        let polled = std::future::poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        assert!(sessions.steer("s", message()).await && !sessions.steer("other", message()).await);
        let number = match sessions.lock().get("s") {
            Some(RunningSession::Opening(steering)) => steering.len(),
            Some(RunningSession::Open(_)) | None => 0,
        };
        assert_eq!(number, 2);
        drop(run);
        assert!(!sessions.steer("s", message()).await);
    }

    #[test]
    fn the_limits_of_a_task_are_limits_on_its_run() {
        let none = Limits::default();
        let some =
            none.with_cost(Money::from_micros(1)).with_tokens(7).with_wall_time(Duration::from_secs(9));
        for (limits, expected) in [
            (none, Some(none)),
            (some, Some(some)),
            (none.with_cost(Money::ZERO), None),
            (none.with_tokens(0), None),
            (none.with_wall_time(Duration::ZERO), None),
        ] {
            assert_eq!(run_limit(&limits), expected, "{limits:?}");
        }
    }

    #[test]
    fn each_status_is_an_end_of_work() {
        for (status, end) in [
            (OutcomeStatus::Completed, WorkEnd::Finished),
            (OutcomeStatus::AwaitingInput, WorkEnd::Finished),
            (OutcomeStatus::Budget, WorkEnd::Limit),
            (OutcomeStatus::RoundLimit, WorkEnd::TurnLimit),
            (OutcomeStatus::TurnLimit, WorkEnd::TurnLimit),
            (OutcomeStatus::ContextFull, WorkEnd::ContextFull),
            (OutcomeStatus::OutputLimit, WorkEnd::OutputLimit),
            (OutcomeStatus::Refused, WorkEnd::Failed),
            (OutcomeStatus::Interrupted, WorkEnd::Failed),
            (OutcomeStatus::Aborted, WorkEnd::Failed),
            (OutcomeStatus::Failed, WorkEnd::Failed),
        ] {
            assert_eq!(work_end(status), end, "{status:?}");
        }
    }
}
