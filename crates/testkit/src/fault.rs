//! A server that fails on purpose: plain TCP on loopback, scripted to the byte and the pause.

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

/// Buffers of the server's sockets. Small ones, so that a side that does not read is soon felt by the other.
const SOCKET_BUFFER: u32 = 64 * 1024;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;
/// How long a connection of our own may take; loopback needs less than a millisecond.
const FILLER_LIMIT: Duration = Duration::from_millis(100);
/// The most connections of our own that are tried to fill a queue.
const MOST_FILLERS: usize = 64;
/// How long the server waits after a failed accept, which is most often a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A server whose connections follow scripts, whatever the client says.
///
/// The first connection follows the first script, the second the second, and those beyond the last follow the last;
/// without any script a connection is reset. It knows no dialect: [`url`](Self::url) serves as the base URL of any.
/// Its sockets have buffers of 64 KiB, so that a client learns soon that nobody reads.
///
/// Dropping it ends its tasks and closes its connections.
///
/// ```
/// use pintle_testkit::{FaultScript, FaultServer};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpStream;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// // The head promises ten bytes. Four come, and then the connection is reset.
/// let answer = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfour";
/// let server = FaultServer::start([FaultScript::new().read_request().write(answer).reset()]).await?;
///
/// // Here stands the client under test, pointed at `server.url()`.
/// let mut client = TcpStream::connect(server.address()).await?;
/// client.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
/// let mut seen = Vec::new();
/// assert!(client.read_to_end(&mut seen).await.is_err());
///
/// let records = server.finish().await;
/// assert!(records[0].completed);
/// assert_eq!(records[0].written, answer.len() as u64);
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
        /// Holds the accept loop alone, which holds the connections.
        tasks: JoinSet<()>,
        /// Ends the accept loop when it is dropped.
        stop: oneshot::Sender<()>,
    },
    /// A port that is ours and on which nobody listens.
    Refusing { _socket: TcpSocket },
    /// A queue of connections that is full, and what fills it.
    NeverAccepting { _listener: TcpListener, _fillers: Vec<TcpStream> },
}

impl FaultServer {
    /// Binds a free port of 127.0.0.1 and begins to follow the scripts.
    ///
    /// Must be called within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`] if no port can be had.
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

    /// A port that refuses every connection, and that no other program can take meanwhile.
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`] if no port can be had.
    pub fn refusing() -> Result<Self, ServerError> {
        let socket = bind().map_err(bind_error)?;
        let address = socket.local_addr().map_err(bind_error)?;
        Ok(Self { address, records: Records::default(), kind: Kind::Refusing { _socket: socket } })
    }

    /// A port on which no connection comes about: its queue is full, and nobody accepts.
    ///
    /// Filling the queue takes 100 ms, since that it is full shows by silence only. It relies on Linux, which
    /// ignores a client while the queue is full.
    ///
    /// # Errors
    ///
    /// [`ServerError::Bind`] if no port can be had, or if its queue takes more and more.
    pub async fn never_accepting() -> Result<Self, ServerError> {
        let listener = bind().and_then(|socket| socket.listen(1)).map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let fillers = fill(address).await.map_err(|source| ServerError::Bind { address, source })?;
        let kind = Kind::NeverAccepting { _listener: listener, _fillers: fillers };
        Ok(Self { address, records: Records::default(), kind })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL without a path, such as `http://127.0.0.1:49152`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What became of each connection so far, in the order in which they came.
    #[must_use]
    pub fn records(&self) -> Vec<FaultRecord> {
        self.records.all()
    }

    /// Accepts no more, waits until the connections under way have come to their end, and tells what became of each.
    ///
    /// A script that waits for a gate or for the client waits on; a test puts a limit around it.
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

/// Connects until no connection comes about any more.
async fn fill(address: SocketAddr) -> io::Result<Vec<TcpStream>> {
    let mut fillers = Vec::new();
    while fillers.len() < MOST_FILLERS {
        match timeout(FILLER_LIMIT, TcpStream::connect(address)).await {
            Ok(connected) => fillers.push(connected?),
            Err(_elapsed) => return Ok(fillers),
        }
    }
    Err(io::Error::other("the queue of a listener takes more connections than it was made for"))
}

/// Gives each connection its script, until it is told to stop; then it waits for those that it has.
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
            // First, so that a connection that came before the end is seen.
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let script = scripts.get(count).or(scripts.last()).cloned();
                    count += 1;
                    connections.spawn(connection::serve(stream, script.unwrap_or_else(refusal), records.begin()));
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            // Nothing is ever sent: the other end is dropped.
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

fn refusal() -> FaultScript {
    FaultScript::new().reset()
}

#[cfg(test)]
mod tests;
