//! The proxy as clients of HTTP see it: CONNECT, and requests with the whole URL.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{Either, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION},
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    connection::Connection,
    forward::{ResponseBody, Upstream, plain, prepare, refused, server},
    outbound,
    refusal::Refusal,
    state::Account,
    stream::Counted,
    target::Target,
    traffic::Protocol,
    tunnel::Tunnel,
};

const HTTP_PORT: u16 = 80;

/// The requests of a connection.
struct Requests {
    connection: Arc<Connection>,
    /// The tunnel that follows the response to CONNECT.
    tunnel: Mutex<Option<(OnUpgrade, Tunnel)>>,
    /// The connection to the target of the latest request.
    upstream: tokio::sync::Mutex<Option<Upstream>>,
}

/// Serves a client that speaks HTTP.
pub(crate) async fn serve<C>(client: C, connection: &Arc<Connection>)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let requests = Arc::new(Requests {
        connection: Arc::clone(connection),
        tunnel: Mutex::default(),
        upstream: tokio::sync::Mutex::default(),
    });
    let service = service_fn({
        let requests = Arc::clone(&requests);
        move |request: Request<Incoming>| {
            let requests = Arc::clone(&requests);
            async move { Ok::<_, Infallible>(requests.respond(request).await) }
        }
    });
    let served = server(&connection.shared.limits).serve_connection(TokioIo::new(client), service);
    if let Err(error) = served.with_upgrades().await {
        tracing::debug!(%error, "a client of the proxy ends");
        return;
    }
    let tunnel = requests.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((upgrade, tunnel)) = tunnel else { return };
    match upgrade.await {
        Ok(upgraded) => tunnel.run(TokioIo::new(upgraded), connection).await,
        Err(error) => tracing::debug!(%error, "a client of the proxy leaves its tunnel"),
    }
}

impl Requests {
    async fn respond(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let token = credential(request.headers());
        let Some(account) = token.and_then(|token| self.connection.authenticate(&token)) else {
            let text = "the proxy requires a valid credential\n";
            let mut response = plain(StatusCode::PROXY_AUTHENTICATION_REQUIRED, &text);
            let scheme = HeaderValue::from_static("Basic realm=\"pintle\"");
            response.headers_mut().insert(PROXY_AUTHENTICATE, scheme);
            return response;
        };
        let is_connect = request.method() == Method::CONNECT;
        let protocol = if is_connect { Protocol::Connect } else { Protocol::Http };
        let target = if is_connect { tunnel_target(request.uri()) } else { http_target(request.uri()) };
        let shown = target.as_ref().map(Target::to_string).unwrap_or_default();
        let response = match target {
            Ok(target) if is_connect => self.open_tunnel(&account, target, request).await,
            Ok(target) => self.forward(&account, target, request).await,
            Err(refusal) => Err(refusal),
        };
        response.unwrap_or_else(|refusal| {
            let response = refused(&shown, &refusal);
            account.ledger.note(&shown, protocol, Some(refusal));
            response
        })
    }

    async fn open_tunnel(
        &self,
        account: &Arc<Account>,
        target: Target,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let upstream = outbound::connect(&self.connection.shared, &account.rules, &target).await?;
        let tunnel = Tunnel { account: Arc::clone(account), target, protocol: Protocol::Connect, upstream };
        let pending = (hyper::upgrade::on(request), tunnel);
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(pending);
        Ok(Response::new(Either::Right(Full::default())))
    }

    async fn forward(
        &self,
        account: &Arc<Account>,
        target: Target,
        mut request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        prepare(&mut request, &target)?;
        let mut latest = self.upstream.lock().await;
        if let Some(upstream) = latest.as_mut()
            && upstream.is_ready(&target).await
        {
            return Ok(upstream.forward(request).await);
        }
        // The connection to another target ends before the next one is made.
        *latest = None;
        let stream = outbound::connect(&self.connection.shared, &account.rules, &target).await?;
        let stream = Counted::new(stream, account.ledger.note(&target, Protocol::Http, None));
        let upstream = latest.insert(Upstream::open(stream, target, &self.connection).await?);
        Ok(upstream.forward(request).await)
    }
}

/// Returns the secret part of the credential of a request.
fn credential(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (_user, token) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some(token.to_owned())
}

fn tunnel_target(uri: &Uri) -> Result<Target, Refusal> {
    let target = uri.authority().and_then(|authority| Target::parse(authority.as_str(), None).ok());
    target.ok_or(Refusal::Invalid { reason: "expected a valid host and port" })
}

/// Returns the target of a request with the whole URL.
fn http_target(uri: &Uri) -> Result<Target, Refusal> {
    let Some(authority) = uri.authority().filter(|_| uri.scheme_str() == Some("http")) else {
        return Err(Refusal::Invalid { reason: "expected a URL with http: in a request to a proxy" });
    };
    let target = Target::parse(authority.as_str(), Some(HTTP_PORT));
    target.map_err(|_| Refusal::Invalid { reason: "expected a URL with a valid host and port" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read() {
        for (value, expected) in [
            ("Basic cGludGxlOnNlY3JldA==", Some("secret")),
            ("basic  cGludGxlOnNlY3JldA==", Some("secret")),
            ("Bearer cGludGxlOnNlY3JldA==", None),
            ("Basic cGludGxl", None),
            ("Basic ?", None),
            ("Basic", None),
        ] {
            let headers = HeaderMap::from_iter([(PROXY_AUTHORIZATION, HeaderValue::from_static(value))]);
            assert_eq!(credential(&headers).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn requests_have_a_whole_url() {
        for (uri, expected) in [
            ("http://A.example/x", Some("a.example:80")),
            ("http://a.example:8080", Some("a.example:8080")),
            ("http://[::1]:8080/", Some("[::1]:8080")),
            ("https://a.example/", None),
            ("http://user@a.example/", None),
            ("http://127.1/", None),
            ("/x", None),
        ] {
            let target = http_target(&uri.parse().unwrap()).ok().map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{uri}");
        }
    }
}
