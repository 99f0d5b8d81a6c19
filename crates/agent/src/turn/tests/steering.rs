//! Messages for a session at work, and inputs that wait.

use super::*;

#[test]
fn steering_enters_after_the_round_and_before_the_next_request() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Steer { text: "early".into() });
    bench.submit("go");
    assert_eq!(bench.sent(), ["user go", "user early"], "idle steering comes with the next input");
    bench.call(&["a"]);
    bench.tell(InputKind::Steer { text: "first".into() });
    bench.tell(InputKind::Steer { text: "second".into() });
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "ok");
    assert_eq!(bench.sent()[3..], ["results a0:ok", "user first", "user second"]);
    let kinds: Vec<TurnKind> = bench.machine.history().iter().map(|turn| turn.kind).collect();
    assert_eq!(kinds[4..], [TurnKind::Steering, TurnKind::Steering]);
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "STEERING_INJECTED").count(), 3);
}

#[test]
fn steering_during_the_last_answer_is_not_left_waiting() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.tell(InputKind::Steer { text: "also this".into() });
    bench.say("done");
    assert_eq!(bench.sent(), ["user go", "assistant done", "user also this"]);
    bench.say("that too");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn follow_ups_run_one_after_the_other_within_the_run() {
    let mut bench = Bench::new();
    bench.submit("one");
    bench.tell(InputKind::FollowUp { text: "two".into() });
    bench.tell(InputKind::FollowUp { text: "three".into() });
    bench.say("1");
    assert!(bench.outcomes.is_empty());
    bench.say("2");
    bench.say("3");
    assert_eq!(bench.outcomes.len(), 1);
    assert_eq!(bench.outcomes[0].text, "3");
    assert_eq!(
        bench.machine.history().iter().map(Turn::content).collect::<Vec<_>>(),
        ["one", "1", "two", "2", "three", "3"]
    );
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "PROCESSING_END").count(), 1);
}

#[test]
fn a_question_is_not_waited_on_once_someone_has_steered() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["ask_user"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.tell(InputKind::Steer { text: "take 8080".into() });
    bench.ask(0, "Which port?");
    assert!(bench.outcomes.is_empty());
    assert_eq!(bench.requests.len(), 2);
}

#[test]
fn queues_are_bounded() {
    let mut bench = Bench::with(TurnLimits { max_queued: 2, ..TurnLimits::default() });
    for text in ["1", "2", "3", " "] {
        bench.tell(InputKind::Steer { text: text.into() });
    }
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "WARNING").count(), 2);
    bench.submit("go");
    assert_eq!(bench.sent(), ["user go", "user 1", "user 2"]);
}

#[test]
fn steering_is_delivered_once_and_in_order_whenever_it_comes() {
    type Prepare = fn(&mut Bench);
    let rows: [(&str, Prepare); 6] = [
        ("idle", |_| {}),
        ("loading", |bench| bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() })),
        ("model", |bench| bench.submit("go")),
        ("round", |bench| {
            bench.submit("go");
            bench.call(&["a"]);
        }),
        ("awaiting input", |bench| {
            bench.submit("go");
            bench.say("Which one?");
        }),
        ("interrupting", |bench| {
            bench.submit("go");
            bench.tell(InputKind::Interrupt);
        }),
    ];
    for (phase, prepare) in rows {
        let mut bench = Bench::new();
        prepare(&mut bench);
        for text in ["first", "second"] {
            bench.tell(InputKind::Steer { text: text.into() });
        }
        match phase {
            "loading" => bench.load(),
            "model" => bench.say("done"),
            "round" => {
                bench.prepared(0, Effect::Read, &[]);
                bench.finish(0, "ok");
            }
            "interrupting" => {
                bench.failed(ErrorKind::Abort, "");
                assert_eq!(bench.requests.len(), 1, "an interrupt does not go on with what waits");
                bench.submit("next");
            }
            _ => bench.submit("next"),
        }
        bench.say("done");
        bench.submit("at last");
        let sent = bench.sent();
        let steered: Vec<&String> =
            sent.iter().filter(|text| text.contains("first") || text.contains("second")).collect();
        assert_eq!(steered, ["user first", "user second"], "{phase}");
        let first = sent.iter().position(|text| text == "user first").unwrap();
        assert_eq!(sent[first + 1], "user second", "{phase}");
        assert_eq!(bench.kinds().iter().filter(|kind| *kind == "STEERING_INJECTED").count(), 2, "{phase}");
    }
}

#[test]
fn follow_ups_wait_out_an_interrupt_and_a_failure() {
    for stop in [true, false] {
        let mut bench = Bench::new();
        bench.submit("go");
        bench.tell(InputKind::FollowUp { text: "later".into() });
        if stop {
            bench.tell(InputKind::Interrupt);
            bench.failed(ErrorKind::Abort, "");
        } else {
            bench.failed(ErrorKind::Server, "");
        }
        assert_eq!(bench.requests.len(), 1, "a turn that was stopped does not go on by itself");
        bench.submit("again");
        bench.say("done");
        assert_eq!(bench.sent().last().unwrap(), "user later");
    }
}
