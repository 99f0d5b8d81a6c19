//! Messages and decisions of users for tasks. Posted signals survive the server, and the process with the task applies each
//! of them once.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use pintle_agent::SessionId;
use pintle_llm::Fingerprint;
use pintle_store::StoreError;
use pintle_workflow::task::{GateAnswer, TaskSignal};
use pintle_workflow::{LocalTaskHost, TaskHostError, post_signal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::record::TaskRecord;
use super::{GateName, problem_of};
use crate::api::extractors::{IdempotencyKey, Json, Path};
use crate::api::openapi::{MAX_NUMBER, NOT_BLANK, Operation};
use crate::api::{App, Caller, TokenScope, accepted_response};
use crate::problem::{CONFLICT, INVALID, NO_CANDIDATE, Problem, TASK_ENDED};

/// Used in place of a call id to record the first decision on a gate.
const GATE: &str = "gate of a task";

/// Default reason of a cancellation.
const CANCELLED: &str = "a user cancelled it";

pub(super) fn operations() -> Vec<Operation> {
    let operation = |path, id, scope, summary, handler| {
        Operation::new("post", path, id, scope, summary, handler).with_problems(&[404, 409])
    };
    vec![
        operation(
            "/v1/tasks/{id}/steer",
            "steerTask",
            TokenScope::Run,
            "Say something to one candidate of a task, or to all",
            post(steer),
        )
        .with_body::<SteerBody>(),
        operation(
            "/v1/tasks/{id}/decide",
            "decideTask",
            TokenScope::Approve,
            "Decide on the gate at which a task waits; only the first decision counts",
            post(decide),
        )
        .with_body::<DecideBody>(),
        operation(
            "/v1/tasks/{id}/cancel",
            "cancelTask",
            TokenScope::Run,
            "Stop everything and end the task for good",
            post(cancel),
        )
        .with_body::<CancelBody>(),
    ]
}

/// Words to candidates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SteerBody {
    /// Words.
    #[schemars(extend("pattern" = NOT_BLANK))]
    text: String,
    /// Number of the candidate, from 0. Default: all.
    #[serde(default)]
    #[schemars(extend("maximum" = MAX_NUMBER))]
    candidate: Option<usize>,
}

/// A decision on a gate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "if" = {"properties": {"decision": {"const": "approve"}}},
    "then" = {"properties": {"words": {"type": "null"}}},
))]
struct DecideBody {
    /// Gate that was seen.
    gate: GateName,
    /// Its place, as it was seen: a gate that was opened again since is another one.
    #[serde(default)]
    #[schemars(extend("maximum" = MAX_NUMBER))]
    place: Option<u64>,
    /// The decision.
    decision: GateDecision,
    /// Required changes, with `refuse`; a refusal without words ends the task. An anchor that the contract names takes none.
    #[serde(default)]
    #[schemars(extend("pattern" = NOT_BLANK))]
    words: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GateDecision {
    /// Let the task continue.
    #[serde(alias = "allow")]
    Approve,
    /// Require changes, or end the task.
    Refuse,
}

/// End of a task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    /// Reason, for the report.
    #[serde(default)]
    #[schemars(extend("pattern" = NOT_BLANK))]
    reason: Option<String>,
}

/// Rejects an empty text.
fn require_text(name: &str, text: String) -> Result<String, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::new(INVALID, format!("{name}: expected some text")));
    }
    Ok(text)
}

impl App {
    /// Reads the task to which a signal is sent. Returns `None` if the task already has the signal of an earlier request
    /// with the same key.
    async fn task_for_signal(
        &self,
        caller: &Caller,
        id: &str,
        key: &IdempotencyKey,
    ) -> Result<Option<(SessionId, TaskRecord)>, Problem> {
        let id = self.find_task(caller, id).await?.id;
        let recorded = self.task_record(&id).await?;
        if recorded.posted.contains(&key.input_id()) {
            return Ok(None);
        }
        if recorded.task.outcome().is_some() {
            return Err(Problem::new(TASK_ENDED, format!("task `{id}` has ended")));
        }
        Ok(Some((id, recorded)))
    }

    async fn send_signal(
        &self,
        caller: &Caller,
        id: &SessionId,
        key: &IdempotencyKey,
        signal: &TaskSignal,
    ) -> Result<(), Problem> {
        let store = self.hub.store.as_ref();
        post_signal(store, id, &key.input_id(), signal, caller.principal()).await?;
        Ok(())
    }

    /// Applies the posted signals to a task that no process has open.
    async fn settle_task(&self, id: &SessionId) -> Result<(), Problem> {
        let store = self.hub.store.as_ref();
        if store.holder(id).await?.is_some() {
            return Ok(());
        }
        match LocalTaskHost::open(store, id).await {
            Ok(mut host) => host.settle().await.map(drop).map_err(problem_of),
            // Another process has opened the task meanwhile and applies the signals.
            Err(TaskHostError::Store(StoreError::InUse { .. })) => Ok(()),
            Err(error) => Err(problem_of(error)),
        }
    }
}

async fn steer(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<SteerBody>,
) -> Result<Response, Problem> {
    let text = require_text("text", body.text)?;
    let Some((id, recorded)) = app.task_for_signal(&caller, &id, &key).await? else {
        return Ok(accepted_response());
    };
    let count = recorded.task.candidates().len();
    if let Some(candidate) = body.candidate.filter(|candidate| *candidate >= count) {
        let detail = format!("candidate {candidate}: expected less than {count}");
        return Err(Problem::new(NO_CANDIDATE, detail));
    }
    app.send_signal(&caller, &id, &key, &TaskSignal::Steer { candidate: body.candidate, text }).await?;
    Ok(accepted_response())
}

async fn decide(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<DecideBody>,
) -> Result<Response, Problem> {
    let is_approved = body.decision == GateDecision::Approve;
    if is_approved && body.words.is_some() {
        return Err(Problem::new(INVALID, "`words` go with `refuse`"));
    }
    let words = body.words.map(|words| require_text("words", words)).transpose()?;
    let Some((id, recorded)) = app.task_for_signal(&caller, &id, &key).await? else {
        return Ok(accepted_response());
    };
    let is_seen = |(gate, place): &(_, u64)| {
        GateName::from(*gate) == body.gate && body.place.is_none_or(|seen| seen == *place)
    };
    let Some((gate, place)) = recorded.gate.filter(is_seen) else {
        let detail = "the task does not wait at this gate: it was decided on, or another one is open";
        return Err(Problem::new(CONFLICT, detail));
    };
    if words.is_some() && !recorded.task.is_changed_by_words(gate) {
        let detail = "`words`: the contract names the anchor, and words change only one that a model wrote";
        return Err(Problem::new(INVALID, detail));
    }
    // The gate stays open until a process applies the decision.
    let ticket = Fingerprint::from_display(format_args!("{gate:?} at {place}"));
    if !app.hub.decides_first(&id, GATE, ticket, &key.input_id()) {
        return Err(Problem::new(CONFLICT, "another request has decided on this gate"));
    }
    let told = app
        .send_signal(&caller, &id, &key, &TaskSignal::Decide(GateAnswer { gate, is_approved, words }))
        .await;
    if told.is_err() {
        app.hub.withdraw_decision(&id, GATE, ticket, &key.input_id());
    }
    told.map(|()| accepted_response())
}

async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<CancelBody>,
) -> Result<Response, Problem> {
    let reason = require_text("reason", body.reason.unwrap_or_else(|| CANCELLED.to_owned()))?;
    let Some((id, _)) = app.task_for_signal(&caller, &id, &key).await? else {
        return Ok(accepted_response());
    };
    app.send_signal(&caller, &id, &key, &TaskSignal::Cancel { reason }).await?;
    app.settle_task(&id).await?;
    Ok(accepted_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_words_of_an_approval_of_a_gate_are_accepted() {
        for (word, expected) in [
            ("approve", GateDecision::Approve),
            ("allow", GateDecision::Approve),
            ("refuse", GateDecision::Refuse),
        ] {
            let body = json!({"gate": "result", "decision": word});
            let body: DecideBody = serde_json::from_value(body).unwrap();
            assert_eq!(body.decision, expected, "{word}");
        }
    }
}
