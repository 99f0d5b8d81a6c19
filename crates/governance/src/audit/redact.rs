//! Shortens the texts of an audit and replaces known secrets.

use pintle_agent::Count;
use pintle_env::Redactions;
use serde_json::Value;

use super::call::{CallHistory, OutputText};
use super::{Audit, AuditError, AuditReport};

/// Maximum number of characters in a user's text, such as an input or a task.
const INPUT: usize = 1_000;

/// Maximum number of characters in a string of the arguments.
const ARGUMENT: usize = 200;

/// Maximum number of lines in an output or a result.
const LINES: usize = 5;

/// Maximum number of characters in an output or a result.
const OUTPUT: usize = 500;

impl AuditReport {
    /// Replaces these secrets in every text, leaves out diffs, and shortens inputs, arguments, outputs and results.
    ///
    /// # Errors
    ///
    /// [`AuditError::Redaction`] if one of the secrets is a word that the audit itself uses. Nothing is returned then.
    pub fn redacted(self, secrets: &Redactions) -> Result<Self, AuditError> {
        let mut report = if secrets.is_empty() {
            self
        } else {
            // JSON covers the texts of all types. Secrets are replaced before texts are shortened, which could split a
            // secret.
            let mut value = serde_json::to_value(&self).map_err(AuditError::Redaction)?;
            replace(&mut value, secrets);
            serde_json::from_value(value).map_err(AuditError::Redaction)?
        };
        report.shorten();
        Ok(report)
    }

    fn shorten(&mut self) {
        if let Some(audit) = &mut self.audit {
            audit.shorten();
        }
    }
}

impl Audit {
    fn shorten(&mut self) {
        for input in &mut self.inputs {
            shorten(&mut input.text, INPUT);
        }
        self.calls.iter_mut().for_each(shorten_call);
        for subagent in &mut self.subagents {
            shorten(&mut subagent.task, INPUT);
            if let Some(report) = &mut subagent.report {
                report.shorten();
            }
        }
    }
}

fn shorten_call(call: &mut CallHistory) {
    if let Some(intent) = &mut call.intent {
        shorten(&mut intent.text, INPUT);
    }
    shorten_value(&mut call.proposal.arguments);
    if let Some(text) = &mut call.proposal.as_written {
        shorten(text, ARGUMENT);
    }
    for judgement in &mut call.judgements {
        if let Some(changed) = &mut judgement.changed {
            shorten_value(&mut changed.arguments);
        }
    }
    for approval in &mut call.approvals {
        shorten_value(&mut approval.arguments);
    }
    if let Some(execution) = &mut call.execution {
        if let Some(OutputText { text, is_shortened, .. }) = &mut execution.output {
            *is_shortened |= shorten_lines(text);
        }
        for edit in &mut execution.changes {
            edit.diff.clear();
        }
    }
    if let Some(result) = &mut call.result {
        shorten_lines(&mut result.text);
    }
}

fn shorten_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            shorten(text, ARGUMENT);
        }
        Value::Array(values) => values.iter_mut().for_each(shorten_value),
        Value::Object(members) => members.values_mut().for_each(shorten_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Shortens a text to `max` characters and appends the number of missing bytes. Returns whether it shortened the text.
fn shorten(text: &mut String, max: usize) -> bool {
    let Some((end, _)) = text.char_indices().nth(max) else { return false };
    let missing = text.len() - end;
    text.truncate(end);
    text.push_str(&format!(" […, {}]", Count(missing as u64, "more byte")));
    true
}

/// Shortens a text to its first lines and appends the number of missing lines. Returns whether it shortened the text.
fn shorten_lines(text: &mut String) -> bool {
    let end: usize = text.split_inclusive('\n').take(LINES).map(str::len).sum();
    let missing = text.get(end..).unwrap_or_default().lines().count();
    if missing == 0 {
        return shorten(text, OUTPUT);
    }
    text.truncate(end);
    shorten(text, OUTPUT);
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    text.push_str(&format!("{line_end}[…, {}]", Count(missing as u64, "more line")));
    true
}

/// Replaces the secrets in all strings of a value, including the names of members.
fn replace(value: &mut Value, secrets: &Redactions) {
    match value {
        Value::String(text) => *text = secrets.text(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, secrets)),
        Value::Object(members) => {
            let replaced = std::mem::take(members).into_iter().map(|(name, mut value)| {
                replace(&mut value, secrets);
                (secrets.text(&name).into_owned(), value)
            });
            *members = replaced.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let cases = [
            ("short", "short"),
            ("1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n"),
            ("1\n2\n3\n4\n5\n6\n7", "1\n2\n3\n4\n5\n[…, 2 more lines]"),
        ];
        for (text, expected) in cases {
            let mut cut = text.to_owned();
            assert_eq!((shorten_lines(&mut cut), cut.as_str()), (text != expected, expected));
        }
        let mut text = "ä".repeat(300);
        assert!(shorten(&mut text, 2));
        assert_eq!(text, "ää […, 596 more bytes]");
        let mut line = "x".repeat(OUTPUT + 1);
        assert!(shorten_lines(&mut line) && line.ends_with(" […, 1 more byte]"));
    }
}
