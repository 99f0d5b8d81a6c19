//! Tasks whose steps are scripted, as another process would run them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pintle_agent::{Money, SessionId};
use pintle_store::{Fence, FileStore, SessionStore as _};
use pintle_workflow::contract::{AnchorPlan, CandidatePlan, Contract, DecisionGate, TaskCheck};
use pintle_workflow::evidence::{Baseline, CandidateFacts};
use pintle_workflow::task::{
    ReviewFacts, StepId, StepKind, StepOutput, Task, TaskOutcome, TaskStep, WorkCost, WorkEnd, WorkFacts,
};
use pintle_workflow::{
    BlobReference, ChangeKind, ChangedFile, CommandEnd, CommandRun, Diff, LocalTaskHost, Performer,
    SteeringMessage, read_task,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::tests::harness::{Fixture, PATIENCE};

/// Returns a contract with two candidates.
pub(super) fn contract() -> Contract {
    let anchor = AnchorPlan::None { because: "it is scripted".to_owned() };
    Contract::new("Sums are right.\nAll of them.")
        .with_check(TaskCheck::new("tests", "make test"))
        .with_anchor(anchor)
        .with_candidates(vec![CandidatePlan::default(); 2])
}

/// Performs steps from a script: the first review finds a fault, and the second attempt of the first candidate is wrong.
#[derive(Debug)]
pub(super) struct Scripted {
    store: FileStore,
    id: SessionId,
    /// Steps of work that may end.
    pub(super) may_end: Semaphore,
    pub(super) steered: Mutex<Vec<String>>,
}

impl Scripted {
    async fn diff(&self, step: &StepId) -> Diff {
        let candidate = step.candidate.unwrap();
        let patch = format!("patch of candidate {candidate}, attempt {}\n", step.attempt).into_bytes();
        let bytes = patch.len() as u64;
        let hash = self.store.blobs(&self.id).put(patch).await.unwrap().to_string();
        let path = "src/sums.py".to_owned();
        let file = ChangedFile { path, kind: ChangeKind::Modified, added: 3, removed: 0 };
        Diff { patch: BlobReference { hash, bytes }, files: vec![file], dropped: Vec::new() }
    }

    async fn found(&self, step: &StepId) -> StepOutput {
        let session = step.to_string();
        let runs = |code| [("tests".to_owned(), vec![CommandRun::new(CommandEnd::Exited(code))])].into();
        match step.kind {
            StepKind::Baseline => StepOutput::Baseline(Baseline { checks: runs(0), ..Baseline::default() }),
            StepKind::Anchor => StepOutput::failed("the contract has no anchor"),
            StepKind::Work => {
                let diff = Some(self.diff(step).await);
                StepOutput::Work(WorkFacts {
                    session,
                    end: WorkEnd::Finished,
                    diff,
                    unfit: None,
                    report: None,
                })
            }
            StepKind::Evidence => {
                let code = i32::from((step.candidate, step.attempt) == (Some(0), 2));
                let facts = CandidateFacts::from_diff(self.diff(step).await);
                StepOutput::Evidence(Box::new(CandidateFacts { checks: runs(code), ..facts }))
            }
            StepKind::Plan => StepOutput::failed("the contract has no plan"),
            StepKind::Review => {
                let is_first = (step.candidate, step.attempt) == (Some(0), 1);
                let findings = is_first.then(|| "a fault".to_owned()).into_iter().collect();
                StepOutput::Review(ReviewFacts::new(session, findings, ""))
            }
        }
    }
}

#[async_trait]
impl Performer for Scripted {
    async fn perform(
        &self,
        _: &Task,
        step: &TaskStep,
        _: &Fence,
        cancel: &CancellationToken,
    ) -> (StepOutput, WorkCost) {
        let spent =
            WorkCost { cost: Money::from_dollars(0.25), tokens: 100, millis: 10, ..WorkCost::default() };
        if step.id.kind == StepKind::Work {
            tokio::select! {
                permit = self.may_end.acquire() => permit.unwrap().forget(),
                () = cancel.cancelled() => return (StepOutput::failed("stopped"), spent),
            }
        }
        (self.found(&step.id).await, spent)
    }

    async fn steer(&self, step: &StepId, SteeringMessage { text, .. }: SteeringMessage) -> bool {
        self.steered.lock().unwrap().push(format!("{step}: {text}"));
        true
    }
}

/// A task that runs beside the server. It is stopped when this is dropped.
pub(super) struct Running {
    pub(super) id: SessionId,
    pub(super) performer: Arc<Scripted>,
    running: JoinSet<TaskOutcome>,
}

impl Running {
    /// Starts a task of which so many steps of work end.
    pub(super) async fn start(fixture: &Fixture, id: &str, contract: Contract, may_end: usize) -> Self {
        let store = &fixture.host.store;
        let host = LocalTaskHost::create(store, SessionId::new(id), contract).await.unwrap();
        Self::of(fixture, host, may_end)
    }

    /// Starts a task that waits for a person in the end.
    pub(super) async fn start_gated(fixture: &Fixture, id: &str) -> Self {
        Self::start(fixture, id, contract().with_gate(DecisionGate::Result), 9).await
    }

    /// Goes on with a task.
    pub(super) async fn resume(fixture: &Fixture, id: &str) -> Self {
        let host = LocalTaskHost::open(&fixture.host.store, &SessionId::new(id)).await.unwrap();
        Self::of(fixture, host, 9)
    }

    fn of(fixture: &Fixture, mut host: LocalTaskHost, may_end: usize) -> Self {
        let id = host.id().clone();
        let performer = Arc::new(Scripted {
            store: fixture.host.store.clone(),
            id: id.clone(),
            may_end: Semaphore::new(may_end),
            steered: Mutex::default(),
        });
        let (mut running, scripted) = (JoinSet::new(), Arc::clone(&performer));
        running.spawn(async move { host.run(scripted).await.unwrap() });
        Self { id, performer, running }
    }

    pub(super) async fn until_gate(&self, store: &FileStore) {
        self.until(store, |task| task.pending().gate.is_some()).await;
    }

    /// Waits until the task on record is so.
    pub(super) async fn until(&self, store: &FileStore, is_so: impl Fn(&Task) -> bool) {
        let end = tokio::time::Instant::now() + PATIENCE;
        while !is_so(&read_task(store, &self.id).await.unwrap()) {
            assert!(tokio::time::Instant::now() < end);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Waits for the end.
    pub(super) async fn outcome(mut self) -> TaskOutcome {
        let ended = tokio::time::timeout(PATIENCE, self.running.join_next()).await;
        ended.unwrap().unwrap().unwrap()
    }

    /// Ends the process that runs it, so to speak.
    pub(super) async fn stop(mut self) {
        self.running.shutdown().await;
    }
}

/// Runs a task to its end.
pub(super) async fn done_task(fixture: &Fixture, id: &str) {
    let outcome = Running::start(fixture, id, contract(), 9).await.outcome().await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{outcome:?}");
}
