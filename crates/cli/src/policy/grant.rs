//! The grant that a run is held to.

use std::path::Path;

use pintle_agent::Record;
use pintle_agent::protocol::InputKind;
use pintle_governance::Grant;
use serde_json::Value;

use crate::failure::{Failure, OrFailure as _};
use crate::process_env;

/// Returns the grant in the file, or else the one that the session was held to before.
///
/// # Errors
///
/// A usage failure for a file that is not a grant, and a failure for a recorded one that this version does not understand.
pub(crate) fn load(file: Option<&Path>, recorded: Option<&Value>) -> Result<Option<Grant>, Failure> {
    if let Some(file) = file {
        let text = process_env::read_text("grant", file)?;
        return Grant::parse(&text).map(Some).or_usage(&format!("{} is wrong", file.display()));
    }
    let grant = recorded.map(|grant| Grant::parse(&grant.to_string())).transpose();
    grant.or_failed("the grant of the session cannot be restored")
}

/// Returns the grant that is on record.
pub(crate) fn of_record(record: &Record) -> Option<Value> {
    record.entries.iter().rev().find_map(|entry| {
        let InputKind::PolicyChanged { change } = &entry.input.kind else { return None };
        change.grant.clone()
    })
}
