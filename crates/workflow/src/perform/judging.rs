//! Collects the facts about files that judge.

use pintle_evidence::anchor::Anchor;
use pintle_evidence::diff::ChangedFile;
use pintle_evidence::judging::{
    ChangeAssessment, ChangedText, CommandScan, InstalledModules, JudgingFacts, JudgingList, find_module,
    module_parents,
};

use super::{RunningStep, StepError};
use crate::contract::{Contract, PathRules};
use crate::repository::{RepositoryError, TaskRepository};

/// Maximum number of modules around a file.
const MAX_MODULES: usize = 16;

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
            texts.push(self.read_changed_text(start, commit, path).await?);
        }
        Ok(assessment.assess(files, &texts))
    }

    /// Returns a commit in which changed files that judge have their original contents or tests. `None` if no file can have them:
    /// a link may be in the place of their directory.
    pub(super) async fn restore_judges(
        &self,
        start: &str,
        commit: &str,
        judging: &JudgingFacts,
    ) -> Result<Option<String>, StepError> {
        if judging.restored().is_empty() {
            return Ok(None);
        }
        let mut restored = commit.to_owned();
        if !judging.restorable.is_empty() {
            let patch = self.repository.patch_of_files(commit, start, &judging.restorable).await?;
            restored = match self.repository.commit_patch(commit, &patch).await {
                Ok(restored) => restored,
                Err(RepositoryError::Unfit(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        }
        let mut texts = Vec::new();
        for path in &judging.inline {
            let text = self.read_changed_text(start, commit, path).await?.restore_tests();
            texts.extend(text.map(|text| (path.clone(), text)));
        }
        Ok(Some(self.repository.commit_texts(&restored, &texts).await?))
    }

    /// Returns the modules that a new file at an import root would replace, as the manifests of a commit list them.
    pub(super) async fn find_installed_modules(&self, commit: &str) -> Result<InstalledModules, StepError> {
        let mut modules = InstalledModules::new(&self.contract().goal);
        let rules = self.task.rules();
        for path in self.repository.list_files(commit).await? {
            let text = match InstalledModules::needs_text(rules, &path) {
                true => self.repository.read_text(commit, &path).await?,
                false => None,
            };
            modules.add_file(rules, &path, text.as_deref());
        }
        Ok(modules)
    }

    async fn read_changed_text(
        &self,
        start: &str,
        commit: &str,
        path: &str,
    ) -> Result<ChangedText, StepError> {
        let before = self.repository.read_text(start, path).await?;
        let after = self.repository.read_text(commit, path).await?;
        let declared_in = if before.is_some() { start } else { commit };
        let is_test_module = self.is_test_module(declared_in, path).await?;
        Ok(ChangedText { path: path.to_owned(), before, after, is_test_module })
    }

    /// Returns whether a file of Rust is a module that only test builds have: its declaration, or one above it, has the condition.
    async fn is_test_module(&self, commit: &str, path: &str) -> Result<bool, StepError> {
        let mut path = path.to_owned();
        for _ in 0..MAX_MODULES {
            let mut declared = None;
            for (parent, names) in module_parents(&path) {
                let Some(text) = self.repository.read_text(commit, &parent).await? else { continue };
                if let Some(is_test) = find_module(&text, &names) {
                    declared = Some((parent, is_test));
                    break;
                }
            }
            match declared {
                None => return Ok(false),
                Some((_, true)) => return Ok(true),
                Some((parent, false)) => path = parent,
            }
        }
        Ok(false)
    }
}
