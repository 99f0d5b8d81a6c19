//! A minimal HTTP/1.1 and event stream client, independent of the server's code.

use pintle_testkit::{Dialect, ScriptedServer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A parsed response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body is complete according to its framing.
    pub(crate) complete: bool,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the message of an error response.
    pub(crate) fn message(&self) -> String {
        self.json().pointer("/error/message").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Returns the events of a stream as name and data.
    pub(crate) fn events(&self) -> Vec<(Option<String>, String)> {
        let text = String::from_utf8(self.body.clone()).unwrap();
        let blocks = text.split("\n\n").filter(|block| block.lines().any(|line| line.starts_with("data: ")));
        blocks
            .map(|block| {
                let field =
                    |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                (field("event: "), field("data: ").unwrap())
            })
            .collect()
    }

    /// Returns the data of all JSON events.
    pub(crate) fn data(&self) -> Vec<Value> {
        self.events().iter().filter_map(|(_, data)| serde_json::from_str(data).ok()).collect()
    }
}

/// Returns the path of a dialect. Gemini's contains the model and the kind of response.
pub(crate) fn path(dialect: Dialect, model: &str, stream: bool) -> String {
    match (dialect, stream) {
        (Dialect::OpenAiResponses, _) => "/v1/responses".to_owned(),
        (Dialect::AnthropicMessages, _) => "/v1/messages".to_owned(),
        (Dialect::ChatCompletions, _) => "/v1/chat/completions".to_owned(),
        (Dialect::Gemini, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        (Dialect::Gemini, false) => format!("/v1beta/models/{model}:generateContent"),
    }
}

pub(crate) fn key_header(dialect: Dialect, key: &str) -> String {
    match dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => format!("Authorization: Bearer {key}"),
        Dialect::AnthropicMessages => format!("x-api-key: {key}\r\nanthropic-version: 2023-06-01"),
        Dialect::Gemini => format!("x-goog-api-key: {key}"),
    }
}

/// Posts a body on a new connection.
pub(crate) async fn post(
    server: &ScriptedServer,
    dialect: Dialect,
    path: &str,
    body: &Value,
) -> HttpResponse {
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    send(&mut connection, path, &key_header(dialect, "key"), body).await;
    receive(&mut connection).await
}

/// Sends a request with a length.
pub(crate) async fn send(connection: &mut TcpStream, path: &str, headers: &str, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{headers}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(body.as_bytes()).await.unwrap();
}

/// Reads one response, which is incomplete if the connection ends early.
pub(crate) async fn receive(connection: &mut TcpStream) -> HttpResponse {
    let mut bytes = Vec::new();
    loop {
        if let Some(response) = parse(&bytes, false) {
            return response;
        }
        if connection.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return parse(&bytes, true).unwrap_or(HttpResponse {
                status: 0,
                headers: Vec::new(),
                body: bytes,
                complete: false,
            });
        }
    }
}

/// Parses a response; `None` if more bytes are needed.
fn parse(bytes: &[u8], ended: bool) -> Option<HttpResponse> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse().unwrap());
    let (body, complete) = match length {
        Some(length) => (rest[..rest.len().min(length)].to_vec(), rest.len() >= length),
        None => dechunk(rest),
    };
    (complete || ended).then_some(HttpResponse { status, headers, body, complete })
}

/// Returns the data of the chunks so far, including an incomplete one, and whether the last chunk was among them.
fn dechunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let rest = &bytes[end + 2..];
        if size == 0 {
            return (body, rest == b"\r\n");
        }
        body.extend(&rest[..size.min(rest.len())]);
        match rest.get(size + 2..) {
            Some(rest) => bytes = rest,
            None => break,
        }
    }
    (body, false)
}
