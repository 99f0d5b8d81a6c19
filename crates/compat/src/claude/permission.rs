//! Permission for calls: the questions and their answers.

use pintle_agent::{ApprovalRequest, CallKind, Decision};
use serde_json::{Map, Value, json};

use super::fields::ObjectFields;
use super::lines::LineError;
use super::mode::PermissionMode;
use super::tool_names::claude_tool_name;
use super::tool_rule::{RuleBehavior, ToolRule};

/// Question whether a call may run (`can_use_tool`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// Name of the tool in the session.
    pub tool_name: String,
    /// Arguments.
    pub input: Value,
    /// Id of the call.
    pub tool_use_id: String,
    /// Reason of the question.
    pub reason: Option<String>,
    /// Changes that would allow calls like this one.
    pub suggestions: Vec<PermissionUpdate>,
    /// Subagent that makes the call.
    pub agent_id: Option<String>,
}

impl PermissionRequest {
    /// Creates the question for a request of a session.
    ///
    /// A call that changes files gets the mode `acceptEdits` as a suggestion. Each of the
    /// [suggested rules](ApprovalRequest::suggested_rules) becomes the scope of a suggestion, so that the host returns
    /// the rule of the session unchanged.
    #[must_use]
    pub fn new(request: &ApprovalRequest) -> Self {
        let kind = CallKind::of_tool(&request.tool_kind, request.effect);
        let mut suggestions = Vec::new();
        if kind == CallKind::Edit {
            suggestions.push(PermissionUpdate::SetMode(PermissionMode::AcceptEdits));
        }
        let name = claude_tool_name(&request.tool_name);
        let rule = |rule: &String| ToolRule::new(name, Some(rule.clone()));
        let rules: Vec<ToolRule> = request.suggested_rules.iter().map(rule).collect();
        if !rules.is_empty() {
            suggestions.push(PermissionUpdate::AddRules { behavior: RuleBehavior::Allow, rules });
        }
        Self {
            tool_name: request.tool_name.clone(),
            input: request.arguments.clone(),
            tool_use_id: request.call_id.clone(),
            reason: (!request.reason.is_empty()).then(|| request.reason.clone()),
            suggestions,
            agent_id: request.origin.as_ref().map(|origin| origin.agent_id.clone()),
        }
    }

    /// Returns the request on the control channel.
    pub(super) fn to_value(&self) -> Value {
        let mut request = json!({
            "subtype": "can_use_tool",
            "tool_name": claude_tool_name(&self.tool_name),
            "input": self.input,
            "tool_use_id": self.tool_use_id,
            "permission_suggestions":
                self.suggestions.iter().map(PermissionUpdate::to_value).collect::<Vec<_>>(),
        });
        if let Some(fields) = request.as_object_mut() {
            let optional = [("decision_reason", &self.reason), ("agent_id", &self.agent_id)];
            for (name, value) in optional {
                if let Some(value) = value {
                    fields.insert(name.to_owned(), value.as_str().into());
                }
            }
        }
        request
    }
}

/// Answer to a [`PermissionRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum PermissionAnswer {
    /// The call may run unchanged.
    Allow {
        /// Settings that change from now on.
        updates: Vec<PermissionUpdate>,
    },
    /// A call with other arguments may replace it (`updatedInput`). It is a new call, which is validated and checked
    /// from the start. Earlier permissions do not apply to it.
    Replace {
        /// Its arguments.
        arguments: Value,
        /// Settings that change from now on.
        updates: Vec<PermissionUpdate>,
    },
    /// The call does not run.
    Deny {
        /// Reason, for the model.
        message: String,
        /// Whether the run is stopped.
        interrupts: bool,
    },
}

impl PermissionAnswer {
    /// Reads an answer to a question about these arguments.
    pub(super) fn read(answer: &Value, asked: &Value) -> Result<Self, LineError> {
        let answer = ObjectFields::new("response", answer)?;
        match answer.text("behavior")? {
            "allow" => {
                let updates = updates(answer.get("updatedPermissions"))?;
                match answer.get("updatedInput") {
                    Some(input) if !input.is_object() => Err(answer.wrong("updatedInput", "an object")),
                    Some(input) if input != asked => Ok(Self::Replace { arguments: input.clone(), updates }),
                    _ => Ok(Self::Allow { updates }),
                }
            }
            "deny" => Ok(Self::Deny {
                message: answer.optional_text("message")?.unwrap_or_default(),
                interrupts: answer.switch("interrupt")?,
            }),
            _ => Err(answer.wrong("behavior", "`allow` or `deny`")),
        }
    }

    /// Returns the decision for [`SessionHandle::decide`](pintle_agent::SessionHandle::decide). The caller applies the
    /// changes of permissions and stops the run.
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self {
            Self::Allow { .. } => Decision::Approve,
            Self::Replace { arguments, .. } => Decision::Change { arguments: arguments.clone() },
            Self::Deny { message, .. } => {
                Decision::Deny { reason: (!message.is_empty()).then(|| message.clone()) }
            }
        }
    }

    /// Returns the settings that change from now on.
    #[must_use]
    pub fn updates(&self) -> &[PermissionUpdate] {
        match self {
            Self::Allow { updates } | Self::Replace { updates, .. } => updates,
            Self::Deny { .. } => &[],
        }
    }
}

/// Change of a session's permissions.
///
/// The caller supports other destinations than the session, such as a settings file, or ignores them with a warning. A
/// session that ignores such a change asks again.
#[derive(Clone, Debug, PartialEq)]
pub enum PermissionUpdate {
    /// More rules.
    AddRules {
        /// Behavior of the rules.
        behavior: RuleBehavior,
        /// The rules.
        rules: Vec<ToolRule>,
    },
    /// Rules that replace all rules of this behaviour.
    ReplaceRules {
        /// Behavior of the rules.
        behavior: RuleBehavior,
        /// The rules.
        rules: Vec<ToolRule>,
    },
    /// Fewer rules.
    RemoveRules {
        /// Behavior that the rules had.
        behavior: RuleBehavior,
        /// The rules.
        rules: Vec<ToolRule>,
    },
    /// Another mode.
    SetMode(PermissionMode),
    /// More directories.
    AddDirectories(Vec<String>),
    /// Fewer directories.
    RemoveDirectories(Vec<String>),
}

impl PermissionUpdate {
    fn read(update: &Value) -> Result<Self, LineError> {
        let update = ObjectFields::new("updatedPermissions[]", update)?;
        match update.text("type")? {
            "addRules" => Ok(Self::AddRules { behavior: behavior(update)?, rules: rules(update)? }),
            "replaceRules" => Ok(Self::ReplaceRules { behavior: behavior(update)?, rules: rules(update)? }),
            "removeRules" => Ok(Self::RemoveRules { behavior: behavior(update)?, rules: rules(update)? }),
            "setMode" => {
                let mode = PermissionMode::from_name(update.text("mode")?);
                mode.map(Self::SetMode).ok_or_else(|| update.wrong("mode", "a permission mode"))
            }
            "addDirectories" => Ok(Self::AddDirectories(update.texts("directories")?)),
            "removeDirectories" => Ok(Self::RemoveDirectories(update.texts("directories")?)),
            // An unknown change may be a restriction.
            _ => Err(update.wrong("type", "a known change of permissions")),
        }
    }

    fn to_value(&self) -> Value {
        let with_rules = |kind: &str, behavior: &RuleBehavior, rules: &[ToolRule]| {
            let rules: Vec<Value> = rules.iter().map(rule_value).collect();
            json!({"type": kind, "behavior": behavior.as_str(), "rules": rules, "destination": "session"})
        };
        match self {
            Self::AddRules { behavior, rules } => with_rules("addRules", behavior, rules),
            Self::ReplaceRules { behavior, rules } => with_rules("replaceRules", behavior, rules),
            Self::RemoveRules { behavior, rules } => with_rules("removeRules", behavior, rules),
            Self::SetMode(mode) => {
                json!({"type": "setMode", "mode": mode.as_str(), "destination": "session"})
            }
            Self::AddDirectories(directories) => {
                json!({"type": "addDirectories", "directories": directories, "destination": "session"})
            }
            Self::RemoveDirectories(directories) => {
                json!({"type": "removeDirectories", "directories": directories, "destination": "session"})
            }
        }
    }
}

fn updates(list: Option<&Value>) -> Result<Vec<PermissionUpdate>, LineError> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or_else(|| LineError::field("updatedPermissions", "a list"))?;
    list.iter().map(PermissionUpdate::read).collect()
}

fn behavior(update: ObjectFields<'_>) -> Result<RuleBehavior, LineError> {
    match update.text("behavior")? {
        "allow" => Ok(RuleBehavior::Allow),
        "deny" => Ok(RuleBehavior::Deny),
        "ask" => Ok(RuleBehavior::Ask),
        _ => Err(update.wrong("behavior", "`allow`, `deny` or `ask`")),
    }
}

fn rules(update: ObjectFields<'_>) -> Result<Vec<ToolRule>, LineError> {
    let list = update.required("rules", "a list of rules")?;
    let list = list.as_array().ok_or_else(|| update.wrong("rules", "a list of rules"))?;
    list.iter()
        .map(|rule| {
            let rule = ObjectFields::new("rules[]", rule)?;
            Ok(ToolRule::new(rule.text("toolName")?, rule.optional_text("ruleContent")?))
        })
        .collect()
}

fn rule_value(rule: &ToolRule) -> Value {
    let mut fields = Map::new();
    fields.insert("toolName".to_owned(), rule.tool.as_str().into());
    if let Some(scope) = &rule.scope {
        fields.insert("ruleContent".to_owned(), scope.as_str().into());
    }
    fields.into()
}
