//! The driver over a scripted session.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use pintle_agent::{ApprovalRequest, Decision};
use pintle_llm::Fingerprint;
use serde_json::{Value, json};

use super::*;
use crate::render::{Depth, TerminalSize};
use crate::terminal::approvals::RequestDecision;
use crate::terminal::attention::SessionActivity;
use crate::terminal::history::History;
use crate::terminal::port::{Capabilities, PortState};
use crate::terminal::status::StatusLine;

/// A session that supports everything.
const WHOLE: Capabilities =
    Capabilities { supported: &Operation::ALL, refusal: "is missing", outlives_terminal: false };

/// A session that supports messages and decisions.
const SMALL: Capabilities = Capabilities {
    supported: &[Operation::Submit, Operation::Steer, Operation::Decide, Operation::Interrupt],
    refusal: "is missing here",
    outlives_terminal: true,
};

/// State, commands and replies of a session.
#[derive(Default)]
struct Script {
    state: PortState,
    commands: Vec<PortCommand>,
    /// Replies in order. Further commands are carried out.
    replies: VecDeque<PortResult>,
}

struct ScriptedPort {
    capabilities: &'static Capabilities,
    script: Arc<Mutex<Script>>,
    events: mpsc::UnboundedReceiver<PortEvent>,
}

impl Stream for ScriptedPort {
    type Item = PortEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PortEvent>> {
        self.events.poll_recv(context)
    }
}

#[async_trait]
impl SessionPort for ScriptedPort {
    fn capabilities(&self) -> &'static Capabilities {
        self.capabilities
    }

    fn state(&self) -> PortState {
        self.script.lock().unwrap().state.clone()
    }

    fn command(&mut self, command: PortCommand) -> BoxFuture<'static, PortResult> {
        let mut script = self.script.lock().unwrap();
        script.commands.push(command);
        let reply = script.replies.pop_front().unwrap_or(Ok(PortReply::Done));
        Box::pin(std::future::ready(reply))
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Conversation in lines with a scripted session.
struct Harness<'a> {
    driver: Driver<'a>,
    device: Device,
    /// Keeps the device open, and types in the loop of the driver.
    keys: mpsc::Sender<Vec<u8>>,
    script: Arc<Mutex<Script>>,
    /// Emits events in the loop of the driver. The session ends without it.
    events: Option<mpsc::UnboundedSender<PortEvent>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl<'a> Harness<'a> {
    fn new(capabilities: &'static Capabilities, process_env: &'a ProcessEnv) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let (keys, input) = mpsc::channel(16);
        let script = Arc::<Mutex<Script>>::default();
        let port = ScriptedPort { capabilities, script: Arc::clone(&script), events };
        let size = TerminalSize { columns: 80, rows: 24 };
        let conversation = Conversation::in_lines(size, History::new(Vec::new()), StatusLine::default());
        let screen = Screen { size, depth: Depth::Monochrome, reflows: false, moves: false };
        let attention = Attention::new(Default::default(), None);
        let mut driver = Driver::new(Box::new(port), conversation, screen, attention, None, process_env);
        let written = driver.display.capture();
        Self { driver, device: Device::scripted(input), keys, script, events: Some(sender), written }
    }

    async fn types(&mut self, line: &str) {
        self.driver.typed(format!("{line}\n").as_bytes(), &mut self.device).await.unwrap();
    }

    /// Emits an event of the session.
    async fn event(&mut self, kind: &str, data: &Value) {
        let at = "2026-01-02T03:04:05.000Z";
        let event = json!({"seq": 0, "timestamp": at, "session_id": "s", "kind": kind, "data": data});
        let event = serde_json::from_value(event).unwrap();
        self.receives(PortEvent::Session(Box::new(event))).await;
    }

    async fn receives(&mut self, event: PortEvent) {
        self.driver.received(event);
        self.driver.display.draw().await.unwrap();
    }

    /// Runs the loop of the driver until the session ends or the user leaves.
    async fn converses(&mut self) {
        let mut resized = signal(SignalKind::window_change()).unwrap();
        self.driver.converse(&mut self.device, &mut None, &mut resized).await.unwrap();
        self.driver.display.draw().await.unwrap();
    }

    fn state(&self, change: impl FnOnce(&mut PortState)) {
        change(&mut self.script.lock().unwrap().state);
    }

    /// Sets the reply to the next command.
    fn replies(&self, reply: PortResult) {
        self.script.lock().unwrap().replies.push_back(reply);
    }

    /// Returns the commands since the last call.
    fn commands(&self) -> Vec<String> {
        let commands = std::mem::take(&mut self.script.lock().unwrap().commands);
        commands.iter().map(description).collect()
    }

    /// Returns the output since the last call.
    fn output(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.written.lock().unwrap())).unwrap()
    }
}

fn description(command: &PortCommand) -> String {
    if let PortCommand::Submit(said) = command {
        return format!("submit {}", said.text);
    }
    if let PortCommand::Decide(RequestDecision { decision, request, .. }) = command {
        let is_approved = matches!(decision, Decision::Approve);
        return format!("decide {} {is_approved}", request.call_id);
    }
    format!("{command:?}")
}

fn process_env() -> ProcessEnv {
    ProcessEnv::from_variables([("HOME", OsStr::new("/nowhere"))])
}

fn call() -> Arc<ApprovalRequest> {
    let arguments = json!({"command": "touch a"});
    let fingerprint = Fingerprint::from_bytes(b"touch a");
    Arc::new(ApprovalRequest::new("c1", "shell", fingerprint).with_arguments(arguments))
}

#[tokio::test]
async fn lines_become_commands_of_the_port() {
    let process_env = process_env();
    let mut harness = Harness::new(&SMALL, &process_env);
    harness.driver.begin_conversation(Some("do it".to_owned()));
    assert_eq!(harness.commands(), ["submit do it"], "and no command that the session lacks");
    harness.event("USER_INPUT", &json!({"content": "do it"})).await;

    // A running turn is steered by the same command.
    harness.types("look at b").await;
    assert_eq!(harness.commands(), ["submit look at b"]);
    harness.state(|state| (state.queued, state.mode) = (vec!["look at b".to_owned()], "ask".to_owned()));
    harness.receives(PortEvent::State).await;
    let status = &harness.driver.display.conversation.status;
    assert_eq!((status.queued, status.mode.as_str()), (1, "ask"));

    harness.state(|state| state.approvals = vec![call()]);
    harness.receives(PortEvent::State).await;
    let output = harness.output();
    assert!(output.contains("approval: shell") && output.contains("touch a"), "{output}");
    harness.replies(Err("another user has decided".to_owned()));
    harness.types("no").await;
    assert_eq!(harness.commands(), ["decide c1 false"]);
    let output = harness.output();
    assert!(output.contains("[approval] another user has decided"), "{output}");
    harness.types("yes").await;
    assert_eq!(harness.commands(), ["decide c1 true"]);

    let effects = harness.driver.display.interrupt_or_leave();
    harness.driver.perform(effects, &mut harness.device).await.unwrap();
    assert_eq!(harness.commands(), ["Interrupt"]);
    harness.state(|state| state.approvals.clear());
    harness.event("PROCESSING_END", &json!({"state": "IDLE"})).await;
    assert_eq!(harness.driver.display.conversation.session_activity(), SessionActivity::default());

    harness.replies(Err("the session has ended".to_owned()));
    harness.types("more").await;
    let output = harness.output();
    assert!(output.contains("not sent: the session has ended"), "{output}");
}

#[tokio::test]
async fn a_lost_connection_and_its_return_are_reported() {
    let process_env = process_env();
    let mut harness = Harness::new(&SMALL, &process_env);
    let events = harness.events.take().unwrap();
    for event in [
        PortEvent::Reset("another record".to_owned()),
        PortEvent::Away("connection refused".to_owned()),
        PortEvent::Back,
        PortEvent::Failed("no such model".to_owned()),
    ] {
        events.send(event).unwrap();
    }
    drop(events);
    harness.keys.send(b"go\n".to_vec()).await.unwrap();
    harness.converses().await;
    assert_eq!(harness.commands(), ["submit go"]);
    assert_eq!(harness.driver.next, None, "the session has ended, not the user");
    let output = harness.output();
    let mut rest = output.as_str();
    for text in [
        "[server] the conversation follows from its beginning: another record",
        "[server] disconnected, and connecting again: connection refused",
        "[server] connected again",
        "no such model",
    ] {
        let (_, after) = rest.split_once(text).unwrap_or_else(|| panic!("{text} is missing: {output}"));
        rest = after;
    }
}

#[tokio::test]
async fn operations_that_a_session_lacks_are_refused() {
    let process_env = process_env();
    for (lines, name) in [
        (&["!ls"][..], "running commands"),
        (&["# use tabs", "project"], "adding to instructions"),
        (&["/agents"], "/agents"),
        (&["/compact"], "/compact"),
        (&["/copy"], "/copy"),
        (&["/diff"], "/diff"),
        (&["/effort high"], "/effort"),
        (&["/export"], "/export"),
        (&["/memory"], "/memory"),
        (&["/mode plan"], "/mode"),
        (&["/model m"], "/model"),
        (&["/plan a task"], "/plan"),
        (&["/resume"], "/resume"),
        (&["/status"], "/status"),
        (&["/undo"], "/undo"),
    ] {
        let mut harness = Harness::new(&SMALL, &process_env);
        for line in lines {
            harness.types(line).await;
        }
        let output = harness.output();
        assert!(output.contains(&format!("[pintle] {name} is missing here")), "{name}: {output}");
        assert!(harness.commands().is_empty(), "{name}");
        harness.types("/help").await;
        let output = harness.output();
        assert!(!name.starts_with('/') || !output.contains(&format!("  {name} ")), "{name}: {output}");
    }
}

#[tokio::test]
async fn sessions_are_switched_between_turns() {
    let process_env = process_env();
    let mut harness = Harness::new(&WHOLE, &process_env);
    let next = ConversationEnd::Resume("0a".to_owned());
    harness.state(|state| state.is_processing = true);
    harness.replies(Ok(PortReply::Next(next.clone())));
    harness.types("/resume 0").await;
    assert_eq!(harness.commands(), ["Switch(Resume(\"0\"))"]);
    let output = harness.output();
    assert!(output.contains("a turn is running") && harness.driver.next.is_none(), "{output}");

    harness.state(|state| state.is_processing = false);
    harness.replies(Ok(PortReply::Next(next.clone())));
    harness.types("/resume 0").await;
    assert_eq!(harness.driver.next, Some(next));
    // The next conversation gets the input that follows.
    harness.types("hello").await;
    assert_eq!(harness.device.unread_lines, ["hello"]);
}
