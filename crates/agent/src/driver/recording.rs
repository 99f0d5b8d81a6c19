//! Recording of inputs, each before anything follows from it.

use std::io;
use std::sync::Arc;

use pintle_llm::{Error, ErrorKind};

use super::Driver;
use crate::protocol::{Action, Input, InputKind, Timestamp};
use crate::record::{Recorder, request_of};

/// Recorder of a session, and whether it has failed.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) recorder: Option<Arc<Recorder>>,
    /// Error of the journal, until the machine knows.
    unrecorded: Option<io::Error>,
    failed: bool,
}

impl Recording {
    pub(super) fn to(recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..Self::default() }
    }

    /// Returns whether the journal has failed, so that inputs are missing in it.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether the inputs are kept in memory.
    pub(super) fn is_kept(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.keeps())
    }

    /// Returns, once, the input that reports a failed journal to the machine.
    pub(super) fn unrecorded(&mut self) -> Option<InputKind> {
        let source = self.unrecorded.take()?;
        let error = Error::new(ErrorKind::Configuration, "the journal of the session cannot be written");
        Some(InputKind::Unrecorded { error: error.with_source(source).info().clone() })
    }

    fn fail(&mut self, error: io::Error) {
        tracing::error!(%error, "the journal of the session cannot be written");
        self.unrecorded = Some(error);
        self.failed = true;
    }
}

impl Driver {
    /// Steps the machine and records the input.
    pub(super) fn advance(&mut self, at: Timestamp, kind: InputKind) -> Vec<Action> {
        let input = Input::new(at, kind);
        let Some(recorder) = &self.recording.recorder else { return self.machine.step(input) };
        let actions = self.machine.step(input.clone());
        if let Err(error) = recorder.push(input, request_of(&actions)) {
            self.recording.fail(error);
        }
        actions
    }
}
