//! Keys of codex's configuration on the command line: `--config KEY=VALUE`, where the value is TOML.

use toml::{Table, Value};

use super::options::{
    APPROVAL_POLICIES, ExecOptions, SANDBOX_MODES, WEB_SEARCH_MODES, WebSearchMode, invalid_config,
};
use super::permissions::StatedPermissions;
use crate::command_line::{OptionError, RestrictingNames, choice, invalid, restricting, shorten};

/// Keys that restrict a run or grant it something, by their spellings, and the values of these keys.
const AUTHORITY: RestrictingNames = RestrictingNames {
    names: &[
        ("approval_policy", "approval_policy"),
        ("ask_for_approval", "approval_policy"),
        ("sandbox", "sandbox_mode"),
        ("sandbox_mode", "sandbox_mode"),
        ("sandbox_workspace_write.network_access", "sandbox_workspace_write.network_access"),
        ("network_access", "sandbox_workspace_write.network_access"),
        ("sandbox_workspace_write.writable_roots", "sandbox_workspace_write.writable_roots"),
        ("writable_roots", "sandbox_workspace_write.writable_roots"),
        ("web_search", "web_search"),
        ("tools.web_search", "tools.web_search"),
    ],
    others: &[
        ("model", "model"),
        ("model_reasoning_effort", "model_reasoning_effort"),
        ("reasoning_effort", "model_reasoning_effort"),
        ("openai_base_url", "openai_base_url"),
        ("base_url", "openai_base_url"),
    ],
    values: &[
        ("read-only", "sandbox_mode"),
        ("workspace-write", "sandbox_mode"),
        ("danger-full-access", "sandbox_mode"),
    ],
    short: &[],
};

/// Keys that restrict nothing although their names contain a restricting word, with the only value for which this is
/// true, unless it is true for all values. `*` is any text.
const HARMLESS: &[(&str, Option<&str>)] = &[
    ("approvals_reviewer", None),
    ("disable_response_storage", None),
    ("mcp_servers.*.tool_timeout_sec", None),
    ("model_auto_compact_token_limit", None),
    ("projects.*.trust_level", Some("trusted")),
    ("shell_environment_policy.inherit", Some("all")),
    ("shell_environment_policy.set.*", None),
    ("tool_output_token_limit", None),
];

/// Applies one assignment. Permissions go to `permissions`, all other values to `options`.
pub(super) fn apply(
    assignment: &str,
    options: &mut ExecOptions,
    permissions: &mut StatedPermissions,
    warnings: &mut Vec<String>,
) -> Result<(), OptionError> {
    let Some((key, raw)) = assignment.split_once('=') else {
        return Err(invalid("--config", assignment, "KEY=VALUE"));
    };
    let key = key.trim();
    let value = parse(raw.trim());
    let option = format!("--config {}", shorten(assignment));
    match key {
        "model" => options.model = Some(text(key, &value)?),
        "model_reasoning_effort" => options.reasoning_effort = Some(text(key, &value)?),
        "openai_base_url" => options.base_url = Some(text(key, &value)?),
        "approval_policy" => {
            permissions.approval.configure(option, one_of(key, &value, APPROVAL_POLICIES)?);
        }
        "sandbox_mode" => permissions.sandbox.configure(option, one_of(key, &value, SANDBOX_MODES)?),
        "sandbox_workspace_write.network_access" => {
            permissions.network.configure(option, switch(key, &value)?);
        }
        "sandbox_workspace_write.writable_roots" => {
            options.added_directories.extend(texts(key, &value)?.into_iter().map(Into::into));
        }
        "web_search" | "tools.web_search" => {
            permissions.web_search.configure(option, web_search(key, &value)?);
        }
        _ => return unknown(key, value, warnings),
    }
    Ok(())
}

/// Parses a TOML value. An invalid value is a string, as in codex.
fn parse(raw: &str) -> Value {
    let parsed = format!("value = {raw}").parse::<Table>().ok().filter(|table| table.len() == 1);
    let value = parsed.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(raw.trim_matches(['"', '\'']).to_owned()))
}

fn text(key: &str, value: &Value) -> Result<String, OptionError> {
    value.as_str().map(str::to_owned).ok_or_else(|| invalid_config(key, value, "a string"))
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, OptionError> {
    let list = value.as_array().ok_or_else(|| invalid_config(key, value, "a list of strings"))?;
    list.iter().map(|item| text(key, item)).collect()
}

fn switch(key: &str, value: &Value) -> Result<bool, OptionError> {
    value.as_bool().ok_or_else(|| invalid_config(key, value, "true or false"))
}

fn one_of<T: Copy>(key: &str, value: &Value, known: &[(&str, T)]) -> Result<T, OptionError> {
    choice(&format!("--config {key}"), &text(key, value)?, known)
}

/// Parses the web search mode. Older versions have a boolean instead.
fn web_search(key: &str, value: &Value) -> Result<WebSearchMode, OptionError> {
    match value.as_bool() {
        Some(true) => Ok(WebSearchMode::Live),
        Some(false) => Ok(WebSearchMode::Disabled),
        None => one_of(key, value, WEB_SEARCH_MODES),
    }
}

fn unknown(key: &str, mut value: Value, warnings: &mut Vec<String>) -> Result<(), OptionError> {
    let option = format!("--config {key}");
    if remove_harmless(key, &mut value) {
        warnings.push(format!("option {option} is ignored: the key has no meaning here"));
        return Ok(());
    }
    // A value that JSON cannot represent, such as an infinite number, has no keys.
    let json = serde_json::to_value(&value).unwrap_or_default();
    if let Some(reason) = AUTHORITY.objection_to_key(key, &json) {
        return Err(restricting(&option, reason));
    }
    if key.starts_with("features.") && value.as_bool() == Some(false) {
        return Err(restricting(&option, "there is no such feature to disable"));
    }
    if let Some(meant) = AUTHORITY.find_other(key) {
        return Err(OptionError::Misspelt { option, meant });
    }
    warnings.push(format!("option {option} is ignored: the key is unknown"));
    Ok(())
}

/// Removes the harmless keys of a value. Returns whether nothing else was in it.
fn remove_harmless(key: &str, value: &mut Value) -> bool {
    if HARMLESS
        .iter()
        .any(|(pattern, only)| has_form(key, pattern) && only.is_none_or(|only| value.as_str() == Some(only)))
    {
        return true;
    }
    let Value::Table(fields) = value else { return false };
    let is_empty = fields.is_empty();
    fields.retain(|name, value| !remove_harmless(&format!("{key}.{name}"), value));
    !is_empty && fields.is_empty()
}

/// Returns whether a key matches a pattern in which one `*` is any text.
fn has_form(key: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => key.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        None => key == pattern,
    }
}
