//! Provider failures over HTTP (section 9.11).

use pintle_agent::{EventKind, OutcomeStatus, SessionEvent, SessionState};
use pintle_llm::ErrorKind;
use pintle_testkit::Dialect;

use crate::harness::{Harness, KEY, in_each_dialect, kinds, profile};
use crate::stability::continues_to_the_byte;

in_each_dialect![
    transient_failures_are_retried,
    every_transient_status_is_retried,
    a_full_context_window_warns_and_compacts_nothing,
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

async fn every_transient_status_is_retried(dialect: Dialect) {
    for status in [429, 500, 502, 503] {
        let turns = format!("[[turn]]\ntext = \"Here I am.\"\n[[turn.failure]]\nstatus = {status}\n");
        let harness = Harness::new(dialect, &turns).await;
        let (events, outcome) = harness.run("Hello").await;
        assert_eq!(outcome.text, "Here I am.", "{status}");
        let warnings: Vec<&str> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Warning { message } => Some(message.as_str()),
                _ => None,
            })
            .collect();
        let [warning] = warnings.as_slice() else { panic!("{status}: {warnings:?}") };
        assert!(warning.starts_with("model call failed, retry 1 in "), "{status}: {warning}");
        harness.finish().await;
    }
}

/// Checks the warning of the estimate, then that of the provider's error. Every request continues the one before it to
/// the byte.
async fn a_full_context_window_warns_and_compacts_nothing(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        text = "one"
        [[turn]]
        text = "two"
        [[turn]]
        text = "three"
        [[turn.failure]]
        status = 413
        "#;
    let harness = Harness::new(dialect, turns).await;
    let mut small = profile(dialect);
    small.context_window_size = 100_000;
    harness.session.handle().set_profile(small).unwrap();
    let warnings = |events: &[SessionEvent]| -> Vec<String> {
        let warnings = events.iter().filter_map(|event| match &event.kind {
            EventKind::Warning { message } => Some(message.clone()),
            _ => None,
        });
        warnings.collect()
    };
    // 82,500 tokens by the estimate of four characters to one, without the prompt.
    let (events, outcome) = harness.run(&"abc ".repeat(82_500)).await;
    let warned = warnings(&events);
    let share = |text: &str| {
        text.strip_prefix("Context usage at ~")?.strip_suffix("% of context window")?.parse().ok()
    };
    let [Some(share)] = warned.iter().map(|text| share(text)).collect::<Vec<Option<u32>>>()[..] else {
        panic!("{warned:?}")
    };
    assert!((83..95).contains(&share), "{share}");
    assert_eq!(outcome.text, "one");
    assert_eq!(harness.run("more").await.1.text, "two");

    let mut run = harness.session.submit("still more");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let outcome = run.await.or_else(pintle_agent::RunError::into_outcome).unwrap();
    assert_eq!(
        (outcome.status, outcome.error.unwrap().kind),
        (OutcomeStatus::ContextFull, ErrorKind::ContextLength)
    );
    assert_eq!(warnings(&events).len(), 1, "{:?}", warnings(&events));
    assert_eq!(harness.session.state(), SessionState::Idle, "the session continues");
    assert_eq!(harness.run("once more").await.1.text, "three");
    let requests = harness.requests();
    assert_eq!(requests.len(), 4);
    for pair in requests.windows(2) {
        continues_to_the_byte(dialect, &pair[0].raw_body, &pair[1].raw_body);
    }
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
        pintle_agent::Session::builder(client, profile(dialect), std::sync::Arc::new(env)).build().unwrap();
    let outcome = session.submit("Hello").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
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
        let outcome = harness
            .session
            .submit("How are you")
            .await
            .or_else(pintle_agent::RunError::into_outcome)
            .unwrap();
        assert_eq!((outcome.status, outcome.error.unwrap().kind), (OutcomeStatus::Failed, kind));
        assert_eq!(harness.session.state(), SessionState::Idle);
        assert_eq!(harness.run("Once more").await.1.text, "Fine.");
        harness.finish().await;
    }
}
