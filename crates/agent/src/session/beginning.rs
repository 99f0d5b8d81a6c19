//! What a session begins with, and where its inputs are kept.

use std::sync::Arc;

use super::Owner;
use crate::driver::{Driver, SharedFacts};
use crate::error::SessionError;
use crate::event_log::EventLog;
use crate::record::{Journal, Record, RecordHeader, Recorder};
use crate::run::Run;
use crate::subagent_info::SubagentOrigin;
use crate::turn::{SessionState, Start};

/// What a builder collects about it.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    pub(super) start: Start,
    /// What is known of the place where tools run, in a fork.
    pub(super) facts: Option<SharedFacts>,
    /// The record that the session goes on from.
    pub(super) resume: Option<Record>,
    /// Whether inputs are kept in memory.
    pub(super) record: bool,
    pub(super) journal: Option<Journal>,
}

/// What a session that goes on from a record has to know of it; nothing for any other.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// How many runs there have been.
    pub(super) runs: u64,
    /// The one that was going on.
    pub(super) run: Option<Run>,
}

impl Beginning {
    /// Has the driver begin so.
    pub(super) fn of(
        self,
        driver: &mut Driver,
        log: &Arc<EventLog>,
        subagent: Option<SubagentOrigin>,
    ) -> Result<Resumed, SessionError> {
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
        driver.begin(self.start, self.facts, recorder);
        Ok(Resumed::default())
    }
}

fn resume(
    record: &Record,
    journal: Option<Journal>,
    driver: &mut Driver,
    log: &Arc<EventLog>,
) -> Result<Resumed, SessionError> {
    driver.catch_up(record, journal).map_err(SessionError::Resume)?;
    if driver.state() == SessionState::Closed {
        return Err(SessionError::Ended);
    }
    let run = driver.served_run().map(|run| {
        let (owner, run_of) = Owner::of_run(log);
        driver.adopt(run, owner);
        run_of(None)
    });
    Ok(Resumed { runs: record.next_run(), run })
}
