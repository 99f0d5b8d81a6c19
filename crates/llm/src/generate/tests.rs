mod limits;
mod streaming;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::adapter::ProviderAdapter;
use crate::client::Client;
use crate::content::ToolCall;
use crate::error::ErrorKind;
use crate::message::{Message, Role};
use crate::request::{AdapterTimeout, ReasoningEffort, Request, ResponseFormat};
use crate::response::Response;
use crate::stream::{EventStream, StreamEvent};
use crate::testing::FakeAdapter;
use crate::tool::{ToolChoice, ToolDefinition};

/// Adapter that streams a text in deltas of `size` characters, all ready at once.
#[derive(Debug)]
pub(crate) struct ChunkedAdapter {
    text: String,
    size: usize,
}

impl ChunkedAdapter {
    pub(crate) fn new(text: impl Into<String>, size: usize) -> Self {
        Self { text: text.into(), size }
    }
}

#[async_trait]
impl ProviderAdapter for ChunkedAdapter {
    fn name(&self) -> &str {
        "chunked"
    }

    async fn complete(&self, _: &Request) -> Result<Response, Error> {
        Err(Error::new(ErrorKind::Configuration, "streaming only"))
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let response = Response::new("chunked", &request.model, Message::assistant(self.text.clone()));
        let text_id = || "0".to_owned();
        let mut events = vec![StreamEvent::TextStart { text_id: text_id() }];
        let characters: Vec<char> = self.text.chars().collect();
        let deltas = characters.chunks(self.size).map(|chunk| chunk.iter().collect());
        events.extend(deltas.map(|delta| StreamEvent::TextDelta { text_id: text_id(), delta }));
        events.push(StreamEvent::TextEnd { text_id: text_id(), signature: None });
        let (finish_reason, usage) = (response.finish_reason.clone(), response.usage.clone());
        events.push(StreamEvent::Finish { finish_reason, usage, response: Box::new(response) });
        Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
    }
}

/// Returns a client of this adapter, and the adapter, which records requests.
fn client(adapter: FakeAdapter) -> (Client, Arc<FakeAdapter>) {
    let adapter = Arc::new(adapter);
    let shared = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
    (Client::builder().shared_provider(shared).default_provider("fake").build().unwrap(), adapter)
}

fn fake() -> FakeAdapter {
    FakeAdapter::new("fake")
}

fn options(client: &Client) -> GenerateOptions {
    GenerateOptions::new("m").with_client(client.clone()).with_prompt("hello")
}

/// Assistant message with calls of these tools and the ids `c0`, `c1`, ….
fn calling(calls: &[(&str, &str)]) -> Message {
    let calls = calls.iter().enumerate();
    let parts = calls.map(|(index, (name, raw))| ToolCall::from_raw(format!("c{index}"), *name, *raw).into());
    Message::new(Role::Assistant, parts.collect())
}

/// Definition of a tool with one required integer `x`.
fn definition(name: &str) -> ToolDefinition {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]});
    ToolDefinition::new(name, "", parameters).unwrap()
}

/// Tool that returns its `x`.
fn echo(name: &str) -> ClientTool {
    ClientTool::active(definition(name), |arguments, _| async move { Ok::<_, Error>(arguments["x"].clone()) })
}

/// Results in the last message of a request: id, text and error flag.
fn sent_results(request: &Request) -> Vec<(String, String, bool)> {
    let last = request.messages.last().unwrap();
    assert_eq!(last.role, Role::Tool);
    last.results().map(|result| (result.tool_call_id.clone(), result.text(), result.is_error)).collect()
}

#[tokio::test]
async fn the_system_message_precedes_prompt_or_messages() {
    let (client, adapter) = client(fake().answer("hi").answer("hi again"));
    let result = generate(options(&client).with_system("be brief")).await.unwrap();
    assert_eq!((result.text().as_str(), result.steps.len()), ("hi", 1));
    assert_eq!(result.usage(), &result.total_usage);
    let conversation = [Message::user("one"), Message::assistant("two"), Message::user("three")];
    let with_messages = GenerateOptions::new("m").with_client(client).with_messages(conversation.clone());
    generate(with_messages.with_system("be brief")).await.unwrap();
    let sent: Vec<Vec<Message>> = adapter
        .requests()
        .iter()
        .map(|request| request.messages.iter().map(|item| (**item).clone()).collect())
        .collect();
    assert_eq!(sent[0], [Message::system("be brief"), Message::user("hello")]);
    assert_eq!(sent[1], [&[Message::system("be brief")], conversation.as_slice()].concat());
}

#[tokio::test]
async fn all_options_reach_the_request() {
    let (client, adapter) = client(fake().answer("hi"));
    let timeout = AdapterTimeout::default().with_request(None);
    let options = options(&client)
        .with_tool(ClientTool::passive(definition("look")))
        .with_tool_choice(ToolChoice::Named("look".into()))
        .with_response_format(ResponseFormat::Json)
        .with_temperature(0.5)
        .with_top_p(0.9)
        .with_max_tokens(100)
        .with_stop_sequence("END")
        .with_reasoning_effort(ReasoningEffort::High)
        .with_provider("fake")
        .with_provider_options("fake", json!({"seed": 7}))
        .with_metadata("user", "u1")
        .with_adapter_timeout(timeout);
    generate(options).await.unwrap();
    let expected = Request::new("m", [Message::user("hello")])
        .with_tools(vec![definition("look")])
        .with_tool_choice(ToolChoice::Named("look".into()))
        .with_max_tokens(100)
        .with_reasoning_effort(ReasoningEffort::High)
        .with_provider("fake")
        .with_provider_options("fake", json!({"seed": 7}))
        .with_response_format(ResponseFormat::Json)
        .with_temperature(0.5)
        .with_top_p(0.9)
        .with_stop_sequence("END")
        .with_metadata("user", "u1")
        .with_timeout(timeout);
    assert_eq!(adapter.requests(), [expected]);
}

#[tokio::test]
async fn contradictory_options_are_refused_before_sending() {
    let (client, adapter) = client(fake());
    let bare = || GenerateOptions::new("m").with_client(client.clone());
    let none: [Message; 0] = [];
    let broken = ToolDefinition::new("odd", "", json!({"type": "object", "required": 7})).unwrap();
    let cases = [
        (bare(), "found neither"),
        (bare().with_prompt("a").with_messages([Message::user("b")]), "found both"),
        (bare().with_prompt(" \n"), "the prompt is empty"),
        (bare().with_messages(none), "the list of messages is empty"),
        (bare().with_prompt("a").with_tool(echo("t")).with_tool(echo("t")), "two tools are named `t`"),
        (bare().with_prompt("a").with_tool(ClientTool::passive(broken)), "tool `odd` is not a JSON Schema"),
        (bare().with_prompt("a").with_tool_choice(ToolChoice::Required), "there are no tools"),
        (
            bare().with_prompt("a").with_tool(echo("t")).with_tool_choice(ToolChoice::Named("u".into())),
            "names `u`",
        ),
        (bare().with_prompt("a").with_provider("nobody"), "unknown provider `nobody`"),
    ];
    for (options, part) in cases {
        let streamed = stream(options.clone()).unwrap_err();
        let error = generate(options).await.unwrap_err();
        assert_eq!((error.kind(), streamed.kind()), (ErrorKind::Configuration, ErrorKind::Configuration));
        assert!(error.message().contains(part), "{error}");
        assert_eq!(error.message(), streamed.message());
    }
    assert_eq!(adapter.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn steps_are_retried_separately_and_tools_run_once() {
    let busy = || Error::new(ErrorKind::RateLimit, "busy");
    let script = || {
        fake()
            .failure(busy())
            .message(calling(&[("echo", r#"{"x": 1}"#)]))
            .failure(busy())
            .failure(busy())
            .answer("done")
    };
    let runs = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let tool = ClientTool::active(definition("echo"), move |_, _| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async { Ok::<_, Error>("ok") }
    });
    for streamed in [false, true] {
        let (client, adapter) = client(script());
        let options = options(&client).with_tool(tool.clone());
        let result = match streamed {
            false => generate(options).await.unwrap(),
            true => stream(options).unwrap().result().await.unwrap(),
        };
        assert_eq!((result.text().as_str(), result.steps.len()), ("done", 2));
        let lengths: Vec<usize> = adapter.requests().iter().map(|request| request.messages.len()).collect();
        assert_eq!(lengths, [1, 1, 3, 3, 3], "each step repeats its request");
    }
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 2, "once per generation");
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_and_disabled_retries_are_not_retried() {
    let cases = [(ErrorKind::Authentication, 2), (ErrorKind::NotFound, 2), (ErrorKind::Server, 0)];
    for (kind, max_retries) in cases {
        let (client, adapter) = client(fake().failure(Error::new(kind, "no")).answer("late"));
        let error = generate(options(&client).with_max_retries(max_retries)).await.unwrap_err();
        assert_eq!((error.kind(), adapter.requests().len()), (kind, 1));
    }
    let (client, adapter) = client(fake().failure(Error::new(ErrorKind::Server, "no")).answer("late"));
    let quick = crate::RetryPolicy::default().with_base_delay(Duration::from_millis(1));
    assert_eq!(generate(options(&client).with_retry(quick)).await.unwrap().text(), "late");
    assert_eq!(adapter.requests().len(), 2);
}
