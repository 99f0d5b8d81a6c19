//! Violations of the schema or the order are detected.

use serde_json::json;

use super::*;

fn event(kind: &str, data: impl Into<Value>) -> Value {
    let data = data.into();
    json!({ "seq": 1, "timestamp": "2025-11-22T10:00:00.000Z", "session_id": "s", "kind": kind, "data": data })
}

#[test]
fn unknown_fields_are_detected() {
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    let answer = |reason: Value, usage: &Value| {
        let data = json!({ "response_id": "", "model": "m", "finish_reason": reason, "usage": usage });
        event("MODEL_RESPONSE", data)
    };
    let good = answer(json!({ "reason": "stop" }), &usage);
    described(&good).unwrap();
    let mut odd_usage = usage.clone();
    odd_usage["new_tokens"] = json!(3);
    let mut odd = good.clone();
    odd["new"] = json!(true);
    let mut odd_data = good.clone();
    odd_data["data"]["new"] = json!(true);
    let rows = [
        odd,
        odd_data,
        answer(json!({ "reason": "stop" }), &odd_usage),
        answer(json!({ "reason": "bored" }), &usage),
        answer(json!({}), &usage),
        event("NEW_KIND", json!({})),
        event("WARNING", json!({})),
    ];
    for row in rows {
        assert!(described(&row).is_err(), "{row}");
    }
}

#[test]
fn order_violations_are_detected() {
    let started = || event("ASSISTANT_TEXT_START", json!({}));
    let ended = |text: &str| event("ASSISTANT_TEXT_END", json!({ "text": text, "interrupted": false }));
    let begun = event("SESSION_START", json!({ "provider": "p", "model": "m", "working_directory": "/" }));
    let delta = |offset: u64, delta: &str| {
        let mut event = event("ASSISTANT_TEXT_DELTA", json!({ "delta": delta }));
        event["offset"] = json!(offset);
        event
    };
    let over = || event("SESSION_END", json!({ "state": "CLOSED" }));
    let rows = [
        (vec![begun.clone(), started(), delta(0, "a"), delta(1, "b"), ended("ab"), over()], true),
        (vec![started()], false),
        (vec![begun.clone(), begun.clone()], false),
        (vec![begun.clone(), started(), delta(1, "b")], false),
        (vec![begun.clone(), started(), delta(0, "a"), ended("ab")], false),
        (vec![begun.clone(), ended("")], false),
        (vec![begun.clone(), started(), over()], false),
        (vec![begun, over(), started()], false),
    ];
    for (events, is_good) in rows {
        let mut next = 0;
        let numbered = events.into_iter().map(|mut event| {
            let is_delta = event.get("offset").is_some();
            event["seq"] = json!(if is_delta { next - 1 } else { next });
            next += u64::from(!is_delta);
            serde_json::from_value::<SessionEvent>(event).unwrap()
        });
        let events: Vec<SessionEvent> = numbered.collect();
        let held = std::panic::catch_unwind(|| {
            let mut order = EventOrder::default();
            events.iter().for_each(|event| order.take(event));
        });
        assert_eq!(held.is_ok(), is_good, "{events:?}");
    }
}
