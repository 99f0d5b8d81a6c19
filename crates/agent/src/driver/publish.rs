//! State that the driver publishes to handles: state, history, pending approvals and queued messages.

use std::sync::Arc;

use super::Driver;
use crate::session::PublishedState;

impl Driver {
    /// Publishes the current state, if it has changed.
    pub(super) fn publish(&self) {
        self.shared.send_if_modified(|shared| self.update(shared));
    }

    /// Updates the published state and returns whether it has changed.
    fn update(&self, shared: &mut PublishedState) -> bool {
        let machine = &self.machine;
        if shared.repairs != machine.repairs() {
            shared.history.clear();
            shared.repairs = machine.repairs();
        }
        let is_current = shared.state == machine.state()
            && shared.history.len() == machine.history().len()
            && shared.spent == machine.spent()
            && self.calls.pending_are(&shared.approvals)
            && machine.steering().eq(shared.queued.steering.iter().map(String::as_str))
            && machine.follow_ups().eq(shared.queued.follow_ups.iter().map(String::as_str));
        if is_current {
            return false;
        }
        shared.state = machine.state();
        shared.history.extend_from_slice(machine.history().get(shared.history.len()..).unwrap_or(&[]));
        if shared.spent != machine.spent() {
            shared.spent = machine.spent();
            shared.models.clone_from(machine.spent_by_model());
        }
        shared.approvals = self.calls.pending().map(Arc::clone).collect();
        shared.queued.steering = machine.steering().map(str::to_owned).collect();
        shared.queued.follow_ups = machine.follow_ups().map(str::to_owned).collect();
        true
    }
}
