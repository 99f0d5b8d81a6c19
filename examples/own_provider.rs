//! Custom provider: a model implemented by a function of this program.
//!
//! A client routes requests to adapters by name. An adapter may call a server, load weights, or, as here, follow a rule.
//! It only translates requests and classifies errors. Retries, limits, tools and history belong to the session.

use async_trait::async_trait;
use futures_util::stream;
use pintle_agent::{EventKind, ProviderProfile, RunError, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::{
    Client, ContentPart, Error, ErrorKind, EventStream, Finish, FinishReason, Message, Origin,
    PartialToolCall, ProviderAdapter, Request, Response, Role, StreamEvent, ToolCall, Usage,
};
use pintle_tools::builtin::Shell;

/// Runs the user's input as a command and repeats its output.
#[derive(Debug)]
struct EchoProvider;

impl EchoProvider {
    /// Responds to user input with a call, and to the result of a call with text.
    fn respond(request: &Request) -> Result<Response, Error> {
        if request.model != "echo-1" {
            // The kind determines whether the request is retried and how the session ends.
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no model `{}`, expected `echo-1`", request.model),
            ));
        }
        let last = request.messages.last().map(|item| item.message());
        let (message, finish) = match last {
            Some(message) if message.role == Role::User => {
                let arguments = serde_json::json!({ "command": message.text() }).to_string();
                // The id must be unique within the session. Real providers generate it.
                let call = ToolCall::from_raw(format!("call_{}", request.messages.len()), "shell", arguments);
                (Message::new(Role::Assistant, vec![ContentPart::ToolCall(call)]), Finish::ToolCalls)
            }
            Some(message) => {
                let results: String = message.results().map(|result| result.text()).collect();
                let first = results.lines().next().unwrap_or_default();
                (Message::assistant(format!("It said: {first}")), Finish::Stop)
            }
            None => return Err(Error::new(ErrorKind::InvalidRequest, "the request has no messages")),
        };
        // The origin lets a session switch providers without sending them provider-specific data.
        let message = message.with_origin(Origin::new("echo", &request.model));
        let response = Response::new("echo", &request.model, message);
        Ok(response.with_finish_reason(FinishReason::new(finish)).with_usage(Usage::new(9, 3)))
    }
}

#[async_trait]
impl ProviderAdapter for EchoProvider {
    fn name(&self) -> &str {
        "echo"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        Self::respond(request)
    }

    /// Streams the same response. A stream ends with `Finish`, which has the complete response, or with an error.
    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let response = Self::respond(request)?;
        let mut events = Vec::new();
        if !response.text().is_empty() {
            let text_id = || "0".to_owned();
            events.push(StreamEvent::TextStart { text_id: text_id() });
            for word in response.text().split_inclusive(' ') {
                events.push(StreamEvent::TextDelta { text_id: text_id(), delta: word.to_owned() });
            }
            events.push(StreamEvent::TextEnd { text_id: text_id(), signature: None });
        }
        for call in response.tool_calls() {
            let partial = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
            events.push(StreamEvent::ToolCallStart { tool_call: partial });
            events.push(StreamEvent::ToolCallEnd { tool_call: call.clone() });
        }
        events.push(StreamEvent::Finish {
            finish_reason: response.finish_reason.clone(),
            usage: response.usage.clone(),
            response: Box::new(response),
        });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder().provider(EchoProvider).build()?;
    // A new profile has neither instructions nor tools.
    let profile = ProviderProfile::new("echo", "echo-1")
        .with_base_instructions("You repeat the output of commands.")
        .with_tool(Shell::new())?;

    let directory = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let session = Session::builder(client, profile, env).build()?;

    let mut run = session.submit("echo hello");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ToolCallStart { tool_name, arguments, .. } => {
                println!("call    {tool_name} {arguments}")
            }
            EventKind::AssistantTextStart {} => print!("answer  "),
            // Streamed. The size of the deltas depends on how fast they are read.
            EventKind::AssistantTextDelta { delta } => print!("{delta}"),
            EventKind::AssistantTextEnd { .. } => println!(),
            _ => {}
        }
    }
    drop(run);

    // The adapter's error, with its kind, is the source of the run's error.
    session.handle().set_model("echo-2")?;
    match session.submit("echo again").await {
        Err(RunError::Failed { source, .. }) => println!("error   {:?}: {}", source.kind(), source.message()),
        ended => println!("answer  {}", ended?.text),
    }
    session.close().await;
    Ok(())
}
