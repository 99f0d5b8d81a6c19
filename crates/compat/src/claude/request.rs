//! Requests of the host on the control channel, and the answers to them.

use serde_json::{Map, Value, json};

use super::fields::ObjectFields;
use super::hooks::HookRegistration;
use super::lines::LineError;
use super::mode::{MODES, PermissionMode};
use super::settings::ClaudeSettings;
use super::tool_rule::ToolRule;
use crate::command_line::{RestrictingNames, shorten};

/// Request of the host. Each one is answered once, with [`ControlChannel::answer`](super::ControlChannel::answer).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HostRequest {
    /// Handshake. Answered with [`InitializeAnswer::to_value`].
    Initialize(Box<InitializeRequest>),
    /// Stop the run. Answered after the run has stopped, for example with an empty object.
    Interrupt,
    /// Change the model; `None` selects the default one.
    SetModel(Option<String>),
    /// Change the permission mode. Answered with `{"mode": …}`.
    SetPermissionMode(PermissionMode),
    /// Change the thinking budget, in tokens; 0 turns thinking off, `None` selects the default.
    SetThinkingTokens(Option<u64>),
    /// Return the usage of the context window. Answered with [`ContextUsage::to_value`].
    GetContextUsage,
    /// Restore files to their state at a message of the user. Answered with [`RewindAnswer::to_value`].
    RewindFiles {
        /// `uuid` of the message.
        user_message_id: String,
        /// Whether to return the changes without making them.
        is_dry_run: bool,
    },
    /// Message of an MCP server that runs in the host. It is not an answer.
    McpMessage {
        /// Name of the server.
        server: String,
        /// JSON-RPC message.
        message: Value,
    },
    /// Status of the MCP servers. Answered with `{"mcpServers": […]}`.
    McpStatus,
}

/// Handshake of the host.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct InitializeRequest {
    /// Hooks of the host.
    pub hooks: Vec<HookRegistration>,
    /// MCP servers that run in the host, reached by [`ControlChannel::send_mcp`](super::ControlChannel::send_mcp).
    pub sdk_mcp_servers: Vec<String>,
    /// Schema of the answer.
    pub json_schema: Option<Value>,
    /// System prompt that replaces the default one. An empty text is also a prompt.
    pub system_prompt: Option<String>,
    /// Text at the end of the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether the text of subagents is written.
    pub forward_subagent_text: bool,
    /// Calls that do not run. An answer must confirm that they are applied.
    pub disallowed_tools: Option<Vec<ToolRule>>,
    /// Settings. An answer must confirm that they are applied.
    pub settings: Option<ClaudeSettings>,
    /// Ignored options, with the reason.
    pub warnings: Vec<String>,
}

/// Ignored fields of the handshake, and why ignoring them is harmless.
const HARMLESS: &[(&str, &str)] = &[
    ("sdkMcpServerManifests", "servers are asked for their tools"),
    ("sdkMcpServerManifestsOrigin", "servers are asked for their tools"),
    ("systemPromptSnapshot", "prompts are byte-stable as they are"),
    ("excludeDynamicSections", "prompts are byte-stable as they are"),
    ("planModeInstructions", "the mode has other instructions"),
    ("appendSubagentSystemPrompt", "subagents have other prompts"),
    ("agents", "there are no such agents"),
    ("skills", "the skills of the project are used"),
    ("title", "sessions have no title"),
    ("mcpServers", "--mcp-config lists the servers"),
    ("promptSuggestions", "prompts are not suggested"),
    ("agentProgressSummaries", "progress is not summarized"),
    ("supportedDialogKinds", "there are no dialogs"),
    ("perTaskStopAffordance", "tasks cannot be stopped one by one"),
    ("rapidFollowupPreempt", "follow-up messages do not interrupt a turn"),
    ("forwardNestedSubagentToolCalls", "calls of all subagents are written"),
    ("offersBypassSwitchBack", "the mode is changed by requests"),
    ("keepsBypassHeld", "the mode is changed by requests"),
];

/// Fields of the handshake that restrict a session, by their spellings.
const AUTHORITY: RestrictingNames = RestrictingNames {
    names: &[
        ("hooks", "hooks"),
        ("disallowedTools", "disallowedTools"),
        ("settings", "settings"),
        ("sdkMcpServerConfigs", "sdkMcpServerConfigs"),
    ],
    others: &[],
    values: super::settings::AUTHORITY.values,
    short: &[],
};

const KNOWN: &[&str] = &[
    "subtype",
    "hooks",
    "sdkMcpServers",
    "sdkMcpServerConfigs",
    "jsonSchema",
    "systemPrompt",
    "appendSystemPrompt",
    "forwardSubagentText",
    "disallowedTools",
    "settings",
];

impl HostRequest {
    /// Reads a request; `None` for an unknown subtype.
    pub(super) fn read(request: ObjectFields<'_>) -> Result<Option<Self>, LineError> {
        Ok(Some(match request.text("subtype")? {
            "initialize" => Self::Initialize(Box::new(InitializeRequest::read(request)?)),
            "interrupt" => Self::Interrupt,
            "set_model" => Self::SetModel(request.optional_text("model")?.filter(|model| model != "default")),
            "set_permission_mode" => {
                let known = || MODES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                let mode = PermissionMode::from_name(request.text("mode")?);
                Self::SetPermissionMode(mode.ok_or_else(|| request.wrong("mode", &known()))?)
            }
            "set_max_thinking_tokens" => {
                Self::SetThinkingTokens(request.optional("max_thinking_tokens", "a number", Value::as_u64)?)
            }
            "get_context_usage" => Self::GetContextUsage,
            "rewind_files" => Self::RewindFiles {
                user_message_id: request.text("user_message_id")?.to_owned(),
                is_dry_run: request.switch("dry_run")?,
            },
            "mcp_message" => Self::McpMessage {
                server: request.text("server_name")?.to_owned(),
                message: request.required("message", "a JSON-RPC message")?.clone(),
            },
            "mcp_status" => Self::McpStatus,
            _ => return Ok(None),
        }))
    }
}

impl InitializeRequest {
    fn read(request: ObjectFields<'_>) -> Result<Self, LineError> {
        let mut warnings = find_ignored(request.map())?;
        let hooks = match request.get("hooks") {
            Some(hooks) => {
                HookRegistration::read_all(ObjectFields::new("hooks", hooks)?.map(), &mut warnings)?
            }
            None => Vec::new(),
        };
        if let Some(configs) = request.get("sdkMcpServerConfigs") {
            check_servers(ObjectFields::new("sdkMcpServerConfigs", configs)?)?;
        }
        let settings = match request.get("settings") {
            Some(settings) => Some(read_settings(settings, &mut warnings)?),
            None => None,
        };
        let disallowed_tools = match request.get("disallowedTools") {
            Some(_) => Some(read_rules(request)?),
            None => None,
        };
        Ok(Self {
            hooks,
            sdk_mcp_servers: request.texts("sdkMcpServers")?,
            json_schema: request.get("jsonSchema").cloned(),
            system_prompt: request
                .get("systemPrompt")
                .map(|prompt| read_prompt(request, prompt))
                .transpose()?,
            append_system_prompt: request.optional_text("appendSystemPrompt")?,
            forward_subagent_text: request.switch("forwardSubagentText")?,
            disallowed_tools,
            settings,
            warnings,
        })
    }
}

/// Returns the warnings about fields that are ignored.
fn find_ignored(fields: &Map<String, Value>) -> Result<Vec<String>, LineError> {
    let mut warnings = Vec::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        if KNOWN.contains(&name.as_str()) {
            continue;
        }
        let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.as_bool() == Some(false);
        match HARMLESS.iter().find(|(known, _)| known == name) {
            Some(_) if is_empty => {}
            Some((_, reason)) => warnings.push(format!("field {name} of the handshake is ignored: {reason}")),
            None => match AUTHORITY.objection("the field", name, value.as_str()) {
                Some(reason) => {
                    let message = format!("nothing: it may restrict the session, and {reason}");
                    return Err(LineError::field(format!("initialize.{}", shorten(name)), message));
                }
                None => warnings.push(format!("field {name} of the handshake is ignored: it is unknown")),
            },
        }
    }
    Ok(warnings)
}

/// Refuses policies for the tools of a server. They restrict the tools and are not supported.
fn check_servers(configs: ObjectFields<'_>) -> Result<(), LineError> {
    for (server, config) in configs.map() {
        if ObjectFields::new("sdkMcpServerConfigs", config)?.get("tools").is_some() {
            return Err(configs.wrong(&format!("{server}.tools"), "nothing: tool policies are not supported"));
        }
    }
    Ok(())
}

fn read_settings(settings: &Value, warnings: &mut Vec<String>) -> Result<ClaudeSettings, LineError> {
    let read = match settings.as_str() {
        Some(text) => ClaudeSettings::parse(text, warnings),
        None => ClaudeSettings::from_fields(ObjectFields::new("settings", settings)?.map(), warnings),
    };
    read.map_err(|error| LineError::field("settings", format!("supported settings: {error}")))
}

fn read_rules(request: ObjectFields<'_>) -> Result<Vec<ToolRule>, LineError> {
    let rules: Result<Vec<ToolRule>, _> =
        request.texts("disallowedTools")?.iter().map(|rule| ToolRule::parse(rule)).collect();
    rules.map_err(|_| request.wrong("disallowedTools", "rules on tools"))
}

/// Reads a prompt, which may have several parts.
fn read_prompt(request: ObjectFields<'_>, prompt: &Value) -> Result<String, LineError> {
    match prompt.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Ok(request.texts("systemPrompt")?.join("\n\n")),
    }
}

/// Answer to the handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitializeAnswer {
    /// Slash commands with a description, without the slash.
    pub commands: Vec<(String, String)>,
    /// Models: id and display name.
    pub models: Vec<(String, String)>,
    /// Version of the program.
    pub version: String,
    /// Whether [`InitializeRequest::disallowed_tools`] are applied.
    pub applied_disallowed_tools: bool,
    /// Whether [`InitializeRequest::settings`] are applied.
    pub applied_settings: bool,
}

impl InitializeAnswer {
    /// Returns the answer on the control channel.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let command = |(name, description): &(String, String)| json!({"name": name, "description": description, "argumentHint": ""});
        let model =
            |(id, name): &(String, String)| json!({"value": id, "displayName": name, "description": ""});
        json!({
            "commands": self.commands.iter().map(command).collect::<Vec<_>>(),
            "models": self.models.iter().map(model).collect::<Vec<_>>(),
            "agents": [],
            "account": {},
            "output_style": "default",
            "available_output_styles": ["default"],
            "hooks_applied": true,
            "hook_on_failure_supported": true,
            "mcp_servers_applied": false,
            "disallowed_tools_applied": self.applied_disallowed_tools,
            "settings_applied": self.applied_settings,
            "claude_code_version": self.version,
        })
    }
}

/// Usage of the context window in tokens, as [`ContextUsage`](pintle_agent::EventKind::ContextUsage) reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextUsage {
    /// Model.
    pub model: String,
    /// Size of the window.
    pub window: u64,
    /// Size of the next request.
    pub used: u64,
    /// Size of the system prompt in it.
    pub system: u64,
    /// Size of the tools in it.
    pub tools: u64,
    /// Size of the conversation in it.
    pub history: u64,
}

impl ContextUsage {
    /// Returns the answer on the control channel.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let free = self.window.saturating_sub(self.used);
        let used = |id: &str, name: &str, tokens: u64| json!({"id": id, "name": name, "tokens": tokens, "color": "inactive", "kind": "used"});
        let percentage = self.used.saturating_mul(100).checked_div(self.window).unwrap_or(0);
        json!({
            "categories": [
                used("system_prompt", "System prompt", self.system),
                used("system_tools", "Tools", self.tools),
                used("messages", "Messages", self.history),
                {"id": "free_space", "name": "Free space", "tokens": free, "color": "inactive", "kind": "free"},
            ],
            "totalTokens": self.used,
            "maxTokens": self.window,
            "rawMaxTokens": self.window,
            "percentage": percentage,
            "gridRows": [],
            "model": self.model,
            "memoryFiles": [],
            "mcpTools": [],
            "agents": [],
            "isAutoCompactEnabled": true,
            "apiUsage": null,
        })
    }
}

/// Result of restoring files, or of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewindAnswer {
    /// Reason why it is not possible, if it is not.
    pub error: Option<String>,
    /// Paths of the files.
    pub files_changed: Vec<String>,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

impl RewindAnswer {
    /// Returns the answer on the control channel.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.error {
            Some(error) => json!({"canRewind": false, "error": error}),
            None => json!({
                "canRewind": true, "filesChanged": self.files_changed, "insertions": self.insertions,
                "deletions": self.deletions,
            }),
        }
    }
}
