//! The text of an answer that did not come to its end.

use std::time::Duration;

use super::*;

fn cut_off() -> Error {
    Error::new(ErrorKind::Server, "overloaded")
}

/// With time enough between two attempts to stop in.
fn patient(builder: SessionBuilder) -> SessionBuilder {
    let slow = RetryPolicy::default().with_base_delay(Duration::from_secs(60));
    builder.config(SessionConfig::default().with_retry(slow))
}

fn said(session: &Session) -> Vec<String> {
    let turns = session.history();
    turns.iter().filter(|turn| turn.kind == TurnKind::Assistant).map(|turn| turn.content()).collect()
}

/// The user has read it, and the model should know that it said it.
#[tokio::test]
async fn what_a_failed_attempt_said_is_kept_if_the_turn_is_stopped_before_the_next() {
    for closes in [false, true] {
        let adapter = anthropic().cut("I would rather", cut_off()).answer("Not asked for.");
        let bench = bench_with(adapter, env(), patient);
        let mut run = bench.session.submit("go");
        until(&mut run, "WARNING").await;
        let handle = bench.session.handle();
        if closes { handle.abort() } else { handle.interrupt() }.unwrap();
        let expected = if closes { OutcomeStatus::Aborted } else { OutcomeStatus::Interrupted };
        assert_eq!(run.await.unwrap().status, expected);
        assert_eq!(said(&bench.session), ["I would rather"]);
        assert_eq!(bench.adapter.requests().len(), 1);
    }
}

/// An attempt that has said nothing takes nothing back.
#[tokio::test(start_paused = true)]
async fn of_several_attempts_the_last_that_said_something_is_kept() {
    let silent = || anthropic().cut("One.", cut_off()).failure(cut_off());
    for (adapter, expected) in
        [(silent(), "One."), (anthropic().cut("One.", cut_off()).cut("Two.", cut_off()), "Two.")]
    {
        let bench = bench_with(adapter, env(), patient);
        let mut run = bench.session.submit("go");
        until(&mut run, "WARNING").await;
        until(&mut run, "WARNING").await;
        bench.session.handle().interrupt().unwrap();
        assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
        assert_eq!(said(&bench.session), [expected]);
    }
}

#[tokio::test]
async fn what_a_failed_attempt_said_is_no_part_of_the_answer_that_comes_after_it() {
    let bench = bench(anthropic().cut("One.", cut_off()).answer("Two."), env());
    assert_eq!(bench.session.submit("go").await.unwrap().text, "Two.");
    assert_eq!(said(&bench.session), ["Two."]);
}
