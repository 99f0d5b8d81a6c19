//! Limits and queues over HTTP (sections 2.6, 2.8).

use pintle_agent::{OutcomeStatus, SessionConfig, SessionState};
use pintle_testkit::Dialect;

use crate::harness::{Harness, in_each_dialect, kinds};

in_each_dialect![round_limit, turn_limit, follow_up, a_question, sequential_inputs];

const ROUND: &str = "[[turn]]\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*.rs\" }\n";

async fn round_limit(dialect: Dialect) {
    let config = SessionConfig::default().with_max_tool_rounds(2);
    let harness = Harness::configured(dialect, &ROUND.repeat(2), config).await;
    let (events, outcome) = harness.run("Go").await;
    assert_eq!((outcome.status, outcome.model_calls), (OutcomeStatus::RoundLimit, 2));
    assert!(kinds(&events).contains(&"TURN_LIMIT".to_owned()));
    assert_eq!(harness.session.state(), SessionState::Idle);
    harness.finish().await;
}

async fn turn_limit(dialect: Dialect) {
    let turns = format!("[[turn]]\ntext = \"one\"\n{ROUND}");
    let harness = Harness::configured(dialect, &turns, SessionConfig::default().with_max_turns(2)).await;
    assert_eq!(harness.run("a").await.1.status, OutcomeStatus::Completed);
    assert_eq!(harness.run("b").await.1.status, OutcomeStatus::TurnLimit);
    harness.finish().await;
}

async fn follow_up(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        "[[turn]]\ntext = \"one\"\npause_ms = 5\n[[turn]]\ntext = \"two\"\n[[turn.expect]]\nrequest_contains = \"then this\"\n",
    )
    .await;
    let run = harness.session.submit("first this");
    harness.session.handle().follow_up("then this").await.unwrap();
    let outcome = run.await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "two"));
    harness.finish().await;
}

async fn a_question(dialect: Dialect) {
    let harness =
        Harness::new(dialect, "[[turn]]\ntext = \"Which one?\"\n[[turn]]\ntext = \"Thanks.\"\n").await;
    assert_eq!(harness.run("Do it").await.1.status, OutcomeStatus::AwaitingInput);
    assert_eq!(harness.session.state(), SessionState::AwaitingInput);
    assert_eq!(harness.run("That one").await.1.status, OutcomeStatus::Completed);
    harness.finish().await;
}

async fn sequential_inputs(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        "[[turn]]\ntext = \"one\"\n[[turn]]\ntext = \"two\"\n[[turn.expect]]\nrequest_contains = \"first input\"\n",
    )
    .await;
    harness.run("first input").await;
    assert_eq!(harness.run("second input").await.1.text, "two");
    assert_eq!(harness.session.history().len(), 4);
    harness.finish().await;
}
