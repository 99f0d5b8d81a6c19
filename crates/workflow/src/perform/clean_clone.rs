//! Clean clones for judged commands.

use pintle_env::EnvError;

use super::command_runner::{CommandRunner, CommandSpec};
use super::{RunningStep, StepError, control};
use crate::command_run::{CommandRun, RunComparison, TestStability};
use crate::control_plan::ControlKind;
use crate::evidence::ControlTest;
use crate::session_runner::Workspace;

/// Returns whether runs in one clone differ. A run may have left files that break the next run. Each run then needs a
/// separate clone, and only results that still differ are flaky.
pub(super) fn differ(runs: &[CommandRun]) -> bool {
    let observed = RunComparison::compare(runs);
    observed.ends.len() > 1 || observed.tests_with(TestStability::Flaky).next().is_some()
}

/// A clean clone for judged commands.
pub(super) struct CleanClone {
    pub(super) workspace: Workspace,
    commit: String,
}

impl CleanClone {
    pub(super) async fn create(running: &RunningStep<'_>, commit: &str) -> Result<Self, StepError> {
        running.ensure_active()?;
        let workspace = running.create_workspace(&format!("clean/{}", running.step)).await?;
        running.repository.clone_to(&workspace.root, commit).await?;
        Ok(Self { workspace, commit: commit.to_owned() })
    }

    /// As [`create`](Self::create), at another path and without variables of the task. Code that recognizes the environment of
    /// judged commands behaves differently here.
    pub(super) async fn create_elsewhere(running: &RunningStep<'_>, commit: &str) -> Result<Self, StepError> {
        running.ensure_active()?;
        let workspace = running.performer.create_plain_workspace().await?;
        let workspace = workspace.in_directory(running.contract().directory());
        running.repository.clone_to(&workspace.root, commit).await?;
        Ok(Self { workspace, commit: commit.to_owned() })
    }

    pub(super) async fn open_runner<'a>(
        &'a self,
        running: &RunningStep<'a>,
    ) -> Result<CommandRunner<'a>, StepError> {
        let open = running.performer.workspace_factory.open(&self.workspace).await?;
        Ok(CommandRunner::new(&self.workspace, open, running.performer.blobs.as_ref(), running.cancel))
    }

    /// Prepares the clone. Returns the reason if this fails, with the end of the output.
    pub(super) async fn prepare(&self, running: &RunningStep<'_>) -> Result<Option<String>, StepError> {
        let Some(prepare) = &running.contract().prepare else { return Ok(None) };
        let runs = self.open_runner(running).await?.repeat_and_close(CommandSpec::new(prepare), 1).await?;
        let Some(run) = runs.iter().find(|run| !run.is_success()) else { return Ok(None) };
        let mut reason = format!("`{}` {}", crate::names::escape_name(prepare), run.end.describe());
        for line in run.last_lines(running.performer.blobs.as_ref()).await? {
            reason.push_str("\n    ");
            reason.push_str(&line);
        }
        Ok(Some(reason))
    }

    /// Prepares the clone, runs a command in it, and removes it.
    pub(super) async fn run_in_clean_clone(
        self,
        running: &RunningStep<'_>,
        spec: CommandSpec<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        let commit = self.commit.clone();
        let seen = self.run_once(running, spec, times).await?;
        if !differ(&seen) {
            return Ok(seen);
        }
        let mut apart = Vec::with_capacity(times);
        for _ in 0..times {
            apart.extend(Self::create(running, &commit).await?.run_once(running, spec, 1).await?);
        }
        Ok(apart)
    }

    async fn run_once(
        self,
        running: &RunningStep<'_>,
        spec: CommandSpec<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        let seen = self.run_if_prepared(running, spec, times).await;
        self.remove_after(running, seen).await
    }

    async fn run_if_prepared(
        &self,
        running: &RunningStep<'_>,
        spec: CommandSpec<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        if let Some(reason) = self.prepare(running).await? {
            return Err(StepError::Other(reason));
        }
        let is_prepared = running.contract().prepare.is_some();
        if is_prepared && running.performer.workspace_factory.is_lost(&self.workspace).await {
            let lost = "the container ended after the clone was prepared, with the packages that it had";
            return Err(StepError::Other(lost.to_owned()));
        }
        self.open_runner(running).await?.repeat_and_close(spec, times).await
    }

    /// Runs a command with a control in a file. Returns `None` for a file that cannot have a control. Uses a new clone,
    /// because code that ran in an existing clone may have replaced the file with a link.
    pub(super) async fn run_control(
        running: &RunningStep<'_>,
        commit: &str,
        spec: CommandSpec<'_>,
        file: &str,
    ) -> Result<Option<ControlTest>, StepError> {
        let Some(template) = control::test_template(file) else { return Ok(None) };
        let clean = Self::create(running, commit).await?;
        let test = control::generate_name();
        let appended = clean.append(running, file, &template(&test)).await;
        if !matches!(appended, Ok(true)) {
            return clean.remove_after(running, appended.map(|_| None)).await;
        }
        let runs = clean.run_in_clean_clone(running, spec, 1).await?;
        let control = |run| ControlTest { test, run, kind: ControlKind::Unconditional, line: 0 };
        Ok(runs.into_iter().next().map(control))
    }

    /// Runs a command once in a new clone of a commit in which a file has another text.
    pub(super) async fn run_with_file(
        running: &RunningStep<'_>,
        commit: &str,
        spec: CommandSpec<'_>,
        file: &str,
        text: &str,
    ) -> Result<Option<CommandRun>, StepError> {
        Self::run_with_files(running, commit, spec, &[(file, text)]).await
    }

    /// As [`run_with_file`](Self::run_with_file), for several files.
    pub(super) async fn run_with_files(
        running: &RunningStep<'_>,
        commit: &str,
        spec: CommandSpec<'_>,
        files: &[(&str, &str)],
    ) -> Result<Option<CommandRun>, StepError> {
        let clean = Self::create(running, commit).await?;
        for (file, text) in files {
            let path = clean.workspace.root.join(file);
            if let Err(error) = running.performer.machine.write(&path, text.as_bytes()).await {
                return clean.remove_after(running, Err(error.into())).await;
            }
        }
        clean.run_prepared(running, spec).await
    }

    /// Prepares the clone, runs a command once, and removes the clone. Returns `None` if the preparation fails.
    pub(super) async fn run_prepared(
        self,
        running: &RunningStep<'_>,
        spec: CommandSpec<'_>,
    ) -> Result<Option<CommandRun>, StepError> {
        let seen = self.run_if_prepared(running, spec, 1).await;
        let seen = match seen {
            Ok(runs) => Ok(runs.into_iter().next()),
            Err(StepError::Other(_)) => Ok(None),
            Err(error) => Err(error),
        };
        self.remove_after(running, seen).await
    }

    /// Appends text to a file of the clone. Returns `false` if the candidate has removed the file.
    async fn append(&self, running: &RunningStep<'_>, file: &str, added: &str) -> Result<bool, StepError> {
        let (path, machine) = (self.workspace.root.join(file), running.performer.machine.as_ref());
        let mut text = match machine.read(&path, None).await {
            Ok(text) => text,
            Err(EnvError::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        text.extend_from_slice(added.as_bytes());
        machine.write(&path, &text).await?;
        Ok(true)
    }

    /// Removes the clone and returns the result. After a failure, keeps the clone if another process owns the task.
    ///
    /// # Errors
    ///
    /// The error of the result, or else [`StepError`] if the clone cannot be removed.
    pub(super) async fn remove_after<T>(
        self,
        running: &RunningStep<'_>,
        result: Result<T, StepError>,
    ) -> Result<T, StepError> {
        let remove = running.performer.remove_workspaces(self.workspace.directory());
        if result.is_ok() {
            remove.await?;
        } else if running.fence.check().is_ok() {
            // The first error is reported. A clone that cannot be removed now is removed with the task.
            let _ = remove.await;
        }
        result
    }
}
