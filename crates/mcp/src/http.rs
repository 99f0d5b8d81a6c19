//! Messages over HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{Client, Url, redirect};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::lines::MAX_MESSAGE;
use crate::spec::HttpServer;

/// Bytes of an answer that is no message, such as a page, that are read for the message of an error.
const MAX_ERROR_BODY: usize = 2_000;

/// Returns the connection to a server. Nothing is sent yet.
///
/// # Errors
///
/// HTTP cannot be set up on this machine.
pub(crate) fn transport(
    server: &HttpServer,
) -> Result<StreamableHttpClientTransport<Client>, Box<dyn std::error::Error + Send + Sync>> {
    let config = StreamableHttpClientTransportConfig::with_uri(server.url())
        .custom_headers(server.headers())
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE)
        .max_error_response_size(MAX_ERROR_BODY);
    Ok(StreamableHttpClientTransport::with_client(client(server.parsed_url())?, config))
}

/// Builds the client for one URL. Redirects are not followed: they would carry headers to another host.
fn client(url: &Url) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "https" {
        // Fails if the process has installed another provider, which then stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        // Loading the roots of the system takes long, and plain HTTP needs none.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let roots = rustls::RootCertStore::empty();
        builder =
            builder.tls_backend_preconfigured(config.with_root_certificates(roots).with_no_client_auth());
    }
    Ok(builder.build().map_err(reqwest::Error::without_url)?)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
