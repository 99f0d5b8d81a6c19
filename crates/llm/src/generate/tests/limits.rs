//! Cancellation and time limits, with the clock stopped.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;

/// Never comes to its end: not at all, or after the first words of a stream.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    pub(super) words: bool,
    /// Whether a call is held at the moment.
    pub(super) held: Arc<AtomicBool>,
}

struct Hold(Arc<AtomicBool>);

impl Hold {
    fn of(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::SeqCst);
        Self(Arc::clone(flag))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[async_trait]
impl ProviderAdapter for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    async fn complete(&self, _: &Request) -> Result<Response, Error> {
        let _hold = Hold::of(&self.held);
        pending().await
    }

    async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
        let hold = Hold::of(&self.held);
        if !self.words {
            return pending().await;
        }
        let words = [
            StreamEvent::TextStart { text_id: "0".into() },
            StreamEvent::TextDelta { text_id: "0".into(), delta: "and so".into() },
        ];
        Ok(Box::pin(futures_util::stream::unfold((words.into_iter(), hold), |(mut words, hold)| async {
            match words.next() {
                Some(event) => Some((Ok(event), (words, hold))),
                None => pending().await,
            }
        })))
    }
}

fn stuck(words: bool) -> (Client, Arc<AtomicBool>) {
    let adapter = Stuck { words, ..Stuck::default() };
    let held = Arc::clone(&adapter.held);
    (Client::builder().provider(adapter).build().unwrap(), held)
}

/// A tool that never answers; the flag says whether it runs, the token is what it was given.
fn endless() -> (Tool, Arc<AtomicBool>, Arc<std::sync::OnceLock<CancellationToken>>) {
    let (held, signal) = (Arc::<AtomicBool>::default(), Arc::<std::sync::OnceLock<_>>::default());
    let (flag, slot) = (Arc::clone(&held), Arc::clone(&signal));
    let tool = Tool::active(definition("endless"), move |_, context: CallContext| {
        slot.set(context.abort_signal).unwrap();
        let hold = Hold::of(&flag);
        async move {
            let _hold = hold;
            pending::<Result<String, Error>>().await
        }
    });
    (tool, held, signal)
}

fn after(limit: Duration, token: &CancellationToken) -> impl Future<Output = ()> + use<> {
    let token = token.clone();
    async move {
        tokio::time::sleep(limit).await;
        token.cancel();
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_abort_signal_given_before_means_that_nothing_is_sent() {
    let (client, adapter) = client(fake().answer("never"));
    let token = CancellationToken::new();
    token.cancel();
    let aborted = options(&client).with_abort_signal(token);
    assert_eq!(generate(aborted.clone()).await.unwrap_err().kind(), ErrorKind::Abort);
    assert_eq!(stream(aborted).unwrap().result().await.unwrap_err().kind(), ErrorKind::Abort);
    assert_eq!(adapter.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn the_abort_signal_ends_a_model_call() {
    for words in [false, true] {
        let (client, held) = stuck(words);
        let token = CancellationToken::new();
        let aborted = options(&client).with_abort_signal(token.clone());
        let streamed = stream(aborted.clone()).unwrap();
        let outcome = if words {
            tokio::join!(streamed.result(), after(SECOND, &token)).0
        } else {
            tokio::join!(generate(aborted), after(SECOND, &token)).0
        };
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Abort, false));
        assert!(!held.load(Ordering::SeqCst), "the connection is let go");
    }
}

#[tokio::test(start_paused = true)]
async fn the_abort_signal_ends_the_wait_between_attempts() {
    let busy = Error::new(ErrorKind::RateLimit, "busy")
        .with_retry(crate::Retry::After(Some(Duration::from_secs(50))));
    let (client, adapter) = client(fake().failure(busy).answer("late"));
    let token = CancellationToken::new();
    let begun = Instant::now();
    let aborted = generate(options(&client).with_abort_signal(token.clone()));
    let (outcome, ()) = tokio::join!(aborted, after(SECOND, &token));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Abort);
    assert_eq!((begun.elapsed(), adapter.requests().len()), (SECOND, 1));
}

#[tokio::test(start_paused = true)]
async fn the_abort_signal_ends_the_tools() {
    for streamed in [false, true] {
        let (client, adapter) = client(fake().message(calling(&[("endless", r#"{"x": 1}"#)])).answer("late"));
        let (tool, held, signal) = endless();
        let token = CancellationToken::new();
        let aborted = options(&client).with_tool(tool).with_abort_signal(token.clone());
        let outcome = if streamed {
            tokio::join!(stream(aborted).unwrap().result(), after(SECOND, &token)).0
        } else {
            tokio::join!(generate(aborted), after(SECOND, &token)).0
        };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Abort);
        assert!(!held.load(Ordering::SeqCst), "the handler is dropped");
        assert!(signal.get().unwrap().is_cancelled(), "and what it started can know");
        assert_eq!(adapter.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_ends_the_tools() {
    let (client, _) = client(fake().message(calling(&[("endless", r#"{"x": 1}"#)])));
    let (tool, held, signal) = endless();
    let dropped = tokio::time::timeout(SECOND, generate(options(&client).with_tool(tool))).await;
    assert!(dropped.is_err());
    assert!(!held.load(Ordering::SeqCst) && signal.get().unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_total_limit_holds_for_everything() {
    let limit = Duration::from_secs(5);
    for words in [false, true] {
        let (client, held) = stuck(words);
        let begun = Instant::now();
        let limited = options(&client).with_timeout(limit);
        let outcome = if words { stream(limited).unwrap().result().await } else { generate(limited).await };
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (ErrorKind::RequestTimeout, limit));
        assert_eq!(error.message(), "the generation took longer than its limit of 5s");
        assert!(!held.load(Ordering::SeqCst));
    }
    let (client, _) = client(fake().message(calling(&[("endless", r#"{"x": 1}"#)])));
    let (tool, held, signal) = endless();
    let begun = Instant::now();
    let error = generate(options(&client).with_tool(tool).with_timeout(limit)).await.unwrap_err();
    assert_eq!((error.kind(), begun.elapsed()), (ErrorKind::RequestTimeout, limit));
    assert!(!held.load(Ordering::SeqCst) && signal.get().unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_outlast_the_total_limit_is_not_begun() {
    for (wait, expected) in [(7, None), (8, Some(ErrorKind::RateLimit))] {
        for streamed in [false, true] {
            let busy = Error::new(ErrorKind::RateLimit, "busy")
                .with_retry(crate::Retry::After(Some(Duration::from_secs(wait))));
            let (client, adapter) = client(fake().failure(busy).answer("in time"));
            let limited = options(&client).with_timeout(Duration::from_secs(8));
            let begun = Instant::now();
            let outcome =
                if streamed { stream(limited).unwrap().result().await } else { generate(limited).await };
            match expected {
                None => assert_eq!(outcome.unwrap().text(), "in time"),
                Some(kind) => {
                    let error = outcome.unwrap_err();
                    assert_eq!((error.kind(), error.retry_after()), (kind, Some(Duration::from_secs(wait))));
                    assert_eq!((begun.elapsed(), adapter.requests().len()), (Duration::ZERO, 1));
                }
            }
        }
    }
}

/// The texts of the results of each step.
type Told = Arc<std::sync::Mutex<Vec<Vec<String>>>>;

/// What a listener was told, and the listener.
fn listening() -> (Told, impl Fn(&StepResult) + Send + Sync) {
    let told = Told::default();
    let log = Arc::clone(&told);
    let listener = move |step: &StepResult| {
        log.lock().unwrap().push(step.tool_results.iter().map(|result| result.text()).collect());
    };
    (told, listener)
}

#[tokio::test(start_paused = true)]
async fn the_steps_of_a_generation_that_fails_are_told() {
    for streamed in [false, true] {
        let denied = Error::new(ErrorKind::AccessDenied, "no more");
        let (client, _) = client(fake().message(calling(&[("echo", r#"{"x": 5}"#)])).failure(denied));
        let (told, listener) = listening();
        let heard = options(&client).with_tool(echo("echo")).with_on_step(listener);
        let outcome = if streamed { stream(heard).unwrap().result().await } else { generate(heard).await };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::AccessDenied);
        assert_eq!(*told.lock().unwrap(), [["5"]]);
    }
    // The last step is told too.
    let (client, _) = client(fake().message(calling(&[("echo", r#"{"x": 5}"#)])).answer("five"));
    let (told, listener) = listening();
    generate(options(&client).with_tool(echo("echo")).with_on_step(listener)).await.unwrap();
    assert_eq!(*told.lock().unwrap(), [vec!["5".to_owned()], vec![]]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_cut_off_is_told_with_the_results_that_were_there() {
    for streamed in [false, true] {
        let made = calling(&[("endless", r#"{"x": 1}"#), ("echo", r#"{"x": 5}"#)]);
        let (client, _) = client(fake().message(made));
        let (tool, held, _) = endless();
        let (told, listener) = listening();
        let heard = options(&client).with_tool(tool).with_tool(echo("echo")).with_on_step(listener);
        let limited = heard.with_timeout(SECOND);
        let outcome =
            if streamed { stream(limited).unwrap().result().await } else { generate(limited).await };
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::RequestTimeout);
        assert!(!held.load(Ordering::SeqCst));
        assert_eq!(*told.lock().unwrap(), [["5"]]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_per_step_is_one_of_model_calls() {
    let limit = TimeoutConfig::default().with_per_step(Duration::from_secs(3));
    for words in [false, true] {
        let (client, held) = stuck(words);
        let begun = Instant::now();
        let limited = options(&client).with_timeout(limit);
        let outcome = if words { stream(limited).unwrap().result().await } else { generate(limited).await };
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (ErrorKind::RequestTimeout, Duration::from_secs(3)));
        assert_eq!(error.message(), "a model call took longer than its limit of 3s");
        assert!(!held.load(Ordering::SeqCst));
    }
    // Neither tools nor the waits between attempts count.
    let slow = Tool::active(definition("slow"), |_, _| async {
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
