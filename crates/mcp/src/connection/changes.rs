//! Changes of a server's lists. From version 2026-07-28 on, the server reports them on a request that stays open.

use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, Subscription};
use rmcp::{RoleClient, ServiceError};
use tokio::task::JoinSet;

use crate::handler::ConnectionHandler;

/// Time in which a server must accept a subscription.
const ACCEPT_TIME: Duration = Duration::from_secs(2);

/// Time between the end of a subscription and the next attempt.
const AGAIN_TIME: Duration = Duration::from_secs(5);

/// Maximum number of further attempts.
const MAX_AGAIN: u32 = 20;

/// Task that handles the changes of one connection. Dropping this stops it.
pub(super) struct ChangeWatcher {
    _task: JoinSet<()>,
}

impl ChangeWatcher {
    /// Subscribes to the changes of a server's lists, if it supports that. The server reports only the changes that it
    /// accepts. Servers of earlier versions report changes without a subscription.
    pub(super) async fn watch(peer: &Peer<RoleClient>, handler: &ConnectionHandler) -> Self {
        let mut task = JoinSet::new();
        if let Some(filter) = filter(peer) {
            // Subscribing precedes every listing, so that no change is missed.
            let first = subscribe(peer, filter.clone()).await;
            task.spawn(follow(peer.clone(), handler.clone(), filter, first));
        }
        Self { _task: task }
    }
}

/// Handles the changes of a subscription, and of later subscriptions after its end.
async fn follow(
    peer: Peer<RoleClient>,
    handler: ConnectionHandler,
    filter: SubscriptionFilter,
    first: Result<Subscription, ServiceError>,
) {
    let mut subscribed = first;
    for _again in 0..MAX_AGAIN {
        match &mut subscribed {
            Ok(subscription) => {
                while let Ok(Some(notification)) = subscription.next().await {
                    note(&handler, &notification);
                }
            }
            // The server does not support subscriptions.
            Err(ServiceError::McpError(_)) => return,
            Err(_fails) => {}
        }
        if peer.is_transport_closed() {
            return;
        }
        tokio::time::sleep(AGAIN_TIME).await;
        subscribed = subscribe(&peer, filter.clone()).await;
        // The changes in the meantime are unknown.
        handler.changes.send_modify(|number| *number += 1);
        handler.prompt_changes.send_modify(|number| *number += 1);
    }
}

async fn subscribe(
    peer: &Peer<RoleClient>,
    filter: SubscriptionFilter,
) -> Result<Subscription, ServiceError> {
    let accepted = tokio::time::timeout(ACCEPT_TIME, peer.listen(filter)).await;
    accepted.unwrap_or(Err(ServiceError::Timeout { timeout: ACCEPT_TIME }))
}

/// Returns the changes to subscribe to; `None` if the server supports no subscription.
fn filter(peer: &Peer<RoleClient>) -> Option<SubscriptionFilter> {
    let info = peer.peer_info()?;
    if info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return None;
    }
    let capabilities = &info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
    let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed) == Some(true);
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = tools.then_some(true);
    filter.prompts_list_changed = prompts.then_some(true);
    (tools || prompts).then_some(filter)
}

fn note(handler: &ConnectionHandler, notification: &ServerNotification) {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else was asked for")]
    let counter = match notification {
        ServerNotification::ToolListChangedNotification(_) => &handler.changes,
        ServerNotification::PromptListChangedNotification(_) => &handler.prompt_changes,
        _ => return,
    };
    counter.send_modify(|number| *number += 1);
}
