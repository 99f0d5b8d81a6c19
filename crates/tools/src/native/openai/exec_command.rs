//! `exec_command`: runs a command, and moves it to the background after some time.

use std::time::{Duration, Instant};

use pintle_env::{Command, Stdin};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{
    BackgroundOutput, BackgroundState, NOT_STARTED, missing_apply_patch, stopped_by_limits,
};
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::kind::ToolKind;
use crate::native::number::{count, milliseconds};
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};
use crate::truncate::{TruncationMarker, TruncationMode, TruncationRule};

/// The default time to wait for the command.
const DEFAULT_WAIT: Duration = Duration::from_secs(10);

/// Minimum time to wait for the command.
const MIN_WAIT: Duration = Duration::from_millis(250);

/// Minimum time-out for starting a command.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Maximum output that the model reads, in tokens of four bytes.
const MAX_TOKENS: usize = 10_000;

stateless_tool! {
    /// Starts a command as one of the session's [background commands](crate::builtin::BackgroundCommands) and waits for
    /// it.
    ///
    /// The call returns when the command has exited or the wait time is over. In the latter case the command keeps
    /// running, at most until the session ends, and [`WriteStdin`](super::WriteStdin) reads its new output. A non-zero
    /// exit code is a result, not a failure of the call.
    pub struct ExecCommand;
}

/// The arguments of `exec_command`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ExecCommandInput {
    /// The command line.
    #[schemars(description = "")]
    pub cmd: String,
    /// Default: the working directory.
    pub workdir: Option<String>,
    /// Keeps the input open for `write_stdin`. Default: false.
    pub tty: Option<bool>,
    /// Milliseconds to wait for output. Default: 10000.
    pub yield_time_ms: Option<f64>,
    /// Default and maximum: 10000.
    pub max_output_tokens: Option<f64>,
}

impl Tool for ExecCommand {
    type Input = ExecCommandInput;

    tool_properties! {
        name: "exec_command",
        description: include_str!("../../../prompts/openai/exec_command.md"),
        effect: Effect::Execute,
        kind: ToolKind::Shell.as_str(),
        truncation: TRUNCATION,
    }

    async fn call(&self, input: ExecCommandInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let wait = input.yield_time_ms.map_or(DEFAULT_WAIT, milliseconds);
        // Programs such as `rg` would wait for input from a pipe.
        let stdin = if input.tty.unwrap_or(false) { Stdin::Piped } else { Stdin::Null };
        let mut command = Command::shell(&input.cmd).with_stdin(stdin);
        if let Some(directory) = input.workdir.as_deref().filter(|directory| !directory.is_empty()) {
            command = command.with_working_dir(directory);
        }
        let id = start(&input.cmd, command, wait, cx).await?;
        let output = output_of(id, wait, cx).await?;
        Ok(result_of(output, started.elapsed(), input.max_output_tokens, cx))
    }
}

/// The truncation of codex: ten thousand tokens, half from each end.
pub(super) const TRUNCATION: TruncationRule =
    TruncationRule::new(4 * MAX_TOKENS, TruncationMode::HeadTail).with_marker(TruncationMarker::Tokens);

/// Starts a command. A remote environment limits concurrent commands; the start waits as long as the call may take.
async fn start(
    command_line: &str,
    command: Command,
    wait: Duration,
    cx: &ToolContext,
) -> Result<u64, ToolError> {
    let starting = cx.background.start_command(cx.env.as_ref(), command_line, command);
    let starting = async {
        tokio::time::timeout(wait.max(START_LIMIT), starting).await.unwrap_or_else(|_elapsed| {
            let message = "the command was not started: too many commands run already; end one of them, or wait \
                for its end";
            Err(ToolError::failed(message))
        })
    };
    cx.until_cancelled(NOT_STARTED, starting).await
}

/// Waits until the command exits or the time is over, streams the output, and returns it.
pub(super) async fn output_of(
    id: u64,
    wait: Duration,
    cx: &ToolContext,
) -> Result<BackgroundOutput, ToolError> {
    let wait = wait.clamp(MIN_WAIT, cx.timeouts.max.max(MIN_WAIT));
    unless_cancelled(id, cx, cx.background.follow(id, wait, cx.on_output.clone())).await
}

/// Awaits `work` on a command. Cancelling the call terminates the command.
pub(super) async fn unless_cancelled<T>(
    id: u64,
    cx: &ToolContext,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            cx.background.stop(id).await?;
            let message = "the command was stopped, with all that it had started";
            Err(ToolError::new(ToolErrorKind::Cancelled, message))
        }
        done = work => done,
    }
}

/// Formats the output and state of a command like codex.
pub(super) fn result_of(
    output: BackgroundOutput,
    waited: Duration,
    max_tokens: Option<f64>,
    cx: &ToolContext,
) -> ToolOutput {
    let state = match &output.status.state {
        BackgroundState::Running => format!("Process running with session ID {}", output.status.id),
        BackgroundState::Exited(code) => format!("Process exited with code {code}"),
        BackgroundState::Stopped => "Process was stopped".to_owned(),
        BackgroundState::Lost(reason) => format!("Process was lost: {reason}"),
    };
    let mut preface = format!("Chunk ID: {}\nWall time: {:.4} seconds\n", chunk_id(cx), waited.as_secs_f64());
    preface.push_str(&format!("{state}\nOriginal token count: {}\n", output.text.len().div_ceil(4)));
    if output.dropped > 0 {
        preface.push_str(&format!("Older output that was not kept: {} bytes\n", output.dropped));
    }
    let exit_code = output.status.state.exit_code();
    if let Some(code) = exit_code {
        let hint = missing_apply_patch(code, &output.text);
        let held = if code == 0 { None } else { stopped_by_limits(&output.text, cx) };
        preface.extend(hint.map(|hint| format!("Note: {hint}\n")));
        preface.extend(held.map(|held| format!("Note: {held}\n")));
    }
    preface.push_str("Output:\n");
    let failed = matches!(output.status.state, BackgroundState::Stopped | BackgroundState::Lost(_));
    ToolOutput::new(output.text)
        .with_preface(preface)
        .with_max_chars(max_tokens.map(|tokens| count(tokens).max(1).saturating_mul(4)))
        .with_error(failed)
        .with_exit_code(exit_code)
}

/// Returns six hexadecimal digits derived from the id of the call, so that a replay returns the same text.
fn chunk_id(cx: &ToolContext) -> String {
    let hash = cx.call_id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:06x}", (hash >> 40) & 0xff_ffff)
}
