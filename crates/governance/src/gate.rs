//! The gate that enforces a grant.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use pintle_agent::{Clock, SessionId, SystemClock, Timestamp};
use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_tools::gate::{Delegate, Gate, Verdict, write_locations};
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, SandboxSide};

use crate::grant::{Delegation, Grant, GrantId, PathScope};
use crate::network::NetworkScope;
use crate::revocation::Revocations;
use crate::rules::SERVER_PREFIX;

/// Denies every call that a grant does not allow. It never asks, since no user can approve a call outside the grant.
///
/// Paths are judged with all links resolved in the environment. A path that cannot be resolved is denied, and so is a
/// call that changes files without naming them. A command names no paths: its effect is judged, and its environment
/// confines it.
#[derive(Clone, Debug)]
pub struct GrantGate {
    grant: Arc<Grant>,
    session: SessionId,
    env: Arc<dyn ExecutionEnvironment>,
    environment: String,
    clock: Arc<dyn Clock>,
    /// Latest time at which a call was judged. A clock that jumps back does not revive an expired grant.
    latest: Arc<Mutex<Timestamp>>,
    revocations: Revocations,
}

impl GrantGate {
    /// Creates the gate of a session, with the system's clock and without revocations. `environment` is the name of its
    /// environment in the grant.
    #[must_use]
    pub fn new(
        grant: Arc<Grant>,
        session: SessionId,
        env: Arc<dyn ExecutionEnvironment>,
        environment: impl Into<String>,
    ) -> Self {
        let (clock, revocations) = (Arc::new(SystemClock) as Arc<dyn Clock>, Revocations::new());
        let latest = Arc::new(Mutex::new(clock.now()));
        Self { grant, session, env, environment: environment.into(), clock, latest, revocations }
    }

    /// Sets the clock that determines whether the grant is in force.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.latest = Arc::new(Mutex::new(clock.now()));
        self.clock = clock;
        self
    }

    /// Sets the revocations that end the grant.
    #[must_use]
    pub fn with_revocations(mut self, revocations: Revocations) -> Self {
        self.revocations = revocations;
        self
    }

    /// Returns the grant.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns why the grant allows no call now; `None` if it is in force.
    #[must_use]
    pub fn standing(&self) -> Option<String> {
        let Grant { id, session, window, .. } = self.grant.as_ref();
        if let Some(objection) = self.revocations.objection(&self.grant) {
            return Some(objection);
        }
        if session.as_ref().is_some_and(|session| *session != self.session) {
            return Some(format!("grant {id} is for another session"));
        }
        let now = self.now();
        if window.not_before.is_some_and(|start| now < start) {
            return Some(format!("grant {id} does not hold yet"));
        }
        if !window.contains(now) {
            return Some(format!("grant {id} has expired"));
        }
        if !self.grant.allows_environment(&self.environment) {
            return Some(format!("grant {id} does not allow work in `{}`", self.environment));
        }
        None
    }

    fn now(&self) -> Timestamp {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = self.clock.now().max(*latest);
        *latest
    }

    /// Returns why a call is not allowed, regardless of its paths.
    fn objection(&self, call: &PreparedCall) -> Option<String> {
        let Grant { id, effect, network, outside_sandbox, .. } = self.grant.as_ref();
        if let Some(objection) = self.standing() {
            return Some(objection);
        }
        if !self.grant.allows_tool(call.name()) {
            return Some(format!("grant {id} does not allow this tool"));
        }
        if !effect.contains(call.effect()) {
            let what = if call.effect() == Effect::Write { "changes of files" } else { "commands" };
            return Some(format!("grant {id} does not allow {what}"));
        }
        if let Some(objection) = network_objection(network, call) {
            return Some(format!("grant {id} does not allow {objection}"));
        }
        if call.sandbox() == Some(SandboxSide::Outside) && !outside_sandbox {
            return Some(format!("grant {id} does not allow commands outside of the sandbox"));
        }
        if call.sandbox() == Some(SandboxSide::Outside) && !network.is_all() {
            return Some(format!(
                "grant {id} does not allow the network, which a command outside of the sandbox has"
            ));
        }
        let runs_commands = call.effect() == Effect::Execute;
        let objection =
            self.grant.argument_objection((call.name(), call.kind()), call.arguments(), runs_commands)?;
        Some(format!("grant {id}: {objection}"))
    }

    async fn path_objection(&self, call: &PreparedCall) -> Option<String> {
        let Grant { id, reads, writes, .. } = self.grant.as_ref();
        let env = call.judged_in(&self.env);
        if call.effect() == Effect::Write && call.writes().is_empty() {
            return Some(format!(
                "grant {id} limits changes, and the call names no file that it would change"
            ));
        }
        if !call.writes().is_empty() {
            let writes = RealScope::new(writes, env.as_ref()).await;
            for path in call.writes() {
                let locations = write_locations(env.as_ref(), path).await;
                if let Some(objection) = writes.objection(path, locations) {
                    return Some(format!("grant {id} does not allow changing {objection}"));
                }
            }
        }
        if !call.reads().is_empty() {
            let reads = RealScope::new(reads, env.as_ref()).await;
            for path in call.reads() {
                let target = env.canonicalize(path).await;
                let excluded = reads.excluded_below(path, target.as_deref().ok());
                if let Some(excluded) = excluded.filter(|_| !call.read_extent().is_listing()) {
                    let (path, excluded) = (path.display(), excluded.display());
                    return Some(format!(
                        "grant {id} does not allow reading {excluded}, which a search of {path} reads; search a directory below"
                    ));
                }
                if let Some(objection) = reads.objection(path, target.map(|target| vec![target])) {
                    return Some(format!("grant {id} does not allow reading {objection}"));
                }
            }
        }
        None
    }
}

/// Describes the network or the host that a call may not reach; `None` if it may. The connections of servers and commands are
/// limited where they are opened.
fn network_objection(network: &NetworkScope, call: &PreparedCall) -> Option<String> {
    if call.effect() != Effect::Network {
        return None;
    }
    match network {
        NetworkScope::All => None,
        NetworkScope::None => Some("the network".to_owned()),
        NetworkScope::Hosts(_) if call.name().starts_with(SERVER_PREFIX) => None,
        NetworkScope::Hosts(hosts) => match call.hosts() {
            None => Some("calls that do not name their hosts".to_owned()),
            Some(called) => called
                .iter()
                .find(|host| !hosts.names(host))
                .map(|host| format!("the host {host}; the user can add it to the grant")),
        },
    }
}

/// Scope of a grant, with the links in its exceptions resolved: the target of an excepted link is excepted as well.
struct RealScope<'a> {
    scope: &'a PathScope,
    excluded: Vec<PathBuf>,
}

impl<'a> RealScope<'a> {
    async fn new(scope: &'a PathScope, env: &dyn ExecutionEnvironment) -> Self {
        let mut excluded = Vec::new();
        for path in scope.except.iter().map(Path::new) {
            // A path that cannot be resolved cannot be read by another name.
            excluded.extend(env.canonicalize(path).await.ok().filter(|real| real != path));
        }
        Self { scope, excluded }
    }

    /// Describes a path that is excluded or has a location outside of the scope; `None` if all locations are in the
    /// scope.
    fn objection(&self, path: &Path, locations: Result<Vec<PathBuf>, EnvError>) -> Option<String> {
        let locations = match locations {
            Ok(locations) => locations,
            Err(error) => return Some(format!("{}, which cannot be resolved: {error}", path.display())),
        };
        if self.excludes(path) {
            return Some(path.display().to_string());
        }
        let is_outside = |real: &&PathBuf| !self.scope.contains(real) || self.excludes(real);
        let real = locations.iter().find(is_outside)?;
        let leads = if real == path { String::new() } else { format!(", which leads to {}", real.display()) };
        Some(format!("{}{leads}", path.display()))
    }

    fn excludes(&self, path: &Path) -> bool {
        self.scope.excludes(path) || self.excluded.iter().any(|excluded| path.starts_with(excluded))
    }

    /// Returns an excluded path below a directory, by its given or its resolved name.
    fn excluded_below(&self, path: &Path, real: Option<&Path>) -> Option<&Path> {
        let below = |directory: &Path| {
            let found = || self.excluded.iter().find(|excluded| excluded.starts_with(directory));
            self.scope.excluded_below(directory).or_else(|| found().map(PathBuf::as_path))
        };
        below(path).or_else(|| real.and_then(below))
    }
}

#[async_trait]
impl Gate for GrantGate {
    fn name(&self) -> &'static str {
        "grant"
    }

    fn for_subagent(&self, subagent: &Delegate<'_>) -> Result<Option<Arc<dyn Gate>>, String> {
        let Grant { id, delegation, .. } = self.grant.as_ref();
        let session = SessionId::new(subagent.session);
        let child = Grant {
            id: GrantId::new(format!("{id}/{}", subagent.name)),
            session: Some(session.clone()),
            delegation: Delegation::new(delegation.depth.saturating_sub(1), delegation.width),
            ..self.grant.as_ref().clone()
        };
        let grant = self.grant.attenuate(child);
        let grant = grant.map_err(|error| format!("grant {id} does not allow a subagent: {error}"))?;
        Ok(Some(Arc::new(Self { grant: Arc::new(grant), session, ..self.clone() })))
    }

    fn authority(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.grant.as_ref()).ok()
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        let objection = match self.objection(call) {
            None => self.path_objection(call).await,
            objection => objection,
        };
        objection.map_or(Verdict::ALLOW, Verdict::deny).with_rule(self.grant.label()).binding()
    }
}

#[cfg(test)]
mod tests;
