//! Sessions with gates, a record and an approver.

use std::ops::Deref;
use std::sync::Arc;

use pintle_agent::{
    Approver, BudgetSource, Checkpoints, Hooks, Journal, Principal, Record, Run, Session, SessionBuilder,
    SessionConfig, SessionError, SessionId, Start,
};
use pintle_tools::gate::Gate;

use crate::gate_chain::{GateChain, GatePosition};
use crate::grant::{Axis, Grant, GrantError};
use crate::hooks::JoinedHooks;
use crate::policy::{Policy, PolicyError, RecordedPolicy};
use crate::revocation::Revocations;
use crate::workspace_policy::WorkspacePolicy;

/// Session with gates, a record and an approver. It derefs to the [`Session`].
///
/// Calls pass the gates that the application has added to the session's builder. Then they pass the grant, hidden and
/// protected paths, rules and mode, and the watch, in the order of [`GatePosition`]. Protected are git's configuration,
/// hooks and attributes, and `.pintle`; a command that changes one of them ends the run. With a grant, the lower limit of
/// the grant and the configuration applies to spending and subagents. Each process records the complete grant, the mode,
/// the rules and the user of the session first.
#[derive(Debug)]
pub struct GovernedSession {
    session: Session,
    policy: Policy,
    revocations: Revocations,
    grant: Option<Arc<Grant>>,
}

/// Builder of a [`GovernedSession`].
#[derive(Debug)]
pub struct GovernedBuilder {
    session: SessionBuilder,
    grant: Option<(Grant, String)>,
    is_kept_decided: bool,
    has_approver: bool,
    has_principal: bool,
    policy: Option<Policy>,
    workspace: WorkspacePolicy,
    sandbox: Option<String>,
    gates: GateChain,
    has_watch: bool,
    hooks: Vec<Arc<dyn Hooks>>,
    history: History,
    recorded: RecordedSettings,
    /// Position whose gates are left out.
    #[cfg(test)]
    without: Option<GatePosition>,
}

/// History with which a session starts.
#[derive(Debug)]
enum History {
    New,
    Resumed(Box<Record>),
    /// With the grant of the origin.
    Forked(Box<Start>, Option<Box<Grant>>),
}

impl History {
    /// Returns the grant that the grant of the session must not exceed, and its description.
    fn recorded_grant(&self) -> Result<Option<(Grant, &'static str)>, GrantError> {
        match self {
            Self::New => Ok(None),
            Self::Resumed(record) => {
                Ok(Grant::of_record(record)?.map(|grant| (grant, "the grant of its record")))
            }
            Self::Forked(_, grant) => {
                Ok(grant.as_deref().cloned().map(|grant| (grant, "the grant of its origin")))
            }
        }
    }
}

/// Recorded settings that a session keeps when it continues, in place of the settings of its builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedSettings {
    /// The last mode; default true. Only for a resumed session.
    pub mode: bool,
    /// The rules that were added; default true. Only for a resumed session. See [`RecordedPolicy`].
    pub rules: bool,
    /// The reasoning effort; default true. A fork always has the effort of its start.
    pub effort: bool,
    /// The limits of turns and spending; default false. A grant that lowers the limits of the configuration sets them
    /// nevertheless.
    pub limits: bool,
}

impl RecordedSettings {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self { mode: true, rules: true, effort: true, limits: false }
    }

    /// Applies the recorded mode and rules to a policy.
    fn restore(self, record: &Record, policy: &Policy) -> Result<(), PolicyError> {
        let mut changes = RecordedPolicy::from_record(record);
        if !self.rules {
            changes.rules.clear();
        }
        changes.restore(policy, !self.mode)
    }
}

impl Default for RecordedSettings {
    fn default() -> Self {
        Self::new()
    }
}

/// Reason why a session did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GovernError {
    /// A required part is missing.
    #[error("a governed session needs {0}")]
    Missing(&'static str),
    /// The grant is not in force.
    #[error("the grant is not in force: {0}")]
    Grant(String),
    /// The grant allows more than the grant of the session that is resumed or forked.
    #[error("the grant allows more than the grant of the session: {0}")]
    WiderGrant(Axis),
    /// The grant on the record of the session cannot be read.
    #[error("the grant of the session cannot be read")]
    RecordedGrant(#[from] GrantError),
    /// The policy could not be restored from the record.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The session could not be built, or its first record could not be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl GovernedSession {
    /// Creates a builder. `session` contains the parts of a session without governance: client, profile, environment,
    /// configuration, and an id. It contains no journal, no history, no hooks and no approver.
    #[must_use]
    pub fn builder(session: SessionBuilder) -> GovernedBuilder {
        GovernedBuilder {
            session,
            grant: None,
            is_kept_decided: false,
            has_approver: false,
            has_principal: false,
            policy: None,
            workspace: WorkspacePolicy::new(),
            sandbox: None,
            gates: GateChain::new(),
            has_watch: false,
            hooks: Vec::new(),
            history: History::New,
            recorded: RecordedSettings::new(),
            #[cfg(test)]
            without: None,
        }
    }

    /// Returns rules and mode, which can change while the session runs.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the grant; `None` if the session is unrestricted.
    #[must_use]
    pub fn grant(&self) -> Option<&Grant> {
        self.grant.as_deref()
    }

    /// Returns the session without the means to revoke its grant. It stays governed.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Revokes the grant: no further call runs, and the current turn is stopped with its running calls. Without a grant,
    /// only the turn is stopped.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`] if the turn cannot be stopped. The grant is revoked
    /// nevertheless.
    pub fn revoke(&self) -> Result<(), SessionError> {
        if let Some(grant) = &self.grant {
            self.revocations.revoke(grant.id.clone());
        }
        self.session.handle().stop_turn()
    }
}

impl GovernedSession {
    /// Returns the run that a record left unfinished, like [`Session::resumed`].
    pub fn resumed(&mut self) -> Option<Run> {
        self.session.resumed()
    }

    /// Closes the session, like [`Session::close`].
    pub async fn close(self) {
        self.session.close().await;
    }

    /// Ends the session in this process and leaves it open, like [`Session::detach`].
    pub async fn detach(self) {
        self.session.detach().await;
    }
}

impl Deref for GovernedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl GovernedBuilder {
    /// Sets the grant, and the name of the environment in the grant, such as `local` or `docker:IMAGE`. Without a grant,
    /// the session is unrestricted: it has no gate at [`GatePosition::Grant`].
    #[must_use]
    pub fn grant(mut self, grant: Grant, environment: impl Into<String>) -> Self {
        self.grant = Some((grant, environment.into()));
        self
    }

    /// Sets the store of the session: the journal that its record is written to.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.session = self.session.journal(journal);
        self.is_kept_decided = true;
        self
    }

    /// Does not keep the session: it has no journal, and ends with this process. It cannot be resumed or audited later.
    /// It emits the same events as a session with a journal.
    #[must_use]
    pub fn unkept(mut self) -> Self {
        self.is_kept_decided = true;
        self
    }

    /// Takes checkpoints of the workspace, like [`SessionBuilder::checkpoints`].
    #[must_use]
    pub fn checkpoints(mut self, checkpoints: impl Checkpoints) -> Self {
        self.session = self.session.checkpoints(checkpoints);
        self
    }

    /// Sets the approver, which decides on calls that require approval.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.session = self.session.approver(approver);
        self.has_approver = true;
        self
    }

    /// Sets the user of the session. The record names this principal for inputs. `None` is an unknown user.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Option<Principal>>) -> Self {
        self.session = self.session.principal(principal.into());
        self.has_principal = true;
        self
    }

    /// Sets rules and mode.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets hidden and protected files, and the revoked grants; default [`WorkspacePolicy::new`].
    #[must_use]
    pub fn workspace(mut self, workspace: WorkspacePolicy) -> Self {
        self.workspace = workspace;
        self
    }

    /// Adds a gate, which judges before the session's own gate at the same position.
    #[must_use]
    pub fn gate(mut self, position: GatePosition, gate: impl Gate + 'static) -> Self {
        self.gates = self.gates.with_gate(position, gate);
        self
    }

    /// Sets the gate that watches protected files, in place of [`WorkspacePolicy::watch`].
    #[must_use]
    pub fn watch(mut self, watch: impl Gate + 'static) -> Self {
        self.gates = self.gates.with_gate(GatePosition::Watch, watch);
        self.has_watch = true;
        self
    }

    /// Sets the level of the sandbox in which commands run, for the record.
    #[must_use]
    pub fn sandbox(mut self, level: impl Into<String>) -> Self {
        self.sandbox = Some(level.into());
        self
    }

    /// Adds a source of hooks. Sources run in the order in which they were added, and the strictest answer applies. A
    /// change of arguments by an earlier source precedes one by a later source, and an allowance applies only to the
    /// arguments that it was given for.
    #[must_use]
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks.push(hooks);
        self
    }

    /// Sets the source of the session's budget, such as a [`SessionBudget`](crate::SessionBudget) that limits all
    /// sessions of a day. The limits of the grant apply as well.
    #[must_use]
    pub fn budget(mut self, source: Arc<dyn BudgetSource>) -> Self {
        self.session = self.session.budget_source(source);
        self
    }

    /// Resumes the session of this record. [`recorded`](Self::recorded) selects the recorded settings that it keeps.
    #[must_use]
    pub fn resume(mut self, record: Record) -> Self {
        self.history = History::Resumed(Box::new(record));
        self
    }

    /// Starts with the history of another session, like [`SessionBuilder::start`]. Mode, rules and grant of that session
    /// are not in `start`: [restore](RecordedPolicy::restore) mode and rules before. `origin_grant` is the grant of that
    /// session, which [`Grant::of_record`] reads from its record; `None` if the session was unrestricted. With it, the
    /// fork needs the same [grant](Self::grant) or a narrower one.
    #[must_use]
    pub fn fork(mut self, start: Start, origin_grant: Option<Grant>) -> Self {
        self.history = History::Forked(Box::new(start), origin_grant.map(Box::new));
        self
    }

    /// Sets which recorded settings a continued session keeps; default [`RecordedSettings::new`].
    #[must_use]
    pub fn recorded(mut self, settings: RecordedSettings) -> Self {
        self.recorded = settings;
        self
    }

    /// Starts the session, and records its policy.
    ///
    /// Dropping the future drops the session. Its record may have the policy.
    ///
    /// # Errors
    ///
    /// [`GovernError::Missing`] without an approver, a principal, a policy, a decision to [keep](Self::journal) the
    /// session or [not](Self::unkept), or a grant for a resumed or forked session that had one. [`GovernError::WiderGrant`]
    /// if that grant allows less than the grant of the builder. Otherwise the cause.
    pub async fn start(mut self) -> Result<GovernedSession, GovernError> {
        let policy = self.complete()?;
        let recorded = self.recorded;
        let is_new = matches!(self.history, History::New);
        let is_resumed = matches!(self.history, History::Resumed(_));
        if let Some((limit, description)) = self.history.recorded_grant()? {
            let Some((grant, _)) = &self.grant else { return Err(GovernError::Missing(description)) };
            if let Some(axis) = limit.first_wider_axis(grant) {
                return Err(GovernError::WiderGrant(axis));
            }
        }
        if let History::Resumed(record) = &self.history {
            recorded.restore(record, &policy)?;
        }
        let grant = self.grant.take().map(|(grant, environment)| (Arc::new(grant), environment));
        let mut config = self.session.config().clone();
        let configured = config.limits.clone();
        if let Some((grant, _)) = &grant {
            grant.limit(&mut config);
        }
        let (limits, effort) = (config.limits.clone(), config.reasoning_effort.clone());
        let (sandbox, revocations) = (self.sandbox.take(), self.workspace.revocations.clone());

        let session = self.build(config, &policy, grant.as_ref())?;
        let handle = session.handle();
        policy.attach(handle.clone());
        if !is_new && (!recorded.limits || limits != configured) {
            handle.set_limits(limits)?;
        }
        let grant = grant.map(|(grant, _)| grant);
        let mut beginning = policy.on_record();
        beginning.grant = grant.as_ref().and_then(|grant| serde_json::to_value(grant.as_ref()).ok());
        beginning.sandbox = sandbox;
        handle.record_policy(beginning).await?;
        if is_resumed && !recorded.effort {
            handle.set_reasoning_effort(effort)?;
        }
        Ok(GovernedSession { session, policy, revocations, grant })
    }

    /// Returns the policy if no part is missing.
    fn complete(&self) -> Result<Policy, GovernError> {
        if !self.is_kept_decided {
            return Err(GovernError::Missing("a journal, or a decision not to keep it"));
        }
        if !self.has_approver {
            return Err(GovernError::Missing("an approver"));
        }
        if !self.has_principal {
            return Err(GovernError::Missing("a principal, which may be unknown"));
        }
        self.policy.clone().ok_or(GovernError::Missing("a policy with mode and rules"))
    }

    /// Builds the session with its history, gates and hooks. `grant` has the name of the environment.
    #[expect(clippy::disallowed_methods, reason = "a governed session has its gates")]
    fn build(
        self,
        config: SessionConfig,
        policy: &Policy,
        grant: Option<&(Arc<Grant>, String)>,
    ) -> Result<Session, GovernError> {
        let session = self.session.with_config(config);
        let session = match self.history {
            History::New => session,
            History::Resumed(record) => session.resume(*record),
            History::Forked(start, _) => session.start(*start),
        };
        let id = session.id().cloned().unwrap_or_else(SessionId::generate);
        let env = Arc::clone(session.environment());
        let mut gates = self.gates.and(self.workspace.gates(&env, policy));
        if !self.has_watch {
            gates = gates.with_gate(GatePosition::Watch, self.workspace.watch(&env));
        }
        if let Some((grant, environment)) = grant {
            let clock = Arc::clone(session.clock());
            let gate = self.workspace.grant_gate(Arc::clone(grant), id.clone(), &env, environment, clock);
            if let Some(reason) = gate.standing() {
                return Err(GovernError::Grant(reason));
            }
            gates = gates.with_gate(GatePosition::Grant, gate);
        }
        #[cfg(test)]
        let gates = self.without.into_iter().fold(gates, GateChain::without);
        let session = session.with_id(id).gates(gates.in_order());
        let session = match JoinedHooks::join(self.hooks) {
            Some(hooks) => session.hooks(hooks),
            None => session,
        };
        Ok(session.build()?)
    }
}

#[cfg(test)]
mod tests;
