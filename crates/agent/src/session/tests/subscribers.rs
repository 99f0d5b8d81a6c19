//! Slow, absent, many and late subscribers: each gets all events, and the session waits for none.

use std::time::Duration;

use pintle_env::{OutputChunk, OutputStream};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;

/// Time-out that only a bug exceeds.
const TIMEOUT: Duration = Duration::from_secs(60);

const MANY: usize = 1_000;

/// Tool that writes the numbers up to 100 and pauses in the middle until it is released.
#[derive(Debug)]
struct PausingCounter {
    reached: Arc<Notify>,
    resume: Arc<Notify>,
}

impl Tool for PausingCounter {
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
                self.resume.notified().await;
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

/// Events of one subscriber: lifecycle events, and the output of the only call with its number of deltas.
#[derive(Debug, Default, PartialEq)]
struct Received {
    lifecycle: Vec<SessionEvent>,
    output: String,
}

impl Received {
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

/// Reads to the end and yields this often after each event.
async fn read(mut events: Events, yields: usize) -> Received {
    let mut received = Received::default();
    while let Some(event) = events.next().await {
        received.take(event);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }
    received
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_subscribers_get_the_same_events() {
    let (reached, resume) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = PausingCounter { reached: Arc::clone(&reached), resume: Arc::clone(&resume) };
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
    timeout(TIMEOUT, reached.notified()).await.unwrap();
    // These subscribe in the middle of the call's output, some of them from there on only.
    for number in 0..MANY / 2 {
        readers.spawn(read(session.events(), number % 5));
    }
    let next = session.log.next_seq();
    let joined_late = session.events_from(next);
    resume.notify_one();
    assert_eq!(timeout(TIMEOUT, run).await.unwrap().unwrap().status, OutcomeStatus::Completed);
    let log = Arc::clone(&session.log);
    timeout(TIMEOUT, session.close()).await.expect("nobody is waited for");

    let after_the_end = read(Events::of_session(Cursor::new(log, 0)), 0).await;
    assert_eq!(after_the_end.output, counted());
    let mut count = 0;
    while let Some(received) = timeout(TIMEOUT, readers.join_next()).await.unwrap() {
        assert_eq!(received.unwrap(), after_the_end);
        count += 1;
    }
    assert_eq!(count, MANY);
    assert_eq!(read(never_read, 0).await, after_the_end, "everything was kept for the slow reader");
    let late = read(joined_late, 0).await;
    assert_eq!(late.output, counted(), "a late subscriber gets the text so far");
    let after = usize::try_from(next).unwrap();
    assert_eq!(late.lifecycle, after_the_end.lifecycle[after..]);
}

#[tokio::test]
async fn read_events_can_be_freed() {
    let harness = harness(anthropic().answer("one").answer("two"), env());
    let mut reader = harness.session.events();
    harness.session.submit("a").await.unwrap();
    let first = harness.session.log.next_seq();
    assert_eq!(harness.session.forget_events(first), 0, "a subscriber has not read them yet");
    while harness.session.forget_events(first) < first {
        timeout(TIMEOUT, reader.next()).await.unwrap().expect("the session continues");
    }
    harness.session.submit("b").await.unwrap();
    let next = timeout(TIMEOUT, harness.session.events().next()).await.unwrap().unwrap();
    assert_eq!((next.seq, kind(&next).as_str()), (first, "USER_INPUT"));
    let next = timeout(TIMEOUT, reader.next()).await.unwrap().unwrap();
    assert_eq!((next.seq, kind(&next).as_str()), (first, "USER_INPUT"));
}
