//! A recorded task, with the data of its journal that requests need.

use std::collections::HashSet;

use pintle_agent::{SessionId, Timestamp};
use pintle_store::{SessionStore, StoreError};
use pintle_workflow::contract::DecisionGate;
use pintle_workflow::task::Task;
use pintle_workflow::{TaskHostError, TaskLine, TaskReader};

use super::GateName;

/// A task, and further data of its journal.
#[derive(Debug)]
pub(super) struct TaskRecord {
    pub(super) task: Task,
    /// Time of the newest input.
    pub(super) at: Option<Timestamp>,
    /// Open gate, and its place in the journal.
    pub(super) gate: Option<(DecisionGate, u64)>,
    /// Ids of the posted inputs that were applied.
    pub(super) posted: HashSet<String>,
    /// Damage of the journal. `task` is the state before the damage.
    pub(super) damage: Option<StoreError>,
}

impl From<DecisionGate> for GateName {
    fn from(gate: DecisionGate) -> Self {
        match gate {
            DecisionGate::Anchor => Self::Anchor,
            DecisionGate::Result => Self::Result,
        }
    }
}

/// Reads a task up to the first damaged line of its journal, even while a process has it open.
pub(super) async fn read_task_record(
    store: &dyn SessionStore,
    id: &SessionId,
) -> Result<TaskRecord, TaskHostError> {
    let not_a_task = || TaskHostError::NotATask { id: id.clone(), reason: "it has no contract".to_owned() };
    let mut reader = TaskReader::open(store, id).await?;
    let mut recorded: Option<TaskRecord> = None;
    loop {
        let line = match (reader.next().await, &mut recorded) {
            (Ok(Some(line)), _) => line,
            (Ok(None), _) => break,
            (Err(TaskHostError::Store(error)), Some(recorded)) if error.is_damage() => {
                recorded.damage = Some(error);
                break;
            }
            (Err(error), _) => return Err(error),
        };
        match line {
            TaskLine::Contract(contract) => {
                let task = Task::new(*contract)?;
                recorded =
                    Some(TaskRecord { task, at: None, gate: None, posted: HashSet::new(), damage: None });
            }
            TaskLine::Input(input) => {
                let recorded = recorded.as_mut().ok_or_else(not_a_task)?;
                recorded.task.apply(input.input);
                recorded.at = Some(input.at);
                recorded.posted.extend(input.posted);
                let open = recorded.task.pending().gate;
                let known = recorded.gate.filter(|(gate, _)| Some(*gate) == open);
                recorded.gate = known.or(open.map(|gate| (gate, input.seq)));
            }
            // A later version of the journal has a higher number and is refused.
            _ => {}
        }
    }
    recorded.ok_or_else(not_a_task)
}
