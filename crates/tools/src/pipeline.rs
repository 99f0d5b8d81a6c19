//! From a model's call to its result, in two steps (loop specification, section 3.8; design, section 7).
//!
//! [`prepare`] looks up, validates and gates; [`execute`] runs and truncates. Whoever drives the loop stands
//! between them, so that one call can run while another waits for approval.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use pintle_env::{ExecutionEnvironment, Output};
use pintle_llm::{ToolCall, ToolCallKind, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::registry::{RegisteredTool, ToolRegistry};
use crate::schema;
use crate::tool::{Effect, FileChange, ToolOutput};
use crate::truncate::{self, TruncationLimits};

/// A call that may run.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    call_id: String,
    arguments: Value,
    writes: Vec<PathBuf>,
    tool: Arc<RegisteredTool>,
}

/// Decides whether a call may run, before it does.
///
/// Implemented by hosts for their own rules. It must not run the call and should answer soon; the turn waits for it.
#[async_trait]
pub trait Gate: std::fmt::Debug + Send + Sync {
    /// The verdict on one call.
    async fn check(&self, call: &PreparedCall) -> Verdict;
}

const _: fn(&dyn Gate) = |_| {};

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run, unless a later gate objects.
    Allow,
    /// It may not.
    Deny {
        /// Goes to the model.
        reason: String,
    },
    /// A person decides.
    Ask {
        /// Goes to that person.
        reason: String,
    },
}

/// What became of a call's preparation.
#[derive(Debug)]
pub enum Preparation {
    /// It may run.
    Ready(PreparedCall),
    /// It may run if a person agrees.
    Ask {
        /// The call.
        call: PreparedCall,
        /// Why a person is asked.
        reason: String,
    },
    /// It will not run; the error is its result.
    Refused(ToolError),
}

/// Looks up the tool, validates the arguments, and asks the gates in order until one does not allow.
pub async fn prepare(
    registry: &ToolRegistry,
    gates: &[Arc<dyn Gate>],
    env: &dyn ExecutionEnvironment,
    call: &ToolCall,
) -> Preparation {
    let prepared = match PreparedCall::new(registry, env, call) {
        Ok(prepared) => prepared,
        Err(error) => return Preparation::Refused(error),
    };
    for gate in gates {
        match gate.check(&prepared).await {
            Verdict::Allow => {}
            Verdict::Deny { reason } => {
                return Preparation::Refused(ToolError::new(
                    ToolErrorKind::Denied,
                    format!("The call of {} was denied: {reason}", call.name),
                ));
            }
            Verdict::Ask { reason } => return Preparation::Ask { call: prepared, reason },
        }
    }
    Preparation::Ready(prepared)
}

/// Runs a prepared call and cuts its output for the model. Dropping the future stops the call.
///
/// Whatever the tool does, there is a result: a failure is told as `Tool error (NAME): …`, and a panic of the tool is
/// a failure of the call. Needs a tokio runtime, because a spooled output is read on a thread that may block.
pub async fn execute(call: &PreparedCall, cx: &ToolContext, limits: &TruncationLimits) -> Execution {
    let outcome = caught(call.tool.tool().call_json(call.arguments.clone(), cx)).await;
    let (output, error) = match outcome {
        Ok(output) => {
            let error = output.is_error.then_some(ToolErrorKind::Failed);
            (output, error)
        }
        Err(error) => {
            let text = format!("Tool error ({}): {}", call.name(), error.for_model());
            (ToolOutput::new(text).with_error(true), Some(error.kind()))
        }
    };
    let shown = cut(&output.text, call, limits).await;
    let mut result = ToolResult::new(call.call_id.clone(), shown, output.is_error);
    result.images = output.images;
    Execution { result, output: output.text, error, changes: output.changes }
}

/// A call that has run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// What the model gets: cut to the limits.
    pub result: ToolResult,
    /// The whole output, for the host.
    pub output: Output,
    /// The kind of failure, if the call failed.
    pub error: Option<ToolErrorKind>,
    /// The files that changed.
    pub changes: Vec<FileChange>,
}

impl PreparedCall {
    fn new(
        registry: &ToolRegistry,
        env: &dyn ExecutionEnvironment,
        call: &ToolCall,
    ) -> Result<Self, ToolError> {
        let tool = registry.get(&call.name).ok_or_else(|| unknown_tool(registry, &call.name))?;
        let arguments = arguments_of(tool, call)?;
        let mistakes = schema::mistakes(tool.validator(), &arguments);
        if !mistakes.is_empty() {
            let list: Vec<String> = mistakes.iter().map(|mistake| format!("- {mistake}")).collect();
            return Err(invalid(&call.name, &list.join("\n")));
        }
        let writes = tool.tool().written_paths(&arguments).iter().map(|path| env.resolve(path)).collect();
        Ok(Self { call_id: call.id.clone(), arguments, writes, tool: Arc::clone(tool) })
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tool.name()
    }

    /// The id that the result must carry.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The arguments, which fit the schema.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// The files that it may change, absolute.
    #[must_use]
    pub fn writes(&self) -> &[PathBuf] {
        &self.writes
    }

    /// What it does to the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.tool.effect()
    }

    /// Whether it may be made twice without harm.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable()
    }
}

/// Lets a tool's panic end its own call and nothing else.
async fn caught(call: impl Future<Output = Result<ToolOutput, ToolError>>) -> Result<ToolOutput, ToolError> {
    let mut call = pin!(call);
    // Nothing of a call is looked at after its panic, so nothing half done can be seen.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(payload) => Poll::Ready(Err(panicked(payload.as_ref()))),
    })
    .await
}

fn panicked(payload: &(dyn Any + Send)) -> ToolError {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    tracing::error!(message = text, "a tool panicked");
    ToolError::new(ToolErrorKind::Failed, format!("the tool itself is broken: it panicked ({text})"))
}

/// What the model sees of an output. A spooled one is read from disk, which must not hold up other tasks.
async fn cut(output: &Output, call: &PreparedCall, limits: &TruncationLimits) -> String {
    let tool = Arc::clone(&call.tool);
    if !output.is_spooled() {
        return truncate::truncate(output, tool.name(), tool.kind(), limits);
    }
    let (output, limits) = (output.clone(), limits.clone());
    let cut = move || truncate::truncate(&output, tool.name(), tool.kind(), &limits);
    match tokio::task::spawn_blocking(cut).await {
        Ok(text) => text,
        Err(error) => format!("[ERROR: The output cannot be read back: {error}]"),
    }
}

/// The arguments as an object: free text goes into the only required field.
fn arguments_of(tool: &RegisteredTool, call: &ToolCall) -> Result<Value, ToolError> {
    match (&call.arguments, call.kind) {
        (Value::String(text), ToolCallKind::Custom) => {
            let parameters = &tool.definition().parameters;
            let required = parameters.get("required").and_then(Value::as_array).map(Vec::as_slice);
            match required {
                Some([Value::String(only)]) => {
                    Ok(Value::Object(Map::from_iter([(only.clone(), Value::String(text.clone()))])))
                }
                _ => Err(invalid(&call.name, "- expected a JSON object with named arguments, got free text")),
            }
        }
        (Value::String(raw), ToolCallKind::Function) => {
            let reason = match serde_json::from_str::<Value>(raw) {
                Ok(value) => format!("- expected a JSON object, got {}", json_kind(&value)),
                Err(error) => format!("- not valid JSON: {error}"),
            };
            Err(invalid(&call.name, &reason))
        }
        (arguments, _) => Ok(arguments.clone()),
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn invalid(name: &str, reasons: &str) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, format!("Invalid arguments for tool: {name}\n{reasons}"))
}

fn unknown_tool(registry: &ToolRegistry, name: &str) -> ToolError {
    let nearest = registry.nearest(name);
    let all: Vec<&str> = registry.names().collect();
    let hint = match (nearest.as_slice(), all.as_slice()) {
        (_, []) => "There are no tools.".to_owned(),
        ([], all) => format!("Available tools: {}.", all.join(", ")),
        (nearest, _) => format!("Did you mean {}?", nearest.join(", ")),
    };
    ToolError::new(ToolErrorKind::UnknownTool, format!("Unknown tool: {name}. {hint}"))
}

#[cfg(test)]
mod tests;
