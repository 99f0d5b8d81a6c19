//! New tasks: their contracts, and the state of the repository from which they start.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sessions::Sessions;
use pintle_tui::console;
use pintle_workflow::contract::{BaseCommit, CandidatePlan, Contract, ContractError, ModelPlans, TaskCheck};
use pintle_workflow::repository::UserRepository;
use pintle_workflow::{LocalDirectory, read_task};

use super::{contract_failure, signals};
use crate::arguments::{ContractArgs, PromptArgs};
use crate::input::prompt_source;

/// Returns the contract of the flags; `None` if they have a goal alone.
pub(super) fn read_contract(terms: &ContractArgs, prompt: &PromptArgs) -> Result<Option<Contract>, Failure> {
    if let Some(path) = &terms.contract {
        let text = process_env::read_text("contract", path)?;
        let contract = Contract::parse(&text);
        return contract.map(Some).map_err(|error| contract_failure(&error, Some(path.as_path())));
    }
    if terms.check.is_empty() {
        return Ok(None);
    }
    contract_of_goal(prompt_source::read(prompt)?, terms).map(Some)
}

/// Returns the contract of a goal with the flags.
pub(super) fn contract_of_goal(goal: String, terms: &ContractArgs) -> Result<Contract, Failure> {
    let contract = apply_terms(Contract::new(goal), terms, &read_models(terms)?);
    contract.check().map_err(|error| {
        let is_of_models = |problem: &String| problem.starts_with("models");
        let is_file = matches!(&error, ContractError::Wrong(problems) if problems.iter().all(is_of_models));
        contract_failure(&error, terms.models.as_deref().filter(|_| is_file))
    })?;
    Ok(contract)
}

/// Returns the models of the flags.
pub(super) fn read_models(terms: &ContractArgs) -> Result<ModelPlans, Failure> {
    let Some(path) = &terms.models else { return Ok(ModelPlans::default()) };
    let text = process_env::read_text("models", path)?;
    ModelPlans::parse(&text).map_err(|error| contract_failure(&error, Some(path.as_path())))
}

/// Sets the checks, candidates and models of the flags, unless the contract has its own.
pub(super) fn apply_terms(mut contract: Contract, terms: &ContractArgs, models: &ModelPlans) -> Contract {
    if contract.checks.is_empty() {
        let numbered = terms.check.iter().enumerate();
        let checks = numbered.map(|(index, command)| TaskCheck::new(format!("check {}", index + 1), command));
        contract.checks = checks.collect();
    }
    if contract.candidates == [CandidatePlan::default()] {
        contract.candidates = candidate_plans(terms);
    }
    if contract.models == ModelPlans::default() {
        contract.models = models.clone();
    }
    contract
}

pub(super) fn candidate_plans(terms: &ContractArgs) -> Vec<CandidatePlan> {
    vec![CandidatePlan::default(); usize::from(terms.candidates.unwrap_or(1))]
}

/// Sets the model of the candidates that have none, unless the contract has a model for all of them.
pub(super) fn set_default_model(contract: &mut Contract, model: Option<&String>) {
    if contract.models.work.as_ref().is_some_and(|plan| plan.model.is_some()) {
        return;
    }
    for plan in contract.candidates.iter_mut().filter(|plan| plan.model.is_none()) {
        plan.model = model.cloned();
    }
}

/// Repository of the user, and the state in which new tasks start.
pub(super) struct TaskStart {
    repository: UserRepository,
    includes_changes: bool,
}

impl TaskStart {
    /// Finds the repository of a directory. Reports local changes that tasks start without.
    pub(super) async fn find(directory: &LocalDirectory, includes_changes: bool) -> Result<Self, Failure> {
        let repository = UserRepository::find(Arc::clone(&directory.environment), &directory.path).await;
        let repository = repository.map_err(|error| Failure::usage(error.to_string()))?;
        if repository.changed > 0 && !includes_changes {
            console::notice(&format!(
                "the task starts without {}; `--changes` includes them",
                pintle_tui::render::plural(repository.changed as u64, "local change")
            ));
        }
        Ok(Self { repository, includes_changes })
    }

    /// Returns the state from which a task starts. Local changes become a commit with a reference for the task. The scope of
    /// a given contract is compared with the files of the state.
    pub(super) async fn resolve(
        &self,
        id: &SessionId,
        contract: Option<&Contract>,
    ) -> Result<BaseCommit, Failure> {
        let found = &self.repository;
        let has_changes = self.includes_changes && found.changed > 0;
        let commit = if has_changes {
            let snapshot = found.snapshot(id.as_str()).await.or_failed("the local changes cannot be read")?;
            if !snapshot.left_out.is_empty() {
                console::notice(&format!(
                    "the task starts without the files of the repositories in {}: git adds no files of another repository",
                    snapshot.left_out.join(", ")
                ));
            }
            snapshot.commit
        } else {
            found.head.clone()
        };
        let directory = &found.directory;
        if !found.has_directory(&commit, directory).await.or_failed("the repository cannot be read")? {
            return Err(Failure::usage(format!(
                "`{directory}` is not in the commit from which the task starts"
            ))
            .with_hint("commit its files, give `--changes`, or start the task in another directory"));
        }
        if let Some(contract) = contract {
            self.check_scope(contract, &commit).await?;
        }
        let base = BaseCommit::new(found.root.display().to_string(), commit).with_directory(directory);
        Ok(base.with_local_changes(has_changes))
    }

    /// Rejects a contract whose judging files do not exist. Reports patterns of the scope that no file matches.
    async fn check_scope(&self, contract: &Contract, commit: &str) -> Result<(), Failure> {
        if contract.scope.paths.is_empty() && contract.scope.judges.is_none() {
            return Ok(());
        }
        let found = &self.repository;
        let files = found.list_files(commit, &found.directory).await;
        let files = files.or_failed("the repository cannot be read")?;
        let unmatched = contract.check_files(&files).map_err(|error| contract_failure(&error, None))?;
        if !unmatched.is_empty() {
            let patterns = unmatched.join(", ");
            console::notice(&format!(
                "scope.paths: no file matches {patterns}, so only new files are allowed there"
            ));
        }
        Ok(())
    }
}

/// Removes the references and files of tasks that have ended without their removal: their process died, or a server ended them.
/// Files that stay are no reason for a failure.
pub(super) async fn remove_leftovers(
    directory: &LocalDirectory,
    sessions: &Sessions,
    process_env: &ProcessEnv,
) {
    let machine = &directory.environment;
    let names = UserRepository::list_snapshots(machine, &directory.path).await.unwrap_or_default();
    for id in names.into_iter().map(SessionId::new) {
        if let Ok(task) = read_task(sessions.store(), &id).await
            && task.outcome().is_some()
        {
            let _ = signals::remove_files(machine, &id, task.contract(), process_env).await;
        }
    }
}

/// Removes the snapshot of the local changes, which no task uses. A reference that stays is no reason for another failure.
pub(super) async fn remove_snapshot(directory: &LocalDirectory, id: &SessionId) {
    let _ = UserRepository::remove_snapshot(&directory.environment, &directory.path, id.as_str()).await;
}
