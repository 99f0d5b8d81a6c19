//! Properties of both formats: whatever happens, lines are well formed and nothing stays open.

use std::collections::BTreeSet;

use pintle_agent::{Outcome, OutcomeStatus, SessionEvent, SessionId};
use pintle_env::Output;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::claude::{
    ControlChannel, ControlLimits, Formatter as ClaudeFormatter, FormatterSettings, IncomingLine, InputLines,
    RunEnd, StreamOptions,
};
use crate::codex::{ExecOptions, Formatter as CodexFormatter};
use crate::{Line, codex};

const TOOLS: [(&str, &str); 6] = [
    ("Bash", "command"),
    ("Write", "edit"),
    ("TodoWrite", "other"),
    ("mcp__a__b", "fetch"),
    ("web_search", "fetch"),
    ("spawn_agent", "agent"),
];

/// Returns the kind and data of an event with texts that are hard to write in one line.
fn kind() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(String::new()), Just("a\nb\u{2028}c\u{2029}\"\\".to_owned()), "[a-z]{1,8}"];
    let call = (0..3_usize, 0..TOOLS.len(), any::<bool>());
    (0..18_usize, text, call, any::<bool>()).prop_map(|(kind, text, (call, tool, is_error), cut)| {
        let call = format!("call_{call}");
        let (name, call_kind) = TOOLS[tool];
        let arguments =
            json!({"command": text, "query": text, "file_path": text, "todos": [{"content": text}]});
        let error = is_error.then_some("denied");
        let usage = json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3});
        match kind {
            0 => json!({"kind": "USER_INPUT", "data": {"content": text}}),
            1 => json!({"kind": "ASSISTANT_TEXT_START", "data": {}}),
            2 => json!({"kind": "ASSISTANT_TEXT_DELTA", "data": {"delta": text}}),
            3 => json!({"kind": "ASSISTANT_TEXT_END", "data": {"text": text, "interrupted": cut}}),
            4 => json!({"kind": "REASONING_START", "data": {}}),
            5 => json!({"kind": "REASONING_DELTA", "data": {"delta": text}}),
            6 => json!({"kind": "REASONING_END", "data": {"text": text, "interrupted": cut}}),
            7 => json!({"kind": "TOOL_CALL_ARGUMENTS_START", "data": {"call_id": call, "tool_name": name}}),
            8 => json!({"kind": "TOOL_CALL_ARGUMENTS_DELTA", "data": {"call_id": call, "delta": text}}),
            9 => json!({"kind": "TOOL_CALL_ARGUMENTS_END", "data": {"call_id": call}}),
            10 => json!({"kind": "MODEL_RESPONSE", "data": {"response_id": "r", "model": "m",
                "finish_reason": {"reason": "tool_calls"}, "usage": usage}}),
            11 | 12 => json!({"kind": "TOOL_CALL_START", "data": {"call_id": call, "tool_name": name,
                "call_kind": call_kind, "arguments": arguments}}),
            13 | 14 => json!({"kind": "TOOL_CALL_END", "data": {"call_id": call, "tool_name": name,
                "output": Output::from(text), "error": error, "exit_code": 1, "duration_ms": 1}}),
            15 => json!({"kind": "WARNING", "data": {"message": text}}),
            16 => {
                json!({"kind": "SUBAGENT_SPAWNED", "data": {"agent_id": "a", "child": "child", "task": text}})
            }
            _ => {
                json!({"kind": "COMPACTION_END", "data": {"through": 1, "tokens_before": 2, "tokens_after": 1,
                "usage": usage}})
            }
        }
    })
}

/// Returns the events of a session, some of them those of a subagent or of a session that nobody knows.
fn events() -> impl Strategy<Value = Vec<SessionEvent>> {
    let session = prop_oneof![8 => Just("root"), 2 => Just("child"), 1 => Just("stranger")];
    proptest::collection::vec((session, kind()), 0..40).prop_map(|events| {
        let with_head = |(seq, (session, mut event)): (usize, (&str, Value))| {
            let fields = event.as_object_mut().expect("an object");
            fields.insert("seq".to_owned(), seq.into());
            fields.insert("timestamp".to_owned(), "2026-01-02T03:04:05.678Z".into());
            fields.insert("session_id".to_owned(), session.into());
            serde_json::from_value(event.clone()).unwrap_or_else(|error| panic!("{error}: {event}"))
        };
        events.into_iter().enumerate().map(with_head).collect()
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let statuses = [
        OutcomeStatus::Completed,
        OutcomeStatus::AwaitingInput,
        OutcomeStatus::Refused,
        OutcomeStatus::RoundLimit,
        OutcomeStatus::Budget,
        OutcomeStatus::Interrupted,
        OutcomeStatus::Failed,
    ];
    proptest::sample::select(statuses.to_vec()).prop_map(Outcome::new)
}

/// Checks the text of each line and returns its object.
fn objects(lines: &[Line]) -> Vec<Value> {
    let object = |line: &Line| {
        let text = line.to_string();
        assert!(!text.contains(['\n', '\r', '\u{2028}', '\u{2029}']), "{text}");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(&value, line.value());
        value
    };
    lines.iter().map(object).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

proptest! {
    #[test]
    fn codex_items_that_start_also_complete(events in events(), outcome in outcome()) {
        let mut formatter = CodexFormatter::new(SessionId::new("root"));
        let mut lines = formatter.begin();
        lines.extend(events.iter().flat_map(|event| formatter.event(event)));
        lines.extend(formatter.end(&outcome));
        let mut open = BTreeSet::new();
        let mut completed = BTreeSet::new();
        let objects = objects(&lines);
        for line in &objects {
            let id = text(line, "/item/id").to_owned();
            match text(line, "/type") {
                "item.started" => prop_assert!(open.insert(id)),
                "item.updated" => prop_assert!(open.contains(&id)),
                "item.completed" => {
                    open.remove(&id);
                    prop_assert!(completed.insert(id));
                }
                _ => {}
            }
        }
        prop_assert!(open.is_empty(), "{:?}", open);
        let last = text(objects.last().expect("a line"), "/type");
        prop_assert!(matches!(last, "turn.completed" | "turn.failed"), "{}", last);
        prop_assert_eq!(objects.iter().filter(|line| text(line, "/type").starts_with("turn.")).count(), 2);
    }

    #[test]
    fn claude_results_follow_their_calls(events in events(), outcome in outcome(), partial in any::<bool>()) {
        let settings =
            FormatterSettings { partial_messages: partial, subagent_text: true, ..FormatterSettings::default() };
        let mut formatter = ClaudeFormatter::new(SessionId::new("root"), "m", settings);
        let mut lines: Vec<Line> = events.iter().flat_map(|event| formatter.event(event)).collect();
        lines.extend(formatter.end(&RunEnd::new(&outcome)));
        let objects = objects(&lines);
        let (mut uuids, mut shown, mut results) = (BTreeSet::new(), BTreeSet::new(), 0);
        for line in &objects {
            prop_assert_eq!(text(line, "/session_id"), "root");
            prop_assert!(uuids.insert(text(line, "/uuid").to_owned()));
            if line.pointer("/type") == Some(&json!("stream_event")) {
                prop_assert!(partial);
            }
            let block = "/message/content/0";
            match text(line, &format!("{block}/type")) {
                "tool_use" => { shown.insert(text(line, &format!("{block}/id")).to_owned()); }
                "tool_result" => {
                    results += 1;
                    let id = text(line, &format!("{block}/tool_use_id"));
                    prop_assert!(shown.contains(id));
                }
                _ => {}
            }
        }
        prop_assert_eq!(text(objects.last().expect("a line"), "/type"), "result");
        // A subagent is known from the event of its start on.
        let spawned = events.iter().position(|event| event.session_id.as_str() == "root"
            && matches!(event.kind, pintle_agent::EventKind::SubagentSpawned { .. }));
        let ended = events.iter().enumerate().filter(|(at, event)| {
            let known = match event.session_id.as_str() {
                "root" => true,
                "child" => spawned.is_some_and(|spawned| spawned < *at),
                _ => false,
            };
            known && matches!(event.kind, pintle_agent::EventKind::ToolCallEnd { .. })
        });
        prop_assert_eq!(results, ended.count());
    }

    #[test]
    fn claude_blocks_of_partial_messages_pair(events in events()) {
        let settings = FormatterSettings { partial_messages: true, ..FormatterSettings::default() };
        let mut formatter = ClaudeFormatter::new(SessionId::new("root"), "m", settings);
        let root: Vec<&SessionEvent> = events.iter().filter(|event| event.session_id.as_str() == "root").collect();
        let mut lines: Vec<Line> = root.into_iter().flat_map(|event| formatter.event(event)).collect();
        lines.extend(formatter.end(&RunEnd::new(&Outcome::new(OutcomeStatus::Completed))));
        let (mut is_open, mut blocks) = (false, BTreeSet::new());
        for line in objects(&lines).iter().filter(|line| text(line, "/type") == "stream_event") {
            let index = line.pointer("/event/index").and_then(Value::as_u64);
            match text(line, "/event/type") {
                "message_start" => prop_assert!(!std::mem::replace(&mut is_open, true)),
                "message_stop" => prop_assert!(std::mem::replace(&mut is_open, false) && blocks.is_empty()),
                "content_block_start" => prop_assert!(is_open && blocks.insert(index)),
                "content_block_delta" => prop_assert!(blocks.contains(&index)),
                "content_block_stop" => prop_assert!(blocks.remove(&index)),
                _ => {}
            }
        }
        prop_assert!(!is_open && blocks.is_empty());
    }

    #[test]
    fn splitting_does_not_depend_on_pieces(bytes in proptest::collection::vec(0_u8..16, 0..60), size in 1_usize..9) {
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte < 3 { b'\n' } else { b'a' + byte }).collect();
        let mut whole = InputLines::new(5);
        let mut pieces = InputLines::new(5);
        let expected = whole.feed(&bytes);
        let found: Vec<_> = bytes.chunks(size).flat_map(|piece| pieces.feed(piece)).collect();
        prop_assert_eq!(&found, &expected);
        let lines = bytes.split(|byte| *byte == b'\n').rev().skip(1).filter(|line| !line.is_empty());
        prop_assert_eq!(found.len(), lines.count());
        prop_assert_eq!(pieces.finish(), whole.finish());
    }

    #[test]
    fn any_line_is_a_value_or_an_error(
        kind in "user|control_request|control_response|keep_alive|[a-z]{0,4}",
        subtype in "initialize|interrupt|set_model|mcp_message|success|error|[a-z]{0,4}",
        id in "[ab]",
        noise in ".{0,12}",
    ) {
        let mut control = ControlChannel::new(ControlLimits { asked: 1, requested: 1 });
        let inner = json!({"subtype": subtype, "request_id": id, "response": noise, "hooks": noise});
        let line = json!({"type": kind, "request_id": id, "request": inner, "response": inner, "message": inner});
        for line in [line.to_string(), noise] {
            if let Ok(incoming) = IncomingLine::parse(&line) {
                let step = control.receive(incoming);
                objects(&step.map(|step| step.lines).unwrap_or_default());
            }
        }
    }

    #[test]
    fn any_command_line_is_options_or_an_error(
        words in proptest::collection::vec("--?[a-z-]{0,12}(=.{0,6})?|-c|[a-z.]{1,6}=.{0,8}|exec|resume|.{0,6}", 0..8),
    ) {
        let _ = ExecOptions::parse(&words);
        let _ = StreamOptions::parse(&words);
    }
}

#[test]
fn an_answer_is_repeated_only_if_it_differs() {
    let mut formatter = codex::Formatter::new(SessionId::new("root"));
    let event = |text: &str| -> SessionEvent {
        let event = json!({"seq": 0, "timestamp": "2026-01-02T03:04:05.678Z", "session_id": "root",
            "kind": "ASSISTANT_TEXT_END", "data": {"text": text}});
        serde_json::from_value(event).expect("an event")
    };
    formatter.event(&event("```\n{\"a\":1}\n```"));
    let lines = formatter.answer(&json!({"a": 1}));
    assert_eq!(text(lines[0].value(), "/item/text"), r#"{"a":1}"#);
    assert_eq!(formatter.answer(&json!({"a": 1})), []);
}
