//! Provider failures over HTTP (section 9.11).

use pintle_agent::{EventKind, OutcomeStatus, SessionState};
use pintle_llm::ErrorKind;
use pintle_testkit::Dialect;

use crate::harness::{Harness, KEY, in_each_dialect, kinds};

in_each_dialect![
    transient_failures_are_retried,
    a_truncated_stream_is_retried,
    a_wrong_key_closes_the_session,
    a_refused_request_leaves_the_session_usable,
];

async fn transient_failures_are_retried(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        text = "Here I am."
        [[turn.failure]]
        status = 429
        retry_after = "0"
        [[turn.failure]]
        status = 503
        "#,
    )
    .await;
    let (events, outcome) = harness.run("Hello").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Here I am."));
    assert_eq!(kinds(&events).iter().filter(|kind| *kind == "WARNING").count(), 2, "each retry is told");
    harness.finish().await;
}

async fn a_truncated_stream_is_retried(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        text = "A sentence that is long enough to come in several pieces, so that the cut falls within it."
        [[turn.failure]]
        cut_after_events = 4
        [[turn.failure]]
        error_event = "overloaded"
        "#,
    )
    .await;
    let (events, outcome) = harness.run("Hello").await;
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    assert!(outcome.text.ends_with("falls within it."));
    let mut open = 0;
    for event in &events {
        match &event.kind {
            EventKind::AssistantTextStart {} => open += 1,
            EventKind::AssistantTextEnd { .. } => open -= 1,
            _ => {}
        }
        assert!((0..=1).contains(&open), "starts and ends pair");
    }
    assert_eq!((open, harness.session.history().len()), (0, 2));
    harness.finish().await;
}

async fn a_wrong_key_closes_the_session(dialect: Dialect) {
    let harness =
        Harness::with(dialect, "[[turn]]\ntext = \"never\"\n", Default::default(), |builder| builder).await;
    let client = crate::harness::client(&harness.server, dialect, "sk-wrong-secret");
    let env = pintle_env::LocalEnvironment::builder(harness.directory.path()).build().unwrap();
    let session =
        pintle_agent::Session::builder(client, crate::harness::profile(dialect), std::sync::Arc::new(env))
            .build()
            .unwrap();
    let outcome = session.submit("Hello").await.unwrap();
    let error = outcome.error.unwrap();
    assert_eq!((outcome.status, error.kind), (OutcomeStatus::Failed, ErrorKind::Authentication), "{error}");
    assert_eq!(session.state(), SessionState::Closed);
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("sk-wrong-secret") && !shown.contains(KEY), "{shown}");
    assert_eq!(harness.server.requests().len(), 1, "no retry");
}

async fn a_refused_request_leaves_the_session_usable(dialect: Dialect) {
    for (status, kind) in [(400, ErrorKind::InvalidRequest), (404, ErrorKind::NotFound)] {
        let turns = format!(
            "[[turn]]\ntext = \"Hi.\"\n[[turn]]\ntext = \"Fine.\"\n[[turn.failure]]\nstatus = {status}\n"
        );
        let harness = Harness::new(dialect, &turns).await;
        harness.run("Hello").await;
        let outcome = harness.session.submit("How are you").await.unwrap();
        assert_eq!((outcome.status, outcome.error.unwrap().kind), (OutcomeStatus::Failed, kind));
        assert_eq!(harness.session.state(), SessionState::Idle);
        assert_eq!(harness.run("Once more").await.1.text, "Fine.");
        harness.finish().await;
    }
}
