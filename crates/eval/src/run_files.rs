//! Format of the files of a run: JSON objects with a version.

use std::path::Path;

use pintle_host::failure::{Failure, OrFailure as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Version of the format.
pub(crate) const VERSION: u32 = 1;

pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).or_failed("a file of the run cannot be written as JSON")
}

/// Parses a file of a run.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, Failure> {
    let invalid = |problem: &str| Failure::usage(format!("{}: {problem}", file.display()));
    let found: Value =
        serde_json::from_str(text).map_err(|error| invalid("invalid JSON").caused_by(&error))?;
    if found.get("version") != Some(&VERSION.into()) {
        return Err(invalid(&format!("expected version {VERSION} of the format")));
    }
    serde_json::from_value(found).map_err(|error| invalid("not a file of a run").caused_by(&error))
}
