//! Tables of events and what a client is shown of them.

use serde_json::{Value, json};

use super::*;

/// Maps events: of the session `s`, unless they name another one. Each is `[kind, data]`, perhaps with fields of its own.
fn shown(features: ClientFeatures, own_inputs: usize, events: &[Value]) -> Value {
    let mut mapper = UpdateMapper::new(SessionId::new("s"), "/w".into(), features);
    (0..own_inputs).for_each(|_| mapper.expect_input());
    let mut updates = Vec::new();
    for (seq, event) in events.iter().enumerate() {
        let mut full = json!({
            "seq": seq, "timestamp": "2026-01-01T00:00:00.000Z", "session_id": "s", "kind": event[0], "data": event[1],
        });
        for (name, value) in event[2].as_object().into_iter().flatten() {
            full[name] = value.clone();
        }
        updates.extend(mapper.map(&serde_json::from_value(full).unwrap()));
    }
    json!(updates)
}

fn chunk(kind: &str, text: &str, message_id: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": message_id})
}

#[test]
fn text_is_shown_once_and_completely() {
    let start = json!(["ASSISTANT_TEXT_START", {}]);
    let delta = |text: &str, offset: u64| json!(["ASSISTANT_TEXT_DELTA", {"delta": text}, {"seq": 0, "offset": offset}]);
    let end = json!(["ASSISTANT_TEXT_END", {"text": "one two"}]);
    let piece = |text| chunk("agent_message_chunk", text, "m0");
    let cases = [
        (
            vec![start.clone(), delta("one ", 0), delta("two", 4), end.clone()],
            json!([piece("one "), piece("two")]),
        ),
        // After a gap, the rest comes at the end.
        (
            vec![start.clone(), delta("one", 0), delta("wo", 5), end.clone()],
            json!([piece("one"), piece(" two")]),
        ),
        (vec![start.clone(), end.clone()], json!([piece("one two")])),
    ];
    for (events, expected) in cases {
        assert_eq!(shown(ClientFeatures::default(), 0, &events), expected, "{events:?}");
    }
    let thought = [json!(["REASONING_START", {}]), json!(["REASONING_END", {"text": "hm"}])];
    assert_eq!(
        shown(ClientFeatures::default(), 0, &thought),
        json!([chunk("agent_thought_chunk", "hm", "m0")])
    );
}

#[test]
fn inputs_of_others_are_shown() {
    let input = |text: &str| json!(["USER_INPUT", {"content": text}]);
    let events = [input("mine"), input("theirs"), json!(["STEERING_INJECTED", {"content": "hurry"}])];
    assert_eq!(
        shown(ClientFeatures::default(), 1, &events),
        json!([chunk("user_message_chunk", "theirs", "m1"), chunk("user_message_chunk", "hurry", "m2")])
    );
}

fn start(id: &str) -> Value {
    let arguments = json!({"command": "make"});
    json!(["TOOL_CALL_START", {"call_id": id, "tool_name": "shell", "call_kind": "command", "arguments": arguments}])
}

fn end(id: &str, error: Option<&str>) -> Value {
    json!(["TOOL_CALL_END", {
        "call_id": id, "tool_name": "shell", "output": "ok\n", "error": error, "duration_ms": 1, "exit_code": 0,
    }])
}

#[test]
fn calls_begin_and_end_and_ids_are_used_once() {
    let events = [start("c"), end("c", None), start("c"), end("c", Some("denied"))];
    let shown = shown(ClientFeatures::default(), 0, &events);
    let facts: Vec<Value> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|update| json!([update["sessionUpdate"], update["toolCallId"], update["status"]]))
        .collect();
    assert_eq!(
        facts,
        [
            json!(["tool_call", "c", "in_progress"]),
            json!(["tool_call_update", "c", "completed"]),
            json!(["tool_call", "c#2", "in_progress"]),
            json!(["tool_call_update", "c#2", "failed"]),
        ]
    );
    assert_eq!(shown[1]["content"][0]["content"]["text"], "```\nok\n```");
}

#[test]
fn calls_of_subagents_are_named_and_their_text_is_not_shown() {
    let child = json!({"session_id": "t", "depth": 1, "parent": "s"});
    let mut call = start("c");
    call.as_array_mut().unwrap().push(child.clone());
    let events = [
        json!(["SUBAGENT_SPAWNED", {"agent_id": "scout", "child": "t", "task": "look"}]),
        json!(["ASSISTANT_TEXT_START", {}, child]),
        json!(["ASSISTANT_TEXT_END", {"text": "inner"}, child]),
        call,
    ];
    let shown = shown(ClientFeatures::default(), 0, &events);
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    assert_eq!((&shown[0]["toolCallId"], &shown[0]["title"]), (&json!("t/c"), &json!("scout: make")));
}

#[test]
fn running_output_is_shown_five_times_a_second() {
    let print = |text: &str, millis: u32| {
        let timestamp = format!("2026-01-01T00:00:00.{millis:03}Z");
        json!(["TOOL_CALL_OUTPUT_DELTA", {"call_id": "c", "delta": text}, {"timestamp": timestamp}])
    };
    let events = [start("c"), print("a", 0), print("b", 100), print("c", 250)];
    let shown = shown(ClientFeatures::default(), 0, &events);
    let texts: Vec<&Value> = shown
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|update| &update["content"][0]["content"]["text"])
        .collect();
    assert_eq!(texts, ["```\na\n```", "```\nabc\n```"]);
}

#[test]
fn usage_limits_and_compactions_are_told() {
    let all = ClientFeatures { notices: true, compactions: true, ..ClientFeatures::default() };
    let usage = json!(["CONTEXT_USAGE", {"window": 100, "used": 40, "system": 1, "tools": 1, "history": 38}]);
    let limit = json!(["TURN_LIMIT", {"round": 3}]);
    let warning = json!(["WARNING", {"message": "slow"}]);
    let repaired = json!(["HISTORY_REPAIRED", {"message": "an image is left out"}]);
    let compaction = json!(["COMPACTION_START", {"through": 3}]);
    let used = json!({"sessionUpdate": "usage_update", "used": 40, "size": 100});
    let notice = |text: &str| json!({"sessionUpdate": "notice", "severity": "warning", "title": text});
    let cases = [
        (ClientFeatures::default(), &usage, json!([used])),
        (
            ClientFeatures::default(),
            &limit,
            json!([chunk("agent_thought_chunk", "The limit on turns is reached.\n", "n0")]),
        ),
        (all, &limit, json!([notice("The limit on turns is reached.")])),
        (ClientFeatures::default(), &warning, json!([])),
        (all, &warning, json!([notice("slow")])),
        (
            ClientFeatures::default(),
            &repaired,
            json!([chunk("agent_thought_chunk", "an image is left out\n", "n0")]),
        ),
        (all, &repaired, json!([notice("an image is left out")])),
        (ClientFeatures::default(), &compaction, json!([])),
        (
            all,
            &compaction,
            json!([{"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "in_progress"}]),
        ),
    ];
    for (features, event, expected) in cases {
        assert_eq!(shown(features, 0, std::slice::from_ref(event)), expected, "{event}");
    }
}

#[test]
fn plans_replace_their_calls() {
    let arguments = json!({"plan": [{"step": "look", "status": "completed"}]});
    let call =
        json!({"call_id": "c", "tool_name": "update_plan", "call_kind": "other", "arguments": arguments});
    let end = json!({"call_id": "c", "tool_name": "update_plan", "output": "ok", "duration_ms": 1});
    let events = [json!(["TOOL_CALL_START", call]), json!(["TOOL_CALL_END", end])];
    let entry = json!({"content": "look", "priority": "medium", "status": "completed"});
    assert_eq!(
        shown(ClientFeatures::default(), 0, &events),
        json!([{"sessionUpdate": "plan", "entries": [entry]}])
    );
}
