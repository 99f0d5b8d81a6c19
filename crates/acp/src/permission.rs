//! Approval of calls by the client's user.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{ApprovalRequest, CallKind, Decision, SessionHandle};
use pintle_llm::{Fingerprint, error_chain};

use crate::calls;
use crate::client::Client;
use crate::error::ClientError;
use crate::session_entry::SessionEntry;
use crate::wire::{
    CallContent, CallStatus, CallUpdate, PermissionOption, PermissionOptionKind, PermissionOutcome,
    PermissionRequest, PermissionSelection,
};

/// Time that the session has to publish a request after it emitted its event.
const PUBLISH_TIME: Duration = Duration::from_secs(2);

/// Interval at which the published request is looked up.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(5);

/// Request for approval, as described by its event.
#[derive(Debug)]
pub(crate) struct PendingPermission {
    pub(crate) call_id: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) kind: CallKind,
    /// Id of the call for the client.
    pub(crate) shown_as: String,
    /// Session that makes the call.
    pub(crate) handle: SessionHandle,
}

/// Asks the client and submits the decision. The future is dropped once no decision is needed, which cancels the request
/// at the client.
pub(crate) async fn ask(client: Client, entry: Arc<SessionEntry>, asked: PendingPermission) {
    let Some(request) = find_published(&asked).await else { return };
    let is_always_offered = entry.controls.can_allow_always() && !request.suggested_rules.is_empty();
    let params = PermissionRequest {
        session_id: entry.id.clone(),
        tool_call: describe_call(&request, &asked, &entry),
        options: options(&request, is_always_offered),
    };
    let answer = client.request::<PermissionOutcome>("session/request_permission", &params).await;
    let decision = match answer.map(|answer| answer.outcome) {
        Ok(PermissionSelection::Selected { option_id: PermissionOptionKind::AllowOnce }) => Decision::Approve,
        Ok(PermissionSelection::Selected { option_id: PermissionOptionKind::AllowAlways })
            if is_always_offered =>
        {
            if let Err(error) = entry.controls.allow_always(&request).await {
                tracing::warn!(session = entry.id, error = error_chain(&error), "the rule was not added");
            }
            Decision::Approve
        }
        Ok(PermissionSelection::Selected { .. }) => Decision::Deny { reason: None },
        // The client cancels the turn, or is about to.
        Ok(PermissionSelection::Cancelled) => return entry.cancel(),
        // The session is suspended with the pending request.
        Err(ClientError::Disconnected) => return,
        Err(error) => {
            Decision::Deny { reason: Some(format!("the user could not be asked: {}", error_chain(&error))) }
        }
    };
    if let Err(error) = asked.handle.decide_exactly(&asked.call_id, asked.fingerprint, decision) {
        tracing::debug!(session = entry.id, %error, "the decision came too late");
    }
}

/// Returns the request, which the session publishes soon after its event; `None` if it was decided meanwhile.
async fn find_published(asked: &PendingPermission) -> Option<Arc<ApprovalRequest>> {
    let find = || {
        let fits = |request: &Arc<ApprovalRequest>| {
            request.call_id == asked.call_id && request.fingerprint == asked.fingerprint
        };
        asked.handle.approvals().into_iter().find(fits)
    };
    let search = async {
        loop {
            if let Some(request) = find() {
                return request;
            }
            tokio::time::sleep(PUBLISH_INTERVAL).await;
        }
    };
    tokio::time::timeout(PUBLISH_TIME, search).await.ok()
}

/// Returns the call with the reason and the dry run of the request.
fn describe_call(request: &ApprovalRequest, asked: &PendingPermission, entry: &SessionEntry) -> CallUpdate {
    let mut content = Vec::new();
    if !request.reason.is_empty() {
        content.push(CallContent::text(&request.reason));
    }
    if let Some(dry_run) = &request.dry_run {
        content.extend(calls::diffs(&dry_run.changes, &entry.directory));
        let failure = dry_run.failure.as_ref();
        content.extend(failure.map(|failure| CallContent::text(format!("A dry run failed: {failure}"))));
    }
    let agent = request.origin.as_ref().map(|origin| format!("{}: ", origin.agent_id)).unwrap_or_default();
    let title = calls::title(&request.tool_name, asked.kind, &request.arguments);
    let locations = calls::locations(&request.arguments, &entry.directory);
    CallUpdate {
        title: Some(format!("{agent}{title}")),
        name: Some(request.tool_name.clone()),
        kind: Some(calls::kind(asked.kind)),
        status: Some(CallStatus::Pending),
        content: Some(content),
        locations: (!locations.is_empty()).then_some(locations),
        raw_input: Some(request.arguments.clone()),
        ..CallUpdate::new(&asked.shown_as)
    }
}

fn options(request: &ApprovalRequest, is_always_offered: bool) -> Vec<PermissionOption> {
    let option = |kind, name: String| PermissionOption { option_id: kind, kind, name };
    let always = || {
        let rules = request.suggested_rules.join(", ");
        option(PermissionOptionKind::AllowAlways, format!("Allow {rules} for this session"))
    };
    let mut options = vec![option(PermissionOptionKind::AllowOnce, "Allow".to_owned())];
    options.extend(is_always_offered.then(always));
    options.push(option(PermissionOptionKind::RejectOnce, "Reject".to_owned()));
    options
}
