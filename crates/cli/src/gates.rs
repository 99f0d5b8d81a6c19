//! Gates that check the calls of a run, and the described calls of `pintle rules check`.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{SessionId, SystemClock};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{
    GateChain, GatePosition, Grant, GrantGate, HiddenPathGate, Policy, PolicyGate, Revocations,
};
use pintle_tools::Effect;
use pintle_tools::gate::{Permission, ProtectedPathGate};

use crate::args::ConfinementArgs;
use crate::environment::{HiddenPaths, SandboxState};
use crate::failure::Failure;
use crate::policy::PROJECT_DIRECTORY;
use crate::policy::grant::RevocationFile;
use crate::process_env::ProcessEnv;

/// Returns the gates by hidden files, protected files, and rules and mode, for an environment that hides these files. In
/// mode plan, commands may run if a sandbox confines them. The sandbox confines only commands; the gates confine file
/// tools to the same directories.
pub(crate) fn chain(
    environment: &Arc<dyn ExecutionEnvironment>,
    hidden: &HiddenPaths,
    policy: &Policy,
    holds_commands: bool,
    temporary: Option<&Path>,
) -> GateChain {
    let by_hidden = HiddenPathGate::new(Arc::clone(environment), hidden.paths.clone());
    let protected = ProtectedPathGate::new(Arc::clone(environment));
    let by_policy = PolicyGate::new(policy.clone(), Arc::clone(environment));
    let by_policy = if holds_commands { by_policy.holding_commands_to_reading() } else { by_policy };
    GateChain::new()
        .with(GatePosition::Hidden, hidden.visible.iter().fold(by_hidden, HiddenPathGate::with_visible))
        .with(GatePosition::Protected, protected.with(PROJECT_DIRECTORY).permission(Permission::Deny))
        .with(GatePosition::Policy, temporary.into_iter().fold(by_policy, PolicyGate::with_root))
}

/// Returns the gate that enforces the grant of a session.
///
/// A grant that is not valid here and now is a usage failure, so that the model is not called.
pub(crate) fn of_grant(
    grant: Grant,
    session: SessionId,
    environment_name: &str,
    environment: &Arc<dyn ExecutionEnvironment>,
    process_env: &ProcessEnv,
) -> Result<GrantGate, Failure> {
    let (grant, environment) = (Arc::new(grant), Arc::clone(environment));
    let revocations = Revocations::new().with_source(RevocationFile::open(process_env)?);
    let clock = Arc::new(SystemClock);
    let gate = GrantGate::new(grant, session, environment, environment_name, clock, revocations);
    match gate.standing() {
        None => Ok(gate),
        Some(reason) => Err(Failure::usage(format!("the grant is not valid: {reason}"))),
    }
}

/// Fails if a grant forbids the network and the environment does not block it for commands, or for hooks that run where
/// these do.
///
/// A grant without network may allow commands, or be used in a project with hooks, only if a sandbox blocks the
/// network.
pub(crate) fn require_network_blocked(
    grant: &Grant,
    sandbox: &SandboxState,
    confinement: &ConfinementArgs,
    has_project_hooks: bool,
) -> Result<(), Failure> {
    let id = &grant.id;
    let (message, hint) = if grant.network || blocks_network(sandbox, confinement) {
        return Ok(());
    } else if grant.effect.contains(Effect::Execute) {
        (
            format!("grant {id} allows commands but not the network, and no sandbox blocks it"),
            "run in a sandbox, and without --network on, or give a grant with `\"network\": true` or without commands",
        )
    } else if has_project_hooks {
        (
            format!(
                "grant {id} does not allow the network, and no sandbox blocks it for the hooks of the project"
            ),
            "run in a sandbox, and without --network on, or give a grant with `\"network\": true`",
        )
    } else {
        return Ok(());
    };
    Err(Failure::usage(message).with_hint(hint))
}

/// Returns whether commands have no network.
pub(crate) fn blocks_network(sandbox: &SandboxState, confinement: &ConfinementArgs) -> bool {
    matches!(sandbox, SandboxState::Level(_)) && !confinement.has_network()
}
