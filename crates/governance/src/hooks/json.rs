//! Hooks in the JSON format that coding agents share.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::commands::{HookCommand, HookCommands, MAX_TIMEOUT};
use super::error::{HooksError, Source};
use super::event::{HookEvent, HookEventExt as _};
use super::file::patterns;
use crate::pattern::Pattern;

/// Form of a file: settings of an agent, of which only the hooks are read.
#[derive(Deserialize)]
struct Settings<'a> {
    #[serde(default, borrow)]
    hooks: Events<'a>,
    #[serde(default, rename = "disableAllHooks")]
    disabled: bool,
}

/// Events with their commands. A name that occurs twice counts twice.
#[derive(Default)]
struct Events<'a>(Vec<(String, &'a RawValue)>);

/// Commands with the tools that they are for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group<'a> {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(borrow)]
    hooks: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kind {
    r#type: String,
}

/// Form of a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handler {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    command: String,
    timeout: Option<f64>,
    #[serde(default)]
    required: bool,
    #[serde(rename = "statusMessage")]
    _status_message: Option<IgnoredAny>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    r#if: Option<IgnoredAny>,
    r#async: Option<IgnoredAny>,
    #[serde(rename = "asyncRewake")]
    async_rewake: Option<IgnoredAny>,
    once: Option<IgnoredAny>,
    shell: Option<IgnoredAny>,
}

const GROUP_KEYS: [&str; 2] = ["matcher", "hooks"];

const KEYS: [&str; 11] = [
    "type",
    "command",
    "timeout",
    "required",
    "statusMessage",
    "description",
    "if",
    "async",
    "asyncRewake",
    "once",
    "shell",
];

impl HookCommands {
    /// Parses hooks in the JSON format that coding agents share: `{"hooks": {"PreToolUse": [{"matcher": "Bash|Edit",
    /// "hooks": [{"type": "command", "command": "…", "timeout": 60}]}]}}`, with time-outs in seconds. Other keys beside
    /// `hooks` are ignored, so that a settings file can be read as it is. `source_name` is the name of the file, for
    /// messages.
    ///
    /// Common names of tools match the tool kinds of Pintle: `Bash` matches `shell`, and `Write` matches `write_file`. In
    /// a matcher, `.*` is `*`. Other regular expressions are errors, since no hook may be lost.
    ///
    /// Unknown events and hooks that are not commands are left out with a [warning](Self::warnings).
    ///
    /// # Errors
    ///
    /// [`HooksError`] for the first mistake.
    pub fn parse_json(source_name: &str, text: &str) -> Result<Self, HooksError> {
        let file = Source { name: source_name, text };
        let settings: Settings<'_> = file.read(text, &["hooks"])?;
        let mut commands = Self::new();
        if settings.disabled {
            commands.warn(file.warning(1, "`disableAllHooks` is set, so no hooks of this file run"));
            return Ok(commands);
        }
        for (name, groups) in settings.hooks.0 {
            let Some(event) = HookEvent::from_name(&name) else {
                commands.warn(file.unknown_event(file.line_at(groups.get()), &name));
                continue;
            };
            for group in file.read::<Vec<&RawValue>>(groups.get(), &[])? {
                let line = file.line_at(group.get());
                let Group { matcher, hooks } = file.read(group.get(), &GROUP_KEYS)?;
                let matcher = match matcher {
                    Some(matcher) if event.has_matcher() => {
                        field_patterns(&matcher).map_err(|message| file.error(line, message))?
                    }
                    Some(matcher) if !is_all(&matcher) => {
                        let message = format!("a matcher has no meaning for {event} and is ignored");
                        commands.warn(file.warning(line, &message));
                        None
                    }
                    Some(_) | None => None,
                };
                for handler in hooks {
                    if let Some(mut command) = file.command(event, handler.get(), &mut commands)? {
                        command.matcher.clone_from(&matcher);
                        commands.add(command);
                    }
                }
            }
        }
        Ok(commands)
    }
}

impl Source<'_> {
    /// Returns the line at which a part of the text starts.
    fn line_at(self, part: &str) -> usize {
        self.line_of((part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize))
    }

    /// Reads a part of the text.
    fn read<'a, T: Deserialize<'a>>(self, part: &'a str, keys: &[&str]) -> Result<T, HooksError> {
        serde_json::from_str(part).map_err(|error| {
            let line = self.line_at(part) + error.line().saturating_sub(1);
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            self.parse_error(line, message, keys)
        })
    }

    /// Reads one hook; `None` if it is not a command.
    fn command(
        self,
        event: HookEvent,
        text: &str,
        warnings: &mut HookCommands,
    ) -> Result<Option<HookCommand>, HooksError> {
        let line = self.line_at(text);
        let Kind { r#type: kind } = self.read(text, &KEYS)?;
        if kind != "command" {
            let message = format!("a hook of type `{kind}` is not supported, so it never runs");
            warnings.warn(self.warning(line, &message));
            return Ok(None);
        }
        let handler: Handler = self.read(text, &KEYS)?;
        if handler.command.trim().is_empty() {
            return Err(self.error(line, "the command is empty"));
        }
        if handler.required && event != HookEvent::PreToolUse {
            return Err(self.error(line, format!("`required` is for PreToolUse only, not for {event}")));
        }
        let ignored = [
            ("if", handler.r#if),
            ("async", handler.r#async),
            ("asyncRewake", handler.async_rewake),
            ("once", handler.once),
            ("shell", handler.shell),
        ];
        for (key, _) in ignored.into_iter().filter(|(_, value)| value.is_some()) {
            warnings.warn(self.warning(line, &format!("`{key}` is not supported and is ignored")));
        }
        let mut command = HookCommand::new(event, handler.command, format!("{}:{line}", self.name));
        command.is_required = handler.required;
        if let Some(seconds) = handler.timeout {
            let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
            let timeout = timeout.ok_or_else(|| {
                self.error(line, format!("the time-out {seconds} is wrong, expected a number of seconds"))
            })?;
            if timeout > MAX_TIMEOUT {
                let message = format!("the time-out is longer than {} s, its limit", MAX_TIMEOUT.as_secs());
                warnings.warn(self.warning(line, &message));
            }
            command = command.with_timeout(timeout);
        }
        Ok(Some(command))
    }
}

fn is_all(matcher: &str) -> bool {
    matches!(matcher.trim(), "" | "*" | ".*")
}

/// Parses names of other agents and of Pintle, separated by `|`.
fn field_patterns(matcher: &str) -> Result<Option<Vec<Pattern>>, String> {
    if is_all(matcher) {
        return Ok(None);
    }
    let whole = matcher.strip_prefix('^').unwrap_or(matcher);
    let whole = whole.strip_suffix('$').unwrap_or(whole).replace(".*", "*");
    patterns(&whole).map(Some)
}

impl<'de: 'a, 'a> Deserialize<'de> for Events<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Events<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the hooks of each event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Events<'de>, A::Error> {
                let mut events = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    events.push(entry);
                }
                Ok(Events(events))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
