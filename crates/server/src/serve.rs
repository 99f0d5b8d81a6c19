//! A server and its connections.

#[cfg(feature = "tls")]
mod http2;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pintle_agent::{Clock, SystemClock};
use pintle_store::SessionStore;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access_token::AccessTokens;
use crate::api::{self, Access, App, BrowserLogins, RateLimiter};
use crate::audit::AuditLog;
use crate::authentication::{Authentication, Authenticator};
use crate::host::SessionHost;
use crate::hub::{Hub, Reopened};
use crate::limits::ServerLimits;
use crate::unauthenticated::UnauthenticatedConnections;

/// Pause after a failure to accept a connection, for instance for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum bytes of the head of a request.
const MAX_HEAD: usize = 64 << 10;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// Time that connections have to end after the sessions are closed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Server of sessions over HTTP.
///
/// ```
/// use std::sync::Arc;
/// use pintle_agent::{ProviderProfile, Session, SessionError};
/// use pintle_server::{Server, ServerLimits, StoreSessionHost};
/// use pintle_store::{MemoryStore, SessionStore, Summary};
/// # use pintle_env::MemoryEnvironment;
/// # use pintle_llm::{Client, testing::FakeAdapter};
/// # use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic")).build()?;
/// # let env = MemoryEnvironment::new("/project");
/// let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
/// let sessions = StoreSessionHost::new(Arc::clone(&store), move |_: &Summary| {
///     let profile = ProviderProfile::anthropic("claude-opus-4-6");
///     Ok::<_, SessionError>(Session::builder(client.clone(), profile, env.clone()))
/// });
/// let server = Server::new(Arc::new(sessions), store, ServerLimits::default());
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let address = listener.local_addr()?;
/// # let mut answer = String::new();
/// # let request = b"GET /v1/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
/// # let stop = async {
/// #     let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
/// #     stream.write_all(request).await.unwrap();
/// #     stream.read_to_string(&mut answer).await.unwrap();
/// # };
/// // `stop` is a future, such as the arrival of a signal. A client lists the sessions meanwhile.
/// server.serve_tcp(listener, stop).await?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    pub(crate) hub: Arc<Hub>,
    authentication: Authentication,
    hosts: Vec<String>,
    clock: Arc<dyn Clock>,
    audit: Option<Arc<dyn AuditLog>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Server {
    /// Creates a server for the sessions of a store, which `host` opens.
    #[must_use]
    pub fn new(host: Arc<dyn SessionHost>, store: Arc<dyn SessionStore>, limits: ServerLimits) -> Self {
        let hosts = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec();
        let hub = Hub::new(host, store, limits);
        Self { hub, authentication: Authentication::Open, hosts, clock: Arc::new(SystemClock), audit: None }
    }

    /// Requires one of these tokens from every client. Without tokens, every client that can connect has all scopes.
    #[must_use]
    pub fn with_tokens(mut self, tokens: AccessTokens) -> Self {
        self.authentication = Authentication::Tokens(tokens);
        self
    }

    /// Lets the application authenticate every client, in place of tokens.
    #[must_use]
    pub fn with_authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authentication = Authentication::Application(Arc::new(authenticator));
        self
    }

    /// Adds host names by which clients reach the server, without a port. Default: the names of the loopback interface.
    #[must_use]
    pub fn with_hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts.extend(hosts);
        self
    }

    /// Writes a line to the audit log for each mutating request with a valid token. Default: no log.
    #[must_use]
    pub fn with_audit(mut self, log: Arc<dyn AuditLog>) -> Self {
        self.audit = Some(log);
        self
    }

    /// Resumes the sessions that an earlier server left with an unfinished run or a posted input.
    ///
    /// # Errors
    ///
    /// [`StoreError`](pintle_store::StoreError) if the store cannot be read. A session that cannot be opened is left.
    pub async fn reopen_sessions(&self) -> Result<Reopened, pintle_store::StoreError> {
        self.hub.reopen_sessions().await
    }

    /// Resumes sessions of servers that shared the store and died. Checks for such sessions at this interval until the
    /// server shuts down. Their leases must expire first.
    pub async fn keep_reopening(&self, interval: Duration) {
        self.hub.keep_reopening(interval).await;
    }

    /// Serves the connections of a TCP socket until `stop` completes, then closes the sessions. Runs that exceed
    /// [`ServerLimits::drain`] are left to the next server.
    ///
    /// # Errors
    ///
    /// An error if the address of the socket cannot be read, or it is not on the loopback interface and there are no
    /// tokens.
    pub async fn serve_tcp(&self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        self.require_tokens(&listener)?;
        let router = api::router(self.app(Some(self.hosts.clone()), false));
        let accept = || accept(&listener);
        self.serve(router, accept, |stream| std::future::ready(Ok((stream, Protocol::Http1))), stop).await;
        Ok(())
    }

    /// Serves the connections of a TCP socket with TLS, like [`serve_tcp`](Self::serve_tcp). A handshake must complete
    /// within [`ServerLimits::head_time`]. Clients that offer HTTP/2 get it: a browser opens at most six HTTP/1.1
    /// connections to a server, but one HTTP/2 connection carries all its requests.
    ///
    /// # Errors
    ///
    /// As for [`serve_tcp`](Self::serve_tcp).
    #[cfg(feature = "tls")]
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        identity: &crate::TlsIdentity,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.require_tokens(&listener)?;
        let router = api::router(self.app(Some(self.hosts.clone()), true));
        let accept = || accept(&listener);
        let acceptor = tokio_rustls::TlsAcceptor::from(identity.config().map_err(io::Error::other)?);
        let head_time = self.hub.limits.head_time;
        let secure = |stream| {
            let accepted = acceptor.accept(stream);
            async move {
                let secured = tokio::time::timeout(head_time, accepted).await;
                let stream = secured.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
                let protocol = Protocol::from_alpn(stream.get_ref().1.alpn_protocol());
                Ok::<_, io::Error>((stream, protocol))
            }
        };
        self.serve(router, accept, secure, stop).await;
        Ok(())
    }

    fn require_tokens(&self, listener: &TcpListener) -> io::Result<()> {
        if matches!(self.authentication, Authentication::Open) && !listener.local_addr()?.ip().is_loopback() {
            let problem = "a server that is not on the loopback interface needs tokens";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        Ok(())
    }

    /// Serves the connections of a unix socket, like [`serve_tcp`](Self::serve_tcp). The permissions of the socket
    /// determine which clients can connect.
    pub async fn serve_unix(&self, listener: UnixListener, stop: impl Future<Output = ()>) {
        let router = api::router(self.app(None, false));
        let accept = || async { listener.accept().await.map(|(stream, _)| (stream, None)) };
        self.serve(router, accept, |stream| std::future::ready(Ok((stream, Protocol::Http1))), stop).await;
    }

    /// Returns the interface and the console for a server of the application, which mounts them under any path without
    /// parameters: `application.nest_service("/agent", server.router())`, or `fallback_service` for the root. Links,
    /// cookies and redirects are relative, so that a proxy can add a prefix to the path.
    ///
    /// Without an [authenticator](Self::with_authenticator) and tokens, all clients are refused. The server of the
    /// application limits its connections and checks the header `host`. Requests of pages of other origins are refused.
    /// The application calls [`shut_down`](Self::shut_down) before it ends.
    pub fn router(&self) -> axum::Router {
        let server = match self.authentication {
            Authentication::Open => self.clone().with_tokens(AccessTokens::default()),
            Authentication::Tokens(_) | Authentication::Application(_) => self.clone(),
        };
        api::router(server.app(None, false))
    }

    /// Ends the streams of events and closes the sessions of a [`router`](Self::router). Runs that exceed
    /// [`ServerLimits::drain`] are left to the next server.
    pub async fn shut_down(&self) {
        self.hub.shut_down().await;
    }

    pub(crate) fn app(&self, hosts: Option<Vec<String>>, is_secure: bool) -> App {
        let access = Access {
            authentication: self.authentication.clone(),
            hosts,
            is_secure,
            clock: Arc::clone(&self.clock),
            logins: BrowserLogins::default(),
            rates: RateLimiter::new(self.hub.limits.rate),
            audit: self.audit.clone(),
        };
        App { hub: Arc::clone(&self.hub), access: Arc::new(access), answered: Arc::default() }
    }

    /// Accepts connections until `stop` completes and the sessions are closed. `secure` converts an accepted stream and
    /// returns the protocol of its requests.
    async fn serve<S, T, A, F, P, Q>(
        &self,
        router: axum::Router,
        accept: A,
        secure: P,
        stop: impl Future<Output = ()>,
    ) where
        A: Fn() -> F,
        F: Future<Output = io::Result<(S, Option<IpAddr>)>>,
        P: Fn(S) -> Q,
        Q: Future<Output = io::Result<(T, Protocol)>> + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let room = Arc::new(Semaphore::new(self.hub.limits.connections));
        let closing = CancellationToken::new();
        let mut connections = JoinSet::new();
        let limits = &self.hub.limits;
        // Without at least one such connection, no client could authenticate.
        let unauthenticated =
            limits.unauthenticated_connections.min(limits.connections.saturating_sub(1)).max(1);
        let unauthenticated = UnauthenticatedConnections::new(unauthenticated);
        let mut number = 0;
        // Requests are answered until the end, for instance readiness probes.
        let mut ended = std::pin::pin!(async {
            stop.await;
            self.hub.shut_down().await;
        });
        loop {
            while connections.try_join_next().is_some() {}
            let next = async {
                // The semaphore is never closed.
                let permit = Arc::clone(&room).acquire_owned().await.ok();
                (accept().await, permit)
            };
            tokio::select! {
                () = &mut ended => break,
                (accepted, permit) = next => match accepted {
                    Ok((stream, address)) => {
                        let (secured, router, closing) = (secure(stream), router.clone(), closing.clone());
                        let head_time = self.hub.limits.head_time;
                        number += 1;
                        let peer = unauthenticated.add(number, address);
                        connections.spawn(async move {
                            let served = async {
                                match secured.await {
                                    Ok((stream, protocol)) => {
                                        let router = router.layer(Extension(peer.clone()));
                                        match protocol {
                                            Protocol::Http1 => {
                                                http1_connection(stream, router, head_time, closing).await;
                                            }
                                            #[cfg(feature = "tls")]
                                            Protocol::Http2 => {
                                                http2::connection(stream, router, head_time, closing).await;
                                            }
                                        }
                                    }
                                    Err(error) => tracing::debug!(%error, "a connection could not be secured"),
                                }
                            };
                            peer.close.run_until_cancelled(served).await;
                            peer.remove_waiting();
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        closing.cancel();
        let _ = tokio::time::timeout(LAST_WORDS, async { while connections.join_next().await.is_some() {} })
            .await;
    }
}

/// Accepts a connection whose writes are sent at once. Otherwise an event would wait for the client's acknowledgement of
/// the previous event, which takes a round trip.
async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, Option<IpAddr>)> {
    let (stream, address) = listener.accept().await?;
    if let Err(error) = stream.set_nodelay(true) {
        // This fails for a connection that its client has closed.
        tracing::debug!(%error, "writes to a connection may be delayed");
    }
    Ok((stream, Some(address.ip())))
}

/// Protocol of the requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    #[cfg(feature = "tls")]
    Http2,
}

#[cfg(feature = "tls")]
impl Protocol {
    /// Returns the protocol that a TLS handshake has negotiated (ALPN).
    fn from_alpn(name: Option<&[u8]>) -> Self {
        if name == Some(crate::tls::HTTP2) { Self::Http2 } else { Self::Http1 }
    }
}

/// Serves one HTTP/1.1 connection until its client closes it, or the server closes and the current request is answered.
async fn http1_connection<S>(stream: S, router: axum::Router, head_time: Duration, closing: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS);
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
