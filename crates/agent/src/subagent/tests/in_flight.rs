//! What is changed while a subagent is being spawned.

use pintle_env::ReadOnly;
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};

use super::*;
use crate::protocol::Decision;

#[derive(Debug)]
struct AskForAgents;

#[async_trait]
impl Gate for AskForAgents {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.name() {
            "spawn_agent" => Verdict::Ask { reason: "it spawns".into() },
            _ => Verdict::Allow,
        }
    }
}

/// All its requests come after the change, and it would never hear of a later one: a place that the host has just
/// closed for writing must not stay open below.
#[tokio::test]
async fn a_subagent_is_made_of_what_is_newest_when_it_is_spawned() {
    let parent =
        model().message(calling(&[spawn("Look.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let write = ("write_file", json!({ "file_path": "/project/new", "content": "x" }));
    let child = model().message(calling(&[write])).answer("Done.");
    let cast = Cast::new(parent).part("Look", child);
    let bench = Bench::with(cast, SessionConfig::default(), |builder| builder.gate(AskForAgents));
    let mut run = bench.session.submit("go");
    let call_id = loop {
        let event = run.next().await.expect("the run goes on");
        if let EventKind::ApprovalRequested { call_id, .. } = event.kind {
            break call_id;
        }
    };
    let handle = bench.session.handle();
    let place = Arc::clone(&bench.env) as Arc<dyn ExecutionEnvironment>;
    handle.set_environment(Arc::new(ReadOnly::new(place))).unwrap();
    handle.set_model("claude-sonnet-4-5").unwrap();
    handle.decide(&call_id, Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "ok");
    let requests = bench.cast.requests("Look");
    let models: Vec<&str> = requests.iter().map(|request| request.model.as_str()).collect();
    assert_eq!(models, ["claude-sonnet-4-5"; 2]);
    assert!(!bench.env.files().contains_key(std::path::Path::new("/project/new")));
}
