//! What the sessions of a task receive: models of their roles, the index of the repository, and the notes of earlier sessions.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_env::EnvError;
use pintle_store::MemoryStore;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::project::{Project, RIGHT, SessionScripts};
use crate::LocalTaskHost;
use crate::contract::{
    AnchorPlan, CandidatePlan, Contract, ModelPlan, ModelPlans, ReviewPlan, SessionRole, TaskCheck, TaskScope,
};
use crate::perform::StepError;
use crate::report::TaskReport;
use crate::task::TaskOutcome;

fn models() -> ModelPlans {
    let plan = |model: &str, effort: &str| ModelPlan::default().with_model(model).with_effort(effort);
    ModelPlans::default()
        .with_plan(SessionRole::Draft, plan("tiny", "low"))
        .with_plan(SessionRole::Anchor, ModelPlan::default().with_model("small"))
        .with_plan(SessionRole::Work, plan("medium", "low"))
        .with_plan(SessionRole::Review, plan("large", "high"))
}

/// Runs a task that has to reach its goal.
async fn reach_goal(project: &Project, contract: Contract, scripted: SessionScripts) -> Arc<SessionScripts> {
    let (store, scripted) = (MemoryStore::new(), Arc::new(scripted));
    let mut host = LocalTaskHost::create(&store, SessionId::new("t"), contract).await.unwrap();
    let performer = Arc::new(project.performer(&store, &scripted).await);
    let outcome = host.run(performer).await.unwrap();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{}", TaskReport::from_task(host.task()).to_markdown());
    scripted
}

#[tokio::test]
async fn each_session_has_the_model_of_its_role() {
    let project = Project::new().await;
    let scripted = SessionScripts::new().with_session("0", RIGHT, None).with_session(
        "review-0-1",
        "true",
        Some(json!({"findings": [], "remarks": ""})),
    );
    let mut contract = project.contract(1).await.with_models(models());
    contract.candidates = vec![CandidatePlan { model: Some("own".to_owned()), ..CandidatePlan::default() }];
    contract.review = ReviewPlan { rounds: 1, model: None };
    let base = contract.base.clone().unwrap();
    let scripted = reach_goal(&project, contract, scripted).await;
    let expected = ["anchor small", "anchor-review-1 large high", "0 own low", "review-0-1 large high"];
    assert_eq!(*scripted.models.lock().unwrap(), expected);

    let answer = json!({
        "goal": "Sums are right.", "checks": [], "nothing_fails_first": null, "paths": [],
        "notes": ["src/sums.py:2: the sum"],
    });
    let scripted = Arc::new(SessionScripts::default().with_session("draft", "true", Some(answer)));
    let performer = project.performer(&MemoryStore::new(), &scripted).await.with_draft_models(models());
    let drafted = performer.draft(base, "Sums are right.", &CancellationToken::new()).await.unwrap();
    assert_eq!(*scripted.models.lock().unwrap(), ["draft tiny low"]);
    assert_eq!(drafted.models, models());
    assert_eq!(drafted.drafted.unwrap().notes, ["src/sums.py:2: the sum"]);
    let message = scripted.messages.lock().unwrap()[0].1.clone();
    assert!(message.contains("`src/sums.py`: 1 def add"), "{message}");
    performer.clean().await.unwrap();
}

#[tokio::test]
async fn context_is_handed_on_once() {
    let project = Project::new().await;
    let noted = "src/sums.py:2: the sum uses `abs`";
    // The first attempt replaces the directory with a link to one that it made.
    let first = "grep -q 'def add' .pintle-output/repository-index.md && grep -q abs .pintle-output/notes.md || exit 1
                 rm -r .pintle-output && mkdir -p target/away && ln -s target/away .pintle-output";
    let second = format!(
        "test -d target/away && test ! -L .pintle-output && test -z \"$(ls target/away)\" && test -e .pintle-output/notes.md && {RIGHT}"
    );
    let scripted = SessionScripts::new()
        .with_notes(&[noted])
        .with_session("0", first, None)
        .with_session("0", &second, None)
        .with_session("review-0-2", "true", Some(json!({"findings": [], "remarks": ""})));
    let mut contract = project.contract(1).await.with_attempts(2);
    contract.review = ReviewPlan { rounds: 1, model: None };
    let scripted = reach_goal(&project, contract, scripted).await;
    let messages = scripted.messages.lock().unwrap().clone();
    let note = "the sum uses 'abs'";
    let found: Vec<(&str, [bool; 3])> = messages
        .iter()
        .map(|(session, message)| {
            let has = |text: &str| message.contains(text);
            (session.as_str(), [has("`src/sums.py`: 1 def add"), has(note), has("begins like this")])
        })
        .collect();
    let expected = [
        ("anchor", [true, false, false]),
        // It forms its own view.
        ("anchor-review-1", [true, false, false]),
        ("0", [true, true, true]),
        // The session has it already.
        ("0", [false, false, false]),
        ("review-0-2", [true, true, false]),
    ];
    assert_eq!(found, expected);
    let context = messages[2].1.find("Repository: ").map(|start| messages[2].1.len() - start).unwrap();
    assert!(context < 4 << 10, "{context}");
}

/// A process that a session left may put links in the place of files after they were removed.
#[tokio::test]
async fn files_for_a_session_stay_in_its_clone() {
    let project = Project::new().await;
    let scripted = Arc::new(SessionScripts::default());
    let performer = project.performer(&MemoryStore::new(), &scripted).await;
    let workspace = performer.create_workspace("candidates/0").await.unwrap().in_directory("src");
    let (machine, working) = (project.machine.as_ref(), workspace.working_directory());
    let outside = project.directory().join("outside");
    for directory in [&working, &outside] {
        machine.create_directory(directory).await.unwrap();
    }
    performer.write_in_clone(&workspace, ".pintle-output/a.txt", b"a").await.unwrap();
    assert_eq!(machine.read(&working.join(".pintle-output/a.txt"), None).await.unwrap(), b"a");
    for (link, target, name) in [
        (working.join(".pintle-output"), outside.clone(), ".pintle-output/a.txt"),
        (working.join("a.txt"), outside.join("b.txt"), "a.txt"),
        (working.clone(), outside.clone(), "a.txt"),
    ] {
        if link.is_dir() {
            std::fs::remove_dir_all(&link).unwrap();
        }
        std::os::unix::fs::symlink(target, &link).unwrap();
        let refused = performer.write_in_clone(&workspace, name, b"a").await.unwrap_err();
        assert!(matches!(refused, StepError::Environment(EnvError::Refused { .. })), "{refused}");
        assert!(machine.list(&outside).await.unwrap().is_empty(), "{name}");
    }
    performer.clean().await.unwrap();
}

/// A container lets its commands change all of the clone, also the directories above the one in which they work.
#[tokio::test]
async fn a_directory_that_became_a_link_is_not_followed() {
    let project = Project::new().await;
    let outside = project.directory().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let replace = format!("mv src moved && ln -s {} src", outside.display());
    let mut contract = project.contract(1).await.with_attempts(2).with_scope(TaskScope::default());
    contract.base = contract.base.map(|base| base.with_directory("src"));
    contract.checks = vec![TaskCheck::new("tests", "true")];
    let contract = contract.with_anchor(AnchorPlan::None { because: "it is about a link".to_owned() });
    let scripted = SessionScripts::new().with_session("0", &replace, None);
    let (outcome, task) = project.run(contract, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    assert!(matches!(outcome, TaskOutcome::Blocked(_)), "{report}");
    assert!(report.contains("`src` became a link; expected the directory of the task"), "{report}");
    std::fs::remove_dir(&outside).expect("it is empty");
}
