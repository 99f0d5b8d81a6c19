//! Drives a conversation with a session of a server: takes what the terminal and the server send, draws, and sends what the user
//! asks for.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use pintle_agent::{EventKind, SessionEvent, SessionId, UserMessage};
use pintle_client::{
    Approval, Change, Changes, Client, ClientError, Disconnected, SessionEvents, SessionInfo, SessionItem,
};
use pintle_llm::ImageData;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use super::approvals;
use super::texts::Texts;
use crate::console::{self, Console, modes};
use crate::failure::{Failure, OrFailure as _};
use crate::interrupt::Interrupts;
use crate::process_env::ProcessEnv;
use crate::remote::{Remote, explain};
use crate::render::{Line, sanitize};
use crate::terminal::attention::Attention;
use crate::terminal::clipboard;
use crate::terminal::conversation::{Conversation, Effect, FRAME};
use crate::terminal::device::{self, Device, Sent};
use crate::terminal::driver::{at, interrupted};
use crate::terminal::images::Said;
use crate::terminal::keys::{Decoder, ESCAPE_DELAY, Input, join_bursts};
use crate::terminal::lines::LineReader;
use crate::terminal::outside;
use crate::terminal::painter::{Painter, Region, Screen};

/// Events that are taken before keys are looked at again.
const EVENTS_AT_ONCE: usize = 256;

/// Ctrl+C, which ends a paste whose end does not arrive.
const END_OF_PASTE: &[u8] = b"\x03";

/// Time for messages and decisions to be sent after the user has left.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// End of something that was begun.
pub(super) enum Done {
    /// A message was accepted or not.
    Sent { text: String, is_steering: bool, result: Result<(), ClientError> },
    /// A turn was asked to stop.
    Interrupted(Result<(), ClientError>),
    /// A decision was taken, or why not.
    Decided(Result<(), String>),
    /// The calls that wait for a decision.
    Approvals(Result<Vec<Approval>, ClientError>),
    /// The session as it is now.
    Seen(Box<SessionInfo>),
    /// A command was carried out, or why not.
    Called(Result<Vec<Line>, String>),
    /// The image on the clipboard, or why there is none.
    Pasted(Result<ImageData, String>),
}

type Doing<'a> = Pin<Box<dyn Future<Output = Done> + Send + 'a>>;

/// Driver of one conversation.
pub(super) struct Attached<'a> {
    pub(super) client: Client,
    pub(super) id: SessionId,
    /// Working directory of the tools, on the server.
    pub(super) directory: String,
    pub(super) conversation: Conversation,
    painter: Painter,
    console: Console,
    decoder: Decoder,
    /// Instead of the decoder, in a conversation in lines.
    lines: LineReader,
    attention: Attention,
    process_env: &'a ProcessEnv,
    doing: FuturesUnordered<Doing<'a>>,
    /// Messages are sent in the order in which they were said.
    turnstile: Arc<Mutex<()>>,
    texts: Texts,
    began: Instant,
    /// When the screen may be drawn next, if it has to be.
    draws_at: Option<Instant>,
    /// When an open escape sequence ends.
    escape_at: Option<Instant>,
    /// Texts of messages that were sent and are not part of the conversation yet.
    sent: Vec<String>,
    /// Whether the connection is lost.
    is_away: bool,
    /// Whether approvals are being read, and have to be read again.
    reading: (bool, bool),
    has_left: bool,
    /// Reason why the session cannot be followed any more.
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
            conversation,
            painter: Painter::new(screen),
            console: Console::new(),
            decoder: Decoder::default(),
            lines: LineReader::default(),
            attention,
            process_env,
            doing: FuturesUnordered::new(),
            turnstile: Arc::default(),
            texts: Texts::default(),
            began: Instant::now(),
            draws_at: Some(Instant::now()),
            escape_at: None,
            sent: Vec::new(),
            is_away: false,
            reading: (false, false),
            has_left: false,
            failure: None,
        };
        attached.see(session);
        attached
            .conversation
            .note("server", &format!("attached to session {}; leaving leaves it there", session.id));
        attached
    }

    /// Converses until the user leaves, or the session cannot be followed any more.
    ///
    /// # Errors
    ///
    /// A failure if the terminal is gone or cannot be used, or with the reason why the session cannot be followed.
    pub(super) async fn run(&mut self, device: &mut Device, interrupts: &Interrupts) -> Result<(), Failure> {
        // Keys arrive as bytes otherwise, Ctrl+C among them.
        let mut signals = self.conversation.is_plain().then(|| interrupts.take_over());
        self.console.write(self.attention.question()).await?;
        let mut resized = signal(SignalKind::window_change()).or_failed("cannot watch the window")?;
        let mut events = self.client.events(&self.id, None);
        let mut changes = self.client.changes();
        self.read_approvals();
        self.draw().await?;
        {
            // Also while the terminal takes no output.
            let conversing = self.converse(device, &mut signals, &mut resized, &mut events, &mut changes);
            tokio::select! {
                biased;
                () = interrupts.first_signal() => {}
                ended = conversing => ended?,
            }
        }
        // From now on another one ends the process.
        drop(signals);
        self.finish_sending().await;
        self.erase(interrupts).await?;
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
            let now = Instant::now();
            let moves = self.conversation.changes_in(self.began.elapsed()).map(|time| now + time);
            let draw = self.draws_at.into_iter().chain(moves).min();
            tokio::select! {
                biased;
                () = interrupted(signals) => {
                    for effect in self.conversation.interrupt_or_leave(self.began.elapsed()) {
                        self.perform(effect, device).await?;
                    }
                    self.draw().await?;
                }
                piece = device.next() => match piece {
                    Some(Sent::Bytes(piece)) => self.typed(&piece, device).await?,
                    Some(Sent::Stop) => self.stop(device).await?,
                    Some(Sent::Continued(_)) => {
                        modes::enter_again().or_failed("cannot use the terminal")?;
                        self.come_back().await?;
                    }
                    None => break,
                },
                () = at(self.escape_at) => {
                    let inputs = self.decoder.flush();
                    self.escape_at = None;
                    self.take_inputs(inputs, device).await?;
                }
                _ = resized.recv() => self.resize().await?,
                () = at(draw) => self.draw().await?,
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
        self.attention.typed(self.began.elapsed());
        if self.conversation.is_plain() {
            for line in self.lines.push(piece) {
                for effect in self.conversation.line(&line, self.began.elapsed()) {
                    self.perform(effect, device).await?;
                }
            }
            return self.draw().await;
        }
        let inputs = match self.decoder.is_within_paste() && piece == END_OF_PASTE {
            // The end of the paste was lost.
            true => self.decoder.end_paste().into_iter().collect(),
            false => join_bursts(self.decoder.push(piece)),
        };
        self.escape_at = self.decoder.is_within_sequence().then(|| Instant::now() + ESCAPE_DELAY);
        self.take_inputs(inputs, device).await
    }

    async fn take_inputs(&mut self, inputs: Vec<Input>, device: &mut Device) -> Result<(), Failure> {
        for input in inputs {
            if let Input::Background(background) = input {
                self.painter.set_background(background);
                continue;
            }
            for effect in self.conversation.input(input, self.began.elapsed()) {
                self.perform(effect, device).await?;
            }
        }
        self.draw().await
    }

    async fn perform(&mut self, effect: Effect, device: &mut Device) -> Result<(), Failure> {
        match effect {
            Effect::Say(said) => {
                let is_steering = self.conversation.doing().is_running;
                self.send(said, is_steering);
            }
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
            Effect::TakeDropped { paste, .. } => self.conversation.paste(&paste),
            Effect::TakeClipboard => {
                let process_env = self.process_env;
                self.begin(async move { Done::Pasted(clipboard::image(process_env).await) });
            }
            Effect::Run(command) => {
                self.conversation.restore(&format!("!{command}"));
                self.refuse("running commands");
            }
            Effect::Memorize(_, line) => {
                self.conversation.restore(&format!("# {line}"));
                self.refuse("adding to instructions");
            }
            Effect::Look => self.refuse("looking through the conversation"),
            // The files are the server's.
            Effect::ListFiles => self.conversation.set_files(Vec::new()),
            Effect::Edit(text) => self.edit(&text, device).await?,
            Effect::Stop => self.stop(device).await?,
            Effect::Redraw => {
                let erased = self.painter.erase();
                self.console.write(&erased).await?;
            }
            Effect::Leave => self.leave(),
            // There are no prompts of servers of tools here, and no file of inputs.
            Effect::CallPrompt(_) | Effect::Remember(_) => {}
        }
        Ok(())
    }

    /// Begins something that ends later.
    pub(super) fn begin(&mut self, doing: impl Future<Output = Done> + Send + 'a) {
        self.doing.push(Box::pin(doing));
    }

    pub(super) fn leave(&mut self) {
        self.has_left = true;
    }

    /// Sends a message, after those before it.
    fn send(&mut self, said: Said, is_steering: bool) {
        let Said { text, images, .. } = said;
        let mut message = UserMessage::from(&text);
        for image in images {
            match image.pasted {
                Some(pasted) => message = message.with_image(pasted),
                None => {
                    let name = sanitize(&image.name).into_owned();
                    self.conversation
                        .note("image", &format!("{name} was not sent as an image: paste it instead"));
                }
            }
        }
        let (client, id, turnstile) = (self.client.clone(), self.id.clone(), Arc::clone(&self.turnstile));
        self.begin(async move {
            let _turn = turnstile.lock().await;
            let result = if is_steering {
                client.steer(&id, message).await
            } else {
                client.submit(&id, message).await
            };
            Done::Sent { text, is_steering, result }
        });
    }

    pub(super) fn done(&mut self, done: Done) {
        let now = self.began.elapsed();
        match done {
            Done::Sent { text, result: Ok(()), .. } => self.sent.push(text),
            Done::Sent { text, result: Err(error), is_steering } => {
                self.conversation.restore(&text);
                // The turn may have ended meanwhile.
                let what = if is_steering { "not sent to the turn" } else { "not sent" };
                self.conversation.hint(format!("{what}: {error}"), now);
            }
            Done::Interrupted(Err(error)) => self.conversation.hint(format!("not interrupted: {error}"), now),
            Done::Decided(Err(problem)) => {
                self.conversation.note("approval", &problem);
                self.read_approvals();
            }
            Done::Approvals(read) => {
                // Without a connection, they are read again once there is one.
                if let Ok(approvals) = read {
                    let requests =
                        approvals.into_iter().map(|one| Arc::new(approvals::request(one, &self.id)));
                    self.conversation.set_approvals(requests.collect());
                }
                let (_, again) = std::mem::take(&mut self.reading);
                if again {
                    self.read_approvals();
                }
            }
            Done::Seen(session) => self.see(&session),
            Done::Called(Ok(lines)) => self.conversation.answer(lines),
            Done::Called(Err(problem)) | Done::Pasted(Err(problem)) => self.conversation.hint(problem, now),
            Done::Pasted(Ok(image)) => self.conversation.attach(None, image),
            Done::Interrupted(Ok(())) | Done::Decided(Ok(())) => {}
        }
        self.conversation.status.queued = self.sent.len();
        self.draw_soon();
    }

    /// Takes an item of the events of the session.
    fn received(&mut self, item: Option<Result<SessionItem, ClientError>>) {
        match item {
            Some(Ok(SessionItem::Event { event, .. } | SessionItem::Delta(event))) => self.event(*event),
            Some(Ok(SessionItem::Reset { reason })) => {
                self.conversation.begin_again();
                self.texts.clear();
                self.conversation
                    .note("server", &format!("the conversation follows from its beginning: {reason}"));
            }
            Some(Ok(SessionItem::Ready)) => {
                if std::mem::take(&mut self.is_away) {
                    self.conversation.note("server", "connected again");
                }
                self.read_approvals();
            }
            Some(Ok(SessionItem::Disconnected(lost))) => self.disconnected(&lost),
            // The end of a text has what was missed of it.
            Some(Ok(SessionItem::Gap(_) | SessionItem::Unknown { .. } | _)) => {}
            Some(Err(error)) => self.end(explain(&error)),
            None => self.end(Failure::failed(format!("session {} was deleted", self.id))),
        }
        self.draw_soon();
    }

    fn disconnected(&mut self, lost: &Disconnected) {
        if !std::mem::replace(&mut self.is_away, true) {
            let problem = crate::failure::chain(&lost.error);
            self.conversation.note("server", &format!("disconnected, and connecting again: {problem}"));
        }
    }

    fn end(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.leave();
    }

    fn event(&mut self, mut event: SessionEvent) {
        // A subagent's session is followed like any other.
        event.depth = 0;
        let now = self.began.elapsed();
        if let EventKind::UserInput { content, .. } | EventKind::SteeringInjected { content, .. } =
            &event.kind
        {
            if let Some(known) = self.sent.iter().position(|sent| sent == content) {
                self.sent.remove(known);
            }
            self.conversation.status.queued = self.sent.len();
        }
        if let EventKind::Error { error } = &event.kind {
            let causes = error.causes.iter().map(|cause| format!(": {cause}"));
            self.conversation.failed(&format!("{error}{}", causes.collect::<String>()));
        }
        let asks = matches!(
            event.kind,
            EventKind::ApprovalRequested { .. }
                | EventKind::ApprovalDecided { .. }
                | EventKind::ToolCallEnd { .. }
                | EventKind::ProcessingEnd { .. }
        );
        for event in self.texts.events(event) {
            self.conversation.event(&event, now);
        }
        if asks {
            self.read_approvals();
        }
    }

    /// Takes a change of a session of the server.
    fn changed(&mut self, change: Result<Change, ClientError>) {
        if let Ok(Change::Session(session)) = change
            && session.id == self.id
        {
            self.see(&session);
            // Calls of subagents are known to this alone.
            if usize::try_from(session.pending_approvals) != Ok(self.conversation.doing().waiting) {
                self.read_approvals();
            }
            self.draw_soon();
        }
    }

    /// Takes over what the server says about the session.
    fn see(&mut self, session: &SessionInfo) {
        let status = &mut self.conversation.status;
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

    /// Has a text edited by the editor of the user, which has the terminal meanwhile.
    async fn edit(&mut self, text: &str, device: &mut Device) -> Result<(), Failure> {
        let erased = self.painter.erase();
        self.console.write(&erased).await?;
        let process_env = self.process_env;
        let mut edited = Ok(String::new());
        device.suspend(|| edited = outside::edit(text, process_env))?;
        match edited {
            Ok(edited) => self.conversation.set_text(&edited),
            Err(failure) => self.conversation.hint(failure.message(), self.began.elapsed()),
        }
        self.come_back().await
    }

    /// Stops this process until the shell continues it.
    async fn stop(&mut self, device: &mut Device) -> Result<(), Failure> {
        if !device::has_shell() {
            self.conversation.hint("not stopped: there is no shell to go back to", self.began.elapsed());
            return self.draw().await;
        }
        let erased = self.painter.erase();
        self.console.write(&erased).await?;
        device.suspend(device::stop_job)?;
        self.come_back().await
    }

    /// Draws anew below what something else has written, in a window that may have another size by now.
    async fn come_back(&mut self) -> Result<(), Failure> {
        self.painter.forget();
        self.attention.forget();
        self.resize().await
    }

    async fn resize(&mut self) -> Result<(), Failure> {
        let size = console::size();
        let erased = self.painter.resize(size);
        self.conversation.resize(size);
        self.console.write(&erased).await?;
        self.draw().await
    }

    fn draw_soon(&mut self) {
        self.draws_at.get_or_insert_with(|| Instant::now() + FRAME);
    }

    async fn draw(&mut self) -> Result<(), Failure> {
        self.draws_at = None;
        if modes::were_left_by_panic() {
            modes::enter().or_failed("cannot use the terminal")?;
            self.painter.forget();
        }
        let (lines, region) = self.conversation.frame(self.began.elapsed());
        let mut output = self.painter.paint(&lines, &region);
        output.push_str(&self.attention.update(self.conversation.doing(), self.began.elapsed()));
        self.console.write(&output).await
    }

    /// Waits for messages and decisions that are being sent, as long as the server is there.
    async fn finish_sending(&mut self) {
        // A message that was said counts, even if the user has left at once.
        let sending = async { while self.doing.next().await.is_some() {} };
        let _ = tokio::time::timeout(LEAVE_TIME, sending).await;
    }

    /// Prints what is left, and erases the region.
    async fn erase(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let (lines, _) = self.conversation.frame(self.began.elapsed());
        let last = self.painter.paint(&lines, &Region::default()) + &self.painter.erase();
        let written = self.console.write(&last);
        if interrupts.is_interrupted() {
            // A terminal that hangs is no reason to stay.
            return tokio::time::timeout(modes::HANG_TIME, written).await.unwrap_or(Ok(()));
        }
        written.await
    }
}
