//! JSON output, one object per line.

use pintle_agent::{Money, Outcome};
use pintle_host::failure::Failure;
use pintle_host::sanitize::json_line;
use serde::Serialize;
use serde_json::Value;

use super::{DemoResult, Footer, Header, SubagentTotals};

/// Returns the object that reports a failure. It is the only object of `--output json` and the last of `stream-json`.
///
/// Fails if the error cannot be serialised.
pub fn failure_line(kind: &'static str, error: &Value) -> Result<String, Failure> {
    json_line(&FailureLine { kind, error })
}

/// Returns the first line of `stream-json`.
pub(super) fn header(header: &Header<'_>) -> Result<String, Failure> {
    json_line(&SessionLine {
        kind: "session",
        session_id: header.session_id.as_str(),
        provider: header.provider,
        model: header.model,
        working_directory: &header.directory.to_string_lossy(),
    })
}

/// Returns the last line of `stream-json`, which is the only object of `--output json`.
pub(super) fn footer(footer: &Footer<'_>) -> Result<String, Failure> {
    let mut outcome = footer.outcome.clone();
    // The failure contains the error and more details.
    outcome.error = None;
    json_line(&OutcomeLine {
        kind: "outcome",
        session_id: footer.session_id.as_str(),
        outcome: &outcome,
        answer: footer.answer,
        error: footer.error.as_ref(),
        exit_code: footer.exit_code,
        duration_ms: u64::try_from(footer.duration.as_millis()).unwrap_or(u64::MAX),
        cost_usd: footer.cost.map(Money::dollars),
        subagents: footer.subagents.filter(|subagents| subagents.count > 0),
        demonstration: footer.demo.map(DemoObject::new),
    })
}

#[derive(Serialize)]
struct FailureLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: &'a Value,
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
    answer: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Value>,
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
    directory: String,
    tests_passed: bool,
    diff: &'a str,
}

impl<'a> DemoObject<'a> {
    fn new(demo: &'a DemoResult) -> Self {
        Self {
            directory: demo.directory.to_string_lossy().into_owned(),
            tests_passed: demo.passed,
            diff: &demo.diff,
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

    #[test]
    fn header_and_footer_have_a_type() {
        let session_id = SessionId::new("s-1");
        let directory = Path::new("/w");
        let first = Header { session_id: &session_id, provider: "openai", model: "m", directory };
        insta::assert_snapshot!(header(&first).unwrap(), @r#"{"type":"session","session_id":"s-1","provider":"openai","model":"m","working_directory":"/w"}"#);
        let mut outcome = Outcome::new(OutcomeStatus::Completed);
        outcome.text = "Done.".to_owned();
        outcome.usage = Usage::new(10, 2);
        let demo = DemoResult {
            directory: "/w".into(),
            passed: true,
            test_output: String::new(),
            diff: "+x\n".to_owned(),
        };
        let last = Footer {
            is_stored: false,
            session_id: &session_id,
            outcome: &outcome,
            answer: None,
            exit_code: 0,
            duration: Duration::from_millis(12),
            cost: Some(Money::from_micros(500_000)),
            failure: None,
            error: None,
            subagents: None,
            demo: Some(&demo),
        };
        insta::assert_snapshot!(footer(&last).unwrap(), @r#"{"type":"outcome","session_id":"s-1","status":"completed","text":"Done.","usage":{"input_tokens":10,"output_tokens":2,"total_tokens":12},"cost_micros":0,"model_calls":0,"tool_calls":0,"exit_code":0,"duration_ms":12,"cost_usd":0.5,"demonstration":{"directory":"/w","tests_passed":true,"diff":"+x\n"}}"#);
    }
}
