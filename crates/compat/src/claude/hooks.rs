//! Hooks that the host runs: their registration, their input, and their answers.

use std::time::Duration;

use pintle_agent::{CallAnswer, Decision, EndAnswer, HookEvent, InputAnswer, ResultAnswer};
use pintle_tools::gate::Permission;
use serde_json::{Map, Value};

use super::fields::ObjectFields;
use super::lines::LineError;
use super::tool_names::claude_tool_name;
use crate::command_line::{find_misspelt, shorten};

/// Fields of a hook in the handshake.
const FIELDS: [&str; 4] = ["matcher", "hookCallbackIds", "timeout", "onFailure"];

/// Hooks of the host for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookRegistration {
    /// The event.
    pub event: HookEvent,
    /// Tools, sources, triggers or reasons for which they run.
    pub matcher: HookMatcher,
    /// Ids of the callbacks, for [`ControlChannel::run_hook`](super::ControlChannel::run_hook).
    pub callbacks: Vec<String>,
    /// Timeout of one hook; `None` leaves it to the session.
    pub timeout: Option<Duration>,
    /// Whether a hook that fails, or does not answer in time, blocks.
    pub blocks_on_failure: bool,
}

/// Names for which hooks run: all, or the alternatives of a pattern such as `Write|Edit` or `mcp__memory__.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookMatcher(Vec<String>);

impl HookMatcher {
    /// Parses a matcher. Alternatives of plain names match whole names. Any other matcher is a regular expression,
    /// which matches anywhere in a name. Supported are alternatives, `.*` for any characters, and the anchors `^` and
    /// `$`.
    ///
    /// # Errors
    ///
    /// [`LineError::InvalidField`] for any other expression: a hook that is skipped might have denied a call.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let text = text.trim();
        if matches!(text, "" | "*" | ".*") {
            return Ok(Self::default());
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let is_plain = text.chars().all(|c| is_name(c) || c == '|');
        let grouped = text.strip_prefix("^(").and_then(|rest| rest.strip_suffix(")$"));
        let alternatives = grouped.unwrap_or(text).split('|');
        let names: Vec<String> = alternatives
            .map(|name| if is_plain || grouped.is_some() { name.to_owned() } else { remove_anchors(name) })
            .map(|name| name.replace(".*", "*"))
            .collect();
        // A star after any other character than a dot repeats that character.
        let repeats = text.replace(".*", "").contains('*');
        let is_allowed = |c: char| is_name(c) || matches!(c, '-' | '*' | ':');
        if repeats || names.iter().any(|name| name.is_empty() || !name.chars().all(is_allowed)) {
            return Err(LineError::field("hooks[].matcher", "names, `|`, `.*`, `^` and `$`"));
        }
        Ok(Self(names))
    }

    /// Returns whether hooks run for a name, for example of a tool. The name of a tool may be from its toolset or
    /// Claude's.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let claude = claude_tool_name(name);
        self.0.is_empty() || self.0.iter().any(|pattern| wildcard(pattern, name) || wildcard(pattern, claude))
    }
}

/// Returns a pattern for an expression that matches anywhere, except where it has an anchor.
fn remove_anchors(expression: &str) -> String {
    let (start, rest) = match expression.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (".*", expression),
    };
    let (rest, end) = match rest.strip_suffix('$') {
        Some(rest) => (rest, ""),
        None => (rest, ".*"),
    };
    if rest.is_empty() { String::new() } else { format!("{start}{rest}{end}") }
}

/// Returns whether a text matches a pattern in which `*` is any text.
fn wildcard(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match text.find(piece) {
            Some(at) => text = text.get(at.saturating_add(piece.len())..).unwrap_or_default(),
            None => return false,
        }
    }
    text.ends_with(last)
}

impl HookRegistration {
    /// Reads the hooks of all events in the handshake. Claude Code has events that do not exist here; hooks for them
    /// are warnings. A misspelt name is an error, since its hooks may deny calls.
    pub(super) fn read_all(
        hooks: &Map<String, Value>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Self>, LineError> {
        let mut registrations = Vec::new();
        for (name, entries) in hooks {
            let Some(event) = HookEvent::from_name(name) else {
                if let Some(known) = find_misspelt(name, HookEvent::ALL.into_iter().map(HookEvent::as_str)) {
                    let field = format!("hooks.{}", shorten(name));
                    return Err(LineError::field(field, format!("a known event; did you mean {known}?")));
                }
                warnings.push(format!("hooks for {name} never run: there is no such event"));
                continue;
            };
            let entries = entries.as_array().ok_or_else(|| LineError::field("hooks", "lists of matchers"))?;
            for entry in entries {
                registrations.push(Self::read(event, ObjectFields::new("hooks[]", entry)?)?);
            }
        }
        Ok(registrations)
    }

    fn read(event: HookEvent, entry: ObjectFields<'_>) -> Result<Self, LineError> {
        let seconds =
            |value: &Value| value.as_f64().and_then(|value| Duration::try_from_secs_f64(value).ok());
        for name in entry.map().keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            if let Some(known) = find_misspelt(name, FIELDS.into_iter()) {
                return Err(entry.wrong(&shorten(name), &format!("a known field; did you mean {known}?")));
            }
        }
        Ok(Self {
            event,
            matcher: HookMatcher::parse(&entry.optional_text("matcher")?.unwrap_or_default())?,
            callbacks: entry.texts("hookCallbackIds")?,
            timeout: entry.optional("timeout", "a number of seconds", seconds)?,
            blocks_on_failure: entry.optional_text("onFailure")?.as_deref() == Some("block"),
        })
    }
}

/// Facts about a session that every hook receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookBase {
    /// Id of the session.
    pub session_id: String,
    /// Path of its journal; empty without a journal.
    pub transcript_path: String,
    /// Working directory of its tools.
    pub directory: String,
    /// Permission mode.
    pub permission_mode: String,
    /// Id of the subagent, if the session is one.
    pub agent_id: Option<String>,
}

impl HookBase {
    /// Returns the input of a hook: these facts, and the fields of its event, with the names of
    /// [Claude Code](https://code.claude.com/docs/en/hooks). A `tool_name` is changed to Claude's name.
    #[must_use]
    pub fn input(&self, event: HookEvent, fields: Map<String, Value>) -> Value {
        let mut input = fields;
        if let Some(name) = input.get("tool_name").and_then(Value::as_str) {
            let name = claude_tool_name(name).to_owned();
            input.insert("tool_name".to_owned(), name.into());
        }
        let base = [
            ("hook_event_name", event.as_str()),
            ("session_id", &self.session_id),
            ("transcript_path", &self.transcript_path),
            ("cwd", &self.directory),
            ("permission_mode", &self.permission_mode),
        ];
        for (name, value) in base {
            input.insert(name.to_owned(), value.into());
        }
        if let Some(agent) = &self.agent_id {
            input.insert("agent_id".to_owned(), agent.as_str().into());
        }
        input.into()
    }
}

/// Answer of a hook. All fields are absent by default, which has no effect.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HookAnswer {
    /// Reason why the run ends, if it does (`continue: false`).
    pub stop: Option<String>,
    /// Decision of the hook about the call: `permissionDecision`, or `decision` of older hooks. Absent for `defer`.
    pub permission: Option<Permission>,
    /// Whether the input, the end or the result is blocked (`decision: "block"`).
    pub blocks: bool,
    /// Reason of the decision or the block.
    pub reason: Option<String>,
    /// Other arguments of the call. They make a new call, whose permission is checked from the start.
    pub updated_input: Option<Value>,
    /// Text for the model.
    pub context: Option<String>,
    /// Output that replaces the output of the call.
    pub updated_output: Option<String>,
    /// Text for the user.
    pub system_message: Option<String>,
}

impl HookAnswer {
    /// Reads an answer.
    pub(super) fn read(answer: &Value) -> Result<Self, LineError> {
        let fields = ObjectFields::new("response", answer)?;
        let mut read = Self { system_message: fields.optional_text("systemMessage")?, ..Self::default() };
        read.reason = fields.optional_text("reason")?;
        if fields.optional("continue", "true or false", Value::as_bool)? == Some(false) {
            let reason = fields.optional_text("stopReason")?;
            read.stop = Some(reason.unwrap_or_else(|| "a hook stopped the run".to_owned()));
        }
        match fields.optional_text("decision")?.as_deref() {
            Some("block") => {
                read.blocks = true;
                read.permission = Some(Permission::Deny);
            }
            Some("approve") => read.permission = Some(Permission::Allow),
            Some(_) => return Err(fields.wrong("decision", "`approve` or `block`")),
            None => {}
        }
        if let Some(specific) = fields.get("hookSpecificOutput") {
            read.read_specific(ObjectFields::new("hookSpecificOutput", specific)?)?;
        }
        Ok(read)
    }

    fn read_specific(&mut self, specific: ObjectFields<'_>) -> Result<(), LineError> {
        match specific.optional_text("permissionDecision")?.as_deref() {
            Some("allow") => self.permission = Some(Permission::Allow),
            Some("deny") => self.permission = Some(Permission::Deny),
            Some("ask") => self.permission = Some(Permission::Ask),
            Some("defer") | None => {}
            Some(_) => {
                return Err(specific.wrong("permissionDecision", "`allow`, `deny`, `ask` or `defer`"));
            }
        }
        if let Some(reason) = specific.optional_text("permissionDecisionReason")? {
            self.reason = Some(reason);
        }
        self.context = specific.optional_text("additionalContext")?;
        self.updated_input = specific.get("updatedInput").cloned();
        let output = specific.get("updatedToolOutput").or_else(|| specific.get("updatedMCPToolOutput"));
        let text = |output: &Value| output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        self.updated_output = output.map(text);
        if let Some(decision) = specific.get("decision") {
            self.read_permission(ObjectFields::new("hookSpecificOutput.decision", decision)?)?;
        }
        match &self.updated_input {
            Some(input) if !input.is_object() => Err(specific.wrong("updatedInput", "an object")),
            _ => Ok(()),
        }
    }

    /// Reads the decision of a hook for `PermissionRequest`.
    fn read_permission(&mut self, decision: ObjectFields<'_>) -> Result<(), LineError> {
        match decision.text("behavior")? {
            "allow" => {
                self.permission = Some(Permission::Allow);
                self.updated_input = decision.get("updatedInput").cloned();
            }
            "deny" => {
                self.permission = Some(Permission::Deny);
                self.reason = decision.optional_text("message")?;
                if decision.switch("interrupt")? {
                    self.stop = Some("a hook stopped the run".to_owned());
                }
            }
            _ => return Err(decision.wrong("behavior", "`allow` or `deny`")),
        }
        Ok(())
    }

    /// Returns a denial, for a hook that [blocks on failure](HookRegistration::blocks_on_failure).
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            permission: Some(Permission::Deny),
            blocks: true,
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Returns the answer for [`Hooks::before_call`](pintle_agent::Hooks::before_call).
    #[must_use]
    pub fn call_answer(&self) -> CallAnswer {
        if let Some(reason) = &self.stop {
            return CallAnswer::stop(reason);
        }
        let judged = match self.permission {
            Some(permission) => CallAnswer::judge(permission, self.reason.clone()),
            None => CallAnswer::default(),
        };
        judged.with_arguments(self.updated_input.clone()).with_context(self.context.clone())
    }

    /// Returns the decision for [`Hooks::before_approval`](pintle_agent::Hooks::before_approval); `None` if the hook
    /// leaves it to the user.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        match (self.permission?, &self.updated_input) {
            (Permission::Allow, Some(arguments)) => Some(Decision::Change { arguments: arguments.clone() }),
            (Permission::Allow, None) => Some(Decision::Approve),
            (Permission::Deny, _) => Some(Decision::Deny { reason: self.reason.clone() }),
            (Permission::Ask, _) => None,
        }
    }

    /// Returns the answer for [`Hooks::before_input`](pintle_agent::Hooks::before_input).
    #[must_use]
    pub fn input_answer(&self) -> InputAnswer {
        match (&self.stop, self.blocks, &self.context) {
            (Some(reason), ..) => InputAnswer::refuse(reason),
            (None, true, _) => InputAnswer::refuse(self.reason_or("a hook refused the input")),
            (None, false, Some(context)) => InputAnswer::add(context),
            (None, false, None) => InputAnswer::default(),
        }
    }

    /// Returns the answer for [`Hooks::after_call`](pintle_agent::Hooks::after_call). The reason of a hook that blocks
    /// is added to the result.
    #[must_use]
    pub fn result_answer(&self) -> ResultAnswer {
        let mut answer = match (&self.stop, &self.updated_output) {
            (Some(reason), _) => ResultAnswer::stop(reason),
            (None, Some(output)) => ResultAnswer::replace(output),
            (None, None) => ResultAnswer::default(),
        };
        let reason = self.reason.clone().filter(|_| self.blocks);
        answer.context = self.context.clone().or(reason);
        answer
    }

    /// Returns the answer for [`Hooks::before_end`](pintle_agent::Hooks::before_end).
    #[must_use]
    pub fn end_answer(&self) -> EndAnswer {
        if self.blocks && self.stop.is_none() {
            EndAnswer::send_on(self.reason_or("a hook wants more to be done"))
        } else {
            EndAnswer::default()
        }
    }

    fn reason_or(&self, default: &str) -> String {
        self.reason.clone().unwrap_or_else(|| default.to_owned())
    }
}
