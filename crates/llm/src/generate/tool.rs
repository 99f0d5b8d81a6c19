//! Tools with and without a handler (client specification, sections 5.1, 5.2 and 5.5).

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::schema;
use crate::content::{ImageData, ToolCall, ToolResult};
use crate::error::Error;
use crate::error_chain::error_chain;
use crate::history::HistoryItem;
use crate::tool::ToolDefinition;

/// Future of a handler or hook.
pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Failure = Box<dyn StdError + Send + Sync>;
type Handler = dyn Fn(Value, CallContext) -> BoxFuture<Result<ClientToolOutput, Failure>> + Send + Sync;

/// Tool for [`generate`](crate::generate) and the related functions.
///
/// An *active* tool has a handler, which the tool loop calls. Calls of a *passive* tool are returned to the caller.
///
/// A handler gets arguments that match the tool's schema. Its output is sent to the model in full: the handler has to
/// limit its size. An error, or a text that describes one, is sent as an error result with all its causes. A panic is sent
/// as an error result, and logged. The handlers of a round run concurrently in the caller's task, so a handler that blocks
/// delays the others. A handler is dropped when the generation is cancelled, times out or is dropped.
///
/// ```
/// use pintle_llm::{ClientTool, GenerateOptions};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Location {
///     /// The city's name.
///     city: String,
/// }
///
/// let weather = ClientTool::typed("get_weather", "The weather in a city.", |location: Location, _| async move {
///     Ok::<_, std::io::Error>(format!("sunny in {}", location.city))
/// })?;
/// assert_eq!(weather.definition.parameters["properties"]["city"]["description"], "The city's name.");
/// // The loop of `generate(options)` answers calls of the model with the closure.
/// let options = GenerateOptions::new("claude-opus-4-6").with_prompt("How is the weather in Oslo?").with_tool(weather);
/// # drop(options);
/// # Ok::<(), pintle_llm::Error>(())
/// ```
#[derive(Clone)]
pub struct ClientTool {
    /// Definition for the model.
    pub definition: ToolDefinition,
    execute: Option<Arc<Handler>>,
}

impl ClientTool {
    /// Creates a tool whose calls are returned to the caller.
    #[must_use]
    pub fn passive(definition: ToolDefinition) -> Self {
        Self { definition, execute: None }
    }

    /// Creates a tool whose handler takes JSON arguments. A custom tool's free text is the value of the only property of its
    /// schema.
    pub fn active<F, Fut, T, E>(definition: ToolDefinition, execute: F) -> Self
    where
        F: Fn(Value, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoClientToolOutput,
        E: Into<Failure>,
    {
        let execute = move |arguments: Value, context: CallContext| -> BoxFuture<_> {
            let running = execute(arguments, context);
            Box::pin(async move { converted(running.await) })
        };
        Self { definition, execute: Some(Arc::new(execute)) }
    }

    /// Creates a tool whose parameters are the fields of a type. Doc comments of the fields describe them to the model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) for a name that providers refuse, or a type that is not
    /// a struct with named fields.
    pub fn typed<I, F, Fut, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        execute: F,
    ) -> Result<Self, Error>
    where
        I: DeserializeOwned + JsonSchema,
        F: Fn(I, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoClientToolOutput,
        E: Into<Failure>,
    {
        let definition = ToolDefinition::new(name, description, schema::parameters_of::<I>())?;
        let execute = move |arguments: Value, context: CallContext| -> BoxFuture<_> {
            // May fail: the schema can be less strict than the type.
            match serde_json::from_value::<I>(arguments) {
                Ok(input) => {
                    let running = execute(input, context);
                    Box::pin(async move { converted(running.await) })
                }
                Err(error) => Box::pin(std::future::ready(Err(Failure::from(error)))),
            }
        };
        Ok(Self { definition, execute: Some(Arc::new(execute)) })
    }

    /// Returns `true` if the tool has a handler.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.execute.is_some()
    }

    pub(super) async fn execute(&self, arguments: Value, context: CallContext) -> Option<ToolResult> {
        let execute = self.execute.as_ref()?;
        let id = context.call.id.clone();
        Some(match execute(arguments, context).await {
            Ok(output) => output.into_result(id),
            Err(failure) => {
                tracing::debug!(tool = self.definition.name, call = id, "tool failed");
                ToolResult::new(id, error_chain(failure.as_ref()), true)
            }
        })
    }
}

impl fmt::Debug for ClientTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTool")
            .field("definition", &self.definition)
            .field("active", &self.is_active())
            .finish()
    }
}

/// Context of a handler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallContext {
    /// The call as the model made it, including its id.
    pub call: ToolCall,
    /// Conversation up to and including the message with the call.
    pub messages: Arc<[HistoryItem]>,
    /// Cancelled when the result is no longer needed. The handler is dropped then in any case; the signal is for work that
    /// it has started elsewhere.
    pub abort_signal: CancellationToken,
}

/// Output of a handler: text or JSON, and optionally images. Converts from text and from [`Value`].
///
/// Without images, a handler can return any value that implements [`Serialize`]; see [`IntoClientToolOutput`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientToolOutput {
    /// Text as a string, anything else as JSON.
    pub content: Value,
    /// Images, for models that accept them in tool results.
    pub images: Vec<ImageData>,
}

impl ClientToolOutput {
    /// Adds an image.
    #[must_use]
    pub fn with_image(mut self, image: ImageData) -> Self {
        self.images.push(image);
        self
    }

    fn into_result(self, id: String) -> ToolResult {
        let mut result = ToolResult::new(id, String::new(), false);
        result.content = self.content;
        result.images = self.images;
        result
    }
}

impl From<Value> for ClientToolOutput {
    fn from(content: Value) -> Self {
        Self { content, images: Vec::new() }
    }
}

impl From<String> for ClientToolOutput {
    fn from(text: String) -> Self {
        Value::from(text).into()
    }
}

impl From<&str> for ClientToolOutput {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

/// Output of a handler: any value that implements [`Serialize`], or a [`ClientToolOutput`]. A string is sent as text, any
/// other value as JSON.
pub trait IntoClientToolOutput {
    /// Converts the output.
    ///
    /// # Errors
    ///
    /// The value cannot be serialised, for instance because a key of a map is not a string.
    fn into_client_tool_output(self) -> Result<ClientToolOutput, serde_json::Error>;
}

impl<T: Serialize> IntoClientToolOutput for T {
    fn into_client_tool_output(self) -> Result<ClientToolOutput, serde_json::Error> {
        serde_json::to_value(self).map(Into::into)
    }
}

impl IntoClientToolOutput for ClientToolOutput {
    fn into_client_tool_output(self) -> Result<ClientToolOutput, serde_json::Error> {
        Ok(self)
    }
}

fn converted<T: IntoClientToolOutput, E: Into<Failure>>(
    result: Result<T, E>,
) -> Result<ClientToolOutput, Failure> {
    let output = result.map_err(Into::<Failure>::into)?;
    Ok(output.into_client_tool_output()?)
}

/// A call with invalid arguments, for the repair hook.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidToolCall {
    /// The call as the model made it.
    pub call: ToolCall,
    /// The called tool.
    pub tool: ToolDefinition,
    /// Reason, of kind [`InvalidToolCall`](crate::ErrorKind::InvalidToolCall).
    pub error: Error,
    /// Conversation up to and including the message with the call.
    pub messages: Arc<[HistoryItem]>,
}

/// Repair hook of [`GenerateOptions::with_repair_tool_call`](super::GenerateOptions::with_repair_tool_call).
#[derive(Clone)]
pub struct RepairToolCall {
    repair: Arc<dyn Fn(InvalidToolCall) -> BoxFuture<Option<Value>> + Send + Sync>,
}

impl RepairToolCall {
    /// Wraps a function that returns other arguments, or `None` if it cannot repair them.
    pub fn new<F, Fut>(repair: F) -> Self
    where
        F: Fn(InvalidToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Value>> + Send + 'static,
    {
        Self { repair: Arc::new(move |invalid| Box::pin(repair(invalid))) }
    }

    pub(super) fn repair(&self, invalid: InvalidToolCall) -> BoxFuture<Option<Value>> {
        (self.repair)(invalid)
    }
}

impl fmt::Debug for RepairToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RepairToolCall(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_handler_returns_any_value_and_any_error() {
        let text = converted(Ok::<_, io::Error>("sunny")).unwrap();
        assert_eq!(text, ClientToolOutput::from("sunny"));
        let value = converted(Ok::<_, String>(vec![4, 17])).unwrap();
        assert_eq!(value.content, json!([4, 17]));
        let image = ClientToolOutput::from("a map").with_image(ImageData::url("https://example.org/a.png"));
        assert_eq!(converted(Ok::<_, io::Error>(image.clone())).unwrap(), image);
        let error = converted(Err::<(), _>(io::Error::other("cable cut"))).unwrap_err();
        assert_eq!(error.to_string(), "cable cut");
    }
}
