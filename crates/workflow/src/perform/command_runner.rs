//! Runs the commands of a task, and collects their results and their output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{EnvError, ExecRequest, ExecResult, ExecutionEnvironmentExt as _, FileKind};
use pintle_store::Blobs;
use tokio_util::sync::CancellationToken;

use super::StepError;
use crate::anchor::Anchor;
use crate::command_run::{BlobReference, CommandEnd, CommandRun};
use crate::contract::{TaskCheck, default_timeout};
use crate::results::{ResultsFormat, TestRun};
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
    timeout_s: u32,
}

impl<'a> CommandSpec<'a> {
    pub(super) fn new(command: &'a str) -> Self {
        Self { command, results: None, report: None, timeout_s: default_timeout() }
    }

    pub(super) fn with_results(mut self, results: Option<ResultsFormat>, report: Option<&'a str>) -> Self {
        (self.results, self.report) = (results, report);
        self
    }
}

impl<'a> From<&'a TaskCheck> for CommandSpec<'a> {
    fn from(check: &'a TaskCheck) -> Self {
        let TaskCheck { command, results, report, timeout_s, .. } = check;
        Self { command, results: *results, report: report.as_deref(), timeout_s: *timeout_s }
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
        let command =
            spec.results.map_or_else(|| spec.command.to_owned(), |format| format.command(spec.command));
        // The environment has the variables of the workspace. A request with them would replace the `TMPDIR` of a sandbox by
        // a directory that its commands cannot write to.
        let request = ExecRequest::new(command)
            .with_timeout(Duration::from_secs(u64::from(spec.timeout_s)))
            .with_working_dir(&self.workspace.root);
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
        let head = ended.output.head_text_lossy(MAX_KEPT)?;
        let text = match ended.output.len() > 2 * MAX_KEPT as u64 {
            false => ended.output.to_text_lossy()?,
            true => format!("{head}\n[…]\n{}", ended.output.tail_text_lossy(MAX_KEPT)?),
        };
        let (bytes, hash) = (text.len() as u64, self.blobs.put(text.into_bytes()).await?);
        run.output = Some(BlobReference { hash: hash.to_string(), bytes });
        if let Some(format) = spec.results {
            run.tests = Some(match spec.report {
                Some(report) => self.read_report(format, report).await,
                None if ended.output.len() > MAX_RESULTS => results_with_problem("the output is too long"),
                None => format.parse(&ended.output.to_text_lossy()?),
            });
        }
        Ok(run)
    }

    /// Removes an older report, which does not belong to this run.
    async fn remove_report(&self, report: &str) -> Result<(), String> {
        let path = self.workspace.root.join(report);
        let Some(directory) = self.resolve_inside(path.parent().unwrap_or(&path), report).await? else {
            return Ok(());
        };
        // Removes a link itself, not its target.
        let path = directory.join(path.file_name().unwrap_or_default());
        match self.open.environment().remove(&path).await {
            Ok(()) | Err(EnvError::NotFound { .. }) => Ok(()),
            Err(error) => Err(format!("an older `{report}` cannot be removed: {error}")),
        }
    }

    async fn read_report(&self, format: ResultsFormat, report: &str) -> TestRun {
        let environment = self.open.environment();
        let read = async {
            let Some(path) = self.resolve_inside(&self.workspace.root.join(report), report).await? else {
                return Err(format!("`{report}` was not written"));
            };
            let found = environment.metadata(&path).await.map_err(|error| error.to_string())?;
            if found.kind != FileKind::File || found.len > MAX_RESULTS {
                return Err(format!("`{report}` is no file of up to {} MiB", MAX_RESULTS >> 20));
            }
            environment.read(&path, None).await.map_err(|error| error.to_string())
        };
        match read.await {
            Ok(bytes) => format.parse(&String::from_utf8_lossy(&bytes)),
            Err(problem) => results_with_problem(&problem),
        }
    }

    /// Returns the canonical form of a path in the workspace, or `None` if it does not exist.
    async fn resolve_inside(&self, path: &Path, name: &str) -> Result<Option<PathBuf>, String> {
        let environment = self.open.environment();
        if !environment.file_exists(path).await.map_err(|error| error.to_string())? {
            return Ok(None);
        }
        let real =
            async |path: &Path| environment.canonicalize(path).await.map_err(|error| error.to_string());
        let (root, path) = (real(&self.workspace.root).await?, real(path).await?);
        if path.starts_with(&root) {
            Ok(Some(path))
        } else {
            Err(format!("`{name}` leads out of the worktree"))
        }
    }
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
