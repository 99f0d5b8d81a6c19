//! Runs the commands of a task, and collects their results and their output.

mod result_files;

use std::time::Duration;

use pintle_env::{EnvError, ExecRequest, ExecResult, Output};
use pintle_store::Blobs;
use tokio_util::sync::CancellationToken;

use super::StepError;
use crate::anchor::Anchor;
use crate::command_run::{BlobReference, CommandEnd, CommandRun};
use crate::contract::{TaskCheck, default_timeout};
use crate::last_lines::last_lines;
use crate::results::{RecognizedResults, ResultsFormat, TestRun};
use crate::session_runner::{OpenWorkspace, Workspace};

/// Maximum size of parsed results, in bytes.
const MAX_RESULTS: u64 = 16 << 20;

/// Maximum size of output that is kept of each end, in bytes.
const MAX_KEPT: usize = 128 << 10;

/// A shell adds the number of a signal to this exit code.
const SIGNALS: i32 = 128;

/// A command to run, and the location of its results.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandSpec<'a> {
    command: &'a str,
    results: Option<ResultsFormat>,
    report: Option<&'a str>,
    /// Whether the format of the results is recognized in the output.
    is_unknown: bool,
    timeout_s: u32,
}

impl<'a> CommandSpec<'a> {
    pub(super) fn new(command: &'a str) -> Self {
        Self { command, results: None, report: None, is_unknown: false, timeout_s: default_timeout() }
    }

    pub(super) fn with_results(mut self, results: Option<ResultsFormat>, report: Option<&'a str>) -> Self {
        (self.results, self.report) = (results, report);
        self
    }

    /// Sets results that were recognized.
    pub(super) fn with_recognized(self, recognized: Option<&'a RecognizedResults>) -> Self {
        match recognized {
            Some(results) => self.with_results(Some(results.format), results.report.as_deref()),
            None => self,
        }
    }

    /// Recognizes the format of the results in the output.
    pub(super) fn with_unknown_results(mut self) -> Self {
        self.is_unknown = true;
        self
    }
}

impl<'a> From<&'a TaskCheck> for CommandSpec<'a> {
    fn from(check: &'a TaskCheck) -> Self {
        let TaskCheck { command, results, report, timeout_s, .. } = check;
        let spec = Self::new(command).with_results(*results, report.as_deref());
        Self { timeout_s: *timeout_s, ..spec }
    }
}

impl<'a> From<&'a Anchor> for CommandSpec<'a> {
    fn from(anchor: &'a Anchor) -> Self {
        let spec = Self::new(anchor.command()).with_results(anchor.results(), anchor.report());
        Self { timeout_s: anchor.timeout_s().min(spec.timeout_s), ..spec }
    }
}

/// A workspace in which commands run.
pub(super) struct CommandRunner<'a> {
    workspace: &'a Workspace,
    open: OpenWorkspace,
    blobs: &'a dyn Blobs,
    cancel: &'a CancellationToken,
}

impl<'a> CommandRunner<'a> {
    pub(super) fn new(
        workspace: &'a Workspace,
        open: OpenWorkspace,
        blobs: &'a dyn Blobs,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { workspace, open, blobs, cancel }
    }

    /// Runs a command several times, one after the other. Then ends all processes of the environment, also after a failure.
    /// A command that times out or cannot be run is not repeated.
    pub(super) async fn repeat_and_close(
        self,
        spec: CommandSpec<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        let seen = self.repeat(spec, times).await;
        self.open.environment().cleanup().await?;
        seen
    }

    async fn repeat(&self, spec: CommandSpec<'_>, times: usize) -> Result<Vec<CommandRun>, StepError> {
        let mut runs = Vec::with_capacity(times);
        for _ in 0..times {
            let run = self.run(spec).await?;
            let is_over = matches!(run.end, CommandEnd::TimedOut | CommandEnd::NotRun(_));
            runs.push(run);
            if is_over {
                break;
            }
        }
        Ok(runs)
    }

    async fn run(&self, spec: CommandSpec<'_>) -> Result<CommandRun, StepError> {
        if let Some(report) = spec.report
            && let Err(reason) = self.remove_report(report).await
        {
            return Ok(CommandRun::new(CommandEnd::NotRun(reason)));
        }
        let command = match spec.results {
            Some(format) => format.command(spec.command, spec.report),
            None if spec.is_unknown => ResultsFormat::unknown_command(spec.command),
            None => spec.command.to_owned(),
        };
        // The environment has the variables of the workspace. A request with them would replace the `TMPDIR` of a sandbox by
        // a directory that its commands cannot write to.
        let request = ExecRequest::new(command)
            .with_timeout(Duration::from_secs(u64::from(spec.timeout_s)))
            .with_working_dir(self.workspace.working_directory());
        let ended = tokio::select! {
            ended = self.open.environment().exec_command(request) => ended,
            () = self.cancel.cancelled() => return Err(StepError::Stopped),
        };
        match ended {
            Ok(ended) => self.record_run(spec, &ended).await,
            Err(error @ EnvError::EnvironmentLost { .. }) => Err(error.into()),
            Err(error) => Ok(CommandRun::new(CommandEnd::NotRun(error.to_string()))),
        }
    }

    async fn record_run(&self, spec: CommandSpec<'_>, ended: &ExecResult) -> Result<CommandRun, StepError> {
        let mut run = CommandRun::new(command_end(ended));
        run.millis = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        let text = kept_text(spec, &ended.output)?;
        if let Some(format) = spec.results {
            run.tests = Some(match spec.report {
                Some(report) => self.read_report(format, report).await,
                None if ended.output.len() > MAX_RESULTS => results_with_problem("the output is too long"),
                None => format.parse(&self.without_root(ended.output.to_text_lossy()?)),
            });
        } else if spec.is_unknown && ended.output.len() <= MAX_RESULTS {
            let output = self.without_root(ended.output.to_text_lossy()?);
            run.tests = ResultsFormat::recognize_output(&output);
        }
        if !run.has_passed() {
            run.last_lines = last_lines(Output::from(text.as_str()))?;
        }
        let (bytes, hash) = (text.len() as u64, self.blobs.put(text.into_bytes()).await?);
        run.output = Some(BlobReference { hash: hash.to_string(), bytes });
        Ok(run)
    }

    /// Removes the path of the clone from output, because tests may have it in their names, and it differs between clones.
    fn without_root(&self, text: String) -> String {
        let root = format!("{}/", self.workspace.root.display());
        if text.contains(&root) { text.replace(&root, "") } else { text }
    }
}

/// Returns the output that is kept of a run.
fn kept_text(spec: CommandSpec<'_>, output: &Output) -> Result<String, StepError> {
    if output.len() <= MAX_RESULTS && spec.results == Some(ResultsFormat::Go) {
        let text = output.to_text_lossy()?;
        let readable = ResultsFormat::Go.readable(&text).into_owned();
        return both_ends(&Output::from(readable));
    }
    both_ends(output)
}

/// Returns both ends of output, with a mark between them if it is long.
fn both_ends(output: &Output) -> Result<String, StepError> {
    if output.len() <= 2 * MAX_KEPT as u64 {
        return Ok(output.to_text_lossy()?);
    }
    Ok(format!("{}\n[…]\n{}", output.head_text_lossy(MAX_KEPT)?, output.tail_text_lossy(MAX_KEPT)?))
}

fn results_with_problem(problem: &str) -> TestRun {
    TestRun { problems: vec![problem.to_owned()], ..TestRun::default() }
}

fn command_end(ended: &ExecResult) -> CommandEnd {
    if ended.timed_out {
        CommandEnd::TimedOut
    } else if ended.stuck.is_some() {
        CommandEnd::NotRun("one of its processes cannot be killed".to_owned())
    } else if ended.exit_code > SIGNALS && ended.exit_code <= SIGNALS + 64 {
        CommandEnd::Killed(ended.exit_code - SIGNALS)
    } else {
        CommandEnd::Exited(ended.exit_code)
    }
}
