//! Calls of a tool that says of itself what a test wants, and does nothing.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
use pintle_llm::{ToolCall, ToolDefinition};
use serde_json::{Value, json};

use super::Verdict;
use crate::context::ToolContext;
use crate::error::{DefinitionError, ToolError};
use crate::pipeline::{Execution, Preparation, PreparedCall, execute, prepare};
use crate::registry::ToolRegistry;
use crate::tool::{DynTool, Effect, ToolOutput};
use crate::truncate::TruncationLimits;

/// Reads what the argument `reads` lists and writes what `writes` lists, or says so.
pub(super) struct Probe {
    name: &'static str,
    kind: &'static str,
    effect: Effect,
}

impl Probe {
    pub(super) fn new(name: &'static str, effect: Effect) -> Self {
        Self { name, kind: name, effect }
    }

    pub(super) fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }
}

pub(super) fn doing(effect: Effect) -> Probe {
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

    fn read_paths(&self, arguments: &Value) -> Vec<PathBuf> {
        paths(arguments, "reads")
    }

    fn written_paths(&self, arguments: &Value) -> Vec<PathBuf> {
        paths(arguments, "writes")
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

/// A prepared call in an empty `/project`.
pub(super) async fn call(tool: impl DynTool, arguments: Value) -> PreparedCall {
    call_in(&MemoryEnvironment::new("/project"), tool, arguments).await
}

pub(super) async fn call_in(
    env: &dyn ExecutionEnvironment,
    tool: impl DynTool,
    arguments: Value,
) -> PreparedCall {
    let mut registry = ToolRegistry::new();
    registry.register(tool).unwrap();
    let name = registry.names().next().unwrap().to_owned();
    let call = ToolCall::from_raw("call_1", name, arguments.to_string());
    match prepare(&registry, &[], env, &call).await {
        Preparation::Ready(call) => call,
        other @ (Preparation::Ask { .. } | Preparation::Refused(_)) => panic!("{other:?}"),
    }
}

pub(super) async fn run(env: &Arc<MemoryEnvironment>, call: &PreparedCall) -> Execution {
    let cx = ToolContext::new(Arc::clone(env) as _, call.call_id());
    execute(call, &cx, &TruncationLimits::new()).await
}

pub(super) fn denies(reason: &str) -> Verdict {
    Verdict::Deny { reason: reason.to_owned() }
}
