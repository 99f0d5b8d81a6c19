//! Drives a conversation with a session of a server: handles input from the terminal and the server, draws, and sends the
//! requests of the user.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use pintle_agent::{EventKind, SessionEvent, SessionId, UserMessage};
use pintle_client::{
    Approval, Change, Changes, Client, ClientError, Disconnected, SessionEvents, SessionInfo, SessionItem,
};
use pintle_llm::{ImageData, error_chain};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, mpsc};

use super::approvals;
use super::outbox::Outbox;
use super::texts::Texts;
use crate::failure::{Failure, OrFailure as _};
use crate::interrupt::Interrupts;
use crate::process_env::ProcessEnv;
use crate::remote::{Remote, explain};
use crate::render::{Line, sanitize};
use crate::terminal::attention::Attention;
use crate::terminal::clipboard;
use crate::terminal::conversation::{Conversation, Effect};
use crate::terminal::device::{Device, Sent};
use crate::terminal::display::{Display, Typed};
use crate::terminal::driver::{at, interrupted};
use crate::terminal::images::Said;
use crate::terminal::keys::Input;
use crate::terminal::painter::Screen;

/// Maximum number of events handled before keys are checked again.
const EVENTS_AT_ONCE: usize = 256;

/// Time to send messages and decisions after the user has left.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// Result of an asynchronous operation.
pub(super) enum Done {
    /// A message was accepted or rejected.
    Sent { text: String, result: Result<(), ClientError> },
    /// An interrupt was accepted or rejected.
    Interrupted(Result<(), ClientError>),
    /// A decision was accepted, or the reason why not.
    Decided(Result<(), String>),
    /// The calls that wait for a decision.
    Approvals(Result<Vec<Approval>, ClientError>),
    /// Current state of the session.
    Seen(Box<SessionInfo>),
    /// A command was carried out, or the reason why not.
    Called(Result<Vec<Line>, String>),
    /// The image on the clipboard, or the reason why it is unavailable.
    Pasted(Result<ImageData, String>),
}

type Doing<'a> = Pin<Box<dyn Future<Output = Done> + Send + 'a>>;

/// Driver of one conversation.
pub(super) struct Attached<'a> {
    pub(super) client: Client,
    pub(super) id: SessionId,
    /// Working directory of the tools, on the server.
    pub(super) directory: String,
    pub(super) display: Display,
    process_env: &'a ProcessEnv,
    doing: FuturesUnordered<Doing<'a>>,
    /// Keeps messages in the order in which they were entered.
    turnstile: Arc<Mutex<()>>,
    texts: Texts,
    outbox: Outbox,
    /// Whether the connection is lost.
    is_away: bool,
    /// Whether approvals are being read, and whether they have to be read again.
    reading: (bool, bool),
    has_left: bool,
    /// Reason why the session can no longer be followed.
    failure: Option<Failure>,
}

impl<'a> Attached<'a> {
    pub(super) fn new(
        remote: &Remote,
        session: &SessionInfo,
        conversation: Conversation,
        screen: Screen,
        attention: Attention,
        process_env: &'a ProcessEnv,
    ) -> Self {
        let mut attached = Self {
            client: remote.client.clone(),
            id: session.id.clone(),
            directory: session.directory.clone().unwrap_or_default(),
            display: Display::new(conversation, screen, attention),
            process_env,
            doing: FuturesUnordered::new(),
            turnstile: Arc::default(),
            texts: Texts::default(),
            outbox: Outbox::default(),
            is_away: false,
            reading: (false, false),
            has_left: false,
            failure: None,
        };
        attached.see(session);
        attached
            .display
            .conversation
            .note("server", &format!("attached to session {}; leaving leaves it there", session.id));
        attached
    }

    /// Runs the conversation until the user leaves, or until the session can no longer be followed.
    pub(super) async fn run(&mut self, device: &mut Device, interrupts: &Interrupts) -> Result<(), Failure> {
        // Outside plain mode, keys arrive as bytes, including Ctrl+C.
        let mut signals = self.display.conversation.is_plain().then(|| interrupts.take_over());
        self.display.ask().await?;
        let mut resized = signal(SignalKind::window_change()).or_failed("cannot watch the window")?;
        let mut events = self.client.events(&self.id, None);
        let mut changes = self.client.changes();
        self.read_approvals();
        self.display.draw().await?;
        {
            // Signals take effect even while the terminal accepts no output.
            let conversing = self.converse(device, &mut signals, &mut resized, &mut events, &mut changes);
            tokio::select! {
                biased;
                () = interrupts.first_signal() => {}
                ended = conversing => ended?,
            }
        }
        // From now on, another signal ends the process.
        drop(signals);
        self.finish_sending().await;
        self.display.finish(interrupts).await?;
        self.failure.take().map_or(Ok(()), Err)
    }

    async fn converse(
        &mut self,
        device: &mut Device,
        signals: &mut Option<mpsc::UnboundedReceiver<()>>,
        resized: &mut Signal,
        events: &mut SessionEvents,
        changes: &mut Changes,
    ) -> Result<(), Failure> {
        while !self.has_left {
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
                }
                () = at(self.display.paste_hint_at()) => self.display.hint_at_paste(),
                _ = resized.recv() => self.display.resize().await?,
                () = at(self.display.next_drawing()) => self.display.draw().await?,
                Some(done) = self.doing.next(), if !self.doing.is_empty() => self.done(done),
                item = events.next() => {
                    self.received(item);
                    for _ in 1..EVENTS_AT_ONCE {
                        let Some(item) = events.next().now_or_never().filter(|_| !self.has_left) else { break };
                        self.received(item);
                    }
                }
                Some(change) = changes.next() => self.changed(change),
            }
        }
        Ok(())
    }

    async fn typed(&mut self, piece: &[u8], device: &mut Device) -> Result<(), Failure> {
        let lines = match self.display.typed(piece) {
            Typed::Inputs(inputs) => return self.take_inputs(inputs, device).await,
            Typed::Lines(lines) => lines,
        };
        for line in lines {
            let effects = self.display.line(&line);
            self.perform(effects, device).await?;
        }
        self.display.draw().await
    }

    async fn take_inputs(&mut self, inputs: Vec<Input>, device: &mut Device) -> Result<(), Failure> {
        for input in inputs {
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
            Effect::Say(said) => self.send(said, true),
            Effect::FollowUp(said) => self.send(said, false),
            Effect::Interrupt => {
                let (client, id) = (self.client.clone(), self.id.clone());
                self.begin(async move { Done::Interrupted(client.interrupt(&id).await) });
            }
            Effect::Decide(decided) => {
                let (client, id) = (self.client.clone(), self.id.clone());
                self.begin(async move { Done::Decided(approvals::decide(&client, &id, decided).await) });
            }
            Effect::Call(called) => self.call(&called),
            Effect::TakeDropped { paste, .. } => self.display.conversation.paste(&paste),
            Effect::TakeClipboard => {
                let process_env = self.process_env;
                self.begin(async move { Done::Pasted(clipboard::image(process_env).await) });
            }
            Effect::Run(command) => {
                self.display.conversation.restore(&format!("!{command}"));
                self.refuse("running commands");
            }
            Effect::Memorize(_, line) => {
                self.display.conversation.restore(&format!("# {line}"));
                self.refuse("adding to instructions");
            }
            Effect::Look => self.refuse("looking through the conversation"),
            // The files are on the server.
            Effect::ListFiles => self.display.conversation.set_files(Vec::new()),
            Effect::Edit(text) => self.display.edit(&text, self.process_env, device).await?,
            Effect::Stop => self.display.stop(device).await?,
            Effect::Redraw => self.display.clear().await?,
            Effect::Leave => self.leave(),
            // There are no prompts of MCP servers here, and no history file.
            Effect::CallPrompt(_) | Effect::Remember(_) => {}
        }
        Ok(())
    }

    /// Starts an asynchronous operation.
    pub(super) fn begin(&mut self, doing: impl Future<Output = Done> + Send + 'a) {
        self.doing.push(Box::pin(doing));
    }

    pub(super) fn leave(&mut self) {
        self.has_left = true;
    }

    /// Sends a message after all earlier messages, to a running turn or for its end.
    fn send(&mut self, said: Said, at_once: bool) {
        let Said { text, images, .. } = said;
        let mut message = UserMessage::from(&text);
        for image in images {
            match image.pasted {
                Some(pasted) => message = message.with_image(pasted),
                None => {
                    let name = sanitize(&image.name).into_owned();
                    self.display
                        .conversation
                        .note("image", &format!("{name} was not sent as an image: paste it instead"));
                }
            }
        }
        self.outbox.begin(&text);
        let (client, id, turnstile) = (self.client.clone(), self.id.clone(), Arc::clone(&self.turnstile));
        self.begin(async move {
            let _turn = turnstile.lock().await;
            let result = match at_once {
                true => client.say(&id, message).await,
                false => client.follow_up(&id, message).await,
            };
            Done::Sent { text, result }
        });
    }

    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Sent { text, result: Ok(()) } => self.outbox.answered(text, true),
            Done::Sent { text, result: Err(error) } => {
                self.outbox.answered(text.clone(), false);
                self.display.conversation.restore(&text);
                self.display.hint(format!("not sent: {error}"));
            }
            Done::Interrupted(Err(error)) => self.display.hint(format!("not interrupted: {error}")),
            Done::Decided(Err(problem)) => {
                self.display.conversation.note("approval", &problem);
                self.read_approvals();
            }
            Done::Approvals(read) => {
                // Without a connection, they are read again after it is restored.
                if let Ok(approvals) = read {
                    let requests =
                        approvals.into_iter().map(|one| Arc::new(approvals::request(one, &self.id)));
                    self.display.conversation.set_approvals(requests.collect());
                }
                let (_, again) = std::mem::take(&mut self.reading);
                if again {
                    self.read_approvals();
                }
            }
            Done::Seen(session) => self.see(&session),
            Done::Called(Ok(lines)) => self.display.conversation.answer(lines),
            Done::Called(Err(problem)) | Done::Pasted(Err(problem)) => self.display.hint(problem),
            Done::Pasted(Ok(image)) => self.display.conversation.attach(None, image),
            Done::Interrupted(Ok(())) | Done::Decided(Ok(())) => {}
        }
        self.display.conversation.status.queued = self.outbox.queued();
        self.display.draw_soon();
    }

    /// Handles an item of the session's events.
    fn received(&mut self, item: Option<Result<SessionItem, ClientError>>) {
        match item {
            Some(Ok(SessionItem::Event { event, .. } | SessionItem::Delta(event))) => self.event(*event),
            Some(Ok(SessionItem::Reset { reason })) => {
                self.display.conversation.begin_again();
                self.texts.clear();
                self.display
                    .conversation
                    .note("server", &format!("the conversation follows from its beginning: {reason}"));
            }
            Some(Ok(SessionItem::Ready)) => {
                if std::mem::take(&mut self.is_away) {
                    self.display.conversation.note("server", "connected again");
                }
                self.read_approvals();
            }
            Some(Ok(SessionItem::Disconnected(lost))) => self.disconnected(&lost),
            // The end of a text contains the parts that were missed.
            Some(Ok(SessionItem::Gap(_) | SessionItem::Unknown { .. } | _)) => {}
            Some(Err(error)) => self.end(explain(&error)),
            None => self.end(Failure::failed(format!("session {} was deleted", self.id))),
        }
        self.display.draw_soon();
    }

    fn disconnected(&mut self, lost: &Disconnected) {
        if !std::mem::replace(&mut self.is_away, true) {
            let problem = error_chain(&lost.error);
            self.display
                .conversation
                .note("server", &format!("disconnected, and connecting again: {problem}"));
        }
    }

    fn end(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.leave();
    }

    fn event(&mut self, mut event: SessionEvent) {
        // A subagent's session is followed like any other.
        event.depth = 0;
        let now = self.display.elapsed();
        if let EventKind::UserInput { content, .. } | EventKind::SteeringInjected { content, .. } =
            &event.kind
        {
            self.outbox.arrived(content);
            self.display.conversation.status.queued = self.outbox.queued();
        }
        if let EventKind::Error { error } = &event.kind {
            let causes = error.causes.iter().map(|cause| format!(": {cause}"));
            self.display.conversation.failed(&format!("{error}{}", causes.collect::<String>()));
        }
        let asks = matches!(
            event.kind,
            EventKind::ApprovalRequested { .. }
                | EventKind::ApprovalDecided { .. }
                | EventKind::ToolCallEnd { .. }
                | EventKind::ProcessingEnd { .. }
        );
        for event in self.texts.events(event) {
            self.display.conversation.event(&event, now);
        }
        if asks {
            self.read_approvals();
        }
    }

    /// Handles a change of a session on the server.
    fn changed(&mut self, change: Result<Change, ClientError>) {
        if let Ok(Change::Session(session)) = change
            && session.id == self.id
        {
            self.see(&session);
            // Only this count includes calls of subagents.
            if usize::try_from(session.pending_approvals) != Ok(self.display.conversation.doing().waiting) {
                self.read_approvals();
            }
            self.display.draw_soon();
        }
    }

    /// Applies the information of the server about the session.
    fn see(&mut self, session: &SessionInfo) {
        let status = &mut self.display.conversation.status;
        status.cost = session.cost_usd;
        status.effort.clone_from(&session.effort);
        if let Some(model) = &session.model {
            status.model.clone_from(model);
        }
        if let Some(mode) = &session.mode {
            status.mode.clone_from(mode);
        }
    }

    fn read_approvals(&mut self) {
        if self.reading.0 {
            self.reading.1 = true;
            return;
        }
        self.reading = (true, false);
        let (client, id) = (self.client.clone(), self.id.clone());
        self.begin(async move { Done::Approvals(client.approvals(&id).await) });
    }

    /// Waits for messages and decisions that are being sent, up to a time limit.
    async fn finish_sending(&mut self) {
        // Deliver an entered message even if the user leaves immediately.
        let sending = async { while self.doing.next().await.is_some() {} };
        let _ = tokio::time::timeout(LEAVE_TIME, sending).await;
    }
}
