//! A model server in this process, which streams a response with pauses between its pieces.

use std::{
    io::{self, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use crate::dialect::{Dialect, Part};

/// Response to one request.
pub(super) struct Answer {
    pub(super) parts: Vec<Part>,
    /// Time between two pieces of text.
    pub(super) pause: Duration,
}

/// Server of one conversation. Its threads end with their connections, or with this process.
pub(super) struct Server {
    address: String,
    /// One message for each response whose text begins.
    begun: Receiver<()>,
}

impl Server {
    /// Starts a server. `answer` is called with the number of each request, from zero.
    pub(super) fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it listens").to_string();
        let (sender, begun) = mpsc::channel();
        let (answer, next) = (Arc::new(answer), AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, sender) = (Arc::clone(&answer), sender.clone());
                let index = next.fetch_add(1, Ordering::Relaxed);
                // The client may end before the whole response is written.
                std::thread::spawn(move || serve(stream, || answer(index), &sender));
            }
        });
        Self { address, begun }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits until the text of a response begins.
    pub(super) fn wait_for_text(&self) {
        self.begun.recv_timeout(Duration::from_secs(60)).expect("a request arrives");
    }
}

/// Reads one request and answers it.
fn serve(mut stream: TcpStream, answer: impl FnOnce() -> Answer, begun: &Sender<()>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&stream)?;
    let Answer { parts, pause } = answer();
    let response = Dialect::Responses.stream(&parts);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    if pause.is_zero() {
        return stream.write_all(&response);
    }
    let mut due: Option<Instant> = None;
    for event in String::from_utf8_lossy(&response).split_inclusive("\n\n") {
        if event.starts_with("event: response.output_text.delta") {
            let at = due.unwrap_or_else(|| {
                // Nobody may wait for it.
                let _ = begun.send(());
                Instant::now()
            });
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            due = Some(at + pause);
        }
        stream.write_all(event.as_bytes())?;
    }
    Ok(())
}

/// Reads the head and the body of a request, whose length is in its head or in its chunks.
fn read_request(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 << 10, stream);
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let line = read_line(&mut reader)?;
        match line.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap_or_default(),
            Some(("transfer-encoding", value)) => is_chunked = value.trim() == "chunked",
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    if !is_chunked {
        return skip(&mut reader, length);
    }
    loop {
        let size = u64::from_str_radix(&read_line(&mut reader)?, 16).map_err(io::Error::other)?;
        skip(&mut reader, size + 2)?;
        if size == 0 {
            return Ok(());
        }
    }
}

fn read_line(reader: &mut impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_ascii_lowercase())
}

fn skip(reader: &mut impl io::Read, length: u64) -> io::Result<()> {
    io::copy(&mut reader.take(length), &mut io::sink()).map(drop)
}
