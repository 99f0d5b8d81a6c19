//! What a tool is: typed for those who write one, erased for those who call one.

mod kind;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::Output;
use pintle_llm::{Grammar, ImageData, ToolDefinition};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::kind::ToolKind;
use crate::context::ToolContext;
use crate::error::{DefinitionError, ToolError, ToolErrorKind};
use crate::schema;
use crate::truncate::TruncationRule;

/// What a call does to the world. Parallelism, approval and recovery after a crash follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks only.
    Read,
    /// Changes files, and the call says which ones.
    Write,
    /// Runs a program, which may do anything.
    Execute,
    /// Reaches other machines.
    Network,
}

/// A tool with a typed input. Implement this one; the registry stores its erased twin [`DynTool`].
///
/// A call must stop when its future is dropped, and may watch [`ToolContext::cancel`] to stop in order. Everything
/// that it does to files and processes goes through [`ToolContext::env`], so that it works wherever tools run.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Document each field: the text becomes the parameter's description.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// The name that the model calls.
    fn name(&self) -> &str;

    /// What the model is told of it.
    fn description(&self) -> &str;

    /// What a call does to the world.
    fn effect(&self) -> Effect;

    /// Whether the same call may be made twice without harm. By default, what only reads may.
    fn repeatable(&self) -> bool {
        self.effect() == Effect::Read
    }

    /// The canonical name that output limits are keyed by, if it is not [`Tool::name`]: a tool that runs shell
    /// commands under another name says [`ToolKind::Shell`].
    fn kind(&self) -> &str {
        self.name()
    }

    /// How much of its output the model reads, where the host sets nothing else, and how it is told of the rest. By
    /// default as for others of its kind.
    fn truncation(&self) -> TruncationRule {
        TruncationRule::of_kind(self.kind())
    }

    /// Other names of parameters that models use, each with the parameter that is meant. A call that uses one is
    /// repaired; the usual ones (`path` for `file_path`, `cmd` for `command`) are known without being named here.
    fn aliases(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Whether a call may take as long as it likes, because it waits for a person or for another agent. Any other is
    /// stopped a minute after the longest command would have been.
    fn waits(&self) -> bool {
        false
    }

    /// The grammar of a free-text input. The input type then has exactly one required text field, which gets it.
    fn grammar(&self) -> Option<Grammar> {
        None
    }

    /// What is wrong with arguments that fit the schema, as far as they tell by themselves: a text that has no meaning
    /// to the tool, say. The call is then refused before any gate judges it, and nobody is asked about it. By default
    /// nothing is.
    ///
    /// # Errors
    ///
    /// What the model should read to do better.
    fn check(&self, input: &Self::Input) -> Result<(), ToolError> {
        let _ = input;
        Ok(())
    }

    /// The files that this call may change. Calls of one round that share one keep their order.
    fn writes(&self, input: &Self::Input) -> Vec<PathBuf> {
        let _ = input;
        Vec::new()
    }

    /// The files and directories that this call looks at, as it names them, for gates to judge.
    fn reads(&self, input: &Self::Input) -> Vec<PathBuf> {
        let _ = input;
        Vec::new()
    }

    /// Whether the call may be made against an environment that keeps nothing, to show a person beforehand what it
    /// would change. Say yes only if all that it does goes through [`ToolContext::env`].
    fn rehearsable(&self) -> bool {
        false
    }

    /// Makes the call.
    ///
    /// # Errors
    ///
    /// What the model should read to do better; only [`ToolErrorKind::EnvironmentLost`] ends the session's turn.
    fn call(
        &self,
        input: Self::Input,
        cx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The object-safe twin of [`Tool`], for tools whose schema is known at run time only (from a host, from MCP).
#[async_trait]
pub trait DynTool: Send + Sync + 'static {
    /// Name, description and schema. Asked for once, at registration.
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

    /// As [`Tool::kind`]; `None` if it is the name.
    fn canonical_kind(&self) -> Option<String> {
        None
    }

    /// As [`Tool::truncation`]; `None` if it is that of its kind.
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

    /// As [`Tool::check`], for arguments that fit the schema.
    ///
    /// # Errors
    ///
    /// What the model should read to do better.
    fn check_json(&self, arguments: &Value) -> Result<(), ToolError> {
        let _ = arguments;
        Ok(())
    }

    /// As [`Tool::writes`], from arguments that fit the schema.
    fn written_paths(&self, arguments: &Value) -> Vec<PathBuf> {
        let _ = arguments;
        Vec::new()
    }

    /// As [`Tool::reads`], from arguments that fit the schema.
    fn read_paths(&self, arguments: &Value) -> Vec<PathBuf> {
        let _ = arguments;
        Vec::new()
    }

    /// As [`Tool::rehearsable`].
    fn is_rehearsable(&self) -> bool {
        false
    }

    /// As [`Tool::call`], with arguments that fit the schema.
    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError>;
}

const _: fn(&dyn DynTool) = |_| {};

#[async_trait]
impl<T: Tool> DynTool for T {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let parameters = schema::parameters_of::<T::Input>();
        let definition = ToolDefinition::new(self.name(), self.description(), parameters)
            .map_err(|source| DefinitionError::refused(self.name(), source))?;
        Ok(match self.grammar() {
            Some(grammar) => definition.with_grammar(grammar),
            None => definition,
        })
    }

    fn effect(&self) -> Effect {
        Tool::effect(self)
    }

    fn is_repeatable(&self) -> bool {
        self.repeatable()
    }

    fn canonical_kind(&self) -> Option<String> {
        Some(self.kind().to_owned())
    }

    fn truncation(&self) -> Option<TruncationRule> {
        Some(Tool::truncation(self))
    }

    fn aliases(&self) -> Vec<(String, String)> {
        owned_aliases(Tool::aliases(self))
    }

    fn waits(&self) -> bool {
        Tool::waits(self)
    }

    fn check_json(&self, arguments: &Value) -> Result<(), ToolError> {
        // What does not become an input is told by the call.
        T::Input::deserialize(arguments).map_or(Ok(()), |input| self.check(&input))
    }

    fn written_paths(&self, arguments: &Value) -> Vec<PathBuf> {
        T::Input::deserialize(arguments).map(|input| self.writes(&input)).unwrap_or_default()
    }

    fn read_paths(&self, arguments: &Value) -> Vec<PathBuf> {
        T::Input::deserialize(arguments).map(|input| self.reads(&input)).unwrap_or_default()
    }

    fn is_rehearsable(&self) -> bool {
        self.rehearsable()
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let input = serde_json::from_value(arguments).map_err(|source| {
            ToolError::new(ToolErrorKind::InvalidArguments, format!("the arguments do not fit: {source}"))
                .with_source(source)
        })?;
        self.call(input, cx).await
    }
}

/// As those who call a tool have them.
pub(crate) fn owned_aliases(aliases: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
    aliases.iter().map(|(alias, parameter)| ((*alias).to_owned(), (*parameter).to_owned())).collect()
}

/// What a call gave: the whole of it, before anything is cut for the model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The text, whole.
    pub text: Output,
    /// What the model reads before the text, such as an exit code: a few lines, which the limits on the text leave
    /// alone. Not part of what the host gets. More than 2,000 characters are cut.
    pub preface: String,
    /// The most characters of the text that this call asked for, if it asked; the limits hold besides.
    pub max_chars: Option<usize>,
    /// Images for the model.
    pub images: Vec<ImageData>,
    /// Whether the model should take it as a failure, such as a command that exits with one.
    pub is_error: bool,
    /// The limit of time that a command ran over, if it did. For the host that is a failure; what the model is told of
    /// it is the tool's choice.
    pub timed_out: Option<Duration>,
    /// The files that changed, for people and hosts.
    pub changes: Vec<FileChange>,
    /// A question to the user: the session rests after this round, and what is submitted next is the answer.
    pub question: Option<String>,
}

impl ToolOutput {
    /// A success with this text.
    #[must_use]
    pub fn new(text: impl Into<Output>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// With lines that the model reads before the text.
    #[must_use]
    pub fn with_preface(mut self, preface: impl Into<String>) -> Self {
        self.preface = preface.into();
        self
    }

    /// With the most characters that the call asked for.
    #[must_use]
    pub fn with_max_chars(mut self, max_chars: Option<usize>) -> Self {
        self.max_chars = max_chars;
        self
    }

    /// With an image.
    #[must_use]
    pub fn with_image(mut self, image: ImageData) -> Self {
        self.images.push(image);
        self
    }

    /// As a failure or a success.
    #[must_use]
    pub fn with_error(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }

    /// With the limit of time that a command ran over, if it did.
    #[must_use]
    pub fn with_timed_out(mut self, limit: Option<Duration>) -> Self {
        self.timed_out = limit;
        self
    }

    /// With a question to the user, which gives the turn back to them.
    #[must_use]
    pub fn with_question(mut self, question: impl Into<String>) -> Self {
        self.question = Some(question.into());
        self
    }

    /// With a file that changed.
    #[must_use]
    pub fn with_change(mut self, change: FileChange) -> Self {
        self.changes.push(change);
        self
    }
}

/// One file that a call changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileChange {
    /// The file, as the call named it.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// A unified diff; empty where there is no text to show.
    pub diff: String,
}

impl FileChange {
    /// A change with its diff.
    #[must_use]
    pub fn new(path: impl Into<String>, kind: ChangeKind, diff: impl Into<String>) -> Self {
        Self { path: path.into(), kind, diff: diff.into() }
    }
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content changed.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name, and perhaps other content.
    Renamed {
        /// The name before.
        from: String,
    },
}
