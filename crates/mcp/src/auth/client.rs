//! Requests to a server with its token.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Error as SseError, Sse};

use super::authority::TokenAuthority;
use super::post::PostRequest;
use crate::{http_client, message};

pub(super) type HttpHeaders = HashMap<HeaderName, HeaderValue>;
pub(super) type HttpFailure = StreamableHttpError<reqwest::Error>;
pub(super) type SseEvents = BoxStream<'static, Result<Sse, SseError>>;

/// Client of one server, which adds the token of its authority, if there is one.
///
/// A token that the server refuses is renewed once. The client requests no login: it returns the refusal.
#[derive(Clone)]
pub(crate) struct AuthorizedClient {
    client: Client,
    authority: Option<Arc<TokenAuthority>>,
}

impl AuthorizedClient {
    pub(crate) fn new(client: Client, authority: Option<TokenAuthority>) -> Self {
        Self { client, authority: authority.map(Arc::new) }
    }

    async fn authorized<T, F>(&self, call: impl Fn(Option<String>) -> F) -> Result<T, HttpFailure>
    where
        F: Future<Output = Result<T, HttpFailure>>,
    {
        self.with_token(call).await.map_err(with_reason)
    }

    async fn with_token<T, F>(&self, call: impl Fn(Option<String>) -> F) -> Result<T, HttpFailure>
    where
        F: Future<Output = Result<T, HttpFailure>>,
    {
        let Some(authority) = &self.authority else { return call(None).await };
        let token = authority.token().await?;
        let refused = match (call(token.clone()).await, token) {
            (Err(StreamableHttpError::AuthRequired(refused)), Some(token)) => {
                match authority.replace_token(&token).await? {
                    Some(renewed) if renewed != token => call(Some(renewed)).await,
                    _ => Err(StreamableHttpError::AuthRequired(refused)),
                }
            }
            (answered, _) => answered,
        };
        if let Err(StreamableHttpError::InsufficientScope(refused)) = &refused {
            authority.request_scopes(&refused.www_authenticate_header).await?;
        }
        refused
    }
}

/// Replaces the error of a refused redirect with the reason, which the text of the error does not contain.
fn with_reason(failure: HttpFailure) -> HttpFailure {
    if let StreamableHttpError::Client(error) = &failure
        && let Some(reason) = http_client::refused_redirect(error)
    {
        return StreamableHttpError::UnexpectedServerResponse(Cow::Owned(reason));
    }
    failure
}

/// Returns the events with messages in the form of the protocol.
fn read(events: SseEvents) -> SseEvents {
    let read = |mut event: Sse| {
        let message = event.data.as_ref().and_then(|data| message::without_null(data.as_bytes()));
        if let Some(message) = message {
            event.data = Some(message.to_string());
        }
        event
    };
    events.map(move |event| event.map(read)).boxed()
}

impl StreamableHttpClient for AuthorizedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HttpHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: HttpHeaders,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpFailure> {
        let post = PostRequest { uri, message, session, headers, limits };
        let response = self.authorized(|token| post.send(&self.client, token)).await?;
        if let StreamableHttpPostResponse::Sse(events, session) = response {
            return Ok(StreamableHttpPostResponse::Sse(read(events), session));
        }
        Ok(response)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: HttpHeaders,
    ) -> Result<(), HttpFailure> {
        let delete = |token| self.client.delete_session(uri.clone(), session.clone(), token, headers.clone());
        self.authorized(delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: HttpHeaders,
    ) -> Result<SseEvents, HttpFailure> {
        let get = |token| {
            self.client.get_stream(uri.clone(), session.clone(), last_event.clone(), token, headers.clone())
        };
        self.authorized(get).await.map(read)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: HttpHeaders,
        max_event: usize,
    ) -> Result<SseEvents, HttpFailure> {
        let get = |token| {
            let (last_event, headers) = (last_event.clone(), headers.clone());
            self.client.get_stream_with_max_sse_event_size(
                uri.clone(),
                session.clone(),
                last_event,
                token,
                headers,
                max_event,
            )
        };
        self.authorized(get).await.map(read)
    }
}
