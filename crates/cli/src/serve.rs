//! `pintle serve`: sessions for people and programs that are not at this terminal.

mod controls;
mod host;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use pintle_server::{Scope, Server, ServerLimits, Token, Tokens};
use pintle_store::SessionStore;
use tokio::net::{TcpListener, UnixListener};

use self::host::ServeHost;
use crate::args::{RunArgs, ServeSessionsArgs};
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::failure::{Failure, OrFailure as _};
use crate::interrupt::Interrupts;
use crate::process_env::ProcessEnv;
use crate::sessions::Sessions;

/// Port by default.
const PORT: u16 = 7468;

/// Mode of the socket: only its owner can connect.
const SOCKET_MODE: u32 = 0o600;

/// Serves sessions until a signal.
///
/// # Errors
///
/// A usage failure for flags that are about one task, and a failure if nothing can be listened on.
pub(crate) async fn serve(args: ServeSessionsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(&args.run)?;
    let interrupts = Interrupts::listen()?;
    let sessions = Sessions::open(process_env)?;
    let store: Arc<dyn SessionStore> = Arc::new(sessions.store().clone());
    let host = ServeHost::new(&args.run, process_env).await?;
    let server = Server::new(Arc::new(host), store, ServerLimits::default()).with_hosts(args.host.clone());
    let served = match &args.socket {
        Some(path) => serve_socket(&server, path, &interrupts).await,
        None => {
            let address = args.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
            serve_address(server, address, &interrupts, process_env).await
        }
    };
    served.map(|()| Exit::Done)
}

/// Rejects flags that are about one task: clients say what to do, and where.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    args.refuse_hosted(&[], |flag| format!("`pintle serve` takes no {flag}: clients decide on that"))
}

/// Serves on an address, for whoever has the token that is printed.
async fn serve_address(
    server: Server,
    address: SocketAddr,
    interrupts: &Interrupts,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await.or_failed(&format!("cannot listen on {address}"))?;
    let address = listener.local_addr().or_failed("cannot listen")?;
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "--listen {address}: connections are not encrypted, so only the loopback interface is served"
        ))
        .with_hint("put a proxy with TLS before it, or use --socket"));
    }
    let name = process_env.principal().map_or_else(|| "owner".to_owned(), |principal| principal.to_string());
    let (token, secret) = Token::generate(name, Scope::ALL).or_failed("cannot make a token")?;
    let server = server.with_tokens(Tokens::new([token]));
    take_up(&server).await?;
    // The fragment is sent to nobody.
    Console::new().write(&format!("http://{address}/#token={secret}\n")).await?;
    server.serve_tcp(listener, interrupts.first_signal()).await.or_failed("cannot serve")
}

async fn serve_socket(server: &Server, path: &Path, interrupts: &Interrupts) -> Result<(), Failure> {
    let shown = path.display();
    let listener = bind(path).await?;
    take_up(server).await?;
    Console::new().write(&format!("listening on {shown}\n")).await?;
    server.serve_unix(listener, interrupts.first_signal()).await;
    remove(path);
    Ok(())
}

/// Binds a socket. A file that a server left which was killed makes room for it.
#[expect(clippy::disallowed_methods, reason = "the socket of a server that is gone is removed")]
async fn bind(path: &Path) -> Result<UnixListener, Failure> {
    let shown = path.display();
    if path.exists() {
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(Failure::usage(format!("--socket {shown}: another server listens there")));
        }
        let is_socket = std::fs::symlink_metadata(path)
            .is_ok_and(|metadata| std::os::unix::fs::FileTypeExt::is_socket(&metadata.file_type()));
        if !is_socket {
            return Err(Failure::usage(format!("--socket {shown}: there is a file, and it is no socket")));
        }
        std::fs::remove_file(path).or_failed(&format!("cannot replace {shown}"))?;
    }
    // Otherwise another user could connect between `bind` and `chmod`.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound.or_failed(&format!("cannot listen on {shown}"))?;
    let mode = std::fs::Permissions::from_mode(SOCKET_MODE);
    std::fs::set_permissions(path, mode).or_failed(&format!("cannot protect {shown}"))?;
    Ok(listener)
}

#[expect(clippy::disallowed_methods, reason = "the socket belongs to this process")]
fn remove(path: &Path) {
    // A socket that stays is replaced by the next server.
    let _ = std::fs::remove_file(path);
}

async fn take_up(server: &Server) -> Result<(), Failure> {
    let taken = server.take_up().await.or_failed("cannot read the sessions")?;
    if taken > 0 {
        console::notice(&format!("sessions taken up that were under way: {taken}"));
    }
    Ok(())
}
