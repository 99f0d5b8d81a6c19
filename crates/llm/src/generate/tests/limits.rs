//! Cancellation and time limits, on a paused clock.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;

/// Adapter whose calls never end.
#[derive(Debug, Default)]
pub(super) struct HangingAdapter {
    /// Streams hang after some text instead of before the first event.
    pub(super) after_text: bool,
    /// Set while a call is in flight.
    pub(super) in_flight: Arc<AtomicBool>,
}

/// Sets a flag until it is dropped.
struct FlagGuard(Arc<AtomicBool>);

impl FlagGuard {
    fn set(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::SeqCst);
        Self(Arc::clone(flag))
    }
}

impl Drop for FlagGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[async_trait]
impl ProviderAdapter for HangingAdapter {
    fn name(&self) -> &str {
        "hanging"
    }

    async fn complete(&self, _: &Request) -> Result<Response, Error> {
        let _guard = FlagGuard::set(&self.in_flight);
        pending().await
    }

    async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
        let guard = FlagGuard::set(&self.in_flight);
        if !self.after_text {
            return pending().await;
        }
        let events = [
            StreamEvent::TextStart { text_id: "0".into() },
            StreamEvent::TextDelta { text_id: "0".into(), delta: "and so".into() },
        ];
        Ok(Box::pin(futures_util::stream::unfold((events.into_iter(), guard), |(mut events, guard)| async {
            match events.next() {
                Some(event) => Some((Ok(event), (events, guard))),
                None => pending().await,
            }
        })))
    }
}

/// Returns a client of a [`HangingAdapter`], and its flag.
fn hanging(after_text: bool) -> (Client, Arc<AtomicBool>) {
    let adapter = HangingAdapter { after_text, ..HangingAdapter::default() };
    let in_flight = Arc::clone(&adapter.in_flight);
    (Client::builder().provider(adapter).default_provider("hanging").build().unwrap(), in_flight)
}

/// Returns a tool that never ends, a flag that is set while it runs, and its abort signal.
fn endless() -> (ClientTool, Arc<AtomicBool>, Arc<std::sync::OnceLock<CancellationToken>>) {
    let (running, signal) = (Arc::<AtomicBool>::default(), Arc::<std::sync::OnceLock<_>>::default());
    let (flag, slot) = (Arc::clone(&running), Arc::clone(&signal));
    let tool = ClientTool::active(definition("endless"), move |_, context: CallContext| {
        slot.set(context.abort_signal).unwrap();
        let guard = FlagGuard::set(&flag);
        async move {
            let _guard = guard;
            pending::<Result<String, Error>>().await
        }
    });
    (tool, running, signal)
}

fn cancel_after(limit: Duration, token: &CancellationToken) -> impl Future<Output = ()> + use<> {
    let token = token.clone();
    async move {
        tokio::time::sleep(limit).await;
        token.cancel();
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_abort_signal() {
    let (client, adapter) = client(fake().answer("never"));
    let token = CancellationToken::new();
    token.cancel();
    let aborted = options(&client).with_abort_signal(token);
    assert_eq!(generate(aborted.clone()).await.unwrap_err().kind(), ErrorKind::Abort);
    assert_eq!(stream(aborted).unwrap().result().await.unwrap_err().kind(), ErrorKind::Abort);
    assert_eq!(adapter.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn the_abort_signal_cancels_a_model_call() {
    for after_text in [false, true] {
        let (client, in_flight) = hanging(after_text);
        let token = CancellationToken::new();
        let aborted = options(&client).with_abort_signal(token.clone());
        let streamed = stream(aborted.clone()).unwrap();
        let outcome = if after_text {
            tokio::join!(streamed.result(), cancel_after(SECOND, &token)).0
        } else {
            tokio::join!(generate(aborted), cancel_after(SECOND, &token)).0
        };
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Abort, false));
        assert!(!in_flight.load(Ordering::SeqCst), "the connection is released");
    }
}

#[tokio::test(start_paused = true)]
async fn the_abort_signal_cancels_the_wait_between_attempts() {
    let busy = Error::new(ErrorKind::RateLimit, "busy")
        .with_retry(crate::Retry::After(Some(Duration::from_secs(50))));
    let (client, adapter) = client(fake().failure(busy).answer("late"));
    let token = CancellationToken::new();
    let start = Instant::now();
    let aborted = generate(options(&client).with_abort_signal(token.clone()));
    let (outcome, ()) = tokio::join!(aborted, cancel_after(SECOND, &token));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Abort);
    assert_eq!((start.elapsed(), adapter.requests().len()), (SECOND, 1));
}

#[tokio::test(start_paused = true)]
async fn the_abort_signal_cancels_tools() {
    for streamed in [false, true] {
        let (client, adapter) = client(fake().message(calling(&[("endless", r#"{"x": 1}"#)])).answer("late"));
        let (tool, running, signal) = endless();
        let token = CancellationToken::new();
        let aborted = options(&client).with_tool(tool).with_abort_signal(token.clone());
        let outcome = if streamed {
            tokio::join!(stream(aborted).unwrap().result(), cancel_after(SECOND, &token)).0
        } else {
            tokio::join!(generate(aborted), cancel_after(SECOND, &token)).0
        };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Abort);
        assert!(!running.load(Ordering::SeqCst), "the handler is dropped");
        assert!(signal.get().unwrap().is_cancelled(), "so that other work of the handler can stop");
        assert_eq!(adapter.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_cancels_tools() {
    let (client, _) = client(fake().message(calling(&[("endless", r#"{"x": 1}"#)])));
    let (tool, running, signal) = endless();
    let dropped = tokio::time::timeout(SECOND, generate(options(&client).with_tool(tool))).await;
    assert!(dropped.is_err());
    assert!(!running.load(Ordering::SeqCst) && signal.get().unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_total_limit_covers_model_calls_and_tools() {
    let limit = Duration::from_secs(5);
    for after_text in [false, true] {
        let (client, in_flight) = hanging(after_text);
        let start = Instant::now();
        let limited = options(&client).with_timeout(limit);
        let outcome =
            if after_text { stream(limited).unwrap().result().await } else { generate(limited).await };
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (ErrorKind::RequestTimeout, limit));
        assert_eq!(error.message(), "the generation exceeded its limit of 5s");
        assert!(!in_flight.load(Ordering::SeqCst));
    }
    let (client, _) = client(fake().message(calling(&[("endless", r#"{"x": 1}"#)])));
    let (tool, running, signal) = endless();
    let start = Instant::now();
    let error = generate(options(&client).with_tool(tool).with_timeout(limit)).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::RequestTimeout, limit));
    assert!(!running.load(Ordering::SeqCst) && signal.get().unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_total_limit_is_skipped() {
    for (wait, expected) in [(7, None), (8, Some(ErrorKind::RateLimit))] {
        for streamed in [false, true] {
            let busy = Error::new(ErrorKind::RateLimit, "busy")
                .with_retry(crate::Retry::After(Some(Duration::from_secs(wait))));
            let (client, adapter) = client(fake().failure(busy).answer("in time"));
            let limited = options(&client).with_timeout(Duration::from_secs(8));
            let start = Instant::now();
            let outcome =
                if streamed { stream(limited).unwrap().result().await } else { generate(limited).await };
            match expected {
                None => assert_eq!(outcome.unwrap().text(), "in time"),
                Some(kind) => {
                    let error = outcome.unwrap_err();
                    assert_eq!((error.kind(), error.retry_after()), (kind, Some(Duration::from_secs(wait))));
                    assert_eq!((start.elapsed(), adapter.requests().len()), (Duration::ZERO, 1));
                }
            }
        }
    }
}

/// Texts of the tool results of each step.
type StepLog = Arc<std::sync::Mutex<Vec<Vec<String>>>>;

/// Returns a log and the callback that fills it.
fn logging_steps() -> (StepLog, impl Fn(&StepResult) + Send + Sync) {
    let log = StepLog::default();
    let steps = Arc::clone(&log);
    let callback = move |step: &StepResult| {
        steps.lock().unwrap().push(step.tool_results.iter().map(|result| result.text()).collect());
    };
    (log, callback)
}

#[tokio::test(start_paused = true)]
async fn steps_of_a_failed_generation_are_reported() {
    for streamed in [false, true] {
        let denied = Error::new(ErrorKind::AccessDenied, "no more");
        let (client, _) = client(fake().message(calling(&[("echo", r#"{"x": 5}"#)])).failure(denied));
        let (log, callback) = logging_steps();
        let options = options(&client).with_tool(echo("echo")).with_on_step(callback);
        let outcome =
            if streamed { stream(options).unwrap().result().await } else { generate(options).await };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::AccessDenied);
        assert_eq!(*log.lock().unwrap(), [["5"]]);
    }
    // The last step is reported, too.
    let (client, _) = client(fake().message(calling(&[("echo", r#"{"x": 5}"#)])).answer("five"));
    let (log, callback) = logging_steps();
    generate(options(&client).with_tool(echo("echo")).with_on_step(callback)).await.unwrap();
    assert_eq!(*log.lock().unwrap(), [vec!["5".to_owned()], vec![]]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_step_is_reported_with_its_results() {
    for streamed in [false, true] {
        let calls = calling(&[("endless", r#"{"x": 1}"#), ("echo", r#"{"x": 5}"#)]);
        let (client, _) = client(fake().message(calls));
        let (tool, running, _) = endless();
        let (log, callback) = logging_steps();
        let options = options(&client).with_tool(tool).with_tool(echo("echo")).with_on_step(callback);
        let limited = options.with_timeout(SECOND);
        let outcome =
            if streamed { stream(limited).unwrap().result().await } else { generate(limited).await };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::RequestTimeout);
        assert!(!running.load(Ordering::SeqCst));
        assert_eq!(*log.lock().unwrap(), [["5"]]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_step_limit_covers_model_calls_only() {
    let limit = TimeoutConfig::default().with_per_step(Duration::from_secs(3));
    for after_text in [false, true] {
        let (client, in_flight) = hanging(after_text);
        let start = Instant::now();
        let limited = options(&client).with_timeout(limit);
        let outcome =
            if after_text { stream(limited).unwrap().result().await } else { generate(limited).await };
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (ErrorKind::RequestTimeout, Duration::from_secs(3)));
        assert_eq!(error.message(), "a model call exceeded its limit of 3s");
        assert!(!in_flight.load(Ordering::SeqCst));
    }
    // Neither tools nor waits between attempts count.
    let slow = ClientTool::active(definition("slow"), |_, _| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, Error>("done")
    });
    let busy = Error::new(ErrorKind::RateLimit, "busy")
        .with_retry(crate::Retry::After(Some(Duration::from_secs(20))));
    for streamed in [false, true] {
        let script = fake().failure(busy.info().clone().into()).message(calling(&[("slow", r#"{"x": 1}"#)]));
        let (client, _) = client(script.answer("at last"));
        let limited = options(&client).with_tool(slow.clone()).with_timeout(limit);
        let result = if streamed { stream(limited).unwrap().result().await } else { generate(limited).await };
        assert_eq!(result.unwrap().text(), "at last");
    }
}
