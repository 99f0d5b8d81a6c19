//! JSON Schema of events, for clients in other languages and for validating recordings.
//!
//! It is derived from the types. The few that are serialised by hand are described here. The workspace tests validate
//! every event of every session against it, so that a difference is detected.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::SessionEvent;

/// Returns the JSON Schema (draft 2020-12) of a serialised [`SessionEvent`].
///
/// Objects may have more fields than it names. The package contains it as `schema/events.json`.
#[must_use]
pub fn event_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<SessionEvent>().to_value()
}

pub(super) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

pub(super) fn fingerprint(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{32}$" })
}

pub(super) fn output(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Complete text, or the size and both ends of an output in a spool file.",
        "oneOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": {
                    "spooled": { "type": "boolean" },
                    "bytes": { "description": "Size of the kept output.", "type": "integer", "minimum": 0 },
                    "dropped": { "description": "Bytes that were discarded for lack of space.", "type": "integer", "minimum": 0 },
                    "head": { "type": "string" },
                    "tail": { "type": "string" },
                },
                "required": ["spooled", "bytes", "dropped", "head", "tail"],
            },
        ],
    })
}

#[cfg(test)]
mod tests;
