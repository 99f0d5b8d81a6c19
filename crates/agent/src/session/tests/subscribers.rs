//! Slow, absent, many and late subscribers: each gets what happened, and the session waits for none.

use std::time::Duration;

use pintle_env::{OutputChunk, OutputStream};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;

/// Long enough for anything that comes at all.
const SOON: Duration = Duration::from_secs(60);

const MANY: usize = 1_000;

/// Writes the numbers up to 100, and waits in the middle until it may go on.
#[derive(Debug)]
struct Halfway {
    reached: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Tool for Halfway {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        "halfway"
    }

    fn description(&self) -> &str {
        "Counts."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, _input: Map<String, Value>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let write = cx.on_output.as_ref().expect("somebody watches");
        for number in 0..100 {
            if number == 50 {
                self.reached.notify_one();
                self.go_on.notified().await;
            }
            write(OutputChunk::new(OutputStream::Stdout, format!("{number}\n")));
            tokio::task::yield_now().await;
        }
        Ok(ToolOutput::new(counted()))
    }
}

fn counted() -> String {
    (0..100).map(|number| format!("{number}\n")).collect()
}

/// What one subscriber was told: its lifecycle events, and the output of the one call, in how many pieces.
#[derive(Debug, Default, PartialEq)]
struct Told {
    lifecycle: Vec<SessionEvent>,
    output: String,
}

impl Told {
    fn take(&mut self, event: SessionEvent) {
        match &event.kind {
            EventKind::ToolCallOutputDelta { delta, .. } => {
                assert_eq!(event.offset, Some(self.output.len() as u64), "deltas follow one another");
                self.output.push_str(delta);
            }
            EventKind::AssistantTextDelta { .. } => {}
            _ => self.lifecycle.push(event),
        }
    }
}

/// Reads to the end; `pause` is awaited after each event.
async fn read(mut events: Events, yields: usize) -> Told {
    let mut told = Told::default();
    while let Some(event) = events.next().await {
        told.take(event);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_subscribers_get_the_same_events() {
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = Halfway { reached: Arc::clone(&reached), go_on: Arc::clone(&go_on) };
    let adapter = anthropic().message(calling(&[("halfway", json!({}))])).answer("done");
    let client = Client::builder().provider(adapter).build().unwrap();
    let profile = ProviderProfile::new("anthropic", "m").with_tool(tool).unwrap();
    let session = Session::builder(client, profile, Arc::new(env())).build().unwrap();

    let never_read = session.events();
    let mut readers = JoinSet::new();
    for number in 0..MANY / 2 {
        readers.spawn(read(session.events(), number % 5));
    }
    let run = session.submit("count");
    timeout(SOON, reached.notified()).await.unwrap();
    // These come in the middle of the call's output, and some of them ask for nothing before it.
    for number in 0..MANY / 2 {
        readers.spawn(read(session.events(), number % 5));
    }
    let next = session.log.next_seq();
    let joined_late = session.events_from(next);
    go_on.notify_one();
    assert_eq!(timeout(SOON, run).await.unwrap().unwrap().status, OutcomeStatus::Completed);
    let log = Arc::clone(&session.log);
    timeout(SOON, session.close()).await.expect("nobody is waited for");

    let after_the_end = read(Events::of_session(Cursor::new(log, 0)), 0).await;
    assert_eq!(after_the_end.output, counted());
    let mut count = 0;
    while let Some(told) = timeout(SOON, readers.join_next()).await.unwrap() {
        assert_eq!(told.unwrap(), after_the_end);
        count += 1;
    }
    assert_eq!(count, MANY);
    assert_eq!(read(never_read, 0).await, after_the_end, "it was all kept for the one that had not read");
    let late = read(joined_late, 0).await;
    assert_eq!(late.output, counted(), "the text so far is given to whoever joins in the middle");
    let after = usize::try_from(next).unwrap();
    assert_eq!(late.lifecycle, after_the_end.lifecycle[after..]);
}

#[tokio::test]
async fn read_events_can_be_freed() {
    let harness = harness(anthropic().answer("one").answer("two"), env());
    let mut reader = harness.session.events();
    harness.session.submit("a").await.unwrap();
    let first = harness.session.log.next_seq();
    assert_eq!(harness.session.forget_events(first), 0, "somebody has still to read them");
    while harness.session.forget_events(first) < first {
        timeout(SOON, reader.next()).await.unwrap().expect("the session goes on");
    }
    harness.session.submit("b").await.unwrap();
    let next = timeout(SOON, harness.session.events().next()).await.unwrap().unwrap();
    assert_eq!((next.seq, kind(&next).as_str()), (first, "USER_INPUT"));
    let next = timeout(SOON, reader.next()).await.unwrap().unwrap();
    assert_eq!((next.seq, kind(&next).as_str()), (first, "USER_INPUT"));
}
