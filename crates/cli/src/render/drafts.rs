//! The tool calls of the answer that a model writes now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_llm::StreamEvent;

use super::draft::Draft;

/// Calls of one answer that are followed; more are counted nowhere and shown when they run.
const MOST: usize = 16;

/// What is known of the calls, shared between the one who listens to the model and the one who draws. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drafts {
    calls: Arc<Mutex<Vec<Draft>>>,
}

impl Drafts {
    /// Another answer begins: the calls of the one before are forgotten.
    pub(crate) fn begin(&self) {
        self.lock().clear();
    }

    /// Takes in an event of the answer.
    pub(crate) fn event(&self, event: &StreamEvent) {
        if let StreamEvent::ToolCallStart { tool_call } = event {
            let mut calls = self.lock();
            if calls.len() < MOST {
                calls.push(Draft::new(&tool_call.id, &tool_call.name));
            }
        } else if let StreamEvent::ToolCallDelta { tool_call, delta } = event {
            self.change(&tool_call.id, |draft| {
                draft.tool_name.clone_from(&tool_call.name);
                draft.push(delta);
            });
        } else if let StreamEvent::ToolCallEnd { tool_call } = event {
            self.change(&tool_call.id, |draft| draft.complete(&tool_call.arguments));
        }
    }

    /// The calls, in the order in which they were begun.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Draft>> {
        // A draft is only ever shown; one that was left half way shows less.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, call_id: &str, change: impl FnOnce(&mut Draft)) {
        if let Some(draft) = self.lock().iter_mut().find(|draft| draft.call_id == call_id) {
            change(draft);
        }
    }
}
