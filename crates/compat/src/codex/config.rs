//! Keys of codex's configuration on the command line: `--config KEY=VALUE`, where the value is TOML.

use toml::{Table, Value};

use super::options::{
    APPROVAL_POLICIES, ExecOptions, SANDBOX_MODES, WEB_SEARCH_MODES, WebSearchMode, invalid_config,
};
use crate::command_line::{Authority, OptionError, choice, invalid, restricting};

/// Keys that restrict a run or grant it something, by their spellings, and the values of these keys.
const AUTHORITY: Authority = Authority {
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
    values: &[
        ("read-only", "sandbox_mode"),
        ("workspace-write", "sandbox_mode"),
        ("danger-full-access", "sandbox_mode"),
        ("untrusted", "approval_policy"),
        ("on-failure", "approval_policy"),
        ("on-request", "approval_policy"),
        ("never", "approval_policy"),
        ("disabled", "web_search"),
    ],
    short: &[],
};

/// Applies one assignment.
pub(super) fn apply(
    assignment: &str,
    options: &mut ExecOptions,
    warnings: &mut Vec<String>,
) -> Result<(), OptionError> {
    let Some((key, raw)) = assignment.split_once('=') else {
        return Err(invalid("--config", assignment, "KEY=VALUE"));
    };
    let key = key.trim();
    let value = parse(raw.trim());
    match key {
        "model" => options.model = Some(text(key, &value)?),
        "model_reasoning_effort" => options.reasoning_effort = Some(text(key, &value)?),
        "openai_base_url" => options.base_url = Some(text(key, &value)?),
        "approval_policy" => options.approval = Some(one_of(key, &value, APPROVAL_POLICIES)?),
        "sandbox_mode" => options.sandbox = Some(one_of(key, &value, SANDBOX_MODES)?),
        "sandbox_workspace_write.network_access" => options.network = Some(switch(key, &value)?),
        "sandbox_workspace_write.writable_roots" => {
            options.added_directories.extend(texts(key, &value)?.into_iter().map(Into::into));
        }
        "web_search" | "tools.web_search" => options.web_search = Some(web_search(key, &value)?),
        _ => return unknown(key, &value, warnings),
    }
    Ok(())
}

/// Parses a TOML value. What is none is a string, as in codex.
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

/// Older versions have a switch here.
fn web_search(key: &str, value: &Value) -> Result<WebSearchMode, OptionError> {
    match value.as_bool() {
        Some(true) => Ok(WebSearchMode::Live),
        Some(false) => Ok(WebSearchMode::Disabled),
        None => one_of(key, value, WEB_SEARCH_MODES),
    }
}

fn unknown(key: &str, value: &Value, warnings: &mut Vec<String>) -> Result<(), OptionError> {
    let option = format!("--config {key}");
    // A value that cannot be JSON, such as a number that is not finite, has no keys.
    let json = serde_json::to_value(value).unwrap_or_default();
    if let Some(reason) = AUTHORITY.objection_to_key(key, &json) {
        return Err(restricting(&option, reason));
    }
    if key.starts_with("features.") && value.as_bool() == Some(false) {
        return Err(restricting(&option, "there is no such feature to disable"));
    }
    warnings.push(format!("option {option} is ignored: the key is unknown"));
    Ok(())
}
