//! Obligations of a client to any adapter (client specification, sections 2.4, 2.6 and 4.3).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use pintle_llm::{
    Client, ContentPart, Error, ErrorKind, EventStream, GenerateOptions, Message, ProviderAdapter, Request,
    Response, Role, ThinkingData, generate,
};
use tokio::sync::Barrier;

/// An adapter that records its calls, and responds once enough requests are waiting.
#[derive(Debug)]
struct RecordingAdapter {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
    fails_to_initialize: bool,
    barrier: Barrier,
    answers: AtomicU32,
}

impl RecordingAdapter {
    fn new(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Self {
        let log = Arc::clone(log);
        Self { name, log, fails_to_initialize: false, barrier: Barrier::new(1), answers: AtomicU32::new(0) }
    }

    fn record(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

#[async_trait]
impl ProviderAdapter for RecordingAdapter {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.barrier.wait().await;
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let parts = vec![
            ThinkingData::new(format!("thought {number}")).into(),
            ContentPart::text(format!("answer {number}")),
        ];
        Ok(Response::new(self.name, &request.model, Message::new(Role::Assistant, parts)))
    }

    async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
        Err(Error::new(ErrorKind::Configuration, "a diarist does not stream"))
    }

    fn initialize(&self) -> Result<(), Error> {
        self.record("begins");
        if self.fails_to_initialize {
            return Err(Error::new(ErrorKind::Configuration, "no pen"));
        }
        Ok(())
    }

    async fn close(&self) {
        self.record("ends");
    }
}

fn log() -> Arc<Mutex<Vec<String>>> {
    Arc::default()
}

fn request() -> Request {
    Request::new("m", [Message::user("hello")])
}

#[tokio::test]
async fn adapters_are_initialized_and_closed_with_the_client() {
    let log = log();
    let client = Client::builder()
        .provider(RecordingAdapter::new("a", &log))
        .provider(RecordingAdapter::new("b", &log))
        .default_provider("a")
        .build()
        .unwrap();
    assert_eq!(*log.lock().unwrap(), ["a begins", "b begins"]);
    client.complete(request()).await.unwrap();
    client.close().await;
    assert_eq!(log.lock().unwrap()[2..], ["a ends", "b ends"]);
}

#[tokio::test]
async fn a_failed_adapter_initialization_fails_the_build() {
    let log = log();
    let adapter = RecordingAdapter { fails_to_initialize: true, ..RecordingAdapter::new("a", &log) };
    let error = Client::builder().provider(adapter).build().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Configuration, "no pen"));
}

#[tokio::test]
async fn requests_of_one_client_run_concurrently() {
    const REQUESTS: usize = 16;
    let adapter = RecordingAdapter { barrier: Barrier::new(REQUESTS), ..RecordingAdapter::new("a", &log()) };
    let client = Client::builder().provider(adapter).default_provider("a").build().unwrap();
    let calls = (0..REQUESTS).map(|_| {
        let client = client.clone();
        async move { client.complete(request()).await.unwrap().text() }
    });
    // Sequential requests would never pass the barrier.
    let mut texts = tokio::time::timeout(Duration::from_secs(10), join_all(calls)).await.unwrap();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), REQUESTS, "each got an answer of its own");
}

#[tokio::test]
async fn a_generation_reports_the_last_steps_reasoning() {
    let client =
        Client::builder().provider(RecordingAdapter::new("a", &log())).default_provider("a").build().unwrap();
    let options = GenerateOptions::new("m").with_prompt("hello").with_client(client);
    let result = generate(options).await.unwrap();
    assert_eq!((result.text(), result.reasoning()), ("answer 0".to_owned(), Some("thought 0".to_owned())));
    assert_eq!(result.steps[0].reasoning(), result.reasoning());
}
