//! Many concurrent requests.

use pintle_test_conditions::cases;

use super::*;

/// One round asks about many commands. They are decided on in reverse order, every second one is denied, and another
/// client denies all of them a moment later. The decisions exceed the queue of the session.
#[tokio::test]
async fn each_of_many_requests_has_its_own_decision() {
    let many = cases(550, 1_000);
    let env = env();
    let commands: Vec<_> = (0..many).map(|n| ("shell", json!({"command": format!("make {n}")}))).collect();
    let session = session(&env, &[calls(&commands)], |builder| builder);
    let handle = session.handle();
    let run = session.submit("go");
    timeout(TIMEOUT, async {
        while handle.approvals().len() < many {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let number = |id: &str| id.strip_prefix("call_").unwrap().parse::<usize>().unwrap();
    let mut waiting = handle.approvals();
    waiting.sort_by_key(|request| std::cmp::Reverse(number(&request.call_id)));
    for request in &waiting {
        let decision = match number(&request.call_id) % 2 {
            0 => Decision::Approve,
            _ => Decision::Deny { reason: Some("odd".to_owned()) },
        };
        for decision in [decision, Decision::Deny { reason: Some("late".to_owned()) }] {
            // The queue of a session is bounded, so whoever decides on so many waits for it.
            while let Err(SessionError::Full(_)) =
                handle.decide_exactly(&request.call_id, request.fingerprint, decision.clone())
            {
                tokio::task::yield_now().await;
            }
        }
    }
    assert_eq!(timeout(TIMEOUT, run).await.unwrap().unwrap().status, OutcomeStatus::Completed);
    assert!(handle.approvals().is_empty());

    let mut ran: Vec<usize> = env
        .commands()
        .iter()
        .filter_map(|command| match &command.program {
            Program::Shell(line) => line.strip_prefix("make ")?.parse().ok(),
            Program::Argv { .. } => None,
        })
        .collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..many).step_by(2).collect::<Vec<_>>(), "each approved command once, and no other");
    let results = results(&session);
    assert_eq!(results.len(), many);
    for (n, result) in results.iter().enumerate() {
        assert_eq!(result.contains("odd"), n % 2 == 1, "{n}: {result}");
        assert!(!result.contains("late"), "{n}: {result}");
    }
}
