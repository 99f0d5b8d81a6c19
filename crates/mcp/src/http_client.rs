//! Clients for single URLs.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{Client, Url, redirect};

/// Builds the client for one URL. Redirects are not followed: they would carry headers to another host.
pub(crate) fn client(url: &Url) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
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

/// Returns whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
