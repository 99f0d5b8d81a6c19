//! Configuration changes while a subagent is being spawned.

use pintle_env::ReadOnlyEnvironment;
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};

use super::*;
use crate::protocol::Decision;

/// Asks for a decision on each spawn.
#[derive(Debug)]
struct AskForSpawns;

#[async_trait]
impl Gate for AskForSpawns {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.name() {
            "spawn_agent" => Verdict::ask("it spawns"),
            _ => Verdict::ALLOW,
        }
    }
}

/// A subagent must not keep an environment in which writing was just forbidden: later changes do not reach it.
#[tokio::test]
async fn a_subagent_uses_the_configuration_at_spawn_time() {
    let parent = model().message(calls(&[spawn("Look.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let write = ("write_file", json!({ "file_path": "/project/new", "content": "x" }));
    let child = model().message(calls(&[write])).answer("Done.");
    let models = ModelsByTask::new(parent).subagent("Look", child);
    let harness = Harness::with(models, SessionConfig::default(), |builder| builder.gate(AskForSpawns));
    let mut run = harness.session.submit("go");
    let call_id = loop {
        let event = run.next().await.expect("more events");
        if let EventKind::ApprovalRequested { call_id, .. } = event.kind {
            break call_id;
        }
    };
    let handle = harness.session.handle();
    let env = Arc::clone(&harness.env) as Arc<dyn ExecutionEnvironment>;
    handle.set_environment(Arc::new(ReadOnlyEnvironment::new(env))).unwrap();
    handle.set_model("claude-sonnet-4-5").unwrap();
    handle.decide(&call_id, Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "ok");
    let requests = harness.models.requests("Look");
    let models: Vec<&str> = requests.iter().map(|request| request.model.as_str()).collect();
    assert_eq!(models, ["claude-sonnet-4-5"; 2]);
    assert!(!harness.env.files().contains_key(std::path::Path::new("/project/new")));
}
