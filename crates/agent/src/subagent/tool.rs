//! The tools for subagents, under the names of each toolset.

mod claude;
mod codex;
mod gemini;
mod spec;

use std::sync::Arc;

use pintle_tools::{ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolRegistry};

use super::report::Report;
use super::roster::{Agent, Roster};
use crate::profile::{Kit, Toolset};

/// The forms that the tools for subagents have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubagentTools {
    /// `spawn_agent`, `send_input`, `wait` and `close_agent`, as the loop specification has them.
    Spec,
    /// The same four with the parameters and results of codex.
    Codex,
    /// `Task` of Claude Code.
    ClaudeCode,
    /// `invoke_agent` of gemini-cli.
    GeminiCli,
}

/// What a call asks for.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) task: String,
    /// Where it works: below the parent's working directory, which is the default.
    pub(super) working_dir: Option<String>,
    /// The parent's by default.
    pub(super) model: Option<String>,
    /// 0 is unlimited.
    pub(super) max_turns: u64,
    pub(super) role: Role,
}

impl Order {
    fn new(task: String) -> Self {
        Self { task, working_dir: None, model: None, max_turns: 0, role: Role::Worker }
    }
}

/// What a subagent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Whatever its parent may.
    Worker,
    /// Look, and change nothing.
    Explorer,
}

impl SubagentTools {
    /// Those of a toolset of the family with this name.
    pub(crate) fn of_family(family: &str, toolset: Toolset) -> Self {
        match (toolset, family) {
            (Toolset::Native, "openai") => Self::Codex,
            (Toolset::Native, "anthropic") => Self::ClaudeCode,
            (Toolset::Native, "gemini") => Self::GeminiCli,
            (Toolset::Native | Toolset::Spec, _) => Self::Spec,
        }
    }

    /// The toolset that they belong to.
    pub(super) fn toolset(self) -> Toolset {
        match self {
            Self::Spec => Toolset::Spec,
            Self::Codex | Self::ClaudeCode | Self::GeminiCli => Toolset::Native,
        }
    }

    /// Adds them to a registry.
    pub(super) fn register(self, registry: &mut ToolRegistry, roster: &Arc<Roster>) {
        // What the host registered under such a name is what it wants.
        self.tools(roster).add_missing(registry);
    }

    fn tools(self, roster: &Arc<Roster>) -> Kit {
        match self {
            Self::Spec => spec::tools(roster),
            Self::Codex => codex::tools(roster),
            Self::ClaudeCode => claude::tools(roster),
            Self::GeminiCli => gemini::tools(roster),
        }
    }
}

/// Spawns a subagent and waits for its result, in one call.
async fn run(roster: &Arc<Roster>, order: Order, cx: &ToolContext) -> Result<(Agent, Report), ToolError> {
    let agent = roster.spawn(&cx.call_id, order).await?;
    let report = rest(&agent, cx).await?;
    Ok((agent, report))
}

/// Waits until a subagent rests, or the call is cancelled.
async fn rest(agent: &Agent, cx: &ToolContext) -> Result<Report, ToolError> {
    tokio::select! {
        report = agent.rest() => Ok(report),
        () = cx.cancel.cancelled() => {
            Err(ToolError::new(ToolErrorKind::Cancelled, "the call was cancelled while the subagent worked"))
        }
    }
}

/// What one call that spawns and waits gives: the text alone, or why there is no better one.
fn text_of(report: &Report) -> ToolOutput {
    match &report.reason {
        None => ToolOutput::new(report.text().to_owned()),
        Some(reason) => {
            let text =
                format!("The subagent did not finish: {reason}. What it said last:\n{}", report.text());
            ToolOutput::new(text).with_error(true)
        }
    }
}

/// A message with something in it.
fn message(text: String) -> Result<String, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::new(
            ToolErrorKind::InvalidArguments,
            "the message is empty; expected some text",
        ));
    }
    Ok(text)
}
