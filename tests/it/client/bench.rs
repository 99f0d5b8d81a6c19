//! A provider's real adapter, and the scripted server that it talks to.

use std::sync::Arc;

use futures_util::StreamExt as _;
use pintle_llm::{
    Client, Error, HistoryItem, Message, ProviderAdapter, Request, Response, StreamEvent, ToolDefinition,
};
use pintle_providers::{AdapterBuilder, Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::{Value, json};

/// The only key that the server takes.
pub(super) const KEY: &str = "key-of-the-tests";

/// A client of one provider, beside the server that plays the provider.
pub(super) struct Bench {
    pub(super) dialect: Dialect,
    pub(super) client: Client,
    pub(super) server: ScriptedServer,
}

impl Bench {
    /// A server that follows the script, and a client that knows its key.
    pub(super) async fn start(dialect: Dialect, script: Script) -> Self {
        Self::start_with(dialect, script, ServerOptions::new()).await
    }

    /// As [`Bench::start`], with a server that is told more.
    pub(super) async fn start_with(dialect: Dialect, script: Script, options: ServerOptions) -> Self {
        let server = ScriptedServer::start(script, options.with_api_key(KEY)).await.unwrap();
        let client = client_of(adapter(dialect, &server, KEY, &[]));
        Self { dialect, client, server }
    }

    /// A server that knows one answer.
    pub(super) async fn saying(dialect: Dialect, turn: Turn) -> Self {
        Self::start(dialect, Script::new("one answer").with_turn(turn)).await
    }

    /// A request of the provider's model.
    pub(super) fn request<M: Into<HistoryItem>>(&self, messages: impl IntoIterator<Item = M>) -> Request {
        Request::new(model(self.dialect), messages)
    }

    /// A request with a short question.
    pub(super) fn question(&self) -> Request {
        self.request([Message::user("What is there?")])
    }

    pub(super) async fn complete(&self, request: Request) -> Response {
        self.client.complete(request).await.unwrap()
    }

    /// The events of a streamed answer that comes to its end.
    pub(super) async fn events(&self, request: Request) -> Vec<StreamEvent> {
        let (events, error) = self.events_until_error(request).await;
        assert!(error.is_none(), "{error:?}");
        events
    }

    /// The events of a streamed answer, and the error that ended it, if one did.
    pub(super) async fn events_until_error(&self, request: Request) -> (Vec<StreamEvent>, Option<Error>) {
        let mut stream = self.client.stream(request).await.unwrap();
        let mut events = Vec::new();
        while let Some(item) = stream.next().await {
            match item {
                Ok(event) => events.push(event),
                Err(error) => {
                    assert!(stream.next().await.is_none(), "an error is the end");
                    return (events, Some(error));
                }
            }
        }
        (events, None)
    }

    /// The answer that a stream comes to.
    pub(super) async fn streamed(&self, request: Request) -> Response {
        response_of(&self.events(request).await)
    }

    /// Why a request fails, in either mode; both must fail alike, with one failure of the script for each.
    pub(super) async fn error(&self, request: Request) -> Error {
        let error = self.client.complete(request.clone()).await.unwrap_err();
        let Err(streamed) = self.client.stream(request).await else { panic!("the stream began") };
        assert_eq!((streamed.kind(), streamed.status()), (error.kind(), error.status()));
        error
    }

    /// The last request that the server got, which must have been legal.
    pub(super) fn sent(&self) -> RecordedRequest {
        let sent = self.server.requests().pop().expect("a request");
        assert_eq!((sent.status, sent.violations.as_slice()), (Some(200), [].as_slice()));
        sent
    }

    /// The body of the last request.
    pub(super) fn body(&self) -> Value {
        self.sent().body
    }
}

/// A current model of the provider; the one of Anthropic thinks within a budget, so that the server insists on
/// getting its thinking back.
pub(super) fn model(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3.1-pro-preview",
        Dialect::ChatCompletions => "local-model",
    }
}

/// The real adapter, directed at the server.
pub(super) fn adapter(
    dialect: Dialect,
    server: &ScriptedServer,
    key: &str,
    headers: &[(&str, &str)],
) -> Arc<dyn ProviderAdapter> {
    fn build<A: ProviderAdapter + 'static>(
        builder: AdapterBuilder<A>,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Arc<dyn ProviderAdapter> {
        let add =
            |builder: AdapterBuilder<A>, (name, value): &(&str, &str)| builder.default_header(*name, *value);
        Arc::new(headers.iter().fold(builder.base_url(url), add).build().unwrap())
    }
    let url = server.base_url(dialect);
    match dialect {
        Dialect::OpenAiResponses => build(OpenAi::builder(key), &url, headers),
        Dialect::AnthropicMessages => build(Anthropic::builder(key), &url, headers),
        Dialect::Gemini => build(Gemini::builder(key), &url, headers),
        Dialect::ChatCompletions => build(OpenAiCompatible::builder(&url).api_key(key), &url, headers),
    }
}

pub(super) fn client_of(adapter: Arc<dyn ProviderAdapter>) -> Client {
    let name = adapter.name().to_owned();
    Client::builder().shared_provider(adapter).default_provider(name).build().unwrap()
}

/// The tool that scripts call.
pub(super) fn read_file() -> ToolDefinition {
    let path = json!({"type": "string", "description": "The file."});
    let schema = json!({"type": "object", "properties": {"file_path": path}, "required": ["file_path"]});
    ToolDefinition::new("read_file", "Reads a file.", schema).unwrap()
}

/// The whole answer in the last event of a stream.
pub(super) fn response_of(events: &[StreamEvent]) -> Response {
    match events.last() {
        Some(StreamEvent::Finish { response, .. }) => (**response).clone(),
        other => panic!("expected the stream to end with FINISH, found {other:?}"),
    }
}

/// The names of the events in the specification, with runs of one name told once.
pub(super) fn types(events: &[StreamEvent]) -> Vec<String> {
    let mut types: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    types.dedup();
    types
}

/// The texts that stand under a name in the elements of a list.
pub(super) fn each<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|element| element[name].as_str().unwrap_or_default()).collect()
}
