//! Sessions of tasks: messages of users, failures and limits.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_store::{MemoryStore, SessionStore as _};
use pintle_test_conditions::cases;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::project::{PATIENCE, Project, RIGHT, SessionScripts, wait_for};
use crate::contract::{DecisionGate, ReviewPlan};
use crate::report::TaskReport;
use crate::task::{BlockReason, LimitKind, TaskOutcome, TaskSignal};
use crate::{DraftError, LocalTaskHost, WorkError, post_signal};

#[tokio::test]
async fn words_of_people_reach_sessions() {
    let project = Project::new().await;
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let script = format!("{RIGHT}; {}", wait_for("$TMPDIR/told"));
    let scripted = Arc::new(SessionScripts::default().with_session("0", &script, None));
    let prepare = format!(
        "case $TMPDIR in */candidates/0/tmp) touch $TMPDIR/preparing; {};; esac",
        wait_for("$TMPDIR/ready")
    );
    let contract = project.contract_without_anchor(1).await;
    let contract = contract.with_gate(DecisionGate::Result).with_prepare(prepare);
    let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract).await.unwrap();
    let performer = Arc::new(project.performer(store.as_ref(), &scripted).await);
    let say = async {
        let workspace = project.directory().join("task/candidates/0/tmp");
        while !workspace.join("preparing").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let signal = TaskSignal::Steer { candidate: Some(0), text: "use integers".to_owned() };
        post_signal(store.as_ref(), &id, "p", &signal, None).await.unwrap();
        while store.has_posted(&id).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        project.sh("touch ../task/candidates/0/tmp/ready").await;
        while !scripted.messages.lock().unwrap().iter().any(|(session, _)| session == "0") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let signal = TaskSignal::Steer { candidate: None, text: "be quick".to_owned() };
        post_signal(store.as_ref(), &id, "s", &signal, None).await.unwrap();
        while scripted.steered.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        project.sh("touch ../task/candidates/0/tmp/told").await;
        let decision =
            crate::task::GateAnswer { gate: DecisionGate::Result, is_approved: false, words: None };
        while crate::read_task(store.as_ref(), &id).await.unwrap().pending().gate.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        post_signal(store.as_ref(), &id, "d", &TaskSignal::Decide(decision), None).await.unwrap();
    };
    let (outcome, ()) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(host.run(performer), say) }).await.unwrap();
    let refused = BlockReason::Refused { gate: DecisionGate::Result, words: None };
    assert_eq!(outcome.unwrap(), TaskOutcome::Blocked(refused));
    assert_eq!(*scripted.steered.lock().unwrap(), ["t-0 at its beginning: use integers", "t-0: be quick"]);
}

#[tokio::test]
async fn a_session_that_ends_with_an_error_is_paid_for() {
    let project = Project::new().await;
    // The first session costs 10 tokens, and so does each other one.
    let all = [
        ("anchor", 10, "The step anchor-1 failed: overloaded"),
        ("0", 30, "The step work-0-1 failed: overloaded"),
        ("review-0-1", 40, "The step review-0-1 failed: overloaded"),
    ];
    for (session, tokens, expected) in all.into_iter().take(cases(2, 3)) {
        let answer = json!({"findings": [], "remarks": ""});
        let mut scripted = SessionScripts::new().with_session("0", RIGHT, None).with_session(
            "review-0-1",
            "true",
            Some(answer),
        );
        scripted.failing.push(session.to_owned());
        let mut contract = project.contract(1).await;
        contract.review = ReviewPlan { rounds: 1, model: None };
        let (outcome, task) = project.run(contract, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert!(matches!(outcome, TaskOutcome::Failed { .. }), "{report}");
        assert!(report.starts_with("# Failed\n") && report.contains(expected), "{report}");
        assert!(!report.contains("no anchor"), "{report}");
        assert_eq!(task.spent().tokens, tokens, "{report}");
    }
}

#[tokio::test]
async fn a_session_that_stops_at_its_budget_ends_the_task_at_its_limit() {
    let project = Project::new().await;
    for (session, best) in [("anchor", None), ("review-0-1", Some(0))] {
        let anchor = if session == "anchor" { SessionScripts::default() } else { SessionScripts::new() };
        let mut scripted = anchor.with_session("0", RIGHT, None).with_session(session, "true", None);
        scripted.at_limit.push(session.to_owned());
        let mut contract = match session {
            "anchor" => project.contract(1).await,
            _ => project.contract_without_anchor(1).await,
        };
        contract.review = ReviewPlan { rounds: 1, model: None };
        let (outcome, task) = project.run(contract, scripted).await;
        assert_eq!(outcome, TaskOutcome::Limit { limit: LimitKind::Session, best }, "{session}");
        assert!(task.proposals().is_empty(), "{session}: it says nothing about an anchor");
    }
}

#[tokio::test]
async fn a_draft_whose_session_stops_at_its_budget_names_the_limit() {
    let project = Project::new().await;
    let base = project.contract(1).await.base.unwrap();
    for (is_at_limit, expected) in [
        (true, DraftError::AtLimit),
        (false, DraftError::Failed(WorkError("the session drafted no contract".to_owned()))),
    ] {
        let mut scripted = SessionScripts::default().with_session("draft", "true", None);
        scripted.at_limit.extend(is_at_limit.then(|| "draft".to_owned()));
        let store = MemoryStore::new();
        let performer = project.performer(&store, &Arc::new(scripted)).await;
        let drafted = performer.draft(base.clone(), "Sums are right.", &CancellationToken::new()).await;
        let failed = drafted.unwrap_err();
        assert_eq!((failed.error, failed.spent.tokens), (expected, 10));
        performer.clean().await.unwrap();
    }
}
