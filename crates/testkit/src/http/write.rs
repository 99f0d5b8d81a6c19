//! Writing of responses: complete ones with a length, streams in chunks.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Writer of responses on one connection.
#[derive(Debug)]
pub(crate) struct Writer<'a, W> {
    stream: &'a mut W,
    /// Whether the connection stays open after the response.
    keep_alive: bool,
    /// Timeout for writing one piece.
    timeout: Duration,
}

impl<'a, W: AsyncWrite + Unpin> Writer<'a, W> {
    pub(crate) fn new(stream: &'a mut W, keep_alive: bool, timeout: Duration) -> Self {
        Self { stream, keep_alive, timeout }
    }

    /// Writes a response with a length; with `cut`, only half of its body.
    pub(crate) async fn complete(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        cut: bool,
    ) -> io::Result<()> {
        let mut bytes = self.head(status, headers, &format!("content-length: {}", body.len()));
        let sent = if cut { body.len() / 2 } else { body.len() };
        bytes.extend(body.iter().take(sent));
        self.send(&bytes).await
    }

    /// Writes the head of a stream.
    pub(crate) async fn begin(&mut self, headers: &[(String, String)]) -> io::Result<()> {
        let bytes = self.head(200, headers, "transfer-encoding: chunked");
        self.send(&bytes).await
    }

    /// Writes one chunk; with `cut`, announces its full size and sends half.
    pub(crate) async fn chunk(&mut self, data: &[u8], cut: bool) -> io::Result<()> {
        let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
        if cut {
            bytes.extend(data.iter().take(data.len() / 2));
        } else {
            bytes.extend(data);
            bytes.extend(b"\r\n");
        }
        self.send(&bytes).await
    }

    /// Writes the end of a stream.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        self.send(b"0\r\n\r\n").await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = timeout(self.timeout, async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        });
        sent.await?
    }

    fn head(&self, status: u16, headers: &[(String, String)], length: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n{length}\r\n", reason(status));
        for (name, value) in headers {
            // A line break in a scripted value would end the head prematurely.
            let value = value.replace(['\r', '\n'], " ");
            // Writing to a string cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !self.keep_alive {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// Returns the reason phrase of a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ if status < 500 => "Client Error",
        _ => "Server Error",
    }
}
