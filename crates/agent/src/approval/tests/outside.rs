//! Calls that leave the sandbox.

use pintle_tools::OUTSIDE_SANDBOX;

use super::endings::waiting;
use super::*;

fn outside(outside: bool) -> (&'static str, serde_json::Value) {
    ("shell", json!({"command": "make", OUTSIDE_SANDBOX: outside}))
}

/// Returns an environment with a sandbox, and what is outside of it.
fn sandboxed() -> (Arc<MemoryEnvironment>, Arc<MemoryEnvironment>) {
    let outside = env();
    let inside = MemoryEnvironment::new("/p").with_commands(|_| CommandScript::exit(0));
    (Arc::new(inside.with_sandbox(&outside)), outside)
}

#[tokio::test]
async fn a_person_decides_on_which_side_a_call_runs() {
    let inside_instead = Decision::Change { arguments: json!({"command": "make"}) };
    let cases = [
        (Decision::Approve, [0, 1]),
        (inside_instead, [1, 0]),
        (Decision::Deny { reason: Some("use the cache".to_owned()) }, [0, 0]),
    ];
    for (decision, expected) in cases {
        let ((inside, outside_env), approver) = (sandboxed(), FixedApprover::new(decision.clone()));
        let session =
            session(&inside, &[calls(&[outside(true)])], |builder| builder.approver(approver.clone()));
        session.submit("go").await.unwrap();
        let asked = approver.asked();
        let [request] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(request.sandbox, Some(SandboxSide::Outside));
        assert_eq!(request.reason, "the call runs a command; it runs outside of the sandbox");
        assert_eq!([make_runs(&inside), make_runs(&outside_env)], expected, "{decision:?}");
    }
}

/// A gate that allows all commands does not allow them outside.
#[tokio::test]
async fn a_session_without_a_question_of_its_gates_asks_about_it() {
    let ((inside, outside_env), approver) = (sandboxed(), FixedApprover::new(Decision::Approve));
    let adapter =
        FakeAdapter::new("anthropic").message(calls(&[outside(false)])).message(calls(&[outside(true)]));
    let client = Client::builder().provider(adapter.answer("done")).build().unwrap();
    let env = Arc::clone(&inside) as Arc<dyn ExecutionEnvironment>;
    let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env)
        .approver(approver.clone())
        .build()
        .unwrap();
    session.submit("go").await.unwrap();
    let asked = approver.asked();
    let reasons: Vec<&str> = asked.iter().map(|request| request.reason.as_str()).collect();
    assert_eq!(reasons, ["it runs outside of the sandbox"]);
    assert_eq!([make_runs(&inside), make_runs(&outside_env)], [1, 1]);
}

#[tokio::test]
async fn the_event_says_on_which_side_a_command_would_run() {
    for (sandbox, side) in [(true, Some(SandboxSide::Inside)), (false, None)] {
        let env = if sandbox { sandboxed().0 } else { env() };
        let approver = FixedApprover::new(Decision::Approve);
        let session = session(&env, &[calls(&[shell(), edit()])], |builder| builder.approver(approver));
        session.submit("go").await.unwrap();
        let mut events = session.events_from(0);
        let mut sides = Vec::new();
        session.close().await;
        while let Some(event) = events.next().await {
            if let EventKind::ApprovalRequested { tool_name, sandbox, .. } = event.kind {
                sides.push((tool_name, sandbox));
            }
        }
        sides.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(sides, [("edit_file".to_owned(), None), ("shell".to_owned(), side)]);
    }
}

#[tokio::test]
async fn a_tool_offers_it_only_where_a_sandbox_can_be_left() {
    for (env, expected) in [(sandboxed().0, true), (env(), false)] {
        let approver = FixedApprover::new(Decision::Approve);
        let session = session(&env, &[calls(&[outside(true)])], |builder| builder.approver(approver.clone()));
        session.submit("go").await.unwrap();
        let results = results(&session);
        assert_eq!(results[0].contains("Invalid arguments for tool: shell"), !expected, "{results:?}");
        assert_eq!(approver.asked().len(), usize::from(expected));
        assert_eq!(make_runs(&env), 0);
    }
}

#[tokio::test]
async fn an_approval_outside_releases_one_start() {
    let (inside, outside_env) = sandboxed();
    let (name, arguments) = outside(true);
    let again = ToolCall::from_raw("call_9", name, arguments.to_string());
    let again = Message::new(Role::Assistant, vec![again.into()]);
    let session = session(&inside, &[calls(&[outside(true)]), again], |builder| builder);
    let handle = session.handle();
    let run = session.submit("go");
    let ticket = waiting(&session).await;
    handle.decide_exactly("call_0", ticket, Decision::Approve).unwrap();
    // The ticket is used up: neither for the call again, nor for the same command of the next round.
    let next = timeout(TIMEOUT, async {
        loop {
            let _refused = handle.decide_exactly("call_0", ticket, Decision::Approve);
            tokio::task::yield_now().await;
            let next = waiting(&session).await;
            if next != ticket {
                return next;
            }
        }
    });
    let next = next.await.unwrap();
    for call in ["call_0", "call_9"] {
        assert!(matches!(
            handle.decide_exactly(call, ticket, Decision::Approve),
            Err(SessionError::NoSuchApproval(_))
        ));
    }
    assert_eq!(make_runs(&outside_env), 1);
    handle.decide_exactly("call_9", next, Decision::Deny { reason: None }).unwrap();
    run.await.unwrap();
    assert_eq!([make_runs(&inside), make_runs(&outside_env)], [0, 1]);
}

#[tokio::test]
async fn the_offer_ends_with_the_environment_that_has_the_sandbox() {
    let (first, outside_env) = sandboxed();
    let approver = FixedApprover::new(Decision::Approve);
    let plain = env();
    let session = session(&first, &[calls(&[outside(true)])], |builder| builder.approver(approver.clone()));
    session.handle().set_environment(Arc::clone(&plain) as Arc<dyn ExecutionEnvironment>).unwrap();
    session.submit("go").await.unwrap();
    assert!(results(&session)[0].contains("Invalid arguments"), "{:?}", results(&session));
    assert_eq!([make_runs(&plain), make_runs(&outside_env)], [0, 0]);
}
