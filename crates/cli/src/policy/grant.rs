//! The grant that a run is held to.

use std::path::Path;

use pintle_agent::Record;
use pintle_agent::protocol::InputKind;
use pintle_governance::Grant;
use serde_json::Value;

use crate::failure::{Failure, OrFailure as _};
use crate::process_env;

/// Returns the grant in the file, or else the recorded grant of the session. A session that is resumed or forked cannot get a
/// wider grant.
///
/// # Errors
///
/// A usage failure if the file is invalid or wider than the session's grant, and a failure if the recorded grant cannot be
/// parsed.
pub(crate) fn load(file: Option<&Path>, recorded: Option<&Value>) -> Result<Option<Grant>, Failure> {
    let recorded = recorded.map(|grant| Grant::parse(&grant.to_string())).transpose();
    let recorded = recorded.or_failed("the grant of the session cannot be restored")?;
    let Some(file) = file else { return Ok(recorded) };
    let text = process_env::read_text("grant", file)?;
    let grant = Grant::parse(&text).or_usage(&format!("{} is wrong", file.display()))?;
    if let Some(axis) = recorded.as_ref().and_then(|recorded| recorded.widened_by(&grant)) {
        let message = format!("{} allows more than the grant of the session: {axis}", file.display());
        return Err(Failure::usage(message).with_hint("begin a session of its own under this grant"));
    }
    Ok(Some(grant))
}

/// Returns the grant that is on record.
pub(crate) fn of_record(record: &Record) -> Option<Value> {
    record.entries.iter().rev().find_map(|entry| {
        let InputKind::PolicyChanged { change } = &entry.input.kind else { return None };
        change.grant.clone()
    })
}
