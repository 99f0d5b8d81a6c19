//! Tool calls of the response that is being streamed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_llm::StreamEvent;

use super::draft::Draft;

/// Maximum number of calls tracked per response. Further ones are shown only when they run.
const MAX_CALLS: usize = 16;

/// Drafts of the calls, shared between the recorder of the stream and the view. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drafts {
    calls: Arc<Mutex<Vec<Draft>>>,
}

impl Drafts {
    /// Starts a new response and drops the calls of the previous one.
    pub(crate) fn begin(&self) {
        self.lock().clear();
    }

    /// Records an event of the response.
    pub(crate) fn event(&self, event: &StreamEvent) {
        if let StreamEvent::ToolCallStart { tool_call } = event {
            let mut calls = self.lock();
            if calls.len() < MAX_CALLS {
                calls.push(Draft::new(&tool_call.id, &tool_call.name));
            }
        } else if let StreamEvent::ToolCallDelta { tool_call, delta } = event {
            self.update(&tool_call.id, |draft| {
                draft.tool_name.clone_from(&tool_call.name);
                draft.push(delta);
            });
        } else if let StreamEvent::ToolCallEnd { tool_call } = event {
            self.update(&tool_call.id, |draft| draft.complete(&tool_call.arguments));
        }
    }

    /// Locks the calls, which are in the order in which they started.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Draft>> {
        // A half-updated draft is only displayed, so a poisoned lock is harmless.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, call_id: &str, update: impl FnOnce(&mut Draft)) {
        if let Some(draft) = self.lock().iter_mut().find(|draft| draft.call_id == call_id) {
            update(draft);
        }
    }
}
