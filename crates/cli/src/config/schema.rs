//! JSON Schema of `config.toml`, for editors, and the table of keys in the reference.

use serde_json::{Map, Value, json};

use super::list::json_of;
use crate::config_file::is_in_profile;
use crate::config_file::keys::{DefaultValue, KEY_COMMAND, KEYS, Key, Kind, PROFILES, PROVIDERS};

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
    let keys = KEYS.iter().filter(|key| condition(key));
    keys.map(|key| (key.name.to_owned(), property(key))).collect()
}

fn property(key: &Key) -> Value {
    let mut property = match key.kind {
        Kind::Text | Kind::File | Kind::Profile => json!({"type": "string", "pattern": "\\S"}),
        Kind::Url => json!({"type": "string", "pattern": "^https?://[A-Za-z0-9\\[]"}),
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Count => json!({"type": "integer", "minimum": 0}),
        Kind::Percent => json!({"type": "integer", "minimum": 0, "maximum": 100}),
        Kind::Time => json!({"anyOf": [
            {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)?$"},
            {"type": "integer", "minimum": 1, "maximum": 86_400},
        ]}),
        Kind::Switch => json!({"type": "boolean"}),
    };
    if let Some(property) = property.as_object_mut() {
        let access = key.access.name();
        property.insert("description".to_owned(), json!(format!("{} ({access})", key.meaning)));
        if !matches!(key.default, DefaultValue::Words(_)) {
            property.insert("default".to_owned(), key.default_json());
        }
    }
    property
}

impl Key {
    /// Returns the default as the file would have it; `null` if no value has the same effect.
    pub(super) fn default_json(&self) -> Value {
        match self.default {
            DefaultValue::Value(_) | DefaultValue::Percent(_) => json_of(self.kind, &self.default.text()),
            DefaultValue::Words(_) => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests;
