//! Results of a client's requests, and requests to the client.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::CallUpdate;
use crate::settings::{ConfigOption, NamedChoice, OptionCategory, OptionKind, SessionModes};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult {
    pub(crate) protocol_version: u16,
    pub(crate) agent_capabilities: AgentCapabilities,
    pub(crate) agent_info: Implementation,
    pub(crate) auth_methods: Vec<NamedItem>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentCapabilities {
    pub(crate) load_session: bool,
    pub(crate) prompt_capabilities: Value,
    pub(crate) mcp_capabilities: Value,
    pub(crate) session_capabilities: SessionMethods,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<Value>,
}

/// Optional methods. A method is supported if its field is present.
#[derive(Debug, Serialize)]
pub(crate) struct SessionMethods {
    pub(crate) close: SupportedCapability,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) list: Option<SupportedCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delete: Option<SupportedCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<SupportedCapability>,
}

/// An empty object.
#[derive(Debug, Serialize)]
pub(crate) struct SupportedCapability {}

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
pub(crate) struct OpenSessionResult {
    /// Only for a new session. The client already knows the ids of other sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) modes: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) config_options: Vec<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOptionsResult {
    pub(crate) config_options: Vec<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListSessionsResult {
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
    /// The id is the kind, because there is at most one option of each kind.
    pub(crate) option_id: PermissionOptionKind,
    pub(crate) kind: PermissionOptionKind,
    pub(crate) name: String,
}

/// Kind of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PermissionOptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
}

/// Response of the client to a [`PermissionRequest`].
#[derive(Debug, Deserialize)]
pub(crate) struct PermissionOutcome {
    pub(crate) outcome: PermissionSelection,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum PermissionSelection {
    Cancelled,
    Selected { option_id: PermissionOptionKind },
}

/// Named item: a mode or an authentication method has an id, a value of an option has a value.
#[derive(Debug, Serialize)]
pub(crate) struct NamedItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl NamedItem {
    pub(crate) fn by_id(choice: &NamedChoice) -> Self {
        let NamedChoice { id, name, description } = choice.clone();
        Self { id: Some(id), value: None, name, description }
    }

    fn by_value(choice: &NamedChoice) -> Self {
        let NamedChoice { id, name, description } = choice.clone();
        Self { id: None, value: Some(id), name, description }
    }
}

/// Returns the modes in the form of the protocol.
pub(crate) fn modes(modes: &SessionModes) -> Value {
    let available: Vec<NamedItem> = modes.available.iter().map(NamedItem::by_id).collect();
    json!({"currentModeId": modes.current, "availableModes": available})
}

#[derive(Serialize)]
struct ConfigOptionView {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'static str>,
    #[serde(flatten)]
    values: ConfigOptionValues,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum ConfigOptionValues {
    Select { current_value: String, options: Vec<NamedItem> },
    Boolean { current_value: bool },
}

/// Returns the options in the form of the protocol. Omits switches for clients that do not support them.
pub(crate) fn config_options(options: &[ConfigOption], has_switches: bool) -> Vec<Value> {
    let is_known = |option: &&ConfigOption| has_switches || !matches!(option.kind, OptionKind::Switch(_));
    options.iter().filter(is_known).map(|option| json!(setting(option))).collect()
}

fn setting(option: &ConfigOption) -> ConfigOptionView {
    let ConfigOption { id, name, description, category, kind } = option.clone();
    let values = match kind {
        OptionKind::Select { current, choices } => ConfigOptionValues::Select {
            current_value: current,
            options: choices.iter().map(NamedItem::by_value).collect(),
        },
        OptionKind::Switch(is_on) => ConfigOptionValues::Boolean { current_value: is_on },
    };
    let category = match category {
        OptionCategory::Mode => Some("mode"),
        OptionCategory::Model => Some("model"),
        OptionCategory::ModelSetting => Some("model_config"),
        OptionCategory::Reasoning => Some("thought_level"),
        OptionCategory::Other => None,
    };
    ConfigOptionView { id, name, description, category, values }
}
