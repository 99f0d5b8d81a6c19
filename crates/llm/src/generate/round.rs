//! A round of tool calls: looked up, validated and run concurrently (client specification, sections 5.7 and 5.8).

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::schema;
use super::tool::{CallContext, ClientTool, InvalidToolCall, RepairToolCall};
use crate::content::{ToolCall, ToolCallKind, ToolResult};
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::schema::CompiledSchema;
use crate::tool::{ToolDefinition, ToolList};

/// Tools of a generation with their compiled schemas.
#[derive(Debug)]
pub(super) struct ToolRunner {
    tools: Vec<(ClientTool, CompiledSchema)>,
    by_name: HashMap<String, usize>,
    repair: Option<RepairToolCall>,
}

impl ToolRunner {
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if two tools have the same name, or if a schema is invalid.
    pub(super) fn new(tools: Vec<ClientTool>, repair: Option<RepairToolCall>) -> Result<Self, Error> {
        let mut by_name = HashMap::new();
        let mut compiled = Vec::with_capacity(tools.len());
        for (index, tool) in tools.into_iter().enumerate() {
            let name = &tool.definition.name;
            if by_name.insert(name.clone(), index).is_some() {
                return Err(Error::new(ErrorKind::Configuration, format!("two tools are named `{name}`")));
            }
            let validator = schema::compile(&tool.definition.parameters, &format!("tool `{name}`"))?;
            compiled.push((tool, validator));
        }
        Ok(Self { tools: compiled, by_name, repair })
    }

    pub(super) fn definitions(&self) -> ToolList {
        self.tools.iter().map(|(tool, _)| tool.definition.clone()).collect()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(super) fn has_active(&self) -> bool {
        self.tools.iter().any(|(tool, _)| tool.is_active())
    }

    /// Runs all calls concurrently and stores their results in the order of the calls, `None` for passive tools.
    ///
    /// Dropping the future drops all handlers and cancels their signal. Results stored by then remain.
    pub(super) async fn run(
        &self,
        calls: impl Iterator<Item = &ToolCall>,
        messages: Arc<[HistoryItem]>,
        abort: &CancellationToken,
        results: &mut Vec<Option<ToolResult>>,
    ) {
        let abort_signal = abort.child_token();
        let guard = abort_signal.clone().drop_guard();
        let running = calls.map(|call| {
            let context = CallContext {
                call: call.clone(),
                messages: Arc::clone(&messages),
                abort_signal: abort_signal.clone(),
            };
            catch_panic(call, self.run_call(context))
        });
        join_all(running, results).await;
        guard.disarm();
    }

    async fn run_call(&self, context: CallContext) -> Option<ToolResult> {
        let found = self.by_name.get(&context.call.name).and_then(|index| self.tools.get(*index));
        let Some((tool, validator)) = found else {
            let text = self.unknown_tool(&context.call.name);
            return Some(ToolResult::new(context.call.id, text, true));
        };
        if !tool.is_active() {
            return None;
        }
        match self.arguments(tool, validator, &context).await {
            Ok(arguments) => tool.execute(arguments, context).await,
            Err(error) => Some(ToolResult::new(context.call.id, error.message(), true)),
        }
    }

    /// Returns valid arguments, after the repair hook if necessary.
    async fn arguments(
        &self,
        tool: &ClientTool,
        validator: &CompiledSchema,
        context: &CallContext,
    ) -> Result<Value, Error> {
        let definition = &tool.definition;
        let error = match validated(definition, validator, raw_arguments(&context.call, definition)) {
            Ok(arguments) => return Ok(arguments),
            Err(error) => error,
        };
        let Some(hook) = &self.repair else { return Err(error) };
        let message = error.message().to_owned();
        let invalid = InvalidToolCall {
            call: context.call.clone(),
            tool: definition.clone(),
            error,
            messages: Arc::clone(&context.messages),
        };
        match hook.repair(invalid).await {
            Some(repaired) => validated(definition, validator, repaired),
            None => Err(Error::new(ErrorKind::InvalidToolCall, message)),
        }
    }

    fn unknown_tool(&self, name: &str) -> String {
        let known: Vec<&str> = self.tools.iter().map(|(tool, _)| tool.definition.name.as_str()).collect();
        format!("unknown tool `{name}`; the tools are: {}", known.join(", "))
    }
}

/// Returns the arguments of a call. Free text of a custom tool becomes the value of the only property.
fn raw_arguments(call: &ToolCall, definition: &ToolDefinition) -> Value {
    let properties = definition.parameters.get("properties").and_then(Value::as_object);
    match (call.kind, properties.map(|properties| properties.keys().collect::<Vec<_>>()).as_deref()) {
        (ToolCallKind::Custom, Some([only])) => {
            Value::Object(Map::from_iter([((*only).clone(), Value::clone(&call.arguments))]))
        }
        (ToolCallKind::Custom | ToolCallKind::Function, _) => Value::clone(&call.arguments),
    }
}

fn validated(
    definition: &ToolDefinition,
    validator: &CompiledSchema,
    arguments: Value,
) -> Result<Value, Error> {
    let violations = match &arguments {
        // Arguments that are not a JSON object are kept as text.
        Value::String(text) => Some(not_an_object(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            schema::violations(validator, &arguments)
        }
    };
    match violations {
        None => Ok(arguments),
        Some(violations) => Err(Error::new(
            ErrorKind::InvalidToolCall,
            format!("invalid arguments for tool `{}`: {violations}", definition.name),
        )),
    }
}

fn not_an_object(text: &str) -> String {
    const MAX_SHOWN: usize = 60;
    match serde_json::from_str::<Value>(text) {
        Ok(_) => format!("expected a JSON object, found {}", schema::shortened(text, MAX_SHOWN)),
        Err(error) => format!("not JSON: {error}"),
    }
}

/// Turns a panic of the handler or of the repair hook into an error result, so that it does not lose the steps before.
async fn catch_panic(
    call: &ToolCall,
    running: impl Future<Output = Option<ToolResult>>,
) -> Option<ToolResult> {
    let mut running = pin!(running);
    let outcome = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    });
    outcome.await.unwrap_or_else(|_| {
        tracing::error!(tool = call.name, call = call.id, "tool handler panicked");
        Some(ToolResult::new(call.id.clone(), format!("tool `{}` panicked", call.name), true))
    })
}

/// Polls all futures to completion and stores each output as soon as it is ready.
async fn join_all<T>(
    futures: impl Iterator<Item = impl Future<Output = Option<T>>>,
    outputs: &mut Vec<Option<T>>,
) {
    let mut running: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
    outputs.resize_with(running.len(), || None);
    poll_fn(|cx| {
        for (slot, output) in running.iter_mut().zip(outputs.iter_mut()) {
            if let Some(future) = slot
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = ready;
                *slot = None;
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
