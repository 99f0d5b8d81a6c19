//! Types of subagents that the embedding application defines.

use std::sync::Mutex;

use pintle_tools::gate::{Delegate, Gate, Verdict};
use pintle_tools::pipeline::PreparedCall;

use super::*;
use crate::error::SessionError;
use crate::protocol::{Limits, SubagentRole};
use crate::subagent::SubagentType;

fn reviewer() -> SubagentType {
    SubagentType::new("reviewer", "Reviews a change.")
        .with_prompt("You review changes.")
        .with_role(SubagentRole::Explorer)
        .with_limits(Limits::default().with_tool_calls(1))
}

fn look() -> Message {
    calls(&[("glob", json!({ "pattern": "*" }))])
}

#[tokio::test]
async fn the_model_delegates_to_a_type() {
    let delegated = ("delegate", json!({"agent": "reviewer", "task": "Look."}));
    let unknown = ("delegate", json!({"agent": "painter", "task": "Paint."}));
    let parent = model().message(calls(&[delegated])).message(calls(&[unknown])).answer("ok");
    let models = ModelsByTask::new(parent).subagent("Look", model().answer("No findings."));
    let harness =
        Harness::with(models, SessionConfig::default(), |builder| builder.subagent_type(reviewer()));
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    let [review, refusal] = harness.results().try_into().unwrap();
    assert_eq!(review, "No findings.");
    assert!(refusal.contains("reviewer"), "{refusal}");
    let offered = harness.models.requests("go").remove(0);
    assert!(format!("{:?}", offered.tools).contains("* `reviewer`: Reviews a change."), "{offered:?}");
    let request = harness.models.requests("Look").remove(0);
    let prompt = request.messages.iter().next().map(|message| message.text()).unwrap_or_default();
    assert!(prompt.starts_with("You review changes."), "{prompt}");
}

#[tokio::test]
async fn a_session_without_types_does_not_offer_them() {
    let harness = Harness::new(ModelsByTask::new(model().answer("ok")));
    harness.session.submit("go").await.unwrap();
    let offered = harness.models.requests("go").remove(0);
    assert!(!format!("{:?}", offered.tools).contains("\"delegate\""), "{offered:?}");
    let spawned = harness.session.spawn("reviewer", "Look.").await;
    assert!(matches!(spawned, Err(SessionError::NotSpawned(_))), "{spawned:?}");
}

#[tokio::test]
async fn the_application_spawns_a_type_within_its_limits() {
    let child = model().message(look()).message(look()).answer("never");
    let models = ModelsByTask::new(model()).subagent("Look", child);
    let harness =
        Harness::with(models, SessionConfig::default(), |builder| builder.subagent_type(reviewer()));
    let review = harness.session.spawn("reviewer", "Look.").await.unwrap();
    let result = review.wait().await;
    assert!(!result.success && harness.models.requests("Look").len() == 2, "{result:?}");
    while harness.session.spending().total.tokens() < 2 * 15 {
        tokio::task::yield_now().await;
    }
    let spent = harness.session.spending().total;
    assert_eq!((spent.tokens(), spent.tool_calls), (2 * 15, 1));
    assert_eq!(harness.session.subagents().len(), 1);
    for (kind, task) in [("painter", "Paint."), ("reviewer", " ")] {
        let refused = harness.session.spawn(kind, task).await;
        assert!(matches!(refused, Err(SessionError::NotSpawned(_))), "{refused:?}");
    }
}

/// Keeps the descriptions of subagents.
#[derive(Clone, Debug, Default)]
struct SeesDelegates(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Gate for SeesDelegates {
    async fn check(&self, _: &PreparedCall) -> Verdict {
        Verdict::ALLOW
    }

    fn for_subagent(&self, subagent: &Delegate<'_>) -> Result<Option<Arc<dyn Gate>>, String> {
        let Delegate { name, role, kind, task, model, .. } = subagent;
        self.0.lock().unwrap().push(format!("{name} {role} {kind:?} {task} {model}"));
        Ok(None)
    }
}

#[tokio::test]
async fn a_gate_sees_the_role_the_task_and_the_model() {
    let models = ModelsByTask::new(model()).subagent("Look", model().answer("Done."));
    let gate = SeesDelegates::default();
    let harness = Harness::with(models, SessionConfig::default(), |builder| {
        builder.gate(gate.clone()).subagent_type(reviewer())
    });
    harness.session.spawn("reviewer", "Look.").await.unwrap().wait().await;
    assert_eq!(*gate.0.lock().unwrap(), ["agent_1 explorer Some(\"reviewer\") Look. claude-opus-4-6"]);
}
