//! HTTP client of logins.

use std::time::Duration;

use futures_util::StreamExt as _;
use http::Response;
use reqwest::{Url, redirect};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};

use crate::http_client::{client, is_loopback, origin};

/// Time for one request of a login.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a document or a token, in bytes.
const MAX_BODY: usize = 1 << 20;

/// Sends the requests of a login to one server.
///
/// Redirects are not followed, since the contents of a request are meant for its own URL. HTTPS is required, unless the
/// server is on this machine. Only then may an authorization server be on this machine as well.
pub(super) struct OAuthHttp {
    is_local: bool,
}

impl OAuthHttp {
    pub(super) fn new(server: &Url) -> Self {
        Self { is_local: is_loopback(server) }
    }

    fn allows(&self, url: &Url) -> bool {
        if is_loopback(url) { self.is_local } else { url.scheme() == "https" }
    }

    async fn send(&self, request: OAuthHttpRequest) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let mut request = reqwest::Request::try_from(request.request).map_err(reqwest::Error::without_url)?;
        if !self.allows(request.url()) {
            return Err(
                format!("{} is no HTTPS address outside of this machine", origin(request.url())).into()
            );
        }
        *request.timeout_mut() = Some(TIMEOUT);
        let client = client(request.url(), redirect::Policy::none())?;
        let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
        let mut built = Response::builder().status(response.status());
        for (name, value) in response.headers() {
            built = built.header(name, value);
        }
        let (mut body, mut chunks) = (Vec::new(), response.bytes_stream());
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(reqwest::Error::without_url)?);
            if body.len() > MAX_BODY {
                return Err(format!("the answer has more than {MAX_BODY} bytes").into());
            }
        }
        Ok(built.body(body)?)
    }
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_over_https_or_stay_on_this_machine() {
        let allows = |server: &str, url: &str| {
            OAuthHttp::new(&Url::parse(server).unwrap()).allows(&Url::parse(url).unwrap())
        };
        for (server, url, is_allowed) in [
            ("https://server/mcp", "https://issuer/token", true),
            ("https://server/mcp", "http://issuer/token", false),
            ("https://server/mcp", "https://127.0.0.1/token", false),
            ("https://server/mcp", "https://[::1]/token", false),
            ("http://127.0.0.1:80/mcp", "http://localhost:81/token", true),
            ("http://127.0.0.1:80/mcp", "https://issuer/token", true),
            ("http://127.0.0.1:80/mcp", "http://issuer/token", false),
        ] {
            assert_eq!(allows(server, url), is_allowed, "{server} {url}");
        }
    }
}
