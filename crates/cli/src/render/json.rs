//! Objects for programs, one per line.

use std::borrow::Cow;
use std::fmt::Write as _;

use pintle_agent::Outcome;
use serde::Serialize;
use serde_json::Value;

use super::sanitize::is_plain;
use super::{SubagentTotals, Footer, DemoResult, Header};
use crate::failure::Failure;

/// A value as one line of JSON, in which nothing steers a terminal.
///
/// # Errors
///
/// A failure if it cannot be serialised, as when a spool file cannot be read back.
pub(crate) fn line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::failed("an event cannot be written as JSON").caused_by(&error))?;
    let mut text = escaped(&text).into_owned();
    text.push('\n');
    Ok(text)
}

/// The same JSON, with those characters escaped that need not be: DEL, C1, what turns the direction of text around, and
/// what is not seen. They are in texts only.
fn escaped(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_plain) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_plain(character) {
            shown.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(shown)
}

/// The object that tells of a failure: the only one of `--output json`, and the last line of a stream.
///
/// # Errors
///
/// Those of [`line()`].
pub(crate) fn failure(kind: &'static str, failure: &Failure) -> Result<String, Failure> {
    line(&FailureLine { kind, error: failure.object() })
}

/// The first line of a stream.
pub(super) fn opening(opening: &Header<'_>) -> Result<String, Failure> {
    line(&SessionLine {
        kind: "session",
        session_id: opening.session_id.as_str(),
        provider: opening.provider,
        model: opening.model,
        working_directory: &opening.directory.to_string_lossy(),
    })
}

/// The last line of a stream, and the one object of `--output json`.
pub(super) fn closing(closing: &Footer<'_>) -> Result<String, Failure> {
    let mut outcome = closing.outcome.clone();
    // The failure tells of it with everything else.
    outcome.error = None;
    line(&OutcomeLine {
        kind: "outcome",
        session_id: closing.session_id.as_str(),
        outcome: &outcome,
        error: closing.failure.map(Failure::object),
        exit_code: closing.exit.code(),
        duration_ms: u64::try_from(closing.duration.as_millis()).unwrap_or(u64::MAX),
        cost_usd: closing.cost,
        subagents: closing.below.filter(|below| below.subagents > 0),
        demonstration: closing.demonstration.map(DemoObject::of),
    })
}

#[derive(Serialize)]
struct FailureLine {
    #[serde(rename = "type")]
    kind: &'static str,
    error: Value,
}

#[derive(Serialize)]
struct SessionLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    session_id: &'a str,
    provider: &'a str,
    model: &'a str,
    working_directory: &'a str,
}

#[derive(Serialize)]
struct OutcomeLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    session_id: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    exit_code: u8,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagents: Option<&'a SubagentTotals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demonstration: Option<DemoObject<'a>>,
}

#[derive(Serialize)]
struct DemoObject<'a> {
    folder: String,
    tests_passed: bool,
    diff: &'a str,
}

impl<'a> DemoObject<'a> {
    fn of(demonstration: &'a DemoResult) -> Self {
        Self {
            folder: demonstration.folder.to_string_lossy().into_owned(),
            tests_passed: demonstration.passed,
            diff: &demonstration.diff,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use pintle_agent::{OutcomeStatus, SessionId};
    use pintle_llm::Usage;

    use super::*;
    use crate::exit::Exit;

    #[test]
    fn nothing_in_a_line_steers_a_terminal_and_it_says_the_same() {
        let text = "a\x1b[2J\u{9b}2J\x7f\u{202e}é\u{200b}\u{e0041}\n";
        let shown = line(&text).unwrap();
        assert_eq!(shown, "\"a\\u001b[2J\\u009b2J\\u007f\\u202eé\\u200b\\udb40\\udc41\\n\"\n");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn the_first_and_the_last_line_say_their_type() {
        let session_id = SessionId::new("s-1");
        let directory = Path::new("/w");
        let first = Header { session_id: &session_id, provider: "openai", model: "m", directory };
        insta::assert_snapshot!(opening(&first).unwrap(), @r#"{"type":"session","session_id":"s-1","provider":"openai","model":"m","working_directory":"/w"}"#);
        let mut outcome = Outcome::new(OutcomeStatus::Completed);
        outcome.text = "Done.".to_owned();
        outcome.usage = Usage::new(10, 2);
        let demonstration = DemoResult {
            folder: "/w".into(),
            passed: true,
            test_output: String::new(),
            diff: "+x\n".to_owned(),
        };
        let last = Footer {
            session_id: &session_id,
            outcome: &outcome,
            exit: Exit::Done,
            duration: Duration::from_millis(12),
            cost: Some(0.5),
            failure: None,
            below: None,
            demonstration: Some(&demonstration),
        };
        insta::assert_snapshot!(closing(&last).unwrap(), @r#"{"type":"outcome","session_id":"s-1","status":"completed","text":"Done.","usage":{"input_tokens":10,"output_tokens":2,"total_tokens":12},"model_calls":0,"tool_calls":0,"exit_code":0,"duration_ms":12,"cost_usd":0.5,"demonstration":{"folder":"/w","tests_passed":true,"diff":"+x\n"}}"#);
    }
}
