//! Going on with a session whose host is gone, from its record.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Driver, closed_segment, opened_segment};
use crate::id::RunId;
use crate::record::{Record, ReplayError};
use crate::session::Owner;
use crate::turn::{Action, Change, InputKind, TurnContext};

impl Driver {
    /// Brings machine and events to where the record ends, and does nothing of what it tells.
    pub(crate) fn catch_up(&mut self, record: &Record) -> Result<(), ReplayError> {
        for (index, entry) in record.entries.iter().enumerate() {
            let input = entry.input.clone();
            let (at, opened, closed) =
                (input.at, opened_segment(&input.kind), closed_segment(&input.kind));
            let actions = self.machine.step(input);
            record.compare(index, entry, &actions)?;
            for action in actions {
                if let Action::Emit(event) = action {
                    self.emit(at, *event, opened, closed);
                }
            }
        }
        self.segments_drawn.store(record.next_segment(), Ordering::Relaxed);
        self.tools = self.profile.tool_registry.clone();
        self.resume_with = self.inputs_to_resume(record);
        self.show();
        Ok(())
    }

    /// Lets somebody wait for the run that is served.
    pub(crate) fn adopt(&mut self, run: RunId, owner: Owner) {
        self.runs.insert(run, owner);
    }

    /// What the machine must know before it goes on.
    fn inputs_to_resume(&self, record: &Record) -> Vec<InputKind> {
        let ends = record.open_segments().into_iter().map(|(segment, kind)| InputKind::SegmentClosed {
            segment,
            kind,
            text: String::new(),
            interrupted: true,
        });
        let changed = self.machine.context().is_some_and(|context| !self.is_of_profile(context));
        let change = changed.then_some(InputKind::Configure { change: Change::Context });
        ends.chain(change).chain([InputKind::Resumed]).collect()
    }

    /// Whether requests of this context are what the profile would ask for, the prompt's words aside.
    pub(crate) fn is_of_profile(&self, context: &TurnContext) -> bool {
        let profile = &self.profile;
        context.provider == profile.provider
            && context.model == profile.model
            && context.tools == profile.tools()
            && context.provider_options == profile.provider_options
            && context.max_tokens == profile.max_output_tokens
    }

    /// The first thing that a resumed session does.
    pub(super) async fn resume(&mut self) {
        for kind in std::mem::take(&mut self.resume_with) {
            self.step(kind).await;
        }
    }

    /// What a session has that goes on from the first `turns` entries of this one's history.
    pub(super) fn fork(&self, turns: usize) -> Option<crate::SessionBuilder> {
        let start = self.machine.fork(turns, self.log.session_id().clone())?;
        let mut builder = crate::Session::builder(self.client.clone(), self.profile.clone(), Arc::clone(&self.env))
            .config(self.config.clone())
            .clock(Arc::clone(&self.clock))
            .record(self.recorder.is_some())
            .start(start);
        Some(builder)
    }
}
