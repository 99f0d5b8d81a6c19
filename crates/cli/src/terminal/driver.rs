//! Drives a conversation: handles input from the terminal and the session, draws, and carries out the user's requests.

mod called;
mod outbox;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use pintle_agent::{EventKind, Run, Session, SessionError, SessionEvent, SessionHandle, SessionState};
use pintle_env::{EntryKind, ExecRequest, ExecutionEnvironment, OutputLimits, WalkRequest};
use pintle_governance::{APPROVAL_SOURCE, Policy};
use pintle_llm::{ImageData, ToolList};
use pintle_tools::gate::Permission;
use pintle_tools::pipeline::plain_text;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::outbox::Outbox;
use super::approvals::Decided;
use super::attention::Attention;
use super::conversation::{Conversation, Effect};
use super::device::{Device, Sent};
use super::display::{Display, Typed};
use super::history_file::HistoryFile;
use super::keys::Input;
use super::memory::{self, MemoryFile};
use super::next::Next;
use super::painter::Screen;
use super::user_commands::UserCommand;
use super::whole::whole;
use crate::approve::Question;
use crate::args::ConversationArgs;
use crate::cost::Costs;
use crate::explain;
use crate::failure::{Failure, OrFailure as _};
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::process_env::ProcessEnv;
use crate::prompt_commands::PromptText;
use crate::render::{Face, Line, sanitize};
use crate::servers::SessionServers;
use crate::session_commands::conversed::Conversed;

/// Maximum number of events handled before keys are checked again.
const EVENTS_AT_ONCE: usize = 256;

/// Maximum number of files offered for completion.
const MAX_FILES: usize = 20_000;

/// Time limit of a command of the user.
const COMMAND_TIME: Duration = Duration::from_secs(600);

/// Maximum size of its output that is kept, in bytes from the end.
const COMMAND_OUTPUT: usize = 32 << 10;

/// Time limit for listing files.
const LIST_TIME: Duration = Duration::from_secs(2);

/// How long a turn may take to end after the user has left.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// Resources of a conversation besides its session.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) model: &'a Model,
    pub(crate) policy: &'a Policy,
    /// Working directory of the tools.
    pub(crate) directory: &'a Path,
    /// Environment and sandbox, as shown to the user.
    pub(crate) environment: String,
    /// Environment of the tools.
    pub(crate) tools: Arc<dyn ExecutionEnvironment>,
    /// Tools that are offered to the model.
    pub(crate) offered: ToolList,
    /// The session in the store, if it is kept.
    pub(crate) conversed: Option<Conversed>,
    /// MCP servers.
    pub(crate) servers: SessionServers,
    pub(crate) process_env: &'a ProcessEnv,
    /// File of the input history, if it is kept.
    pub(crate) history: Option<HistoryFile>,
    pub(crate) flags: &'a ConversationArgs,
    /// Whether commands run in a sandbox.
    pub(crate) has_sandbox: bool,
    /// Notices of other parts of the process.
    pub(crate) notices: mpsc::UnboundedReceiver<String>,
    /// Questions that belong to no call.
    pub(crate) questions: mpsc::UnboundedReceiver<Question>,
}

/// Result of an asynchronous operation.
enum Done {
    /// A message was accepted or rejected, and these images were not sent with it.
    Sent { text: String, result: Result<(), SessionError>, left_out: Vec<String> },
    /// The image on the clipboard, or the reason why it is unavailable.
    Pasted(Result<ImageData, String>),
    /// A decision was accepted, or the reason why not.
    Decided(Result<(), String>),
    /// A command of the user has ended, with this status and output.
    Ran { command: String, ended: String, output: String },
    /// The files for completion.
    Listed(Vec<String>),
    /// The commands of the user.
    Commands(Vec<UserCommand>),
    /// A command was carried out, or the reason why not.
    Called(Result<Vec<Line>, String>),
    /// A server returned its prompt, or the reason why not.
    Prompted { written: String, result: Result<PromptText, String> },
    /// Another session was found, or the reason why not.
    Found(Result<Next, String>),
    /// The tools of MCP servers were refreshed.
    Refreshed,
}

type Doing<'a> = Pin<Box<dyn Future<Output = Done> + Send + 'a>>;

/// Driver of one conversation.
pub(super) struct Driver<'a> {
    session: &'a Session,
    handle: SessionHandle,
    outbox: Outbox,
    surroundings: Surroundings<'a>,
    display: Display,
    doing: FuturesUnordered<Doing<'a>>,
    cost: Costs,
    /// Whether the events of the record have been read, so that events of the session are new.
    is_caught_up: bool,
    /// Whether another session is being looked up. Input typed meanwhile is for that session.
    is_finding: bool,
    /// Successor of the conversation, once the user has left.
    next: Option<Next>,
    /// Newest failure of the session.
    failure: Option<Failure>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        session: &'a Session,
        surroundings: Surroundings<'a>,
        conversation: Conversation,
        screen: Screen,
        attention: Attention,
    ) -> Self {
        let model = surroundings.model;
        Self {
            session,
            handle: session.handle(),
            outbox: Outbox::new(session.handle(), Arc::clone(&surroundings.tools)),
            display: Display::new(conversation, screen, attention),
            doing: FuturesUnordered::new(),
            cost: Costs::new(model.catalog_entry()),
            surroundings,
            is_caught_up: session.first_new_event() == 0,
            is_finding: false,
            next: None,
            failure: None,
        }
    }

    /// Runs the conversation until the user leaves or switches to another session.
    pub(super) async fn run(
        &mut self,
        device: &mut Device,
        prompt: Option<String>,
        unfinished: Option<Run>,
        interrupts: &Interrupts,
    ) -> Result<Next, Failure> {
        // Outside plain mode, keys arrive as bytes, including Ctrl+C.
        let mut signals = self.display.conversation.is_plain().then(|| interrupts.take_over());
        self.display.ask().await?;
        let mut resized = signal(SignalKind::window_change()).or_failed("cannot watch the window")?;
        let mut events = self.session.tree_events();
        // Events report its result.
        if let Some(run) = unfinished {
            run.detach();
        }
        if let Some(prompt) = prompt {
            let said = self.display.conversation.said(&prompt);
            self.say(said);
        }
        self.find_user_commands();
        self.display.conversation.set_prompts(self.surroundings.servers.prompts());
        // Show the user where to type before anything else happens.
        self.display.draw().await?;
        {
            // Signals take effect even while the terminal accepts no output.
            let conversing = self.converse(device, &mut signals, &mut resized, &mut events);
            tokio::select! {
                biased;
                () = interrupts.first_signal() => {}
                ended = conversing => ended?,
            }
        }
        // From now on, another signal ends the process.
        drop(signals);
        self.leave(&mut events, interrupts).await?;
        // The failure has been shown.
        let failure = self.failure.take().filter(|_| self.session.state() == SessionState::Closed);
        let next = self.next.take().unwrap_or(Next::Leave);
        failure.map_or(Ok(next), |failure| Err(Failure::silent(failure.kind())))
    }

    async fn converse(
        &mut self,
        device: &mut Device,
        signals: &mut Option<mpsc::UnboundedReceiver<()>>,
        resized: &mut Signal,
        events: &mut pintle_agent::TreeEvents,
    ) -> Result<(), Failure> {
        while self.next.is_none() {
            let has_unread = !device.unread.is_empty() || !device.unread_lines.is_empty();
            if has_unread && !self.is_finding {
                let (unread, lines) =
                    (std::mem::take(&mut device.unread), std::mem::take(&mut device.unread_lines));
                self.take_lines(lines, device).await?;
                self.take_inputs(unread, device).await?;
                continue;
            }
            tokio::select! {
                biased;
                () = interrupted(signals) => {
                    let effects = self.display.interrupt_or_leave();
                    self.perform(effects, device).await?;
                    self.display.draw().await?;
                }
                piece = device.next() => match piece {
                    Some(Sent::Bytes(piece)) => self.typed(&piece, device).await?,
                    Some(Sent::Stop) => self.display.stop(device).await?,
                    Some(Sent::Continued(at)) => self.display.continued(at).await?,
                    None => break,
                },
                () = at(self.display.escape_at()) => {
                    let inputs = self.display.flush_keys();
                    self.take_inputs(inputs, device).await?;
                },
                () = at(self.display.paste_hint_at()) => self.display.hint_at_paste(),
                _ = resized.recv() => self.display.resize().await?,
                () = at(self.display.next_drawing()) => self.display.draw().await?,
                Some(done) = self.doing.next(), if !self.doing.is_empty() => self.done(done),
                Some(notice) = self.surroundings.notices.recv() => {
                    self.display.conversation.note("pintle", &notice);
                    self.display.draw_soon();
                }
                Some(question) = self.surroundings.questions.recv() => {
                    self.display.conversation.ask_also(question);
                    self.display.draw_soon();
                }
                event = events.next() => match event {
                    Some(event) => {
                        self.event(&event);
                        for _ in 1..EVENTS_AT_ONCE {
                            let Some(Some(event)) = events.next().now_or_never() else { break };
                            self.event(&event);
                        }
                    }
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Interrupts a running turn or compaction, and erases the region.
    async fn leave(
        &mut self,
        events: &mut pintle_agent::TreeEvents,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        self.display.close_pager().await?;
        if self.session.state() == SessionState::Processing && self.handle.interrupt().is_ok() {
            let is_between_turns = self.display.conversation.is_compacting_between_turns();
            let ended = async {
                while let Some(event) = events.next().await {
                    self.event(&event);
                    let has_turn_ended =
                        matches!(event.kind, EventKind::ProcessingEnd { .. }) && event.depth == 0;
                    let has_compaction_ended =
                        is_between_turns && !self.display.conversation.is_compacting_between_turns();
                    if has_turn_ended || has_compaction_ended {
                        break;
                    }
                }
            };
            // Unfinished calls are answered when the session is resumed.
            let _ = tokio::time::timeout(LEAVE_TIME, ended).await;
        }
        self.display.finish(interrupts).await
    }

    async fn typed(&mut self, piece: &[u8], device: &mut Device) -> Result<(), Failure> {
        match self.display.typed(piece) {
            Typed::Lines(lines) => self.take_lines(lines, device).await,
            Typed::Inputs(inputs) => self.take_inputs(inputs, device).await,
        }
    }

    async fn take_lines(&mut self, lines: Vec<String>, device: &mut Device) -> Result<(), Failure> {
        for line in lines {
            if self.next.is_some() || self.is_finding {
                device.unread_lines.push(line);
                continue;
            }
            let effects = self.display.line(&line);
            self.perform(effects, device).await?;
        }
        self.display.draw().await
    }

    async fn take_inputs(&mut self, inputs: Vec<Input>, device: &mut Device) -> Result<(), Failure> {
        for input in inputs {
            if self.next.is_some() || self.is_finding {
                device.unread.push(input);
                continue;
            }
            let effects = self.display.input(input).await?;
            self.perform(effects, device).await?;
        }
        self.display.draw().await
    }

    async fn perform(&mut self, effects: Vec<Effect>, device: &mut Device) -> Result<(), Failure> {
        for effect in effects {
            self.perform_one(effect, device).await?;
        }
        Ok(())
    }

    async fn perform_one(&mut self, effect: Effect, device: &mut Device) -> Result<(), Failure> {
        match effect {
            Effect::Say(said) => self.say(said),
            Effect::FollowUp(said) => self.follow_up(said),
            Effect::TakeDropped { paths, paste } => self.take_dropped(&paths, &paste).await,
            Effect::TakeClipboard => self.take_clipboard(),
            Effect::Interrupt => {
                // Fails only if the session has ended.
                let _ = self.handle.interrupt();
            }
            Effect::Decide(decided) => self.decide(decided),
            Effect::Call(called) => self.call(&called),
            Effect::CallPrompt(called) => self.call_prompt(called),
            Effect::Remember(text) => self.remember(&text),
            Effect::Run(command) => self.run_command(command),
            Effect::Memorize(file, line) => self.memorize(file, line),
            Effect::Edit(text) => self.display.edit(&text, self.surroundings.process_env, device).await?,
            Effect::ListFiles => {
                let environment = Arc::clone(&self.surroundings.tools);
                self.doing
                    .push(Box::pin(async move { Done::Listed(list_files(environment.as_ref()).await) }));
            }
            Effect::Stop => self.display.stop(device).await?,
            Effect::Redraw => self.display.clear().await?,
            Effect::Look => {
                let history = self.session.history();
                self.display.look(|columns| whole(&history, columns)).await?;
            }
            Effect::Leave => self.next = Some(Next::Leave),
        }
        Ok(())
    }

    /// Keeps an input for other conversations in the directory.
    fn remember(&mut self, text: &str) {
        let Some(history) = &self.surroundings.history else { return };
        if let Err(failure) = history.append(text) {
            self.display.conversation.note("history", &failure.message());
            // Report the failure only once.
            self.surroundings.history = None;
        }
    }

    /// Adds a line to a file of instructions.
    fn memorize(&mut self, file: MemoryFile, line: String) {
        let environment = Arc::clone(&self.surroundings.tools);
        let process_env = self.surroundings.process_env;
        self.doing.push(Box::pin(async move {
            let added = memory::add(file, &line, environment.as_ref(), process_env).await;
            let shown = |name: String| {
                Line::new("memory: ", Face::BOLD)
                    .and(format!("added to {}, for sessions to come", sanitize(&name)), Face::PLAIN)
            };
            Done::Called(added.map(|name| vec![shown(name)]))
        }));
    }

    /// Runs a command of the user in the environment of the tools.
    fn run_command(&mut self, command: String) {
        let environment = Arc::clone(&self.surroundings.tools);
        self.display.hint(format!("running {command}"));
        self.doing.push(Box::pin(async move {
            let request = ExecRequest::new(&command).with_timeout(COMMAND_TIME);
            let (ended, output) = match environment.exec_command(request).await {
                Ok(result) => {
                    let output = plain_text(result.output, OutputLimits::default()).await;
                    let output = output.tail_text_lossy(COMMAND_OUTPUT).unwrap_or_default();
                    let ended = match (result.timed_out, result.exit_code) {
                        (true, _) => "timed out".to_owned(),
                        (false, code) => format!("exit {code}"),
                    };
                    (ended, output)
                }
                Err(error) => ("failed".to_owned(), error.to_string()),
            };
            Done::Ran { command, ended, output }
        }));
    }

    fn decide(&mut self, decided: Decided) {
        let (handle, policy) = (self.handle.clone(), self.surroundings.policy.clone());
        self.doing.push(Box::pin(async move { Done::Decided(decide(&handle, &policy, decided).await) }));
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Decided(Ok(())) => {}
            Done::Sent { result: Ok(()), left_out, .. } => {
                for problem in left_out {
                    self.display.conversation.note("image", &problem);
                }
            }
            Done::Sent { text, result: Err(error), .. } => {
                self.display.conversation.restore(&text);
                self.display.hint(format!("not sent: {error}"));
            }
            Done::Pasted(Ok(image)) => self.display.conversation.attach(None, image),
            Done::Pasted(Err(problem)) => self.display.hint(problem),
            Done::Decided(Err(problem)) => self.display.conversation.note("approval", &problem),
            Done::Ran { command, ended, output } => self.display.conversation.ran(&command, &ended, &output),
            Done::Listed(files) => self.display.conversation.set_files(files),
            Done::Commands(commands) => self.display.conversation.set_user_commands(commands),
            Done::Refreshed => self.display.conversation.set_prompts(self.surroundings.servers.prompts()),
            Done::Prompted { result: Ok(prompt), .. } => {
                let said = self.display.conversation.said_by_prompt(prompt);
                self.say(said);
            }
            Done::Prompted { written, result: Err(problem) } => {
                self.display.conversation.restore(&written);
                self.display.conversation.note("prompt", &problem);
            }
            Done::Called(Ok(lines)) => self.display.conversation.answer(lines),
            Done::Found(found) => {
                self.is_finding = false;
                if let Err(problem) = found.and_then(|next| self.turn_to(next)) {
                    self.display.hint(problem);
                }
            }
            Done::Called(Err(problem)) => self.display.hint(problem),
        }
        self.refresh();
        self.display.draw_soon();
    }

    fn event(&mut self, event: &SessionEvent) {
        let model = self.surroundings.model;
        self.cost.add(event, model.find(&self.display.conversation.status.model), model.catalog());
        if event.depth == 0 {
            self.is_caught_up = event.seq >= self.session.first_new_event();
        }
        if !self.is_caught_up {
            self.display.conversation.earlier_event(event, self.display.elapsed());
            return;
        }
        if let EventKind::Error { error } = &event.kind
            && event.depth == 0
        {
            let failure = explain::model_error(error, &self.surroundings.model.route);
            self.display.conversation.failed(&failure.message());
            self.failure = Some(failure);
        }
        self.display.conversation.event(event, self.display.elapsed());
        if matches!(event.kind, EventKind::ProcessingEnd { .. }) && event.depth == 0 {
            let (servers, handle) = (self.surroundings.servers.clone(), self.handle.clone());
            self.doing.push(Box::pin(async move {
                servers.refresh(handle).await;
                Done::Refreshed
            }));
        }
        if event.depth == 0
            && let EventKind::ToolCallEnd { .. } | EventKind::ProcessingEnd { .. } = event.kind
        {
            // Shown events are in the history or in the record.
            self.session.forget_events(event.seq);
        }
        if matches!(
            event.kind,
            EventKind::ApprovalRequested { .. }
                | EventKind::ApprovalDecided { .. }
                | EventKind::ToolCallEnd { .. }
                | EventKind::ProcessingEnd { .. }
                | EventKind::SteeringInjected { .. }
                | EventKind::UserInput { .. }
                | EventKind::ModelResponse { .. }
        ) {
            self.refresh();
        }
        self.display.draw_soon();
    }

    /// Updates the state that no event reports.
    fn refresh(&mut self) {
        self.display.conversation.set_approvals(self.handle.approvals());
        self.display.conversation.forget_withdrawn();
        let queued = self.handle.queued();
        self.display.conversation.status.queued = queued.steering.len() + queued.follow_ups.len();
        self.display.conversation.status.cost = self.cost.total();
        self.display.conversation.status.mode = self.surroundings.policy.mode().to_string();
    }
}

/// Adds the rules of a decision, and decides.
async fn decide(handle: &SessionHandle, policy: &Policy, decided: Decided) -> Result<(), String> {
    let Decided { request, decision, rules } = decided;
    for rule in &rules {
        let source = format!("{APPROVAL_SOURCE}{}", request.call_id);
        let added = policy.add_rule(Permission::Allow, rule, source).await;
        added.map_err(|error| error.to_string())?;
    }
    let of_call = match &request.origin {
        Some(origin) => handle.of_session(&origin.session_id),
        None => Some(handle.clone()),
    };
    let of_call = of_call.ok_or("the subagent that made the call has ended")?;
    of_call.decide(&request.call_id, decision).map_err(|error| error.to_string())
}

/// Lists the files for completion, as far as they are found in a short time.
async fn list_files(environment: &dyn ExecutionEnvironment) -> Vec<String> {
    let request = WalkRequest::new(".").with_max_entries(MAX_FILES).with_time_limit(LIST_TIME);
    // If files cannot be listed, none are offered.
    let Ok(found) = environment.walk(&request).await else { return Vec::new() };
    let files = found.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    files.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect()
}

/// Waits for Ctrl+C, if it arrives as a signal.
pub(super) async fn interrupted(signals: &mut Option<mpsc::UnboundedReceiver<()>>) {
    match signals {
        // The sender lives as long as the receiver is in use.
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

/// Waits until a time, or forever.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
