//! Handles of subagents, for the embedding application.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, forward};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::error::SessionError;
use crate::protocol::SubagentStatus;
use crate::session::SessionHandle;
use crate::subagent::{SubagentHandle, SubagentResult};

fn only_subagent(handle: &SessionHandle) -> SubagentHandle {
    let mut subagents = handle.subagents();
    assert_eq!(subagents.len(), 1, "{subagents:?}");
    subagents.remove(0)
}

async fn result_of(subagent: &SubagentHandle) -> SubagentResult {
    tokio::time::timeout(Duration::from_secs(10), subagent.wait()).await.expect("a result in time")
}

/// A session with a tool `meet`, whose subagent calls it before each of two answers.
fn harness_with_barrier(barrier: &Arc<Barrier>) -> Harness {
    let meet = || calls(&[("meet", json!({}))]);
    let parent = model().message(calls(&[spawn("Look.")])).answer("ok");
    let child = model().message(meet()).answer("In src: none.").message(meet()).answer("In tests: two.");
    let tool = BarrierTool(Arc::clone(barrier));
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(tool).unwrap();
    let models = ModelsByTask::new(parent).subagent("Look", child);
    Harness::of(profile, models, SessionConfig::default(), |builder| builder)
}

#[tokio::test]
async fn a_handle_reports_status_result_and_session() {
    let barrier = Arc::new(Barrier::new(2));
    let harness = harness_with_barrier(&barrier);
    assert!(harness.session.subagents().is_empty());
    let mut events = harness.session.tree_events();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    read_until(&mut events, is_subagent_call).await;

    let subagent = only_subagent(&harness.session.handle());
    assert_eq!((subagent.id(), subagent.status()), ("agent_1", SubagentStatus::Running));
    assert_eq!((subagent.origin().depth, &subagent.origin().parent), (1, harness.session.id()));
    assert!(subagent.result().is_none() && !subagent.is_closed());
    let session = subagent.session().expect("a live session");
    assert!(session.subagents().is_empty(), "it has none of its own");

    barrier.wait().await;
    let result = result_of(&subagent).await;
    assert_eq!((result.output.as_str(), result.success), ("In src: none.", true));
    assert_eq!((result.turns_used, &result.reason), (2, &None));
    assert_eq!((subagent.status(), subagent.result()), (SubagentStatus::Completed, Some(result)));
}

#[tokio::test]
async fn a_message_wakes_an_idle_subagent_until_it_is_closed() {
    let barrier = Arc::new(Barrier::new(2));
    let harness = harness_with_barrier(&barrier);
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    let subagent = only_subagent(&harness.session.handle());
    barrier.wait().await;
    result_of(&subagent).await;

    subagent.send("And in tests?").unwrap();
    assert_eq!(subagent.status(), SubagentStatus::Running);
    barrier.wait().await;
    let result = result_of(&subagent).await;
    assert_eq!((result.output.as_str(), result.turns_used), ("In tests: two.", 4));

    let mut events = harness.session.tree_events();
    assert_eq!(subagent.close().await, result, "closing an idle subagent keeps its result");
    assert!(subagent.is_closed() && subagent.session().is_none());
    assert!(matches!(subagent.send("Hello?"), Err(SessionError::Closed)));
    read_until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
}

#[tokio::test]
async fn a_running_subagent_fails_when_it_is_closed() {
    let parent = model().message(calls(&[spawn("Sleep.")])).answer("ok");
    let models = ModelsByTask::new(parent).subagent("Sleep", model().message(sleep_call()));
    let harness = Harness::new(models);
    let mut events = harness.session.tree_events();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    read_until(&mut events, is_subagent_call).await;
    let subagent = only_subagent(&harness.session.handle());
    let result = subagent.close().await;
    assert_eq!((result.success, result.reason.as_deref()), (false, Some("it was closed")));
    assert_eq!((subagent.status(), harness.env.running()), (SubagentStatus::Failed, 0));
}

#[tokio::test]
async fn handles_outlive_their_session() {
    let parent = model().message(calls(&[spawn("Sleep.")])).answer("ok");
    let models = ModelsByTask::new(parent).subagent("Sleep", model().message(sleep_call()));
    let Harness { session, .. } = Harness::new(models);
    let mut events = session.tree_events();
    assert_eq!(session.submit("go").await.unwrap().text, "ok");
    read_until(&mut events, is_subagent_call).await;
    let (handle, subagent) = (session.handle(), only_subagent(&session.handle()));
    drop(session);
    assert!(!result_of(&subagent).await.success);
    read_all(events).await;
    assert!(handle.subagents().is_empty() && subagent.session().is_none());
}

#[tokio::test]
async fn a_resumed_session_lists_recorded_subagents_as_closed() {
    let parent = model().message(calls(&[spawn("Look."), spawn("Sleep.")]));
    let parent = parent.message(calls(&[wait("agent_1")])).answer("ok");
    let models = ModelsByTask::new(parent)
        .subagent("Look", model().answer("Nothing."))
        .subagent("Sleep", model().message(sleep_call()));
    let harness = Harness::with(models, SessionConfig::default(), |builder| builder.record(true));
    let mut events = harness.session.tree_events();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    let subagents = harness.session.subagents();
    subagents[0].close().await;
    read_until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    let record = harness.session.record().unwrap();
    drop(harness);

    let models = ModelsByTask::new(model());
    let resumed = Harness::with(models, SessionConfig::default(), |builder| builder.resume(record));
    let restored = resumed.session.subagents();
    let origins = |subagents: &[SubagentHandle]| {
        subagents.iter().map(|subagent| subagent.origin().clone()).collect::<Vec<_>>()
    };
    assert_eq!(origins(&restored), origins(&subagents));
    let success = |subagent: &SubagentHandle| subagent.result().map(|result| result.success);
    assert_eq!(restored.iter().map(success).collect::<Vec<_>>(), [Some(true), Some(false)]);
    assert!(restored.iter().all(|subagent| subagent.is_closed() && subagent.session().is_none()));
    assert!(matches!(restored[1].send("x"), Err(SessionError::Closed)));
}

/// Environment that resolves the path of `sub` only once it is released.
#[derive(Debug)]
struct SlowDirectory {
    inner: MemoryEnvironment,
    released: CancellationToken,
}

#[async_trait]
impl ExecutionEnvironment for SlowDirectory {
    forward! {
        inner: working_directory, platform, os_version, spawn, read, write, metadata, list, remove, rename
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        if path.ends_with("sub") {
            self.released.cancelled().await;
        }
        self.inner.canonicalize(path).await
    }
}

#[tokio::test]
async fn subagents_are_listed_in_the_order_of_their_calls() {
    let slow = ("spawn_agent", json!({ "task": "Look.", "working_dir": "sub" }));
    let parent = model().message(calls(&[slow, spawn("Quick.")])).answer("ok");
    let models = ModelsByTask::new(parent)
        .subagent("Look", model().answer("Nothing."))
        .subagent("Quick", model().answer("Done."));
    let build = |models: ModelsByTask, released: CancellationToken| {
        let client = Client::builder().provider(models).build().unwrap();
        let env = SlowDirectory { inner: project_env(), released };
        Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env)
    };
    let names = |session: &Session| {
        let subagents = session.subagents();
        subagents.iter().map(|subagent| subagent.id().to_owned()).collect::<Vec<_>>()
    };
    let released = CancellationToken::new();
    let session = build(models, released.clone()).record(true).build().unwrap();
    let mut events = session.tree_events();
    let run = session.submit("go");
    let (_, first) = read_until(&mut events, |event| kind(event) == "SUBAGENT_SPAWNED").await;
    assert!(matches!(&first.kind, EventKind::SubagentSpawned { agent_id, .. } if agent_id == "agent_2"));
    assert_eq!(names(&session), ["agent_2"]);
    released.cancel();
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(names(&session), ["agent_1", "agent_2"]);

    let record = session.record().unwrap();
    session.suspend().await;
    let resumed = build(ModelsByTask::new(model()), released).resume(record).build().unwrap();
    assert_eq!(names(&resumed), ["agent_1", "agent_2"]);
}
