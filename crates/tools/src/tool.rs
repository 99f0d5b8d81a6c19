//! The traits of a tool: [`Tool`] for implementing one, [`DynTool`] for calling one.

mod closure;
mod extent;
mod input;
mod output;
mod properties;

use std::future::Future;
use std::path::PathBuf;

use async_trait::async_trait;
use pintle_llm::{Grammar, ToolDefinition};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::closure::{FnTool, tool_fn};
pub use self::extent::ReadExtent;
pub use self::input::ToolInput;
pub use self::output::{ChangeKind, FileChange, IntoToolOutput, ToolOutput};
pub(crate) use self::properties::Properties;
use crate::context::ToolContext;
use crate::error::{DefinitionError, ToolError};
use crate::schema;
use crate::truncate::TruncationRule;

/// The side effect of a call. Parallelism, approval and recovery after a crash depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call only reads.
    Read,
    /// The call changes files, and names them beforehand.
    Write,
    /// The call runs a program, which may do anything.
    Execute,
    /// The call reaches other machines.
    Network,
}

/// A tool with a typed input. Implement this trait; the registry stores its type-erased twin [`DynTool`].
///
/// [`tool_fn`] creates a tool from a closure.
///
/// Dropping the future of a call must stop the call. A tool may also watch [`ToolContext::cancel`] to stop in an
/// orderly way. All access to files and processes must go through [`ToolContext::env`], so that the tool works in every
/// execution environment.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. The doc comment of each field becomes the description of its parameter.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// Returns the name that the model calls.
    fn name(&self) -> &str;

    /// Returns the description for the model.
    fn description(&self) -> &str;

    /// Returns the side effect of a call.
    fn effect(&self) -> Effect;

    /// Returns whether repeating a call does no harm. By default, only calls that read are repeatable.
    fn repeatable(&self) -> bool {
        self.effect() == Effect::Read
    }

    /// Returns whether each call [declares](ToolContext::declare) its changes of files before the first one. If its
    /// process crashes, the files then show whether the call is done, can run again, or is in conflict with a change by
    /// another process. A call without a declaration has had no effect, and runs again. Default: false, and a call that
    /// is not [repeatable](Tool::repeatable) is answered as interrupted.
    fn declares_changes(&self) -> bool {
        false
    }

    /// Returns the canonical name that determines output limits, if it is not [`Tool::name`]. A tool that runs shell
    /// commands under another name returns [`ToolKind::Shell`](crate::ToolKind::Shell).
    fn kind(&self) -> &str {
        self.name()
    }

    /// Returns the default output limits and the format of the truncation marker. Limits of the session take
    /// precedence. By default these are the limits of the tool's kind.
    fn truncation(&self) -> TruncationRule {
        TruncationRule::of_kind(self.kind())
    }

    /// Returns other names that models use for parameters, each with the parameter that they mean.
    ///
    /// A call that uses such a name is repaired. Common names (`path` for `file_path`, `cmd` for `command`) need not be
    /// listed.
    fn aliases(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Returns whether a call may take unlimited time because it waits for a user or another agent. Any other call is
    /// stopped one minute after the longest time-out of a command.
    fn waits(&self) -> bool {
        false
    }

    /// Returns the grammar of a free-text input. The input type must then have exactly one required text field, which
    /// receives the text.
    fn grammar(&self) -> Option<Grammar> {
        None
    }

    /// Checks constraints that the schema cannot express, such as the syntax of a patch. A call that fails the check is
    /// refused before any gate judges it, so no user is asked to approve it.
    ///
    /// # Errors
    ///
    /// A message from which the model can correct the call.
    fn check(&self, input: &Self::Input) -> Result<(), ToolError> {
        let _ = input;
        Ok(())
    }

    /// Returns the files that this call may change. Calls of one round that share a file run in order.
    fn writes(&self, input: &Self::Input) -> Vec<PathBuf> {
        let _ = input;
        Vec::new()
    }

    /// Returns the files and directories that this call reads, for gates to judge.
    fn reads(&self, input: &Self::Input) -> Vec<PathBuf> {
        let _ = input;
        Vec::new()
    }

    /// Returns how much of the directories in [`reads`](Tool::reads) this call reads. Default: all files below them.
    fn read_extent(&self, input: &Self::Input) -> ReadExtent {
        let _ = input;
        ReadExtent::default()
    }

    /// Returns the hosts that this call reaches, for gates to judge; `None` if they are unknown. The parser of the
    /// client that reaches them must return these hosts, since another parser could return other ones.
    fn hosts(&self, input: &Self::Input) -> Option<Vec<String>> {
        let _ = input;
        None
    }

    /// Returns whether the call can be previewed with a [dry run](crate::pipeline::dry_run). Return `true` only if
    /// every effect of a call goes through [`ToolContext::env`].
    fn supports_dry_run(&self) -> bool {
        false
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// A message from which the model can correct the call; only
    /// [`EnvironmentLost`](crate::ToolErrorKind::EnvironmentLost) ends the session's turn.
    fn call(
        &self,
        input: Self::Input,
        cx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The object-safe twin of [`Tool`]. Implement it for a tool whose schema is known only at run time, such as an MCP
/// tool.
#[async_trait]
pub trait DynTool: Send + Sync + 'static {
    /// Returns name, description and schema. Called once, at registration.
    ///
    /// # Errors
    ///
    /// A name or schema that no provider would accept.
    fn definition(&self) -> Result<ToolDefinition, DefinitionError>;

    /// As [`Tool::effect`].
    fn effect(&self) -> Effect;

    /// As [`Tool::repeatable`].
    fn is_repeatable(&self) -> bool {
        self.effect() == Effect::Read
    }

    /// As [`Tool::declares_changes`].
    fn declares_changes(&self) -> bool {
        false
    }

    /// As [`Tool::kind`]; `None` if it equals the name.
    fn canonical_kind(&self) -> Option<String> {
        None
    }

    /// As [`Tool::truncation`]; `None` for the limits of the tool's kind.
    fn truncation(&self) -> Option<TruncationRule> {
        None
    }

    /// As [`Tool::aliases`].
    fn aliases(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// As [`Tool::waits`].
    fn waits(&self) -> bool {
        false
    }

    /// As [`Tool::supports_dry_run`].
    fn can_dry_run(&self) -> bool {
        false
    }

    /// Returns the call of another tool that this call represents, from arguments that fit the schema. That call is
    /// judged and runs instead. By default a call represents itself.
    fn represented_call(&self, arguments: &Value) -> Option<RepresentedCall> {
        let _ = arguments;
        None
    }

    /// Parses and checks arguments that fit the schema, and returns the files of the call. Called before any gate
    /// judges the call, and again for each dry run. By default the arguments stay JSON and the call has no files.
    ///
    /// # Errors
    ///
    /// A message from which the model can correct the call.
    fn parse(&self, arguments: &Value) -> Result<ToolInput, ToolError> {
        Ok(ToolInput::new(arguments.clone()))
    }

    /// Runs a call with the input that [`parse`](Self::parse) returned. By default the input is JSON and goes to
    /// [`call_json`](Self::call_json).
    async fn call_parsed(&self, input: ToolInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.call_json(input.into_value()?, cx).await
    }

    /// As [`Tool::call`], with JSON arguments that fit the schema.
    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError>;
}

const _: fn(&dyn DynTool) = |_| {};

/// Call that a call of another tool represents. A model makes such a call for a tool that is not in its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RepresentedCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl RepresentedCall {
    /// Creates a call of a tool with these arguments, which have not been validated by its schema.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self { name: name.into(), arguments }
    }
}

#[async_trait]
impl<T: Tool> DynTool for T {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        Properties::from_tool(self).definition(schema::parameters_of::<T::Input>())
    }

    fn effect(&self) -> Effect {
        Tool::effect(self)
    }

    fn is_repeatable(&self) -> bool {
        self.repeatable()
    }

    fn declares_changes(&self) -> bool {
        Tool::declares_changes(self)
    }

    fn canonical_kind(&self) -> Option<String> {
        Some(self.kind().to_owned())
    }

    fn truncation(&self) -> Option<TruncationRule> {
        Some(Tool::truncation(self))
    }

    fn aliases(&self) -> Vec<(String, String)> {
        Properties::from_tool(self).owned_aliases()
    }

    fn waits(&self) -> bool {
        Tool::waits(self)
    }

    fn can_dry_run(&self) -> bool {
        self.supports_dry_run()
    }

    fn parse(&self, arguments: &Value) -> Result<ToolInput, ToolError> {
        // The schema is coarser than the type, so this may still fail.
        let input = T::Input::deserialize(arguments).map_err(unfit)?;
        self.check(&input)?;
        let (reads, writes, hosts) = (self.reads(&input), self.writes(&input), self.hosts(&input));
        let extent = self.read_extent(&input);
        let input = ToolInput::new(input).with_reads(reads).with_writes(writes);
        Ok(input.with_read_extent(extent).with_hosts(hosts))
    }

    async fn call_parsed(&self, input: ToolInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.call(input.into_value()?, cx).await
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        parse_and_call(self, arguments, cx).await
    }
}

/// Parses the arguments and runs the call. Not generic, so that it is compiled once and not for each tool.
async fn parse_and_call(
    tool: &dyn DynTool,
    arguments: Value,
    cx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    tool.call_parsed(tool.parse(&arguments)?, cx).await
}

/// Returns the error of arguments that fit the schema but not the type.
fn unfit(source: serde_json::Error) -> ToolError {
    ToolError::invalid_arguments(format!("the arguments do not fit: {source}")).with_source(source)
}
