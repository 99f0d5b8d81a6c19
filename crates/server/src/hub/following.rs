//! Following an open session until it is closed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pintle_agent::{EventKind, Events, Session, SessionEvent, SessionState};

use super::{Hub, LiveSession, lock};

/// Interval after which a change is reported again, with later writes.
const AGAIN_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which the end of a run is checked during shutdown.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

impl Hub {
    /// Follows a session until it ends or becomes idle, or the server shuts down. Then closes it.
    pub(super) async fn follow_and_close(self: Arc<Self>, live: Arc<LiveSession>) {
        let is_idle = match live.with_session(|session| session.events_from(session.first_new_event())) {
            Some(events) => self.follow(&live, events).await,
            None => false,
        };
        self.close(&live).await;
        if is_idle {
            // A message may have arrived while the session was being closed.
            self.open_if_work(live.id.clone()).await;
        }
    }

    /// Follows the events of a session. Returns true if it stops because the session is idle.
    async fn follow(self: &Arc<Self>, live: &LiveSession, mut events: Events) -> bool {
        let mut waiting = 0;
        let mut again = tokio::time::interval(AGAIN_INTERVAL);
        let mut is_stale = false;
        let mut look = tokio::time::interval(idle_check_interval(self.limits.idle));
        loop {
            tokio::select! {
                event = events.next() => {
                    let Some(event) = event else { return false };
                    live.touch();
                    self.observe(live, &event);
                    is_stale |= is_change(&event.kind);
                }
                _ = again.tick() => {
                    // The session may have become idle and can make room.
                    self.serve_waiting();
                    // The summary is written after the event, and calls of subagents are not events of the session.
                    let approvals = live.handle.tree_approvals().len();
                    if std::mem::take(&mut is_stale) || approvals != waiting {
                        waiting = approvals;
                        self.report_change(&live.id);
                    }
                }
                () = self.closing.cancelled() => return false,
                () = live.leaving.cancelled() => return false,
                _ = look.tick() => {
                    if !live.is_idle() {
                        live.touch();
                    } else if live.idle_time() >= self.limits.idle {
                        return true;
                    }
                }
            }
        }
    }

    fn observe(&self, live: &LiveSession, event: &SessionEvent) {
        // Pieces of text are not in the record.
        if event.offset.is_none() {
            self.counters.count_event(&event.kind);
        }
        if settles_unasked_calls(&event.kind) {
            live.has_unasked_calls.store(false, Ordering::Relaxed);
        }
        if is_change(&event.kind) {
            self.report_change(&live.id);
        }
        if matches!(event.kind, EventKind::ProcessingEnd { .. }) {
            // Later subscribers read these events from the record.
            live.with_session(|session| session.forget_events(event.seq));
        }
    }

    async fn close(self: &Arc<Self>, live: &LiveSession) {
        let session = live.session.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session {
            if self.closing.is_cancelled() {
                drain(&session, self.limits.drain).await;
            }
            // A run in progress, or a run that starts now, stays unfinished for the next opening. Fails only if the session
            // has ended.
            let _ = live.handle.detach();
            live.controls.close(session).await;
        }
        lock(&self.state).remove(&live.id);
        self.freed.notify_waiters();
        live.ended.cancel();
        self.report_change(&live.id);
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

/// Returns the interval at which a session is checked for idleness.
fn idle_check_interval(idle: Duration) -> Duration {
    (idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(30))
}

/// Returns whether lists of sessions change with this event.
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

/// Returns whether the session asked about a call, or continued without asking.
fn settles_unasked_calls(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::ToolCallEnd { .. }
            | EventKind::ProcessingEnd { .. }
    )
}
