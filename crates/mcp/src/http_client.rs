//! Clients for single URLs.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{Client, StatusCode, Url, redirect};

/// Redirects of one request that are followed.
const MAX_REDIRECTS: usize = 5;

/// Returns the policy that repeats a request after the statuses 307 and 308, with its method, body and headers, at another path
/// of the same origin. Other redirects are answers: they would carry headers to another host.
pub(crate) fn within_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let repeats = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
        let previous = attempt.previous();
        let is_within = previous.last().is_some_and(|from| from.origin() == attempt.url().origin());
        let is_followed = is_within && repeats.contains(&attempt.status()) && previous.len() <= MAX_REDIRECTS;
        if is_followed { attempt.follow() } else { attempt.stop() }
    })
}

/// Builds the client for one URL.
pub(crate) fn client(
    url: &Url,
    redirects: redirect::Policy,
) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    let mut builder = Client::builder()
        .redirect(redirects)
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

/// Returns whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
