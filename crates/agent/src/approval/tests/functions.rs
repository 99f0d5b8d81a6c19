//! Approvers from closures and channels.

use super::*;

#[tokio::test]
async fn a_closure_decides() {
    let env = env();
    let approver = approver_fn(|request: ApprovalRequest| async move {
        match request.tool_name.as_str() {
            "edit_file" => Decision::Approve,
            _ => Decision::Deny { reason: Some("no commands".to_owned()) },
        }
    });
    let session = session(&env, &[calls(&[edit(), shell()])], |builder| builder.approver(approver));
    session.submit("go").await.unwrap();
    assert_eq!((content(&env).as_str(), make_runs(&env)), ("one\n2\n", 0));
    assert!(results(&session)[1].contains("no commands"), "{:?}", results(&session));
}

#[tokio::test]
async fn a_receiver_decides() {
    let env = env();
    let (approver, mut requests) = approver_channel(1);
    let session = session(&env, &[calls(&[edit()])], |builder| builder.approver(approver));
    let run = session.submit("go");
    let pending = timeout(TIMEOUT, requests.next()).await.unwrap().unwrap();
    assert_eq!((pending.request.tool_name.as_str(), pending.is_withdrawn()), ("edit_file", false));
    pending.decide(Decision::Approve);
    run.await.unwrap();
    assert_eq!(content(&env), "one\n2\n");
}

#[tokio::test]
async fn a_call_without_a_decision_is_denied() {
    for keeps_receiver in [true, false] {
        let env = env();
        let (approver, mut requests) = approver_channel(1);
        let session = session(&env, &[calls(&[edit()])], |builder| builder.approver(approver));
        let run = session.submit("go");
        if keeps_receiver {
            drop(timeout(TIMEOUT, requests.next()).await.unwrap());
        } else {
            drop(requests);
        }
        run.await.unwrap();
        assert!(results(&session)[0].contains("the application did not decide"), "{:?}", results(&session));
    }
}
