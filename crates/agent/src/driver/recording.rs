//! Every input goes on record before anything follows from it.

use std::io;
use std::sync::Arc;

use pintle_llm::{Error, ErrorKind};

use super::Driver;
use crate::record::{Recorder, request_of};
use crate::timestamp::Timestamp;
use crate::turn::{Action, Input, InputKind};

/// Where the inputs of a session are kept, and whether that has failed.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) recorder: Option<Arc<Recorder>>,
    /// Why an input is not in the journal, until the machine knows.
    unrecorded: Option<io::Error>,
    /// The journal has failed.
    failed: bool,
}

impl Recording {
    pub(super) fn to(recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..Self::default() }
    }

    /// Whether something happens that is not on record.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// What the machine must be told once an input could not be written.
    pub(super) fn unrecorded(&mut self) -> Option<InputKind> {
        let source = self.unrecorded.take()?;
        let error = Error::new(ErrorKind::Configuration, "the journal of the session cannot be written");
        Some(InputKind::Unrecorded { error: error.with_source(source).info().clone() })
    }

    fn failed(&mut self, error: io::Error) {
        tracing::error!(%error, "the journal of the session cannot be written");
        self.unrecorded = Some(error);
        self.failed = true;
    }
}

impl Driver {
    /// Tells the machine, and the record before anything follows from it.
    pub(super) fn advance(&mut self, at: Timestamp, kind: InputKind) -> Vec<Action> {
        let input = Input::new(at, kind);
        let Some(recorder) = &self.recording.recorder else { return self.machine.step(input) };
        let actions = self.machine.step(input.clone());
        if let Err(error) = recorder.push(input, request_of(&actions)) {
            self.recording.failed(error);
        }
        actions
    }
}
