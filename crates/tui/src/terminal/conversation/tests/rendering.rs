//! Retries, plans, subagents and images in the conversation.

use super::*;

fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"call_id": id, "tool_name": tool, "arguments": arguments})
}

fn end(id: &str, tool: &str) -> Value {
    json!({"call_id": id, "tool_name": tool, "output": "ok", "duration_ms": 1_500})
}

fn plan(statuses: &[&str]) -> Value {
    let steps = statuses.iter().enumerate();
    let steps: Vec<Value> =
        steps.map(|(index, status)| json!({"step": format!("step {index}"), "status": status})).collect();
    json!({ "plan": steps })
}

#[test]
fn retries_are_counted_down_until_they_begin() {
    let mut harness = Harness::running();
    let error = json!({"kind": "rate_limit", "message": "slow down", "retry": {"after_ms": 12_000}});
    harness.event("MODEL_RETRYING", &json!({"attempt": 2, "delay_ms": 12_000, "error": error}));
    let cases = [
        (0, "rate limit reached, retry 2 in 12 s"),
        (500, "rate limit reached, retry 2 in 12 s"),
        (3_000, "rate limit reached, retry 2 in 9 s"),
        (8_400, "rate limit reached, retry 2 in 1 s"),
        (100, "waiting for the model"),
        (2_000, "waiting for the model 2 s"),
    ];
    for (milliseconds, expected) in cases {
        harness.waits(Duration::from_millis(milliseconds));
        let shown = harness.shown();
        assert!(shown.lines().any(|line| line.ends_with(expected)), "{expected}: {shown}");
    }
    let error = json!({"kind": "server", "message": "down", "retry": "never"});
    harness.event("MODEL_RETRYING", &json!({"attempt": 1, "delay_ms": 61_000, "error": error}));
    assert!(harness.shown().contains("model call failed, retry 1 in 1 min 1 s"), "{}", harness.shown());
    harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    assert!(!harness.shown().contains("retry"), "the countdown ends with the turn: {}", harness.shown());
}

#[test]
fn the_plan_is_shown_while_the_turn_runs() {
    let mut harness = Harness::running();
    harness.event("TOOL_CALL_START", &call("1", "update_plan", &plan(&["in_progress", "pending"])));
    harness.event("TOOL_CALL_END", &end("1", "update_plan"));
    harness.event("REQUEST_PREPARED", &json!({"fingerprint": "00000000000000ff", "messages": 2}));
    insta::assert_snapshot!(harness.shown(), @"
    › go

    ✓ update_plan 0 of 2 done: step 0 1.5 s

    ⠋ waiting for the model
      ▸ step 0
      ○ step 1

    › say what to do · /help lists keys and commands
    Esc interrupts
    m · auto
    ");
    harness.event("ASSISTANT_TEXT_START", &json!({}));
    harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": "Look:"}));
    assert!(harness.shown().contains("  ▸ step 0"), "also while text is streamed: {}", harness.shown());
    harness.event("ASSISTANT_TEXT_END", &json!({"text": "Look:"}));
    harness.event("TOOL_CALL_START", &call("2", "update_plan", &plan(&["completed", "completed"])));
    harness.event("TOOL_CALL_END", &end("2", "update_plan"));
    harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    insta::assert_snapshot!(harness.shown(), @"
    › go

    ✓ update_plan 0 of 2 done: step 0 1.5 s

    Look:

    ✓ update_plan 2 of 2 done 1.5 s
        ✓ step 0
        ✓ step 1

    › say what to do · /help lists keys and commands
    m · auto
    ");
}

#[test]
fn an_unfinished_plan_is_printed_once_at_the_end() {
    let mut harness = Harness::of_size(30, 60);
    harness.event("USER_INPUT", &json!({"content": "go"}));
    let statuses =
        ["completed", "completed", "in_progress", "pending", "pending", "pending", "pending", "pending"];
    harness.event("TOOL_CALL_START", &call("1", "update_plan", &plan(&statuses)));
    let shown = harness.shown();
    assert!(shown.contains("  … 3 more steps") && !shown.contains("step 0"), "{shown}");
    harness.event("TOOL_CALL_END", &end("1", "update_plan"));
    harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    harness.event("USER_INPUT", &json!({"content": "more"}));
    harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    let shown = harness.shown();
    let count = |text: &str| shown.matches(text).count();
    assert_eq!((count("✓ step 1"), count("▸ step 2"), count("○ step 7")), (1, 1, 1), "{shown}");
}

#[test]
fn subagents_are_a_tree_below_the_calls() {
    let mut harness = Harness::running();
    harness.event("SUBAGENT_SPAWNED", &json!({"agent_id": "agent_1", "child": "child", "task": "Look."}));
    harness.event("TOOL_CALL_START", &call("1", "wait", &json!({"agent_id": "agent_1"})));
    harness.event_of(1, "TOOL_CALL_START", &call("1", "shell", &json!({"command": "make"})));
    insta::assert_snapshot!(harness.shown(), @r#"
    › go

    [agent_1] started: Look.

    ⠋ wait {"agent_id":"agent_1"}
    ⠋ agent_1 shell make

    › say what to do · /help lists keys and commands
    Esc interrupts
    m · auto
    "#);
}

#[test]
fn images_of_a_result_are_named() {
    let mut harness = Harness::running();
    harness.event("TOOL_CALL_START", &call("1", "read_file", &json!({"file_path": "a.png"})));
    let images: Vec<Value> = (0..8).map(|_| json!({"media_type": "image/png", "bytes": 2_048})).collect();
    let mut end = end("1", "read_file");
    end["images"] = images.into();
    harness.event("TOOL_CALL_END", &end);
    let shown = harness.shown();
    assert!(shown.contains("✓ read_file a.png 1.5 s\n    [image: image/png, 2,048 bytes]\n"), "{shown}");
    assert!(shown.matches("[image").count() == 6 && shown.contains("    … 2 more images"), "{shown}");
}

fn compaction_end() -> Value {
    let usage = json!({"input_tokens": 9, "output_tokens": 1, "total_tokens": 10});
    json!({"through": 4, "tokens_before": 100, "tokens_after": 10, "usage": usage})
}

#[test]
fn a_compaction_between_turns_is_shown_until_it_ends() {
    let prepared = json!({"fingerprint": "00000000000000ff", "messages": 2});
    let warning = |message: &str| ("WARNING", json!({ "message": message }));
    for ends in [
        vec![("COMPACTION_END", compaction_end())],
        vec![("COMPACTION_END", compaction_end()), warning("the compaction gained nothing")],
        vec![warning("the conversation was not compacted: cancelled")],
        vec![("SESSION_END", json!({"state": "CLOSED"}))],
    ] {
        let mut harness = Harness::running();
        harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
        // In two pieces.
        for _ in 0..2 {
            harness.event("COMPACTION_START", &json!({"through": 4}));
            harness.event("REQUEST_PREPARED", &prepared).waits(Duration::from_secs(2));
            let shown = harness.shown();
            assert!(
                shown.contains("waiting for the model 2 s") && shown.contains("Esc interrupts"),
                "{shown}"
            );
            assert_eq!(harness.types("\x1b").done(), "Interrupt");
        }
        for (kind, data) in &ends {
            harness.event(kind, data);
        }
        let shown = harness.waits(Duration::from_secs(2)).shown();
        assert!(!shown.contains("waiting for the model"), "{ends:?}: {shown}");
        assert!(!shown.contains("Esc interrupts"), "{ends:?}: {shown}");
        assert_eq!(harness.types("\x1b").done(), "", "{ends:?}");
    }
}

#[test]
fn a_turn_continues_after_its_compaction() {
    let prepared = json!({"fingerprint": "00000000000000ff", "messages": 2});
    for end in [("COMPACTION_END", compaction_end()), ("WARNING", json!({"message": "not compacted"}))] {
        let mut harness = Harness::running();
        harness.event("COMPACTION_START", &json!({"through": 4})).event("REQUEST_PREPARED", &prepared);
        harness.event(end.0, &end.1).event("REQUEST_PREPARED", &prepared);
        assert!(harness.shown().contains("waiting for the model"), "{end:?}: {}", harness.shown());
        harness.event("WARNING", &json!({"message": "the context is nearly full"}));
        assert!(harness.shown().contains("waiting for the model"), "{end:?}: {}", harness.shown());
    }
}

#[test]
fn a_compaction_of_an_earlier_process_is_not_shown() {
    let mut harness = Harness::new();
    for (kind, data) in [
        ("COMPACTION_START", json!({"through": 4})),
        ("REQUEST_PREPARED", json!({"fingerprint": "00000000000000ff", "messages": 2})),
    ] {
        let record = json!({
            "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": "s", "kind": kind, "data": data,
        });
        let event = serde_json::from_value(record).unwrap();
        harness.conversation.earlier_event(&event, harness.now);
    }
    let shown = harness.shown();
    assert!(!shown.contains("waiting for the model") && !shown.contains("Esc interrupts"), "{shown}");
}
