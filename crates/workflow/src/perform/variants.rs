//! Runs variants of an anchor's test, and parts of a change, that must fail.

use pintle_evidence::anchor::{Anchor, AnchorFacts};
use pintle_evidence::control_plan::{ControlKind, ControlPlan};
use pintle_evidence::diff::{ChangeKind, ChangedFile};
use pintle_evidence::judging::files_beside_sources;
use pintle_evidence::proof::{CandidateFacts, ControlTest, RevertControl};
use pintle_evidence::source_tokens::SourceLanguage;

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError};
use crate::repository::RepositoryError;

impl RunningStep<'_> {
    /// Finds the controls of an anchor that fails on the base. With results of single tests, they run there once, and
    /// the runner must report all of them. They may pass there: the base may return the changed value. With an exit code only,
    /// the anchor fails there anyway.
    pub(super) async fn find_controls(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        facts: &AnchorFacts,
    ) -> Result<Option<(String, Vec<ControlKind>)>, StepError> {
        let Ok(tests) = facts.judge_runs() else { return Ok(None) };
        for file in &facts.files {
            let Some(language) = SourceLanguage::from_path(&file.path) else { continue };
            let Some(source) = self.repository.read_text(commit, &file.path).await? else { continue };
            let kinds: Vec<ControlKind> = if facts.results.is_some() {
                let Some(plan) = ControlPlan::for_tests(language, &source, &tests) else { continue };
                let controls = self.run_plan(commit, spec, &file.path, &plan).await?;
                if !controls.iter().all(ControlTest::is_reported) {
                    continue;
                }
                controls.iter().map(|control| control.kind).collect()
            } else if is_new(file) {
                kinds_of(&ControlPlan::for_file(language, &file.path, &source))
            } else {
                Vec::new()
            };
            if !kinds.is_empty() {
                return Ok(Some((file.path.clone(), kinds)));
            }
        }
        Ok(None)
    }

    /// Runs the controls of an anchor on the commit of a candidate. A control that cannot be added is missing.
    pub(super) async fn run_controls(
        &self,
        commit: &str,
        anchor: &Anchor,
    ) -> Result<Vec<ControlTest>, StepError> {
        let Some(file) = anchor.control() else { return Ok(Vec::new()) };
        let Some(language) = SourceLanguage::from_path(file) else { return Ok(Vec::new()) };
        let Some(source) = self.repository.read_text(commit, file).await? else { return Ok(Vec::new()) };
        let plans: Vec<ControlPlan> = if anchor.results().is_some() {
            ControlPlan::for_tests(language, &source, anchor.tests()).into_iter().collect()
        } else {
            ControlPlan::for_file(language, file, &source)
        };
        let mut controls = Vec::new();
        for plan in plans {
            controls.extend(self.run_plan(commit, CommandSpec::from(anchor), file, &plan).await?);
        }
        Ok(controls)
    }

    async fn run_plan(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        file: &str,
        plan: &ControlPlan,
    ) -> Result<Vec<ControlTest>, StepError> {
        let run = CleanClone::run_with_file(self, commit, spec, file, &plan.source).await?;
        let Some(run) = run else { return Ok(Vec::new()) };
        let tests = plan.controls.iter().map(|control| ControlTest {
            test: control.test.clone(),
            run: run.clone(),
            kind: control.kind,
            line: control.line,
        });
        Ok(tests.collect())
    }

    /// Runs the anchor with only the files of a change that are not sources. Returns `None` if there are no such files, or
    /// if they cannot be used alone.
    pub(super) async fn run_revert_control(
        &self,
        start: &str,
        commit: &str,
        anchor: &Anchor,
        facts: &CandidateFacts,
    ) -> Result<Option<RevertControl>, StepError> {
        let judging = facts.judging.clone().unwrap_or_default();
        let modules = self.find_installed_modules(start).await?;
        let files = files_beside_sources(self.task.rules(), &modules, &facts.diff.files, &judging);
        if files.is_empty() {
            return Ok(None);
        }
        let patch = self.repository.patch_of_files(start, commit, &files).await?;
        let part = match self.repository.commit_patch(start, &patch).await {
            Ok(part) => part,
            Err(RepositoryError::Unfit(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let run =
            CleanClone::create(self, &part).await?.run_prepared(self, CommandSpec::from(anchor)).await?;
        Ok(run.map(|run| RevertControl { files, runs: vec![run] }))
    }
}

fn is_new(file: &ChangedFile) -> bool {
    file.kind == ChangeKind::Added
}

fn kinds_of(plans: &[ControlPlan]) -> Vec<ControlKind> {
    plans.iter().flat_map(|plan| &plan.controls).map(|control| control.kind).collect()
}
