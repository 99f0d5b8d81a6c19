//! The task that the flags of `pintle task run` ask for.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sessions::Sessions;
use pintle_tui::approve::Prompter;
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use pintle_workflow::contract::{BaseCommit, CandidatePlan, Contract, ModelPlans, TaskCheck};
use pintle_workflow::repository::UserRepository;
use pintle_workflow::{HostPerformerFactory, LocalDirectory, LocalTaskHost};

use crate::arguments::RunTaskArgs;
use crate::commands::task::draft::{self, DraftApproval};
use crate::commands::task::{contract_failure, find, open_failure};
use crate::input::prompt_source;

/// Inputs for opening a task.
pub(super) struct TaskOpener<'a> {
    pub(super) args: &'a RunTaskArgs,
    /// Id of the task, which need not exist yet.
    pub(super) id: &'a SessionId,
    pub(super) performer_factory: &'a HostPerformerFactory,
    pub(super) prompter: &'a Prompter,
    pub(super) interrupts: &'a Interrupts,
    pub(super) process_env: &'a ProcessEnv,
}

impl TaskOpener<'_> {
    /// Opens a recorded task, or creates a new one.
    pub(super) async fn open(&self, source: TaskSource) -> Result<LocalTaskHost, Failure> {
        let is_new = !matches!(source, TaskSource::Task(_));
        let opened = self.open_host(source).await;
        if is_new && opened.is_err() {
            remove_snapshot(self.performer_factory.directory(), self.id).await;
        }
        opened
    }

    async fn open_host(&self, source: TaskSource) -> Result<LocalTaskHost, Failure> {
        let Self { args, id, performer_factory, .. } = *self;
        let sessions = performer_factory.sessions();
        let host = match source {
            TaskSource::Task(id) => LocalTaskHost::open(sessions.store(), &id).await,
            TaskSource::Contract(contract) => {
                performer_factory.check_models(&contract).await?;
                let base = self.resolve_base(Some(&contract)).await?;
                let contract = contract.with_base(base);
                LocalTaskHost::create(sessions.store(), id.clone(), contract).await
            }
            TaskSource::Goal(goal) => {
                let approval = DraftApproval {
                    prompter: self.prompter,
                    interrupts: self.interrupts,
                    candidates: candidate_plans(args),
                    process_env: self.process_env,
                };
                let models = read_models(args)?;
                // Checked before the draft, which costs money.
                let checked = Contract::new("draft").with_models(models.clone());
                checked.check().map_err(|error| contract_failure(&error, args.models.as_deref()))?;
                performer_factory.check_models(&checked).await?;
                let performer = performer_factory.create(id)?.with_draft_models(models);
                let contract = approval
                    .draft_contract(&performer, self.resolve_base(None).await?, &goal, args.yes)
                    .await?;
                LocalTaskHost::create(sessions.store(), id.clone(), contract).await
            }
        };
        match host {
            Ok(host) => Ok(host),
            Err(error) => Err(open_failure(sessions, &error, id).await),
        }
    }

    async fn resolve_base(&self, given: Option<&Contract>) -> Result<BaseCommit, Failure> {
        let Self { args, id, performer_factory, .. } = *self;
        self.interrupts.race(resolve_base(given, args, performer_factory.directory(), id)).await
    }
}

/// Removes the snapshot of the local changes, which no task uses. A reference that stays is no reason for another failure.
pub(super) async fn remove_snapshot(directory: &LocalDirectory, id: &SessionId) {
    let _ = UserRepository::remove_snapshot(&directory.environment, &directory.path, id.as_str()).await;
}

/// Task that the flags select.
pub(super) enum TaskSource {
    /// A recorded task.
    Task(SessionId),
    /// A new task with this contract.
    Contract(Box<Contract>),
    /// A new task whose contract must be drafted.
    Goal(String),
}

pub(super) async fn select_source(args: &RunTaskArgs, sessions: &Sessions) -> Result<TaskSource, Failure> {
    if let Some(prefix) = &args.task {
        return Ok(TaskSource::Task(find(sessions, prefix).await?));
    }
    if let Some(contract) = read_contract(args)? {
        return Ok(TaskSource::Contract(Box::new(contract)));
    }
    draft::require_approver(args.yes)?;
    Ok(TaskSource::Goal(prompt_source::read(&args.run.prompt)?))
}

/// Returns the contract of the flags; `None` if they have a goal alone.
pub(super) fn read_contract(args: &RunTaskArgs) -> Result<Option<Contract>, Failure> {
    if let Some(path) = &args.contract {
        let text = process_env::read_text("contract", path)?;
        let contract = Contract::parse(&text);
        return contract.map(Some).map_err(|error| contract_failure(&error, Some(path.as_path())));
    }
    if args.check.is_empty() {
        return Ok(None);
    }
    let goal = prompt_source::read(&args.run.prompt)?;
    let numbered = args.check.iter().enumerate();
    let contract = numbered.fold(Contract::new(goal), |contract, (number, command)| {
        contract.with_check(TaskCheck::new(format!("check {}", number + 1), command))
    });
    Ok(Some(contract.with_candidates(candidate_plans(args)).with_models(read_models(args)?)))
}

/// Returns the models of the flags.
fn read_models(args: &RunTaskArgs) -> Result<ModelPlans, Failure> {
    let Some(path) = &args.models else { return Ok(ModelPlans::default()) };
    let text = process_env::read_text("models", path)?;
    ModelPlans::parse(&text).map_err(|error| contract_failure(&error, Some(path.as_path())))
}

fn candidate_plans(args: &RunTaskArgs) -> Vec<CandidatePlan> {
    vec![CandidatePlan::default(); usize::from(args.candidates.unwrap_or(1))]
}

/// Returns the state of the repository that a task starts from.
pub(super) async fn resolve_base(
    contract: Option<&Contract>,
    args: &RunTaskArgs,
    directory: &LocalDirectory,
    id: &SessionId,
) -> Result<BaseCommit, Failure> {
    if let Some(base) = contract.and_then(|contract| contract.base.clone()) {
        return Ok(base);
    }
    let found = UserRepository::find(Arc::clone(&directory.environment), &directory.path).await;
    let found = found.map_err(|error| Failure::usage(error.to_string()))?;
    let commit = match (args.changes, found.changed) {
        (true, 1..) => {
            let snapshot = found.snapshot(id.as_str()).await.or_failed("the local changes cannot be read")?;
            if !snapshot.left_out.is_empty() {
                console::notice(&format!(
                    "the task starts without the files of the repositories in {}: git adds no files of another repository",
                    snapshot.left_out.join(", ")
                ));
            }
            snapshot.commit
        }
        (false, 1..) => {
            console::notice(&format!(
                "the task starts without {}; `--changes` includes them",
                pintle_tui::render::plural(found.changed as u64, "local change")
            ));
            found.head.clone()
        }
        (_, 0) => found.head.clone(),
    };
    Ok(BaseCommit::new(found.root.display().to_string(), commit))
}
