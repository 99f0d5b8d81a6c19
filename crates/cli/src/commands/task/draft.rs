//! Contracts that a model drafts from a goal, for the user at the terminal to accept.

use std::io::Write as _;
use std::pin::pin;

use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_tui::approve::Prompter;
use pintle_tui::interrupt::Interrupts;
use pintle_tui::{console, user_editor};
use pintle_workflow::contract::{BaseCommit, CandidatePlan, Contract};
use pintle_workflow::task::WorkCost;
use pintle_workflow::{DraftError, FailedDraft, RepositoryPerformer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::arguments::OutputFormat;

/// Prompt below a draft.
const PROMPT: &str = "Accept it? [y]es, [e]dit, [n]o: ";

/// Rejects a draft if no user can accept it.
pub(super) fn require_approver(is_accepted: bool) -> Result<(), Failure> {
    if is_accepted || Prompter::has_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "no terminal is available to accept the contract that a model would draft from the goal",
    )
    .with_hint(
        "`--check COMMAND` and `--contract FILE` say what proves the goal, and `--yes` takes any draft",
    ))
}

/// Shows drafts to the user and asks for acceptance.
pub(super) struct DraftApproval<'a> {
    pub(super) prompter: &'a Prompter,
    pub(super) interrupts: &'a Interrupts,
    /// Candidates of the draft.
    pub(super) candidates: Vec<CandidatePlan>,
    pub(super) format: OutputFormat,
    pub(super) process_env: &'a ProcessEnv,
}

impl DraftApproval<'_> {
    /// Lets a session draft a contract, and asks the user to accept it, unless any draft is accepted.
    pub(super) async fn draft_contract(
        &self,
        performer: &RepositoryPerformer,
        base: BaseCommit,
        text: &str,
        is_accepted: bool,
    ) -> Result<Contract, Failure> {
        console::notice("a session drafts the contract");
        let cancel = CancellationToken::new();
        let mut drafting = pin!(performer.draft(base, text, &cancel));
        let drafted = tokio::select! {
            drafted = &mut drafting => drafted,
            () = self.interrupts.first_signal() => {
                cancel.cancel();
                drafting.await
            }
        };
        performer.clean().await.or_failed("the files of the draft cannot be removed")?;
        let drafted = match drafted {
            Ok(drafted) => drafted,
            Err(FailedDraft { error, spent, .. }) => {
                self.report_cost(&spent).await?;
                let kind =
                    if error == DraftError::AtLimit { FailureKind::LimitReached } else { FailureKind::Other };
                let failure = Failure::new(kind, format!("there is no draft: {error}"));
                return Err(self.interrupts.reclassify(failure));
            }
        };
        let contract = drafted.with_candidates(self.candidates.clone());
        if is_accepted {
            return Ok(contract);
        }
        let spent = contract.drafted.as_ref().map(|drafted| drafted.spent.clone()).unwrap_or_default();
        let accepted = self.interrupts.race(self.ask_acceptance(contract)).await;
        if accepted.is_err() {
            self.report_cost(&spent).await?;
        }
        accepted
    }

    /// Reports the costs of a draft that starts no task, and so is on no bill. Programs receive them as a value.
    async fn report_cost(&self, spent: &WorkCost) -> Result<(), Failure> {
        if !spent.has_calls() {
            return Ok(());
        }
        console::notice(&format!("the draft cost {} in {} tokens", spent.dollars(), spent.tokens));
        match self.format {
            OutputFormat::Text => Ok(()),
            OutputFormat::Json | OutputFormat::StreamJson => {
                console::print(&json_line(&json!({"state": "not drafted", "spent": spent}))?).await
            }
        }
    }

    /// Asks until the contract is accepted, unchanged or edited.
    async fn ask_acceptance(&self, mut contract: Contract) -> Result<Contract, Failure> {
        loop {
            let toml = contract.to_toml().or_failed("the draft cannot be shown")?;
            // Shown with the question, even if standard output is a file.
            console::prompt(&format!("This is the contract:\n\n{}\n", sanitize(&toml)));
            let answer = self.prompter.ask_now("A model has drafted the contract above", PROMPT).await;
            match answer.as_deref().map(str::trim) {
                Some("y" | "yes") => return Ok(contract),
                Some("e" | "edit") => match edit_contract(&toml, self.process_env) {
                    Ok(mut edited) => {
                        (edited.base, edited.drafted) = (contract.base, contract.drafted);
                        contract = edited;
                    }
                    Err(failure) => console::notice(&failure.message()),
                },
                Some("n" | "no") | None => {
                    let refused = "the draft was not accepted, and no task was started";
                    return Err(Failure::new(FailureKind::Interrupted, refused));
                }
                Some(_) => console::notice("expected y, e or n"),
            }
        }
    }
}

/// Lets the user edit a contract.
fn edit_contract(text: &str, process_env: &ProcessEnv) -> Result<Contract, Failure> {
    let editor = user_editor::require(process_env)?;
    let file = tempfile::Builder::new().prefix("contract-").suffix(".toml").tempfile();
    let mut file = file.or_failed("the draft cannot be written")?;
    file.write_all(text.as_bytes()).or_failed("the draft cannot be written")?;
    user_editor::open(&editor, file.path(), process_env)?;
    let text = pintle_host::process_env::read_text("contract", file.path())?;
    Contract::parse(&text).map_err(|error| super::contract_failure(&error, None))
}
