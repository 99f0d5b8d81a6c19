//! Tasks with evidence, as the server returns them.

use pintle_agent::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct TaskInfo {
    /// Id.
    pub id: SessionId,
    /// First line of the goal.
    pub title: String,
    /// State as text, such as `under way`, `waits for a person` or `done`.
    pub state: String,
    /// Whether a process has the task open. If not, the task resumes when it is run again.
    pub running: bool,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its newest input.
    pub updated_at: Timestamp,
}

/// Page of a list of tasks, the newest first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct TaskPage {
    /// Tasks.
    pub tasks: Vec<TaskInfo>,
    /// Cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

/// A task, with its report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct TaskDetail {
    /// The task.
    #[serde(flatten)]
    pub task: TaskInfo,
    /// Gate that waits for a reviewer's decision.
    pub gate: Option<TaskGate>,
    /// The report, in the form of `pintle task report --output json`.
    pub report: Value,
}

/// Gate that waits for a reviewer's decision.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct TaskGate {
    /// `anchor` before work on the goal starts, `result` before the result counts.
    pub name: String,
    /// Position in the journal at which the gate was opened.
    pub place: u64,
    /// Selected candidate, at the gate `result`.
    pub candidate: Option<usize>,
}

/// Decision on a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateDecision {
    /// The task continues.
    Approve,
    /// The task tries again with the required changes. It ends without them, or if the gate allows no second attempt.
    Refuse {
        /// Required changes.
        words: Option<String>,
    },
}

#[derive(Serialize)]
pub(crate) struct SteerBody<'a> {
    pub(crate) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) candidate: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct GateBody<'a> {
    gate: &'a str,
    place: u64,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
}

impl<'a> GateBody<'a> {
    pub(crate) fn new(gate: &'a TaskGate, decision: GateDecision) -> Self {
        let (decision, words) = match decision {
            GateDecision::Approve => ("approve", None),
            GateDecision::Refuse { words } => ("refuse", words),
        };
        Self { gate: &gate.name, place: gate.place, decision, words }
    }
}

#[derive(Serialize)]
pub(crate) struct CancelBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
}
