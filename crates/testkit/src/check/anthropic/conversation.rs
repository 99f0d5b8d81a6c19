//! Rules between messages of Anthropic's Messages API.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Messages;
use crate::check::report::{Report, join, text};

pub(super) fn check(body: &Map<String, Value>, messages: &Messages<'_>, report: &mut Report) {
    check_roles(body, messages, report);
    check_pairs(messages, report);
    check_server_tools(messages, report);
    check_endings(messages, report);
    check_leading_thinking(body, messages, report);
}

fn check_roles(body: &Map<String, Value>, messages: &Messages<'_>, report: &mut Report) {
    if body.get("messages").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid("messages", "found an empty list, expected at least one message");
    }
    let mut expected = "user";
    for (path, message) in messages {
        let role = text(message, "role");
        if role != expected {
            let message =
                format!("found {role:?}, expected {expected:?}: roles alternate, beginning with user");
            report.invalid(join(path, "role"), message);
        }
        expected = if role == "user" { "assistant" } else { "user" };
    }
}

/// Checks that each `tool_use` has its result at the start of the next message, and each result its `tool_use`.
fn check_pairs(messages: &Messages<'_>, report: &mut Report) {
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, (path, message)) in messages.iter().enumerate() {
        check_results(path, message, &open, report);
        open = ids(message, "tool_use", "id").collect();
        for id in &open {
            if !seen.insert(*id) {
                report.invalid(
                    join(path, "content"),
                    format!("found the tool_use id {id:?} twice, expected unique ids"),
                );
            }
        }
        let answered: Vec<&str> = match messages.get(index + 1) {
            Some((_, next)) => ids(next, "tool_result", "tool_use_id").collect(),
            None => Vec::new(),
        };
        let missing: Vec<&str> = open.iter().copied().filter(|id| !answered.contains(id)).collect();
        if !missing.is_empty() {
            let message = format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {}",
                missing.join(", ")
            );
            report.invalid(path.as_str(), message);
        }
    }
}

fn check_results(path: &str, message: &Map<String, Value>, open: &[&str], report: &mut Report) {
    let mut answered = HashSet::new();
    let mut other_before = false;
    for (index, block) in blocks(message).enumerate() {
        if text(block, "type") != "tool_result" {
            other_before = true;
            continue;
        }
        let path = report.element_path(&join(path, "content"), index);
        let id = text(block, "tool_use_id");
        if !open.contains(&id) {
            report.invalid(
                &path,
                format!("unexpected `tool_use_id` {id:?}: no such `tool_use` in the previous message"),
            );
        } else if !answered.insert(id) {
            report.invalid(&path, format!("found a second `tool_result` for {id:?}, expected one"));
        }
        if other_before {
            report.invalid(
                &path,
                "found `tool_result` after another block, expected results first in the content",
            );
        }
    }
}

/// Checks that calls of server tools have their results in assistant messages.
///
/// A call may lack its result at the end of the request, if a turn was paused, and in a message with client calls, whose
/// results it needs.
fn check_server_tools(messages: &Messages<'_>, report: &mut Report) {
    let mut open: Vec<(String, &str)> = Vec::new();
    for (index, (path, message)) in messages.iter().enumerate() {
        let waits = index + 1 == messages.len() || ids(message, "tool_use", "id").next().is_some();
        for (position, block) in blocks(message).enumerate() {
            let path = report.element_path(&join(path, "content"), position);
            match text(block, "type") {
                "server_tool_use" | "mcp_tool_use" => open.push((path, text(block, "id"))),
                "tool_result" => {}
                kind if kind.ends_with("_tool_result") => {
                    let id = text(block, "tool_use_id");
                    let before = open.len();
                    open.retain(|(_, called)| *called != id);
                    if open.len() == before {
                        report.invalid(
                            path,
                            format!("unexpected `tool_use_id` {id:?} in a `{kind}`: no call of it before"),
                        );
                    }
                }
                _ => {}
            }
        }
        if text(message, "role") == "assistant" && !waits {
            for (path, id) in open.drain(..) {
                report.invalid(path, format!("found the call {id:?} without its result after it"));
            }
        }
    }
}

/// Checks that assistant messages do not end with thinking, and a final one not with white space.
fn check_endings(messages: &Messages<'_>, report: &mut Report) {
    for (path, message) in messages.iter().filter(|(_, message)| text(message, "role") == "assistant") {
        let last = blocks(message).last().map_or("", |block| text(block, "type"));
        if matches!(last, "thinking" | "redacted_thinking") {
            report.invalid(
                path.as_str(),
                format!("the final block in an assistant message cannot be `{last}`"),
            );
        }
    }
    let Some((path, last)) = messages.last().filter(|(_, last)| text(last, "role") == "assistant") else {
        return;
    };
    let text = match last.get("content") {
        Some(Value::String(content)) => content,
        _ => blocks(last).last().map_or("", |block| text(block, "text")),
    };
    if text.ends_with(char::is_whitespace) {
        report.invalid(join(path, "content"), "final assistant content cannot end with trailing whitespace");
    }
}

/// Checks that with a thinking budget, an open tool turn starts with thinking.
///
/// Adaptive thinking has no such rule.
fn check_leading_thinking(body: &Map<String, Value>, messages: &Messages<'_>, report: &mut Report) {
    let enabled = body
        .get("thinking")
        .and_then(Value::as_object)
        .is_some_and(|thinking| text(thinking, "type") == "enabled");
    let carries_results =
        |message: &Map<String, Value>| ids(message, "tool_result", "tool_use_id").next().is_some();
    if !enabled || !messages.last().is_some_and(|(_, message)| carries_results(message)) {
        return;
    }
    let opens = messages
        .iter()
        .rposition(|(_, message)| text(message, "role") == "user" && !carries_results(message));
    let Some((path, first)) = opens.and_then(|index| messages.get(index + 1)) else {
        return;
    };
    let leads = blocks(first).next().map_or("", |block| text(block, "type"));
    if !matches!(leads, "thinking" | "redacted_thinking") {
        let path = report.element_path(&join(path, "content"), 0);
        report.invalid(
            join(&path, "type"),
            format!("expected `thinking` or `redacted_thinking`, but found {leads:?}"),
        );
    }
}

fn blocks<'a>(message: &'a Map<String, Value>) -> impl Iterator<Item = &'a Map<String, Value>> + use<'a> {
    message.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn ids<'a>(message: &'a Map<String, Value>, kind: &'a str, id: &'a str) -> impl Iterator<Item = &'a str> {
    blocks(message).filter(move |block| text(block, "type") == kind).map(move |block| text(block, id))
}
