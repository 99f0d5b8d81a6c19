//! Calls that wait for a decision.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use pintle_agent::{ApprovalRequest, Decision, PendingApproval, PostedInput, SessionId};
use pintle_llm::Fingerprint;
use pintle_store::{Filter, Page, StoredJournal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extractors::{IdempotencyKey, Json, Path};
use super::list::FoundSession;
use super::openapi::Operation;
use super::{App, Caller, TokenScope, accepted_response, json};
use crate::problem::{CONFLICT, INVALID, Problem};

/// Maximum number of subagents of one session that are searched, newest first.
const MAX_SUBAGENTS: usize = 500;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/sessions/{id}/approvals",
            "listApprovals",
            TokenScope::Read,
            "List the calls that wait for a decision, in the session and in its subagents",
            get(list),
        )
        .answers::<ApprovalList>(200)
        .with_problems(&[404]),
        Operation::new(
            "post",
            "/v1/sessions/{id}/approvals/{call_id}",
            "decide",
            TokenScope::Approve,
            "Decide on a call; only the first decision counts",
            post(decide),
        )
        .with_body::<DecisionBody>()
        .with_problems(&[404, 409]),
    ]
}

/// A call that waits for a decision.
#[derive(Debug, Serialize, JsonSchema)]
struct ApprovalView {
    /// The model's id of the call.
    call_id: String,
    /// Fingerprint of the call, which a decision names.
    fingerprint: String,
    /// Session that makes the call: a subagent, perhaps.
    session: String,
    tool_name: String,
    arguments: Value,
    /// Reason why a decision is needed.
    reason: String,
    /// On which side of the sandbox the command would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<String>,
    /// Absolute paths of the files that it may change.
    writes: Vec<String>,
    /// Rules that together name exactly calls like this one.
    suggested_rules: Vec<String>,
    /// Changes that it would make now, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ApprovalList {
    approvals: Vec<ApprovalView>,
}

/// A decision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "if" = {"properties": {"decision": {"const": "change"}}},
    "then" = {
        "required": ["arguments"],
        "properties": {"arguments": {"type": "object"}, "reason": {"type": "null"}},
    },
    "else" = {
        "properties": {"arguments": {"type": "null"}},
        "if": {"properties": {"decision": {"const": "approve"}}},
        "then": {"properties": {"reason": {"type": "null"}}},
    },
))]
struct DecisionBody {
    /// Fingerprint of the call that was seen.
    #[schemars(extend("pattern" = "^[0-9a-f]{1,32}$"))]
    fingerprint: String,
    /// The decision.
    decision: DecisionName,
    /// Words to a denial, which the model gets.
    #[serde(default)]
    reason: Option<String>,
    /// Arguments that replace the arguments of the call. The changed call is judged as a new call, and also requires the
    /// scope `run`.
    #[serde(default)]
    arguments: Option<serde_json::Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DecisionName {
    /// Let it run, once.
    #[serde(alias = "allow")]
    Approve,
    /// Do not run it.
    Deny,
    /// Let it run, once, with other arguments.
    Change,
}

impl DecisionBody {
    fn decision(&self) -> Result<Decision, Problem> {
        match (self.decision, &self.arguments, &self.reason) {
            (DecisionName::Approve, None, None) => Ok(Decision::Approve),
            (DecisionName::Deny, None, reason) => Ok(Decision::Deny { reason: reason.clone() }),
            (DecisionName::Change, Some(arguments), None) => {
                Ok(Decision::Change { arguments: Value::Object(arguments.clone()) })
            }
            _ => Err(Problem::new(INVALID, "`reason` goes with `deny`, and `arguments` go with `change`")),
        }
    }
}

fn text_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

impl ApprovalView {
    fn from_request(session: &SessionId, request: &ApprovalRequest) -> Self {
        Self {
            call_id: request.call_id.clone(),
            fingerprint: text_of(&request.fingerprint),
            session: session.to_string(),
            tool_name: request.tool_name.clone(),
            arguments: request.arguments.clone(),
            reason: request.reason.clone(),
            sandbox: request.sandbox.as_ref().map(text_of),
            writes: request.writes.iter().map(|path| path.display().to_string()).collect(),
            suggested_rules: request.suggested_rules.clone(),
            diff: request
                .dry_run
                .as_ref()
                .map(|run| run.changes.iter().map(|change| change.diff.as_str()).collect()),
        }
    }

    fn from_record(session: &SessionId, pending: PendingApproval) -> Self {
        Self {
            call_id: pending.call_id,
            fingerprint: text_of(&pending.fingerprint),
            session: session.to_string(),
            tool_name: pending.tool_name,
            arguments: pending.arguments,
            reason: pending.reason,
            sandbox: pending.sandbox.as_ref().map(text_of),
            writes: Vec::new(),
            suggested_rules: pending.suggested_rules,
            diff: None,
        }
    }
}

impl App {
    /// Returns the waiting calls of the session and of its subagents.
    async fn approvals(&self, found: &FoundSession) -> Result<Vec<ApprovalView>, Problem> {
        let live = self.hub.live(&found.root);
        if let Some(live) = &live
            && let Some(handle) = live.handle.of_session(&found.summary.id)
        {
            let waiting = handle.tree_approvals();
            let mut approvals: Vec<_> =
                waiting.iter().map(|(id, request)| ApprovalView::from_request(id, request)).collect();
            // The reopened session has not asked again yet. A decision on a recorded call is kept until the call is
            // prepared.
            if approvals.is_empty() && live.has_unasked_calls() {
                approvals.extend(self.recorded_approvals(&found.summary.id).await?);
            }
            return Ok(approvals);
        }
        let store = self.hub.store.as_ref();
        let mut approvals = Vec::new();
        let mut sessions = vec![found.summary.clone()];
        while let Some(summary) = sessions.pop() {
            if summary.properties.contains_key(StoredJournal::PENDING_APPROVALS) {
                approvals.extend(self.recorded_approvals(&summary.id).await?);
            }
            let below = Filter::default().with_parent(summary.id);
            sessions.extend(store.list(&below, &Page::of(MAX_SUBAGENTS)).await?);
        }
        Ok(approvals)
    }

    /// Returns the waiting calls of a session according to its record.
    async fn recorded_approvals(&self, id: &SessionId) -> Result<Vec<ApprovalView>, Problem> {
        let pending = self.replay(id).await?.pending_approvals().into_iter();
        Ok(pending.map(|pending| ApprovalView::from_record(id, pending)).collect())
    }
}

async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    Ok(json(&ApprovalList { approvals: app.approvals(&found).await? }))
}

async fn decide(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((id, call_id)): Path<(String, String)>,
    key: IdempotencyKey,
    Json(body): Json<DecisionBody>,
) -> Result<Response, Problem> {
    if body.arguments.is_some() {
        // A call with other arguments is a new call.
        caller.require(TokenScope::Run)?;
    }
    let found = app.find(&caller, &id).await?;
    let decision = body.decision()?;
    let fingerprint: Fingerprint =
        serde_json::from_value(Value::String(body.fingerprint.clone())).map_err(|_| {
            Problem::new(INVALID, "fingerprint: expected a fingerprint from the list of approvals")
        })?;
    let waits = |approval: &ApprovalView| {
        approval.session == found.summary.id.as_str()
            && approval.call_id == call_id
            && approval.fingerprint == body.fingerprint
    };
    if !app.approvals(&found).await?.iter().any(waits)
        || !app.hub.decides_first(&found.summary.id, &call_id, fingerprint, &key.input_id())
    {
        let detail = format!(
            "`{call_id}` waits for no decision with this fingerprint: it was decided on, or it is another call"
        );
        return Err(Problem::new(CONFLICT, detail));
    }
    let input = PostedInput::Decision { call_id, fingerprint, decision, by: caller.principal() };
    app.post(&found.summary.id, &found.root, &key, input).await?;
    Ok(accepted_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_words_of_an_approval_are_accepted() {
        for (word, is_approved) in [("approve", true), ("allow", true), ("deny", false)] {
            let body = json!({"fingerprint": "f", "decision": word});
            let body: DecisionBody = serde_json::from_value(body).unwrap();
            assert_eq!(matches!(body.decision(), Ok(Decision::Approve)), is_approved, "{word}");
        }
    }
}
