//! High-level interface: prompts, tool loops, retries and limits (client specification, sections 4.3, 4.4 and 5).

mod limits;
mod on_step;
mod options;
mod result;
mod round;
pub(crate) mod schema;
mod stop;
mod stream;
mod tool;
mod tool_loop;

#[cfg(test)]
pub(crate) mod tests;

pub use limits::TimeoutConfig;
pub use on_step::OnStep;
pub use options::GenerateOptions;
pub use result::{GenerateResult, StepResult};
pub use stop::StopCondition;
pub use stream::{StreamResult, TextStream};
pub use tool::{
    CallContext, ClientTool, ClientToolOutput, IntoClientToolOutput, InvalidToolCall, RepairToolCall,
};

use self::tool_loop::ToolLoop;
use crate::error::Error;

/// Generates a response, and runs tools that have a handler.
///
/// While the model calls tools, the handlers of a response run concurrently, their results are sent in one request, and the
/// model responds again. The loop ends when the model finishes, when
/// [`max_tool_rounds`](GenerateOptions::max_tool_rounds) are used up, or when the stop condition holds. A call of an
/// unknown tool, with invalid arguments, or whose handler fails or panics gets an error result. If a step calls a tool
/// without a handler, the loop ends: its other calls have results, and the caller makes the rest. Calls of a response
/// truncated at its length limit are not run.
///
/// Each model call is retried on its own by the retry policy; a retry does not repeat tools.
///
/// ```
/// # use async_trait::async_trait;
/// use std::io::Error as IoError;
///
/// use pintle_llm::*;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// # #[derive(Debug)]
/// # struct Forecaster;
/// # #[async_trait]
/// # impl ProviderAdapter for Forecaster {
/// #     fn name(&self) -> &str { "forecaster" }
/// #     async fn complete(&self, request: &Request) -> Result<Response, Error> {
/// #         let result = request.messages.last().and_then(|item| item.results().next().map(ToolResult::text));
/// #         let call = ToolCall::from_raw("c1", "get_weather", r#"{"city": "Oslo"}"#);
/// #         let (message, finish) = match result {
/// #             Some(text) => (Message::assistant(format!("It is {text}.")), Finish::Stop),
/// #             None => (Message::new(Role::Assistant, vec![call.into()]), Finish::ToolCalls),
/// #         };
/// #         let response = Response::new("forecaster", &request.model, message);
/// #         Ok(response.with_finish_reason(FinishReason::new(finish)).with_usage(Usage::new(10, 5)))
/// #     }
/// #     async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
/// #         Err(Error::new(ErrorKind::Configuration, "no streaming"))
/// #     }
/// # }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Location {
///     /// The city's name.
///     city: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let weather = ClientTool::typed("get_weather", "The weather in a city.", |location: Location, _| async move {
///     Ok::<_, IoError>(format!("sunny in {}", location.city))
/// })?;
/// # let client = Client::builder().provider(Forecaster).default_provider("forecaster").build()?;
/// let options = GenerateOptions::new("claude-opus-4-6")
///     .with_client(client)
///     .with_prompt("How is the weather in Oslo?")
///     .with_tool(weather);
/// let result = generate(options).await?;
/// assert_eq!(result.text(), "It is sunny in Oslo.");
/// assert_eq!((result.steps.len(), result.total_usage.total_tokens), (2, 30));
/// # Ok(())
/// # }
/// ```
///
/// Dropping the future cancels everything, as the abort signal does.
///
/// # Errors
///
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) before anything is sent for contradictory options or
/// without a client; [`Abort`](crate::ErrorKind::Abort) and [`RequestTimeout`](crate::ErrorKind::RequestTimeout) for the
/// abort signal and the time limits; else the error of the last attempt at a model call. An error does not carry the steps
/// before it; set [`on_step`](GenerateOptions::on_step) to keep them.
pub async fn generate(options: GenerateOptions) -> Result<GenerateResult, Error> {
    let mut work = ToolLoop::new(options)?;
    loop {
        let response = work.complete().await?;
        if !work.finish_step(response).await? {
            return work.into_result();
        }
    }
}

/// As [`generate`], as a stream of events.
///
/// Returns at once; the request is sent when the stream is first polled. A model call is retried only before its first
/// content; after that, a failure is the last item of the stream.
///
/// ```
/// # use async_trait::async_trait;
/// use pintle_llm::{Error, GenerateOptions, stream};
/// # use pintle_llm::*;
/// # #[derive(Debug)]
/// # struct Poet;
/// # #[async_trait]
/// # impl ProviderAdapter for Poet {
/// #     fn name(&self) -> &str { "poet" }
/// #     async fn complete(&self, _: &Request) -> Result<Response, Error> {
/// #         Err(Error::new(ErrorKind::Configuration, "streaming only"))
/// #     }
/// #     async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
/// #         let response = Response::new("poet", &request.model, Message::assistant("Waves fold."));
/// #         let delta = |text: &str| StreamEvent::TextDelta { text_id: "0".into(), delta: text.into() };
/// #         let events = vec![
/// #             StreamEvent::TextStart { text_id: "0".into() },
/// #             delta("Waves "),
/// #             delta("fold."),
/// #             StreamEvent::TextEnd { text_id: "0".into(), signature: None },
/// #             StreamEvent::Finish {
/// #                 finish_reason: response.finish_reason.clone(),
/// #                 usage: response.usage.clone(),
/// #                 response: Box::new(response),
/// #             },
/// #         ];
/// #         Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let client = Client::builder().provider(Poet).default_provider("poet").build()?;
/// let options = GenerateOptions::new("claude-opus-4-6").with_client(client).with_prompt("Write a poem.");
/// let mut poem = stream(options)?;
/// let mut texts = poem.text_stream();
/// let mut text = String::new();
/// while let Some(delta) = texts.next().await {
///     text.push_str(&delta?);
/// }
/// assert_eq!(text, poem.response()?.text());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) as for [`generate`]; other errors are items of the
/// stream.
pub fn stream(options: GenerateOptions) -> Result<StreamResult, Error> {
    ToolLoop::new(options).map(StreamResult::new)
}
