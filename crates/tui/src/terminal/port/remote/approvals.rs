//! Calls that wait for a decision on the server.

use pintle_agent::{ApprovalRequest, SessionId, SubagentOrigin};
use pintle_client::{Approval, Client};
use pintle_tools::pipeline::DryRun;
use pintle_tools::{ChangeKind, Effect, FileChange, SandboxSide};
use serde_json::{Value, json};

use crate::terminal::approvals::RequestDecision;

/// Returns a call for the conversation. Rules for the session cannot be added remotely, so none are offered.
pub(super) fn request(approval: Approval, session: &SessionId) -> ApprovalRequest {
    let effect = effect(&approval.arguments);
    let Approval { call_id, tool_name, arguments, fingerprint, .. } = approval;
    let mut request = ApprovalRequest::new(call_id, tool_name, fingerprint)
        .with_effect(effect)
        .with_arguments(arguments)
        .with_reason(approval.reason)
        .with_origin((approval.session != *session).then(|| origin(&approval.session, session)).flatten());
    request.sandbox = approval.sandbox.and_then(|side| side_of(&side));
    request.writes = approval.writes.into_iter().map(Into::into).collect();
    if let Some(diff) = approval.diff {
        let change = FileChange::new(String::new(), ChangeKind::Modified, diff);
        request.dry_run = Some(DryRun::new(vec![change]));
    }
    request
}

/// Returns the effect of a call, which decides how its arguments are shown.
fn effect(arguments: &Value) -> Effect {
    let is_command = ["command", "cmd"].iter().any(|name| arguments.get(name).is_some_and(Value::is_string));
    if is_command { Effect::Execute } else { Effect::Write }
}

fn side_of(side: &str) -> Option<SandboxSide> {
    serde_json::from_value(Value::String(side.to_owned())).ok()
}

/// Returns the subagent that makes a call, with the data that the server provides.
fn origin(subagent: &SessionId, parent: &SessionId) -> Option<SubagentOrigin> {
    let origin = json!({"agent_id": "subagent", "session_id": subagent, "parent": parent, "depth": 1});
    serde_json::from_value(origin).ok()
}

/// Decides on a call on the server.
///
/// The error is the reason why the decision was rejected, for the user.
pub(super) async fn decide(
    client: &Client,
    session: &SessionId,
    decided: RequestDecision,
) -> Result<(), String> {
    let RequestDecision { request, decision, rules } = decided;
    if !rules.is_empty() {
        return Err("rules cannot be added to a session of a server: answer yes or no".to_owned());
    }
    let session = request.origin.as_ref().map_or(session, |origin| &origin.session_id);
    let decided = client.decide(session, &request.call_id, request.fingerprint, decision).await;
    decided.map_err(|error| error.to_string())
}
