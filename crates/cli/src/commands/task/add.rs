//! `pintle task add`: queues tasks, which workers run.

mod task_files;

use pintle_agent::SessionId;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::Sessions;
use pintle_host::{Host, SessionSpec};
use pintle_tui::console;
use pintle_workflow::contract::Contract;
use pintle_workflow::{LocalDirectory, LocalTaskHost};
use serde_json::{Value, json};

use super::new_task::{self, TaskStart};
use crate::arguments::{AddTaskArgs, ListFormat};
use crate::exit::Exit;
use crate::input::prompt_source;

/// Queues the tasks. All contracts are checked before the first task is recorded. After a failure of the store, the output
/// has the tasks that are queued.
pub(super) async fn add(args: AddTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    #[cfg(feature = "restate")]
    let engine = args.restate.clone().or_else(|| process_env.variable(super::engine::RESTATE));
    #[cfg(feature = "restate")]
    if let Some(url) = &engine {
        super::engine::require_engine(url).await?;
    }
    let mut spec = SessionSpec::default();
    spec.environment.dir.clone_from(&args.dir);
    let directory = LocalDirectory::from_settings(&spec, &Host::new(process_env.clone()))?;
    let contracts = match &args.from {
        Some(source) => {
            task_files::read_contracts(source, &args.terms, directory.environment.as_ref()).await?
        }
        None => vec![read_contract(&args)?],
    };
    let sessions = Sessions::open(process_env).await?;
    let start = TaskStart::find(&directory, args.terms.changes).await?;
    new_task::remove_leftovers(&directory, &sessions, process_env).await;
    let queue = TaskQueue { args: &args, sessions: &sessions, directory: &directory, start: &start };
    let (count, mut rows, mut failed) = (contracts.len(), Vec::new(), None);
    for contract in contracts {
        match queue.record(contract).await {
            Ok((id, title)) => {
                rows.push(json!({ "id": id.as_str(), "title": title }));
                #[cfg(feature = "restate")]
                if let Some(url) = &engine {
                    failed = super::run::submit(url, &sessions, &id, process_env).await.err();
                }
            }
            Err(failure) => failed = Some(failure),
        }
        if failed.is_some() {
            break;
        }
    }
    let queued = rows.len();
    console::print(&render(&rows, args.output)?).await?;
    match failed {
        Some(failure) if count > 1 => Err(failure
            .with_hint(&format!("{queued} of {count} tasks are recorded; `pintle task list` shows them"))),
        Some(failure) => Err(failure),
        None => Ok(Exit::Done),
    }
}

/// Returns the contract of the flags. Nothing is drafted: without checks, the anchor is the only evidence.
fn read_contract(args: &AddTaskArgs) -> Result<Contract, Failure> {
    match new_task::read_contract(&args.terms, &args.prompt)? {
        Some(contract) => Ok(contract),
        None => new_task::contract_of_goal(prompt_source::read(&args.prompt)?, &args.terms),
    }
}

fn render(rows: &[Value], format: ListFormat) -> Result<String, Failure> {
    match format {
        ListFormat::Json => json_line(&rows),
        ListFormat::Text => {
            let text = |row: &Value, name: &str| {
                sanitize(row.get(name).and_then(Value::as_str).unwrap_or_default()).into_owned()
            };
            Ok(rows.iter().map(|row| format!("{}  {}\n", text(row, "id"), text(row, "title"))).collect())
        }
    }
}

/// Records tasks in the store.
struct TaskQueue<'a> {
    args: &'a AddTaskArgs,
    sessions: &'a Sessions,
    directory: &'a LocalDirectory,
    start: &'a TaskStart,
}

impl TaskQueue<'_> {
    /// Records a task. Returns its id and its title.
    async fn record(&self, contract: Contract) -> Result<(SessionId, String), Failure> {
        let id = SessionId::generate();
        let title = contract.goal.trim().lines().next().unwrap_or_default().to_owned();
        if let Err(failure) = self.create(&id, contract).await {
            new_task::remove_snapshot(self.directory, &id).await;
            return Err(failure);
        }
        Ok((id, title))
    }

    async fn create(&self, id: &SessionId, mut contract: Contract) -> Result<(), Failure> {
        if contract.base.is_none() {
            let base = self.start.resolve(id, Some(&contract)).await?;
            contract.base = Some(base);
        }
        new_task::set_default_model(&mut contract, self.args.model.as_ref());
        let created = LocalTaskHost::create(self.sessions.store(), id.clone(), contract).await;
        let host = created.map_err(|error| super::host_failure(&error, id))?;
        // A worker opens it.
        host.close().await.map_err(|error| super::host_failure(&error, id))
    }
}
