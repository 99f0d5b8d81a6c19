//! A real adapter and the scripted server.

use std::sync::Arc;

use futures_util::StreamExt as _;
use pintle_llm::{
    Client, Error, HistoryItem, Message, ProviderAdapter, Request, Response, StreamEvent, ToolDefinition,
};
use pintle_providers::{AdapterBuilder, Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::{Value, json};

/// The only key that the server accepts.
pub(super) const KEY: &str = "key-of-the-tests";

/// A client of one provider, and the server that plays the provider.
pub(super) struct ClientHarness {
    pub(super) dialect: Dialect,
    pub(super) client: Client,
    pub(super) server: ScriptedServer,
}

impl ClientHarness {
    /// Starts a server that follows the script, and a client with its key.
    pub(super) async fn start(dialect: Dialect, script: Script) -> Self {
        Self::start_with(dialect, script, ServerOptions::new()).await
    }

    /// Like [`ClientHarness::start`], with other server options.
    pub(super) async fn start_with(dialect: Dialect, script: Script, options: ServerOptions) -> Self {
        let server = ScriptedServer::start(script, options.with_api_key(KEY)).await.unwrap();
        let client = client_of(adapter(dialect, &server, KEY, &[]));
        Self { dialect, client, server }
    }

    /// Starts a server with a single turn.
    pub(super) async fn responding(dialect: Dialect, turn: Turn) -> Self {
        Self::start(dialect, Script::new("one answer").with_turn(turn)).await
    }

    /// Returns a request for the provider's model.
    pub(super) fn request<M: Into<HistoryItem>>(&self, messages: impl IntoIterator<Item = M>) -> Request {
        Request::new(model(self.dialect), messages)
    }

    /// Returns a request with a short question.
    pub(super) fn question(&self) -> Request {
        self.request([Message::user("What is there?")])
    }

    pub(super) async fn complete(&self, request: Request) -> Response {
        self.client.complete(request).await.unwrap()
    }

    /// Returns the events of a stream that must end without an error.
    pub(super) async fn events(&self, request: Request) -> Vec<StreamEvent> {
        let (events, error) = self.events_until_error(request).await;
        assert!(error.is_none(), "{error:?}");
        events
    }

    /// Returns the events of a stream, and the error that ended it, if any.
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

    /// Returns the response of either mode.
    pub(super) async fn respond(&self, request: Request, streaming: bool) -> Response {
        if streaming { self.streamed(request).await } else { self.complete(request).await }
    }

    /// Returns the response of a stream.
    pub(super) async fn streamed(&self, request: Request) -> Response {
        response_of(&self.events(request).await)
    }

    /// Returns the error of a request. It must be the same in both modes; the script needs a failure for each.
    pub(super) async fn error(&self, request: Request) -> Error {
        let error = self.client.complete(request.clone()).await.unwrap_err();
        let Err(streamed) = self.client.stream(request).await else { panic!("the stream began") };
        assert_eq!((streamed.kind(), streamed.status()), (error.kind(), error.status()));
        assert_eq!(streamed.is_retryable(), error.is_retryable());
        assert_eq!(streamed.retry_after().is_some(), error.retry_after().is_some());
        error
    }

    /// Returns the last request, which must be valid.
    pub(super) fn sent(&self) -> RecordedRequest {
        let sent = self.server.requests().pop().expect("a request");
        assert_eq!((sent.status, sent.violations.as_slice()), (Some(200), [].as_slice()));
        sent
    }

    /// Returns the body of the last request.
    pub(super) fn body(&self) -> Value {
        self.sent().body
    }
}

/// Returns a current model of the provider. That of Anthropic has a thinking budget, so that the server insists on
/// getting its thinking back.
pub(super) fn model(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3.1-pro-preview",
        Dialect::ChatCompletions => "local-model",
    }
}

/// Returns the real adapter for the server.
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
        let add = |builder: AdapterBuilder<A>, (name, value): &(&str, &str)| {
            builder.with_default_header(*name, *value)
        };
        Arc::new(headers.iter().fold(builder.with_base_url(url), add).build().unwrap())
    }
    let url = server.base_url(dialect);
    match dialect {
        Dialect::OpenAiResponses => build(OpenAi::builder(key), &url, headers),
        Dialect::AnthropicMessages => build(Anthropic::builder(key), &url, headers),
        Dialect::Gemini => build(Gemini::builder(key), &url, headers),
        Dialect::ChatCompletions => build(OpenAiCompatible::builder(&url).with_api_key(key), &url, headers),
    }
}

pub(super) fn client_of(adapter: Arc<dyn ProviderAdapter>) -> Client {
    let name = adapter.name().to_owned();
    Client::builder().shared_provider(adapter).default_provider(name).build().unwrap()
}

/// Returns the tool that scripts call.
pub(super) fn read_file() -> ToolDefinition {
    let path = json!({"type": "string", "description": "The file."});
    let schema = json!({"type": "object", "properties": {"file_path": path}, "required": ["file_path"]});
    ToolDefinition::new("read_file", "Reads a file.", schema).unwrap()
}

/// Returns the complete response in the last event of a stream.
pub(super) fn response_of(events: &[StreamEvent]) -> Response {
    match events.last() {
        Some(StreamEvent::Finish { response, .. }) => (**response).clone(),
        other => panic!("expected the stream to end with FINISH, found {other:?}"),
    }
}

/// Returns the type names of the events, without repetitions.
pub(super) fn types(events: &[StreamEvent]) -> Vec<String> {
    let mut types: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    types.dedup();
    types
}

/// Returns the texts of a field in the elements of a list.
pub(super) fn each<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|element| element[name].as_str().unwrap_or_default()).collect()
}
