//! A provider of one's own: a model that is a function of this program.
//!
//! A client routes requests to adapters, by name. An adapter may speak to a server, load weights, or, as here, follow a
//! rule. It translates and classifies and does nothing else: retries, limits, tools and history are the session's.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use pintle_agent::{EventKind, ProviderProfile, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::{
    Client, ContentPart, Error, ErrorKind, EventStream, Finish, FinishReason, Message, Origin,
    PartialToolCall, ProviderAdapter, Request, Response, Role, StreamEvent, ToolCall, Usage,
};
use pintle_tools::builtin::Shell;

/// Runs what it is asked to run, and tells what came of it.
#[derive(Debug)]
struct Parrot;

impl Parrot {
    /// The answer: a call for a user's words, a text for the result of a call.
    fn think(request: &Request) -> Result<Response, Error> {
        if request.model != "grey" {
            // The kind decides what follows: whether it is tried again, and what becomes of the session.
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no model `{}`, expected `grey`", request.model),
            ));
        }
        let heard = request.messages.last().map(|item| item.message());
        let (message, finish) = match heard {
            Some(heard) if heard.role == Role::User => {
                let arguments = serde_json::json!({ "command": heard.text() }).to_string();
                // The id must be unique within the session. A real provider draws it.
                let call = ToolCall::from_raw(format!("call_{}", request.messages.len()), "shell", arguments);
                (Message::new(Role::Assistant, vec![ContentPart::ToolCall(call)]), Finish::ToolCalls)
            }
            Some(heard) => {
                let told: String = heard.results().map(|result| result.text()).collect();
                let first = told.lines().next().unwrap_or_default();
                (Message::assistant(format!("It said: {first}")), Finish::Stop)
            }
            None => return Err(Error::new(ErrorKind::InvalidRequest, "the request has no messages")),
        };
        // The origin lets a session carry on with another provider, which must not get what only this one understands.
        let message = message.with_origin(Origin::new("parrot", &request.model));
        let response = Response::new("parrot", &request.model, message);
        Ok(response.with_finish_reason(FinishReason::new(finish)).with_usage(Usage::new(9, 3)))
    }
}

#[async_trait]
impl ProviderAdapter for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        Self::think(request)
    }

    /// The same answer in pieces. A stream ends with `Finish`, which carries the whole, or with an error.
    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let response = Self::think(request)?;
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
            let begun = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
            events.push(StreamEvent::ToolCallStart { tool_call: begun });
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
    let client = Client::builder().provider(Parrot).build()?;
    // A profile of the host's own begins with nothing: no instructions and no tools.
    let profile = ProviderProfile::new("parrot", "grey")
        .with_base_instructions("You are a parrot.")
        .with_tool(Shell::new())?;

    let folder = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?;
    let session = Session::builder(client, profile, Arc::new(env)).build()?;

    let mut run = session.submit("echo land ahoy");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ToolCallStart { tool_name, arguments, .. } => {
                println!("call    {tool_name} {arguments}")
            }
            EventKind::AssistantTextStart {} => print!("answer  "),
            // As it comes. How much comes at a time depends on how quickly you read.
            EventKind::AssistantTextDelta { delta } => print!("{delta}"),
            EventKind::AssistantTextEnd { .. } => println!(),
            _ => {}
        }
    }
    drop(run);

    // The error of the adapter is the outcome of the run, with its kind.
    session.handle().set_model("blue")?;
    let outcome = session.submit("echo again").await?;
    println!("then    {:?}: {:?}", outcome.status, outcome.error.map(|error| (error.kind, error.message)));
    session.close().await;
    Ok(())
}
