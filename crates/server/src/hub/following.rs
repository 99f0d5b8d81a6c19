//! Following an open session until it is closed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pintle_agent::{EventKind, Events, Session, SessionEvent, SessionState};

use super::{Hub, Live, lock};

/// Time after which a change is reported again, with later writes.
const AGAIN_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two looks at a run that is to end.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

impl Hub {
    /// Follows a session until it ends, does nothing any more, or the server shuts down.
    pub(super) async fn keep(self: Arc<Self>, live: Arc<Live>) {
        let is_idle = match live.with(|session| session.events_from(session.first_new_event())) {
            Some(events) => self.follow(&live, events).await,
            None => false,
        };
        self.close(&live).await;
        if is_idle {
            // A message may have come while it was being closed.
            self.open_if_work(live.id.clone()).await;
        }
    }

    /// Returns whether it does nothing any more.
    async fn follow(self: &Arc<Self>, live: &Live, mut events: Events) -> bool {
        let mut waiting = 0;
        let mut again = tokio::time::interval(AGAIN_INTERVAL);
        let mut is_stale = false;
        let mut look = tokio::time::interval(look_interval(self.limits.idle));
        loop {
            tokio::select! {
                event = events.next() => {
                    let Some(event) = event else { return false };
                    live.touch();
                    self.observe(live, &event);
                    is_stale |= is_change(&event.kind);
                }
                _ = again.tick() => {
                    // It may make way now.
                    self.serve_waiting();
                    // The summary is written after the event, and calls of subagents are no events of the session.
                    let approvals = live.handle.tree_approvals().len();
                    if std::mem::take(&mut is_stale) || approvals != waiting {
                        waiting = approvals;
                        self.changed(&live.id);
                    }
                }
                () = self.closing.cancelled() => return false,
                () = live.leaving.cancelled() => return false,
                _ = look.tick() => {
                    if !live.is_idle() {
                        live.touch();
                    } else if live.rested() >= self.limits.idle {
                        return true;
                    }
                }
            }
        }
    }

    fn observe(&self, live: &Live, event: &SessionEvent) {
        // Pieces of text are no events of the record.
        if event.offset.is_none() {
            self.counters.count_event(&event.kind);
        }
        if asks_or_goes_on(&event.kind) {
            live.asks_anew.store(false, Ordering::Relaxed);
        }
        if is_change(&event.kind) {
            self.changed(&live.id);
        }
        if matches!(event.kind, EventKind::ProcessingEnd { .. }) {
            // Later subscribers read them from the record.
            live.with(|session| session.forget_events(event.seq));
        }
    }

    async fn close(self: &Arc<Self>, live: &Live) {
        let session = live.session.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session {
            if self.closing.is_cancelled() {
                drain(&session, self.limits.drain).await;
            }
            // A run that continues, or starts now, is left as it is, for the next opening. Fails only if the session has ended.
            let _ = live.handle.leave();
            live.controls.close(session).await;
        }
        lock(&self.state).remove(&live.id);
        self.freed.notify_waiters();
        live.ended.cancel();
        self.changed(&live.id);
        self.serve_waiting();
    }
}

/// Waits for the end of a run, unless it waits for a decision.
async fn drain(session: &Session, time: Duration) {
    let handle = session.handle();
    let rests = async {
        while session.state() == SessionState::Processing && handle.approvals().is_empty() {
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    };
    let _ = tokio::time::timeout(time, rests).await;
}

/// Returns how often to look whether a session is idle.
fn look_interval(idle: Duration) -> Duration {
    (idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(30))
}

/// Returns whether a list shows something else after this event.
fn is_change(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::UserInput { .. }
            | EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::ModelResponse { .. }
            | EventKind::PolicyChanged(_)
            | EventKind::ProcessingEnd { .. }
            | EventKind::SessionEnd { .. }
            | EventKind::SessionResumed { .. }
    )
}

/// Returns whether a call was asked about, or a run continues without.
fn asks_or_goes_on(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::ToolCallEnd { .. }
            | EventKind::ProcessingEnd { .. }
    )
}
