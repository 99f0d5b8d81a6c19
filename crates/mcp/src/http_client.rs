//! Clients for single URLs.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{Client, StatusCode, Url, redirect};

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// A redirect that is not followed.
#[derive(Debug, thiserror::Error)]
enum RefusedRedirect {
    /// The request would carry its headers and its body to another host.
    #[error(
        "it redirects to another origin, {0}, which is not followed: if that is the server, declare its URL there"
    )]
    OtherOrigin(String),
    #[error("it redirects with status {0}, which does not keep the request; expected 307 or 308")]
    OtherMethod(u16),
    #[error("it redirects more than {max} times", max = MAX_REDIRECTS)]
    TooMany,
}

/// Returns the policy that repeats a request after the statuses 307 and 308, with its method, body and headers, at another path
/// of the same origin. Other redirects are errors, and [`refused_redirect`] returns their reason.
pub(crate) fn within_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let repeats = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
        let previous = attempt.previous();
        let is_within = previous.last().is_some_and(|from| from.origin() == attempt.url().origin());
        let refused = if !is_within {
            RefusedRedirect::OtherOrigin(origin(attempt.url()))
        } else if !repeats.contains(&attempt.status()) {
            RefusedRedirect::OtherMethod(attempt.status().as_u16())
        } else if previous.len() > MAX_REDIRECTS {
            RefusedRedirect::TooMany
        } else {
            return attempt.follow();
        };
        attempt.error(refused)
    })
}

/// Returns why a redirect was not followed; `None` for other errors.
pub(crate) fn refused_redirect(error: &reqwest::Error) -> Option<String> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<RefusedRedirect>() {
            return Some(refused.to_string());
        }
        cause = error.source();
    }
    None
}

/// Returns the origin of a URL. Its path and query may contain secrets.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
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
        // Fails if the process has installed another provider, which is then used.
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
