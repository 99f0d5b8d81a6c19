//! One call of a real adapter to a failing server, and the properties of every failure.

use std::error::Error as _;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use pintle_llm::{
    AdapterTimeout, Client, Error, ErrorKind, HistoryItem, Message, Request, Response, StreamEvent,
};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, FaultRecord, FaultScript, FaultServer};

/// The key, which no error may show.
pub(super) const KEY: &str = "sk-the-key-of-the-fault-matrix";

/// Time limit of calls that should exceed it.
pub(super) const SHORT: Duration = Duration::from_millis(200);
/// Time limit of all other calls.
const LONG: Duration = Duration::from_secs(20);

/// Mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Complete,
    Stream,
}

pub(super) const BOTH: [Mode; 2] = [Mode::Complete, Mode::Stream];

/// A fault, and the error that it must cause.
pub(super) struct Fault {
    pub(super) name: String,
    pub(super) script: FaultScript,
    pub(super) modes: Vec<Mode>,
    pub(super) limits: AdapterTimeout,
    pub(super) kind: ErrorKind,
    pub(super) retryable: bool,
    pub(super) status: Option<u16>,
    /// Text in the message or in one of its causes.
    pub(super) words: &'static str,
}

impl Fault {
    /// Creates a fault for both modes, with generous time limits.
    pub(super) fn new(name: impl Into<String>, script: FaultScript, kind: ErrorKind) -> Self {
        let retryable = matches!(kind, ErrorKind::Network | ErrorKind::Stream | ErrorKind::Server);
        let (limits, modes) = (patient(), BOTH.to_vec());
        Self { name: name.into(), script, modes, limits, kind, retryable, status: None, words: "" }
    }

    pub(super) fn only(mut self, mode: Mode) -> Self {
        self.modes = vec![mode];
        self
    }

    pub(super) fn within(mut self, limits: AdapterTimeout) -> Self {
        self.limits = limits;
        self
    }

    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    pub(super) fn saying(mut self, words: &'static str) -> Self {
        self.words = words;
        self
    }

    /// Calls once in each mode. The connection must be closed afterwards. Returns the server's record of each call.
    pub(super) async fn check(self, dialect: Dialect) -> Vec<FaultRecord> {
        let mut records = Vec::new();
        for mode in self.modes.clone() {
            let server = FaultServer::start([self.script.clone()]).await.unwrap();
            self.check_against(dialect, &server, mode).await;
            records.extend(finish(server).await);
        }
        records
    }

    pub(super) async fn check_against(&self, dialect: Dialect, server: &FaultServer, mode: Mode) {
        let name = format!("{}, {mode:?}", self.name);
        let client = client(dialect, &server.url(), self.limits);
        let request = question(dialect).with_timeout(self.limits);
        self.judge(dialect, &name, &fail(&client, request, mode, &name).await);
    }

    /// Checks the error of this fault.
    pub(super) fn judge(&self, dialect: Dialect, name: &str, error: &Error) {
        assert_eq!((error.kind(), error.status()), (self.kind, self.status), "{name}: {error:?}");
        assert_eq!(error.is_retryable(), self.retryable, "{name}: {error:?}");
        assert_eq!(error.provider(), Some(dialect.name()), "{name}");
        assert!(chain(error).contains(self.words), "{name}: {:?} in {error:?}", self.words);
        let shown = format!("{error:?} {error:#?} {} {:?}", chain(error), error.raw());
        assert!(!shown.contains(&KEY[..12]), "{name}: the key stands in {shown}");
        assert!(error.message().len() < 3_000, "{name}: {} bytes of message", error.message().len());
    }
}

/// Checks faults concurrently, since each waits for its time limit.
pub(super) async fn check_all(dialect: Dialect, faults: impl IntoIterator<Item = Fault>) -> Vec<FaultRecord> {
    let checked = join_all(faults.into_iter().map(|fault| fault.check(dialect))).await;
    checked.into_iter().flatten().collect()
}

/// Returns limits that are never reached.
pub(super) fn patient() -> AdapterTimeout {
    let limits = AdapterTimeout::default().with_connect(LONG).with_request(Some(LONG));
    limits.with_first_byte(LONG).with_stream_read(LONG)
}

/// Returns a client with one adapter.
pub(super) fn client(dialect: Dialect, url: &str, limits: AdapterTimeout) -> Client {
    let builder = Client::builder();
    let builder =
        match dialect {
            Dialect::OpenAiResponses => builder
                .provider(OpenAi::builder(KEY).with_base_url(url).with_timeout(limits).build().unwrap()),
            Dialect::AnthropicMessages => builder
                .provider(Anthropic::builder(KEY).with_base_url(url).with_timeout(limits).build().unwrap()),
            Dialect::Gemini => builder
                .provider(Gemini::builder(KEY).with_base_url(url).with_timeout(limits).build().unwrap()),
            Dialect::ChatCompletions => builder.provider(
                OpenAiCompatible::builder(url).with_api_key(KEY).with_timeout(limits).build().unwrap(),
            ),
        };
    builder.default_provider(dialect.name()).build().unwrap()
}

pub(super) fn question(dialect: Dialect) -> Request {
    asking(dialect, [Message::user("What is there?")])
}

pub(super) fn asking<M: Into<HistoryItem>>(
    dialect: Dialect,
    messages: impl IntoIterator<Item = M>,
) -> Request {
    let model = match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3.1-pro-preview",
        Dialect::ChatCompletions => "local-model",
    };
    Request::new(model, messages)
}

/// Waits for the result of one call, for at most ten times its time limit.
pub(super) async fn call(client: &Client, request: Request, mode: Mode) -> Result<Response, Error> {
    let limits = request.timeout.unwrap_or_default();
    let limit = [limits.first_byte, limits.stream_read, limits.connect, limits.headers].into_iter();
    let limit = limit.chain(limits.request).chain(limits.content).min();
    let called = async {
        match mode {
            Mode::Complete => client.complete(request).await,
            Mode::Stream => streamed(client, request).await,
        }
    };
    tokio::time::timeout(10 * limit.unwrap_or(LONG), called).await.expect("the call hangs")
}

async fn streamed(client: &Client, request: Request) -> Result<Response, Error> {
    let mut stream = client.stream(request).await?;
    let mut answer = None;
    while let Some(item) = stream.next().await {
        assert!(answer.is_none(), "nothing follows the finish, and {item:?} did");
        match item {
            Ok(StreamEvent::Finish { response, .. }) => answer = Some(*response),
            Ok(_) => {}
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return Err(error);
            }
        }
    }
    Ok(answer.expect("a stream ends with a finish or with an error"))
}

/// Returns the error of a call, which must not succeed.
pub(super) async fn fail(client: &Client, request: Request, mode: Mode, name: &str) -> Error {
    match call(client, request, mode).await {
        Ok(response) => panic!("{name}: taken for an answer: {response:?}"),
        Err(error) => error,
    }
}

/// Waits until every connection is closed: the client must not keep failed ones.
pub(super) async fn finish(server: FaultServer) -> Vec<FaultRecord> {
    tokio::time::timeout(LONG, server.finish()).await.expect("the client keeps a connection")
}

/// Joins the messages of an error and its causes.
fn chain(error: &Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        words.push_str(&format!(": {found}"));
        cause = found.source();
    }
    words
}
