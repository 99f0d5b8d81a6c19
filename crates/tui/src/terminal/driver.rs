//! Drives a conversation over a port: handles input from the terminal and the session, draws, and carries out the user's
//! requests.

mod commands;
mod images;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use pintle_agent::{EventKind, SessionEvent};
use pintle_host::boxed_future::box_future;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_llm::ImageData;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::attention::Attention;
use super::conversation::{Conversation, Effect};
use super::conversation_end::ConversationEnd;
use super::device::{Device, DeviceInput};
use super::display::{Display, TypedInput};
use super::history_file::HistoryFile;
use super::history_lines::render_history;
use super::images::OutgoingMessage;
use super::keys::Input;
use super::memory::MemoryFile;
use super::painter::Screen;
use super::port::{Operation, PortCommand, PortEvent, PortReply, PortResult, SessionPort};
use crate::interrupt::Interrupts;

/// Maximum number of events handled before keys are checked again.
const EVENTS_AT_ONCE: usize = 256;

/// How long a turn may take to end, or messages may take to be sent, after the user has left.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// Label of notices about the connection to the session.
const CONNECTION: &str = "server";

/// Result of an asynchronous operation.
enum BackgroundResult {
    /// The session has replied to a command.
    Replied { request: Request, result: PortResult },
    /// The image on the clipboard, or the reason why it is unavailable.
    Pasted(Result<ImageData, String>),
}

/// Purpose of a command to the session.
#[derive(Debug)]
enum Request {
    /// Send this text.
    Message(String),
    /// Send the prompt that this line names.
    Prompt(String),
    Decision,
    Interrupt,
    /// Switch to a session that has to be found first.
    Find,
    Other,
}

/// Driver of one conversation.
pub(super) struct Driver<'a> {
    port: Box<dyn SessionPort + 'a>,
    display: Display,
    /// File of the input history, if it is kept.
    history: Option<HistoryFile>,
    process_env: &'a ProcessEnv,
    pending: FuturesUnordered<BoxFuture<'a, BackgroundResult>>,
    /// Whether another session is being looked up. Input typed meanwhile is for that session.
    is_finding: bool,
    /// Successor of the conversation, once the user has left.
    next: Option<ConversationEnd>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        port: Box<dyn SessionPort + 'a>,
        conversation: Conversation,
        screen: Screen,
        attention: Attention,
        history: Option<HistoryFile>,
        process_env: &'a ProcessEnv,
    ) -> Self {
        Self {
            port,
            display: Display::new(conversation, screen, attention),
            history,
            process_env,
            pending: FuturesUnordered::new(),
            is_finding: false,
            next: None,
        }
    }

    /// Returns the port. Operations that have not ended are dropped.
    pub(super) fn into_port(self) -> Box<dyn SessionPort + 'a> {
        self.port
    }

    /// Runs the conversation until the user leaves, switches to another session, or the session can no longer be used.
    pub(super) async fn run(
        &mut self,
        device: &mut Device,
        prompt: Option<String>,
        interrupts: &Interrupts,
    ) -> Result<ConversationEnd, Failure> {
        // Outside plain mode, keys arrive as bytes, including Ctrl+C.
        let mut signals = self.display.conversation.is_plain().then(|| interrupts.take_over());
        self.display.ask().await?;
        let mut resized = signal(SignalKind::window_change()).or_failed("cannot watch the window")?;
        self.begin_conversation(prompt);
        // Show the user where to type before anything else happens.
        self.display.draw().await?;
        {
            // Signals take effect even while the terminal accepts no output.
            let conversing = box_future(|| self.converse(device, &mut signals, &mut resized));
            tokio::select! {
                biased;
                () = interrupts.first_signal() => {}
                ended = conversing => ended?,
            }
        }
        // From now on, another signal ends the process.
        drop(signals);
        let next = self.next.get_or_insert(ConversationEnd::Leave).clone();
        self.leave(interrupts).await?;
        Ok(next)
    }

    /// Sends the first message, and looks for commands that are not built in.
    fn begin_conversation(&mut self, prompt: Option<String>) {
        self.refresh();
        if let Some(prompt) = prompt {
            let said = self.display.conversation.compose_message(&prompt);
            self.submit(said);
        }
        if self.supports(Operation::UserCommands) {
            self.request(Request::Other, PortCommand::FindUserCommands);
        }
        if self.supports(Operation::ServerPrompts) {
            self.request(Request::Other, PortCommand::ListPrompts);
        }
    }

    async fn converse(
        &mut self,
        device: &mut Device,
        signals: &mut Option<mpsc::UnboundedReceiver<()>>,
        resized: &mut Signal,
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
                    Some(DeviceInput::Bytes(piece)) => self.typed(&piece, device).await?,
                    Some(DeviceInput::Stop) => self.display.stop(device).await?,
                    Some(DeviceInput::Continued(at)) => self.display.continued(at).await?,
                    None => break,
                },
                () = sleep_until(self.display.escape_at()) => {
                    let inputs = self.display.flush_keys();
                    self.take_inputs(inputs, device).await?;
                },
                () = sleep_until(self.display.paste_hint_at()) => self.display.hint_at_paste(),
                _ = resized.recv() => self.display.resize().await?,
                () = sleep_until(self.display.next_drawing()) => self.display.draw().await?,
                Some(result) = self.pending.next(), if !self.pending.is_empty() => self.finished(result),
                event = self.port.next() => match event {
                    Some(event) => {
                        self.received(event);
                        for _ in 1..EVENTS_AT_ONCE {
                            let Some(Some(event)) = self.port.next().now_or_never() else { break };
                            self.received(event);
                        }
                    }
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Interrupts a running turn or compaction of a session that ends with the conversation, and erases the region.
    async fn leave(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        self.display.close_pager().await?;
        if self.port.capabilities().outlives_terminal {
            // Deliver an entered message even if the user leaves immediately.
            let sending = async { while self.pending.next().await.is_some() {} };
            let _ = tokio::time::timeout(LEAVE_TIME, sending).await;
        } else if self.port.state().is_processing && self.port.command(PortCommand::Interrupt).await.is_ok() {
            // Unfinished calls are answered when the session is resumed.
            let _ = tokio::time::timeout(LEAVE_TIME, self.wait_for_end()).await;
        }
        self.display.finish(interrupts).await
    }

    /// Waits until the turn or a compaction between turns has ended.
    async fn wait_for_end(&mut self) {
        let is_between_turns = self.display.conversation.is_compacting_between_turns();
        while let Some(event) = self.port.next().await {
            let has_turn_ended = matches!(&event, PortEvent::Session(event) if ends_turn(event));
            self.received(event);
            let has_compaction_ended =
                is_between_turns && !self.display.conversation.is_compacting_between_turns();
            if has_turn_ended || has_compaction_ended {
                break;
            }
        }
    }

    async fn typed(&mut self, piece: &[u8], device: &mut Device) -> Result<(), Failure> {
        match self.display.typed(piece) {
            TypedInput::Lines(lines) => self.take_lines(lines, device).await,
            TypedInput::Inputs(inputs) => self.take_inputs(inputs, device).await,
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
            Effect::Say(said) => self.submit(said),
            Effect::FollowUp(said) => {
                self.request(Request::Message(said.text.clone()), PortCommand::FollowUp(said));
            }
            Effect::TakeDropped { paths, paste } => self.take_dropped(&paths, &paste).await,
            Effect::TakeClipboard => self.take_clipboard(),
            Effect::Interrupt => self.request(Request::Interrupt, PortCommand::Interrupt),
            Effect::Decide(decided) => self.request(Request::Decision, PortCommand::Decide(decided)),
            Effect::Call(called) => self.call(&called),
            Effect::CallPrompt(called) => {
                self.display.hint(format!("asking server {}", called.server));
                self.request(Request::Prompt(called.written.clone()), PortCommand::GetPrompt(called));
            }
            Effect::Remember(text) => self.remember(&text),
            Effect::Run(command) => self.run_shell(command),
            Effect::Memorize(file, line) => self.add_instruction(file, line),
            Effect::Edit(text) => self.display.edit(&text, self.process_env, device).await?,
            Effect::ListFiles if self.supports(Operation::Files) => {
                self.request(Request::Other, PortCommand::ListFiles);
            }
            Effect::ListFiles => self.display.conversation.set_files(Vec::new()),
            Effect::Stop => self.display.stop(device).await?,
            Effect::Redraw => self.display.clear().await?,
            Effect::Look => self.look().await?,
            Effect::Leave => self.next = Some(ConversationEnd::Leave),
        }
        Ok(())
    }

    /// Shows the whole conversation in the pager.
    async fn look(&mut self) -> Result<(), Failure> {
        if self.refuses(Operation::History, "looking through the conversation") {
            return Ok(());
        }
        match self.port.command(PortCommand::ReadHistory).await {
            Ok(PortReply::History(history)) => {
                self.display.look(|columns| render_history(&history, columns)).await
            }
            Ok(_) => Ok(()),
            Err(problem) => {
                self.display.hint(problem);
                Ok(())
            }
        }
    }

    /// Sends a message to a running turn, or starts a turn with it.
    fn submit(&mut self, said: OutgoingMessage) {
        self.request(Request::Message(said.text.clone()), PortCommand::Submit(said));
    }

    fn run_shell(&mut self, command: String) {
        if self.refuses(Operation::Shell, "running commands") {
            return self.display.conversation.restore(&format!("!{command}"));
        }
        self.display.hint(format!("running {command}"));
        self.request(Request::Other, PortCommand::RunShell(command));
    }

    fn add_instruction(&mut self, file: MemoryFile, line: String) {
        if self.refuses(Operation::Instructions, "adding to instructions") {
            return self.display.conversation.restore(&format!("# {line}"));
        }
        self.request(Request::Other, PortCommand::AddInstruction(file, line));
    }

    /// Keeps an input for other conversations in the directory.
    fn remember(&mut self, text: &str) {
        let Some(history) = &self.history else { return };
        if let Err(failure) = history.append(text) {
            self.display.conversation.note("history", &failure.message());
            // Report the failure only once.
            self.history = None;
        }
    }

    fn supports(&self, operation: Operation) -> bool {
        self.port.capabilities().supports(operation)
    }

    /// Returns whether an operation is not supported, and reports that under this name.
    fn refuses(&mut self, operation: Operation, name: &str) -> bool {
        let is_refused = !self.supports(operation);
        if is_refused {
            self.display.hint(self.port.capabilities().refusal(name));
            self.display.draw_soon();
        }
        is_refused
    }

    /// Sends a command to the session.
    fn request(&mut self, request: Request, command: PortCommand) {
        let reply = self.port.command(command);
        self.run_in_background(async move { BackgroundResult::Replied { request, result: reply.await } });
    }

    /// Runs an operation. One that does not have to wait takes effect before the next input.
    fn run_in_background(&mut self, operation: impl Future<Output = BackgroundResult> + Send + 'a) {
        let mut operation: BoxFuture<'a, BackgroundResult> = Box::pin(operation);
        match (&mut operation).now_or_never() {
            Some(result) => self.finished(result),
            None => self.pending.push(operation),
        }
    }

    fn finished(&mut self, result: BackgroundResult) {
        match result {
            BackgroundResult::Pasted(Ok(image)) => self.display.conversation.attach(None, image),
            BackgroundResult::Pasted(Err(problem)) => self.display.hint(problem),
            BackgroundResult::Replied { request, result } => {
                if matches!(request, Request::Find) {
                    self.is_finding = false;
                }
                match result {
                    Ok(reply) => self.replied(reply),
                    Err(problem) => self.rejected(request, problem),
                }
            }
        }
        self.refresh();
        self.display.draw_soon();
    }

    /// Handles the reply to a command that was carried out.
    fn replied(&mut self, reply: PortReply) {
        let conversation = &mut self.display.conversation;
        match reply {
            PortReply::Done => {}
            PortReply::Sent { left_out } => {
                for problem in left_out {
                    conversation.note("image", &problem);
                }
            }
            PortReply::ModelSet { window, lines } => {
                if let (Some((_, known)), Some(window)) = (&mut conversation.status.context, window) {
                    *known = window;
                }
                conversation.answer(lines);
            }
            PortReply::Lines(lines) => conversation.answer(lines),
            PortReply::Ran { command, ended, output, report } => {
                conversation.ran(&command, &ended, &output);
                for line in report.iter().flat_map(|report| report.lines()) {
                    conversation.note("pintle", line);
                }
            }
            PortReply::Files(files) => conversation.set_files(files),
            PortReply::UserCommands(commands) => conversation.set_user_commands(commands),
            PortReply::Prompts(prompts) => conversation.set_prompts(prompts),
            PortReply::Prompt(prompt) => {
                let said = conversation.message_from_prompt(prompt);
                self.submit(said);
            }
            PortReply::History(history) => self.copy(&history),
            PortReply::Next(next) => self.switch_to(next),
        }
    }

    /// Handles the reason why a command was not carried out.
    fn rejected(&mut self, request: Request, problem: String) {
        match request {
            Request::Message(text) => {
                self.display.conversation.restore(&text);
                self.display.hint(format!("not sent: {problem}"));
            }
            Request::Prompt(written) => {
                self.display.conversation.restore(&written);
                self.display.conversation.note("prompt", &problem);
            }
            Request::Decision => self.display.conversation.note("approval", &problem),
            Request::Interrupt => self.display.hint(format!("not interrupted: {problem}")),
            Request::Find | Request::Other => self.display.hint(problem),
        }
    }

    /// Switches to another session, unless a turn is running.
    fn switch_to(&mut self, next: ConversationEnd) {
        if self.port.state().is_processing {
            return self.display.hint("a turn is running: interrupt it first, with Esc");
        }
        self.next = Some(next);
    }

    fn received(&mut self, event: PortEvent) {
        let now = self.display.elapsed();
        let conversation = &mut self.display.conversation;
        match event {
            PortEvent::Session(event) => self.event(&event),
            PortEvent::Earlier(event) => return conversation.earlier_event(&event, now),
            PortEvent::Failed(reason) => conversation.failed(&reason),
            PortEvent::Note { label, text } => conversation.note(label, &text),
            PortEvent::Question(question) => conversation.ask_also(question),
            PortEvent::State => self.refresh(),
            PortEvent::Away(problem) => {
                conversation.note(CONNECTION, &format!("disconnected, and connecting again: {problem}"));
            }
            PortEvent::Back => conversation.note(CONNECTION, "connected again"),
            PortEvent::Reset(reason) => {
                conversation.reset_transcript();
                let text = format!("the conversation follows from its beginning: {reason}");
                conversation.note(CONNECTION, &text);
            }
        }
        self.display.draw_soon();
    }

    /// Processes a new event of the session or of a subagent.
    fn event(&mut self, event: &SessionEvent) {
        self.display.conversation.event(event, self.display.elapsed());
        if ends_turn(event) && self.next.is_none() && self.supports(Operation::ServerPrompts) {
            self.request(Request::Other, PortCommand::RefreshServers);
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
    }

    /// Updates the state that no event reports.
    fn refresh(&mut self) {
        let state = self.port.state();
        let conversation = &mut self.display.conversation;
        conversation.set_approvals(state.approvals);
        conversation.forget_withdrawn();
        conversation.set_queued(state.queued);
        let status = &mut conversation.status;
        status.cost = state.cost;
        (status.model, status.effort, status.mode) = (state.model, state.effort, state.mode);
    }
}

/// Returns whether an event ends a turn of the session.
fn ends_turn(event: &SessionEvent) -> bool {
    event.depth == 0 && matches!(event.kind, EventKind::ProcessingEnd { .. })
}

/// Waits for Ctrl+C, if it arrives as a signal.
async fn interrupted(signals: &mut Option<mpsc::UnboundedReceiver<()>>) {
    match signals {
        // The sender lives as long as the receiver is in use.
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

/// Waits until a time, or forever.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
