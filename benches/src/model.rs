//! A model server in a separate process, so that its cost counts on neither side.
//!
//! The path of a base URL consists of a [`Plan`] and the name of a conversation. The server records the requests of each.
#![expect(
    clippy::disallowed_methods,
    reason = "this program runs itself as the server, which reads recordings"
)]

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream as BlockingStream,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime,
    task::JoinSet,
};

use crate::plan::Plan;

/// The argument that makes this program the server.
pub(crate) const SERVE: &str = "serve-model";

/// Bytes of one chunk of a response.
const CHUNK: usize = 16 << 10;

/// The server process. It exits when its standard input is closed, at the latest when this process exits.
pub(crate) struct ModelServer {
    address: String,
    next: AtomicUsize,
    child: Child,
    input: Option<ChildStdin>,
}

/// A conversation with the server.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: String,
    plan: String,
    name: String,
}

impl ModelServer {
    pub(crate) fn start(recordings: Option<&PathBuf>) -> Self {
        let program = std::env::current_exe().expect("the path of this program is known");
        let mut command = Command::new(program);
        command.arg(SERVE).args(recordings).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program runs");
        let mut address = String::new();
        let output = child.stdout.take().expect("it has an output");
        BufReader::new(output).read_line(&mut address).expect("the server prints its address");
        let input = child.stdin.take();
        Self { address: address.trim().to_owned(), next: AtomicUsize::new(0), child, input }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns a new conversation with this plan.
    pub(crate) fn endpoint(&self, plan: &Plan) -> Endpoint {
        let name = format!("{}-{}", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed));
        Endpoint { address: self.address.clone(), plan: plan.to_string(), name }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl Endpoint {
    /// Returns the conversation with this plan and name on a server that another process started.
    pub(crate) fn at(address: &str, plan: &Plan, name: &str) -> Self {
        Self { address: address.to_owned(), plan: plan.to_string(), name: name.to_owned() }
    }

    /// Returns the path prefix before that of the dialect.
    pub(crate) fn path(&self) -> String {
        format!("/{}/{}", self.plan, self.name)
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}{}", self.address, self.path())
    }

    /// Returns the size of each request's body, in bytes.
    pub(crate) fn sent(&self) -> Vec<u64> {
        let text = String::from_utf8_lossy(&self.ask("sent")).into_owned();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Returns the body of the first request.
    pub(crate) fn first_body(&self) -> Vec<u8> {
        self.ask("first")
    }

    fn ask(&self, what: &str) -> Vec<u8> {
        let mut stream = BlockingStream::connect(&self.address).expect("the server listens");
        write!(stream, "GET /{what}/{} HTTP/1.1\r\n\r\n", self.name).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        answer
    }
}

/// State of the server.
#[derive(Default)]
struct State {
    recordings: Option<PathBuf>,
    conversations: Mutex<HashMap<String, Conversation>>,
    /// Long responses with their framing, by plan.
    framed: Mutex<HashMap<String, Arc<Vec<u8>>>>,
}

#[derive(Default)]
struct Conversation {
    sent: Vec<usize>,
    first: Vec<u8>,
}

/// Serves until standard input is closed. The first line of output is the address.
pub(crate) fn serve(recordings: Option<PathBuf>) -> io::Result<()> {
    let state = Arc::new(State { recordings, ..State::default() });
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            let state = Arc::clone(&state);
            connections.spawn(async move {
                // A client that disconnects early is not being measured.
                let _ = serve_connection(stream, &state).await;
            });
            while connections.try_join_next().is_some() {}
        }
    })
}

async fn serve_connection(mut stream: TcpStream, state: &State) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 << 10);
    while let Some(head) = read_head(&mut stream, &mut buffer).await? {
        let body = read_body(&mut stream, &mut buffer, &head).await?;
        let mut segments = head.path.split('/').skip(1);
        let (first, name) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
        match (head.is_post, first) {
            (false, "sent") => {
                let sent = lock(&state.conversations).get(name).map(|known| known.sent.clone());
                let lines: String =
                    sent.unwrap_or_default().iter().map(|bytes| format!("{bytes}\n")).collect();
                return stream.write_all(lines.as_bytes()).await;
            }
            (false, _) => {
                let first = lock(&state.conversations).get(name).map(|known| known.first.clone());
                return stream.write_all(&first.unwrap_or_default()).await;
            }
            (true, plan) => {
                let answer = state.answer(plan, name, body);
                stream.write_all(&answer).await?;
            }
        }
    }
    Ok(())
}

impl State {
    fn answer(&self, plan: &str, name: &str, body: Vec<u8>) -> Arc<Vec<u8>> {
        let parsed = Plan::parse(plan).unwrap_or_else(Plan::text);
        let index = {
            let mut conversations = lock(&self.conversations);
            let known = conversations.entry(name.to_owned()).or_default();
            known.sent.push(body.len());
            known.sent.len() - 1
        };
        let recordings = self.recordings.as_deref();
        let answer = if parsed.is_one_answer() {
            let mut answers = lock(&self.framed);
            let make = || Arc::new(framed(&parsed.answer(index, &body, recordings)));
            Arc::clone(answers.entry(plan.to_owned()).or_insert_with(make))
        } else {
            Arc::new(framed(&parsed.answer(index, &body, recordings)))
        };
        if index == 0 {
            lock(&self.conversations).entry(name.to_owned()).or_default().first = body;
        }
        answer
    }
}

/// Returns a chunked response with its head.
fn framed(answer: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut bytes = Vec::with_capacity(answer.len() + answer.len() / 1_000 + 256);
    bytes.extend_from_slice(head.as_bytes());
    for chunk in answer.chunks(CHUNK) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

struct Head {
    is_post: bool,
    path: String,
    length: usize,
    is_chunked: bool,
}

/// Reads the head of a request; `None` at the end of the connection.
async fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Head>> {
    let end = loop {
        if let Some(at) = find(buffer, b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let text: Vec<u8> = buffer.drain(..end).collect();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let is_post = words.next() == Some("POST");
    let path = words.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_ascii_lowercase()))
        .collect();
    let value =
        |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let length = value("content-length").and_then(|value| value.parse().ok()).unwrap_or_default();
    Ok(Some(Head { is_post, path, length, is_chunked: value("transfer-encoding") == Some("chunked") }))
}

async fn read_body(stream: &mut TcpStream, buffer: &mut Vec<u8>, head: &Head) -> io::Result<Vec<u8>> {
    if !head.is_chunked {
        return take(stream, buffer, head.length).await;
    }
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = find(buffer, b"\r\n") {
                break at + 2;
            }
            fill(stream, buffer).await?;
        };
        let line: Vec<u8> = buffer.drain(..end).collect();
        let digits = String::from_utf8_lossy(&line).trim().to_owned();
        let length = usize::from_str_radix(&digits, 16).map_err(io::Error::other)?;
        let chunk = take(stream, buffer, length + 2).await?;
        body.extend_from_slice(chunk.get(..length).unwrap_or_default());
        if length == 0 {
            return Ok(body);
        }
    }
}

async fn take(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    Ok(buffer.drain(..length).collect())
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    if stream.read_buf(buffer).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
