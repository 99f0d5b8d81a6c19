//! Compaction of long conversations, in each dialect. The scripted server refuses requests that its provider would
//! refuse, such as calls without results.

use std::fmt::Write as _;

use pintle_agent::{CompactionPolicy, EventKind, OutcomeStatus, Session, SessionConfig, SessionEvent};
use pintle_env::LocalEnvironment;
use pintle_test_conditions::cases;
use pintle_testkit::{Dialect, RecordedRequest};
use serde_json::Value;

use crate::harness::{Harness, KEY, client, in_each_dialect, kinds, profile};

in_each_dialect![
    requests_stay_well_formed_and_their_beginning_stable,
    automatic_compaction_keeps_the_work_going
];

/// Turns of a task: this many rounds with a call, and an answer.
fn task(rounds: usize, answer: &str) -> String {
    let mut text = String::new();
    for round in 0..rounds {
        let _ = write!(
            text,
            "[[turn]]\ntext = \"Round {round}.\"\n[[turn.call]]\ntool = \"read_file\"\n\
             arguments = {{ file_path = \"part.txt\" }}\n"
        );
    }
    let _ = write!(text, "[[turn]]\ntext = \"{answer}\"\n");
    text
}

/// Returns the messages of a request, without the marks of a cache, which move with the conversation.
fn messages(request: &RecordedRequest) -> Vec<Value> {
    let field = ["messages", "input", "contents"].into_iter().find_map(|name| request.body.get(name));
    field.unwrap().as_array().unwrap().iter().map(without_cache_marks).collect()
}

fn without_cache_marks(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "cache_control");
            Value::Object(kept.map(|(name, value)| (name.clone(), without_cache_marks(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_cache_marks).collect()),
        other => other.clone(),
    }
}

/// Checks that each of these requests begins with the one before, byte for byte.
fn grow(requests: &[RecordedRequest], what: &str) {
    for (number, pair) in requests.windows(2).enumerate() {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        assert!(after.starts_with(&before), "{what}, request {number}: {before:#?}\n{after:#?}");
    }
}

fn moved(events: &[SessionEvent]) -> usize {
    events
        .iter()
        .filter(|event| matches!(&event.kind, EventKind::RequestPrepared { moved: Some(_), .. }))
        .count()
}

/// Two compactions, a fork and a resume, with many rounds after each.
///
/// The server chooses its turn by the number of responses in a request. After a compaction one is left, so the script goes
/// on at its second turn; a request for a summary asks for the last turn.
async fn requests_stay_well_formed_and_their_beginning_stable(dialect: Dialect) {
    let rounds = cases(12, 20);
    let turns = task(rounds, "done") + "[[turn]]\ntext = \"The summary.\"\n";
    let config = SessionConfig::default();
    let harness = Harness::with(dialect, &turns, config, |builder| builder.record(true)).await;
    harness.write("part.txt", "what matters\n");
    harness.run("Read the part again and again.").await;
    grow(&harness.requests(), "before");
    let mut events = harness.session.events();
    for number in 1..=2 {
        let sent = harness.requests().len();
        harness.session.handle().compact().unwrap();
        while !matches!(events.next().await.unwrap().kind, EventKind::CompactionEnd { .. }) {}
        let requests = harness.requests();
        assert_eq!(requests.len(), sent + 1);
        let (conversation, asked) = (messages(&requests[sent - 1]), messages(&requests[sent]));
        assert!(asked.starts_with(&conversation), "the request for the summary has a known beginning");

        if number == 1 {
            let (events, outcome) = harness.run("Go on.").await;
            assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "done"));
            assert_eq!(moved(&events), 1, "only the first request after a compaction begins differently");
            goes_on(&harness.requests()[sent + 1..], rounds);
        }
    }

    let entries = harness.session.history().len();
    let fork = harness.session.fork(entries).await.unwrap().build().unwrap();
    let sent = harness.requests().len();
    assert_eq!(fork.submit("Go on in a fork.").await.unwrap().text, "done");
    goes_on(&harness.requests()[sent..], rounds);
    fork.close().await;

    let record = harness.session.record().unwrap();
    let env = LocalEnvironment::builder(harness.directory.path()).build().unwrap();
    let client = client(&harness.server, dialect, KEY);
    let resumed = Session::builder(client, profile(dialect), env).resume(record).build().unwrap();
    let sent = harness.requests().len();
    assert_eq!(resumed.submit("Go on later.").await.unwrap().text, "done");
    goes_on(&harness.requests()[sent..], rounds);
    resumed.close().await;
    harness.session.close().await;
}

/// Checks the requests of a task after a compaction.
fn goes_on(requests: &[RecordedRequest], rounds: usize) {
    assert_eq!(requests.len(), rounds);
    grow(requests, "after a compaction");
    let first = messages(&requests[0]);
    assert!(first.len() < 6, "the older part is gone: {first:#?}");
    assert!(serde_json::to_string(&first).unwrap().contains("The summary."), "{first:#?}");
}

async fn automatic_compaction_keeps_the_work_going(dialect: Dialect) {
    let round = task(1, "unused");
    let round = round.split_once("[[turn]]\ntext = \"unused\"").unwrap().0;
    // One turn is the summary, and then the answer: both requests have one response.
    let turns = format!("{round}[[turn]]\ntext = \"The file was read.\"\n");
    let mut config = SessionConfig::default();
    config.limits.compaction = CompactionPolicy::default().with_at_percent(30);
    let harness = Harness::configured(dialect, &turns, config).await;
    let mut small = profile(dialect);
    small.context_window_size = 10_000;
    small.max_output_tokens = Some(1_000);
    harness.session.handle().set_profile(small).unwrap();
    harness.write("part.txt", &"what matters\n".repeat(500));
    let (events, outcome) = harness.run("Read the part.").await;
    let all = kinds(&events);
    assert!(all.iter().any(|kind| kind == "COMPACTION_END"), "{outcome:?} {all:?}");
    assert_eq!((outcome.status, outcome.model_calls), (OutcomeStatus::Completed, 3));
    assert_eq!(harness.session.history().len(), 4, "the history keeps everything");
    harness.finish().await;
}
