//! Tasks that are carried out in steps, with scripted planners.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_store::MemoryStore;
use pintle_test_conditions::{cases, is_full};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::project::{PATIENCE, Project, RIGHT, SessionScripts, wait_for};
use crate::contract::{Contract, PlanSettings};
use crate::report::TaskReport;
use crate::task::{BlockReason, PlanRound, Task, TaskOutcome};
use crate::{LocalTaskHost, TaskHostError};

/// Returns the answer of a planner that names a step.
fn next(goal: &str, paths: &[&str], checks: &[&str], remaining: &[&str]) -> Option<Value> {
    Some(json!({
        "next": { "goal": goal, "paths": paths, "checks": checks, "size": "small", "leaves_failing": [] },
        "remaining": remaining,
        "go_back": false,
    }))
}

fn finished() -> Option<Value> {
    Some(json!({ "next": null, "remaining": [], "go_back": false }))
}

fn report(confidence: &str) -> Option<Value> {
    Some(json!({ "confidence": confidence, "needs_replan": null }))
}

async fn planned(project: &Project, rounds: u32) -> Contract {
    project.contract(1).await.with_plan(PlanSettings::at_most(rounds))
}

/// Returns a contract without an anchor that [`one_step_script`] fulfils.
pub(super) async fn one_step(project: &Project) -> Contract {
    project.contract_without_anchor(1).await.with_plan(PlanSettings::at_most(4))
}

/// The planner names one step, and then nothing.
pub(super) fn one_step_script() -> SessionScripts {
    SessionScripts::new()
        .with_session("plan", "true", next("Add as usual.", &["src/"], &["! grep -q abs src/sums.py"], &[]))
        .with_session("plan", "true", finished())
        .with_session("r1-0", RIGHT, report("high"))
}

fn states(task: &Task) -> Vec<String> {
    task.plan().unwrap().rounds().iter().map(PlanRound::state).collect()
}

/// By default, the scenario of the command with a plan covers this.
#[tokio::test]
async fn each_step_starts_from_the_change_of_the_one_before() {
    if !is_full() {
        return;
    }
    let project = Project::new().await;
    let limits = next("Add a limit.", &["src/"], &["grep -q 9 src/limits.py"], &["Use it."]);
    let sums = next("Add as usual.", &["src/sums.py"], &["! grep -q abs src/sums.py"], &[]);
    let scripted = SessionScripts::new()
        // The changes of a planner have no effect.
        .with_session("plan", "echo x >src/planner.py", limits)
        .with_session("plan", "echo x >>src/limits.py", sums)
        .with_session("plan", "true", finished())
        .with_session("r1-0", "echo LIMIT = 9 >src/limits.py", report("high"))
        .with_session("r2-0", &format!("test -f src/limits.py && {RIGHT}"), report("medium"));
    let (outcome, task, messages) = project.run_with_messages(planned(&project, 4).await, scripted).await;
    let text = TaskReport::from_task(&task).to_markdown();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{text}");
    let sessions: Vec<&str> = messages.iter().map(|(session, _)| session.as_str()).collect();
    assert_eq!(sessions, ["anchor", "plan", "r1-0", "plan", "r2-0", "plan"]);
    let files = &task.candidates()[0].diff().unwrap().files;
    let files: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["src/limits.py", "src/sums.py"]);
    assert_eq!(states(&task), ["holds", "holds"]);
    let proofs: Vec<(usize, usize, Option<bool>)> = task
        .plan()
        .unwrap()
        .rounds()
        .iter()
        .map(|round| round.candidates()[0].verdict().unwrap().as_ref().unwrap())
        .map(|proof| (proof.anchored, proof.passed, proof.reaches_goal))
        .collect();
    assert_eq!(proofs, [(1, 2, Some(false)), (1, 2, Some(true))]);
    assert!(messages[2].1.contains("> Add a limit.\n") && messages[2].1.contains("Only files in `src/`"));
    assert!(messages[3].1.contains("Step 1 holds: Add a limit."), "{}", messages[3].1);
    assert!(messages[3].1.contains("The test of the goal fails still."), "{}", messages[3].1);
    assert!(messages[5].1.contains("The test of the goal passes."), "{}", messages[5].1);
}

#[tokio::test]
async fn a_second_candidate_has_the_findings_against_the_first() {
    let project = Project::new().await;
    let scripted = SessionScripts::new()
        .with_session("plan", "true", next("Add as usual.", &[], &[], &[]))
        .with_session("plan", "true", finished())
        .with_session("r1-0", "sed -i 's/a + abs(b)/0/' src/sums.py", report("high"))
        .with_session("r1-1", RIGHT, report("high"));
    let (outcome, task, messages) = project.run_with_messages(one_step(&project).await, scripted).await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{}", TaskReport::from_task(&task).to_markdown());
    let (session, message) = &messages[2];
    assert_eq!(session, "r1-1");
    assert!(message.contains("`test_sums.test_positive` passed before and fails"), "{message}");
    assert_eq!(states(&task), ["holds"]);
}

/// Work on a step that does not hold leaves the snapshot before it, and a task without any snapshot is blocked.
#[tokio::test]
async fn a_step_that_does_not_hold_is_no_snapshot() {
    let project = Project::new().await;
    let all = [
        ("sed -i 's/a + abs(b)/0/' src/sums.py", "`test_sums.test_positive` passed before and fails"),
        ("echo x >src/other.py", "scope: `src/other.py` changed, which is outside of the paths of the step"),
        ("sed -i '1i # Sums.' src/sums.py", "check grep -q zero src/sums.py: it exited with 1"),
        ("echo '#' >>tests/test_sums.py", "protected files: `tests/test_sums.py` changed"),
        ("true", "diff: the step has changed nothing"),
    ];
    for (work, finding) in all.into_iter().take(cases(1, 5)) {
        let scripted = SessionScripts::new()
            .with_session(
                "plan",
                "true",
                next("Add as usual.", &["src/sums.py"], &["grep -q zero src/sums.py"], &[]),
            )
            .with_session("plan", "true", finished())
            .with_session("r1-0", work, report("high"))
            .with_session("r1-1", work, None);
        let contract = one_step(&project).await;
        let (outcome, task, messages) = project.run_with_messages(contract, scripted).await;
        assert!(matches!(outcome, TaskOutcome::Blocked(BlockReason::NoPlan(_))), "{work}: {outcome:?}");
        assert_eq!(states(&task), ["failed"], "{work}");
        let text = TaskReport::from_task(&task).to_markdown();
        assert!(text.contains(finding), "{work}: {text}");
        let told = messages.iter().filter(|(session, _)| session == "plan").nth(1).unwrap();
        assert!(told.1.contains("Step 1 failed: Add as usual."), "{}", told.1);
    }
}

/// Its unfinished session could not resume in another clone.
#[tokio::test]
async fn a_planner_that_was_stopped_continues_in_its_clone() {
    let project = Project::new().await;
    let (store, id) = (MemoryStore::new(), SessionId::new("t"));
    let hang = |first: &str| format!("{first}; {}", wait_for("$TMPDIR/never"));
    let scripted = SessionScripts::new()
        .with_session("plan", &hang("touch left $TMPDIR/one"), None)
        .with_session("plan", &hang("test -e left && touch $TMPDIR/two"), None);
    let scripted = Arc::new(scripted);
    let contract = one_step(&project).await;
    LocalTaskHost::create(&store, id.clone(), contract).await.unwrap().close().await.unwrap();
    for name in ["one", "two"] {
        let mut host = LocalTaskHost::open(&store, &id).await.unwrap();
        let performer = Arc::new(project.performer(&store, &scripted).await);
        let stop = CancellationToken::new();
        let wait = async {
            let file = project.directory().join("task/plan/1-1/tmp").join(name);
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.cancel();
        };
        let run = async { tokio::join!(host.run_until(performer, &stop), wait) };
        let (stopped, ()) = tokio::time::timeout(PATIENCE, run).await.unwrap();
        assert!(matches!(stopped, Err(TaskHostError::Stopped)), "{stopped:?}");
    }
}

/// A session of a planner that gives no answer, and one that does not answer in the right form.
#[tokio::test]
async fn a_planner_without_a_usable_answer_blocks_the_task() {
    let project = Project::new().await;
    let tests = next("Change a test.", &["tests/test_sums.py"], &[], &[]);
    let all = [
        (tests, "next.paths: `tests/test_sums.py` judges the change"),
        (None, "the session planned no step"),
        (Some(json!({ "next": { "goal": 1 } })), "cannot parse the session's answer"),
    ];
    for (answer, problem) in all.into_iter().take(cases(1, 3)) {
        let scripted = SessionScripts::new().with_session("plan", "true", answer);
        let contract = one_step(&project).await;
        let (outcome, _, messages) = project.run_with_messages(contract, scripted).await;
        let TaskOutcome::Blocked(BlockReason::NoPlan(problems)) = &outcome else { panic!("{outcome:?}") };
        assert_eq!((problems.len(), messages.len()), (3, 3));
        assert!(problems.iter().all(|problems| problems[0].contains(problem)), "{problems:?}");
        assert!(messages[1].1.contains(problem), "{}", messages[1].1);
        assert_ne!(messages[1].1, messages[2].1, "a session would not receive the same message again");
    }
}
