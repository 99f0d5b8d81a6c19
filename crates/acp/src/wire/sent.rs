//! Results of a client's requests, and requests to the client.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::CallUpdate;
use crate::settings::{Choice, ConfigOption, Modes, OptionCategory, OptionKind};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    pub(crate) protocol_version: u16,
    pub(crate) agent_capabilities: Capabilities,
    pub(crate) agent_info: Implementation,
    /// Each with `id`, `name` and perhaps `description`.
    pub(crate) auth_methods: Vec<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capabilities {
    pub(crate) load_session: bool,
    pub(crate) prompt_capabilities: Value,
    pub(crate) mcp_capabilities: Value,
    pub(crate) session_capabilities: Value,
}

#[derive(Debug, Serialize)]
pub(crate) struct Implementation {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) version: String,
}

/// Result of `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    /// Only of a new session: whoever opens another one knows its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) modes: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) config_options: Vec<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOptions {
    pub(crate) config_options: Vec<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSessions {
    pub(crate) sessions: Vec<ListedSession>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSession {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<String>,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionRequest {
    pub(crate) session_id: String,
    pub(crate) tool_call: CallUpdate,
    pub(crate) options: Vec<PermissionOption>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    /// The ids are the kinds: there is at most one option of each.
    pub(crate) option_id: Permission,
    pub(crate) kind: Permission,
    pub(crate) name: String,
}

/// Kind of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Permission {
    AllowOnce,
    AllowAlways,
    RejectOnce,
}

/// Response of the client to a [`PermissionRequest`].
#[derive(Debug, Deserialize)]
pub(crate) struct PermissionOutcome {
    pub(crate) outcome: Selection,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Selection {
    Cancelled,
    Selected { option_id: Permission },
}

/// Returns the modes in the form of the protocol.
pub(crate) fn modes(modes: &Modes) -> Value {
    let available: Vec<Value> = modes.available.iter().map(|mode| choice("id", mode)).collect();
    json!({"currentModeId": modes.current, "availableModes": available})
}

fn choice(id: &str, choice: &Choice) -> Value {
    let mut value = json!({id: choice.id, "name": choice.name});
    if let Some(description) = &choice.description {
        value["description"] = json!(description);
    }
    value
}

/// Returns the options in the form of the protocol. Switches are left out for clients that know none.
pub(crate) fn config_options(options: &[ConfigOption], has_switches: bool) -> Vec<Value> {
    let is_known = |option: &&ConfigOption| has_switches || !matches!(option.kind, OptionKind::Switch(_));
    options.iter().filter(is_known).map(config_option).collect()
}

fn config_option(option: &ConfigOption) -> Value {
    let mut value = match &option.kind {
        OptionKind::Select { current, choices } => {
            let choices: Vec<Value> = choices.iter().map(|one| choice("value", one)).collect();
            json!({"type": "select", "currentValue": current, "options": choices})
        }
        OptionKind::Switch(is_on) => json!({"type": "boolean", "currentValue": is_on}),
    };
    value["id"] = json!(option.id);
    value["name"] = json!(option.name);
    if let Some(description) = &option.description {
        value["description"] = json!(description);
    }
    let category = match option.category {
        OptionCategory::Mode => Some("mode"),
        OptionCategory::Model => Some("model"),
        OptionCategory::ModelSetting => Some("model_config"),
        OptionCategory::Reasoning => Some("thought_level"),
        OptionCategory::Other => None,
    };
    if let Some(category) = category {
        value["category"] = json!(category);
    }
    value
}
