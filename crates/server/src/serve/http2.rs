//! Connections of HTTP/2.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Most bytes of the headers of a request.
const MAX_HEADERS: u32 = 64 << 10;

/// Most concurrent requests of a connection.
const MAX_REQUESTS: u32 = 200;

/// Tasks of the requests of a connection. They end with it.
#[derive(Clone, Debug, Default)]
struct RequestTasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for RequestTasks {
    fn execute(&self, request: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(request);
    }
}

/// Serves one connection until its client closes it, or the server closes and the current requests are answered. A client that
/// does not answer pings of this interval is gone.
pub(super) async fn connection<S>(
    stream: S,
    router: axum::Router,
    ping_interval: Duration,
    closing: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let mut builder = Builder::new(RequestTasks::default());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADERS)
        .max_concurrent_streams(MAX_REQUESTS)
        .keep_alive_interval(ping_interval)
        .keep_alive_timeout(ping_interval);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::body::Bytes;
    use hyper_util::rt::TokioExecutor;

    use super::*;

    #[tokio::test]
    async fn one_connection_has_room_for_more_streams_than_a_browser_opens_connections() {
        let endless = || async {
            let first = futures_util::stream::iter([Ok::<_, std::convert::Infallible>("data: 1\n\n")]);
            let rest = futures_util::stream::pending();
            axum::body::Body::from_stream(futures_util::StreamExt::chain(first, rest))
        };
        let router =
            axum::Router::new().route("/stream", get(endless)).route("/decide", get(|| async { "decided" }));
        let (client, server) = tokio::io::duplex(64 << 10);
        let closing = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(connection(server, router, Duration::from_secs(30), closing.clone()));
        let handshake = hyper::client::conn::http2::handshake::<_, _, Empty<Bytes>>(
            TokioExecutor::new(),
            TokioIo::new(client),
        );
        let (mut sender, driver) = handshake.await.unwrap();
        tasks.spawn(async move {
            let _ = driver.await;
        });
        let mut send = async |path: &str| {
            let uri = format!("https://localhost{path}");
            let request = hyper::Request::builder().uri(uri).body(Empty::new()).unwrap();
            sender.send_request(request).await.unwrap()
        };
        let mut streams = Vec::new();
        for _ in 0..12 {
            let mut stream = send("/stream").await.into_body();
            assert!(stream.frame().await.unwrap().is_ok());
            streams.push(stream);
        }
        let answer = send("/decide").await.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(answer, "decided");
        drop(streams);
        closing.cancel();
        drop(sender);
        while tasks.join_next().await.is_some() {}
    }
}
