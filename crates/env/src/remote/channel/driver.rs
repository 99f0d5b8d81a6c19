//! The thread of a channel. It has its own runtime, because the heartbeat and the termination of
//! dropped commands must proceed whether or not the application awaits anything.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::{mpsc, oneshot, watch},
    time::{Instant, Interval, MissedTickBehavior, interval_at, timeout},
};

use super::{
    DroppedProcess, ENDING_LIMIT, LINGER, Loss, Message, ProcessIdentity, RetainedClient, lost_error,
};
use crate::{
    error::EnvError,
    remote::{
        client::{Client, Tail},
        nonce::nonce,
        quote::quote,
        records::RecordMarker,
        slots::Slot,
        transport::Transport,
    },
};

const SUPERVISOR: &str = include_str!("../scripts/supervisor.sh");

/// Interval of the heartbeat, in both directions.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Time without an answer after which the environment is lost. A supervisor on a busy system may be
/// slow.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval, in seconds, at which the remote side checks for heartbeats: it notices a dead
/// application after at most twice this time.
const REMOTE_SILENCE: u32 = 15;

/// Time-out for the start of the supervisor.
const OPENING_LIMIT: Duration = Duration::from_secs(30);

/// Time-out for writing a request to the client.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Upper bound for the size of an answer, in bytes.
const MAX_ANSWER: usize = 4 << 10;

/// Poll interval for killed clients.
const POLL: Duration = Duration::from_millis(20);

/// Drives one channel from start to end.
pub(super) struct Driver<T> {
    transport: Arc<T>,
    tag: String,
    messages: mpsc::UnboundedReceiver<Message>,
    lost: watch::Sender<Option<Loss>>,
}

/// The supervisor closed its stream of answers.
struct AnswersClosed;

/// A supervisor and its streams.
struct Link {
    child: Child,
    stdin: ChildStdin,
    answers: Answers,
    stderr: Option<ChildStderr>,
    tail: Tail,
}

/// Reads the supervisor's answers line by line.
struct Answers {
    stdout: ChildStdout,
    /// Bytes of an incomplete line.
    read: Vec<u8>,
}

/// Action on an outstanding answer.
enum Pending {
    Reply(oneshot::Sender<String>),
    /// The answer means that all processes are gone; the slot is free then.
    Terminated {
        slot: Option<Slot>,
        client: Option<RetainedClient>,
    },
    Heartbeat,
}

/// An open channel.
struct Connection {
    link: Link,
    ids: u64,
    pending: HashMap<u64, Pending>,
    /// Clients that were killed and not yet reaped.
    clients: Vec<(RetainedClient, Option<Slot>)>,
    last_answer: Instant,
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
    pub(super) fn run(mut self, opened: oneshot::Sender<Result<ProcessIdentity, EnvError>>) {
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
            let mut connection = Connection::new(link);
            let served = match opened.send(Ok(supervisor)) {
                Ok(()) => connection.serve(&mut self.messages).await,
                Err(_dropped) => Ok(0),
            };
            match served {
                Ok(linger) => connection.quit(linger).await,
                Err(reason) => {
                    let loss = connection.explain(reason).await;
                    tracing::warn!(environment = self.transport.name(), ?loss, "lost");
                    self.lost.send_replace(Some(loss));
                }
            }
            self.messages.close();
            while let Ok(message) = self.messages.try_recv() {
                if let Message::Release(DroppedProcess { client, slot, .. }) = message {
                    connection.kill(client, slot);
                }
            }
            connection.shut_down().await;
        });
    }

    async fn open(&self) -> Result<(Link, ProcessIdentity), EnvError> {
        let Client { child, mut stdin, stdout, stderr } = Client::start(&*self.transport)?;
        let marker = RecordMarker::new(&nonce());
        let mut link = Link {
            child,
            answers: Answers { stdout, read: Vec::new() },
            stderr: Some(stderr),
            tail: Tail::default(),
            stdin: {
                // If the client is gone already, its exit is reported below.
                let _ = stdin.write_all(&self.script(&marker)).await;
                stdin
            },
        };
        let exited = match timeout(OPENING_LIMIT, link.greeting(&marker)).await {
            Ok(Ok(supervisor)) => return Ok((link, supervisor)),
            Ok(Err(AnswersClosed)) => timeout(WRITE_LIMIT, link.child.wait()).await,
            Err(elapsed) => Err(elapsed),
        };
        Err(match exited {
            Ok(Ok(status)) => self.transport.exit_error(status, &link.tail.text()),
            Ok(Err(error)) => lost_error(self.transport.name(), error),
            Err(elapsed) => lost_error(self.transport.name(), elapsed),
        })
    }

    fn script(&self, marker: &RecordMarker) -> Vec<u8> {
        let mut line = Vec::new();
        for (name, value) in [
            ("pintle_k", marker.as_bytes()),
            ("pintle_tag", self.tag.as_bytes()),
            ("pintle_silence", REMOTE_SILENCE.to_string().as_bytes()),
            ("pintle_linger", LINGER.to_string().as_bytes()),
            ("pintle_exit_command", self.transport.exit_command().as_bytes()),
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
    /// Waits for the supervisor's greeting and returns its process. Output of login-shell start-up
    /// files may precede it, even on the same line.
    async fn greeting(&mut self, marker: &RecordMarker) -> Result<ProcessIdentity, AnswersClosed> {
        loop {
            tokio::select! {
                line = self.answers.next() => match line {
                    Some(line) => {
                        if let Some(supervisor) = parse_greeting(&line, marker) {
                            return Ok(supervisor);
                        }
                    }
                    None => {
                        self.drain_stderr().await;
                        return Err(AnswersClosed);
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
        // Another process may hold the stream open.
        let _ = timeout(Duration::from_secs(1), drained).await;
    }
}

impl Answers {
    /// Returns the next line; `None` at the end. An overlong line is truncated to its end. Cancel
    /// safe.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.read) {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.read.drain(..self.read.len().saturating_sub(MAX_ANSWER));
            // An error counts as the end.
            let read = self.stdout.read_buf(&mut self.read).await.unwrap_or_default();
            if read == 0 {
                return None;
            }
        }
    }
}

/// Parses `MARKER ID START` with any prefix.
fn parse_greeting(line: &str, marker: &RecordMarker) -> Option<ProcessIdentity> {
    let (_, supervisor) = line.rsplit_once(marker.as_str())?;
    let (id, started) = supervisor.trim().split_once(' ')?;
    Some(ProcessIdentity { id: id.parse().ok()?, started: started.parse().ok()? })
}

/// Reads some of the client's standard error; pending forever after its end. Cancel safe.
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

impl Connection {
    fn new(link: Link) -> Self {
        Self { link, ids: 0, pending: HashMap::new(), clients: Vec::new(), last_answer: Instant::now() }
    }

    /// Serves messages until `Message::Finish` arrives. Returns the time to wait for commands
    /// that may be about to start, in tenths of a second. The error is the cause of a loss, if
    /// already known.
    async fn serve(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Result<u32, Option<String>> {
        let (mut heartbeats, mut polls) = (ticks(HEARTBEAT_INTERVAL), ticks(POLL));
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
                    Some(message) => self.handle(message).await.map_err(|error| Some(error.to_string()))?,
                },
                _ = heartbeats.tick() => {
                    if self.last_answer.elapsed() > HEARTBEAT_TIMEOUT {
                        return Err(Some(format!("no heartbeat for {} s", HEARTBEAT_TIMEOUT.as_secs())));
                    }
                    let sent = self.request("beat", Pending::Heartbeat).await;
                    sent.map_err(|error| Some(error.to_string()))?;
                }
                _ = polls.tick(), if !self.clients.is_empty() => self.reap_exited_clients(),
            }
        }
    }

    async fn handle(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Ask { request, reply } => self.request(&request, Pending::Reply(reply)).await,
            Message::Tell(request) => self.write(0, &request).await,
            Message::Release(DroppedProcess { client, slot, request: Some(request), has_started: true }) => {
                self.request(&request, Pending::Terminated { slot, client }).await
            }
            Message::Release(DroppedProcess { client, slot, request: Some(request), has_started: false }) => {
                // Without its client the command may not start at all.
                self.kill(client, None);
                self.request(&request, Pending::Terminated { slot, client: None }).await
            }
            Message::Release(DroppedProcess { client, slot, request: None, .. }) => {
                self.kill(client, slot);
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
            // The exit status of the client is more informative than the closed pipe.
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Ok(written) => written,
            Err(elapsed) => Err(elapsed.into()),
        }
    }

    fn answer(&mut self, line: &str) {
        self.last_answer = Instant::now();
        let (id, answer) = line.split_once(' ').unwrap_or((line, ""));
        match id.parse().ok().and_then(|id| self.pending.remove(&id)) {
            Some(Pending::Reply(reply)) => {
                // The receiver may be gone.
                let _ = reply.send(answer.to_owned());
            }
            Some(Pending::Terminated { slot, client }) => self.kill(client, slot),
            Some(Pending::Heartbeat) | None => {}
        }
    }

    /// Kills a client; its slot is free once it exited.
    fn kill(&mut self, client: Option<RetainedClient>, slot: Option<Slot>) {
        let Some(mut client) = client else {
            return;
        };
        if let Err(error) = client.child.start_kill() {
            tracing::debug!(%error, "the client exited already");
        }
        self.clients.push((client, slot));
        self.reap_exited_clients();
    }

    fn reap_exited_clients(&mut self) {
        // An error means that the client was reaped elsewhere.
        self.clients.retain_mut(|(client, _)| matches!(client.child.try_wait(), Ok(None)));
    }

    /// Determines the cause of a loss; the client's exit may reveal more than the detected failure.
    async fn explain(&mut self, detected: Option<String>) -> Loss {
        let link = &mut self.link;
        if let Some(failure) = detected {
            link.child.start_kill().ok();
            return Loss::Detected(failure);
        }
        link.drain_stderr().await;
        match timeout(WRITE_LIMIT, link.child.wait()).await {
            Ok(Ok(status)) => Loss::ClientExited { status, stderr_tail: link.tail.text() },
            Ok(Err(error)) => Loss::Detected(error.to_string()),
            Err(_elapsed) => Loss::Detected("the supervisor exited".to_owned()),
        }
    }

    /// Asks the supervisor to terminate everything and waits until it has.
    async fn quit(&mut self, linger: u32) {
        let quit = async {
            self.write(0, &format!("quit {linger}")).await?;
            while self.link.answers.next().await.is_some() {}
            self.link.child.wait().await
        };
        match timeout(ENDING_LIMIT, quit).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot shut down the supervisor"),
            Err(_elapsed) => tracing::warn!("the supervisor does not exit"),
        }
    }

    /// Waits for the killed local clients.
    async fn shut_down(&mut self) {
        for pending in std::mem::take(&mut self.pending).into_values() {
            if let Pending::Terminated { slot, client } = pending {
                self.kill(client, slot);
            }
        }
        let _ = self.link.child.start_kill();
        let _ = timeout(WRITE_LIMIT, self.link.child.wait()).await;
        let deadline = Instant::now() + WRITE_LIMIT;
        while !self.clients.is_empty() && Instant::now() < deadline {
            self.reap_exited_clients();
            tokio::time::sleep(POLL).await;
        }
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
