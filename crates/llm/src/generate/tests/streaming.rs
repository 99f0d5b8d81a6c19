//! Streams of one step and of several.

use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;

use super::limits::HangingAdapter;
use super::*;

async fn collected(stream: &mut StreamResult) -> (Vec<StreamEvent>, Option<Error>) {
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last item");
                return (events, Some(error));
            }
        }
    }
    assert!(stream.next().await.is_none(), "the stream is fused");
    (events, None)
}

fn types(events: &[StreamEvent]) -> Vec<String> {
    let name = |event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
    events.iter().map(name).collect()
}

#[tokio::test]
async fn one_stream_carries_all_steps() {
    let (client, adapter) = client(fake().message(calling(&[("echo", r#"{"x": 5}"#)])).answer("five"));
    let mut stream = stream(options(&client).with_tool(echo("echo"))).unwrap();
    assert!(stream.partial_response().is_none());
    assert_eq!(stream.response().unwrap_err().kind(), ErrorKind::Stream, "it has not ended");
    assert_eq!(adapter.requests(), [], "nothing is sent before the first poll");
    let (events, error) = collected(&mut stream).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        types(&events),
        [
            "STREAM_START",
            "TOOL_CALL_START",
            "TOOL_CALL_END",
            "STEP_FINISH", //
            "STREAM_START",
            "TEXT_START",
            "TEXT_DELTA",
            "TEXT_END",
            "FINISH",
        ]
    );
    let StreamEvent::StepFinish { response, tool_results } = &events[3] else { panic!("{events:?}") };
    assert_eq!((response.tool_calls().count(), tool_results[0].text().as_str()), (1, "5"));
    let StreamEvent::Finish { response, .. } = events.last().unwrap() else { panic!("{events:?}") };
    assert_eq!(stream.response().unwrap(), &**response);
    assert_eq!(stream.partial_response().unwrap().text(), "five");
    let result = stream.result().await.unwrap();
    assert_eq!(
        (result.text().as_str(), result.steps.len(), result.total_usage.total_tokens),
        ("five", 2, 30)
    );
    assert_eq!(sent_results(&adapter.requests()[1]), [("c0".into(), "5".into(), false)]);
}

#[tokio::test]
async fn streamed_and_complete_generations_have_equal_results() {
    let script = || {
        fake()
            .message(calling(&[("echo", r#"{"x": 5}"#), ("nobody", "{}")]))
            .message(calling(&[("ask", r#"{"x": 1}"#)]))
    };
    let (complete, _) = client(script());
    let (streamed, _) = client(script());
    let tools =
        |client| options(client).with_tool(echo("echo")).with_tool(ClientTool::passive(definition("ask")));
    let expected = generate(tools(&complete).with_max_tool_rounds(4)).await.unwrap();
    let found = stream(tools(&streamed).with_max_tool_rounds(4)).unwrap().result().await.unwrap();
    assert_eq!(found, expected);
    assert_eq!(found.tool_calls().next().unwrap().name, "ask");
}

#[tokio::test]
async fn text_deltas_can_be_streamed_alone() {
    let (client, _) = client(
        fake()
            .message(calling(&[("echo", r#"{"x": 5}"#)]).with_part(crate::ContentPart::text("so ")))
            .answer("five"),
    );
    let mut stream = stream(options(&client).with_tool(echo("echo"))).unwrap();
    let deltas: Vec<String> = stream.text_stream().map(Result::unwrap).collect().await;
    assert_eq!(deltas, ["so ", "five"]);
    assert_eq!(stream.response().unwrap().text(), "five");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_retried_only_before_its_first_content() {
    let busy = || Error::new(ErrorKind::Server, "busy");
    let (client, adapter) = client(fake().failure(busy()).cut("half a wo", busy()).answer("never requested"));
    let mut stream = stream(options(&client)).unwrap();
    let (events, error) = collected(&mut stream).await;
    assert_eq!(types(&events), ["TEXT_START", "TEXT_DELTA"]);
    assert_eq!(error.unwrap().kind(), ErrorKind::Server);
    assert_eq!(adapter.requests().len(), 2);
    assert_eq!(stream.partial_response().unwrap().text(), "half a wo");
    let error = stream.response().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Server, "busy"));
    assert_eq!(stream.result().await.unwrap_err().kind(), ErrorKind::Server);
}

/// Adapter whose first streams start and fail at once.
#[derive(Debug)]
struct FailsAfterStart {
    inner: FakeAdapter,
    failures: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl ProviderAdapter for FailsAfterStart {
    fn name(&self) -> &str {
        "fake"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.inner.complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let left = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            return self.inner.stream(request).await;
        }
        let start = StreamEvent::StreamStart { id: None, model: None, warnings: Vec::new() };
        let text = StreamEvent::TextStart { text_id: "0".into() };
        let overloaded = Error::new(ErrorKind::Server, "overloaded");
        Ok(Box::pin(futures_util::stream::iter([Ok(start), Ok(text), Err(overloaded)])))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_only_started_is_retried() {
    for (failures, expected) in [(2, Ok("hello")), (3, Err(ErrorKind::Server))] {
        let adapter = FailsAfterStart { inner: fake().answer("hello"), failures: failures.into() };
        let client = Client::builder().provider(adapter).default_provider("fake").build().unwrap();
        let (events, error) = collected(&mut stream(options(&client)).unwrap()).await;
        match expected {
            Ok(_) => {
                assert_eq!(types(&events), ["STREAM_START", "TEXT_START", "TEXT_DELTA", "TEXT_END", "FINISH"])
            }
            Err(kind) => assert_eq!((events.len(), error.unwrap().kind()), (0, kind)),
        }
    }
}

#[tokio::test]
async fn a_stream_without_a_final_event_is_an_error() {
    #[derive(Debug)]
    struct Truncated(StreamEvent);
    #[async_trait]
    impl ProviderAdapter for Truncated {
        fn name(&self) -> &str {
            "truncated"
        }
        async fn complete(&self, _: &Request) -> Result<Response, Error> {
            Err(Error::new(ErrorKind::Configuration, "streaming only"))
        }
        async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
            Ok(Box::pin(futures_util::stream::iter([Ok(self.0.clone())])))
        }
    }
    let start = StreamEvent::TextStart { text_id: "0".into() };
    let delta = StreamEvent::TextDelta { text_id: "0".into(), delta: "half".into() };
    for (event, shown) in [(start, 0), (delta, 1)] {
        let client = Client::builder().provider(Truncated(event)).default_provider("truncated");
        let client = client.build().unwrap();
        let (events, error) = collected(&mut stream(options(&client).with_max_retries(0)).unwrap()).await;
        assert_eq!((events.len(), error.unwrap().kind()), (shown, ErrorKind::Stream));
    }
}

#[tokio::test]
async fn dropping_a_stream_releases_the_connection() {
    let adapter = HangingAdapter { after_text: true, ..HangingAdapter::default() };
    let in_flight = Arc::clone(&adapter.in_flight);
    let client = Client::builder().provider(adapter).default_provider("hanging").build().unwrap();
    let mut stream = stream(options(&client)).unwrap();
    stream.next().await.unwrap().unwrap();
    assert!(in_flight.load(Ordering::SeqCst));
    drop(stream);
    assert!(!in_flight.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_stream_yields_to_the_runtime_without_losing_events() {
    // More ready events than tokio's cooperative budget.
    let words = "word ".repeat(1000);
    let adapter = ChunkedAdapter::new(words.clone(), 1);
    let client = Client::builder().provider(adapter).default_provider("chunked").build().unwrap();
    let mut stream = stream(options(&client)).unwrap();
    let deltas: Vec<String> = stream.text_stream().map(Result::unwrap).collect().await;
    assert_eq!((deltas.len(), deltas.concat()), (5000, words));
}
