//! Answers of commands.

use pintle_agent::Count;
use pintle_tools::gate::Permission;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::event::{HookEvent, HookEventExt as _};
use super::run::HookAnswer;

/// Longest text of one hook for the model, in characters.
const MAX_TEXT: usize = 10_000;

/// Answer of one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// The permission. Blocking counts as a denial.
    pub(super) permission: Option<Permission>,
    /// Reason of a question or a denial.
    pub(super) reason: Option<String>,
    /// Reason to stop the agent.
    pub(super) stop: Option<String>,
    /// Arguments for the call.
    pub(super) arguments: Option<Value>,
    /// Text that is added for the model.
    pub(super) context: Option<String>,
    /// Text in place of the result.
    pub(super) replacement: Option<String>,
    /// Text for the user.
    pub(super) message: Option<String>,
}

/// Output that is not an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Garbage;

/// Returns whether a text contains an object with an answer key.
fn contains_answer(text: &str) -> bool {
    const KEYS: [&str; 5] = ["continue", "stopReason", "systemMessage", "decision", "hookSpecificOutput"];
    let mut starts = text.match_indices('{').filter_map(|(start, _)| text.get(start..));
    starts.any(|start| {
        let mut objects = serde_json::Deserializer::from_str(start).into_iter::<Map<String, Value>>();
        let object = objects.next().and_then(Result::ok);
        object.is_some_and(|object| KEYS.iter().any(|key| object.contains_key(*key)))
    })
}

/// Form of an answer. Unknown keys are ignored, since other agents define more keys.
#[derive(Deserialize)]
struct RawAnswer {
    r#continue: Option<bool>,
    #[serde(rename = "stopReason")]
    stop_reason: Option<String>,
    #[serde(rename = "systemMessage")]
    system_message: Option<String>,
    decision: Option<Decision>,
    reason: Option<String>,
    #[serde(rename = "hookSpecificOutput", default)]
    specific: Option<Specific>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Approve,
    Allow,
    Block,
    Deny,
    Ask,
    Defer,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Specific {
    hook_event_name: Option<String>,
    permission_decision: Option<Decision>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    updated_tool_output: Option<Value>,
    decision: Option<Behavior>,
}

/// Answer to a request for permission, as other agents write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Behavior {
    behavior: Decision,
    message: Option<String>,
    updated_input: Option<Map<String, Value>>,
}

impl Decision {
    fn permission(self) -> Permission {
        match self {
            Self::Approve | Self::Allow => Permission::Allow,
            Self::Ask | Self::Defer => Permission::Ask,
            Self::Block | Self::Deny => Permission::Deny,
        }
    }
}

impl Answer {
    /// Denies, or blocks.
    pub(super) fn deny(reason: impl Into<String>) -> Self {
        Self { permission: Some(Permission::Deny), reason: Some(reason.into()), ..Self::default() }
    }

    /// Reads the output of a command that exited with 0.
    ///
    /// # Errors
    ///
    /// [`Garbage`] for output that starts as JSON and is not JSON, for an answer with other text around it, and for the
    /// answer to another event.
    pub(super) fn parse(event: HookEvent, stdout: &str) -> Result<Self, Garbage> {
        let text = stdout.trim();
        if !text.starts_with('{') {
            // A denial must not get lost because a program prints something around it.
            if contains_answer(text) {
                return Err(Garbage);
            }
            let context = event.takes_plain_text().then(|| for_model(text)).flatten();
            return Ok(Self { context, ..Self::default() });
        }
        let RawAnswer { r#continue, stop_reason, system_message, decision, reason, specific } =
            serde_json::from_str(text).map_err(|_error| Garbage)?;
        let specific = specific.unwrap_or_default();
        if specific.hook_event_name.as_deref().is_some_and(|name| name != event.as_str()) {
            return Err(Garbage);
        }
        let (behavior, message, changed) = match specific.decision {
            Some(Behavior { behavior, message, updated_input }) => (Some(behavior), message, updated_input),
            None => (None, None, None),
        };
        let decisions = [decision, specific.permission_decision, behavior];
        // If a hook decides twice, the stricter decision counts.
        let permission =
            decisions.into_iter().flatten().map(Decision::permission).max_by_key(|p| strictness(*p));
        // A decision without a meaning for the event is dropped.
        let permission = permission.filter(|said| *said == Permission::Deny || event.is_before_call());
        let arguments = specific.updated_input.or(changed);
        let context = specific.additional_context.as_deref().and_then(for_model);
        let output = specific.updated_tool_output.filter(|_| event.is_after_call());
        let reason = specific.permission_decision_reason.or(message).or(reason);
        let stop = (r#continue == Some(false)).then(|| {
            let reason = stop_reason.as_deref().or(reason.as_deref()).and_then(for_model);
            reason.unwrap_or_else(|| "a hook stops it".to_owned())
        });
        Ok(Self {
            permission,
            reason: reason.as_deref().and_then(for_model),
            stop,
            arguments: arguments.filter(|_| event.is_before_call()).map(Value::Object),
            context: context.filter(|_| event.takes_context()),
            replacement: output.map(|output| match output {
                Value::String(text) => text,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    output.to_string()
                }
            }),
            message: system_message.as_deref().and_then(for_model),
        })
    }

    /// Returns the kind of the answer.
    pub(super) fn word(&self) -> HookAnswer {
        match self.permission {
            _ if self.stop.is_some() => HookAnswer::Stop,
            Some(Permission::Deny) => HookAnswer::Deny,
            Some(Permission::Ask) => HookAnswer::Ask,
            Some(Permission::Allow) | None if self.arguments.is_some() || self.replacement.is_some() => {
                HookAnswer::Change
            }
            Some(Permission::Allow) => HookAnswer::Allow,
            None if self.context.is_some() => HookAnswer::Add,
            None => HookAnswer::Nothing,
        }
    }
}

/// Orders permissions: of several answers, the strictest counts.
pub(super) fn strictness(permission: Permission) -> u8 {
    match permission {
        Permission::Allow => 0,
        Permission::Ask => 1,
        Permission::Deny => 2,
    }
}

/// Returns a text for the model, shortened; `None` if it is empty.
pub(super) fn for_model(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text.char_indices().nth(MAX_TEXT).map(|(end, _)| end);
    match end.and_then(|end| text.split_at_checked(end)) {
        Some((kept, rest)) => {
            Some(format!("{kept} … ({})", Count(rest.chars().count() as u64, "more character")))
        }
        None => (!text.is_empty()).then(|| text.to_owned()),
    }
}
