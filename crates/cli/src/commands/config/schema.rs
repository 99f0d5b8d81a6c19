//! JSON Schema of `config.toml`, for editors, and the table of keys in the reference.

use pintle_host::config_file::is_in_profile;
use pintle_host::config_file::keys::{self, KEY_COMMAND, Key, PROFILES, PROVIDERS, TOOL_DIRS};
use pintle_host::{DefaultValue, ValueKind};
use serde_json::{Map, Value, json};

use super::list::json_of;

/// Returns the JSON Schema (draft 2020-12) of the file.
pub(super) fn schema() -> Value {
    let mut all = properties(|_| true);
    let profile = json!({
        "type": "object",
        "properties": properties(is_in_profile),
        "additionalProperties": false,
    });
    all.insert(
        PROFILES.to_owned(),
        json!({
            "description": "Profiles by name, which `--profile NAME` or the key `profile` selects",
            "type": "object",
            "propertyNames": {"pattern": "\\S", "not": {"pattern": "/|\\.toml$"}},
            "additionalProperties": profile,
        }),
    );
    let words = json!({
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "prefixItems": [{"type": "string", "pattern": "\\S"}],
    });
    let commands: Map<String, Value> =
        PROVIDERS.iter().map(|provider| ((*provider).to_owned(), words.clone())).collect();
    all.insert(
        KEY_COMMAND.to_owned(),
        json!({
            "description": "Program and arguments that print the API key of a provider (user's file only)",
            "type": "object",
            "properties": commands,
            "additionalProperties": false,
        }),
    );
    all.insert(
        TOOL_DIRS.to_owned(),
        json!({
            "description": "Directories with manifests of tools (trusted)",
            "type": "array",
            "items": {"type": "string", "pattern": "\\S"},
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of pintle",
        "description": "config.toml in the directory of the user's configuration, and .pintle/config.toml of a project",
        "type": "object",
        "properties": all,
        "additionalProperties": false,
    })
}

fn properties(condition: impl Fn(&Key) -> bool) -> Map<String, Value> {
    let keys = keys::all().filter(condition);
    keys.map(|key| (key.name.to_owned(), property(&key))).collect()
}

fn hosts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn property(key: &Key) -> Value {
    let mut property = match key.row.kind {
        ValueKind::Text | ValueKind::Path | ValueKind::Profile | ValueKind::Rule => {
            json!({"type": "string", "pattern": "\\S"})
        }
        ValueKind::Url => json!({"type": "string", "pattern": "^https?://[A-Za-z0-9\\[]"}),
        ValueKind::Choice(names) => json!({"enum": names}),
        ValueKind::Count => json!({"type": "integer", "minimum": 0}),
        ValueKind::Percent => json!({"type": "integer", "minimum": 0, "maximum": 100}),
        ValueKind::Time => json!({"anyOf": [
            {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)?$"},
            {"type": "integer", "minimum": 1, "maximum": 86_400},
        ]}),
        ValueKind::Switch => json!({"type": "boolean"}),
        ValueKind::Structure => json!({"type": "object"}),
        ValueKind::Network => json!({"anyOf": [
            {"enum": ["on", "off"]},
            {
                "type": "object",
                "properties": {
                    "allow": hosts(),
                    "deny": hosts(),
                    "presets": {"type": "array", "items": {"enum": ["apt", "cargo", "go", "npm", "pip"]}},
                    "mirrors": {"type": "object", "additionalProperties": hosts()},
                },
                "additionalProperties": false,
            },
        ]}),
    };
    if let Some(property) = property.as_object_mut() {
        let access = key.row.access.as_str();
        property.insert("description".to_owned(), json!(format!("{} ({access})", key.row.meaning)));
        if !matches!(key.row.default, DefaultValue::Description(_)) {
            property.insert("default".to_owned(), default_of(key));
        }
    }
    property
}

/// Returns the default of a key as the file would have it; `null` if no value has the same effect.
pub(super) fn default_of(key: &Key) -> Value {
    let default = key.row.default;
    match default {
        DefaultValue::Value(_) | DefaultValue::Percent(_) => json_of(key.row.kind, &default.to_string()),
        DefaultValue::Description(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests;
