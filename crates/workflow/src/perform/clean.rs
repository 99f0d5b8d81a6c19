//! Clean clones, in which commands run whose results are judged.

use pintle_env::EnvError;

use super::runs::{Line, Runs};
use super::{Performance, StepError, control};
use crate::command_run::{CommandRun, Observation, Stability};
use crate::evidence::Control;
use crate::repository::remove_directory;
use crate::worker::Place;

/// Returns whether runs in one clone differ. A run may have left files that the next one stumbles over: then each has to have a
/// separate clone, and only results that differ there are flaky.
pub(super) fn differ(runs: &[CommandRun]) -> bool {
    let observed = Observation::of(runs);
    observed.ends.len() > 1 || observed.having(Stability::Flaky).next().is_some()
}

/// A clean clone, in which commands are judged.
pub(super) struct Clean {
    pub(super) place: Place,
    commit: String,
}

impl Clean {
    pub(super) async fn at(of: &Performance<'_>, commit: &str) -> Result<Self, StepError> {
        of.check()?;
        let place = of.performer.place(&format!("clean/{}", of.step)).await?;
        of.repository.clone_to(&place.root, commit).await?;
        Ok(Self { place, commit: commit.to_owned() })
    }

    pub(super) async fn runs<'a>(&'a self, of: &Performance<'a>) -> Result<Runs<'a>, StepError> {
        let open = of.performer.places.open(&self.place).await?;
        Ok(Runs::new(&self.place, open, of.performer.blobs.as_ref(), of.cancel))
    }

    /// Prepares the clone, and returns why that failed, with the end of the output.
    pub(super) async fn not_prepared(&self, of: &Performance<'_>) -> Result<Option<String>, StepError> {
        let Some(prepare) = &of.contract().prepare else { return Ok(None) };
        let runs = self.runs(of).await?.repeat_and_close(Line::new(prepare), 1).await?;
        let Some(run) = runs.iter().find(|run| !run.is_success()) else { return Ok(None) };
        let mut reason = format!("`{}` {}", crate::names::shown(prepare), run.end.describe());
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
        if let Some(reason) = self.not_prepared(of).await? {
            return Err(StepError::Other(reason));
        }
        let seen = self.runs(of).await?.repeat_and_close(line, times).await?;
        self.remove(of).await?;
        Ok(seen)
    }

    /// Runs a command with a control in a file; `None` for a file that cannot have one. The clone is a new one, since code that
    /// ran in another may have made a link of the file.
    pub(super) async fn control(
        of: &Performance<'_>,
        commit: &str,
        line: Line<'_>,
        file: &str,
    ) -> Result<Option<Control>, StepError> {
        let Some(form) = control::form(file) else { return Ok(None) };
        let clean = Self::at(of, commit).await?;
        let (test, path, machine) =
            (control::name(), clean.place.root.join(file), of.performer.machine.as_ref());
        let mut text = match machine.read(&path, None).await {
            Ok(text) => text,
            // The candidate has removed it.
            Err(EnvError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        text.extend_from_slice(form(&test).as_bytes());
        machine.write(&path, &text).await?;
        let runs = clean.seen(of, line, 1).await?;
        Ok(runs.into_iter().next().map(|run| Control { test, run }))
    }

    pub(super) async fn remove(self, of: &Performance<'_>) -> Result<(), StepError> {
        Ok(remove_directory(of.performer.machine.as_ref(), self.place.directory()).await?)
    }
}
