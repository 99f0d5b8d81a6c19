//! `pintle serve`: serves sessions over HTTP to browsers and programs.

mod access;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_governance::Mode;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::{Host, SandboxLevel, SessionSpec};
use pintle_server::{AccessToken, Server, ServerLimits, TokenScope, UserSessionHost, UserSessionHostBuilder};
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use tokio::net::{TcpListener, UnixListener};

use self::access::{AuditFile, ServedTokens, TlsFiles, keep_reading};
use crate::arguments::{RunArgs, ServeSessionsArgs, sandbox_remedy};
use crate::commands::tokens::TokenFile;
use crate::exit::Exit;

/// Port by default.
const PORT: u16 = 7468;

/// Minimum interval of the search for sessions whose server has died.
const MIN_TAKEOVER_INTERVAL: Duration = Duration::from_secs(1);

/// Mode of the socket: only its owner can connect.
const SOCKET_MODE: u32 = 0o600;

/// Serves sessions until a signal.
pub(crate) async fn serve(args: ServeSessionsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(&args.run)?;
    let given = args.run.given()?;
    let interrupts = Interrupts::listen()?;
    let host = Host::new(process_env.clone());
    let store = host.sessions().await?.shared_store();
    let sessions = UserSessionHost::builder(host).with_settings(given).with_server_files(server_files(&args));
    let sessions =
        args.root.iter().cloned().fold(sessions, UserSessionHostBuilder::with_root).build().await?;
    let spec = sessions.default_spec().clone();
    let limits = ServerLimits::default()
        .with_sessions(usize::try_from(args.max_sessions).unwrap_or(usize::MAX))
        .with_sessions_of_tenant(usize::try_from(args.max_tenant_sessions).unwrap_or(usize::MAX))
        .with_waiting(usize::try_from(args.max_waiting).unwrap_or(usize::MAX))
        .with_rate(args.max_rate);
    let audit = AuditFile::new(args.audit_log.as_deref(), process_env)?;
    let server = Server::new(Arc::new(sessions), store, limits).with_audit(Arc::new(audit));
    let serving = async {
        match &args.socket {
            Some(path) => serve_socket(&server, path, &interrupts).await,
            None => serve_address(server.clone(), (&args, &spec), &interrupts, process_env).await,
        }
    };
    let takeover_interval = (pintle_host::session_store::lease(process_env)? / 3).max(MIN_TAKEOVER_INTERVAL);
    let reopening = async {
        // Sessions in files are adopted once, at the start: servers on other hosts cannot access them.
        if pintle_host::session_store::database_address(process_env).is_some() {
            server.keep_reopening(takeover_interval).await;
        }
        // The adoption ends first when the server shuts down.
        std::future::pending().await
    };
    tokio::select! {
        served = serving => served.map(|()| Exit::Done),
        never = reopening => never,
    }
}

/// Returns the files that flags name and that control the permissions of clients.
fn server_files(args: &ServeSessionsArgs) -> Vec<PathBuf> {
    let named = [&args.tokens, &args.tls_cert, &args.tls_key, &args.audit_log, &args.socket];
    let rotated_path = args.audit_log.as_deref().map(process_env::rotated_path);
    named.into_iter().flatten().cloned().chain(rotated_path).collect()
}

/// Rejects flags for a single task: clients send the task and the directory.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    args.refuse_hosted(&[], |flag| format!("`pintle serve` takes no {flag}: clients decide on that"))
}

/// Serves on an address, to clients with a token.
async fn serve_address(
    server: Server,
    (args, spec): (&ServeSessionsArgs, &SessionSpec),
    interrupts: &Interrupts,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let address = args.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    let tls = TlsFiles::from_args(args)?;
    let file = TokenFile::new(args.tokens.as_deref(), process_env)?;
    let is_local = address.ip().is_loopback();
    // On this machine, any process that reads the output has full access.
    let (own, secret) = if is_local {
        let (token, secret) = AccessToken::generate(process_env.principal().to_string(), TokenScope::ALL)
            .or_failed("cannot create a token")?;
        (Some(token), Some(secret))
    } else {
        (None, None)
    };
    let tokens = ServedTokens::new(file, own)?;
    if !is_local {
        check_reach((args, spec), address, tls.is_some(), tokens.has_any()?)?;
    }
    let listener = TcpListener::bind(address).await.or_failed(&format!("cannot listen on {address}"))?;
    let address = listener.local_addr().or_failed("cannot listen")?;
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let server = server.with_tokens(tokens.tokens.clone()).with_hosts(args.host.iter().cloned().chain([ip]));
    reopen_sessions(&server).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let line = match secret {
        // Browsers do not send the fragment.
        Some(secret) => format!("{scheme}://{address}/#token={secret}\n"),
        None => format!("listening on {scheme}://{address}/\n"),
    };
    console::print(&line).await?;
    let stop = interrupts.first_signal();
    let serving = async {
        match &tls {
            Some(tls) => server.serve_tls(listener, &tls.identity, stop).await,
            None => server.serve_tcp(listener, stop).await,
        }
    };
    tokio::select! {
        served = serving => served.or_failed("cannot serve"),
        () = keep_reading(&tokens, tls.as_ref()) => Ok(()),
    }
}

/// Checks the requirements of an address beyond this machine: encryption, tokens, `--host` for an unspecified address,
/// and a sandbox or approval for commands.
fn check_reach(
    (args, spec): (&ServeSessionsArgs, &SessionSpec),
    address: SocketAddr,
    has_tls: bool,
    has_tokens: bool,
) -> Result<(), Failure> {
    let refused = |problem: &str| Failure::usage(format!("--listen {address}: {problem}"));
    if !has_tls && !args.no_tls {
        return Err(refused("beyond this machine, connections have to be encrypted")
            .with_hint("give --tls-cert and --tls-key, or --no-tls behind a proxy that has TLS"));
    }
    if !has_tokens {
        return Err(refused("beyond this machine, clients need tokens, but no token exists")
            .with_hint("make one: `pintle tokens add NAME --scope read,run,approve`"));
    }
    let is_unsandboxed = spec.environment.sandbox == SandboxLevel::Off;
    let is_unasked = spec.policy.mode == Mode::Auto;
    if is_unsandboxed && !is_unasked {
        console::notice(
            "commands of remote clients run without a sandbox: tokens with `approve` reach all files of this user",
        );
    }
    if is_unsandboxed && is_unasked && !args.allow_unsandboxed_network {
        let given = &args.run.session.given;
        let sandbox = sandbox_remedy(given);
        let mode = match given.contains_key("mode") {
            true => "leave out --mode auto",
            false => "give --mode edit, since the configuration sets mode auto",
        };
        return Err(refused("remote clients could run commands without a sandbox and without approval")
            .with_hint(&format!("{sandbox}, or {mode}, or give --allow-unsandboxed-network")));
    }
    if address.ip().is_unspecified() && args.host.is_empty() {
        return Err(refused("expected --host with the name by which clients reach the server"));
    }
    Ok(())
}

async fn serve_socket(server: &Server, path: &Path, interrupts: &Interrupts) -> Result<(), Failure> {
    let shown = path.display();
    let listener = bind(path).await?;
    reopen_sessions(server).await?;
    console::print(&format!("listening on {shown}\n")).await?;
    server.serve_unix(listener, interrupts.first_signal()).await;
    remove(path);
    Ok(())
}

/// Binds a socket. A stale file of a killed server is replaced.
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
            return Err(Failure::usage(format!("--socket {shown}: the file exists and is not a socket")));
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
    // The next server replaces a remaining socket.
    let _ = std::fs::remove_file(path);
}

async fn reopen_sessions(server: &Server) -> Result<(), Failure> {
    let reopened = server.reopen_sessions().await.or_failed("cannot read the sessions")?;
    if reopened.sessions > 0 {
        console::notice(&format!("resumed sessions: {}", reopened.sessions));
    }
    if reopened.waiting > 0 {
        console::notice(&format!("sessions that resume once there is room: {}", reopened.waiting));
    }
    for (id, problem) in &reopened.failed {
        console::notice(&format!("session {id} is not resumed: {problem}"));
    }
    Ok(())
}
