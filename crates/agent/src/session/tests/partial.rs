//! Text of responses that were cut off.

use std::time::Duration;

use super::*;

fn cut_off() -> Error {
    Error::new(ErrorKind::Server, "overloaded")
}

/// Configures a delay between two attempts that is long enough to stop in.
fn patient(builder: SessionBuilder) -> SessionBuilder {
    let slow = RetryPolicy::default().with_base_delay(Duration::from_secs(60));
    builder.with_config(SessionConfig::default().with_retry(slow))
}

fn assistant_texts(session: &Session) -> Vec<String> {
    let turns = session.history();
    turns.iter().filter(|turn| turn.kind == TurnKind::Assistant).map(|turn| turn.content()).collect()
}

/// The user has read the text, so it belongs in the history.
#[tokio::test]
async fn text_of_a_failed_attempt_survives_a_stop() {
    for closes in [false, true] {
        let adapter = anthropic().cut("I would rather", cut_off()).answer("Not asked for.");
        let harness = harness_with(adapter, env(), patient);
        let mut run = harness.session.submit("go");
        until(&mut run, "WARNING").await;
        let handle = harness.session.handle();
        if closes { handle.close() } else { handle.stop_turn() }.unwrap();
        let expected = if closes { OutcomeStatus::Aborted } else { OutcomeStatus::Interrupted };
        assert_eq!(run.await.or_else(crate::RunError::into_outcome).unwrap().status, expected);
        assert_eq!(assistant_texts(&harness.session), ["I would rather"]);
        assert_eq!(harness.adapter.requests().len(), 1);
    }
}

/// An attempt without text does not replace the text of an earlier one.
#[tokio::test(start_paused = true)]
async fn newest_attempt_with_text_is_kept() {
    let silent = || anthropic().cut("One.", cut_off()).failure(cut_off());
    for (adapter, expected) in
        [(silent(), "One."), (anthropic().cut("One.", cut_off()).cut("Two.", cut_off()), "Two.")]
    {
        let harness = harness_with(adapter, env(), patient);
        let mut run = harness.session.submit("go");
        until(&mut run, "WARNING").await;
        until(&mut run, "WARNING").await;
        harness.session.handle().stop_turn().unwrap();
        assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
        assert_eq!(assistant_texts(&harness.session), [expected]);
    }
}

#[tokio::test]
async fn failed_attempt_is_not_part_of_the_response() {
    let harness = harness(anthropic().cut("One.", cut_off()).answer("Two."), env());
    assert_eq!(harness.session.submit("go").await.unwrap().text, "Two.");
    assert_eq!(assistant_texts(&harness.session), ["Two."]);
}
