//! Arguments of calls as events while the model writes them.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::stream;
use pintle_llm::{EventStream, Finish, FinishReason, PartialToolCall, Request, Response, StreamEvent, Usage};

use super::*;

/// Adapter that plays one scripted stream per request.
#[derive(Debug)]
struct Streaming(Mutex<VecDeque<Vec<Result<StreamEvent, Error>>>>);

#[async_trait]
impl ProviderAdapter for Streaming {
    fn name(&self) -> &str {
        "anthropic"
    }

    async fn complete(&self, _request: &Request) -> Result<Response, Error> {
        Err(cut_off())
    }

    async fn stream(&self, _request: &Request) -> Result<EventStream, Error> {
        let events = self.0.lock().unwrap().pop_front().expect("a stream is left");
        Ok(Box::pin(stream::iter(events)))
    }
}

fn cut_off() -> Error {
    Error::new(ErrorKind::Server, "overloaded")
}

/// Events of a call of this tool, with its arguments in these pieces.
fn written(id: &str, tool: &str, pieces: &[&str]) -> Vec<Result<StreamEvent, Error>> {
    let call = || PartialToolCall { id: id.into(), name: tool.into() };
    let mut events = vec![Ok(StreamEvent::ToolCallStart { tool_call: call() })];
    for piece in pieces {
        events.push(Ok(StreamEvent::ToolCallDelta { tool_call: call(), delta: (*piece).into() }));
    }
    events.push(Ok(StreamEvent::ToolCallEnd { tool_call: ToolCall::from_raw(id, tool, pieces.concat()) }));
    events
}

fn finish(message: Message) -> Result<StreamEvent, Error> {
    let finish = if message.tool_calls().next().is_some() { Finish::ToolCalls } else { Finish::Stop };
    let finish_reason = FinishReason::new(finish);
    let response = Response::new("anthropic", "m", message).with_finish_reason(finish_reason.clone());
    Ok(StreamEvent::Finish { finish_reason, usage: Usage::new(1, 1), response: Box::new(response) })
}

fn session(streams: Vec<Vec<Result<StreamEvent, Error>>>) -> Session {
    let adapter = Arc::new(Streaming(Mutex::new(streams.into())));
    let client = Client::builder().shared_provider(adapter).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let quick = RetryPolicy::default().with_base_delay(std::time::Duration::from_millis(1));
    Session::builder(client, profile, Arc::new(env()) as Arc<dyn ExecutionEnvironment>)
        .with_config(SessionConfig::default().with_retry(quick))
        .record(true)
        .build()
        .unwrap()
}

/// Each event about arguments and calls, with its text.
fn shown(events: &[SessionEvent]) -> Vec<String> {
    let text = |event: &SessionEvent| match &event.kind {
        EventKind::ToolCallArgumentsStart { call_id, tool_name, call_kind } => {
            Some(format!("write {call_id} {tool_name} {call_kind:?}"))
        }
        EventKind::ToolCallArgumentsDelta { call_id, delta } => Some(format!("delta {call_id} {delta}")),
        EventKind::ToolCallArgumentsEnd { call_id, interrupted } => {
            Some(format!("written {call_id} {interrupted}"))
        }
        EventKind::ToolCallStart { call_id, call_kind, .. } => Some(format!("start {call_id} {call_kind:?}")),
        EventKind::Warning { .. } => Some("warning".into()),
        _ => None,
    };
    let mut shown: Vec<String> = Vec::new();
    for text in events.iter().filter_map(text) {
        // How deltas are split depends on the scheduler.
        match (shown.last_mut(), text.strip_prefix("delta a ")) {
            (Some(last), Some(more)) if last.starts_with("delta a ") => last.push_str(more),
            _ => shown.push(text),
        }
    }
    shown
}

const ARGUMENTS: [&str; 3] = [r#"{"file_path": "/project/a.txt","#, r#" "content": "he"#, r#"llo"}"#];

#[tokio::test]
async fn arguments_are_events_while_the_model_writes() {
    let mut first = written("a", "write_file", &ARGUMENTS);
    let call = ToolCall::from_raw("a", "write_file", ARGUMENTS.concat());
    first.push(finish(Message::new(Role::Assistant, vec![call.into()])));
    let session = session(vec![first, vec![finish(Message::assistant("Done."))]]);
    let events = all(session.submit("write")).await;
    assert_eq!(
        shown(&events),
        [
            "write a write_file Edit".to_owned(),
            format!("delta a {}", ARGUMENTS.concat()),
            "written a false".into(),
            "start a Edit".into(),
        ]
    );
    let replay = session.record().unwrap().replay().unwrap();
    let lifecycle = |event: &&SessionEvent| event.offset.is_none() && event.seq > 0;
    let live: Vec<&SessionEvent> = events.iter().filter(lifecycle).collect();
    assert_eq!(replay.events.iter().skip(1).collect::<Vec<_>>(), live, "a replay has the same events");
}

#[tokio::test]
async fn arguments_that_are_cut_off_end_as_interrupted() {
    let mut first = written("a", "shell", &["{\"comm"]);
    first.pop();
    first.push(Err(cut_off()));
    let session = session(vec![first, vec![finish(Message::assistant("Done."))]]);
    let events = all(session.submit("run it")).await;
    assert_eq!(shown(&events), ["write a shell Command", "delta a {\"comm", "written a true", "warning"]);
}

#[tokio::test]
async fn arguments_in_one_piece_have_no_events_of_their_own() {
    let mut first = written("a", "read_file", &[]);
    let call = ToolCall::from_raw("a", "read_file", r#"{"file_path": "/project/none"}"#);
    first.push(finish(Message::new(Role::Assistant, vec![call.into()])));
    let session = session(vec![first, vec![finish(Message::assistant("Done."))]]);
    assert_eq!(shown(&all(session.submit("read")).await), ["start a Read"]);
}

#[tokio::test]
async fn arguments_before_the_tool_name_are_not_lost() {
    let call = |name: &str| PartialToolCall { id: "a".into(), name: name.into() };
    let deltas = [("", "{\"command\""), ("shell", ": \"tr"), ("shell", "ue\"}")];
    let mut first = vec![Ok(StreamEvent::ToolCallStart { tool_call: call("") })];
    first.extend(
        deltas.map(|(name, delta)| {
            Ok(StreamEvent::ToolCallDelta { tool_call: call(name), delta: delta.into() })
        }),
    );
    first.push(finish(Message::assistant("Never mind.")));
    let session = session(vec![first]);
    let events = all(session.submit("run it")).await;
    assert_eq!(
        shown(&events),
        ["write a shell Command", "delta a {\"command\": \"true\"}", "written a false"]
    );
}
