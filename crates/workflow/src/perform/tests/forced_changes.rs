//! Changes of tests that the goal forces: a user is asked once, at the end.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_store::MemoryStore;
use pintle_test_conditions::is_full;
use tokio_util::sync::CancellationToken;

use super::project::{FILES, Project, SessionScripts};
use crate::contract::{Contract, DecisionGate, TaskCheck, TaskScope};
use crate::report::TaskReport;
use crate::task::{GateAnswer, TaskOutcome, TaskSignal};
use crate::{LocalTaskHost, post_signal};

/// Runs a task until it waits for a decision about the result, approves it, and returns the report.
async fn approve(project: &Project, contract: Contract, work: &str) -> String {
    let (store, id) = (MemoryStore::new(), SessionId::new("t"));
    let scripted = Arc::new(SessionScripts::new().with_session("0", work, None));
    let mut host = LocalTaskHost::create(&store, id.clone(), contract).await.unwrap();
    let performer = Arc::new(project.performer(&store, &scripted).await);
    let waiting = host.run_until_gate(performer.clone(), &CancellationToken::new()).await.unwrap();
    let report = TaskReport::from_task(host.task()).to_markdown();
    assert_eq!((waiting, host.task().pending().gate), (None, Some(DecisionGate::Result)), "{report}");
    let approval = GateAnswer { gate: DecisionGate::Result, is_approved: true, words: None };
    post_signal(&store, &id, "d", &TaskSignal::Decide(approval), None).await.unwrap();
    let outcome = host.run(performer.clone()).await.unwrap();
    let report = TaskReport::from_task(host.task()).to_markdown();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{report}");
    performer.clean().await.unwrap();
    report
}

/// A check with more runs than half of the limit has runs left for the second judgement.
#[tokio::test]
async fn a_deleted_test_is_a_question() {
    if !is_full() {
        return;
    }
    let project = Project::new().await;
    let mut contract = project.contract(1).await.with_scope(TaskScope::default());
    contract.checks.iter_mut().for_each(|check| check.runs = 6);
    let work =
        "printf 'def add(a, b):\\n    return a + b if b < 0 else 0\\n' >src/sums.py; rm tests/test_sums.py";
    let report = approve(&project, contract, work).await;
    for part in [
        "Changed: `tests/test_sums.py`, which judges. The checks fail with the original files",
        "`test_sums.test_positive`, `test_sums.test_zero` passed before and was removed",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

/// By default, the scenario of the command with a golden file covers the question.
#[tokio::test]
async fn a_changed_inline_test_is_a_question() {
    if !is_full() {
        return;
    }
    let mut files = FILES;
    files[0].1 =
        "def add(a, b):\n    \"\"\"Adds.\n\n    >>> add(1, -1)\n    2\n    \"\"\"\n    return a + abs(b)\n";
    let project = Project::with_files(&files).await;
    let contract = project.contract(1).await;
    let contract = contract.with_check(TaskCheck::new("docs", "python3 -m doctest src/sums.py"));
    let work = "sed -i 's/abs(b)/b/; s/^    2$/    0/' src/sums.py";
    let report = approve(&project, contract, work).await;
    let expected = "Changed: `src/sums.py`, which judges. The checks fail with the original files";
    assert!(report.contains(expected), "{report}");
}

/// The original test passes with the change, so that nothing forces the change of the test.
#[tokio::test]
async fn a_needless_change_of_an_inline_test_is_refused() {
    let mut files = FILES;
    files[0].1 = "def add(a, b):\n    \"\"\"Adds.\n\n    >>> add(1, 1) == 2\n    True\n    \"\"\"\n    return a + abs(b)\n";
    let project = Project::with_files(&files).await;
    let contract = project.contract(1).await;
    let contract = contract.with_check(TaskCheck::new("docs", "python3 -m doctest src/sums.py"));
    let work = "sed -i 's/abs(b)/b/; s/^    True$/    1/' src/sums.py";
    let scripted = SessionScripts::new().with_session("0", work, None);
    let (outcome, task) = project.run(contract, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    assert!(matches!(outcome, TaskOutcome::Blocked(_)), "{report}");
    let finding =
        "protected files: `src/sums.py` changed in `doctest add(1, 1) == 2`, which judges the change";
    assert!(report.contains(finding), "{report}");
    assert!(!report.contains("the checks fail with the original files"), "{report}");
}
