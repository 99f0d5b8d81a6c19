//! A process that dies at every step of a task with a real repository: right after it is on record that a step begins, and right
//! before the result of the step is. Some of the points are tried by default, and all of them in the long run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{Fence, SessionId};
use pintle_store::MemoryStore;
use pintle_test_conditions::is_full;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::plans;
use super::project::{Project, SessionScripts};
use crate::contract::{Contract, ReviewPlan};
use crate::local::Performer;
use crate::report::TaskReport;
use crate::task::{StepId, StepOutput, Task, TaskInput, TaskOutcome, TaskSignal, TaskStep, WorkCost};
use crate::{LocalTaskHost, SteeringMessage, post_signal};

/// Beginnings and ends of the eight steps.
const POINTS: usize = 16;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// A performer whose process dies at one of the points.
#[derive(Debug)]
struct DyingPerformer {
    inner: Arc<dyn Performer>,
    left: AtomicUsize,
    died: Notify,
}

impl DyingPerformer {
    /// Passes a point; never comes back from that at which the process dies.
    async fn pass(&self) {
        let taken = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken) == Ok(1) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Performer for DyingPerformer {
    async fn perform(
        &self,
        task: &Task,
        step: &TaskStep,
        fence: &Fence,
        cancel: &CancellationToken,
    ) -> (StepOutput, WorkCost) {
        self.pass().await;
        let found = self.inner.perform(task, step, fence, cancel).await;
        self.pass().await;
        found
    }

    async fn steer(&self, step: &StepId, message: SteeringMessage) -> bool {
        self.inner.steer(step, message).await
    }
}

/// The candidate is right, and is sent back by its review for a comment.
pub(super) fn script() -> SessionScripts {
    let work = "case $MESSAGE in *'say what it is'*) grep -q '# Sums' src/sums.py || sed -i '1i # Sums.' src/sums.py ;; *) sed -i 's/abs(b)/b/' src/sums.py ;; esac";
    SessionScripts::new()
        .with_session("0", work, None)
        .with_session("review-0-1", "true", Some(json!({"findings": ["say what it is"], "remarks": ""})))
        .with_session("review-0-2", "true", Some(json!({"findings": [], "remarks": "good"})))
}

pub(super) async fn contract(project: &Project) -> Contract {
    let mut contract = project.contract(1).await.with_attempts(2);
    contract.review = ReviewPlan { rounds: 1, model: None };
    contract
}

/// Returns a report without times.
pub(super) fn report(task: &Task) -> Value {
    let mut report = serde_json::from_str(&TaskReport::from_task(task).to_json().unwrap()).unwrap();
    remove_times(&mut report);
    report
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("millis");
            fields.values_mut().for_each(remove_times);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A task whose first process has died.
struct ProcessDeath {
    store: MemoryStore,
    scripted: Arc<SessionScripts>,
    project: Project,
}

impl ProcessDeath {
    /// Lets the process of a new task die at the point.
    async fn reach(point: usize) -> Self {
        let project = Project::new().await;
        let contract = contract(&project).await;
        Self::reach_in(point, project, contract, script()).await
    }

    /// Lets the process of this new task die at the point.
    async fn reach_in(point: usize, project: Project, contract: Contract, scripted: SessionScripts) -> Self {
        let (store, scripted) = (MemoryStore::new(), Arc::new(scripted));
        let mut host = LocalTaskHost::create(&store, SessionId::new("t"), contract).await.unwrap();
        let inner = Arc::new(project.performer(&store, &scripted).await);
        let dying = Arc::new(DyingPerformer { inner, left: AtomicUsize::new(point), died: Notify::new() });
        let running = tokio::time::timeout(PATIENCE, host.run(dying.clone()));
        tokio::select! {
            ended = running => panic!("point {point}: {ended:?}"),
            () = dying.died.notified() => {}
        }
        Self { store, scripted, project }
    }

    /// Goes on with it, and returns how it ended, its state, and how many steps have begun since.
    async fn go_on(&self) -> (TaskOutcome, Task, usize) {
        let id = SessionId::new("t");
        let mut host = LocalTaskHost::open(&self.store, &id).await.unwrap();
        let mut inputs = host.inputs();
        let performer = Arc::new(self.project.performer(&self.store, &self.scripted).await);
        let outcome = tokio::time::timeout(PATIENCE, host.run(performer.clone())).await.unwrap().unwrap();
        let task = host.task().clone();
        drop(host);
        let mut finished = 0;
        while let Some(input) = inputs.recv().await {
            finished += usize::from(matches!(input, TaskInput::StepFinished(_)));
        }
        performer.clean().await.unwrap();
        assert!(!self.project.directory().join("task").exists(), "nothing is left");
        (outcome, task, finished)
    }
}

/// Returns all points, or a sample of them.
fn points(sample: &[usize]) -> Vec<usize> {
    if is_full() { (1..=POINTS).collect() } else { sample.to_vec() }
}

#[tokio::test]
async fn a_process_that_dies_at_any_step_leaves_the_same_end() {
    let project = Project::new().await;
    let (outcome, task) = project.run(contract(&project).await, script()).await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{}", TaskReport::from_task(&task).to_markdown());
    let mut expected = report(&task);
    // Each project has a commit and a directory of its own.
    expected["contract"]["base"] = Value::Null;
    // The first work of the candidate has ended.
    for point in points(&[6]) {
        let died = ProcessDeath::reach(point).await;
        let (outcome, task, finished) = died.go_on().await;
        assert!(
            matches!(outcome, TaskOutcome::Done(_)),
            "point {point}: {}",
            TaskReport::from_task(&task).to_markdown()
        );
        let mut found = report(&task);
        found["contract"]["base"] = Value::Null;
        assert_eq!(found, expected, "point {point}");
        assert_eq!(
            finished,
            8 - (point - 1) / 2,
            "point {point}: a step that has ended does not begin again"
        );
        assert_eq!(task.spent().tokens, 60, "point {point}");
    }
}

/// By default, the deaths in a task without a plan cover this.
#[tokio::test]
async fn a_process_that_dies_in_a_round_leaves_the_same_end() {
    if !is_full() {
        return;
    }
    let project = Project::new().await;
    let (outcome, task) = project.run(plans::one_step(&project).await, plans::one_step_script()).await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{}", TaskReport::from_task(&task).to_markdown());
    let mut expected = report(&task);
    expected["contract"]["base"] = Value::Null;
    // The six steps are the baseline, the plan, its work, its evidence, the plan again, and the evidence of the whole change.
    // A scripted planner answers in order, so that it must not die before its answer is on record.
    for point in [1, 2, 3, 5, 6, 7, 8, 9, 11, 12] {
        let project = Project::new().await;
        let contract = plans::one_step(&project).await;
        let died = ProcessDeath::reach_in(point, project, contract, plans::one_step_script()).await;
        let (_, task, finished) = died.go_on().await;
        let mut found = report(&task);
        found["contract"]["base"] = Value::Null;
        assert_eq!(found, expected, "point {point}");
        assert_eq!(finished, 6 - (point - 1) / 2, "point {point}");
    }
}

#[tokio::test]
async fn a_task_is_cancelled_wherever_its_process_died() {
    // The first evidence begins.
    for point in points(&[7]) {
        let died = ProcessDeath::reach(point).await;
        let cancel = TaskSignal::Cancel { reason: "enough".to_owned() };
        post_signal(&died.store, &SessionId::new("t"), "c", &cancel, None).await.unwrap();
        let (outcome, _, finished) = died.go_on().await;
        assert_eq!(outcome, TaskOutcome::Aborted { reason: "enough".to_owned() }, "point {point}");
        assert_eq!(finished, 0, "point {point}");
    }
}
