//! Drafts of contracts: a session reads a clone of the repository, and proposes evidence for the goal.

use pintle_agent::Limits;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{RepositoryPerformer, StepError, take_answer};
use crate::contract::{BaseCommit, Contract, ContractDraft, DraftingSession};
use crate::prompts;
use crate::repository::{TaskRepository, remove_directory};
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

/// Maximum number of drafts of a session. Each request after the first one contains the problems of the previous draft.
const ATTEMPTS: usize = 3;

impl RepositoryPerformer {
    /// Runs a session that drafts a contract from a text, such as an issue. It works in a clone that is removed afterwards.
    /// The contract has one candidate, no budget and no gates: users set these.
    ///
    /// # Errors
    ///
    /// [`DraftError`], if the session stops at a limit of its budget or fails, if three drafts are invalid, or if `cancel`
    /// is cancelled.
    pub async fn draft(
        &self,
        base: BaseCommit,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<Contract, DraftError> {
        let drafted = self.try_draft(base, text, cancel).await;
        drafted.map_err(|error| match matches!(error, StepError::AtLimit(_)) {
            true => DraftError::AtLimit,
            false => WorkError(error.to_string()).into(),
        })
    }

    async fn try_draft(
        &self,
        base: BaseCommit,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<Contract, StepError> {
        let repository =
            TaskRepository::open(self.machine.clone(), &self.directory, &base.repository, &base.commit)
                .await?;
        let workspace = self.create_workspace("draft").await?;
        repository.clone_to(&workspace.root, repository.base()).await?;
        let mut drafted =
            DraftingSession { session: format!("{}-draft", self.task), spent: WorkCost::default() };
        let mut problems = None::<String>;
        for number in 1..=ATTEMPTS {
            let assignment = SessionAssignment {
                session: drafted.session.clone(),
                task: self.task.clone(),
                message: prompts::draft(text, number, problems.as_deref()),
                steering: Vec::new(),
                workspace: workspace.clone(),
                model: None,
                effort: None,
                answer: Some(ContractDraft::schema()),
                limits: Limits::default(),
            };
            let worked = self.session_runner.run(assignment, cancel).await?;
            drafted.spent.add(&worked.spent);
            if cancel.is_cancelled() {
                return Err(StepError::Stopped);
            }
            if let Some(error) = worked.error {
                return Err(WorkError(error).into());
            }
            let answer = take_answer(worked, &drafted.session, "the session drafted no contract")?;
            let draft = serde_json::from_value::<ContractDraft>(answer).map_err(|error| error.to_string());
            match draft.and_then(|draft| draft.contract().map_err(|error| error.to_string())) {
                Ok(contract) => {
                    remove_directory(self.machine.as_ref(), workspace.directory()).await?;
                    return Ok(Contract { drafted: Some(drafted), ..contract.with_base(base) });
                }
                Err(error) => problems = Some(error),
            }
        }
        Err(StepError::Other(format!("no draft can be kept: {}", problems.unwrap_or_default())))
    }
}
