//! Tools made from closures.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Effect, IntoToolOutput, Tool, ToolOutput};
use crate::context::ToolContext;
use crate::error::ToolError;

/// Creates a tool from a closure. The fields of `I` are the parameters, and their doc comments are the descriptions.
///
/// The tool has [`Effect::Execute`], which assumes the worst; [`FnTool::with_effect`] sets another effect. For a tool
/// that names the files it accesses, implement [`Tool`].
///
/// The output is any value that implements `Serialize`, or a [`ToolOutput`]. The error is any error, or a text that
/// describes one. The model reads it with its causes. A [`ToolError`] and an error of the environment keep their kind.
///
/// ```
/// use pintle_tools::{Effect, ToolError, ToolRegistry, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct CountLines {
///     /// The file whose lines are counted.
///     path: String,
/// }
///
/// let count_lines = tool_fn("count_lines", "Counts the lines of a file.", |input: CountLines, cx| async move {
///     let text = cx.env.read_file(input.path.as_ref(), None, None).await?;
///     Ok::<_, ToolError>(text.lines().count())
/// });
/// let mut registry = ToolRegistry::new();
/// registry.register(count_lines.with_effect(Effect::Read))?;
/// # Ok::<(), pintle_tools::DefinitionError>(())
/// ```
pub fn tool_fn<I, F, Fut, T, E>(
    name: impl Into<String>,
    description: impl Into<String>,
    run: F,
) -> FnTool<I, F>
where
    F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send,
    T: IntoToolOutput,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let (name, description) = (name.into(), description.into());
    FnTool { name, description, effect: Effect::Execute, run, input: PhantomData }
}

/// A tool made from a closure by [`tool_fn`].
pub struct FnTool<I, F> {
    name: String,
    description: String,
    effect: Effect,
    run: F,
    input: PhantomData<fn(I)>,
}

impl<I, F> FnTool<I, F> {
    /// Sets the side effect. A tool with [`Effect::Read`] runs in parallel with others and is repeatable.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }
}

impl<I, F, Fut, T, E> Tool for FnTool<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send,
    T: IntoToolOutput,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    type Input = I;

    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    async fn call(&self, input: I, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match (self.run)(input, cx.clone()).await {
            Ok(output) => output.into_tool_output(),
            Err(error) => Err(ToolError::from_boxed(error.into())),
        }
    }
}

impl<I, F> fmt::Debug for FnTool<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}
