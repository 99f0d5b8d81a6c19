//! The scripted server: a listener, its connections and what they share.

mod connection;
mod options;
mod recorded;
mod reply;
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
pub use recorded::RecordedRequest;

use crate::dialect::Dialect;
use crate::script::{Script, ScriptError};
use responder::Responder;

/// How long the server waits after a failed accept, which is most often a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A model server that follows a script, on loopback unless told otherwise.
///
/// It speaks all four dialects at once, judges every request, and answers like the provider.
/// Dropping it ends its tasks and closes its connections; [`ScriptedServer::shutdown`] waits until that is done.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    responder: Arc<Responder>,
    /// Holds the accept loop alone, which holds the connections.
    tasks: JoinSet<()>,
    /// Ends the accept loop when it is dropped.
    stop: oneshot::Sender<()>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The script cannot be followed.
    #[error("script cannot be followed")]
    Script(#[source] ScriptError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl ScriptedServer {
    /// Checks the script, binds the listener and begins to answer.
    ///
    /// Must be called within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`ServerError::Script`] if the script is not valid, [`ServerError::Bind`] if the address cannot be had.
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

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL as the provider's official SDK takes it.
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

    /// The requests so far, oldest first, as far as [`ServerOptions::recorded_bytes`] reaches.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.responder.requests()
    }

    /// Whether every turn of the script has been given in a dialect; failures before a turn do not count.
    #[must_use]
    pub fn finished(&self, dialect: Dialect) -> bool {
        self.responder.finished(dialect)
    }

    /// Answers until the future is dropped: the building block of a command that only serves.
    pub async fn serve_forever(mut self) {
        // The accept loop has no end of its own, so this waits for as long as it is polled.
        while self.tasks.join_next().await.is_some() {}
    }

    /// Ends all connections and waits until no task is left.
    pub async fn shutdown(self) {
        let Self { mut tasks, stop, .. } = self;
        drop(stop);
        while tasks.join_next().await.is_some() {}
    }
}

/// Accepts connections until it is told to stop, and then ends them; if it is dropped, its set ends them.
async fn serve(listener: TcpListener, responder: Arc<Responder>, stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    tokio::select! {
        // Nothing is ever sent: the other end is dropped.
        _ = stopped => {}
        () = accept(&listener, &responder, &mut connections) => {}
    }
    drop(listener);
    connections.shutdown().await;
}

async fn accept(listener: &TcpListener, responder: &Arc<Responder>, connections: &mut JoinSet<()>) {
    let slots = Arc::new(Semaphore::new(responder.options().connections));
    loop {
        // The semaphore is never closed; were it, no connection could be served any more.
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

/// Waits for a connection, and takes leave of those that ended meanwhile.
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
