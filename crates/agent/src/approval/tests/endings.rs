//! How requests for approval end, what a decision is bound to, and what is remembered of it.

use super::*;
use crate::SessionHandle;
use crate::protocol::{ApprovalEnding, Principal};

/// Returns the ending of each request, with who decided.
async fn endings(session: Session) -> Vec<(Option<ApprovalEnding>, Option<String>)> {
    let mut events = session.events_from(0);
    session.close().await;
    let mut endings = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::ApprovalDecided { ending, by, .. } = event.kind {
            endings.push((ending, by.map(|by| by.as_str().to_owned())));
        }
    }
    endings
}

/// Waits until a call needs a decision, and returns its fingerprint.
pub(super) async fn waiting(session: &Session) -> pintle_llm::Fingerprint {
    let handle = session.handle();
    timeout(TIMEOUT, async {
        loop {
            if let Some(request) = handle.approvals().first() {
                return request.fingerprint;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_decision_is_on_record_with_who_made_it() {
    for (decision, ending) in [
        (Decision::Approve, ApprovalEnding::Allowed),
        (Decision::Deny { reason: None }, ApprovalEnding::Denied),
    ] {
        let session = session(&env(), &[calls(&[shell()])], |builder| builder);
        let run = session.submit("go");
        waiting(&session).await;
        let jan = session.handle().acting_as(Principal::new("jan"));
        jan.decide("call_0", decision.clone()).unwrap();
        run.await.unwrap();
        assert_eq!(endings(session).await, [(Some(ending), Some("jan".to_owned()))]);
    }
}

#[tokio::test]
async fn a_stopped_turn_cancels_its_requests() {
    let session = session(&env(), &[calls(&[shell(), edit()])], |builder| builder);
    let run = session.submit("go");
    waiting(&session).await;
    session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    let cancelled = (Some(ApprovalEnding::Cancelled), None);
    let endings = endings(session).await;
    assert!(!endings.is_empty() && endings.iter().all(|ending| *ending == cancelled), "{endings:?}");
}

#[tokio::test]
async fn a_changed_call_is_judged_again_and_runs_as_changed() {
    let env = env();
    let session = session(&env, &[calls(&[edit()])], |builder| builder.gate(ChangesBelow("/p")));
    let run = session.submit("go");
    waiting(&session).await;
    let arguments = json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"});
    let jan = session.handle().acting_as(Principal::new("jan"));
    jan.decide("call_0", Decision::Change { arguments: arguments.clone() }).unwrap();
    run.await.unwrap();
    assert_eq!(content(&env), "one\nthree\n");
    let note = format!("[The arguments were changed by jan before the call ran: {arguments}]\n");
    let [result] = results(&session).try_into().unwrap();
    assert!(result.starts_with(&note), "{result}");
    let superseded = (Some(ApprovalEnding::Superseded), Some("jan".to_owned()));
    assert_eq!(endings(session).await, [superseded]);
}

#[tokio::test]
async fn a_change_of_arguments_cannot_get_round_a_gate() {
    let env = env();
    let session = session(&env, &[calls(&[edit()])], |builder| builder.gate(ChangesBelow("/p")));
    let run = session.submit("go");
    waiting(&session).await;
    let arguments = json!({"file_path": "/etc/passwd", "old_string": "a", "new_string": "b"});
    session.handle().decide("call_0", Decision::Change { arguments }).unwrap();
    run.await.unwrap();
    let [result] = results(&session).try_into().unwrap();
    assert_eq!(result, "The call of edit_file was denied: /etc/passwd is outside of /p");
    let unfit = json!({"file_path": 7});
    let (env, rounds) = (super::env(), [calls(&[edit()])]);
    let session = super::session(&env, &rounds, |builder| builder);
    let run = session.submit("go");
    waiting(&session).await;
    session.handle().decide("call_0", Decision::Change { arguments: unfit }).unwrap();
    run.await.unwrap();
    let [result] = results(&session).try_into().unwrap();
    assert!(result.contains("old_string"), "{result}");
}

#[tokio::test]
async fn a_denied_call_is_not_asked_about_again_until_something_changes() {
    let (env, approver) = (env(), FixedApprover::new(Decision::Deny { reason: None }));
    let again = || calls(&[shell()]);
    let session = session(&env, &[again(), again()], |builder| builder.approver(approver.clone()));
    session.submit("go").await.unwrap();
    assert_eq!(approver.asked().len(), 1);
    let [first, second] = results(&session).try_into().unwrap();
    assert_eq!(first, "The call of shell was denied");
    assert!(second.contains("it was denied before, with the same arguments"), "{second}");
    assert_eq!(make_runs(&env), 0);

    let adapter = FakeAdapter::new("anthropic").message(again()).answer("done").message(again());
    let client = Client::builder().provider(adapter.answer("done")).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let gate = EffectGate::new().with_permission(Effect::Execute, Permission::Ask);
    let builder = Session::builder(client, profile, env as Arc<dyn ExecutionEnvironment>).gate(gate);
    let session = builder.approver(approver.clone()).build().unwrap();
    session.submit("go").await.unwrap();
    assert_eq!(approver.asked().len(), 2);
    session.submit("again").await.unwrap();
    assert_eq!(approver.asked().len(), 3, "a message of the user makes the question possible again");
}

/// As when the terminal of the process is closed.
#[tokio::test]
async fn an_abandoned_session_leaves_its_requests_on_record() {
    leaves_its_requests_on_record(SessionHandle::abandon).await;
}

#[tokio::test]
async fn a_session_that_is_left_in_a_run_leaves_its_requests_on_record() {
    leaves_its_requests_on_record(SessionHandle::detach).await;
}

async fn leaves_its_requests_on_record(end: fn(&SessionHandle) -> Result<(), SessionError>) {
    let env = env();
    let session = session(&env, &[calls(&[shell(), edit()])], |builder| builder.record(true));
    let (handle, run) = (session.handle(), session.submit("go"));
    waiting(&session).await;
    while handle.approvals().len() < 2 {
        tokio::task::yield_now().await;
    }
    let before = handle.record().unwrap();
    end(&handle).unwrap();
    let _ended = handle.decide("call_0", Decision::Approve);
    assert!(timeout(TIMEOUT, run.outcome()).await.unwrap().is_err(), "the run goes on in another process");
    session.close().await;
    let record = handle.record().unwrap();
    assert_eq!(record, before);
    let waiting = record.replay().unwrap().pending_approvals();
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    assert_eq!((make_runs(&env), env.running()), (0, 0));

    let builder = |builder: SessionBuilder| builder.resume(record);
    let mut resumed = super::session(&env, &[], builder);
    let run = resumed.resumed().unwrap();
    let handle = resumed.handle();
    while handle.approvals().len() < 2 {
        tokio::task::yield_now().await;
    }
    handle.decide("call_0", Decision::Approve).unwrap();
    handle.decide("call_1", Decision::Deny { reason: None }).unwrap();
    assert_eq!(run.await.unwrap().status, crate::protocol::OutcomeStatus::Completed);
    assert_eq!((make_runs(&env), content(&env).as_str()), (1, "one\ntwo\n"));
}
