//! Settings on the command line and in the handshake: a JSON object in the format of Claude Code's settings files.

use serde_json::{Map, Value};

use super::mode::{MODES, PermissionMode};
use super::tool_rule::ToolRule;
use crate::command_line::{OptionError, RestrictingNames, choice, invalid, restricting};

/// Supported settings. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaudeSettings {
    /// Calls that run without approval.
    pub allow: Vec<ToolRule>,
    /// Calls that need an approval.
    pub ask: Vec<ToolRule>,
    /// Calls that do not run.
    pub deny: Vec<ToolRule>,
    /// Mode at the start.
    pub mode: Option<PermissionMode>,
    /// Additional directories.
    pub added_directories: Vec<String>,
    /// Model.
    pub model: Option<String>,
    /// Whether commands run in a sandbox.
    pub sandbox: Option<bool>,
}

const OPTION: &str = "--settings";

/// Keys that restrict a session or grant it something, by their spellings, and the values of these keys.
pub(super) const AUTHORITY: RestrictingNames = RestrictingNames {
    names: &[
        ("permissions", "permissions"),
        ("permissions.allow", "permissions.allow"),
        ("allow", "permissions.allow"),
        ("permissions.ask", "permissions.ask"),
        ("ask", "permissions.ask"),
        ("permissions.deny", "permissions.deny"),
        ("deny", "permissions.deny"),
        ("permissions.defaultMode", "permissions.defaultMode"),
        ("defaultMode", "permissions.defaultMode"),
        ("permissions.additionalDirectories", "permissions.additionalDirectories"),
        ("additionalDirectories", "permissions.additionalDirectories"),
        ("sandbox", "sandbox"),
        ("sandbox.enabled", "sandbox.enabled"),
    ],
    others: &[("model", "model")],
    values: &[
        ("acceptEdits", "permissions.defaultMode"),
        ("bypassPermissions", "permissions.defaultMode"),
        ("dontAsk", "permissions.defaultMode"),
    ],
    short: &[],
};

impl ClaudeSettings {
    /// Parses settings. An unknown key that could restrict the session is refused; any other ignored key adds a message
    /// to `warnings`.
    ///
    /// # Errors
    ///
    /// [`OptionError`] for such a key, for a value of the wrong type, and for a text that is not a JSON object, such as
    /// the path of a file. The caller reads the file and passes its content.
    pub fn parse(text: &str, warnings: &mut Vec<String>) -> Result<Self, OptionError> {
        match serde_json::from_str(text.trim()) {
            Ok(Value::Object(fields)) => Self::from_fields(&fields, warnings),
            _ => Err(invalid(OPTION, text, "a JSON object")),
        }
    }

    /// Reads settings from an object.
    ///
    /// # Errors
    ///
    /// As for [`ClaudeSettings::parse`].
    pub fn from_fields(fields: &Map<String, Value>, warnings: &mut Vec<String>) -> Result<Self, OptionError> {
        let mut settings = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "model" => settings.model = Some(text(name, value)?),
                "permissions" => settings.permissions(object(name, value)?, warnings)?,
                "sandbox" => settings.sandbox(object(name, value)?, warnings)?,
                "$schema" => {}
                // The names of variables are not keys.
                "env" => warnings
                    .push(format!("option {OPTION} env is ignored: use the variables of this program")),
                _ => unknown(name, value, warnings)?,
            }
        }
        Ok(settings)
    }

    fn permissions(
        &mut self,
        fields: &Map<String, Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), OptionError> {
        for (name, value) in fields {
            let key = format!("permissions.{name}");
            match name.as_str() {
                "allow" => self.allow.extend(rules(&key, value)?),
                "ask" => self.ask.extend(rules(&key, value)?),
                "deny" => self.deny.extend(rules(&key, value)?),
                "defaultMode" => {
                    self.mode = Some(choice(&format!("{OPTION} {key}"), &text(&key, value)?, MODES)?);
                }
                "additionalDirectories" => self.added_directories.extend(texts(&key, value)?),
                _ => unknown(&key, value, warnings)?,
            }
        }
        Ok(())
    }

    fn sandbox(
        &mut self,
        fields: &Map<String, Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), OptionError> {
        for (name, value) in fields {
            let key = format!("sandbox.{name}");
            match (name.as_str(), value.as_bool()) {
                ("enabled", Some(enabled)) => self.sandbox = Some(enabled),
                // It grants more, and is left to the mode.
                ("autoAllowBashIfSandboxed", Some(_)) => {
                    warnings.push(format!("option {OPTION} {key} is ignored: the mode decides"));
                }
                ("enabled" | "autoAllowBashIfSandboxed", None) => {
                    return Err(wrong(&key, value, "true or false"));
                }
                _ => {
                    let reason = AUTHORITY.objection_to_key(&key, value);
                    let reason = reason.unwrap_or_else(|| "the key is unknown".to_owned());
                    return Err(restricting(&format!("{OPTION} {key}"), reason));
                }
            }
        }
        Ok(())
    }
}

fn unknown(key: &str, value: &Value, warnings: &mut Vec<String>) -> Result<(), OptionError> {
    let option = format!("{OPTION} {key}");
    if let Some(reason) = AUTHORITY.objection_to_key(key, value) {
        return Err(restricting(&option, reason));
    }
    if let Some(meant) = AUTHORITY.find_other(key) {
        return Err(OptionError::Misspelt { option, meant });
    }
    warnings.push(format!("option {option} is ignored: the key is unknown"));
    Ok(())
}

fn rules(key: &str, value: &Value) -> Result<Vec<ToolRule>, OptionError> {
    let rule = |text: &String| ToolRule::parse(text);
    let rules: Result<Vec<ToolRule>, _> = texts(key, value)?.iter().map(rule).collect();
    rules.map_err(|error| invalid(&format!("{OPTION} {key}"), &error.0, "rules on tools"))
}

fn text(key: &str, value: &Value) -> Result<String, OptionError> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(key, value, "a string"))
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, OptionError> {
    let list = value.as_array().ok_or_else(|| wrong(key, value, "a list of strings"))?;
    list.iter().map(|item| text(key, item)).collect()
}

fn object<'a>(key: &str, value: &'a Value) -> Result<&'a Map<String, Value>, OptionError> {
    value.as_object().ok_or_else(|| wrong(key, value, "an object"))
}

fn wrong(key: &str, value: &Value, expected: &str) -> OptionError {
    invalid(&format!("{OPTION} {key}"), &value.to_string(), expected)
}
