//! Task of a session. It sends the session's events to the client and runs the prompts one after the other.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_agent::{
    EventKind, Outcome, OutcomeStatus, RunError, Session, SessionEvent, SessionId, SessionState, UserMessage,
};
use pintle_llm::{ImageData, error_chain};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::client::{Client, TerminalQuestion};
use crate::error::HostError;
use crate::history::{self, KnownCalls};
use crate::host::CommandResult;
use crate::permission::{self, PendingPermission};
use crate::requests::ClientRequests;
use crate::rpc::{RequestId, RpcError};
use crate::session_entry::{
    CurrentPrompt, OpenSessionKind, OpenSessionRequest, PromptInput, SessionEntry, session_ended,
};
use crate::settings::SessionSettings;
use crate::stop;
use crate::updates::UpdateMapper;
use crate::wire::{
    AvailableCommand, ContentBlock, OpenSessionResult, SessionCost, SessionUpdate, StopReason,
    config_options, modes,
};

/// Interval at which a queued prompt checks for the end of a turn that another client started.
const BUSY_INTERVAL: Duration = Duration::from_millis(50);

/// Future of the current prompt.
type PromptFuture = Pin<Box<dyn Future<Output = PromptResult> + Send>>;

/// Result of the current prompt.
enum PromptResult {
    Run(Box<Result<Outcome, RunError>>),
    /// `None` if the command was cancelled.
    Command(Option<Result<CommandResult, HostError>>),
}

pub(crate) struct SessionTask {
    session: Session,
    entry: Arc<SessionEntry>,
    client: Client,
    requests: ClientRequests,
    mapper: UpdateMapper,
    work: Option<PromptFuture>,
    permissions: JoinSet<()>,
    asked: HashMap<(SessionId, String), AbortHandle>,
    /// Settings that the client knows.
    settings: SessionSettings,
    /// Sequence number of the first event that does not come from the record.
    first_new: u64,
    /// Whether events are new. Until then, they come from the record.
    is_live: bool,
    remarks: u64,
}

impl SessionTask {
    pub(crate) fn new(
        session: Session,
        entry: Arc<SessionEntry>,
        client: Client,
        requests: ClientRequests,
    ) -> Self {
        let mapper = UpdateMapper::new(session.id().clone(), entry.directory.clone(), client.features());
        let (settings, first_new) = (entry.controls.settings(), session.first_new_event());
        Self {
            session,
            entry,
            client,
            requests,
            mapper,
            work: None,
            permissions: JoinSet::new(),
            asked: HashMap::new(),
            settings,
            first_new,
            is_live: first_new == 0,
            remarks: 0,
        }
    }

    pub(crate) fn entry(&self) -> Arc<SessionEntry> {
        Arc::clone(&self.entry)
    }

    /// Runs until the session is closed.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut terminals = self.client.announce(&self.entry.id);
        self.drive(&mut terminals).await;
        self.permissions.shutdown().await;
        self.client.forget(&self.entry.id);
        let Self { session, entry, requests, .. } = *self;
        for request in entry.refuse_requests() {
            requests.answer(&request, Err::<(), _>(session_ended(&entry.id))).await;
        }
        entry.controls.close(session).await;
        entry.closed.cancel();
    }

    async fn drive(&mut self, terminals: &mut mpsc::UnboundedReceiver<TerminalQuestion>) {
        let mut events = self.session.tree_events();
        let entry = Arc::clone(&self.entry);
        self.run_chores().await;
        while !entry.is_settled() {
            // The order matters: all events of a run are in the log before its outcome is known.
            tokio::select! {
                biased;
                () = entry.wait_for_work() => self.run_chores().await,
                event = events.next() => match event {
                    Some(event) => self.event(&event).await,
                    // The session has failed, or was closed elsewhere. Its run has an outcome.
                    None => {
                        if self.work.is_some() {
                            let done = wait(&mut self.work).await;
                            self.finish_prompt(done).await;
                        }
                        return;
                    }
                },
                Some(question) = terminals.recv() => self.terminal(question).await,
                Some(_ended) = self.permissions.join_next() => {}
                done = wait(&mut self.work) => self.finish_prompt(done).await,
                () = tokio::time::sleep(BUSY_INTERVAL), if entry.has_waiting_prompts() => {
                    if self.session.state() == SessionState::Closed {
                        return;
                    }
                    self.start_next_prompt();
                }
            }
        }
    }

    /// Starts the next prompt and handles the other requests.
    async fn run_chores(&mut self) {
        self.start_next_prompt();
        let chores = self.entry.take_chores();
        for request in chores.cancelled {
            self.answer(&request, Ok(StopReason::Cancelled)).await;
        }
        for opening in chores.openings {
            self.open(opening).await;
        }
        for _ in 0..chores.waiting {
            self.remark("info", "The prompt waits until the present turn has ended.").await;
        }
        if chores.settings_changed {
            self.announce_settings().await;
        }
    }

    async fn open(&mut self, OpenSessionRequest { request, kind }: OpenSessionRequest) {
        if kind == OpenSessionKind::Load {
            for update in self.history() {
                self.update(&update).await;
            }
        }
        let settings = self.entry.controls.settings();
        let opened = OpenSessionResult {
            session_id: (kind == OpenSessionKind::New).then(|| self.entry.id.clone()),
            modes: settings.modes.as_ref().map(modes),
            config_options: config_options(&settings.options, self.client.features().switches),
        };
        self.requests.answer(&request, Ok(opened)).await;
        if !settings.commands.is_empty() {
            self.update(&commands(&settings)).await;
        }
        if let Some(title) = settings.title.clone() {
            self.update(&SessionUpdate::SessionInfoUpdate { title }).await;
        }
        self.settings = settings;
    }

    /// Returns the conversation history as updates.
    fn history(&self) -> Vec<SessionUpdate> {
        let mut known = KnownCalls::default();
        let mut events = self.session.events();
        // The events of the record, and the events logged since.
        while let Some(Some(event)) = events.next().now_or_never() {
            known.add(&event);
        }
        history::updates(&self.session.history(), &known, &self.entry.directory)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "few kinds of events need more than an update")]
    async fn event(&mut self, event: &SessionEvent) {
        self.entry.controls.observe(event);
        self.is_live |= event.depth == 0 && event.seq >= self.first_new;
        if !self.is_live {
            return;
        }
        if let Some(window) = self.entry.controls.context_window() {
            self.mapper.set_window(window);
        }
        for mut update in self.mapper.map(event) {
            if let SessionUpdate::UsageUpdate { cost, .. } = &mut update {
                *cost = self.entry.controls.cost().map(SessionCost::from_money);
            }
            self.update(&update).await;
        }
        match &event.kind {
            // The first input may have become the title.
            EventKind::UserInput { .. } if event.depth == 0 => self.announce_settings().await,
            EventKind::ApprovalRequested { .. } => self.ask(event),
            EventKind::ApprovalDecided { call_id, .. } => {
                if let Some(asking) = self.asked.remove(&(event.session_id.clone(), call_id.clone())) {
                    asking.abort();
                }
            }
            EventKind::PolicyChanged(_) => self.announce_settings().await,
            _ => {}
        }
    }

    fn ask(&mut self, event: &SessionEvent) {
        let EventKind::ApprovalRequested { call_id, call_kind, fingerprint, .. } = &event.kind else {
            return;
        };
        let session = &event.session_id;
        let handle = if session == self.session.id() {
            Some(self.entry.handle.clone())
        } else {
            self.entry.handle.of_session(session)
        };
        let Some(handle) = handle else { return };
        let asked = PendingPermission {
            call_id: call_id.clone(),
            fingerprint: *fingerprint,
            kind: *call_kind,
            shown_as: self.mapper.call_id(session, call_id),
            handle,
        };
        let asking = permission::ask(self.client.clone(), Arc::clone(&self.entry), asked);
        let handle = self.permissions.spawn(asking);
        self.asked.insert((session.clone(), call_id.clone()), handle);
    }

    async fn terminal(&mut self, question: TerminalQuestion) {
        let TerminalQuestion { command, terminal, answer } = question;
        let runs_for_call = match terminal {
            None => self.mapper.runs(&command),
            Some(terminal) => match self.mapper.terminal(&terminal, &command) {
                Some(update) => {
                    self.update(&update).await;
                    true
                }
                None => false,
            },
        };
        // The request may have been cancelled.
        let _ = answer.send(runs_for_call);
    }

    /// Starts the next prompt, unless a turn is in progress or the session has ended.
    fn start_next_prompt(&mut self) {
        // Another client may have started a turn. Prompts of a session that has ended are answered when its task ends.
        let is_resting = matches!(self.session.state(), SessionState::Idle | SessionState::AwaitingInput);
        if self.work.is_some() || !is_resting {
            return;
        }
        let (session, mapper, entry) = (&self.session, &mut self.mapper, &self.entry);
        self.work = entry.start_next(|input, current| match input {
            PromptInput::Message(message) => submit(session, mapper, message),
            PromptInput::Command { name, input, images } => command(entry, current, name, input, images),
        });
    }

    async fn finish_prompt(&mut self, done: PromptResult) {
        self.work = None;
        let reason = match done {
            PromptResult::Run(outcome) => self.outcome(*outcome).await,
            PromptResult::Command(None) => Ok(StopReason::Cancelled),
            PromptResult::Command(Some(Err(error))) => Err(error.to_rpc()),
            PromptResult::Command(Some(Ok(CommandResult::Text(text)))) => {
                self.announce_settings().await;
                self.say(&text).await;
                Ok(StopReason::EndTurn)
            }
            PromptResult::Command(Some(Ok(CommandResult::Prompt(message)))) => {
                let (session, mapper) = (&self.session, &mut self.mapper);
                self.work = self.entry.continue_current(|| submit(session, mapper, message));
                if self.work.is_some() {
                    return;
                }
                Ok(StopReason::Cancelled)
            }
        };
        self.end(reason).await;
    }

    async fn outcome(&mut self, outcome: Result<Outcome, RunError>) -> Result<StopReason, RpcError> {
        match outcome.or_else(RunError::into_outcome) {
            Ok(outcome) => {
                // A tool's question is not part of the model's text.
                if outcome.status == OutcomeStatus::AwaitingInput {
                    self.say(&outcome.text).await;
                }
                self.explain_end(&outcome).await;
                stop::reason(&outcome)
            }
            Err(RunError::Closed { .. }) => Err(session_ended(&self.entry.id)),
            Err(error) => Err(RpcError::new(RpcError::INTERNAL, error_chain(&error))),
        }
    }

    /// Sends the warning of an incomplete result and the error of a full context. A stop reason has no text for them.
    async fn explain_end(&mut self, outcome: &Outcome) {
        // A client with notices already has the warning from its event.
        let warning = outcome.warning.as_deref().filter(|_| !self.client.features().notices);
        let is_limit = outcome.status == OutcomeStatus::ContextFull;
        let error = outcome.error.as_ref().filter(|_| is_limit).map(|error| error.message.as_str());
        for text in [warning, error].into_iter().flatten() {
            self.remark("warning", text).await;
        }
    }

    /// Answers the current prompt and starts the next one.
    async fn end(&mut self, reason: Result<StopReason, RpcError>) {
        self.mapper.settle();
        if let Some(CurrentPrompt { request, cancel }) = self.entry.end() {
            // A cancelled prompt always ends as cancelled, whatever its result.
            let reason = if cancel.is_cancelled() { Ok(StopReason::Cancelled) } else { reason };
            self.answer(&request, reason).await;
        }
        self.run_chores().await;
    }

    async fn answer(&mut self, request: &RequestId, reason: Result<StopReason, RpcError>) {
        let result = reason.map(|reason| serde_json::json!({"stopReason": reason}));
        self.requests.answer(request, result).await;
    }

    /// Sends the changed settings to the client.
    async fn announce_settings(&mut self) {
        let settings = self.entry.controls.settings();
        let before = std::mem::replace(&mut self.settings, settings);
        let current = |settings: &SessionSettings| settings.modes.as_ref().map(|modes| modes.current.clone());
        if let Some(mode) = current(&self.settings).filter(|mode| current(&before).as_ref() != Some(mode)) {
            self.update(&SessionUpdate::CurrentModeUpdate { current_mode_id: mode }).await;
        }
        if self.settings.options != before.options {
            let config_options = config_options(&self.settings.options, self.client.features().switches);
            self.update(&SessionUpdate::ConfigOptionUpdate { config_options }).await;
        }
        if self.settings.commands != before.commands {
            self.update(&commands(&self.settings)).await;
        }
        let title = self.settings.title.clone().filter(|title| before.title.as_ref() != Some(title));
        if let Some(title) = title {
            self.update(&SessionUpdate::SessionInfoUpdate { title }).await;
        }
    }

    /// Sends a text that the session has not streamed.
    async fn say(&mut self, text: &str) {
        self.remarks += 1;
        let message_id = format!("s{}", self.remarks);
        let content = ContentBlock::text(text);
        self.update(&SessionUpdate::AgentMessageChunk { content, message_id }).await;
    }

    async fn remark(&mut self, severity: &'static str, text: &str) {
        self.remarks += 1;
        let update = self.mapper.remark(severity, text, &format!("s{}", self.remarks));
        self.update(&update).await;
    }

    async fn update(&mut self, update: &SessionUpdate) {
        // If the client is gone, the connection closes the session.
        let _ = self.client.update(&self.entry.id, update).await;
    }
}

async fn wait(work: &mut Option<PromptFuture>) -> PromptResult {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn submit(session: &Session, mapper: &mut UpdateMapper, message: UserMessage) -> PromptFuture {
    mapper.expect_input();
    let run = session.submit(message);
    Box::pin(async move { PromptResult::Run(Box::new(run.outcome().await)) })
}

fn command(
    entry: &Arc<SessionEntry>,
    current: &CurrentPrompt,
    name: String,
    input: String,
    images: Vec<ImageData>,
) -> PromptFuture {
    let (entry, cancel) = (Arc::clone(entry), current.cancel.clone());
    Box::pin(async move {
        tokio::select! {
            biased;
            () = cancel.cancelled() => PromptResult::Command(None),
            result = entry.controls.run_command(&name, &input, &entry.handle) => {
                PromptResult::Command(Some(result.map(|result| match result {
                    CommandResult::Prompt(message) => {
                        CommandResult::Prompt(images.into_iter().fold(message, UserMessage::with_image))
                    }
                    said @ CommandResult::Text(_) => said,
                })))
            }
        }
    })
}

fn commands(settings: &SessionSettings) -> SessionUpdate {
    let command = |command: &crate::settings::SlashCommand| AvailableCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        input: command.input.as_ref().map(|hint| serde_json::json!({"hint": hint})),
    };
    SessionUpdate::AvailableCommandsUpdate {
        available_commands: settings.commands.iter().map(command).collect(),
    }
}
