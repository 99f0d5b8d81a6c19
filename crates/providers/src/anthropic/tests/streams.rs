//! Streams and complete responses.

use super::*;

fn run(events: &[Value]) -> Result<(Vec<StreamEvent>, Response), Error> {
    let mut decoder = messages_dialect().decoder(&request(), 1);
    let mut out = Vec::new();
    for event in events {
        decoder.feed(SseEvent { name: "", data: &event.to_string() }, &mut out)?;
    }
    decoder.end(&mut out)?;
    let mut accumulator = StreamAccumulator::new("anthropic", MODEL);
    out.iter().for_each(|event| accumulator.process(event));
    Ok((out, accumulator.response()?))
}

pub(super) fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "model": "claude-x", "content": [],
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 0, "output_tokens": 1}}})
}

pub(super) fn block(index: u64, block: &Value, deltas: &[Value]) -> Vec<Value> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
    let deltas =
        deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
    let stop = json!({"type": "content_block_stop", "index": index});
    [start].into_iter().chain(deltas).chain([stop]).collect()
}

pub(super) fn stop(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
            "usage": {"input_tokens": 40, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2,
                "output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]
}

/// Returns a stream with every kind of block.
fn stream() -> Vec<Value> {
    let text = |text: &str| json!({"type": "text_delta", "text": text});
    let json_piece = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
    [
        vec![start()],
        block(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
            &[
                json!({"type": "thinking_delta", "thinking": "Let me "}),
                json!({"type": "thinking_delta", "thinking": "see."}),
                json!({"type": "signature_delta", "signature": "sig"}),
            ],
        ),
        vec![json!({"type": "ping"})],
        block(1, &json!({"type": "redacted_thinking", "data": "opaque"}), &[]),
        block(2, &json!({"type": "text", "text": ""}), &[text("Hel"), text("lo")]),
        block(
            3,
            &json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}),
            &[json_piece(r#"{"query":"#), json_piece(r#""x"}"#)],
        ),
        block(4, &json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}), &[]),
        block(
            5,
            &json!({"type": "tool_use", "id": "c1", "name": "read_file", "input": {}}),
            &[json_piece(""), json_piece(r#"{"path""#), json_piece(r#": "a"}"#)],
        ),
        block(6, &json!({"type": "tool_use", "id": "c2", "name": "read_file", "input": {}}), &[]),
        block(
            7,
            &json!({"type": "compaction", "content": null}),
            &[
                json!({"type": "compaction_delta", "content": "sum"}),
                json!({"type": "compaction_delta", "content": "mary"}),
            ],
        ),
        stop("tool_use"),
    ]
    .concat()
}

#[test]
fn stream_with_every_block_type() {
    let (events, response) = run(&stream()).unwrap();
    let opaque = |data: Value| {
        ContentPart::Opaque(OpaqueData { kind: data["type"].as_str().unwrap().into(), data: data.clone() })
    };
    assert_eq!(
        response.message.content,
        [
            ThinkingData::new("Let me see.").with_signature(Some("sig".into())).into(),
            ThinkingData::redacted("opaque").into(),
            ContentPart::text("Hello"),
            opaque(
                json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}})
            ),
            opaque(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})),
            ToolCall::from_raw("c1", "read_file", r#"{"path": "a"}"#).into(),
            ToolCall::new("c2", "read_file", Map::new()).into(),
            opaque(json!({"type": "compaction", "content": "summary"})),
        ]
    );
    assert_eq!((response.id.as_str(), response.model.as_str()), ("msg_1", "claude-x"));
    assert_eq!(response.message.origin, Some(Origin::new("anthropic", MODEL)));
    assert_eq!(response.finish_reason, FinishReason::new(Finish::ToolCalls).with_raw("tool_use"));
    // 40 uncached, 30 read and 2 written.
    let mut usage = Usage::new(72, 20);
    usage.cache_read_tokens = Some(30);
    usage.cache_write_tokens = Some(2);
    usage.reasoning_tokens = Some(3);
    usage.raw = response.usage.raw.clone();
    assert_eq!(
        response.usage, usage,
        "restated counts replace the first ones; 11 characters are about 3 tokens"
    );
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| {
            if let StreamEvent::ToolCallDelta { delta, .. } = event { Some(delta.as_str()) } else { None }
        })
        .collect();
    assert_eq!(deltas.concat(), r#"{"path": "a"}"#);
    assert!(matches!(events.last(), Some(StreamEvent::Finish { .. })));
}

#[test]
fn complete_responses_equal_streamed_ones() {
    let body = json!({
        "type": "message", "id": "msg_1", "model": "claude-x", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "sig"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}},
        ],
        "usage": {"input_tokens": 5, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
    });
    let response = messages_dialect().decode(&request(), body.to_string().as_bytes()).unwrap();
    assert_eq!(
        response.message.content,
        [
            ThinkingData::new("Let me see.").with_signature(Some("sig".into())).into(),
            ThinkingData::redacted("opaque").into(),
            ContentPart::text("Hello"),
            call("c1", "a"),
        ]
    );
    assert_eq!((response.usage.total_tokens, response.usage.reasoning_tokens), (14, Some(4)));
    assert_eq!(response.raw, Some(body));

    // The same in the first event of a stream, as proxies send it.
    let mut message = response.raw.unwrap();
    message["usage"] = json!({"input_tokens": 5, "output_tokens": 9});
    let (_, streamed) =
        run(&[json!({"type": "message_start", "message": message}), json!({"type": "message_stop"})])
            .unwrap();
    assert_eq!(streamed.message.content, response.message.content);
    assert_eq!(streamed.finish_reason, response.finish_reason);
}

#[test]
fn finish_reasons() {
    for (raw, reason) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("tool_use", Finish::ToolCalls),
        ("refusal", Finish::ContentFilter),
        ("pause_turn", Finish::Other),
        ("compaction", Finish::Other),
        ("unheard_of", Finish::Other),
    ] {
        let (_, response) = run(&[vec![start()], stop(raw)].concat()).unwrap();
        assert_eq!(response.finish_reason, FinishReason::new(reason).with_raw(raw));
    }
}

#[test]
fn deltas_without_the_start_of_their_block_are_accepted() {
    let piece =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let text = |index: u64, text: &str| piece(index, json!({"type": "text_delta", "text": text}));
    let thinking = |index: u64, text: &str| piece(index, json!({"type": "thinking_delta", "thinking": text}));
    let signature = |index: u64| piece(index, json!({"type": "signature_delta", "signature": "sig"}));
    let begin = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let arguments =
        |index: u64, text: &str| piece(index, json!({"type": "input_json_delta", "partial_json": text}));
    let tool = || json!({"type": "tool_use", "id": "c1", "name": "read_file", "input": {}});
    let hello = || ContentPart::text("Hello");
    let signed = || ContentPart::from(ThinkingData::new("Hm.").with_signature(Some("sig".into())));
    let cases: Vec<(&str, Vec<Value>, Vec<ContentPart>)> = vec![
        ("text", vec![text(0, "Hel"), text(0, "lo")], vec![hello()]),
        (
            "thinking",
            vec![thinking(0, "Hm"), thinking(0, "."), signature(0), text(1, "Hello")],
            vec![signed(), hello()],
        ),
        ("one index", vec![thinking(0, "Hm."), signature(0), text(0, "Hello")], vec![signed(), hello()]),
        (
            "another block of the index",
            vec![
                begin(0, json!({"type": "text", "text": ""})),
                thinking(0, "Hm."),
                signature(0),
                text(0, "Hello"),
            ],
            vec![signed(), hello()],
        ),
        (
            "after a call",
            vec![begin(0, tool()), arguments(0, r#"{"path": "a"}"#), text(0, "Hello")],
            vec![call("c1", "a"), hello()],
        ),
        (
            "another index of a call",
            vec![begin(1, tool()), arguments(0, r#"{"path": "a"}"#)],
            vec![call("c1", "a")],
        ),
        (
            "no content",
            vec![text(0, ""), json!({"type": "content_block_delta", "index": 0, "delta": null})],
            vec![],
        ),
    ];
    for (name, events, expected) in cases {
        let (events, response) = run(&[vec![start()], events, stop("end_turn")].concat()).unwrap();
        assert_well_formed(&events);
        let found: Vec<ContentPart> =
            response.message.content.into_iter().map(without_raw_arguments).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// Returns a part without the text of the arguments, which depends on how they were sent.
fn without_raw_arguments(mut part: ContentPart) -> ContentPart {
    if let ContentPart::ToolCall(call) = &mut part {
        call.raw_arguments = None;
    }
    part
}

#[test]
fn placeholders_are_replaced_by_arguments() {
    let piece = |piece: Value| json!({"type": "input_json_delta", "partial_json": piece});
    let cases = [
        (json!({}), vec![json!("{}"), json!(r#"{"path""#), json!(r#": "a"}"#)], json!({"path": "a"})),
        (json!({}), vec![json!("null"), json!(null), json!(r#"{"path": "a"}"#)], json!({"path": "a"})),
        (json!({"path": "a"}), vec![json!("{}")], json!({"path": "a"})),
        (json!({"path": "b"}), vec![json!(r#"{"path": "a"}"#)], json!({"path": "a"})),
        (json!(null), vec![json!(null)], json!({})),
        (json!(null), vec![json!("null")], json!({})),
        (json!({}), vec![json!("{}")], json!({})),
    ];
    for (input, pieces, expected) in cases {
        let tool = json!({"type": "tool_use", "id": "c1", "name": "read_file", "input": input});
        let pieces: Vec<Value> = pieces.into_iter().map(piece).collect();
        let (events, response) =
            run(&[vec![start()], block(0, &tool, &pieces), stop("tool_use")].concat()).unwrap();
        assert_well_formed(&events);
        let found: Vec<Value> = response.tool_calls().map(|call| Value::clone(&call.arguments)).collect();
        assert_eq!(found, [expected], "{input} {pieces:?}");
    }
}

#[test]
fn keep_alives_are_skipped() {
    let all = stream();
    let (_, complete) = run(&all).unwrap();
    for (name, data) in KEEP_ALIVES {
        let mut decoder = messages_dialect().decoder(&request(), 1);
        let mut out = Vec::new();
        let alive = SseEvent { name, data };
        decoder.feed(alive, &mut out).unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        assert_eq!(out, [], "{alive:?}");
        for event in &all {
            decoder.feed(SseEvent { name: "", data: &event.to_string() }, &mut out).unwrap();
            decoder.feed(alive, &mut out).unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        }
        decoder.end(&mut out).unwrap();
        assert_well_formed(&out);
        let mut accumulator = StreamAccumulator::new("anthropic", MODEL);
        out.iter().for_each(|event| accumulator.process(event));
        assert_eq!(accumulator.response().unwrap(), complete, "{alive:?}");
    }
    let mut decoder = messages_dialect().decoder(&request(), 1);
    let cut = SseEvent { name: "message_start", data: "{\"type\": \"message_st" };
    assert!(decoder.feed(cut, &mut Vec::new()).is_err(), "a truncated event is not skipped");
}

#[test]
fn streams_truncated_anywhere_are_errors() {
    let complete = stream();
    for length in 0..complete.len() {
        let error = run(&complete[..length]).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Stream, true), "after {length} events");
    }
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let error_event = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    let cases = [
        (error_event("overloaded_error", "Overloaded"), ErrorKind::Server, true),
        (error_event("api_error", "oops"), ErrorKind::Server, true),
        (error_event("rate_limit_error", "slow"), ErrorKind::RateLimit, true),
        (
            error_event("invalid_request_error", "prompt is too long: 9 tokens"),
            ErrorKind::ContextLength,
            false,
        ),
        (error_event("invalid_request_error", "bad"), ErrorKind::InvalidRequest, false),
        (start(), ErrorKind::Stream, true),
        (
            json!({"type": "content_block_delta", "index": 9, "delta": {"partial_json": "{"}}),
            ErrorKind::Stream,
            true,
        ),
        (json!("not an event"), ErrorKind::Stream, true),
    ];
    for (event, kind, retryable) in cases {
        let error = run(&[start(), event.clone()]).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{event}");
        assert_eq!(error.provider(), Some("anthropic"));
        let request_id = event.get("request_id").and_then(Value::as_str);
        assert_eq!(error.request_id(), request_id);
    }
    assert_eq!(run(&[json!({"type": "message_stop"})]).unwrap_err().kind(), ErrorKind::Stream);
}

#[test]
fn error_responses_are_classified() {
    let cases = [
        (400, "invalid_request_error", "bad", ErrorKind::InvalidRequest, false),
        (400, "invalid_request_error", "prompt is too long: 9 > 5", ErrorKind::ContextLength, false),
        (401, "authentication_error", "invalid x-api-key", ErrorKind::Authentication, false),
        (402, "billing_error", "pay", ErrorKind::QuotaExceeded, false),
        (403, "permission_error", "no", ErrorKind::AccessDenied, false),
        (404, "not_found_error", "model: x", ErrorKind::NotFound, false),
        (413, "request_too_large", "big", ErrorKind::ContextLength, false),
        (429, "rate_limit_error", "slow", ErrorKind::RateLimit, true),
        (500, "api_error", "oops", ErrorKind::Server, true),
        (529, "overloaded_error", "Overloaded", ErrorKind::Server, true),
    ];
    for (status, code, message, kind, retryable) in cases {
        let body = json!({"type": "error", "error": {"type": code, "message": message}}).to_string();
        let error = messages_dialect().classify(status, &Headers::default(), body.as_bytes());
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{status} {code}");
        assert_eq!(
            (error.status(), error.error_code(), error.message()),
            (Some(status), Some(code), message)
        );
    }
    let page = messages_dialect().classify(502, &Headers::default(), b"<html>bad gateway</html>");
    assert_eq!(page.kind(), ErrorKind::Server);
}

#[test]
fn malformed_responses_are_errors() {
    for (body, kind) in [
        ("<html>", ErrorKind::Stream),
        ("{}", ErrorKind::Stream),
        (r#"{"type": "error", "error": {"type": "overloaded_error", "message": "x"}}"#, ErrorKind::Server),
    ] {
        let error = messages_dialect().decode(&request(), body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), kind, "{body}");
    }
}

/// Asserts that starts and ends pair up, and that a complete response starts and finishes once.
#[expect(clippy::wildcard_enum_match_arm, reason = "only events that open or close something matter here")]
fn assert_well_formed(events: &[StreamEvent]) {
    let mut open: Vec<(&str, &str)> = Vec::new();
    for event in events {
        let (start, end) = match event {
            StreamEvent::TextStart { text_id } => (Some(("text", text_id)), None),
            StreamEvent::TextEnd { text_id, .. } => (None, Some(("text", text_id))),
            StreamEvent::ReasoningStart { reasoning_id } => (Some(("reasoning", reasoning_id)), None),
            StreamEvent::ReasoningEnd { reasoning_id, .. } => (None, Some(("reasoning", reasoning_id))),
            StreamEvent::ToolCallStart { tool_call } => (Some(("call", &tool_call.id)), None),
            StreamEvent::ToolCallEnd { tool_call } => (None, Some(("call", &tool_call.id))),
            _ => (None, None),
        };
        open.extend(start.map(|(kind, id)| (kind, id.as_str())));
        if let Some((kind, id)) = end {
            let place = open.iter().position(|known| *known == (kind, id.as_str()));
            open.remove(place.unwrap_or_else(|| panic!("{kind} {id} ends without a start in {events:?}")));
        }
    }
    assert_eq!(open, [], "without an end in {events:?}");
    let count = |wanted: fn(&StreamEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, StreamEvent::StreamStart { .. })), 1);
    assert_eq!(count(|event| matches!(event, StreamEvent::Finish { .. })), 1);
    assert!(matches!(events.last(), Some(StreamEvent::Finish { .. })));
}

proptest! {
    #[test]
    fn events_in_any_order_yield_valid_streams(order in prop::collection::vec(0..40_usize, 0..40)) {
        let pool = [stream(), stop("end_turn")].concat();
        let middle = order.iter().filter_map(|place| pool.get(place + 1)).filter(|event| event["type"] != "message_stop");
        let events: Vec<Value> = [start()].iter().chain(middle).cloned().chain(stop("end_turn")).collect();
        if let Ok((events, _)) = run(&events) {
            assert_well_formed(&events);
        }
    }

    #[test]
    fn arbitrary_data_does_not_panic(data in any::<String>()) {
        let mut decoder = messages_dialect().decoder(&request(), 1);
        let _ = decoder.feed(SseEvent { name: "", data: &data }, &mut Vec::new());
        let _ = messages_dialect().decode(&request(), data.as_bytes());
        messages_dialect().classify(400, &Headers::default(), data.as_bytes());
    }
}
