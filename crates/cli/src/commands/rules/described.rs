//! A call from a description, prepared like a model's call in a run.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;
use pintle_governance::{Address, CallFacts};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::toolset;
use pintle_llm::{ToolCall, ToolDefinition};
use pintle_tools::gate::Gate;
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{
    DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolErrorKind, ToolInput, ToolKind, ToolOutput,
    ToolRegistry,
};
use serde_json::{Value, json};

/// Start of the names of tools of MCP servers. Only a session knows these tools.
const SERVER_PREFIX: &str = "mcp__";

/// Id of the call. It is never shown.
const ID: &str = "described";

/// Tool of a described call. It declares the same paths as the described tool, and cannot run.
#[derive(Debug)]
pub(super) struct DescribedCall {
    name: String,
    kind: String,
    effect: Effect,
    arguments: Value,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    hosts: Option<Vec<String>>,
}

impl DescribedCall {
    /// Reads a call such as `shell(git push)`. The tool is one of any toolset, an effect, or a tool that is not known here.
    pub(super) async fn parse(text: &str, environment: &dyn ExecutionEnvironment) -> Result<Self, Failure> {
        let text = text.trim();
        let (name, target) = text.split_once('(').unwrap_or((text, ""));
        let name = name.trim();
        let kind = toolset::find_tool_kind(name)?;
        // A tool of a toolset is parsed as its kind.
        let as_kind = match &kind {
            Some(kind) if kind != name && text.contains('(') => format!("{kind}({target}"),
            Some(kind) if kind != name => kind.clone(),
            Some(_) | None => text.to_owned(),
        };
        let is_unknown = kind.is_none() && !name.contains(['@', '*']) && !name.starts_with(SERVER_PREFIX);
        let facts = CallFacts::parse(&as_kind, environment).await.map_err(|error| {
            let problem = if is_unknown {
                format!("unknown tool `{name}`")
            } else {
                "cannot parse the call".to_owned()
            };
            Failure::usage(problem).caused_by(&error)
        })?;
        let target = target.strip_suffix(')').unwrap_or(target).trim();
        let prefixes = ["command:", "path:", "host:"];
        let target = prefixes.iter().find_map(|prefix| target.strip_prefix(prefix)).unwrap_or(target).trim();
        let mut call = Self {
            // A name that begins with `@` is an effect, and no rule names a tool of this name.
            name: if name.starts_with('@') { ID.to_owned() } else { name.to_owned() },
            kind: kind.unwrap_or_else(|| name.to_owned()),
            effect: facts.effect,
            arguments: json!({}),
            reads: Vec::new(),
            writes: Vec::new(),
            hosts: None,
        };
        if facts.command.is_some() {
            call.arguments = json!({ "command": target });
        } else if !facts.addresses.is_empty() {
            let is_readable = !facts.addresses.contains(&Address::Unreadable);
            call.hosts = is_readable.then(|| vec![target.to_owned()]);
        } else if !target.is_empty() {
            call.declare_paths(target, environment).await?;
        }
        Ok(call)
    }

    /// Declares the paths that a tool of this kind would read and write, given this path or pattern.
    async fn declare_paths(
        &mut self,
        target: &str,
        environment: &dyn ExecutionEnvironment,
    ) -> Result<(), Failure> {
        // `read_many_files` is of the kind `read_file`, and takes other arguments.
        let tool = ToolKind::from_name(&self.name).or_else(|| ToolKind::from_name(&self.kind));
        let known = tool.and_then(|tool| Some((tool.as_str(), arguments(tool, target)?)));
        if let Some((tool, arguments)) = known
            && let Some(registry) = toolset::find_registry(tool)?
        {
            let call = ToolCall::from_raw(ID, tool, arguments.to_string());
            if let JudgedCall::Ready { call, .. } = prepare(&registry, &[], environment, &call).await {
                self.reads = call.reads().to_vec();
                self.writes = call.writes().to_vec();
                return Ok(());
            }
        }
        let paths = if self.effect == Effect::Write { &mut self.writes } else { &mut self.reads };
        paths.push(PathBuf::from(target));
        Ok(())
    }

    /// Passes the call to the gates, as before a run of the call.
    pub(super) async fn judged_by(
        self,
        gates: &[Arc<dyn Gate>],
        environment: &dyn ExecutionEnvironment,
    ) -> Result<JudgedCall, Failure> {
        let call = ToolCall::from_raw(ID, self.name.clone(), self.arguments.to_string());
        let mut registry = ToolRegistry::new();
        registry.register(self).or_usage("cannot parse the call")?;
        Ok(prepare(&registry, gates, environment, &call).await)
    }
}

/// Returns arguments with which the tool of a kind names a path or a pattern of paths; `None` if it takes none.
fn arguments(kind: ToolKind, target: &str) -> Option<Value> {
    Some(match kind {
        ToolKind::ReadFile => json!({ "file_path": target }),
        ToolKind::ReadManyFiles => json!({ "paths": [target] }),
        ToolKind::WriteFile => json!({ "file_path": target, "content": "" }),
        ToolKind::EditFile => json!({ "file_path": target, "old_string": "a", "new_string": "b" }),
        ToolKind::ApplyPatch => {
            json!({ "patch": format!("*** Begin Patch\n*** Add File: {target}\n+a\n*** End Patch\n") })
        }
        ToolKind::Grep => json!({ "pattern": "a", "path": target }),
        ToolKind::Glob => json!({ "pattern": target }),
        ToolKind::ListDir => json!({ "path": target }),
        ToolKind::Shell | ToolKind::SpawnAgent => return None,
    })
}

#[async_trait]
impl DynTool for DescribedCall {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        ToolDefinition::new(self.name.clone(), "A described call.", json!({ "type": "object" }))
            .map_err(|error| DefinitionError::refused(self.name.clone(), error))
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn canonical_kind(&self) -> Option<String> {
        Some(self.kind.clone())
    }

    fn parse(&self, arguments: &Value) -> Result<ToolInput, ToolError> {
        let input = ToolInput::new(arguments.clone()).with_hosts(self.hosts.clone());
        Ok(input.with_reads(self.reads.clone()).with_writes(self.writes.clone()))
    }

    async fn call_json(&self, _arguments: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new(ToolErrorKind::Failed, "a described call does not run"))
    }
}
