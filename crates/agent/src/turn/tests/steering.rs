//! Steering messages and follow-ups.

use super::*;

#[test]
fn steering_enters_after_the_round_and_before_the_next_request() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Steer { message: "early".into() });
    harness.submit("go");
    assert_eq!(
        harness.sent(),
        ["user go", "user early"],
        "steering while idle is delivered with the next input"
    );
    harness.call(&["a"]);
    harness.tell(InputKind::Steer { message: "first".into() });
    harness.tell(InputKind::Steer { message: "second".into() });
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "ok");
    assert_eq!(harness.sent()[3..], ["results a0:ok", "user first", "user second"]);
    let kinds: Vec<TurnKind> = harness.machine.history().iter().map(|turn| turn.kind).collect();
    assert_eq!(kinds[4..], [TurnKind::Steering, TurnKind::Steering]);
    assert_eq!(harness.kinds().iter().filter(|kind| *kind == "STEERING_INJECTED").count(), 3);
}

#[test]
fn steering_during_the_last_response_is_delivered() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Steer { message: "also this".into() });
    harness.say("done");
    assert_eq!(harness.sent(), ["user go", "assistant done", "user also this"]);
    harness.say("that too");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn follow_ups_run_one_after_the_other_within_the_run() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.tell(InputKind::FollowUp { message: "two".into() });
    harness.tell(InputKind::FollowUp { message: "three".into() });
    harness.say("1");
    assert!(harness.outcomes.is_empty());
    harness.say("2");
    harness.say("3");
    assert_eq!(harness.outcomes.len(), 1);
    assert_eq!(harness.outcomes[0].text, "3");
    assert_eq!(
        harness.machine.history().iter().map(Turn::content).collect::<Vec<_>>(),
        ["one", "1", "two", "2", "three", "3"]
    );
    assert_eq!(harness.kinds().iter().filter(|kind| *kind == "PROCESSING_END").count(), 1);
}

#[test]
fn steering_answers_a_question() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["ask_user"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.tell(InputKind::Steer { message: "take 8080".into() });
    harness.ask(0, "Which port?");
    assert!(harness.outcomes.is_empty());
    assert_eq!(harness.requests.len(), 2);
}

#[test]
fn queues_are_bounded() {
    let mut harness = Harness::with(TurnLimits { max_queued: 2, ..TurnLimits::default() });
    for text in ["1", "2", "3", " "] {
        harness.tell(InputKind::Steer { message: text.into() });
    }
    assert_eq!(harness.kinds().iter().filter(|kind| *kind == "WARNING").count(), 2);
    harness.submit("go");
    assert_eq!(harness.sent(), ["user go", "user 1", "user 2"]);
}

#[test]
fn steering_is_delivered_once_and_in_order_whenever_it_comes() {
    type Prepare = fn(&mut Harness);
    let cases: [(&str, Prepare); 6] = [
        ("idle", |_| {}),
        ("loading", |harness| harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() })),
        ("model", |harness| harness.submit("go")),
        ("round", |harness| {
            harness.submit("go");
            harness.call(&["a"]);
        }),
        ("awaiting input", |harness| {
            harness.submit("go");
            harness.say("Which one?");
        }),
        ("interrupting", |harness| {
            harness.submit("go");
            harness.tell(InputKind::Interrupt);
        }),
    ];
    for (phase, prepare) in cases {
        let mut harness = Harness::new();
        prepare(&mut harness);
        for text in ["first", "second"] {
            harness.tell(InputKind::Steer { message: text.into() });
        }
        match phase {
            "loading" => harness.load(),
            "model" => harness.say("done"),
            "round" => {
                harness.prepared(0, Effect::Read, &[]);
                harness.finish(0, "ok");
            }
            "interrupting" => {
                harness.failed(ErrorKind::Abort, "");
                assert_eq!(harness.requests.len(), 1, "an interrupt does not start queued inputs");
                harness.submit("next");
            }
            _ => harness.submit("next"),
        }
        harness.say("done");
        harness.submit("at last");
        let sent = harness.sent();
        let steered: Vec<&String> =
            sent.iter().filter(|text| text.contains("first") || text.contains("second")).collect();
        assert_eq!(steered, ["user first", "user second"], "{phase}");
        let first = sent.iter().position(|text| text == "user first").unwrap();
        assert_eq!(sent[first + 1], "user second", "{phase}");
        assert_eq!(harness.kinds().iter().filter(|kind| *kind == "STEERING_INJECTED").count(), 2, "{phase}");
    }
}

#[test]
fn follow_ups_survive_an_interrupt_and_a_failure() {
    for stop in [true, false] {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.tell(InputKind::FollowUp { message: "later".into() });
        if stop {
            harness.tell(InputKind::Interrupt);
            harness.failed(ErrorKind::Abort, "");
        } else {
            harness.failed(ErrorKind::Server, "");
        }
        assert_eq!(harness.requests.len(), 1, "a stopped turn stays stopped");
        harness.submit("again");
        harness.say("done");
        assert_eq!(harness.sent().last().unwrap(), "user later");
    }
}
