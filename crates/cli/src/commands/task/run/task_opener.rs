//! The task that the flags of `pintle task run` ask for.

use pintle_agent::SessionId;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::Sessions;
use pintle_tui::approve::Prompter;
use pintle_tui::interrupt::Interrupts;
use pintle_workflow::contract::{BaseCommit, Contract};
use pintle_workflow::{HostPerformerFactory, LocalTaskHost};

use crate::arguments::RunTaskArgs;
use crate::commands::task::draft::{self, DraftApproval};
use crate::commands::task::new_task::{self, TaskStart};
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
        let Self { performer_factory, process_env, .. } = *self;
        new_task::remove_leftovers(performer_factory.directory(), performer_factory.sessions(), process_env)
            .await;
        let opened = self.open_host(source).await;
        if is_new && opened.is_err() {
            new_task::remove_snapshot(performer_factory.directory(), self.id).await;
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
                    candidates: new_task::candidate_plans(&args.terms),
                    format: args.run.output,
                    process_env: self.process_env,
                };
                let models = new_task::read_models(&args.terms)?;
                // Checked before the draft, which costs money.
                let checked = Contract::new("draft").with_models(models.clone());
                checked.check().map_err(|error| contract_failure(&error, args.terms.models.as_deref()))?;
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
        if let Some(base) = given.and_then(|contract| contract.base.clone()) {
            return Ok(base);
        }
        let Self { args, id, performer_factory, .. } = *self;
        let resolving = async {
            let start = TaskStart::find(performer_factory.directory(), args.terms.changes).await?;
            start.resolve(id, given).await
        };
        self.interrupts.race(resolving).await
    }
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
    if let Some(contract) = new_task::read_contract(&args.terms, &args.run.prompt)? {
        return Ok(TaskSource::Contract(Box::new(contract)));
    }
    draft::require_approver(args.yes)?;
    Ok(TaskSource::Goal(prompt_source::read(&args.run.prompt)?))
}
