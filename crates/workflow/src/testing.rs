//! A scripted performer for tests of hosts, without repositories, sessions or commands.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::Fence;
use pintle_store::SessionId;
use tokio_util::sync::CancellationToken;

use crate::anchor::AnchorFacts;
use crate::command_run::{BlobReference, CommandEnd, CommandRun};
use crate::contract::{CandidatePlan, Contract, TaskCheck};
use crate::diff::{ChangeKind, ChangedFile, Diff};
use crate::evidence::{Baseline, CandidateFacts};
use crate::local::Performer;
use crate::results::{TestRun, TestStatus};
use crate::session_runner::SteeringMessage;
use crate::supervisor::PerformerFactory;
use crate::task::{
    PlanFacts, ReviewFacts, StepId, StepKind, StepOutput, Task, TaskStep, WorkCost, WorkEnd, WorkFacts,
};

/// Returns a contract with two candidates, an anchor, and one check. With [`ScriptedPerformer`], it has ten steps in any
/// order: the review sends the first candidate back, which then fails, and the second candidate is chosen.
#[must_use]
pub fn contract() -> Contract {
    Contract::new("Sums of negative numbers are right.\nAll of them.")
        .with_check(TaskCheck::new("tests", "make test"))
        .with_candidates(vec![CandidatePlan::default(); 2])
}

/// Performs steps in memory: the first review finds a fault, the second attempt of the first candidate is wrong, and all
/// other steps succeed at once. Each step costs 0.25 dollars and 100 tokens.
#[derive(Debug, Default)]
pub struct ScriptedPerformer {
    started: Mutex<Vec<String>>,
    steered: Mutex<Vec<String>>,
    cancelled: AtomicUsize,
    cleaned: AtomicUsize,
    hanging: Option<StepKind>,
    time: Duration,
    cleaning: Duration,
    log: Option<PathBuf>,
    /// Number of starts and ends of steps until the process dies. With 0, it does not die.
    life: AtomicUsize,
}

impl ScriptedPerformer {
    /// Makes steps of this kind wait until they are cancelled.
    #[must_use]
    pub fn with_hanging(mut self, kind: StepKind) -> Self {
        self.hanging = Some(kind);
        self
    }

    /// Makes each step take this time.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Makes the removal of files take this time.
    #[must_use]
    pub fn with_cleaning(mut self, time: Duration) -> Self {
        self.cleaning = time;
        self
    }

    /// Appends a line to this file when a step starts, and another line when it has ended.
    #[must_use]
    pub fn with_log(mut self, log: PathBuf) -> Self {
        self.log = Some(log);
        self
    }

    /// Aborts the process at event number `event`, from 1. The start and the end of each step are events: a start is already
    /// on record then, and the result at an end is not yet.
    #[must_use]
    pub fn with_death_at(mut self, event: usize) -> Self {
        self.life = AtomicUsize::new(event);
        self
    }

    /// Returns the started steps, in order.
    #[must_use]
    pub fn started(&self) -> Vec<String> {
        lock(&self.started).clone()
    }

    /// Returns the messages that steps have received, with the step.
    #[must_use]
    pub fn steered(&self) -> Vec<String> {
        lock(&self.steered).clone()
    }

    /// Returns the number of steps that were cancelled.
    #[must_use]
    pub fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the number of cleanups.
    #[must_use]
    pub fn cleaned(&self) -> usize {
        self.cleaned.load(Ordering::Relaxed)
    }

    fn log(&self, event: &str, step: &StepId) {
        self.write(event, step);
        let taken = |life: usize| life.checked_sub(1);
        if self.life.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken) == Ok(1) {
            std::process::abort();
        }
    }

    fn write(&self, event: &str, step: &StepId) {
        let Some(path) = &self.log else { return };
        let written = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{event} {step}\n").as_bytes()));
        if let Err(error) = written {
            tracing::error!(%error, "the log of the steps cannot be written");
        }
    }
}

#[async_trait]
impl Performer for ScriptedPerformer {
    async fn perform(
        &self,
        _task: &Task,
        step: &TaskStep,
        fence: &Fence,
        cancel: &CancellationToken,
    ) -> (StepOutput, WorkCost) {
        lock(&self.started).push(step.id.to_string());
        self.log("began", &step.id);
        let spent = WorkCost { usd: 0.25, tokens: 100, millis: 10, ..WorkCost::default() };
        if self.hanging == Some(step.id.kind) {
            cancel.cancelled().await;
            self.cancelled.fetch_add(1, Ordering::Relaxed);
            return (StepOutput::failed("it was stopped"), spent);
        }
        tokio::select! {
            () = tokio::time::sleep(self.time) => {}
            () = cancel.cancelled() => {
                self.cancelled.fetch_add(1, Ordering::Relaxed);
                return (StepOutput::failed("it was stopped"), spent);
            }
        }
        if fence.check().is_err() {
            return (StepOutput::failed("another process has the task"), spent);
        }
        self.log("ended", &step.id);
        match (step.id.kind, step.id.candidate, step.id.attempt) {
            (StepKind::Review, Some(0), 1) => (review(&["a fault"]), spent),
            (StepKind::Evidence, Some(0), 2) => (failing_output(), spent),
            _ => (successful_output(step.id.kind), spent),
        }
    }

    async fn steer(&self, step: &StepId, message: SteeringMessage) -> bool {
        lock(&self.steered).push(format!("{step}: {}", message.text));
        true
    }

    async fn clean(&self, _contract: &Contract) -> Result<(), String> {
        tokio::time::sleep(self.cleaning).await;
        self.cleaned.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A factory that returns the same performer for each task.
#[derive(Clone, Debug)]
pub struct SinglePerformerFactory(pub Arc<ScriptedPerformer>);

#[async_trait]
impl PerformerFactory for SinglePerformerFactory {
    async fn performer(&self, _id: &SessionId) -> Result<Arc<dyn Performer>, String> {
        Ok(self.0.clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a result that leads to the goal at once.
#[must_use]
pub fn successful_output(kind: StepKind) -> StepOutput {
    match kind {
        StepKind::Baseline => baseline(),
        StepKind::Anchor => anchor(1),
        StepKind::Work => worked(WorkEnd::Finished),
        StepKind::Evidence => evidence(3, 0),
        StepKind::Review => review(&[]),
        StepKind::Plan => StepOutput::Plan(PlanFacts::finished("p")),
    }
}

/// Returns evidence against an attempt.
#[must_use]
pub fn failing_output() -> StepOutput {
    evidence(3, 1)
}

fn diff(file: ChangedFile) -> Diff {
    Diff { patch: BlobReference { hash: "00".to_owned(), bytes: 1 }, files: vec![file], dropped: Vec::new() }
}

fn plain(code: i32) -> CommandRun {
    CommandRun::new(CommandEnd::Exited(code))
}

fn run(code: i32, status: TestStatus) -> CommandRun {
    let tests = TestRun { tests: [("new".to_owned(), status)].into(), ..TestRun::default() };
    plain(code).with_tests(tests)
}

pub(crate) fn baseline() -> StepOutput {
    StepOutput::Baseline(Baseline {
        checks: [("tests".to_owned(), vec![plain(0)])].into(),
        ..Baseline::default()
    })
}

pub(crate) fn anchor(code: i32) -> StepOutput {
    let file =
        ChangedFile { path: "tests/test_new.py".to_owned(), kind: ChangeKind::Added, added: 3, removed: 0 };
    StepOutput::Anchor(Box::new(AnchorFacts {
        command: "make anchor".to_owned(),
        results: None,
        report: None,
        session: None,
        patch: None,
        control: None,
        controls: Vec::new(),
        review: None,
        regression: Vec::new(),
        notes: Vec::new(),
        hidden: None,
        files: vec![file],
        runs: vec![run(code, TestStatus::Failed); 3],
        failing_before: Default::default(),
    }))
}

pub(crate) fn worked(end: WorkEnd) -> StepOutput {
    StepOutput::Work(WorkFacts { session: "s".to_owned(), end, diff: None, unfit: None, report: None })
}

/// Returns the evidence of a diff with so many lines, whose check exits with this code.
pub(crate) fn evidence(lines: u64, code: i32) -> StepOutput {
    let file =
        ChangedFile { path: "src/sums.py".to_owned(), kind: ChangeKind::Modified, added: lines, removed: 0 };
    StepOutput::Evidence(Box::new(CandidateFacts {
        diff: diff(file),
        not_applied: None,
        protected: vec![],
        judging: None,
        secrets: vec![],
        control: None,
        controls: Vec::new(),
        revert: None,
        mutants: Vec::new(),
        hidden: Vec::new(),
        check_controls: Default::default(),
        unrestored: None,
        anchor: vec![run(0, TestStatus::Passed)],
        checks: [("tests".to_owned(), vec![plain(code)])].into(),
    }))
}

pub(crate) fn review(findings: &[&str]) -> StepOutput {
    let findings = findings.iter().map(|finding| (*finding).to_owned()).collect();
    StepOutput::Review(ReviewFacts::new("r", findings, ""))
}
