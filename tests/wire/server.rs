//! A server that sends one response to one request, in given pieces.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Maximum size of a request, in bytes.
const LARGEST_REQUEST: usize = 16 * 1024 * 1024;

/// An address on loopback.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    /// Such as `http://127.0.0.1:1`.
    pub(crate) address: String,
}

/// The response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) framing: Framing,
}

/// How the end of the body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each piece is a chunk, which a client reads separately however the network merges packets.
    Chunked,
    /// The connection is closed.
    ToTheEnd,
}

/// The request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        Ok(Self { listener, address })
    }

    /// Accepts one request, stores it in `seen`, and responds. A client that disconnects is not an error.
    pub(crate) async fn answer(&self, answer: &Answer, seen: &mut Option<Call>) -> io::Result<()> {
        let (mut socket, _) = self.listener.accept().await?;
        socket.set_nodelay(true)?;
        *seen = Some(read_call(&mut socket).await?);
        if write(&mut socket, answer).await.is_ok() {
            let _ = socket.shutdown().await;
        }
        Ok(())
    }
}

async fn write(socket: &mut TcpStream, answer: &Answer) -> io::Result<()> {
    socket.write_all(answer.head().as_bytes()).await?;
    match answer.framing {
        Framing::Chunked => {
            let mut body = Vec::new();
            for piece in &answer.pieces {
                body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                body.extend_from_slice(piece);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            socket.write_all(&body).await
        }
        Framing::ToTheEnd => {
            for piece in &answer.pieces {
                socket.write_all(piece).await?;
                // Lets the client read in between.
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    }
}

impl Answer {
    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} Recorded\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.framing == Framing::Chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        head
    }
}

async fn read_call(socket: &mut TcpStream) -> io::Result<Call> {
    let mut bytes = Vec::new();
    loop {
        if let Some(call) = parse(&bytes) {
            return Ok(call);
        }
        let read = tokio::time::timeout(Duration::from_secs(20), socket.read_buf(&mut bytes)).await??;
        if read == 0 || bytes.len() > LARGEST_REQUEST {
            return Err(io::Error::other("no whole request came"));
        }
    }
}

/// Returns the request if it is complete. The adapters send the length of every body.
fn parse(bytes: &[u8]) -> Option<Call> {
    let length = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, rest) = bytes.split_at(length);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse::<usize>().ok()?;
    let body = rest.get(4..4_usize.checked_add(length)?)?.to_vec();
    Some(Call { path, headers, body })
}
