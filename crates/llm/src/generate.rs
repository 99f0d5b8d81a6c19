//! The high-level interface: prompts, tool loops, retries and limits in one call (client specification, sections 4.3,
//! 4.4 and 5).

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
pub use tool::{CallContext, InvalidToolCall, RepairToolCall, Tool, ToolOutput};

use self::tool_loop::ToolLoop;
use crate::error::Error;

/// Generates an answer, and makes the calls of tools that have a handler.
///
/// As long as the model calls tools, the handlers of one answer run concurrently, their results go back in one request,
/// and the model is asked again, until it is done, [`max_tool_rounds`](GenerateOptions::max_tool_rounds) are used up or
/// the stop condition holds. A call of an unknown tool, with arguments that do not fit, or whose handler fails or panics
/// is answered with an error result. If a step calls a tool without a handler, the loop ends: its other calls have results, and the
/// caller makes the rest. Calls of an answer that was cut off by its length are not made.
///
/// Each model call is tried again on its own by the retry policy; a retry repeats no tool.
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
/// #         let heard = request.messages.last().and_then(|item| item.results().next().map(ToolResult::text));
/// #         let call = ToolCall::from_raw("c1", "get_weather", r#"{"city": "Oslo"}"#);
/// #         let (message, finish) = match heard {
/// #             Some(text) => (Message::assistant(format!("It is {text}.")), Finish::Stop),
/// #             None => (Message::new(Role::Assistant, vec![call.into()]), Finish::ToolCalls),
/// #         };
/// #         let response = Response::new("forecaster", &request.model, message);
/// #         Ok(response.with_finish_reason(FinishReason::new(finish)).with_usage(Usage::new(10, 5)))
/// #     }
/// #     async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
/// #         Err(Error::new(ErrorKind::Configuration, "it does not stream"))
/// #     }
/// # }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Place {
///     /// The city's name.
///     city: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let weather = Tool::typed("get_weather", "The weather in a city.", |place: Place, _| async move {
///     Ok::<_, IoError>(format!("sunny in {}", place.city))
/// })?;
/// # let client = Client::builder().provider(Forecaster).build()?;
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
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) before anything is sent if the options contradict
/// themselves or name no client; [`Abort`](crate::ErrorKind::Abort) and
/// [`RequestTimeout`](crate::ErrorKind::RequestTimeout) for the abort signal and the time limits; else what the last
/// attempt of a model call reports. An error has nothing of the steps before it: who wants to keep those sets
/// [`on_step`](GenerateOptions::on_step).
pub async fn generate(options: GenerateOptions) -> Result<GenerateResult, Error> {
    let mut work = ToolLoop::new(options)?;
    loop {
        let response = work.complete().await?;
        if !work.finish_step(response).await? {
            return work.into_result();
        }
    }
}

/// As [`generate`], event by event.
///
/// It returns at once; the provider is asked when the first event is. A model call is tried again only while it has
/// nothing to show yet: after that, its failure is the stream's last item.
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
/// #         Err(Error::new(ErrorKind::Configuration, "it streams only"))
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
/// # let client = Client::builder().provider(Poet).build()?;
/// let options = GenerateOptions::new("claude-opus-4-6").with_client(client).with_prompt("Write a poem.");
/// let mut poem = stream(options)?;
/// let mut texts = poem.text_stream();
/// let mut heard = String::new();
/// while let Some(delta) = texts.next().await {
///     heard.push_str(&delta?);
/// }
/// assert_eq!(heard, poem.response()?.text());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) as for [`generate`]; everything else comes through the
/// stream.
pub fn stream(options: GenerateOptions) -> Result<StreamResult, Error> {
    ToolLoop::new(options).map(StreamResult::new)
}
