//! Messages that are posted to a server, and their responses.
//!
//! The client of rmcp parses JSON bodies strictly. Here, [`message::parse`] reads them, as in the other transports.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::SseStream;

use super::client::{HttpFailure, HttpHeaders, SseEvents};
use crate::message;
use crate::process_log::shorten;

/// Maximum number of characters of an invalid message in an error.
const MAX_PREVIEW: usize = 256;

/// Message to a server.
pub(super) struct PostRequest {
    pub(super) uri: Arc<str>,
    pub(super) message: ClientJsonRpcMessage,
    /// Session of the server, once it has named one.
    pub(super) session: Option<Arc<str>>,
    pub(super) headers: HttpHeaders,
    pub(super) limits: StreamableHttpResponseLimits,
}

impl PostRequest {
    /// Sends the message and returns its response.
    ///
    /// # Errors
    ///
    /// A refusal of the token, an error status without a JSON-RPC error, and a response that is invalid or too large.
    pub(super) async fn send(
        &self,
        client: &Client,
        token: Option<String>,
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let response = self.request(client, token).await?;
        if let Some(refused) = refusal(&response) {
            return Err(refused);
        }
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.failed(response).await;
        }
        let is_empty = response.content_length() == Some(0);
        if [StatusCode::ACCEPTED, StatusCode::NO_CONTENT].contains(&status)
            || (is_empty && !self.awaits_response())
        {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = session_of(&response);
        match media_type(&response) {
            Some(media) if media == EVENT_STREAM_MIME_TYPE => {
                let events = events(response, self.limits.max_sse_event_size);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Some(media) if media == JSON_MIME_TYPE => {
                let body = read_body(response, self.limits.max_json_response_size).await?;
                match message::parse(&body) {
                    Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                    Err(_error) if !self.awaits_response() => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => {
                        let preview = shorten(String::from_utf8_lossy(&body).trim(), MAX_PREVIEW);
                        let text = format!("the JSON body is not a message: {error}: {preview}");
                        Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text)))
                    }
                }
            }
            _ if !self.awaits_response() => Ok(StreamableHttpPostResponse::Accepted),
            media => Err(StreamableHttpError::UnexpectedContentType(media)),
        }
    }

    async fn request(&self, client: &Client, token: Option<String>) -> Result<Response, HttpFailure> {
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let mut request = client.post(&*self.uri).header(ACCEPT, accepted);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            let reserved = ["accept", HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];
            if reserved.iter().any(|reserved| reserved.eq_ignore_ascii_case(name.as_str())) {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = &self.session {
            request = request.header(HEADER_SESSION_ID, &**session);
        }
        Ok(request.json(&self.message).send().await?)
    }

    /// Returns whether the server has to answer with a message.
    fn awaits_response(&self) -> bool {
        matches!(self.message, ClientJsonRpcMessage::Request(_))
    }

    /// Returns the JSON-RPC error in a response with an error status.
    ///
    /// # Errors
    ///
    /// The status, and the beginning of the body, if it contains no such error.
    async fn failed(&self, response: Response) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let status = response.status();
        let session = session_of(&response);
        let is_auth = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        let is_json = media_type(&response).as_deref() == Some(JSON_MIME_TYPE);
        let unavailable = unavailable(&response);
        let (body, error) = match unavailable {
            Some(unavailable) if !is_json || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(unavailable.into());
            }
            _ if is_json && !is_auth => match read_body(response, self.limits.max_json_response_size).await {
                Ok(body) => {
                    let error = message::parse(&body).ok().and_then(ServerJsonRpcMessage::into_error);
                    (body, error)
                }
                Err(failure) => return Err(unavailable.map_or(failure, HttpFailure::from)),
            },
            _ => (read_beginning(response, self.limits.max_error_response_size).await, None),
        };
        let text = || {
            let body = body.get(..self.limits.max_error_response_size).unwrap_or(&body);
            format!("HTTP {status}: {}", String::from_utf8_lossy(body))
        };
        match (self.refused_discovery(status), error) {
            (Some(id), error) => {
                // The server may not have read the request, and then cannot repeat its id.
                let error = error.map_or_else(
                    || {
                        ErrorData::invalid_request(
                            format!("server/discover was rejected with {}", text()),
                            None,
                        )
                    },
                    |(error, _id)| error,
                );
                let message = ServerJsonRpcMessage::error(error, Some(id));
                Ok(StreamableHttpPostResponse::Json(message, None))
            }
            (None, Some((error, id))) => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, id), session))
            }
            (None, None) => match unavailable {
                Some(unavailable) => Err(unavailable.into()),
                None => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text()))),
            },
        }
    }

    /// Returns the id of a `server/discover` request that was rejected with this status, as a server of an older version
    /// rejects it. The handshake then continues with `initialize`.
    fn refused_discovery(&self, status: StatusCode) -> Option<RequestId> {
        let is_auth = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        if self.session.is_some() || !status.is_client_error() || is_auth {
            return None;
        }
        match &self.message {
            ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
            {
                Some(request.id.clone())
            }
            ClientJsonRpcMessage::Request(_)
            | ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Error(_) => None,
        }
    }
}

/// Returns the error for a response that requests a login or further scopes.
fn refusal(response: &Response) -> Option<HttpFailure> {
    let status = response.status();
    if ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
        return None;
    }
    let Ok(challenge) = response.headers().get(WWW_AUTHENTICATE)?.to_str() else {
        let text = Cow::Borrowed("invalid WWW-Authenticate header");
        return Some(StreamableHttpError::UnexpectedServerResponse(text));
    };
    let challenge = challenge.to_owned();
    Some(if status == StatusCode::UNAUTHORIZED {
        StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
    } else {
        StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None))
    })
}

/// Returns the error for a server that is overloaded or fails.
fn unavailable(response: &Response) -> Option<HttpStatusError> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Some(HttpStatusError::new(status.as_u16(), retry_after.map(str::to_owned)))
}

fn session_of(response: &Response) -> Option<String> {
    let session = response.headers().get(HEADER_SESSION_ID)?;
    session.to_str().ok().map(str::to_owned)
}

/// Returns the media type of a response, without parameters.
fn media_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Returns a body of at most `limit` bytes.
async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, HttpFailure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if chunk.len() > limit - body.len() {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns the first `limit` bytes of a body, or those that arrive.
async fn read_beginning(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < limit
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(limit);
    body
}

/// Returns the events of a response. An event above `limit` bytes is an error.
fn events(response: Response, limit: usize) -> SseEvents {
    let mut size = EventSize::default();
    let chunks = response.bytes_stream().map(move |chunk| {
        chunk.map_err(io::Error::other).and_then(|chunk| match size.add(&chunk) <= limit {
            true => Ok(chunk),
            false => Err(io::Error::other(format!("an event is above {limit} bytes"))),
        })
    });
    SseStream::from_bytes_stream(chunks).boxed()
}

/// Size of the event that is being received.
#[derive(Debug, Default)]
struct EventSize {
    /// Bytes since the previous empty line.
    event: usize,
    /// Bytes of the current line.
    line: usize,
    is_after_return: bool,
}

impl EventSize {
    /// Counts bytes, and returns the size of the largest event that they are a part of.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let mut largest = 0;
        for byte in bytes {
            let is_second_half = *byte == b'\n' && self.is_after_return;
            self.is_after_return = *byte == b'\r';
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => {
                    self.event += 1;
                    self.line = 0;
                }
                _ => {
                    self.event += 1;
                    self.line += 1;
                }
            }
            largest = largest.max(self.event);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: &'static str) -> Response {
        ::http::Response::new(body).into()
    }

    #[tokio::test]
    async fn a_large_body_is_refused_for_its_size() {
        assert_eq!(read_body(response("12345678"), 8).await.unwrap(), b"12345678");
        let refused = read_body(response("123456789"), 8).await.unwrap_err();
        assert!(matches!(refused, StreamableHttpError::ResponseBodyTooLarge { max_size: 8 }), "{refused:?}");
    }

    #[tokio::test]
    async fn a_large_event_is_refused_for_its_size() {
        let event = events(response("data: 12\n\n"), 9).next().await.unwrap().unwrap();
        assert_eq!(event.data.as_deref(), Some("12"));
        let refused = events(response("data: 1234\n\n"), 9).next().await.unwrap().unwrap_err();
        assert!(format!("{refused:?}").contains("an event is above 9 bytes"), "{refused:?}");
    }

    #[test]
    fn size_of_an_event_ends_at_an_empty_line() {
        for (chunks, largest) in [
            (&["data: a\n\ndata: b\n\n"][..], 8),
            (&["data: a\r\n\r\ndata: b\r\n\r\n"], 8),
            (&["data: a\r\rdata: b\r\r"], 8),
            (&["data: a\r", "\n\r", "\ndata: b"], 8),
            (&["data: a\ndata: b\n"], 16),
            (&["data: ", "aaaa", "aaaa"], 14),
            (&["\n\n\n"], 0),
        ] {
            let mut size = EventSize::default();
            let found = chunks.iter().map(|chunk| size.add(chunk.as_bytes())).max();
            assert_eq!(found, Some(largest), "{chunks:?}");
        }
    }
}
