//! Tools with and without a handler (client specification, sections 5.1, 5.2 and 5.5).

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::schema;
use crate::content::{ImageData, ToolCall, ToolResult};
use crate::error::Error;
use crate::history::HistoryItem;
use crate::tool::ToolDefinition;

/// A future that a tool loop waits for.
pub(super) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Failure = Box<dyn StdError + Send + Sync>;
type Handler = dyn Fn(Value, CallContext) -> Boxed<Result<ToolOutput, Failure>> + Send + Sync;

/// A tool for [`generate`](crate::generate) and its like.
///
/// An *active* tool has a handler, which the tool loop calls. The calls of a *passive* tool are returned to the caller.
///
/// A handler gets arguments that fit the tool's schema. What it returns goes to the model, whole: it is the handler that
/// keeps it short. An error goes to the model as well, as a result that says so, with all its causes; of a panic the model
/// is told that there was one, and the log says so too. The handlers of one round run concurrently in the caller's task,
/// so a handler that blocks delays the others. A handler is dropped when the generation is cancelled, times out or is
/// dropped.
#[derive(Clone)]
pub struct Tool {
    /// What the model is told.
    pub definition: ToolDefinition,
    execute: Option<Arc<Handler>>,
}

impl Tool {
    /// A tool whose calls are returned to the caller.
    #[must_use]
    pub fn passive(definition: ToolDefinition) -> Self {
        Self { definition, execute: None }
    }

    /// A tool whose handler takes the arguments as they came. A custom tool's free text stands in the one property of its
    /// schema.
    pub fn active<F, Fut, T, E>(definition: ToolDefinition, execute: F) -> Self
    where
        F: Fn(Value, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<ToolOutput>,
        E: Into<Failure>,
    {
        let execute = move |arguments: Value, context: CallContext| -> Boxed<_> {
            let running = execute(arguments, context);
            Box::pin(async move { running.await.map(Into::into).map_err(Into::into) })
        };
        Self { definition, execute: Some(Arc::new(execute)) }
    }

    /// A tool whose parameters are the fields of a type; the doc comments of the fields describe them to the model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the name is none that providers accept, or if the
    /// type is no structure with named fields.
    pub fn typed<I, F, Fut, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        execute: F,
    ) -> Result<Self, Error>
    where
        I: DeserializeOwned + JsonSchema,
        F: Fn(I, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<ToolOutput>,
        E: Into<Failure>,
    {
        let definition = ToolDefinition::new(name, description, schema::parameters_of::<I>())?;
        let execute = move |arguments: Value, context: CallContext| -> Boxed<_> {
            // The schema is coarser than the type, so that this may still fail.
            match serde_json::from_value::<I>(arguments) {
                Ok(input) => {
                    let running = execute(input, context);
                    Box::pin(async move { running.await.map(Into::into).map_err(Into::into) })
                }
                Err(error) => Box::pin(std::future::ready(Err(Failure::from(error)))),
            }
        };
        Ok(Self { definition, execute: Some(Arc::new(execute)) })
    }

    /// Whether it has a handler.
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
                tracing::debug!(tool = self.definition.name, call = id, "the tool failed");
                ToolResult::new(id, chain(failure.as_ref()), true)
            }
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("definition", &self.definition)
            .field("active", &self.is_active())
            .finish()
    }
}

/// What a handler is told beside the arguments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallContext {
    /// The call as the model made it, its id included.
    pub call: ToolCall,
    /// The conversation up to and including the message with the call.
    pub messages: Arc<[HistoryItem]>,
    /// Given when nobody waits for the result any more. The handler is dropped then in any case; this is for what it has
    /// started elsewhere.
    pub abort_signal: CancellationToken,
}

/// What a handler gives: text or JSON, and images beside it. Made from a text or a [`Value`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// Text as a string, anything else as JSON.
    pub content: Value,
    /// For models that can look at the results of tools.
    pub images: Vec<ImageData>,
}

impl ToolOutput {
    /// With an image.
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

impl From<Value> for ToolOutput {
    fn from(content: Value) -> Self {
        Self { content, images: Vec::new() }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Value::from(text).into()
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

/// A call whose arguments do not fit its tool, for the repair hook.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidToolCall {
    /// The call as the model made it.
    pub call: ToolCall,
    /// The tool that it is for.
    pub tool: ToolDefinition,
    /// What is wrong, of kind [`InvalidToolCall`](crate::ErrorKind::InvalidToolCall).
    pub error: Error,
    /// The conversation up to and including the message with the call.
    pub messages: Arc<[HistoryItem]>,
}

/// The repair hook of [`GenerateOptions::with_repair_tool_call`](super::GenerateOptions::with_repair_tool_call).
#[derive(Clone)]
pub struct RepairToolCall {
    repair: Arc<dyn Fn(InvalidToolCall) -> Boxed<Option<Value>> + Send + Sync>,
}

impl RepairToolCall {
    /// A hook that gives other arguments, or `None` where it knows none.
    pub fn new<F, Fut>(repair: F) -> Self
    where
        F: Fn(InvalidToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Value>> + Send + 'static,
    {
        Self { repair: Arc::new(move |invalid| Box::pin(repair(invalid))) }
    }

    pub(super) fn repair(&self, invalid: InvalidToolCall) -> Boxed<Option<Value>> {
        (self.repair)(invalid)
    }
}

impl fmt::Debug for RepairToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RepairToolCall(..)")
    }
}

/// An error and what lies beneath it, for a reader who has no other way to ask.
fn chain(failure: &(dyn StdError + 'static)) -> String {
    let levels = std::iter::successors(Some(failure), |error: &&(dyn StdError + 'static)| (*error).source());
    levels.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
