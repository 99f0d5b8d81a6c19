//! Prepared calls for tests, of a tool whose effect, reads and writes the test chooses.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
use pintle_llm::{ToolCall, ToolDefinition};
use serde_json::{Value, json};

use crate::call::{Execution, PreparedCall};
use crate::context::ToolContext;
use crate::error::{DefinitionError, ToolError};
use crate::gate::Verdict;
use crate::pipeline::execute;
use crate::registry::ToolRegistry;
use crate::tool::{DynTool, Effect, ToolInput, ToolOutput};
use crate::truncate::TruncationLimits;

/// A tool that reads the paths in its argument `reads` and writes those in `writes`.
pub(crate) struct Probe {
    name: &'static str,
    kind: &'static str,
    effect: Effect,
}

impl Probe {
    pub(crate) fn new(name: &'static str, effect: Effect) -> Self {
        Self { name, kind: name, effect }
    }

    pub(crate) fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }
}

pub(crate) fn probe(effect: Effect) -> Probe {
    Probe::new("probe", effect)
}

#[async_trait]
impl DynTool for Probe {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        ToolDefinition::new(self.name, "A probe.", json!({"type": "object"}))
            .map_err(|error| DefinitionError::refused(self.name, error))
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn canonical_kind(&self) -> Option<String> {
        Some(self.kind.to_owned())
    }

    fn parse(&self, arguments: &Value) -> Result<ToolInput, ToolError> {
        let (reads, writes) = (paths(arguments, "reads"), paths(arguments, "writes"));
        Ok(ToolInput::new(arguments.clone()).with_reads(reads).with_writes(writes))
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        for path in paths(&arguments, "writes") {
            cx.env.write(&path, b"written").await?;
        }
        for path in paths(&arguments, "reads") {
            cx.env.read(&path, None).await?;
        }
        Ok(ToolOutput::new("done"))
    }
}

fn paths(arguments: &Value, name: &str) -> Vec<PathBuf> {
    let list = arguments[name].as_array().cloned().unwrap_or_default();
    list.iter().map(|path| PathBuf::from(path.as_str().unwrap())).collect()
}

/// Prepares a call in an empty `/project`.
pub(crate) async fn call(tool: impl DynTool, arguments: Value) -> PreparedCall {
    call_in(&MemoryEnvironment::new("/project"), tool, arguments).await
}

/// Prepares a call without gates.
pub(crate) async fn call_in(
    env: &dyn ExecutionEnvironment,
    tool: impl DynTool,
    arguments: Value,
) -> PreparedCall {
    let mut registry = ToolRegistry::new();
    registry.register(tool).unwrap();
    let name = registry.names().next().unwrap().to_owned();
    let call = ToolCall::from_raw("call_1", name, arguments.to_string());
    PreparedCall::new(&registry, env, &call).unwrap().with_resolved_targets(env).await
}

/// Executes a prepared call with the default limits.
pub(crate) async fn execute_in(env: &Arc<MemoryEnvironment>, call: &PreparedCall) -> Execution {
    let cx = ToolContext::new(Arc::clone(env) as _, call.call_id());
    execute(call, &cx, &TruncationLimits::new()).await
}

pub(crate) fn denies(reason: &str) -> Verdict {
    Verdict::deny(reason)
}
