//! Tasks on Restate: the worker that it calls, and the commands that notify it.

use std::net::SocketAddr;
use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_host::SandboxLevel;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_restate::{EngineError, IdentityKeys, RestateEngine};
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use pintle_workflow::TaskSupervisor;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::arguments::{WorkerArgs, sandbox_remedy};
use crate::exit::Exit;

/// Variable with the address of Restate's ingress.
pub(super) const RESTATE: &str = "PINTLE_RESTATE";

/// Serves the tasks of a supervisor to an engine until a signal arrives.
///
/// Refuses to serve if any client on the network could run unsandboxed commands.
pub(crate) async fn serve(
    address: SocketAddr,
    args: &WorkerArgs,
    sandbox: SandboxLevel,
    supervisor: Arc<TaskSupervisor>,
    interrupts: Interrupts,
) -> Result<Exit, Failure> {
    let keys = IdentityKeys::new(&args.identity_key).map_err(|error| Failure::usage(error.to_string()))?;
    let is_open = !address.ip().is_loopback() && keys.is_empty();
    if is_open && sandbox == SandboxLevel::Off && !args.allow_unsandboxed_network {
        let message =
            format!("--listen {address}: clients without a key could run commands without a sandbox");
        let remedy = sandbox_remedy(&args.run.session.given);
        return Err(Failure::usage(message)
            .with_hint(&format!("{remedy}, or give --identity-key or --allow-unsandboxed-network")));
    }
    let listener = TcpListener::bind(address).await.or_failed(&format!("cannot listen on {address}"))?;
    let address = listener.local_addr().or_failed("cannot listen")?;
    if is_open {
        console::notice(&format!(
            "any client that reaches {address} can run tasks: requests are not authenticated without --identity-key"
        ));
    }
    let stop = CancellationToken::new();
    let serving = pintle_restate::serve(listener, supervisor, &keys, stop.clone().cancelled_owned());
    let registering = async {
        if let Some(admin) = &args.admin {
            let worker = args.reached_at.clone().unwrap_or_else(|| format!("http://{address}"));
            RestateEngine::register(admin, &worker).await.map_err(|error| engine_failure(&error))?;
        }
        console::print(&format!("serving tasks to Restate on http://{address}/\n")).await?;
        interrupts.first_signal().await;
        Ok(())
    };
    let stopping = async {
        let registered: Result<(), Failure> = registering.await;
        stop.cancel();
        registered
    };
    let ((), registered) = tokio::join!(serving, stopping);
    registered.map(|()| Exit::Done)
}

/// Requires an engine at this address.
pub(super) async fn require_engine(url: &str) -> Result<(), Failure> {
    connect(url)?.check().await.map_err(|error| engine_failure(&error))
}

/// Hands over a task to the engine.
pub(super) async fn hand_over(url: &str, id: &SessionId) -> Result<Exit, Failure> {
    connect(url)?.start(id, None).await.map_err(|error| engine_failure(&error))?;
    console::notice(&format!("Restate runs the task; `pintle task report {id}` shows its status"));
    Ok(Exit::Done)
}

/// Makes the engine check the task now, if one is configured. A posted signal is effective in any case.
pub(super) async fn wake(id: &SessionId, process_env: &ProcessEnv) -> Result<(), Failure> {
    let Some(url) = process_env.variable(RESTATE) else { return Ok(()) };
    if let Err(error) = connect(&url)?.wake(id).await {
        let cause = engine_failure(&error).message();
        console::notice(&format!("{cause}; a waiting task checks for input within 5 minutes"));
    }
    Ok(())
}

fn connect(url: &str) -> Result<RestateEngine, Failure> {
    RestateEngine::new(url).map_err(|error| Failure::usage(error.to_string()))
}

fn engine_failure(error: &EngineError) -> Failure {
    let message = match error {
        EngineError::Refused { .. } | EngineError::Answer(_) => "Restate does not take the task",
        EngineError::Address(_)
        | EngineError::Unreachable { .. }
        | EngineError::Exchange(_)
        | EngineError::TimedOut
        | _ => "cannot reach Restate",
    };
    Failure::failed(message).caused_by(error)
}
