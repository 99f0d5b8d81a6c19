//! HTTP/2 connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum bytes of the headers of a request.
const MAX_HEADER_BYTES: u32 = 64 << 10;

/// Maximum number of concurrent requests of a connection.
const MAX_REQUESTS: u32 = 200;

/// Tasks of the requests of a connection. They end with it.
#[derive(Clone, Debug)]
struct RequestTasks {
    tasks: Arc<Mutex<JoinSet<()>>>,
    /// Time at which a request was last known to be open.
    active_at: Arc<Mutex<Instant>>,
}

impl Default for RequestTasks {
    fn default() -> Self {
        Self { tasks: Arc::default(), active_at: Arc::new(Mutex::new(Instant::now())) }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for RequestTasks {
    fn execute(&self, request: F) {
        let active_at = Arc::clone(&self.active_at);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            request.await;
            *lock(&active_at) = Instant::now();
        });
    }
}

impl RequestTasks {
    /// Completes when no request was open for this time.
    async fn idle(&self, time: Duration) {
        loop {
            let rest = self.rest(time);
            if rest.is_zero() {
                return;
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// Returns how much of this idle time remains.
    fn rest(&self, time: Duration) -> Duration {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        let mut active_at = lock(&self.active_at);
        if !tasks.is_empty() {
            *active_at = Instant::now();
        }
        time.saturating_sub(active_at.elapsed())
    }
}

/// Locks a mutex. Its value stays valid after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one connection until its client closes it or has no open request for `idle_time`, or the server closes and the
/// current requests are answered. A client that does not answer pings, which are sent at this interval, counts as gone.
pub(super) async fn connection<S>(
    stream: S,
    router: axum::Router,
    idle_time: Duration,
    closing: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let requests = RequestTasks::default();
    let mut builder = Builder::new(requests.clone());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(MAX_REQUESTS)
        .keep_alive_interval(idle_time)
        .keep_alive_timeout(idle_time);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let stop = async {
        tokio::select! {
            () = closing.cancelled() => {}
            () = requests.idle(idle_time) => {}
        }
    };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop => {
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

    type Client = hyper::client::conn::http2::SendRequest<Empty<Bytes>>;

    /// Connects to a server with an endless stream. The tasks are the ends of the connection.
    async fn connect(idle_time: Duration, closing: CancellationToken) -> (Client, JoinSet<()>) {
        let endless = || async {
            let first = futures_util::stream::iter([Ok::<_, std::convert::Infallible>("data: 1\n\n")]);
            let rest = futures_util::stream::pending();
            axum::body::Body::from_stream(futures_util::StreamExt::chain(first, rest))
        };
        let router =
            axum::Router::new().route("/stream", get(endless)).route("/decide", get(|| async { "decided" }));
        let (client, server) = tokio::io::duplex(64 << 10);
        let mut tasks = JoinSet::new();
        tasks.spawn(connection(server, router, idle_time, closing));
        let handshake = hyper::client::conn::http2::handshake::<_, _, Empty<Bytes>>(
            TokioExecutor::new(),
            TokioIo::new(client),
        );
        let (sender, driver) = handshake.await.unwrap();
        tasks.spawn(async move {
            let _ = driver.await;
        });
        (sender, tasks)
    }

    async fn send(sender: &mut Client, path: &str) -> hyper::Response<hyper::body::Incoming> {
        let uri = format!("https://localhost{path}");
        let request = hyper::Request::builder().uri(uri).body(Empty::new()).unwrap();
        sender.send_request(request).await.unwrap()
    }

    #[tokio::test]
    async fn one_connection_has_room_for_more_streams_than_a_browser_opens_connections() {
        let closing = CancellationToken::new();
        let (mut sender, mut tasks) = connect(Duration::from_secs(30), closing.clone()).await;
        let mut streams = Vec::new();
        for _ in 0..12 {
            let mut stream = send(&mut sender, "/stream").await.into_body();
            assert!(stream.frame().await.unwrap().is_ok());
            streams.push(stream);
        }
        let answer = send(&mut sender, "/decide").await.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(answer, "decided");
        drop(streams);
        closing.cancel();
        drop(sender);
        while tasks.join_next().await.is_some() {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_an_open_request_is_closed_after_a_while() {
        let idle_time = Duration::from_secs(10);
        let (mut sender, mut tasks) = connect(idle_time, CancellationToken::new()).await;
        let mut stream = send(&mut sender, "/stream").await.into_body();
        assert!(stream.frame().await.unwrap().is_ok());
        tokio::time::sleep(10 * idle_time).await;
        // The other request is answered, since a stream is open.
        let answer = send(&mut sender, "/decide").await.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(answer, "decided");
        drop(stream);
        // Requests keep the connection.
        for _ in 0..10 {
            tokio::time::sleep(idle_time / 2).await;
            assert_eq!(send(&mut sender, "/decide").await.status(), 200);
        }
        let closed = async { while tasks.join_next().await.is_some() {} };
        tokio::time::timeout(10 * idle_time, closed).await.expect("the connection is closed");
    }
}
