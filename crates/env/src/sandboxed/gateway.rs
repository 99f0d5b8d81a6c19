//! The way of sandboxed commands to some hosts, through a proxy of the application.

use std::{
    ffi::OsString,
    fmt, io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use super::listener::ListenerHelper;

/// Opens the way of commands to the hosts that they may reach.
///
/// [`SandboxedEnvironment::with_gateway`](super::SandboxedEnvironment::with_gateway) calls it for each sandbox of the level *full*
/// without network. Commands there have only a loopback interface, on which a proxy of the application listens.
pub trait NetworkGateway: fmt::Debug + Send + Sync {
    /// Returns the program that opens the listener in a sandbox.
    fn helper(&self) -> ListenerHelper;

    /// Opens the gateway of one sandbox, which runs one command. Dropping it ends the gateway and closes its connections.
    ///
    /// # Errors
    ///
    /// The command does not start then.
    fn open(&self) -> io::Result<Arc<dyn SandboxGateway>>;
}

/// The way of one command to the hosts that it may reach.
pub trait SandboxGateway: Send + Sync {
    /// Returns the variables by which programs of the command find the proxy at this address.
    fn variables(&self, address: SocketAddr) -> Vec<(OsString, OsString)>;

    /// Serves the listener, which is in the network of the sandbox, in the background until the gateway is dropped. Called once, in
    /// the runtime of the command.
    ///
    /// # Errors
    ///
    /// The command does not start then.
    fn serve(&self, listener: TcpListener) -> io::Result<()>;

    /// Returns lines that follow the output of the command, such as the hosts that were refused; `None` without any.
    fn notice(&self) -> Option<String>;
}

const _: fn(&dyn NetworkGateway, &dyn SandboxGateway) = |_, _| {};
