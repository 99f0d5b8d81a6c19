//! What an event looks like as JSON, for hosts in other languages and for whoever checks a recording.
//!
//! The schema follows from the types of this crate. Types of the layers below, which know no schema, are described
//! here; `tests/` holds every event of every session against it, so that a difference is seen.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::SessionEvent;

/// The JSON Schema (draft 2020-12) of one serialised [`SessionEvent`].
///
/// It says what is there and leaves room for what comes: an object may have more fields than it names. The text of it
/// is in the package as `schema/events.json`.
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
                    "message": { "description": "Its place in the request.", "type": "integer", "minimum": 0 },
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
                "description": "In unified terms.",
                "enum": ["stop", "length", "tool_calls", "content_filter", "error", "other"],
            },
            "raw": { "description": "As the provider spells it.", "type": "string" },
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
            "input_tokens": tokens("All of the input, cached tokens included."),
            "output_tokens": tokens("That the model wrote."),
            "total_tokens": tokens("The provider's total, else input and output."),
            "reasoning_tokens": tokens("Spent on reasoning, part of the output."),
            "cache_read_tokens": tokens("Of the input that were read from a cache."),
            "cache_write_tokens": tokens("Of the input that were written to a cache."),
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
            "message": { "description": "For a person; holds no secret.", "type": "string" },
            "retry": {
                "description": "Whether trying the same again may succeed, and after which delay.",
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
            "status": { "description": "Of the HTTP answer.", "type": "integer" },
            "error_code": { "description": "The provider's own.", "type": "string" },
            "request_id": { "description": "The provider's, for its support.", "type": "string" },
            "response_id": { "description": "Of a complete response that was unusable.", "type": "string" },
            "usage": { "description": "Tokens spent by the failed operation.", "type": "object" },
            "raw": { "description": "The provider's error body, bounded in size." },
            "causes": {
                "description": "What lies beneath, the nearest first.",
                "type": "array",
                "items": { "type": "string" },
            },
        },
        "required": ["kind", "message", "retry"],
    })
}

pub(super) fn output(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The whole text, or the size and the two ends of what is in a spool file.",
        "oneOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": {
                    "spooled": { "type": "boolean" },
                    "bytes": { "description": "That are kept.", "type": "integer", "minimum": 0 },
                    "dropped": { "description": "Bytes for which there was no room.", "type": "integer", "minimum": 0 },
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
                    "description": "With dots between the names of nested ones; empty for the arguments as a whole.",
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
                        renamed("The name that was given."),
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
                "path": { "description": "As the call named it.", "type": "string" },
                "kind": { "oneOf": [{ "enum": ["added", "modified", "deleted"] }, renamed("The name before.")] },
                "diff": { "description": "Unified; empty where there is no text to show.", "type": "string" },
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
