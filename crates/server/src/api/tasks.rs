//! Tasks with evidence in the same store. Operations list, read and follow tasks, and send signals to them. Other processes
//! run the tasks.

mod events;
mod feed;
mod record;
mod signals;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use pintle_agent::SessionId;
use pintle_store::{Filter, Page, StoreError, Summary};
use pintle_workflow::anchor::Anchor;
use pintle_workflow::contract::DecisionGate;
use pintle_workflow::report::TaskReport;
use pintle_workflow::repository::{RepositoryError, read_blob};
use pintle_workflow::{KIND, KIND_TASK, TaskHostError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::record::{TaskRecord, read_task_record};
use super::extractors::{Path, Query};
use super::list::{cursor_of, parse_cursor};
use super::openapi::{CURSOR, Operation, Parameter};
use super::{App, Caller, TokenScope, json};
use crate::hub::TENANT;
use crate::problem::{FAILED, INVALID, NOT_FOUND, Problem};

/// Default and maximum number of tasks of a page. The journal of each task is read.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;

const LIST: &[Parameter] = &[
    Parameter::number("limit", 1, 100, "Most tasks of the page, up to 100; default 50"),
    Parameter::matching("cursor", CURSOR, "`next` of the page before"),
];

pub(super) fn operations() -> Vec<Operation> {
    let read = |path, id, summary, handler| {
        Operation::new("get", path, id, TokenScope::Read, summary, handler).with_problems(&[404, 409])
    };
    let mut operations = vec![
        Operation::new(
            "get",
            "/v1/tasks",
            "listTasks",
            TokenScope::Read,
            "List tasks with evidence, the newest first",
            get(list),
        )
        .with_query(LIST)
        .answers::<TaskList>(200),
        read("/v1/tasks/{id}", "readTask", "Read a task, with its report", get(read_one))
            .answers::<TaskDetail>(200),
        read("/v1/tasks/{id}/report", "reportTask", "Read the report about a task as text", get(report))
            .answers_as(200, &["text/markdown"]),
        read(
            "/v1/tasks/{id}/candidates/{candidate}/diff",
            "diffCandidate",
            "Read the newest changes of a candidate as a patch, on top of the anchor",
            get(diff),
        )
        .answers_as(200, &["text/x-diff"]),
    ];
    operations.extend(events::operations());
    operations.extend(signals::operations());
    operations
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskView {
    /// Id.
    id: String,
    /// First line of the goal.
    title: String,
    /// State: `under way`, `waits for a person`, `done`, `blocked`, `at its limit`, `cancelled`, `failed` or `cannot be read`.
    state: &'static str,
    /// Whether a process has it open. Otherwise, the task resumes when it is run again.
    running: bool,
    /// Time of its creation, in RFC 3339.
    created_at: String,
    /// Time of its newest input.
    updated_at: String,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskList {
    tasks: Vec<TaskView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A task, with its report.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskDetail {
    #[serde(flatten)]
    task: TaskView,
    /// Gate that waits for a person; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<GateView>,
    /// The report, in the form of `pintle task report --output json`.
    report: Value,
}

/// A gate that waits for a person.
#[derive(Debug, Serialize, JsonSchema)]
struct GateView {
    /// Gate.
    name: GateName,
    /// Position in the journal at which the gate was opened. A decision with this position does not apply if the gate was
    /// opened again since.
    place: u64,
    /// Candidate that was chosen, at the gate of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<usize>,
}

/// Point at which a task waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum GateName {
    /// Before anybody works on the goal.
    Anchor,
    /// Before the result counts.
    Result,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListQuery {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Returns whether the summary is of a task of the caller's tenant.
fn is_task_of(summary: &Summary, caller: &Caller) -> bool {
    let properties = &summary.properties;
    properties.get(KIND).is_some_and(|kind| kind == KIND_TASK)
        && properties.get(TENANT) == caller.tenant.as_ref()
}

/// Returns the problem for an error of a task.
fn problem_of(error: TaskHostError) -> Problem {
    if let TaskHostError::Store(error) = error {
        return error.into();
    }
    Problem::internal(FAILED, "the journal of the task cannot be read by this version", &error)
}

impl App {
    /// Finds a task. Tasks of other tenants count as missing.
    async fn find_task(&self, caller: &Caller, id: &str) -> Result<Summary, Problem> {
        let missing = || Problem::new(NOT_FOUND, format!("there is no task `{id}`"));
        match self.hub.store.summary(&SessionId::new(id)).await {
            Ok(summary) => summary.filter(|summary| is_task_of(summary, caller)).ok_or_else(missing),
            // No task has an id that cannot be stored.
            Err(StoreError::InvalidId(_)) => Err(missing()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a task with an intact journal. Returns a problem if the journal is damaged.
    async fn task_record(&self, id: &SessionId) -> Result<TaskRecord, Problem> {
        let mut recorded = self.intact_task_record(id).await?;
        match recorded.damage.take() {
            Some(damage) => Err(damage.into()),
            None => Ok(recorded),
        }
    }

    /// Reads a task up to the first damaged line of its journal.
    async fn intact_task_record(&self, id: &SessionId) -> Result<TaskRecord, Problem> {
        read_task_record(self.hub.store.as_ref(), id).await.map_err(problem_of)
    }

    /// Returns the client view of a task. `recorded` is `None` if the task cannot be read.
    async fn task_view(&self, summary: &Summary, recorded: Option<&TaskRecord>) -> Result<TaskView, Problem> {
        let updated_at = recorded.and_then(|recorded| recorded.at).unwrap_or(summary.updated_at);
        Ok(TaskView {
            id: summary.id.to_string(),
            title: summary.title.clone(),
            state: recorded.map_or("cannot be read", |recorded| recorded.task.state()),
            running: self.hub.store.holder(&summary.id).await?.is_some(),
            created_at: summary.created_at.to_string(),
            updated_at: updated_at.to_string(),
        })
    }

    async fn list_tasks(&self, caller: &Caller, query: ListQuery) -> Result<TaskList, Problem> {
        let limit = query.limit.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(Problem::new(INVALID, format!("limit: expected 1 to {MAX_PAGE}")));
        }
        let mut filter = Filter::default().with_property(KIND, KIND_TASK);
        if let Some(tenant) = &caller.tenant {
            filter = filter.with_property(TENANT, tenant);
        }
        let mut page = Page::of(MAX_PAGE);
        page.after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        let mut found = Vec::new();
        loop {
            let summaries = self.hub.store.list(&filter, &page).await?;
            let is_last = summaries.len() < MAX_PAGE;
            page.after = summaries.last().map(|summary| (summary.updated_at, summary.id.clone()));
            found.extend(summaries.into_iter().filter(|summary| is_task_of(summary, caller)));
            if is_last || found.len() > limit {
                break;
            }
        }
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(cursor_of);
        let mut tasks = Vec::new();
        for summary in &found {
            tasks.push(self.listed_task(summary).await?);
        }
        Ok(TaskList { tasks, next })
    }

    /// Returns a task of a list, even if it cannot be read.
    async fn listed_task(&self, summary: &Summary) -> Result<TaskView, Problem> {
        match read_task_record(self.hub.store.as_ref(), &summary.id).await {
            Ok(recorded) => self.task_view(summary, Some(&recorded)).await,
            Err(error) => {
                tracing::debug!(task = %summary.id, %error, "a task cannot be read");
                self.task_view(summary, None).await
            }
        }
    }
}

async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    Ok(json(&app.list_tasks(&caller, query).await?))
}

async fn read_one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let summary = app.find_task(&caller, &id).await?;
    let recorded = app.intact_task_record(&summary.id).await?;
    let task = app.task_view(&summary, Some(&recorded)).await?;
    let report =
        serde_json::to_value(TaskReport::from_task(&recorded.task).with_damage(recorded.damage.as_ref()));
    let report = report.map_err(|error| problem_of(error.into()))?;
    let gate = recorded.gate.map(|(gate, place)| GateView {
        name: gate.into(),
        place,
        candidate: recorded.task.best_candidate().filter(|_| gate == DecisionGate::Result),
    });
    Ok(json(&TaskDetail { task, gate, report }))
}

async fn report(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id = app.find_task(&caller, &id).await?.id;
    let recorded = app.intact_task_record(&id).await?;
    let report = TaskReport::from_task(&recorded.task).with_damage(recorded.damage.as_ref()).with_id(&id);
    // A report is complete without the test of the anchor.
    let anchor = match recorded.task.anchor().and_then(Anchor::patch) {
        Some(patch) => read_blob(patch, app.hub.store.blobs(&id).as_ref()).await.ok(),
        None => None,
    };
    let anchor = anchor.map(|patch| String::from_utf8_lossy(&patch).into_owned());
    let text = report.with_anchor_patch(anchor).to_markdown();
    Ok(attachment_response("text/markdown; charset=utf-8", text.into_bytes()))
}

async fn diff(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((id, candidate)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let id = app.find_task(&caller, &id).await?.id;
    let task = app.intact_task_record(&id).await?.task;
    let number = candidate.parse::<usize>().ok().filter(|number| *number < task.candidates().len());
    let number = number.ok_or_else(|| {
        Problem::new(NOT_FOUND, format!("the task has no candidate `{candidate}`: the first one is 0"))
    })?;
    let diff = task.newest_change(number).ok_or_else(|| {
        Problem::new(NOT_FOUND, format!("candidate {candidate} has changed nothing so far"))
    })?;
    // An empty patch is not stored.
    let patch = match diff.patch.bytes {
        0 => Vec::new(),
        _ => read_blob(&diff.patch, app.hub.store.blobs(&id).as_ref()).await.map_err(lost)?,
    };
    Ok(attachment_response("text/x-diff", patch))
}

fn lost(error: RepositoryError) -> Problem {
    if let RepositoryError::Unfit(reason) = error {
        return Problem::new(NOT_FOUND, reason);
    }
    Problem::internal(FAILED, "the patch cannot be read", &error)
}

/// Returns a document as an attachment, so that it does not open in this origin.
fn attachment_response(media_type: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = ([(CONTENT_TYPE, HeaderValue::from_static(media_type))], bytes).into_response();
    response.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    response
}
