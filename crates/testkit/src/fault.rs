//! A server with scripted faults: plain TCP on loopback, with control over every byte and pause.

mod connection;
mod gate;
mod record;
mod script;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub use gate::FaultGate;
pub use record::FaultRecord;
pub use script::{FaultScript, FaultStep};

use crate::server::ServerError;
use record::Records;

/// Size of the socket buffers in bytes. They are small, so that backpressure takes effect soon.
const SOCKET_BUFFER: u32 = 64 * 1024;
/// Length of the accept queue.
const BACKLOG: u32 = 128;
/// Timeout of a filler connection; loopback needs less than a millisecond.
const FILLER_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of connections used to fill a queue.
const MAX_FILLERS: usize = 64;
/// Delay after a failed accept, which usually means a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A server whose connections follow scripts, regardless of the requests.
///
/// Each connection follows the script at its index, or the last script beyond the end; without scripts, connections are
/// reset. The server has no dialect: [`url`](Self::url) is the base URL for any.
/// Its sockets have buffers of 64 KiB, so that a client soon notices that nothing is read.
///
/// Dropping it aborts its tasks and closes its connections.
///
/// ```
/// use pintle_testkit::{FaultScript, FaultServer};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpStream;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// // The head announces ten bytes. Four are sent, then the connection is reset.
/// let response = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfour";
/// let server = FaultServer::start([FaultScript::new().read_request().write(response).reset()]).await?;
///
/// // The client under test connects to `server.url()`.
/// let mut client = TcpStream::connect(server.address()).await?;
/// client.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
/// let mut seen = Vec::new();
/// assert!(client.read_to_end(&mut seen).await.is_err());
///
/// let records = server.finish().await;
/// assert!(records[0].completed);
/// assert_eq!(records[0].written, response.len() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    records: Records,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Serving {
        /// Contains only the accept loop, which owns the connections.
        tasks: JoinSet<()>,
        /// Ends the accept loop when dropped.
        stop: oneshot::Sender<()>,
    },
    /// A bound port without a listener.
    Refusing { _socket: TcpSocket },
    /// A listener with a full accept queue, and the connections that fill it.
    NeverAccepting { _listener: TcpListener, _fillers: Vec<TcpStream> },
}

impl FaultServer {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// Must be called within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`] if no port is available.
    pub async fn start(scripts: impl IntoIterator<Item = FaultScript>) -> Result<Self, ServerError> {
        let listener = bind().and_then(|socket| socket.listen(BACKLOG)).map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let records = Records::default();
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        let scripts: Arc<[FaultScript]> = scripts.into_iter().collect();
        tasks.spawn(serve(listener, scripts, records.clone(), stopped));
        Ok(Self { address, records, kind: Kind::Serving { tasks, stop } })
    }

    /// Reserves a port that refuses every connection.
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`] if no port is available.
    pub fn refusing() -> Result<Self, ServerError> {
        let socket = bind().map_err(bind_error)?;
        let address = socket.local_addr().map_err(bind_error)?;
        Ok(Self { address, records: Records::default(), kind: Kind::Refusing { _socket: socket } })
    }

    /// Starts a server that never accepts, so that connections time out: its accept queue is full.
    ///
    /// Filling the queue takes 100 ms, because only a timeout shows that it is full. Relies on Linux, which ignores clients
    /// while the queue is full.
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`] if no port is available, or if the queue does not fill up.
    pub async fn never_accepting() -> Result<Self, ServerError> {
        let listener = bind().and_then(|socket| socket.listen(1)).map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let fillers = fill(address).await.map_err(|source| ServerError::Bind { address, source })?;
        let kind = Kind::NeverAccepting { _listener: listener, _fillers: fillers };
        Ok(Self { address, records: Records::default(), kind })
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as a URL without path, such as `http://127.0.0.1:49152`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the records of all connections so far, in order.
    #[must_use]
    pub fn records(&self) -> Vec<FaultRecord> {
        self.records.all()
    }

    /// Stops accepting, waits for the open connections to end, and returns all records.
    ///
    /// It does not end scripts that wait for a gate or for the client, so tests should add a timeout.
    pub async fn finish(self) -> Vec<FaultRecord> {
        if let Kind::Serving { mut tasks, stop } = self.kind {
            drop(stop);
            while tasks.join_next().await.is_some() {}
        }
        self.records.all()
    }
}

fn bind() -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Accepted connections inherit both.
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(socket)
}

fn bind_error(source: io::Error) -> ServerError {
    ServerError::Bind { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), source }
}

/// Opens connections until one times out.
async fn fill(address: SocketAddr) -> io::Result<Vec<TcpStream>> {
    let mut fillers = Vec::new();
    while fillers.len() < MAX_FILLERS {
        match timeout(FILLER_TIMEOUT, TcpStream::connect(address)).await {
            Ok(connected) => fillers.push(connected?),
            Err(_elapsed) => return Ok(fillers),
        }
    }
    Err(io::Error::other("the accept queue does not fill up"))
}

/// Serves each connection with its script until stopped, then waits for the open ones.
async fn serve(
    listener: TcpListener,
    scripts: Arc<[FaultScript]>,
    records: Records,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    let mut count = 0;
    loop {
        tokio::select! {
            biased;
            // First, so that connections made before the stop are served.
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let script = scripts.get(count).or(scripts.last()).cloned();
                    count += 1;
                    connections.spawn(connection::serve(stream, script.unwrap_or_else(reset_script), records.begin()));
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            // Resolves when the sender is dropped; nothing is ever sent.
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

fn reset_script() -> FaultScript {
    FaultScript::new().reset()
}

#[cfg(test)]
mod tests;
