//! `Bash`: a command line, run to its end.

use std::time::Duration;

use pintle_env::ExecRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::native::command::{notes, run};
use crate::native::number::milliseconds;
use crate::tool::{Effect, Tool, ToolKind, ToolOutput};

/// How long a command may run where the call does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long it may run at most, besides what the session allows.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs a command in the system's shell.
///
/// The result is what it wrote to both streams, in order of arrival; that of one that fails is an error and begins
/// with `Exit code N`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bash(());

/// The arguments of `Bash`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BashInput {
    /// The command line.
    pub command: String,
    /// How long it may run, in milliseconds: 120000 if not given, 600000 at most.
    pub timeout: Option<f64>,
    /// What the command does, in a few words, for people who follow along.
    pub description: Option<String>,
}

impl Bash {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for Bash {
    type Input = BashInput;

    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        include_str!("bash.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn kind(&self) -> &str {
        ToolKind::Shell.as_str()
    }

    async fn call(&self, input: BashInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = input.timeout.map_or(DEFAULT_TIMEOUT, milliseconds);
        let limit = limit.min(MAX_TIMEOUT).min(cx.timeouts.max);
        let result = run(ExecRequest::new(input.command).with_timeout(limit), cx).await?;
        let mut preface = String::new();
        if !result.success() {
            preface.push_str(&format!("Exit code {}\n", result.exit_code));
        }
        for note in notes(&result, limit, " Set timeout to give it longer.") {
            preface.push_str(&note);
            preface.push('\n');
        }
        let success = result.success();
        let text = if preface.is_empty() && result.output.is_empty() {
            "(Bash completed with no output)".into()
        } else {
            result.output
        };
        Ok(ToolOutput::new(text).with_preface(preface).with_error(!success))
    }
}
