//! Clean clones for judged commands.

use pintle_env::EnvError;

use super::runs::{Line, Runs};
use super::{Performance, StepError, control};
use crate::command_run::{CommandRun, RunComparison, TestStability};
use crate::evidence::ControlTest;
use crate::repository::remove_directory;
use crate::session_runner::Workspace;

/// Returns whether runs in one clone differ. A run may have left files that break the next run. Each run then needs a
/// separate clone, and only results that still differ are flaky.
pub(super) fn differ(runs: &[CommandRun]) -> bool {
    let observed = RunComparison::compare(runs);
    observed.ends.len() > 1 || observed.tests_with(TestStability::Flaky).next().is_some()
}

/// A clean clone for judged commands.
pub(super) struct Clean {
    pub(super) workspace: Workspace,
    commit: String,
}

impl Clean {
    pub(super) async fn at(of: &Performance<'_>, commit: &str) -> Result<Self, StepError> {
        of.check()?;
        let workspace = of.performer.create_workspace(&format!("clean/{}", of.step)).await?;
        of.repository.clone_to(&workspace.root, commit).await?;
        Ok(Self { workspace, commit: commit.to_owned() })
    }

    pub(super) async fn runs<'a>(&'a self, of: &Performance<'a>) -> Result<Runs<'a>, StepError> {
        let open = of.performer.workspace_factory.open(&self.workspace).await?;
        Ok(Runs::new(&self.workspace, open, of.performer.blobs.as_ref(), of.cancel))
    }

    /// Prepares the clone. Returns the reason if this fails, with the end of the output.
    pub(super) async fn not_prepared(&self, of: &Performance<'_>) -> Result<Option<String>, StepError> {
        let Some(prepare) = &of.contract().prepare else { return Ok(None) };
        let runs = self.runs(of).await?.repeat_and_close(Line::new(prepare), 1).await?;
        let Some(run) = runs.iter().find(|run| !run.is_success()) else { return Ok(None) };
        let mut reason = format!("`{}` {}", crate::names::escape_name(prepare), run.end.describe());
        for line in run.last_lines(of.performer.blobs.as_ref()).await? {
            reason.push_str("\n    ");
            reason.push_str(&line);
        }
        Ok(Some(reason))
    }

    /// Prepares the clone, runs a command in it, and removes it.
    pub(super) async fn seen(
        self,
        of: &Performance<'_>,
        line: Line<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        let commit = self.commit.clone();
        let seen = self.seen_in_one(of, line, times).await?;
        if !differ(&seen) {
            return Ok(seen);
        }
        let mut apart = Vec::with_capacity(times);
        for _ in 0..times {
            apart.extend(Self::at(of, &commit).await?.seen_in_one(of, line, 1).await?);
        }
        Ok(apart)
    }

    async fn seen_in_one(
        self,
        of: &Performance<'_>,
        line: Line<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        let seen = self.run_if_prepared(of, line, times).await;
        self.remove_after(of, seen).await
    }

    async fn run_if_prepared(
        &self,
        of: &Performance<'_>,
        line: Line<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        match self.not_prepared(of).await? {
            Some(reason) => Err(StepError::Other(reason)),
            None => self.runs(of).await?.repeat_and_close(line, times).await,
        }
    }

    /// Runs a command with a control in a file. Returns `None` for a file that cannot have a control. Uses a new clone,
    /// because code that ran in an existing clone may have replaced the file with a link.
    pub(super) async fn control(
        of: &Performance<'_>,
        commit: &str,
        line: Line<'_>,
        file: &str,
    ) -> Result<Option<ControlTest>, StepError> {
        let Some(form) = control::form(file) else { return Ok(None) };
        let clean = Self::at(of, commit).await?;
        let test = control::name();
        let appended = clean.append(of, file, &form(&test)).await;
        if !matches!(appended, Ok(true)) {
            return clean.remove_after(of, appended.map(|_| None)).await;
        }
        let runs = clean.seen(of, line, 1).await?;
        Ok(runs.into_iter().next().map(|run| ControlTest { test, run }))
    }

    /// Appends text to a file of the clone. Returns `false` if the candidate has removed the file.
    async fn append(&self, of: &Performance<'_>, file: &str, added: &str) -> Result<bool, StepError> {
        let (path, machine) = (self.workspace.root.join(file), of.performer.machine.as_ref());
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
        of: &Performance<'_>,
        result: Result<T, StepError>,
    ) -> Result<T, StepError> {
        let remove = remove_directory(of.performer.machine.as_ref(), self.workspace.directory());
        if result.is_ok() {
            remove.await?;
        } else if of.fence.check().is_ok() {
            // The first error is reported. A clone that cannot be removed now is removed with the task.
            let _ = remove.await;
        }
        result
    }
}
