//! Tools for subagents, in the form of each toolset.

mod claude;
mod codex;
pub(super) mod delegate;
mod gemini;
mod spec;

use std::sync::Arc;

use pintle_tools::{ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolRegistry};

use super::SubagentHandle;
use super::report::Report;
use super::request::SpawnRequest;
use super::roster::Roster;
use crate::error::SessionError;
use crate::profile::{BuiltInTools, SubagentTools};

/// Adds the tools of this form to a registry. Tools of the same names that are already registered are kept.
pub(super) fn register(form: SubagentTools, registry: &mut ToolRegistry, roster: &Arc<Roster>) {
    tools(form, roster).add_missing(registry);
}

fn tools(form: SubagentTools, roster: &Arc<Roster>) -> BuiltInTools {
    match form {
        SubagentTools::Spec => spec::tools(roster),
        SubagentTools::Codex => codex::tools(roster),
        SubagentTools::ClaudeCode => claude::tools(roster),
        SubagentTools::GeminiCli => gemini::tools(roster),
    }
}

/// Spawns a subagent and waits for its result.
async fn spawn_and_wait(
    roster: &Arc<Roster>,
    request: SpawnRequest,
    cx: &ToolContext,
) -> Result<(SubagentHandle, Report), ToolError> {
    let agent = roster.spawn(&cx.call_id, request).await?;
    let report = wait_until_idle(&agent, cx).await?;
    Ok((agent, report))
}

/// Waits until a subagent is idle or the call is cancelled.
async fn wait_until_idle(agent: &SubagentHandle, cx: &ToolContext) -> Result<Report, ToolError> {
    tokio::select! {
        report = agent.wait_until_idle() => Ok(report),
        () = cx.cancel.cancelled() => {
            Err(ToolError::new(ToolErrorKind::Cancelled, "the call was cancelled while the subagent worked"))
        }
    }
}

/// Sends a message that is not blank; with `interrupt`, the current run is interrupted first.
fn send(agent: &SubagentHandle, message: String, interrupt: bool) -> Result<(), ToolError> {
    if message.trim().is_empty() {
        return Err(ToolError::invalid_arguments("the message is empty; expected some text"));
    }
    agent.post(message, interrupt).map_err(|error| {
        let text = if let SessionError::Full(waiting) = error {
            format!("{waiting} messages wait for {} already", agent.id())
        } else {
            format!("{} is closed", agent.id())
        };
        ToolError::failed(text)
    })
}

/// Formats the output of a call that spawns and waits: the text of a success with its warning, or the reason of a failure
/// with the last text.
fn output_of(report: &Report) -> ToolOutput {
    match &report.reason {
        None => ToolOutput::new(report.text_with_warning()),
        Some(reason) => {
            let text =
                format!("The subagent did not finish: {reason}. What it said last:\n{}", report.text());
            ToolOutput::new(text).with_error(true)
        }
    }
}
