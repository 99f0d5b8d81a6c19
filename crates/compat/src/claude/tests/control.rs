//! The control channel.

use pintle_agent::Decision;
use pintle_llm::MediaSource;
use pintle_tools::gate::Permission;
use serde_json::{Value, json};

use crate::claude::{
    ControlChannel, ControlError, ControlEvent, ControlLimits, ControlStep, HookEvent, HookMatcher,
    HostRequest, IncomingLine, LineError, PermissionAnswer, PermissionMode, PermissionRequest,
    PermissionUpdate,
};

fn control() -> ControlChannel {
    ControlChannel::new(ControlLimits { asked: 2, requested: 2 })
}

fn receive(control: &mut ControlChannel, line: &Value) -> Result<ControlStep, ControlError> {
    control.receive(IncomingLine::parse(&line.to_string()).expect("a line"))
}

fn request(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

fn success(id: &str, response: &Value) -> Value {
    json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": id, "response": response}})
}

fn question(input: Value) -> PermissionRequest {
    let fingerprint = pintle_llm::Fingerprint::from_bytes(b"");
    let request = pintle_agent::ApprovalRequest::new("call_1", "shell", fingerprint).with_arguments(input);
    let mut question = PermissionRequest::new(&request);
    question.reason = Some("it runs a command".to_owned());
    question
}

/// Returns the event of the answer to a question about `{"command": "ls"}`.
fn answered(answer: &Value) -> PermissionAnswer {
    let mut control = control();
    let sent = control.ask_permission(&question(json!({"command": "ls"}))).expect("a question");
    match receive(&mut control, &success(&sent.id, answer)).expect("an answer").event {
        Some(ControlEvent::Permission { answer, .. }) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_request_is_answered_once() {
    let mut control = control();
    let interrupt = json!({"subtype": "interrupt"});
    let step = receive(&mut control, &request("a", &interrupt)).expect("a request");
    assert_eq!(
        step.event,
        Some(ControlEvent::Request { id: "a".to_owned(), request: HostRequest::Interrupt })
    );
    let repeated = receive(&mut control, &request("a", &interrupt));
    assert_eq!(repeated, Err(ControlError::Repeated { id: "a".to_owned() }));
    control.answer("a", Err("no".to_owned())).expect("the first answer");
    control.answer("a", Ok(json!({}))).expect_err("the second answer");
    // Its id is free again.
    receive(&mut control, &request("a", &interrupt)).expect("another request");
    receive(&mut control, &request("b", &interrupt)).expect("the second");
    let step = receive(&mut control, &request("c", &interrupt)).expect("one too many");
    assert!(step.event.is_none() && step.lines[0].to_string().contains("too many"), "{step:?}");
    let cancel = json!({"type": "control_cancel_request", "request_id": "b"});
    let step = receive(&mut control, &cancel).expect("cancelled");
    assert_eq!(step.event, Some(ControlEvent::RequestCancelled { id: "b".to_owned() }));
    assert_eq!(receive(&mut control, &cancel), Ok(ControlStep::default()));
    control.answer("b", Ok(json!({}))).expect_err("cancelled");
}

#[test]
fn requests_that_nobody_serves_are_answered_with_an_error() {
    let mut control = control();
    let cases = [
        (json!({"subtype": "fly"}), "unsupported control request subtype: fly"),
        (json!({"subtype": "set_permission_mode", "mode": "yolo"}), "expected default, acceptEdits"),
        (json!({"subtype": "rewind_files"}), "`request.user_message_id`: expected a string"),
        (json!({}), "`request.subtype`"),
        (json!(7), "`request`: expected an object"),
    ];
    for (inner, expected) in cases {
        let step = receive(&mut control, &request("x", &inner)).expect("a request");
        let line = step.lines[0].to_string();
        assert!(line.contains(expected) && line.contains(r#""subtype":"error""#), "{line}");
        assert_eq!(step.event, None);
    }
}

#[test]
fn served_requests_have_their_arguments() {
    let cases = [
        (json!({"subtype": "set_model", "model": "m"}), HostRequest::SetModel(Some("m".to_owned()))),
        (json!({"subtype": "set_model"}), HostRequest::SetModel(None)),
        (
            json!({"subtype": "set_permission_mode", "mode": "plan"}),
            HostRequest::SetPermissionMode(PermissionMode::Plan),
        ),
        (
            json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 0}),
            HostRequest::SetThinkingTokens(Some(0)),
        ),
        (json!({"subtype": "get_context_usage", "detail": "full"}), HostRequest::GetContextUsage),
        (json!({"subtype": "mcp_status"}), HostRequest::McpStatus),
        (
            json!({"subtype": "rewind_files", "user_message_id": "u", "dry_run": true}),
            HostRequest::RewindFiles { user_message_id: "u".to_owned(), is_dry_run: true },
        ),
        (
            json!({"subtype": "mcp_message", "server_name": "s", "message": {"method": "x"}}),
            HostRequest::McpMessage { server: "s".to_owned(), message: json!({"method": "x"}) },
        ),
    ];
    for (inner, expected) in cases {
        let step = receive(&mut control(), &request("1", &inner)).expect("a request");
        assert_eq!(step.event, Some(ControlEvent::Request { id: "1".to_owned(), request: expected }));
    }
}

#[test]
fn handshake_that_restricts_unsupported_things_is_refused() {
    let refused = [
        json!({"subtype": "initialize", "managedSettings": {}}),
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"matcher": "B(a)sh?", "hookCallbackIds": ["h"]}]}}),
        json!({"subtype": "initialize", "sdkMcpServerConfigs": {"s": {"tools": []}}}),
        json!({"subtype": "initialize", "toolAliases": {"Bash": "mcp__x__y"}}),
        json!({"subtype": "initialize", "settings": {"sandbox": {"network": {}}}}),
        json!({"subtype": "initialize", "disallowedTools": ["Bash("]}),
        json!({"subtype": "initialize", "setings": {"permissions": {"deny": ["Bash"]}}}),
        json!({"subtype": "initialize", "settings": {"permisions": {"deny": ["Bash"]}}}),
        json!({"subtype": "initialize", "hooks": {"PreTolUse": [{"hookCallbackIds": ["h"]}]}}),
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": ["h"], "onfailure": "block"}]}}),
    ];
    for inner in refused {
        let step = receive(&mut control(), &request("1", &inner)).expect("a request");
        assert!(matches!(step.event, Some(ControlEvent::HandshakeRefused { .. })), "{inner}: {step:?}");
        assert_eq!(step.lines.len(), 1, "{inner}");
    }
}

#[test]
fn handshake_has_hooks_servers_prompts_and_warnings() {
    let inner = json!({
        "subtype": "initialize",
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0"], "timeout": 1.5, "onFailure": "block"}],
            "Notification": [{"hookCallbackIds": ["h1"]}],
        },
        "sdkMcpServers": ["s"], "systemPrompt": ["a", "b"], "appendSystemPrompt": "c",
        "disallowedTools": ["Bash(rm *)"], "settings": {"model": "m"}, "promptSuggestions": true,
        "agents": {"x": {}}, "skills": [],
    });
    let mut control = control();
    let step = receive(&mut control, &request("1", &inner)).expect("a request");
    let Some(ControlEvent::Request { request: HostRequest::Initialize(initialize), .. }) = step.event else {
        panic!("{step:?}")
    };
    let hook = &initialize.hooks[0];
    assert_eq!((hook.event, hook.timeout.map(|time| time.as_millis())), (HookEvent::PreToolUse, Some(1_500)));
    assert!(hook.blocks_on_failure && hook.matcher.matches("shell") && !hook.matcher.matches("grep"));
    assert_eq!(initialize.system_prompt.as_deref(), Some("a\n\nb"));
    assert_eq!(initialize.append_system_prompt.as_deref(), Some("c"));
    assert_eq!(initialize.sdk_mcp_servers, ["s"]);
    assert_eq!(initialize.warnings.len(), 3, "{:?}", initialize.warnings);
    let again = receive(&mut control, &request("2", &json!({"subtype": "initialize"}))).expect("a request");
    assert!(again.event.is_none() && again.lines[0].to_string().contains("already"));
}

#[test]
fn permission_question_has_claude_names_and_suggestions() {
    let mut control = control();
    let mut question = question(json!({"command": "git push"}));
    question.suggestions = vec![PermissionUpdate::SetMode(PermissionMode::AcceptEdits)];
    let sent = control.ask_permission(&question).expect("a question");
    assert_eq!(
        sent.line.into_value(),
        json!({"type": "control_request", "request_id": "pintle_0", "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "git push"},
            "tool_use_id": "call_1", "decision_reason": "it runs a command",
            "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
        }})
    );
    control.ask_permission(&question).expect("the second");
    assert_eq!(control.ask_permission(&question), Err(ControlError::TooMany { waiting: 2 }));
    assert!(control.withdraw("pintle_0").is_some() && control.withdraw("pintle_0").is_none());
    let late = receive(&mut control, &success("pintle_0", &json!({"behavior": "allow"})));
    assert_eq!(late, Err(ControlError::NoSuchRequest { id: "pintle_0".to_owned() }));
    assert_eq!(control.close(), ["pintle_1"]);
}

#[test]
fn other_input_is_a_new_call_and_the_same_is_not() {
    let same = answered(&json!({"behavior": "allow", "updatedInput": {"command": "ls"}}));
    assert_eq!(same.decision(), Decision::Approve);
    let other = answered(&json!({"behavior": "allow", "updatedInput": {"command": "ls -l"}}));
    assert_eq!(other.decision(), Decision::Change { arguments: json!({"command": "ls -l"}) });
    let update = json!({"type": "setMode", "mode": "plan", "destination": "session"});
    let updated = answered(&json!({"behavior": "allow", "updatedPermissions": [update]}));
    assert_eq!(updated.updates(), [PermissionUpdate::SetMode(PermissionMode::Plan)]);
    let denied = answered(&json!({"behavior": "deny", "message": "no", "interrupt": true}));
    assert_eq!(denied, PermissionAnswer::Deny { message: "no".to_owned(), interrupts: true });
}

#[test]
fn answers_that_cannot_be_read_allow_nothing() {
    let answers = [
        json!({"behavior": "maybe"}),
        json!({"behavior": "allow", "updatedInput": 7}),
        json!({"behavior": "allow", "updatedPermissions": [{"type": "lockDown"}]}),
        json!({"behavior": "allow", "updatedPermissions": {}}),
        json!("allow"),
        Value::Null,
    ];
    for answer in answers {
        let read = answered(&answer);
        assert!(matches!(read, PermissionAnswer::Deny { .. }), "{answer}: {read:?}");
    }
}

#[test]
fn hook_answers_become_those_of_a_session() {
    let read = |answer: &Value| {
        let mut control = control();
        let sent = control.run_hook("h", &json!({}), Some("call_1")).expect("a hook");
        match receive(&mut control, &success(&sent.id, answer)).expect("an answer").event {
            Some(ControlEvent::Hook { answer, .. }) => answer,
            other => panic!("{other:?}"),
        }
    };
    let specific = |fields: Value| json!({"hookSpecificOutput": fields});
    let denied = read(&specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "no"})));
    let call = denied.expect("an answer").call_answer();
    assert_eq!((call.permission, call.reason.as_deref()), (Some(Permission::Deny), Some("no")));
    let changed = read(&specific(json!({"permissionDecision": "allow", "updatedInput": {"a": 1}})));
    assert_eq!(changed.clone().expect("an answer").call_answer().arguments, Some(json!({"a": 1})));
    assert_eq!(changed.expect("an answer").decision(), Some(Decision::Change { arguments: json!({"a": 1}) }));
    let blocked = read(&json!({"decision": "block", "reason": "not yet"})).expect("an answer");
    assert_eq!(blocked.end_answer().send_on.as_deref(), Some("not yet"));
    assert_eq!(blocked.input_answer().refused.as_deref(), Some("not yet"));
    assert_eq!(blocked.result_answer().context.as_deref(), Some("not yet"));
    let stopped = read(&json!({"continue": false, "stopReason": "enough"})).expect("an answer");
    assert_eq!(stopped.call_answer().stop.as_deref(), Some("enough"));
    assert_eq!(stopped.end_answer().send_on, None);
    let decided = read(&specific(json!({"decision": {"behavior": "deny", "message": "no"}})));
    assert_eq!(
        decided.expect("an answer").decision(),
        Some(Decision::Deny { reason: Some("no".to_owned()) })
    );
    assert_eq!(read(&json!({"async": true})), Ok(crate::claude::HookAnswer::default()));
    read(&json!({"decision": "perhaps"})).expect_err("no decision");
    read(&specific(json!({"permissionDecision": "perhaps"}))).expect_err("no decision");
}

#[test]
fn mcp_answers_are_messages() {
    let mut control = control();
    let sent = control.send_mcp("s", &json!({"id": 1})).expect("a message");
    let answer = success(&sent.id, &json!({"mcp_response": {"id": 1, "result": {}}}));
    let step = receive(&mut control, &answer).expect("an answer");
    assert!(matches!(step.event, Some(ControlEvent::Mcp { answer: Ok(_), .. })));
    let sent = control.send_mcp("s", &json!({"id": 2})).expect("a message");
    let failed = json!({"type": "control_response",
        "response": {"subtype": "error", "request_id": sent.id, "error": "gone"}});
    let step = receive(&mut control, &failed).expect("an answer");
    assert_eq!(step.event, Some(ControlEvent::Mcp { id: sent.id, answer: Err("gone".to_owned()) }));
}

#[test]
fn messages_of_the_user_have_text_and_images() {
    let content = json!([
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AQI="}},
        {"type": "text", "text": "b"},
    ]);
    let line = json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": content}});
    let Ok(IncomingLine::User(user)) = IncomingLine::parse(&line.to_string()) else { panic!("{line}") };
    assert_eq!(user.message.text, "a\n\nb");
    let MediaSource::Data(bytes) = &user.message.images[0].source else { panic!("{user:?}") };
    assert_eq!(bytes.as_bytes(), [1, 2]);
    assert_eq!((user.uuid.as_deref(), user.asks_model), (Some("u"), true));
}

#[test]
fn bad_lines_are_typed_errors() {
    let user =
        |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}}).to_string();
    let cases = [
        ("{\"type\": \"us".to_owned(), "not a JSON object"),
        ("7".to_owned(), "not a JSON object"),
        ("{}".to_owned(), "`line.type`: expected a string"),
        (r#"{"type": "dance"}"#.to_owned(), "unknown type of line `dance`"),
        (r#"{"type": "user"}"#.to_owned(), "`line.message`"),
        (r#"{"type": "control_response", "response": {}}"#.to_owned(), "`response.request_id`"),
        (user(json!(7)), "`message.content`"),
        (user(json!([{"type": "document"}])), "expected `text` or `image`"),
        (
            user(json!([{"type": "image", "source": {"type": "base64", "media_type": "x", "data": "?"}}])),
            "`source.data`: expected base64",
        ),
    ];
    for (line, expected) in cases {
        let error: LineError = IncomingLine::parse(&line).expect_err(&line);
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }
}

#[test]
fn matchers_of_hooks() {
    let cases = [
        ("", "anything", true),
        ("*", "anything", true),
        ("Write|Edit", "write_file", true),
        ("Write|Edit", "grep", false),
        ("^(Bash|Read)$", "exec_command", true),
        ("mcp__memory__.*", "mcp__memory__store", true),
        ("mcp__.*__write.*", "mcp__files__write_all", true),
        ("mcp__.*__write.*", "mcp__files__read", false),
        ("Bash", "TaskOutput", false),
        ("mcp__memory", "mcp__memory__store", false),
        ("Notebook.*", "NotebookEdit", true),
        (".*Edit", "NotebookEdit", true),
        ("book.*", "NotebookEdit", true),
        ("^book.*", "NotebookEdit", false),
        ("^Write|Edit$", "NotebookEdit", true),
        ("my-tool", "my-tool-2", true),
    ];
    for (matcher, name, expected) in cases {
        assert_eq!(HookMatcher::parse(matcher).expect(matcher).matches(name), expected, "{matcher} {name}");
    }
    for matcher in ["Bash?", "[A-Z]+", "a||b", "Edit\\b", "^(a)|b", "^$", "a*"] {
        HookMatcher::parse(matcher).expect_err(matcher);
    }
}
