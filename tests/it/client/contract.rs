//! What a client owes an adapter, whoever wrote it (client specification, sections 2.4, 2.6 and 4.3).

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

/// An adapter that keeps a diary, and answers once enough requests have come together.
#[derive(Debug)]
struct Diarist {
    name: &'static str,
    diary: Arc<Mutex<Vec<String>>>,
    refuses_to_begin: bool,
    together: Barrier,
    answers: AtomicU32,
}

impl Diarist {
    fn new(name: &'static str, diary: &Arc<Mutex<Vec<String>>>) -> Self {
        let diary = Arc::clone(diary);
        Self { name, diary, refuses_to_begin: false, together: Barrier::new(1), answers: AtomicU32::new(0) }
    }

    fn note(&self, what: &str) {
        self.diary.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

#[async_trait]
impl ProviderAdapter for Diarist {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.together.wait().await;
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
        self.note("begins");
        if self.refuses_to_begin {
            return Err(Error::new(ErrorKind::Configuration, "no pen"));
        }
        Ok(())
    }

    async fn close(&self) {
        self.note("ends");
    }
}

fn diary() -> Arc<Mutex<Vec<String>>> {
    Arc::default()
}

fn request() -> Request {
    Request::new("m", [Message::user("hello")])
}

#[tokio::test]
async fn adapters_are_initialised_with_the_client_and_closed_with_it() {
    let diary = diary();
    let client = Client::builder()
        .provider(Diarist::new("a", &diary))
        .provider(Diarist::new("b", &diary))
        .default_provider("a")
        .build()
        .unwrap();
    assert_eq!(*diary.lock().unwrap(), ["a begins", "b begins"]);
    client.complete(request()).await.unwrap();
    client.close().await;
    assert_eq!(diary.lock().unwrap()[2..], ["a ends", "b ends"]);
}

#[tokio::test]
async fn an_adapter_that_cannot_begin_makes_no_client() {
    let diary = diary();
    let adapter = Diarist { refuses_to_begin: true, ..Diarist::new("a", &diary) };
    let error = Client::builder().provider(adapter).build().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Configuration, "no pen"));
}

#[tokio::test]
async fn requests_of_one_client_run_at_the_same_time() {
    const REQUESTS: usize = 16;
    let adapter = Diarist { together: Barrier::new(REQUESTS), ..Diarist::new("a", &diary()) };
    let client = Client::builder().provider(adapter).default_provider("a").build().unwrap();
    let calls = (0..REQUESTS).map(|_| {
        let client = client.clone();
        async move { client.complete(request()).await.unwrap().text() }
    });
    // If one waited for another, the barrier would never open.
    let mut texts = tokio::time::timeout(Duration::from_secs(10), join_all(calls)).await.unwrap();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), REQUESTS, "each got an answer of its own");
}

#[tokio::test]
async fn a_generation_tells_the_reasoning_of_its_last_step() {
    let client =
        Client::builder().provider(Diarist::new("a", &diary())).default_provider("a").build().unwrap();
    let options = GenerateOptions::new("m").with_prompt("hello").with_client(client);
    let result = generate(options).await.unwrap();
    assert_eq!((result.text(), result.reasoning()), ("answer 0".to_owned(), Some("thought 0".to_owned())));
    assert_eq!(result.steps[0].reasoning(), result.reasoning());
}
