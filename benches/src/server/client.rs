//! Subscribers of many streams in one process, which count the events that arrive.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::control::answer_lines;
use super::latency::{Percentiles, Times};

/// Time limit of a round.
const PATIENCE: Duration = Duration::from_secs(120);

/// Begins with the first event of a response, and ends with the last one.
const FIRST: &str = "\"kind\":\"ASSISTANT_TEXT_START\"";
const LAST: &str = "\"kind\":\"PROCESSING_END\"";

/// Part of each delta.
pub(crate) const DELTA: &str = "\"kind\":\"ASSISTANT_TEXT_DELTA\"";

/// Events that arrived in one round, from the start of each response to its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) events: usize,
    pub(super) deltas: usize,
    pub(super) bytes: usize,
    pub(super) percentiles: Percentiles,
}

impl Round {
    fn words(self) -> String {
        format!("{} {} {} {}", self.events, self.deltas, self.bytes, self.percentiles.words())
    }

    pub(super) fn parse(words: &str) -> Self {
        let mut words = words.splitn(4, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("three numbers are first");
        let (events, deltas, bytes) = (number(), number(), number());
        Self { events, deltas, bytes, percentiles: Percentiles::parse(words.next().unwrap_or_default()) }
    }
}

/// State of all streams.
#[derive(Debug, Default)]
struct Arrived {
    round: Round,
    times: Times,
    /// Events of the first stream, and the file for them.
    record: Option<(String, String)>,
}

#[derive(Debug)]
struct Subscribers {
    arrived: Mutex<Arrived>,
    /// Number of streams whose response has ended.
    ended: watch::Sender<usize>,
}

impl Subscribers {
    fn lock(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows streams of the server at an address, as the lines of the input say.
pub(crate) fn subscribe(arguments: &[String]) -> io::Result<()> {
    let [address] = arguments else { return Err(io::ErrorKind::InvalidInput.into()) };
    // One thread, so that a server has a core to itself.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let subscribers = Arc::new(Subscribers { arrived: Mutex::default(), ended: watch::Sender::new(0) });
    let (mut paths, mut streams) = (Vec::new(), JoinSet::new());
    answer_lines(|verb, rest| {
        let answer = match verb {
            "path" => {
                paths.push(rest.to_owned());
                String::new()
            }
            "connect" => {
                let copies: usize = rest.parse().expect("it is a number");
                runtime.block_on(async {
                    for path in paths.iter().flat_map(|path| std::iter::repeat_n(path, copies)) {
                        let stream = Stream::open(address, path).await.expect("the server has the stream");
                        let is_first = streams.is_empty();
                        streams.spawn(stream.follow(Arc::clone(&subscribers), is_first));
                    }
                });
                String::new()
            }
            "begin" => {
                let record = (!rest.is_empty()).then(|| (String::new(), rest.to_owned()));
                *subscribers.lock() = Arrived { record, ..Arrived::default() };
                subscribers.ended.send_replace(0);
                String::new()
            }
            "wait" => {
                let all: usize = rest.parse().expect("it is a number");
                let mut ended = subscribers.ended.subscribe();
                let waited = runtime.block_on(async {
                    tokio::time::timeout(PATIENCE, ended.wait_for(|ended| *ended == all)).await.is_ok()
                });
                assert!(waited, "{} of {all} responses ended in time", *subscribers.ended.borrow());
                finish(&mut subscribers.lock()).words()
            }
            _ => return None,
        };
        Some(answer)
    })
}

fn finish(arrived: &mut Arrived) -> Round {
    if let Some((events, file)) = arrived.record.take() {
        super::write(file.as_ref(), events.as_bytes());
    }
    Round { percentiles: arrived.times.take(), ..arrived.round }
}

/// Connection with one stream of events.
struct Stream {
    connection: TcpStream,
    buffer: Vec<u8>,
    /// Whether a response is under way.
    is_open: bool,
}

impl Stream {
    /// Connects and reads up to the event that says that the past is over.
    async fn open(address: &str, path: &str) -> io::Result<Self> {
        let mut connection = TcpStream::connect(address).await?;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
        connection.write_all(head.as_bytes()).await?;
        let mut stream = Self { connection, buffer: Vec::new(), is_open: false };
        let mut is_ready = false;
        while !is_ready {
            stream.read(|event| is_ready |= event.contains("event: ready\n")).await?;
        }
        Ok(stream)
    }

    async fn follow(mut self, subscribers: Arc<Subscribers>, is_first: bool) {
        loop {
            let mut is_open = self.is_open;
            let read = self.read(|event| {
                is_open |= event.contains(FIRST);
                if !is_open {
                    return;
                }
                let mut arrived = subscribers.lock();
                arrived.round.events += 1;
                arrived.round.bytes += event.len();
                if event.contains(DELTA) {
                    arrived.round.deltas += 1;
                    arrived.times.arrived(event);
                }
                if is_first && let Some((events, _)) = &mut arrived.record {
                    events.push_str(event);
                }
                drop(arrived);
                if event.contains(LAST) {
                    is_open = false;
                    subscribers.ended.send_modify(|ended| *ended += 1);
                }
            });
            // A server that ends shows up as a round without an end.
            if read.await.is_err() {
                return;
            }
            self.is_open = is_open;
        }
    }

    /// Waits for more bytes and passes each complete event to `each`.
    async fn read(&mut self, mut each: impl FnMut(&str)) -> io::Result<()> {
        if self.connection.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while let Some(rest) = self.buffer.get(done..)
            && let Some(at) = rest.windows(2).position(|pair| pair == b"\n\n")
        {
            let piece = String::from_utf8_lossy(rest.get(..at + 2).unwrap_or_default());
            // Before it is the size of the chunk; events have no carriage returns.
            each(piece.rsplit_once("\r\n").map_or(&*piece, |(_, event)| event));
            done += at + 2;
        }
        self.buffer.drain(..done);
        Ok(())
    }
}
