//! Requests of HTTP that are forwarded to their target.

use std::{convert::Infallible, fmt, sync::Arc};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    HeaderMap, Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    client::conn::http1::{Builder as ClientBuilder, SendRequest},
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING},
    http::uri::PathAndQuery,
    server::conn::http1::Builder as ServerBuilder,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Mutex,
};

use crate::{
    connection::Connection,
    refusal::Refusal,
    state::{Account, Limits},
    target::Target,
    traffic::Protocol,
};

/// Smallest buffer that the HTTP implementation accepts.
const MIN_BUFFER: usize = 8 << 10;

/// Headers of one connection, which are not forwarded.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// Body of a response to a client.
pub(crate) type ResponseBody = Either<Incoming, Full<Bytes>>;

/// A connection to a target that speaks HTTP.
pub(crate) struct Upstream {
    target: Target,
    sender: SendRequest<Incoming>,
}

impl Upstream {
    /// Starts to speak HTTP. The stream ends with the connection of the client.
    pub(crate) async fn open<S>(stream: S, target: Target, connection: &Connection) -> Result<Self, Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let bytes = connection.shared.limits.head_bytes.max(MIN_BUFFER);
        let mut builder = ClientBuilder::new();
        builder.max_buf_size(bytes).max_header_size(bytes);
        let opened = builder.handshake(TokioIo::new(stream)).await;
        let (sender, driver) = opened.map_err(|_| Refusal::Unreachable)?;
        connection.drive(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection to a target ends");
            }
        });
        Ok(Self { target, sender })
    }

    /// Returns true once the connection can take a request for this target; false if it cannot any more.
    pub(crate) async fn is_ready(&mut self, target: &Target) -> bool {
        self.target == *target && self.sender.ready().await.is_ok()
    }

    /// Sends a [prepared](prepare) request.
    pub(crate) async fn forward(&mut self, request: Request<Incoming>) -> Response<ResponseBody> {
        match self.sender.send_request(request).await {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                plain(StatusCode::BAD_GATEWAY, &"the target changed the protocol\n")
            }
            Ok(mut response) => {
                remove_hop_by_hop(response.headers_mut());
                response.map(Either::Left)
            }
            Err(error) => {
                tracing::debug!(%error, target = %self.target, "a request is not answered");
                plain(StatusCode::BAD_GATEWAY, &"the target gave no valid response\n")
            }
        }
    }
}

/// The only target of the requests in a tunnel.
pub(crate) struct Forwarding {
    pub(crate) account: Arc<Account>,
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
}

/// Forwards the requests of a client in a tunnel, each of which has to name the target.
pub(crate) async fn serve<C, S>(client: C, upstream: S, forwarding: Forwarding, connection: &Arc<Connection>)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(upstream) = Upstream::open(upstream, forwarding.target.clone(), connection).await else { return };
    let state = Arc::new((forwarding, Mutex::new(upstream)));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move {
            let (Forwarding { account, target, protocol }, upstream) = state.as_ref();
            Ok::<_, Infallible>(match prepare(&mut request, target) {
                Ok(()) => upstream.lock().await.forward(request).await,
                Err(refusal) => {
                    let response = refused(target, &refusal);
                    account.ledger.note(target, *protocol, Some(refusal));
                    response
                }
            })
        }
    });
    let served = server(&connection.shared.limits).serve_connection(TokioIo::new(client), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a tunnel with HTTP ends");
    }
}

/// Returns the settings for connections of clients.
pub(crate) fn server(limits: &Limits) -> ServerBuilder {
    let bytes = limits.head_bytes.max(MIN_BUFFER);
    let mut builder = ServerBuilder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(bytes)
        .max_header_size(bytes);
    builder
}

/// Checks that a request names the target and no other host, and makes it a request to the target itself.
pub(crate) fn prepare<B>(request: &mut Request<B>, target: &Target) -> Result<(), Refusal> {
    if let Some(authority) = request.uri().authority() {
        expect_host(authority.as_str(), target)?;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => {
            let host = HeaderValue::from_str(&target.to_string());
            let host = host.map_err(|_| Refusal::Invalid { reason: "expected a valid host" })?;
            request.headers_mut().insert(HOST, host);
        }
        (Some(host), None) => {
            let host = host.to_str().map_err(|_| Refusal::Invalid { reason: "expected a valid `Host`" })?;
            expect_host(host, target)?;
        }
        (Some(_), Some(_)) => return Err(Refusal::Invalid { reason: "expected one `Host`" }),
    }
    remove_hop_by_hop(request.headers_mut());
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    *request.version_mut() = Version::HTTP_11;
    Ok(())
}

/// Checks a host that a request names, whatever its port.
fn expect_host(text: &str, target: &Target) -> Result<(), Refusal> {
    match Target::parse(text, Some(target.port())) {
        Ok(found) if found.host() == target.host() => Ok(()),
        Ok(found) => Err(Refusal::OtherHost { found: found.host().to_string() }),
        Err(_) => Err(Refusal::Invalid { reason: "expected a valid `Host`" }),
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // Without these the body or the target would be another one.
    let is_kept = |name: &&HeaderName| [HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(*name);
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in named.iter().filter(|name| !is_kept(name)) {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Returns the response to a refused request.
pub(crate) fn refused(target: &dyn fmt::Display, refusal: &Refusal) -> Response<ResponseBody> {
    let status = if matches!(refusal, Refusal::Unreachable | Refusal::Unresolved) {
        StatusCode::BAD_GATEWAY
    } else {
        StatusCode::FORBIDDEN
    };
    plain(status, &format_args!("{target} is refused: {refusal}\n"))
}

/// Returns a response with a text.
pub(crate) fn plain(status: StatusCode, text: &dyn fmt::Display) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(Full::from(text.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_only_their_target() {
        let other = |found: &str| Err(Refusal::OtherHost { found: found.to_owned() });
        for (uri, hosts, expected) in [
            ("http://a.example/x?y", &["a.example"][..], Ok("/x?y")),
            ("http://a.example", &["A.EXAMPLE.:80"], Ok("/")),
            ("/x", &["a.example:8080"], Ok("/x")),
            ("/x", &[], Ok("/x")),
            ("/x", &["b.example"], other("b.example")),
            ("http://b.example/x", &["a.example"], other("b.example")),
            ("http://a.example/x", &["b.example:80"], other("b.example")),
            ("/x", &["a.example", "a.example"], Err(Refusal::Invalid { reason: "expected one `Host`" })),
            ("/x", &["a b"], Err(Refusal::Invalid { reason: "expected a valid `Host`" })),
        ] {
            let mut request = Request::builder().uri(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let mut request = request.body(()).unwrap();
            let target = Target::parse("a.example:80", None).unwrap();
            let prepared = prepare(&mut request, &target);
            let found = prepared.map(|()| request.uri().to_string());
            assert_eq!(found, expected.map(str::to_owned), "{uri} {hosts:?}");
        }
    }

    #[test]
    fn headers_of_the_connection_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-one, host"),
            ("connection", "content-length"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("host", "a.example"),
            ("content-length", "3"),
            ("proxy-authorization", "Basic secret"),
            ("upgrade", "h2c"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "host", "x-two"]);
    }
}
