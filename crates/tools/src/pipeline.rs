//! The path of a call from the model's request to its result (loop specification, section 3.8; design, section 7).
//!
//! [`prepare`] looks up, validates and gates a call; [`execute`] runs it and truncates the output. A session calls the
//! two steps itself, so that one call can run while another waits for approval. [`run`] combines both.

mod dry_run;
mod run;

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, Output, OutputCollector, OutputLimits};
use pintle_llm::{ToolCall, ToolResult};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub use self::dry_run::{DryRun, dry_run};
pub use self::run::{RunOptions, run};
use crate::call::tool_error;
pub use crate::call::{Execution, PreparedCall};
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::gate;
pub use crate::gate::{Gate, Verdict};
use crate::gate::{Judgement, Permission};
use crate::kind::ToolKind;
use crate::registry::ToolRegistry;
use crate::schema;
use crate::tool::ToolOutput;
use crate::truncate::{self, TruncationLimits, TruncationRule};

/// A call that the gates have judged: the outcome of [`prepare`].
#[derive(Debug)]
pub enum JudgedCall {
    /// The call may run.
    Ready {
        /// The call.
        call: PreparedCall,
        /// The judgement of the gates.
        judgement: Judgement,
    },
    /// The call may run if a user approves it.
    Ask {
        /// The call.
        call: PreparedCall,
        /// The judgement of the gates, with the reason why approval is needed.
        judgement: Judgement,
    },
    /// The call must not run.
    Refused {
        /// Its result.
        error: ToolError,
        /// The judgement of the gates; empty if they did not judge the call.
        judgement: Judgement,
    },
}

/// Looks up the tool, validates the arguments by the schema and by the tool itself, and has the gates judge the call.
/// Its paths are [held](PreparedCall::hold) from then on.
pub async fn prepare(
    registry: &ToolRegistry,
    gates: &[Arc<dyn Gate>],
    env: &dyn ExecutionEnvironment,
    call: &ToolCall,
) -> JudgedCall {
    let prepared = match PreparedCall::new(registry, env, call) {
        Ok(prepared) => prepared,
        Err(error) => return JudgedCall::Refused { error, judgement: Judgement::new() },
    };
    let name = prepared.name().to_owned();
    let prepared = match prepared.hold(env).await {
        Ok(prepared) => prepared,
        Err(error) => {
            let error = tool_error(&name, error.into());
            return JudgedCall::Refused { error, judgement: Judgement::new() };
        }
    };
    let judgement = gate::judge(gates, &prepared).await;
    match judgement.permission() {
        Permission::Allow | Permission::Ask => {
            JudgedCall::from_judgement(prepared.with_resolved_targets(env).await, judgement)
        }
        Permission::Deny => JudgedCall::from_judgement(prepared, judgement),
    }
}

impl JudgedCall {
    /// Returns the outcome for the judgement of a call.
    #[must_use]
    pub fn from_judgement(call: PreparedCall, judgement: Judgement) -> Self {
        match judgement.permission() {
            Permission::Allow => Self::Ready { call, judgement },
            Permission::Ask => Self::Ask { call, judgement },
            Permission::Deny => {
                let error = gate::denied(call.name(), &judgement.reason());
                Self::Refused { error, judgement }
            }
        }
    }

    /// Returns the call, unless it was refused.
    #[must_use]
    pub fn call(&self) -> Option<&PreparedCall> {
        match self {
            Self::Ready { call, .. } | Self::Ask { call, .. } => Some(call),
            Self::Refused { .. } => None,
        }
    }
}

/// Runs a prepared call and truncates its output for the model. Dropping the future stops the call.
///
/// For a call with [held](PreparedCall::hold) paths, the context must use the environment that
/// [`judged_in`](PreparedCall::judged_in) returns.
///
/// There is always a result. A failure is reported as `Tool error (NAME): …`, and an empty output as `(no output)`. A
/// panic of the tool is a failure of the call, and so is a call that takes one minute longer than the longest time-out
/// of a command, unless the tool [waits](crate::Tool::waits). A tool that blocks its thread cannot be stopped. An
/// output that is too large for memory goes to a spool file. Needs a tokio runtime with time and blocking threads.
pub async fn execute(call: &PreparedCall, cx: &ToolContext, limits: &TruncationLimits) -> Execution {
    let (mut output, error) = match run_tool(call, cx).await {
        Ok(output) => {
            let failed = output.is_error.then_some(ToolErrorKind::Failed);
            let error = output.timed_out.map(|_limit| ToolErrorKind::TimedOut).or(failed);
            (output, error)
        }
        Err(error) => {
            let error = tool_error(call.name(), error);
            (ToolOutput::new(error.for_model()).with_error(true), Some(error.kind()))
        }
    };
    output.text = spooled(output.text, cx.env.output_limits()).await;
    let text = text_for_model(&output, call, limits, cx.env.output_limits()).await;
    let mut result = ToolResult::new(call.call_id(), text, output.is_error);
    result.images = output.images;
    let ToolOutput { text, timed_out, exit_code, changes, question, .. } = output;
    Execution { result, output: text, error, timed_out, exit_code, changes, question, stop: None }
}

/// Runs the tool within its time limit.
async fn run_tool(call: &PreparedCall, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    /// Additional time for the work of a tool besides its commands.
    const MARGIN: Duration = Duration::from_secs(60);
    let running = catch_panic(async { call.tool().call_parsed(call.take_input()?, cx).await });
    if call.tool().waits() {
        return running.await;
    }
    let limit = cx.timeouts.max.saturating_add(MARGIN);
    timeout(limit, running).await.unwrap_or_else(|_elapsed| {
        tracing::error!(tool = call.name(), seconds = limit.as_secs(), "a tool hangs");
        let message = format!("no answer within {} s, so the call was stopped", limit.as_secs());
        Err(ToolError::new(ToolErrorKind::TimedOut, message))
    })
}

/// Converts a panic of the tool to a failure of its call.
async fn catch_panic(
    call: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> Result<ToolOutput, ToolError> {
    let mut call = pin!(call);
    // Unwind safe: the state of a call is not observed after its panic.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(payload) => Poll::Ready(Err(panicked(payload.as_ref()))),
    })
    .await
}

fn panicked(payload: &(dyn Any + Send)) -> ToolError {
    const MAX_MESSAGE: usize = 500;
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let text = schema::shortened(text.to_owned(), MAX_MESSAGE);
    tracing::error!(message = text, "a tool panicked");
    ToolError::failed(format!("the tool itself is broken: it panicked ({text})"))
}

/// Moves an output that is too large for memory to a spool file. It stays in memory if the disk is full.
async fn spooled(output: Output, limits: OutputLimits) -> Output {
    /// Size of one write, in bytes.
    const BLOCK: usize = 1 << 20;
    if output.is_spooled() || output.len() <= limits.inline as u64 {
        return output;
    }
    let held = output.clone();
    let copied = spawn_blocking(move || {
        let mut copy = OutputCollector::new(limits);
        let mut offset = 0;
        while offset < held.len() {
            let block = held.read_at(offset, BLOCK).ok()?;
            offset += block.len() as u64;
            copy.push(&block);
        }
        let copy = copy.finish();
        (copy.dropped() == 0).then_some(copy)
    });
    copied.await.ok().flatten().unwrap_or(output)
}

/// Returns the text that the model reads: the preface, and the truncated text. Output of commands is plain text.
async fn text_for_model(
    output: &ToolOutput,
    call: &PreparedCall,
    limits: &TruncationLimits,
    spool_limits: OutputLimits,
) -> String {
    const MAX_PREFACE: usize = 2_000;
    if output.preface.is_empty() && output.text.is_empty() && output.images.is_empty() {
        return "(no output)".into();
    }
    let mut rule = limits.rule(call.name(), call.kind(), call.registered().truncation());
    rule.chars = rule.chars.min(output.max_chars.unwrap_or(usize::MAX));
    let mut text = output.shortened.as_ref().unwrap_or(&output.text).clone();
    if call.kind() == ToolKind::Shell.as_str() {
        text = plain_text(text, spool_limits).await;
    }
    let text = truncated(&text, rule).await;
    format!("{}{text}", schema::shortened(output.preface.clone(), MAX_PREFACE))
}

/// Removes the escape sequences of an output and folds its progress frames, as [`Output::plain_text`]. A spooled output
/// is copied on a blocking thread. An output that cannot be read is returned unchanged.
///
/// Cancel safe: a copy that was started is discarded.
pub async fn plain_text(output: Output, limits: OutputLimits) -> Output {
    let held = output.clone();
    let convert = move || held.plain_text(limits).ok().flatten();
    let plain = if output.is_spooled() { spawn_blocking(convert).await.ok().flatten() } else { convert() };
    plain.unwrap_or(output)
}

/// Truncates an output. A spooled output is read from disk on a blocking thread.
async fn truncated(output: &Output, rule: TruncationRule) -> String {
    if !output.is_spooled() {
        return truncate::truncate_to(output, rule);
    }
    let output = output.clone();
    match spawn_blocking(move || truncate::truncate_to(&output, rule)).await {
        Ok(text) => text,
        Err(error) => format!("[ERROR: The output cannot be read back: {error}]"),
    }
}

#[cfg(test)]
mod tests;
