//! The thread behind a channel. A thread of its own, with a runtime of its own, since the heartbeat goes on and
//! dropped commands are ended whether or not anybody awaits anything.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::{mpsc, oneshot, watch},
    time::{Instant, Interval, MissedTickBehavior, interval_at, timeout},
};

use super::{ENDING_LIMIT, Held, LINGER, Leader, Loss, Message, Released, lost_error};
use crate::{
    error::EnvError,
    remote::{
        client::{Client, Tail},
        nonce::nonce,
        places::Place,
        quote::quote,
        records::Mark,
        transport::Transport,
    },
};

const SUPERVISOR: &str = include_str!("../scripts/supervisor.sh");

/// How often the supervisor gets, and gives, a sign of life.
const BEAT: Duration = Duration::from_secs(3);

/// Without a sign of life for so long the environment is lost. A supervisor among hundreds of busy processes may take
/// its time.
const SILENCE: Duration = Duration::from_secs(20);

/// The far side's own limit, in seconds: it is looked at this often, so the host counts as gone after twice as long
/// at most.
const FAR_SILENCE: u32 = 15;

/// How long the supervisor may take to start.
const OPENING_LIMIT: Duration = Duration::from_secs(30);

/// How long a request may take to be handed to the client.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// More bytes than any answer of the supervisor has.
const MAX_ANSWER: usize = 4 << 10;

/// How often it is looked whether killed clients have gone.
const POLL: Duration = Duration::from_millis(20);

/// Drives one channel to its end.
pub(super) struct Driver<T> {
    transport: Arc<T>,
    tag: String,
    messages: mpsc::UnboundedReceiver<Message>,
    lost: watch::Sender<Option<Loss>>,
}

/// The supervisor's stream of answers was closed.
struct Ended;

/// The streams of a supervisor.
struct Link {
    child: Child,
    stdin: ChildStdin,
    answers: Answers,
    stderr: Option<ChildStderr>,
    tail: Tail,
}

/// What a supervisor says, line by line.
struct Answers {
    stdout: ChildStdout,
    /// What has no line end yet.
    read: Vec<u8>,
}

/// What waits for an answer.
enum Pending {
    Reply(oneshot::Sender<String>),
    /// The far side says when nothing is left; then the command's place is free.
    Ended {
        place: Option<Place>,
        client: Option<Held>,
    },
    Beat,
}

/// A channel at work.
struct Work {
    link: Link,
    ids: u64,
    pending: HashMap<u64, Pending>,
    /// Killed, and not yet waited for.
    clients: Vec<(Held, Option<Place>)>,
    heard: Instant,
}

impl<T: Transport> Driver<T> {
    pub(super) fn new(
        transport: Arc<T>,
        tag: String,
        messages: mpsc::UnboundedReceiver<Message>,
        lost: watch::Sender<Option<Loss>>,
    ) -> Self {
        Self { transport, tag, messages, lost }
    }

    /// Blocks the thread until the channel is finished or lost.
    pub(super) fn run(mut self, opened: oneshot::Sender<Result<Leader, EnvError>>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = opened.send(Err(lost_error(self.transport.name(), error)));
                return;
            }
        };
        runtime.block_on(async {
            let (link, supervisor) = match self.open().await {
                Ok(opened) => opened,
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            let mut work = Work::new(link);
            let served = match opened.send(Ok(supervisor)) {
                Ok(()) => work.serve(&mut self.messages).await,
                Err(_nobody) => Ok(0),
            };
            match served {
                Ok(linger) => work.quit(linger).await,
                Err(reason) => {
                    let loss = work.explain(reason).await;
                    tracing::warn!(environment = self.transport.name(), ?loss, "lost");
                    self.lost.send_replace(Some(loss));
                }
            }
            self.messages.close();
            while let Ok(message) = self.messages.try_recv() {
                if let Message::Release(Released { client, place, .. }) = message {
                    work.kill(client, place);
                }
            }
            work.reap().await;
        });
    }

    async fn open(&self) -> Result<(Link, Leader), EnvError> {
        let Client { child, mut stdin, stdout, stderr } = Client::start(&*self.transport)?;
        let mark = Mark::new(&nonce());
        let mut link = Link {
            child,
            answers: Answers { stdout, read: Vec::new() },
            stderr: Some(stderr),
            tail: Tail::default(),
            stdin: {
                // A client that is gone already says why below.
                let _ = stdin.write_all(&self.script(&mark)).await;
                stdin
            },
        };
        let ended = match timeout(OPENING_LIMIT, link.hello(&mark)).await {
            Ok(Ok(supervisor)) => return Ok((link, supervisor)),
            Ok(Err(Ended)) => timeout(WRITE_LIMIT, link.child.wait()).await,
            Err(elapsed) => Err(elapsed),
        };
        Err(match ended {
            Ok(Ok(status)) => self.transport.lost(status, &link.tail.text()),
            Ok(Err(error)) => lost_error(self.transport.name(), error),
            Err(elapsed) => lost_error(self.transport.name(), elapsed),
        })
    }

    fn script(&self, mark: &Mark) -> Vec<u8> {
        let mut line = Vec::new();
        for (name, value) in [
            ("pintle_k", mark.as_bytes()),
            ("pintle_tag", self.tag.as_bytes()),
            ("pintle_wait", FAR_SILENCE.to_string().as_bytes()),
            ("pintle_linger", LINGER.to_string().as_bytes()),
            ("pintle_last", self.transport.last_words().as_bytes()),
        ] {
            line.extend_from_slice(name.as_bytes());
            line.push(b'=');
            quote(&mut line, value);
            line.push(b';');
        }
        line.extend_from_slice(b"eval ");
        quote(&mut line, SUPERVISOR.as_bytes());
        line.push(b'\n');
        line
    }
}

impl Link {
    /// Waits until the supervisor says that it is there. What start-up files of a login shell say comes before, and
    /// need not end its line. Returns the supervisor's process.
    async fn hello(&mut self, mark: &Mark) -> Result<Leader, Ended> {
        loop {
            tokio::select! {
                line = self.answers.next() => match line {
                    Some(line) => {
                        if let Some(supervisor) = parse_hello(&line, mark) {
                            return Ok(supervisor);
                        }
                    }
                    None => {
                        self.drain_stderr().await;
                        return Err(Ended);
                    }
                },
                () = read_tail(&mut self.stderr, &mut self.tail) => {}
            }
        }
    }

    async fn drain_stderr(&mut self) {
        let drained = async {
            while self.stderr.is_some() {
                read_tail(&mut self.stderr, &mut self.tail).await;
            }
        };
        // Somebody else may hold the stream.
        let _ = timeout(Duration::from_secs(1), drained).await;
    }
}

impl Answers {
    /// The next line; `None` at the end. Of a line that is too long to be an answer only the end is kept. Cancel safe.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.read) {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.read.drain(..self.read.len().saturating_sub(MAX_ANSWER));
            // An error is an end as well.
            let read = self.stdout.read_buf(&mut self.read).await.unwrap_or_default();
            if read == 0 {
                return None;
            }
        }
    }
}

/// `MARK ID START` behind anything.
fn parse_hello(line: &str, mark: &Mark) -> Option<Leader> {
    let (_, supervisor) = line.rsplit_once(mark.as_str())?;
    let (id, started) = supervisor.trim().split_once(' ')?;
    Some(Leader { id: id.parse().ok()?, started: started.parse().ok()? })
}

/// Takes in a piece of what a client says; pending for ever when it has said everything. Cancel safe.
async fn read_tail(stderr: &mut Option<ChildStderr>, tail: &mut Tail) {
    let Some(pipe) = stderr else {
        return std::future::pending().await;
    };
    let mut buffer = [0; 1024];
    match pipe.read(&mut buffer).await.ok().and_then(|read| buffer.get(..read)) {
        Some(bytes) if !bytes.is_empty() => tail.push(bytes),
        Some(_) | None => *stderr = None,
    }
}

impl Work {
    fn new(link: Link) -> Self {
        Self { link, ids: 0, pending: HashMap::new(), clients: Vec::new(), heard: Instant::now() }
    }

    /// Serves until it is told to finish, and returns for how long commands that may be about to start are to be waited
    /// for, in tenths of a second. The error is the reason of a loss, if it is known already.
    async fn serve(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Result<u32, Option<String>> {
        let (mut beats, mut polls) = (ticks(BEAT), ticks(POLL));
        loop {
            let Link { answers, stderr, tail, .. } = &mut self.link;
            tokio::select! {
                line = answers.next() => match line {
                    Some(line) => self.answer(&line),
                    None => return Err(None),
                },
                () = read_tail(stderr, tail) => {}
                message = messages.recv() => match message {
                    None => return Ok(0),
                    Some(Message::Finish { linger }) => return Ok(linger),
                    Some(message) => self.take(message).await.map_err(|error| Some(error.to_string()))?,
                },
                _ = beats.tick() => {
                    if self.heard.elapsed() > SILENCE {
                        return Err(Some(format!("no sign of life for {} s", SILENCE.as_secs())));
                    }
                    let sent = self.request("beat", Pending::Beat).await;
                    sent.map_err(|error| Some(error.to_string()))?;
                }
                _ = polls.tick(), if !self.clients.is_empty() => self.look_after_clients(),
            }
        }
    }

    async fn take(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Ask { request, reply } => self.request(&request, Pending::Reply(reply)).await,
            Message::Tell(request) => self.write(0, &request).await,
            Message::Release(Released { client, place, request: Some(request), has_begun: true }) => {
                self.request(&request, Pending::Ended { place, client }).await
            }
            Message::Release(Released { client, place, request: Some(request), has_begun: false }) => {
                // Without its client it may not begin at all.
                self.kill(client, None);
                self.request(&request, Pending::Ended { place, client: None }).await
            }
            Message::Release(Released { client, place, request: None, .. }) => {
                self.kill(client, place);
                Ok(())
            }
            Message::Finish { .. } => Ok(()),
        }
    }

    async fn request(&mut self, request: &str, pending: Pending) -> io::Result<()> {
        self.ids += 1;
        self.pending.insert(self.ids, pending);
        self.write(self.ids, request).await
    }

    async fn write(&mut self, id: u64, request: &str) -> io::Result<()> {
        let line = format!("{id} {request}\n");
        match timeout(WRITE_LIMIT, self.link.stdin.write_all(line.as_bytes())).await {
            // One that is gone says more by its end than by a closed pipe.
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Ok(written) => written,
            Err(elapsed) => Err(elapsed.into()),
        }
    }

    fn answer(&mut self, line: &str) {
        self.heard = Instant::now();
        let (id, answer) = line.split_once(' ').unwrap_or((line, ""));
        match id.parse().ok().and_then(|id| self.pending.remove(&id)) {
            Some(Pending::Reply(reply)) => {
                // Nobody may wait for it any more.
                let _ = reply.send(answer.to_owned());
            }
            Some(Pending::Ended { place, client }) => self.kill(client, place),
            Some(Pending::Beat) | None => {}
        }
    }

    /// Kills a client; its place is free when it is gone.
    fn kill(&mut self, client: Option<Held>, place: Option<Place>) {
        let Some(mut client) = client else {
            return;
        };
        if let Err(error) = client.child.start_kill() {
            tracing::debug!(%error, "a client has ended already");
        }
        self.clients.push((client, place));
        self.look_after_clients();
    }

    fn look_after_clients(&mut self) {
        // An error means that somebody else has waited for it.
        self.clients.retain_mut(|(client, _)| matches!(client.child.try_wait(), Ok(None)));
    }

    /// Says more of a loss than what was noticed, if anything was; the client may know it.
    async fn explain(&mut self, noticed: Option<String>) -> Loss {
        let link = &mut self.link;
        if let Some(noticed) = noticed {
            link.child.start_kill().ok();
            return Loss::Noticed(noticed);
        }
        link.drain_stderr().await;
        match timeout(WRITE_LIMIT, link.child.wait()).await {
            Ok(Ok(status)) => Loss::Client { status, said: link.tail.text() },
            Ok(Err(error)) => Loss::Noticed(error.to_string()),
            Err(_elapsed) => Loss::Noticed("the supervisor has ended".to_owned()),
        }
    }

    /// Tells the supervisor to end everything and waits until it has.
    async fn quit(&mut self, linger: u32) {
        let quit = async {
            self.write(0, &format!("quit {linger}")).await?;
            while self.link.answers.next().await.is_some() {}
            self.link.child.wait().await
        };
        match timeout(ENDING_LIMIT, quit).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the supervisor has not said goodbye"),
            Err(_elapsed) => tracing::warn!("the supervisor does not end"),
        }
    }

    /// Waits for the local clients; they have been killed.
    async fn reap(&mut self) {
        for pending in std::mem::take(&mut self.pending).into_values() {
            if let Pending::Ended { place, client } = pending {
                self.kill(client, place);
            }
        }
        let _ = self.link.child.start_kill();
        let _ = timeout(WRITE_LIMIT, self.link.child.wait()).await;
        let deadline = Instant::now() + WRITE_LIMIT;
        while !self.clients.is_empty() && Instant::now() < deadline {
            self.look_after_clients();
            tokio::time::sleep(POLL).await;
        }
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
