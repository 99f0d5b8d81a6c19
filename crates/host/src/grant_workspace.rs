//! The workspace and the network of a session with a grant.

use pintle_governance::{Grant, NetworkScope, Revocations, WorkspacePolicy};
use pintle_tools::Effect;

use crate::environment::{Confinement, EnvSession, SandboxState};
use crate::failure::Failure;
use crate::policy::grant::RevocationFile;
use crate::process_env::ProcessEnv;
use crate::spec::SessionSpec;

/// Returns the policy of the session's workspace. With a grant, it has the revocations of this machine's user.
pub fn workspace_policy(
    env_session: &EnvSession,
    has_grant: bool,
    process_env: &ProcessEnv,
) -> Result<WorkspacePolicy, Failure> {
    let workspace = env_session.workspace().clone();
    if !has_grant {
        return Ok(workspace);
    }
    let revocations = Revocations::new().with_source(RevocationFile::open(process_env)?);
    Ok(workspace.with_revocations(revocations))
}

/// Fails if a grant forbids the network and the environment does not block it for commands, or for hooks that run where
/// these do.
///
/// A grant without network may allow commands, or be used in a project with hooks, only if a sandbox blocks the
/// network.
pub fn require_network_blocked(
    grant: &Grant,
    sandbox: &SandboxState,
    confinement: &Confinement,
    has_project_hooks: bool,
) -> Result<(), Failure> {
    let id = &grant.id;
    let (message, hint) = if grant.network.is_all() || blocks_network(sandbox, confinement) {
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

/// Removes the hosts that the grant in the settings does not allow from the network of the session.
pub(crate) fn limit_network(spec: &mut SessionSpec) {
    if let (Some(grant), Some(network)) = (&spec.policy.grant, &mut spec.environment.network) {
        *network = network.limited_by(&grant.network);
    }
}

/// Fails if commands and web tools may reach hosts that a grant does not allow. The grant may be one on the record, which the
/// settings do not have.
pub(crate) fn require_hosts_within(grant: &Grant, spec: &SessionSpec) -> Result<(), Failure> {
    let environment = &spec.environment;
    let is_within = match (environment.hosts(), &grant.network) {
        (Some(hosts), granted) => NetworkScope::Hosts(hosts.clone()).is_within(granted),
        // Without a list of hosts, the other checks decide.
        (None, NetworkScope::Hosts(_)) => !environment.has_network(),
        (None, NetworkScope::None | NetworkScope::All) => true,
    };
    if is_within {
        return Ok(());
    }
    let id = &grant.id;
    Err(Failure::usage(format!("grant {id} does not allow all hosts that the session may reach"))
        .with_setting("environment.network")
        .with_hint("set `network` to hosts that the grant allows, or to \"off\""))
}

/// Returns whether commands have no network.
pub(crate) fn blocks_network(sandbox: &SandboxState, confinement: &Confinement) -> bool {
    matches!(sandbox, SandboxState::Level(_)) && !confinement.has_network()
}
