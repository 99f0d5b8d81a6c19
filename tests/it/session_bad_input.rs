//! Invalid input from applications, models and clocks: each has a defined result, and the session continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pintle_agent::{
    Clock, EventKind, Outcome, OutcomeStatus, RunError, Session, SessionConfig, SessionError, SessionEvent,
    SessionHandle, SessionState, Timestamp,
};
use pintle_env::LocalEnvironment;
use pintle_llm::{
    ContentPart, Error, ErrorKind, Message, Middleware, Mode, Next, Reply, Request, StreamEvent,
};
use pintle_test_conditions::cases;
use pintle_testkit::{Call, Dialect, FaultScript, FaultServer, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::json;

use crate::events::CheckedEvents;
use crate::harness::{Harness, KEY, WAITING_TURN, client, client_at, in_each_dialect, kinds, profile};

in_each_dialect![
    an_empty_input_is_refused,
    a_concurrent_input_is_refused,
    a_closed_session_refuses_everything,
    an_empty_response_is_asked_for_again,
    many_calls_in_one_response_all_run,
    duplicate_call_ids_are_made_unique,
    a_call_without_an_id_gets_one,
    a_call_of_a_removed_tool_gets_an_error,
    endless_arguments_fail_only_the_run,
    a_repetitive_model_reaches_the_limits,
    a_clock_that_jumps_back_is_harmless,
];

async fn an_empty_input_is_refused(dialect: Dialect) {
    let harness = Harness::new(dialect, "[[turn]]\ntext = \"Hello.\"\n").await;
    for text in ["", " ", "\n\t \r\n"] {
        let mut run = harness.session.submit(text);
        assert!(run.next().await.is_none(), "it has no events");
        let refused = run.await;
        let Err(RunError::Refused { source, outcome }) = refused else { panic!("{refused:?}") };
        assert_eq!((outcome.status, source.kind()), (OutcomeStatus::Failed, ErrorKind::InvalidRequest));
        assert_eq!(source.message(), "the input is empty: expected some text or an image");
        assert_eq!((harness.session.state(), harness.session.history().len()), (SessionState::Idle, 0));
    }
    assert_eq!(harness.requests().len(), 0);
    assert_eq!(harness.run("Hello").await.1.text, "Hello.");
    harness.finish().await;
}

async fn a_concurrent_input_is_refused(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        "[[turn]]\ntext = \"one two three\"\npause_ms = 20\n[[turn]]\ntext = \"Next.\"\n",
    )
    .await;
    let mut run = harness.session.submit("First");
    while !matches!(run.next().await.expect("it goes on").kind, EventKind::RequestPrepared { .. }) {}
    let second = harness.session.submit("Second").await;
    let Err(RunError::Busy { outcome }) = second else { panic!("{second:?}") };
    let message = outcome.error.unwrap().message;
    assert!(message.starts_with("the session is processing: steer it, queue a follow-up"), "{message}");
    let outcome = run.await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "one two three"));
    assert_eq!(harness.run("Third").await.1.text, "Next.");
    assert!(harness.requests().iter().all(|request| !request.body.to_string().contains("Second")));
    harness.finish().await;
}

async fn a_closed_session_refuses_everything(dialect: Dialect) {
    let harness = Harness::new(dialect, "[[turn]]\ntext = \"Bye.\"\n").await;
    harness.run("Hello").await;
    let handle = harness.session.handle();
    let events = harness.session.events();
    harness.finish().await;
    let refused = [
        handle.steer("more").await,
        handle.follow_up("more").await.map(drop),
        handle.stop_turn(),
        handle.close(),
        handle.set_model("another"),
        handle.set_reasoning_effort(None),
        handle.set_profile(profile(dialect)),
    ];
    for result in refused {
        assert!(matches!(result, Err(SessionError::Closed)), "{result:?}");
    }
    let events: Vec<SessionEvent> = events.collect().await;
    assert_eq!(kinds(&events).last().unwrap(), "SESSION_END", "nothing follows the end");
}

/// Rewrites the first response before the session sees it. Its deltas are unchanged.
#[derive(Debug)]
struct RewriteFirstResponse {
    answers: AtomicUsize,
    how: fn(&mut Message),
}

impl RewriteFirstResponse {
    fn first(how: fn(&mut Message)) -> Self {
        Self { answers: AtomicUsize::new(0), how }
    }
}

#[async_trait]
impl Middleware for RewriteFirstResponse {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let mut reply = next.run(request, mode).await?;
        if self.answers.fetch_add(1, Ordering::Relaxed) > 0 {
            return Ok(reply);
        }
        match &mut reply {
            Reply::Response(response) => (self.how)(&mut response.message),
            Reply::Stream(events) => {
                let how = self.how;
                let inner = std::mem::replace(events, Box::pin(futures_util::stream::empty()));
                *events = Box::pin(inner.map(move |event| {
                    event.map(|mut event| {
                        if let StreamEvent::Finish { response, .. } = &mut event {
                            how(&mut response.message);
                        }
                        event
                    })
                }));
            }
        }
        Ok(reply)
    }
}

/// Starts a session with a middleware that rewrites its first response.
async fn session_with_rewritten_response(
    dialect: Dialect,
    script: Script,
    how: fn(&mut Message),
) -> (ScriptedServer, Session, tempfile::TempDir) {
    let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "a\n").unwrap();
    let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
    let client = client(&server, dialect, KEY).with_middleware(RewriteFirstResponse::first(how));
    let session = Session::builder(client, profile(dialect), env).build().unwrap();
    (server, session, directory)
}

async fn play(session: &Session, text: &str) -> (Vec<SessionEvent>, Outcome) {
    let mut run = session.submit(text);
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.await.or_else(RunError::into_outcome).expect("the session lives"))
}

/// Returns the number of requests, none of which violates a rule of the dialect.
fn valid_requests(server: &ScriptedServer) -> usize {
    let requests = server.requests();
    for request in &requests {
        assert_eq!(request.violations, [], "{}", request.body);
    }
    requests.len()
}

async fn an_empty_response_is_asked_for_again(dialect: Dialect) {
    // The middleware removes the text of the first response, since a scripted turn needs one. The server repeats the turn.
    let script = Script::new("nothing").with_turn(Turn::text("x"));
    let (server, session, _directory) =
        session_with_rewritten_response(dialect, script, |message| message.content.clear()).await;
    let _checked = CheckedEvents::of(&session);
    let (_, outcome) = play(&session, "Say something").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "x"));
    assert_eq!(session.history().len(), 2, "an empty answer cannot be sent back, so it is not kept");
    assert_eq!(valid_requests(&server), 2);
    session.close().await;
}

async fn many_calls_in_one_response_all_run(dialect: Dialect) {
    let number = cases(250, 1_000);
    let call = || Call::new("read_file", json!({ "file_path": "a.txt" }));
    let many = (0..number).fold(Turn::new(), |turn, _| turn.with_call(call()));
    let script = Script::new("many").with_turn(many).with_turn(Turn::text("That was a lot."));
    let (server, session, _directory) = session_with_rewritten_response(dialect, script, |_| {}).await;
    let _checked = CheckedEvents::of(&session);
    let (events, outcome) = play(&session, "Read it").await;
    assert_eq!((outcome.status, outcome.tool_calls), (OutcomeStatus::Completed, number));
    assert_eq!(kinds(&events).iter().filter(|kind| *kind == "TOOL_CALL_END").count() as u64, number);
    assert!(session.history()[2].item.results().all(|result| !result.is_error));
    assert_eq!(valid_requests(&server), 2);
    session.close().await;
}

/// Returns the ids of the calls in the first response, and the warnings about them.
async fn call_ids(dialect: Dialect, how: fn(&mut Message)) -> (Vec<String>, Vec<String>) {
    let call = || Call::new("read_file", json!({ "file_path": "a.txt" }));
    let script = Script::new("ids").with_turn(Turn::new().with_call(call()).with_call(call()));
    let (server, session, _directory) =
        session_with_rewritten_response(dialect, script.with_turn(Turn::text("Fine.")), how).await;
    let _checked = CheckedEvents::of(&session);
    let (events, outcome) = play(&session, "Read it twice").await;
    assert_eq!((outcome.status, outcome.error), (OutcomeStatus::Completed, None));
    assert_eq!(valid_requests(&server), 2);
    let history = session.history();
    let called: Vec<String> = history[1].item.tool_calls().map(|call| call.id.clone()).collect();
    let answered: Vec<String> = history[2].item.results().map(|result| result.tool_call_id.clone()).collect();
    assert_eq!(called, answered, "each call has its own result, in order");
    let said = events.into_iter().filter_map(|event| match event.kind {
        EventKind::HistoryRepaired { message } => Some(message),
        _ => None,
    });
    let said = said.collect();
    session.close().await;
    (called, said)
}

fn rename(message: &mut Message, id: &str) {
    for part in &mut message.content {
        if let ContentPart::ToolCall(call) = part {
            call.id = id.to_owned();
        }
    }
}

async fn duplicate_call_ids_are_made_unique(dialect: Dialect) {
    let (ids, said) = call_ids(dialect, |message| rename(message, "same")).await;
    assert_eq!((ids.len(), ids[0].as_str()), (2, "same"));
    assert_ne!(ids[1], "same");
    assert_eq!(said, [format!("the model used the call id same twice; the later call is now {}", ids[1])]);
}

async fn a_call_without_an_id_gets_one(dialect: Dialect) {
    let (ids, said) = call_ids(dialect, |message| rename(message, "")).await;
    assert!(ids.iter().all(|id| !id.is_empty()) && ids[0] != ids[1], "{ids:?}");
    assert!(said.len() == 2 && said[0].starts_with("the model called read_file without an id"), "{said:?}");
}

async fn a_call_of_a_removed_tool_gets_an_error(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "glob"
        arguments = { pattern = "*" }
        [[turn]]
        text = "Without it then."
        [[turn.expect]]
        call = 0
        is_error = true
        contains = "Unknown tool: glob"
        "#;
    let harness = Harness::new(dialect, &format!("{WAITING_TURN}{turns}")).await;
    let take_away = async |handle: &SessionHandle| {
        handle.set_profile(profile(dialect).without_tool("glob")).unwrap();
    };
    assert_eq!(harness.while_command_runs("Look", take_away).await.status, OutcomeStatus::Completed);
    harness.finish().await;
}

/// Returns an event that extends the arguments of a call, and the start of the response.
fn endless_arguments(dialect: Dialect, piece: &str) -> (String, String) {
    let event = |value: serde_json::Value| {
        let name = value["type"].as_str().unwrap_or("message").to_owned();
        format!("event: {name}\ndata: {value}\n\n")
    };
    match dialect {
        Dialect::OpenAiResponses => (
            event(json!({"type": "response.created", "sequence_number": 0, "response": {
                "id": "r", "object": "response", "model": "m", "status": "in_progress", "output": []}}))
                + &event(json!({"type": "response.output_item.added", "output_index": 0, "item": {
                    "id": "fc", "type": "function_call", "call_id": "c", "name": "write_file", "arguments": "",
                    "status": "in_progress"}})),
            event(
                json!({"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 0,
                "delta": piece}),
            ),
        ),
        Dialect::AnthropicMessages => (
            event(
                json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
                "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            ) + &event(json!({"type": "content_block_start", "index": 0, "content_block": {
                    "type": "tool_use", "id": "c", "name": "write_file", "input": {}}})),
            event(json!({"type": "content_block_delta", "index": 0, "delta": {
                "type": "input_json_delta", "partial_json": piece}})),
        ),
        // Calls come in one piece here, so the endless part is the number of calls.
        Dialect::Gemini => (
            String::new(),
            format!(
                "data: {}\n\n",
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [
                {"text": piece}]}}], "modelVersion": "m"})
            ),
        ),
        Dialect::ChatCompletions => {
            let chunk = |delta: serde_json::Value| {
                let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
                format!("data: {chunk}\n\n")
            };
            let begin = json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c", "type": "function",
                "function": {"name": "write_file", "arguments": ""}}]});
            let more = json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]});
            (chunk(begin), chunk(more))
        }
    }
}

async fn endless_arguments_fail_only_the_run(dialect: Dialect) {
    const LIMIT: u64 = 1 << 20;
    let (begin, more) = endless_arguments(dialect, &"x".repeat(4_096));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let script = FaultScript::new().read_request().write(format!("{head}{begin}"));
    let server = FaultServer::start([script.repeat(more, usize::MAX, Duration::ZERO)]).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
    let config = SessionConfig::default().with_response_limit(LIMIT);
    let client = client_at(&server.url(), dialect, KEY);
    let session = Session::builder(client, profile(dialect), env).with_config(config).build().unwrap();
    let checked = CheckedEvents::of(&session);
    for _ in 0..2 {
        let (_, outcome) = play(&session, "Write a file").await;
        let error = outcome.error.unwrap();
        assert_eq!((outcome.status, error.kind), (OutcomeStatus::Failed, ErrorKind::Stream), "{error}");
        assert_eq!(error.message, format!("the response is larger than {LIMIT} bytes"));
        assert_eq!((outcome.model_calls, session.state()), (1, SessionState::Idle));
    }
    session.close().await;
    drop(checked);
    let records =
        tokio::time::timeout(Duration::from_secs(20), server.finish()).await.expect("nobody reads on");
    assert_eq!(records.len(), 2, "it is not tried again: the next answer would be as long");
}

/// Inflates the text of the first response on its way to the session.
#[derive(Debug, Default)]
struct Inflate {
    answers: AtomicUsize,
}

/// Size of each delta of the first response.
const PIECE: usize = 1_000_000;

/// Returns the number of these deltas.
fn pieces() -> usize {
    cases(5, 50)
}

#[async_trait]
impl Middleware for Inflate {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let reply = next.run(request, mode).await?;
        let Reply::Stream(events) = reply else { return Ok(reply) };
        if self.answers.fetch_add(1, Ordering::Relaxed) > 0 {
            return Ok(Reply::Stream(events));
        }
        Ok(Reply::Stream(Box::pin(events.flat_map(|event| futures_util::stream::iter(inflate(event))))))
    }
}

/// Returns the replacement of an event.
fn inflate(event: Result<StreamEvent, Error>) -> Vec<Result<StreamEvent, Error>> {
    match event {
        Ok(StreamEvent::TextDelta { text_id, .. }) => (0..pieces())
            .map(|_| Ok(StreamEvent::TextDelta { text_id: text_id.clone(), delta: "x".repeat(PIECE) }))
            .collect(),
        Ok(StreamEvent::Finish { finish_reason, usage, mut response }) => {
            let origin = response.message.origin.clone().expect("an answer says whose it is");
            response.message = Message::assistant("x".repeat(PIECE * pieces())).with_origin(origin);
            vec![Ok(StreamEvent::Finish { finish_reason, usage, response })]
        }
        other => vec![other],
    }
}

/// Only one dialect, since it is slow: without optimization each pass over 50 megabytes takes a second, so that only the
/// long run has that size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_of_many_megabytes_is_accepted() {
    let dialect = Dialect::AnthropicMessages;
    let script = Script::new("large").with_turn(Turn::text("x")).with_turn(Turn::text("Short."));
    let options = ServerOptions::new().with_api_key(KEY).with_recorded_bytes(0);
    let server = ScriptedServer::start(script, options).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
    let client = client(&server, dialect, KEY).with_middleware(Inflate::default());
    // Large enough for the response, and small enough for the warning about the context window.
    let profile = profile(dialect).with_context_window(pieces() as u64 * 200_000);
    let session = Session::builder(client, profile, env).build().unwrap();
    let _checked = CheckedEvents::of(&session);
    let (_, outcome) = play(&session, "Go on and on").await;
    assert_eq!((outcome.status, outcome.error), (OutcomeStatus::Completed, None));
    assert_eq!(outcome.text.len(), PIECE * pieces());
    // The next input sends it back to the provider, whose checker validates it.
    let (events, outcome) = play(&session, "Shorter").await;
    assert_eq!((outcome.error, outcome.text.as_str()), (None, "Short."));
    let warned = events.iter().any(
        |event| matches!(&event.kind, EventKind::Warning { message } if message.starts_with("Context usage")),
    );
    assert!(warned, "the context's window is spoken of");
    session.close().await;
}

async fn a_repetitive_model_reaches_the_limits(dialect: Dialect) {
    const ROUNDS: u64 = 25;
    let round = "[[turn]]\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*.rs\" }\n";
    let turns = format!("{}[[turn]]\ntext = \"Enough.\"\n", round.repeat(25));
    let config = SessionConfig::default().with_max_tool_rounds(ROUNDS);
    let harness = Harness::configured(dialect, &turns, config).await;
    let (events, outcome) = harness.run("Go").await;
    assert_eq!((outcome.status, outcome.model_calls), (OutcomeStatus::RoundLimit, ROUNDS));
    let seen = kinds(&events);
    assert_eq!(seen.iter().filter(|kind| *kind == "LOOP_DETECTION").count(), 2, "once for each ten calls");
    assert_eq!(seen.iter().filter(|kind| *kind == "TURN_LIMIT").count(), 1);
    assert_eq!(harness.run("And now?").await.1.text, "Enough.");
    harness.finish().await;
}

/// A clock on which each reading is an hour before the previous one.
#[derive(Debug)]
struct BackwardsClock(AtomicI64);

impl Clock for BackwardsClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_sub(3_600_000, Ordering::Relaxed))
    }
}

async fn a_clock_that_jumps_back_is_harmless(dialect: Dialect) {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo one\" }\n[[turn]]\ntext = \"Done.\"\n[[turn]]\ntext = \"Again.\"\n";
    let clock = Arc::new(BackwardsClock(AtomicI64::new(1_700_000_000_000)));
    let harness =
        Harness::with(dialect, turns, SessionConfig::default(), |builder| builder.with_clock(clock)).await;
    let (events, outcome) = harness.run("Go").await;
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    let took = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallEnd { duration_ms, .. } => Some(*duration_ms),
        _ => None,
    });
    assert_eq!(took, Some(0), "no time has passed, and not less than none");
    assert_eq!(harness.run("Once more").await.1.text, "Again.");
    let times: Vec<i64> = harness.session.history().iter().map(|turn| turn.timestamp.as_millis()).collect();
    assert!(times.is_sorted(), "{times:?}");
    harness.finish().await;
}
