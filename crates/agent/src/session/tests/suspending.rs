//! Sessions from which a process detaches and that another one continues.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_stopped_before_detaching_is_interrupted() {
    let adapter = anthropic().message(hanging());
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.record(true));
    let handle = harness.session.handle();
    let mut events = harness.session.events();
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    handle.follow_up("and then?").await.unwrap();
    handle.stop_turn().unwrap();
    harness.session.detach().await;
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    assert_eq!(harness.env.running(), 0, "nothing is left behind");
    assert!(matches!(handle.steer("too late").await, Err(SessionError::Closed)));
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(kind(&event));
    }
    assert_eq!(last.as_deref(), Some("PROCESSING_END"), "the session has not ended");

    let record = handle.record().unwrap();
    let adapter = anthropic().answer("first").answer("second");
    let client = Client::builder().provider(adapter).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let mut session = Session::builder(client, profile, env_with_sleep()).resume(record).build().unwrap();
    assert!(session.resumed().is_none(), "no run was left unfinished");
    assert_eq!(session.submit("go on").await.unwrap().text, "second", "the follow-up is still queued");
    let history = session.history();
    let inputs = history.iter().filter(|turn| turn.kind == TurnKind::User);
    let inputs: Vec<String> = inputs.map(|turn| turn.content()).collect();
    assert_eq!(inputs, ["go", "go on", "and then?"]);
}

#[tokio::test]
async fn detaching_from_an_idle_session_records_nothing() {
    let adapter = anthropic().answer("done");
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.record(true));
    let handle = harness.session.handle();
    harness.session.submit("go").await.unwrap();
    let before = handle.record().unwrap();
    harness.session.detach().await;
    assert_eq!(handle.record().unwrap(), before);
}
