//! Collects the facts about files that judge.

use super::{RunningStep, StepError};
use crate::anchor::Anchor;
use crate::contract::{Contract, PathRules};
use crate::diff::ChangedFile;
use crate::judging::{
    ChangeAssessment, ChangedText, CommandScan, JudgingFacts, JudgingList, JudgingRules as _,
};
use crate::repository::{RepositoryError, TaskRepository};

/// Searches the files of a commit that commands name or include.
async fn scan_commands(
    repository: &TaskRepository,
    commit: &str,
    directory: &str,
    commands: &[&str],
) -> Result<CommandScan, RepositoryError> {
    let mut scan = CommandScan::new(repository.list_files(commit).await?).with_directory(directory);
    for command in commands {
        scan.add_command(command);
    }
    while let Some(path) = scan.next_file() {
        if let Some(text) = repository.read_text(commit, &path).await? {
            scan.add_file(&path, &text);
        }
    }
    Ok(scan)
}

/// Returns the files of the base that commands of a contract name or include, for the user to edit. Their paths are relative to
/// the directory of the contract. Returns an empty list if one of them is outside of it, where no pattern of the scope names it,
/// or if only the anchor will distinguish included files from the code under test: the list would leave them out.
pub(super) async fn find_judges(
    repository: &TaskRepository,
    contract: &Contract,
) -> Result<Vec<String>, RepositoryError> {
    let directory = contract.directory();
    let scan = scan_commands(repository, repository.base(), directory, &contract.commands()).await?;
    if contract.scope.paths.is_empty() && scan.has_included() {
        return Ok(Vec::new());
    }
    let rules = PathRules::in_directory(&contract.scope, directory).ok();
    let is_judge = |path: &String| !rules.as_ref().is_some_and(|rules| rules.is_listed(path));
    let relative = |path: String| {
        if directory.is_empty() {
            return Some(path);
        }
        path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned)
    };
    let judges: Option<Vec<String>> = scan.judges().into_iter().filter(is_judge).map(relative).collect();
    Ok(judges.unwrap_or_default())
}

/// Searches the files that commands of a contract name or include, before there is an anchor.
async fn scan_base(
    repository: &TaskRepository,
    base: &str,
    contract: &Contract,
) -> Result<CommandScan, RepositoryError> {
    let mut scan = scan_commands(repository, base, contract.directory(), &contract.commands()).await?;
    if contract.scope.paths.is_empty() {
        // Scripts also run the code that they test. Only a scope or an anchor distinguishes it.
        scan.remove_included();
    }
    Ok(scan)
}

impl RunningStep<'_> {
    /// Returns the files of the base that judge, without the files of an anchor that a model writes.
    pub(super) async fn list_judges(&self, base: &str) -> Result<JudgingList, StepError> {
        let scan = scan_base(&self.repository, base, self.contract()).await?;
        Ok(ChangeAssessment { rules: self.task.rules(), scan: &scan, anchor: &[] }.list())
    }

    /// Assesses the files of a change. `start` is the commit with the anchor, and `commit` the one with the change.
    pub(super) async fn assess_change(
        &self,
        files: &[ChangedFile],
        start: &str,
        commit: &str,
    ) -> Result<JudgingFacts, StepError> {
        let anchor = self.task.anchor();
        let mut commands = self.contract().commands();
        commands.extend(anchor.map(Anchor::command));
        let mut scan = scan_commands(&self.repository, start, self.contract().directory(), &commands).await?;
        let anchor_files = anchor.map(Anchor::files).unwrap_or_default();
        if anchor_files.is_empty() && self.contract().scope.paths.is_empty() {
            // Scripts also run the code that they test. Only a scope or the files of an anchor distinguish it.
            scan.remove_included();
        }
        for path in anchor_files {
            if let Some(text) = self.repository.read_text(start, path).await? {
                scan.remove_included_in(&text);
            }
        }
        let assessment = ChangeAssessment { rules: self.task.rules(), scan: &scan, anchor: anchor_files };
        let mut texts = Vec::new();
        let needed: Vec<&ChangedFile> =
            files.iter().filter(|file| assessment.needs_text(&file.path)).collect();
        for ChangedFile { path, .. } in needed {
            let before = self.repository.read_text(start, path).await?;
            let after = self.repository.read_text(commit, path).await?;
            texts.push(ChangedText { path: path.clone(), before, after });
        }
        Ok(assessment.assess(files, &texts))
    }
}
