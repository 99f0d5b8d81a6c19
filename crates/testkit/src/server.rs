//! The scripted server: listener, connections and shared state.

mod connection;
mod options;
mod reply;
mod request_log;
mod responder;
mod round_trip;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

pub use options::ServerOptions;
pub use request_log::RecordedRequest;

use crate::dialect::Dialect;
use crate::script::{Script, ScriptError};
use responder::Responder;

/// Delay after a failed accept, which usually means a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A model server that follows a script, by default on loopback.
///
/// It speaks all four dialects at once, checks every request, and responds like the provider.
/// Dropping it aborts its tasks and closes its connections; [`ScriptedServer::shutdown`] waits for that.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    responder: Arc<Responder>,
    /// Contains only the accept loop, which owns the connections.
    tasks: JoinSet<()>,
    /// Ends the accept loop when dropped.
    stop: oneshot::Sender<()>,
}

/// Error while starting a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The script is invalid.
    #[error("invalid script")]
    Script(#[source] ScriptError),
    /// Listening on the address failed.
    #[error("cannot listen on {address}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl ScriptedServer {
    /// Validates the script and starts the server.
    ///
    /// Must be called within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`ServerError::Script`] if the script is invalid, [`ServerError::Bind`] if the address is unavailable.
    pub async fn start(script: Script, options: ServerOptions) -> Result<Self, ServerError> {
        script.validate().map_err(ServerError::Script)?;
        let bind_error = |source| ServerError::Bind { address: options.bind, source };
        let listener = TcpListener::bind(options.bind).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let responder = Arc::new(Responder::new(script, options));
        let mut tasks = JoinSet::new();
        let (stop, stopped) = oneshot::channel();
        tasks.spawn(serve(listener, Arc::clone(&responder), stopped));
        Ok(Self { address, responder, tasks, stop })
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL in the form of the provider's official SDK.
    ///
    /// It ends in `/v1` for OpenAI and compatible servers, and has no version for Anthropic and Gemini.
    #[must_use]
    pub fn base_url(&self, dialect: Dialect) -> String {
        let root = format!("http://{}", self.address);
        match dialect {
            Dialect::OpenAiResponses | Dialect::ChatCompletions => format!("{root}/v1"),
            Dialect::AnthropicMessages | Dialect::Gemini => root,
        }
    }

    /// Returns the recorded requests, oldest first, within [`ServerOptions::recorded_bytes`].
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.responder.requests()
    }

    /// Returns whether every turn of the script has been served in a dialect. Failures before a turn do not count.
    #[must_use]
    pub fn finished(&self, dialect: Dialect) -> bool {
        self.responder.finished(dialect)
    }

    /// Serves until the future is dropped.
    pub async fn serve_forever(mut self) {
        // The accept loop never ends, so this never returns.
        while self.tasks.join_next().await.is_some() {}
    }

    /// Closes all connections and waits until all tasks have ended.
    pub async fn shutdown(self) {
        let Self { mut tasks, stop, .. } = self;
        drop(stop);
        while tasks.join_next().await.is_some() {}
    }
}

/// Accepts connections until it is stopped, then closes them. Dropping it closes them too.
async fn serve(listener: TcpListener, responder: Arc<Responder>, stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    tokio::select! {
        // Resolves when the sender is dropped; nothing is ever sent.
        _ = stopped => {}
        () = accept(&listener, &responder, &mut connections) => {}
    }
    drop(listener);
    connections.shutdown().await;
}

async fn accept(listener: &TcpListener, responder: &Arc<Responder>, connections: &mut JoinSet<()>) {
    let slots = Arc::new(Semaphore::new(responder.options().connections));
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let stream = next(listener, connections).await;
        let responder = Arc::clone(responder);
        connections.spawn(async move {
            connection::serve(stream, &responder).await;
            drop(slot);
        });
    }
}

/// Waits for a connection, and reaps finished ones meanwhile.
async fn next(listener: &TcpListener, connections: &mut JoinSet<()>) -> TcpStream {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => return stream,
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
