//! Changes of a server's lists, as it reports them from version 2026-07-28 on: on a request that stays open.

use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, Subscription};
use rmcp::{RoleClient, ServiceError};
use tokio::task::JoinSet;

use crate::handler::Handler;

/// Time in which a server must accept to report changes.
const ACCEPT_TIME: Duration = Duration::from_secs(2);

/// Time after which a server is asked again once it has stopped to report.
const AGAIN_TIME: Duration = Duration::from_secs(5);

/// Times that a server is asked again.
const MAX_AGAIN: u32 = 20;

/// Task that takes the changes of one connection. It ends when this is dropped.
pub(super) struct Changes {
    _task: JoinSet<()>,
}

impl Changes {
    /// Asks a server to report changes of its lists, if it can; what it does not accept, it does not report. Servers of
    /// earlier versions do so unasked.
    pub(super) async fn watch(peer: &Peer<RoleClient>, handler: &Handler) -> Self {
        let mut task = JoinSet::new();
        if let Some(filter) = filter(peer) {
            // Before anything is listed, so that no change is missed.
            let first = subscribe(peer, filter.clone()).await;
            task.spawn(follow(peer.clone(), handler.clone(), filter, first));
        }
        Self { _task: task }
    }
}

/// Takes the changes of a subscription, and of those that follow it when it ends.
async fn follow(
    peer: Peer<RoleClient>,
    handler: Handler,
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
            // It does not know such requests.
            Err(ServiceError::McpError(_)) => return,
            Err(_fails) => {}
        }
        if peer.is_transport_closed() {
            return;
        }
        tokio::time::sleep(AGAIN_TIME).await;
        subscribed = subscribe(&peer, filter.clone()).await;
        // What has changed meanwhile is not known.
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

/// Returns the changes that a server reports on request; `None` if there are none.
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

fn note(handler: &Handler, notification: &ServerNotification) {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else was asked for")]
    let counter = match notification {
        ServerNotification::ToolListChangedNotification(_) => &handler.changes,
        ServerNotification::PromptListChangedNotification(_) => &handler.prompt_changes,
        _ => return,
    };
    counter.send_modify(|number| *number += 1);
}
