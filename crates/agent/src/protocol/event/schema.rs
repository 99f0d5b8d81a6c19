//! JSON Schema of events, for clients in other languages and for validating recordings.
//!
//! It is derived from the types of this crate. Types of lower crates, which derive no schema, are described by hand
//! here. The workspace tests validate every event of every session against it, so that a difference is detected.

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

pub(super) fn segment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "oneOf": [
            { "enum": ["tools", "system"] },
            {
                "type": "object",
                "properties": {
                    "message": { "description": "Its index in the request.", "type": "integer", "minimum": 0 },
                },
                "required": ["message"],
            },
        ],
    })
}

pub(super) fn finish_reason(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "reason": {
                "description": "Unified reason.",
                "enum": ["stop", "length", "tool_calls", "content_filter", "error", "other"],
            },
            "raw": { "description": "The provider's own reason.", "type": "string" },
        },
        "required": ["reason"],
    })
}

pub(super) fn usage(_: &mut SchemaGenerator) -> Schema {
    let tokens =
        |description: &str| json_schema!({ "description": description, "type": "integer", "minimum": 0 });
    json_schema!({
        "type": "object",
        "properties": {
            "input_tokens": tokens("Complete input, cached tokens included."),
            "output_tokens": tokens("Output."),
            "total_tokens": tokens("The provider's total, else input and output."),
            "reasoning_tokens": tokens("Reasoning, part of the output."),
            "cache_read_tokens": tokens("Part of the input that was read from a cache."),
            "cache_write_tokens": tokens("Part of the input that was written to a cache."),
            "raw": { "description": "The provider's own record." },
        },
        "required": ["input_tokens", "output_tokens", "total_tokens"],
    })
}

pub(super) fn error_info(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "kind": {
                "enum": [
                    "authentication", "access_denied", "not_found", "invalid_request", "rate_limit", "server",
                    "content_filter", "context_length", "quota_exceeded", "request_timeout", "abort", "network",
                    "stream", "invalid_tool_call", "unsupported_tool_choice", "no_object_generated",
                    "configuration",
                ],
            },
            "message": { "description": "For a person to read. Contains no secrets.", "type": "string" },
            "retry": {
                "description": "Whether a retry may succeed, and after which delay.",
                "oneOf": [
                    { "const": "never" },
                    {
                        "type": "object",
                        "properties": {
                            "after_ms": {
                                "description": "Milliseconds; `null` if the provider named no delay.",
                                "type": ["integer", "null"],
                                "minimum": 0,
                            },
                        },
                        "required": ["after_ms"],
                    },
                ],
            },
            "provider": { "type": "string" },
            "status": { "description": "HTTP status.", "type": "integer" },
            "error_code": { "description": "The provider's error code.", "type": "string" },
            "request_id": { "description": "The provider's request id, for its support.", "type": "string" },
            "response_id": { "description": "Of a complete response that was unusable.", "type": "string" },
            "usage": { "description": "Tokens spent by the failed operation.", "type": "object" },
            "raw": { "description": "Error body of the provider, limited in size." },
            "causes": {
                "description": "Causes, the direct one first.",
                "type": "array",
                "items": { "type": "string" },
            },
        },
        "required": ["kind", "message", "retry"],
    })
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

pub(super) fn tool_error_kind(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "enum": [
            "unknown_tool", "invalid_arguments", "denied", "not_found", "permission_denied", "edit_conflict",
            "cancelled", "timed_out", "environment_lost", "failed",
        ],
    })
}

pub(super) fn repairs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "argument": {
                    "description": "Path of the argument, with dots between nested names; empty for the arguments as a whole.",
                    "type": "string",
                },
                "kind": {
                    "oneOf": [
                        {
                            "enum": [
                                "number_from_text", "boolean_from_text", "json_from_text", "integer_from_fraction",
                                "null_left_out",
                            ],
                        },
                        renamed("Name in the call."),
                    ],
                },
            },
            "required": ["argument", "kind"],
        },
    })
}

pub(super) fn changes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "path": { "description": "Path as in the call.", "type": "string" },
                "kind": { "oneOf": [{ "enum": ["added", "modified", "deleted"] }, renamed("Previous path.")] },
                "diff": { "description": "Unified diff; empty for files without text.", "type": "string" },
            },
            "required": ["path", "kind", "diff"],
        },
    })
}

fn renamed(from: &str) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "renamed": {
                "type": "object",
                "properties": { "from": { "description": from, "type": "string" } },
                "required": ["from"],
            },
        },
        "required": ["renamed"],
    })
}

#[cfg(test)]
mod tests;
