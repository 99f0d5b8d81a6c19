//! Drafts of contracts: a session reads a clone of the repository, and proposes evidence for the goal.

use pintle_agent::Limits;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{RepositoryPerformer, StepError, judging, take_answer};
use crate::contract::{BaseCommit, Contract, ContractDraft, DraftingSession};
use crate::prompts;
use crate::repository::TaskRepository;
use crate::session_runner::{SessionAssignment, WorkError};
use crate::task::WorkCost;

/// Reason why there is no draft.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The session stopped at a limit of its budget.
    #[error("its session stopped at a limit of its budget")]
    AtLimit,
    /// Three drafts were invalid, the session failed, or it was cancelled.
    #[error(transparent)]
    Failed(#[from] WorkError),
}

/// Failure of a draft, with its costs. No task has them on its bill.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct FailedDraft {
    /// Reason.
    pub error: DraftError,
    /// Costs of its session.
    pub spent: WorkCost,
}

/// Maximum number of drafts of a session. Each request after the first one contains the problems of the previous draft.
const ATTEMPTS: usize = 3;

impl RepositoryPerformer {
    /// Runs a session that drafts a contract from a text, such as an issue. It works in a clone that is removed afterwards.
    /// The contract has one candidate, no budget and no gates: users set these.
    ///
    /// # Errors
    ///
    /// [`FailedDraft`], if the session stops at a limit of its budget or fails, if three drafts are invalid, or if `cancel`
    /// is cancelled.
    pub async fn draft(
        &self,
        base: BaseCommit,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<Contract, FailedDraft> {
        let mut spent = WorkCost::default();
        let drafted = self.try_draft(base, text, cancel, &mut spent).await;
        drafted.map_err(|error| {
            let error = if let StepError::AtLimit(_) = error {
                DraftError::AtLimit
            } else {
                WorkError(error.to_string()).into()
            };
            FailedDraft { error, spent }
        })
    }

    async fn try_draft(
        &self,
        base: BaseCommit,
        text: &str,
        cancel: &CancellationToken,
        spent: &mut WorkCost,
    ) -> Result<Contract, StepError> {
        let machine = self.machine.clone();
        // Without a reference in the user's repository: a draft takes minutes, and a killed process would leave it.
        let repository =
            TaskRepository::open(machine, &self.directory, &base.repository, &base.commit, None).await?;
        let directory = base.directory.clone().unwrap_or_default();
        let repository = repository.in_directory(&directory).await?;
        let workspace = self.create_workspace("draft").await?.in_directory(&directory);
        repository.clone_to(&workspace.root, repository.base()).await?;
        let mut drafted = DraftingSession::new(format!("{}-draft", self.task));
        let context = self.hand_index(&repository, &workspace, repository.base()).await?;
        let plan = self.draft_models.draft.clone().unwrap_or_default();
        let mut problems = None::<String>;
        for number in 1..=ATTEMPTS {
            let mut message = prompts::draft(text, number, problems.as_deref());
            if number == 1 {
                message.push_str(&context);
            }
            let assignment = SessionAssignment {
                session: drafted.session.clone(),
                task: self.task.clone(),
                message,
                steering: Vec::new(),
                workspace: workspace.clone(),
                model: plan.model.clone(),
                effort: plan.effort.clone(),
                answer: Some(ContractDraft::schema()),
                limits: Limits::default(),
            };
            let worked = self.session_runner.run(assignment, cancel).await?;
            drafted.spent.add(&worked.spent);
            spent.add(&worked.spent);
            if cancel.is_cancelled() {
                return Err(StepError::Stopped);
            }
            if let Some(error) = worked.error {
                return Err(WorkError(error).into());
            }
            let answer = take_answer(worked, &drafted.session, "the session drafted no contract")?;
            let draft = serde_json::from_value::<ContractDraft>(answer).map_err(|error| error.to_string());
            drafted.notes = draft.as_ref().map(|draft| draft.notes.clone()).unwrap_or_default();
            match draft.and_then(|draft| draft.contract().map_err(|error| error.to_string())) {
                Ok(contract) => {
                    self.remove_workspaces(workspace.directory()).await?;
                    let contract = contract.with_base(base).with_models(self.draft_models.clone());
                    let mut contract = Contract { drafted: Some(drafted), ..contract };
                    let judges = judging::find_judges(&repository, &contract).await?;
                    contract.scope.judges = (!judges.is_empty()).then_some(judges);
                    return Ok(contract);
                }
                Err(error) => problems = Some(error),
            }
        }
        Err(StepError::Other(format!("no draft can be kept: {}", problems.unwrap_or_default())))
    }
}
