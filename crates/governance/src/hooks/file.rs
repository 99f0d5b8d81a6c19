//! Files of hooks.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use toml::Spanned;

use super::commands::{HookCommand, HookCommands, MAX_TIMEOUT};
use super::error::{HooksError, Source};
use super::event::{HookEvent, HookEventExt as _};
use super::input::SOURCES;
use crate::pattern::Pattern;
use crate::tool_names;

/// Form of a file: known events with their commands, and unknown events.
struct File {
    known: Vec<(HookEvent, CommandEntry)>,
    unknown: Vec<Spanned<String>>,
}

/// Form of a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandEntry {
    matcher: Option<Spanned<String>>,
    command: Spanned<String>,
    timeout: Option<Spanned<String>>,
    required: Option<Spanned<bool>>,
}

const KEYS: [&str; 4] = ["matcher", "command", "timeout", "required"];

impl HookCommands {
    /// Parses a file of hooks: TOML with an array of tables for each event.
    ///
    /// | key | meaning |
    /// |---|---|
    /// | `matcher` | names or kinds of tools, separated by `\|`, with `*` for any characters; for `SessionStart` its source. All if absent |
    /// | `command` | line for the shell |
    /// | `timeout` | such as `500ms`, `10s` or `2m`; 60 seconds if absent, at most 600 |
    /// | `required` | for `PreToolUse`: the call is denied if the command fails to answer |
    ///
    /// `source_name` is the name of the file, for messages. Unknown events are [warnings](Self::warnings).
    ///
    /// # Errors
    ///
    /// [`HooksError`] for the first mistake.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, HooksError> {
        let source = Source { name: source_name, text };
        let mut file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| source.line_of(span.start));
            source.parse_error(line, error.message(), &KEYS)
        })?;
        let mut commands = Self::new();
        // The parser sorts tables by name.
        file.unknown.sort_by_key(|name| name.span().start);
        file.known.sort_by_key(|(_, entry)| entry.command.span().start);
        for name in file.unknown {
            commands.warn(source.unknown_event(source.line_of(name.span().start), name.get_ref()));
        }
        for (event, entry) in file.known {
            commands.add(command(source, event, entry)?);
        }
        Ok(commands)
    }
}

fn command(source: Source<'_>, event: HookEvent, entry: CommandEntry) -> Result<HookCommand, HooksError> {
    let line_at = |span: std::ops::Range<usize>| source.line_of(span.start);
    let line = line_at(entry.command.span());
    let text = entry.command.into_inner();
    if text.trim().is_empty() {
        return Err(source.error(line, "the command is empty"));
    }
    let mut command = HookCommand::new(event, text, format!("{}:{line}", source.name));
    if let Some(matcher) = entry.matcher {
        let line = line_at(matcher.span());
        if !event.has_matcher() {
            return Err(source.error(line, format!("a matcher has no meaning for {event}")));
        }
        let patterns = patterns(matcher.get_ref()).map_err(|message| source.error(line, message))?;
        let is_source = |pattern: &Pattern| SOURCES.iter().any(|source| pattern.matches(source));
        if event == HookEvent::SessionStart
            && let Some(unknown) = patterns.iter().find(|pattern| !is_source(pattern))
        {
            let (unknown, known) = (unknown.as_str(), SOURCES.join("`, `"));
            let message =
                format!("the matcher names the unknown source `{unknown}`, expected one of `{known}`");
            return Err(source.error(line, message));
        }
        command = command.with_matcher(patterns);
    }
    if let Some(timeout) = entry.timeout {
        let line = line_at(timeout.span());
        command.timeout = duration(timeout.get_ref()).map_err(|message| source.error(line, message))?;
    }
    if let Some(required) = entry.required {
        if event != HookEvent::PreToolUse {
            let line = line_at(required.span());
            return Err(source.error(line, format!("`required` is for PreToolUse only, not for {event}")));
        }
        command.is_required = required.into_inner();
    }
    Ok(command)
}

/// Parses names that are separated by `|`.
pub(super) fn patterns(matcher: &str) -> Result<Vec<Pattern>, String> {
    let parse = |name: &str| match name {
        "" => Err("names no tool with ``".to_owned()),
        _ => tool_names::parse(name),
    };
    let patterns = matcher.split('|').map(|name| parse(name.trim()));
    let patterns: Result<_, _> = patterns.collect();
    patterns
        .map_err(|problem| format!("the matcher `{matcher}` {problem}, expected one such as `shell|edit_*`"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("the time-out `{text}` is wrong, expected one such as `500ms`, `60s` or `2m`");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_error| expected())?;
    let duration = Duration::from_millis(number.saturating_mul(milliseconds));
    if duration.is_zero() || duration > MAX_TIMEOUT {
        return Err(format!(
            "the time-out `{text}` is wrong, expected one up to {} s",
            MAX_TIMEOUT.as_secs()
        ));
    }
    Ok(duration)
}

// Written by hand, since `#[serde(flatten)]` would lose the line numbers.
impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Events;

        impl<'de> Visitor<'de> for Events {
            type Value = File;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tables of hooks, such as `[[PreToolUse]]`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut file = File { known: Vec::new(), unknown: Vec::new() };
                while let Some(name) = map.next_key::<Spanned<String>>()? {
                    match HookEvent::from_name(name.get_ref()) {
                        Some(event) => {
                            let entries: Vec<CommandEntry> = map.next_value()?;
                            file.known.extend(entries.into_iter().map(|entry| (event, entry)));
                        }
                        None => {
                            map.next_value::<IgnoredAny>()?;
                            file.unknown.push(name);
                        }
                    }
                }
                Ok(file)
            }
        }

        deserializer.deserialize_map(Events)
    }
}
