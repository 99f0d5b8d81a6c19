//! Start of a session, and recording of its inputs.

use std::sync::Arc;

use super::RunOwner;
use crate::driver::{Driver, SharedEnvironment};
use crate::error::SessionError;
use crate::event_log::EventLog;
use crate::protocol::{SessionState, Start, SubagentOrigin};
use crate::record::{Journal, Record, RecordHeader, Recorder};
use crate::run::Run;

/// Options of a builder about the start of the session.
#[derive(Debug, Default)]
pub(super) struct StartOptions {
    pub(super) start: Start,
    /// Environment of the forked session, in a fork.
    pub(super) shared: Option<SharedEnvironment>,
    /// Record to resume from.
    pub(super) resume: Option<Record>,
    /// Whether inputs are kept in memory.
    pub(super) record: bool,
    pub(super) journal: Option<Journal>,
}

/// Runs of the record that a session resumes from; none for other sessions.
#[derive(Debug, Default)]
pub(super) struct ResumedRuns {
    /// Number of runs so far.
    pub(super) count: u64,
    /// The unfinished run.
    pub(super) unfinished: Option<Run>,
}

impl StartOptions {
    /// Starts the driver with these options.
    pub(super) fn apply(
        self,
        driver: &mut Driver,
        log: &Arc<EventLog>,
        subagent: Option<SubagentOrigin>,
    ) -> Result<ResumedRuns, SessionError> {
        if let Some(record) = self.resume {
            return resume(&record, self.journal, driver, log);
        }
        let recorder = if self.record || self.journal.is_some() {
            let header = RecordHeader::new(log.session_id().clone(), subagent, self.start.clone());
            let recorder = Recorder::new(header, self.record, self.journal);
            Some(Arc::new(recorder.map_err(SessionError::Journal)?))
        } else {
            None
        };
        driver.start(self.start, self.shared, recorder);
        Ok(ResumedRuns::default())
    }
}

fn resume(
    record: &Record,
    journal: Option<Journal>,
    driver: &mut Driver,
    log: &Arc<EventLog>,
) -> Result<ResumedRuns, SessionError> {
    driver.catch_up(record, journal).map_err(SessionError::Resume)?;
    if driver.state() == SessionState::Closed {
        return Err(SessionError::Ended);
    }
    let unfinished = driver.current_run().map(|run| {
        let (owner, run_of) = RunOwner::new(log);
        driver.adopt(run, owner);
        run_of(None)
    });
    Ok(ResumedRuns { count: record.next_run(), unfinished })
}
