//! Ends of runs, and lines of subagents.

use pintle_agent::{Money, Outcome, OutcomeStatus, SessionEvent, SessionId};
use serde_json::{Value, json};

use crate::claude::{Formatter, FormatterSettings, RunEnd};

fn formatter() -> Formatter {
    Formatter::new(SessionId::new("root"), "m", FormatterSettings::default())
}

fn event(session: &str, second: u32, kind: &str, data: &Value) -> SessionEvent {
    let event = json!({"seq": 0, "timestamp": format!("2026-01-02T03:04:{second:02}.000Z"),
        "session_id": session, "kind": kind, "data": data});
    serde_json::from_value(event).unwrap_or_else(|error| panic!("{error}: {data}"))
}

#[test]
fn subtype_follows_the_outcome() {
    let cases = [
        (OutcomeStatus::Completed, "success", false),
        (OutcomeStatus::AwaitingInput, "success", false),
        (OutcomeStatus::Refused, "success", true),
        (OutcomeStatus::RoundLimit, "error_max_turns", true),
        (OutcomeStatus::TurnLimit, "error_max_turns", true),
        (OutcomeStatus::Budget, "error_max_budget_usd", true),
        (OutcomeStatus::ContextFull, "error_during_execution", true),
        (OutcomeStatus::Interrupted, "error_during_execution", true),
        (OutcomeStatus::Failed, "error_during_execution", true),
    ];
    for (status, subtype, is_error) in cases {
        let lines = formatter().end(&RunEnd::new(&Outcome::new(status)));
        let line = lines[0].value();
        assert_eq!((&line["subtype"], &line["is_error"]), (&json!(subtype), &json!(is_error)), "{status:?}");
        // Success has a text, and a failure has a list of messages.
        assert_eq!(line.get("result").is_some(), subtype == "success", "{status:?}");
        assert_eq!(line.get("errors").is_some(), subtype != "success", "{status:?}");
    }
}

#[test]
fn answer_with_a_schema_is_the_result_or_a_failure() {
    let outcome = Outcome::new(OutcomeStatus::Completed);
    let value = json!({"a": 1});
    let accepted = RunEnd { structured_output: Some(&value), ..RunEnd::new(&outcome) };
    let line = formatter().end(&accepted)[0].value().clone();
    assert_eq!((&line["result"], &line["structured_output"]), (&json!(r#"{"a":1}"#), &value));
    let failed = RunEnd { structured_output_failure: Some("never"), ..RunEnd::new(&outcome) };
    let line = formatter().end(&failed)[0].value().clone();
    assert_eq!(line["subtype"], "error_max_structured_output_retries");
    assert_eq!(line["errors"], json!(["never"]));
}

#[test]
fn unknown_price_is_zero_and_says_so() {
    let outcome = Outcome::new(OutcomeStatus::Completed);
    let response = json!({"response_id": "r", "model": "m", "finish_reason": {"reason": "stop"},
        "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "cache_read_tokens": 4}});
    for (cost, shown, basis) in [(None, 0.0, "unknown"), (Some(0.25), 0.25, "list")] {
        let mut formatter = formatter();
        formatter.event(&event("root", 1, "USER_INPUT", &json!({"content": "x"})));
        formatter.event(&event("root", 3, "MODEL_RESPONSE", &response));
        let line = formatter.end(&RunEnd { cost: cost.map(Money::from_dollars), ..RunEnd::new(&outcome) })[0]
            .value()
            .clone();
        assert_eq!(line["total_cost_usd"], shown);
        assert_eq!(line["pintle_cost_is_known"], cost.is_some());
        let model = &line["modelUsage"]["m"];
        assert_eq!((&model["costUSD"], &model["costBasis"]), (&json!(shown), &json!(basis)));
        assert_eq!((&model["inputTokens"], &model["cacheReadInputTokens"]), (&json!(6), &json!(4)));
        assert_eq!(line["duration_ms"], 2_000);
    }
}

#[test]
fn each_run_counts_its_own_tokens_and_time() {
    let outcome = Outcome::new(OutcomeStatus::Completed);
    let mut formatter = formatter();
    formatter.event(&event("root", 1, "USER_INPUT", &json!({"content": "x"})));
    formatter.event(&event("root", 5, "PROCESSING_END", &json!({"state": "IDLE"})));
    formatter.end(&RunEnd::new(&outcome));
    formatter.event(&event("root", 10, "USER_INPUT", &json!({"content": "y"})));
    formatter.event(&event("root", 11, "PROCESSING_END", &json!({"state": "IDLE"})));
    assert_eq!(formatter.end(&RunEnd::new(&outcome))[0].value()["duration_ms"], 1_000);
}

#[test]
fn calls_of_subagents_name_the_call_that_started_them() {
    let mut formatter = formatter();
    let spawn =
        json!({"call_id": "spawn", "tool_name": "spawn_agent", "call_kind": "agent", "arguments": {}});
    let spawned = json!({"agent_id": "agent_1", "child": "child", "task": "x"});
    let call =
        json!({"call_id": "c", "tool_name": "shell", "call_kind": "command", "arguments": {"command": "ls"}});
    let text = json!({"text": "Inner thoughts."});
    let mut lines = formatter.event(&event("root", 1, "TOOL_CALL_START", &spawn));
    assert_eq!(formatter.event(&event("child", 1, "TOOL_CALL_START", &call)), [], "nobody spawned it yet");
    lines.extend(formatter.event(&event("root", 1, "SUBAGENT_SPAWNED", &spawned)));
    lines.extend(formatter.event(&event("child", 2, "ASSISTANT_TEXT_END", &text)));
    lines.extend(formatter.event(&event("child", 2, "TOOL_CALL_START", &call)));
    let shown: Vec<Value> = lines.iter().map(|line| line.value()["parent_tool_use_id"].clone()).collect();
    assert_eq!(shown, [Value::Null, json!("spawn")]);
    assert_eq!(lines[1].value()["message"]["content"][0]["name"], "Bash");
}
