//! A session of a server. It does not end with the conversation.

mod approvals;
mod outbox;
mod texts;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::Fuse;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use pintle_agent::{EventKind, Money, SessionEvent, SessionId, SessionState, UserMessage};
use pintle_client::{
    Approval, Change, Changes, Client, ClientError, SessionEvents, SessionInfo, SessionItem, SettingsChange,
};
use pintle_host::failure::Failure;
use pintle_host::sanitize::sanitize;
use pintle_llm::error_chain;
use tokio::sync::{Mutex, mpsc};

use self::outbox::Outbox;
use self::texts::Texts;
use super::{
    Capabilities, Operation, PortCommand, PortEvent, PortReply, PortResult, PortState, Report, SessionPort,
    carried_out,
};
use crate::client_failure::explain;
use crate::render::StyledLine;
use crate::reports::labelled;
use crate::terminal::images::OutgoingMessage;

/// Operations of a session of a server. The others are about files, rules or settings of the server's machine, or start
/// another session.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    supported: &[
        Operation::Submit,
        Operation::Steer,
        Operation::FollowUp,
        Operation::Decide,
        Operation::Interrupt,
        Operation::Model,
        Operation::Mode,
        Operation::Effort,
        Operation::Compact,
        Operation::Status,
    ],
    refusal: "is not available while attached to a server",
    outlives_terminal: true,
};

/// Label of notices about the connection.
const NOTICE: &str = "server";

/// Session of a server.
pub(in crate::terminal) struct RemotePort {
    client: Client,
    id: SessionId,
    /// Working directory of the tools, on the server.
    directory: String,
    events: SessionEvents,
    changes: Fuse<Changes>,
    /// Events to return before newer ones.
    unread: VecDeque<PortEvent>,
    /// Keeps messages in the order in which they were entered.
    turnstile: Arc<Mutex<()>>,
    texts: Texts,
    outbox: Outbox,
    state: PortState,
    /// Results of commands.
    results: mpsc::UnboundedReceiver<CommandResult>,
    sender: mpsc::UnboundedSender<CommandResult>,
    /// Request for the calls that wait for approval.
    reading: Option<BoxFuture<'static, Result<Vec<Approval>, ClientError>>>,
    /// Whether they have changed since the request.
    is_stale: bool,
    /// Whether the connection is lost.
    is_away: bool,
    /// Reason why the session can no longer be followed.
    failure: Option<Failure>,
}

/// Result of a command that changes the known state.
enum CommandResult {
    /// The request of a message was answered.
    Sent { text: String, is_accepted: bool },
    /// A setting was changed.
    Changed(Box<SessionInfo>),
    /// A decision was rejected.
    NotDecided,
}

impl RemotePort {
    /// Creates the port of a session, and starts to follow it.
    pub(in crate::terminal) fn new(client: Client, session: &SessionInfo) -> Self {
        let (sender, results) = mpsc::unbounded_channel();
        let text = format!("attached to session {}; it continues on the server when you leave", session.id);
        let mut port = Self {
            events: client.events(&session.id, None),
            changes: client.changes().fuse(),
            client,
            id: session.id.clone(),
            directory: session.directory.clone().unwrap_or_default(),
            unread: VecDeque::from([PortEvent::Note { label: NOTICE, text }]),
            turnstile: Arc::default(),
            texts: Texts::default(),
            outbox: Outbox::default(),
            state: PortState::default(),
            results,
            sender,
            reading: None,
            is_stale: false,
            is_away: false,
            failure: None,
        };
        port.apply_info(session);
        port.read_approvals();
        port
    }

    /// Sends a message after all earlier messages, to a running turn or for its end.
    fn send(&mut self, said: &OutgoingMessage, at_once: bool) -> BoxFuture<'static, PortResult> {
        let text = said.message_text();
        let (mut message, mut left_out) = (UserMessage::from(&text), Vec::new());
        for image in &said.images {
            match &image.pasted {
                Some(pasted) => message = message.with_image(pasted.clone()),
                None => {
                    let name = sanitize(&image.name);
                    left_out.push(format!("{name} was not sent as an image: paste it instead"));
                }
            }
        }
        self.outbox.start(&text);
        let (client, id, sender) = (self.client.clone(), self.id.clone(), self.sender.clone());
        let turnstile = Arc::clone(&self.turnstile);
        Box::pin(async move {
            let _turn = turnstile.lock().await;
            let result = match at_once {
                true => client.say(&id, message).await,
                false => client.follow_up(&id, message).await,
            };
            // Fails only if the port is closed.
            let _ = sender.send(CommandResult::Sent { text, is_accepted: result.is_ok() });
            result.map(|()| PortReply::Sent { left_out }).map_err(|error| error.to_string())
        })
    }

    fn set(&self, change: SettingsChange) -> BoxFuture<'static, PortResult> {
        let (client, id, sender) = (self.client.clone(), self.id.clone(), self.sender.clone());
        Box::pin(async move {
            let session = client.change_session(&id, &change).await.map_err(|error| error.to_string())?;
            // As above.
            let _ = sender.send(CommandResult::Changed(Box::new(session)));
            Ok(PortReply::Done)
        })
    }

    fn status(&self) -> Vec<StyledLine> {
        vec![
            labelled("session", self.id.to_string()),
            labelled("directory", sanitize(&self.directory)),
            labelled("model", self.state.model.clone()),
            labelled("mode", self.state.mode.clone()),
        ]
    }

    /// Applies the information of the server about the session.
    fn apply_info(&mut self, session: &SessionInfo) {
        let state = &mut self.state;
        state.cost = session.cost_usd.map(Money::from_dollars);
        state.effort.clone_from(&session.effort);
        state.is_processing = session.state == SessionState::Processing;
        if let Some(model) = &session.model {
            state.model.clone_from(model);
        }
        if let Some(mode) = &session.mode {
            state.mode.clone_from(mode);
        }
    }

    /// Processes the first available result or item. Returns whether there was one.
    fn advance(&mut self, context: &mut Context<'_>) -> bool {
        if let Poll::Ready(Some(result)) = self.results.poll_recv(context) {
            self.command_result(result);
        } else if let Some(reading) = &mut self.reading
            && let Poll::Ready(read) = reading.poll_unpin(context)
        {
            self.approvals_read(read);
        } else if let Poll::Ready(Some(change)) = self.changes.poll_next_unpin(context) {
            self.changed(change);
        } else if let Poll::Ready(item) = self.events.poll_next_unpin(context) {
            self.received(item);
        } else {
            return false;
        }
        true
    }

    fn command_result(&mut self, result: CommandResult) {
        match result {
            CommandResult::Sent { text, is_accepted } => self.outbox.answered(text, is_accepted),
            CommandResult::Changed(session) => self.apply_info(&session),
            CommandResult::NotDecided => self.read_approvals(),
        }
        self.unread.push_back(PortEvent::State);
    }

    fn read_approvals(&mut self) {
        if self.reading.is_some() {
            self.is_stale = true;
            return;
        }
        let (client, id) = (self.client.clone(), self.id.clone());
        self.reading = Some(Box::pin(async move { client.approvals(&id).await }));
    }

    fn approvals_read(&mut self, read: Result<Vec<Approval>, ClientError>) {
        self.reading = None;
        // Without a connection, they are read again after it is restored.
        if let Ok(approvals) = read {
            let requests = approvals.into_iter().map(|one| Arc::new(approvals::request(one, &self.id)));
            self.state.approvals = requests.collect();
            self.unread.push_back(PortEvent::State);
        }
        if std::mem::take(&mut self.is_stale) {
            self.read_approvals();
        }
    }

    /// Handles a change of a session on the server.
    fn changed(&mut self, change: Result<Change, ClientError>) {
        if let Ok(Change::Session(session)) = change
            && session.id == self.id
        {
            self.apply_info(&session);
            self.unread.push_back(PortEvent::State);
            // Only this count includes calls of subagents.
            if usize::try_from(session.pending_approvals) != Ok(self.state.approvals.len()) {
                self.read_approvals();
            }
        }
    }

    /// Handles an item of the session's events.
    fn received(&mut self, item: Option<Result<SessionItem, ClientError>>) {
        match item {
            Some(Ok(SessionItem::Event { event, .. } | SessionItem::Delta(event))) => self.event(*event),
            Some(Ok(SessionItem::Reset { reason })) => {
                self.texts.clear();
                self.unread.push_back(PortEvent::Reset(reason));
            }
            Some(Ok(SessionItem::Ready)) => {
                if std::mem::take(&mut self.is_away) {
                    self.unread.push_back(PortEvent::Back);
                }
                self.read_approvals();
            }
            Some(Ok(SessionItem::Disconnected(lost))) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    self.unread.push_back(PortEvent::Away(error_chain(&lost.error)));
                }
            }
            // The end of a text contains the parts that were missed.
            Some(Ok(SessionItem::Gap(_) | SessionItem::Unknown { .. } | _)) => {}
            Some(Err(error)) => self.failure = Some(explain(&error)),
            None => self.failure = Some(Failure::failed(format!("session {} was deleted", self.id))),
        }
    }

    fn event(&mut self, mut event: SessionEvent) {
        // A subagent's session is followed like any other.
        event.depth = 0;
        match &event.kind {
            EventKind::UserInput { content, .. } | EventKind::SteeringInjected { content, .. } => {
                self.outbox.arrived(content);
            }
            EventKind::PolicyChanged(change) => {
                if let Some(mode) = &change.mode {
                    self.state.mode.clone_from(mode);
                }
            }
            EventKind::Error { error } => {
                let causes: String = error.causes.iter().map(|cause| format!(": {cause}")).collect();
                self.unread.push_back(PortEvent::Failed(format!("{error}{causes}")));
            }
            EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::ToolCallEnd { .. }
            | EventKind::ProcessingEnd { .. } => self.read_approvals(),
            EventKind::SessionStart { .. } | _ => {}
        }
        let events = self.texts.events(event).into_iter();
        self.unread.extend(events.map(|event| PortEvent::Session(Box::new(event))));
    }
}

#[async_trait]
impl SessionPort for RemotePort {
    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> PortState {
        PortState { queued: self.outbox.queued().to_vec(), ..self.state.clone() }
    }

    fn command(&mut self, command: PortCommand) -> BoxFuture<'static, PortResult> {
        let (client, id) = (self.client.clone(), self.id.clone());
        match command {
            PortCommand::Submit(said) => self.send(&said, true),
            PortCommand::FollowUp(said) => self.send(&said, false),
            PortCommand::Decide(decided) => {
                let sender = self.sender.clone();
                Box::pin(async move {
                    let result = approvals::decide(&client, &id, decided).await;
                    if result.is_err() {
                        // Fails only if the port is closed.
                        let _ = sender.send(CommandResult::NotDecided);
                    }
                    result.map(|()| PortReply::Done)
                })
            }
            PortCommand::Interrupt => Box::pin(async move { into_port_result(client.interrupt(&id).await) }),
            PortCommand::Compact => Box::pin(async move { into_port_result(client.compact(&id).await) }),
            PortCommand::SetModel(model) => {
                self.set(SettingsChange { model: Some(model), ..SettingsChange::default() })
            }
            PortCommand::SetMode(mode) => {
                self.set(SettingsChange { mode: Some(mode), ..SettingsChange::default() })
            }
            PortCommand::SetEffort(effort) => {
                self.set(SettingsChange { effort: Some(effort), ..SettingsChange::default() })
            }
            PortCommand::Report(Report::Status) => carried_out(Ok(PortReply::Lines(self.status()))),
            PortCommand::Plan(_)
            | PortCommand::RunShell(_)
            | PortCommand::ListFiles
            | PortCommand::AddInstruction(..)
            | PortCommand::FindUserCommands
            | PortCommand::ListPrompts
            | PortCommand::RefreshServers
            | PortCommand::GetPrompt(_)
            | PortCommand::ReadHistory
            | PortCommand::Report(_)
            | PortCommand::Export(_)
            | PortCommand::Switch(_) => carried_out(Err(CAPABILITIES.refusal("this"))),
        }
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

impl Stream for RemotePort {
    type Item = PortEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PortEvent>> {
        let port = self.get_mut();
        loop {
            if let Some(event) = port.unread.pop_front() {
                return Poll::Ready(Some(event));
            }
            if port.failure.is_some() {
                return Poll::Ready(None);
            }
            if !port.advance(context) {
                return Poll::Pending;
            }
        }
    }
}

fn into_port_result(result: Result<(), ClientError>) -> PortResult {
    result.map(|()| PortReply::Done).map_err(|error| error.to_string())
}
