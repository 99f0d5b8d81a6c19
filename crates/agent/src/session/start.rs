//! Start of a session, and recording of its inputs.

use std::sync::Arc;

use super::RunOwner;
use crate::driver::{Driver, Recording, SharedEnvironment};
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
    pub(super) journal: Option<Box<dyn Journal>>,
}

impl StartOptions {
    /// Starts the driver with these options. Returns the run that the record of a resumed session left unfinished.
    pub(super) fn apply(
        self,
        driver: &mut Driver,
        log: &Arc<EventLog>,
        subagent: Option<SubagentOrigin>,
    ) -> Result<Option<Run>, SessionError> {
        if let Some(record) = self.resume {
            return resume(&record, self.journal, driver, log);
        }
        let mut journal = self.journal;
        let mut recorder = None;
        if self.record || journal.is_some() {
            let header = RecordHeader::new(log.session_id().clone(), subagent, self.start.clone());
            if let Some(journal) = &mut journal {
                journal.begin(&header).map_err(SessionError::Journal)?;
            }
            recorder = self.record.then(|| Arc::new(Recorder::new(header)));
        }
        driver.start(self.start, self.shared, Recording::new(recorder, journal));
        Ok(None)
    }
}

fn resume(
    record: &Record,
    journal: Option<Box<dyn Journal>>,
    driver: &mut Driver,
    log: &Arc<EventLog>,
) -> Result<Option<Run>, SessionError> {
    driver.catch_up(record, journal).map_err(SessionError::Resume)?;
    if driver.state() == SessionState::Closed {
        return Err(SessionError::Ended);
    }
    Ok(driver.current_run().map(|run| {
        let (owner, run_of) = RunOwner::new(log);
        driver.adopt(run, owner);
        run_of(None)
    }))
}
