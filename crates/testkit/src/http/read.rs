//! Reading of requests: bounded heads, and bodies with a length or in chunks.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::HttpRequest;

/// Maximum size of a head, and of the trailers of a chunked body, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of header lines.
const MAX_HEADERS: usize = 128;
/// Size of one read, in bytes.
const READ_SIZE: usize = 16 * 1024;

/// Error while reading a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The client closed the connection between two requests.
    #[error("connection closed")]
    Closed,
    #[error("request is not HTTP/1.1: {0}")]
    Malformed(&'static str),
    #[error("request head is larger than {MAX_HEAD} bytes")]
    HeadTooLarge,
    #[error("request body is larger than {0} bytes")]
    BodyTooLarge(usize),
    #[error("connection failed")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Returns the status to respond with; `None` if the client cannot be reached.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Malformed(_) => Some(400),
            Self::HeadTooLarge => Some(431),
            Self::BodyTooLarge(_) => Some(413),
            Self::Closed | Self::Io(_) => None,
        }
    }
}

/// Reader of consecutive requests on one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Bytes read and not yet consumed.
    buffer: Vec<u8>,
    max_body: usize,
}

enum Length {
    Known(usize),
    Chunked,
}

struct Head {
    request: HttpRequest,
    length: Length,
    expects_continue: bool,
}

impl Reader {
    pub(crate) fn new(max_body: usize) -> Self {
        Self { buffer: Vec::new(), max_body }
    }

    /// Reads the next request. Sends `100 Continue` if the client expects it.
    ///
    /// Dropping the future loses the bytes read, so the connection must be closed then.
    pub(crate) async fn next<S>(&mut self, stream: &mut S) -> Result<HttpRequest, ReadError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut head = self.head(stream).await?;
        if let Length::Known(length) = head.length
            && length > self.max_body
        {
            return Err(ReadError::BodyTooLarge(self.max_body));
        }
        if head.expects_continue {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        head.request.body = match head.length {
            Length::Known(length) => self.known(stream, length).await?,
            Length::Chunked => self.chunked(stream).await?,
        };
        Ok(head.request)
    }

    async fn head<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<Head, ReadError> {
        loop {
            if let Some((length, head)) = parse_head(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(head);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(ReadError::HeadTooLarge);
            }
            let has_started = !self.buffer.is_empty();
            if !self.fill(stream).await? {
                return Err(if has_started {
                    ReadError::Malformed("head is truncated")
                } else {
                    ReadError::Closed
                });
            }
        }
    }

    async fn known<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        length: usize,
    ) -> Result<Vec<u8>, ReadError> {
        while self.buffer.len() < length {
            self.fill_body(stream).await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn chunked<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        loop {
            let size = self.chunk_size(stream).await?;
            if size == 0 {
                self.trailers(stream).await?;
                return Ok(body);
            }
            if size > self.max_body.saturating_sub(body.len()) {
                return Err(ReadError::BodyTooLarge(self.max_body));
            }
            while self.buffer.len() < size + 2 {
                self.fill_body(stream).await?;
            }
            body.extend(self.buffer.drain(..size));
            if self.buffer.drain(..2).ne(*b"\r\n") {
                return Err(ReadError::Malformed("a chunk does not have its announced size"));
            }
        }
    }

    /// Consumes a chunk's size line.
    async fn chunk_size<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<usize, ReadError> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete((line, size))) => {
                    self.buffer.drain(..line);
                    return usize::try_from(size).map_err(|_| ReadError::BodyTooLarge(self.max_body));
                }
                Ok(httparse::Status::Partial) if self.buffer.len() <= MAX_HEAD => {
                    self.fill_body(stream).await?
                }
                Ok(httparse::Status::Partial) | Err(_) => {
                    return Err(ReadError::Malformed("a chunk has no size"));
                }
            }
        }
    }

    /// Consumes the trailers after the last chunk, including the empty line.
    async fn trailers<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<(), ReadError> {
        let mut consumed = 0;
        while consumed <= MAX_HEAD {
            match self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                Some(line) => {
                    self.buffer.drain(..line + 2);
                    consumed += line + 2;
                    if line == 0 {
                        return Ok(());
                    }
                }
                None if self.buffer.len() > MAX_HEAD => return Err(ReadError::HeadTooLarge),
                None => self.fill_body(stream).await?,
            }
        }
        Err(ReadError::HeadTooLarge)
    }

    async fn fill_body<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<(), ReadError> {
        if self.fill(stream).await? { Ok(()) } else { Err(ReadError::Malformed("body is truncated")) }
    }

    /// Reads more bytes; returns `false` at the end of the connection.
    async fn fill<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Result<bool, ReadError> {
        self.buffer.reserve(READ_SIZE);
        Ok(stream.read_buf(&mut self.buffer).await? > 0)
    }
}

/// Parses the head at the start of the bytes; returns it with its length, or `None` while it is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(usize, Head)>, ReadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(ReadError::HeadTooLarge),
        Err(_) => return Err(ReadError::Malformed("head does not parse")),
    };
    let headers: Vec<(String, String)> = parsed
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()))
        .collect();
    let words = |name: &str, word: &str| {
        headers
            .iter()
            .filter(|(header, _)| header == name)
            .any(|(_, value)| value.split(',').any(|found| found.trim().eq_ignore_ascii_case(word)))
    };
    let head = Head {
        length: body_length(&headers)?,
        expects_continue: words("expect", "100-continue"),
        request: HttpRequest {
            method: parsed.method.unwrap_or_default().to_owned(),
            path: parsed.path.unwrap_or_default().to_owned(),
            keep_alive: parsed.version == Some(1) && !words("connection", "close"),
            headers,
            body: Vec::new(),
        },
    };
    Ok(Some((length, head)))
}

fn body_length(headers: &[(String, String)]) -> Result<Length, ReadError> {
    let values =
        |name: &'static str| headers.iter().filter(move |(header, _)| header == name).map(|(_, value)| value);
    let mut codings = values("transfer-encoding");
    let mut lengths = values("content-length");
    match (codings.next(), lengths.next()) {
        (None, None) => Ok(Length::Known(0)),
        (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") && codings.next().is_none() => {
            Ok(Length::Chunked)
        }
        (None, Some(length)) if lengths.all(|other| other == length) => length
            .parse()
            .map(Length::Known)
            .map_err(|_| ReadError::Malformed("Content-Length is not a number")),
        (Some(_), Some(_)) => Err(ReadError::Malformed("Content-Length and Transfer-Encoding conflict")),
        (Some(_), None) => Err(ReadError::Malformed("Transfer-Encoding is not chunked")),
        (None, Some(_)) => Err(ReadError::Malformed("Content-Length is given twice")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    /// Sends the bytes in pieces of the given size and reads requests until an error.
    async fn read_all(bytes: &[u8], piece: usize, max_body: usize) -> (Vec<HttpRequest>, ReadError) {
        let (mut client, mut server): (DuplexStream, DuplexStream) = duplex(1 << 20);
        let send = async {
            for piece in bytes.chunks(piece) {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(client);
        };
        let read = async {
            let mut reader = Reader::new(max_body);
            let mut requests = Vec::new();
            loop {
                match reader.next(&mut server).await {
                    Ok(request) => requests.push(request),
                    Err(error) => return (requests, error),
                }
            }
        };
        tokio::join!(send, read).1
    }

    const TWO: &[u8] = b"POST /a?b=c HTTP/1.1\r\nContent-Length: 5\r\nX-Key: v\r\n\r\nhello\
        POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
        3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";

    #[tokio::test]
    async fn requests_do_not_depend_on_read_boundaries() {
        for piece in 1..=TWO.len() {
            let (requests, end) = read_all(TWO, piece, 1024).await;
            assert!(matches!(end, ReadError::Closed), "{end}");
            let bodies: Vec<&[u8]> = requests.iter().map(|request| request.body.as_slice()).collect();
            assert_eq!(bodies, [b"hello".as_slice(), b"abc0123456789"]);
            assert_eq!((requests[0].path.as_str(), requests[0].keep_alive), ("/a?b=c", true));
            assert_eq!(requests[0].headers[1], ("x-key".to_owned(), "v".to_owned()));
            assert!(!requests[1].keep_alive);
        }
    }

    #[tokio::test]
    async fn malformed_requests_are_explained() {
        let many = format!("POST / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        let long = format!("POST / HTTP/1.1\r\na: {}", "b".repeat(MAX_HEAD + READ_SIZE));
        let cases: [(&[u8], &str, Option<u16>); 10] = [
            (b"", "connection closed", None),
            (b"POST / HT", "request is not HTTP/1.1: head is truncated", Some(400)),
            (b"\x01\x02 nonsense\r\n\r\n", "request is not HTTP/1.1: head does not parse", Some(400)),
            (
                b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                "request is not HTTP/1.1: Content-Length is not a number",
                Some(400),
            ),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "request is not HTTP/1.1: Content-Length and Transfer-Encoding conflict",
                Some(400),
            ),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
                "request is not HTTP/1.1: body is truncated",
                Some(400),
            ),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
                "request body is larger than 16 bytes",
                Some(413),
            ),
            (
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
                "request body is larger than 16 bytes",
                Some(413),
            ),
            (many.as_bytes(), "request head is larger than 65536 bytes", Some(431)),
            (long.as_bytes(), "request head is larger than 65536 bytes", Some(431)),
        ];
        for (bytes, message, status) in cases {
            let (_, error) = read_all(bytes, 4096, 16).await;
            assert_eq!((error.to_string().as_str(), error.status()), (message, status));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), chunked in any::<bool>(),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let head: &[u8] = if chunked { b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" } else { b"" };
            let (requests, _) = runtime.block_on(read_all(&[head, bytes.as_slice()].concat(), 7, 64));
            prop_assert!(requests.iter().all(|request| request.body.len() <= 64));
        }
    }
}
