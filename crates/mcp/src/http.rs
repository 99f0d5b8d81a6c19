//! Messages over HTTP.

use std::sync::Arc;

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::auth::{AuthorizedClient, TokenAuthority, TokenStore};
use crate::http_client::{client, within_origin};
use crate::message::MAX_MESSAGE;
use crate::spec::HttpServer;

/// Maximum number of bytes that are read of an invalid answer, such as a page, for an error message.
const MAX_ERROR_BODY: usize = 2_000;

/// Returns the transport to a server. Nothing is sent yet. A declared `Authorization` header replaces stored tokens.
///
/// # Errors
///
/// HTTP cannot be set up on this machine.
pub(crate) fn transport(
    server: &HttpServer,
    tokens: Option<&Arc<dyn TokenStore>>,
) -> Result<StreamableHttpClientTransport<AuthorizedClient>, Box<dyn std::error::Error + Send + Sync>> {
    let tokens = tokens.filter(|_| !server.has_authorization());
    let authority = tokens.map(|store| TokenAuthority::new(server.clone(), Arc::clone(store)));
    let config = StreamableHttpClientTransportConfig::with_uri(server.url())
        .custom_headers(server.headers())
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE)
        .max_error_response_size(MAX_ERROR_BODY);
    let client = AuthorizedClient::new(client(server.parsed_url(), within_origin())?, authority);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
