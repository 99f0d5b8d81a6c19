//! Sessions that require a grant, a record and an approver.

use std::ops::Deref;
use std::sync::Arc;

use pintle_agent::protocol::InputKind;
use pintle_agent::{
    Approver, BudgetSource, Hooks, Journal, PolicyChange, Principal, Record, Run, Session, SessionBuilder,
    SessionError, SessionId,
};
use pintle_tools::gate::Gate;

use crate::chain::{GateChain, GatePosition};
use crate::grant::Grant;
use crate::policy::{Policy, PolicyError};
use crate::revocation::Revocations;
use crate::workspace::WorkspacePolicy;

/// Session with a grant, a record and an approver. It derefs to the [`Session`].
///
/// Calls pass the gates that the application has added to the session's builder. Then they pass the grant, hidden and
/// protected paths, rules and mode, and the watch, in the order of [`GatePosition`]. Protected are git's configuration,
/// hooks and attributes, and `.pintle`; a command that changes one of them ends the run. The lower limit of the grant and
/// the configuration applies to spending and subagents. Each record starts with the complete grant, the mode, the rules
/// and the user of the session.
#[derive(Debug)]
pub struct GovernedSession {
    session: Session,
    policy: Policy,
    revocations: Revocations,
    grant: Arc<Grant>,
}

/// Builder of a [`GovernedSession`].
#[derive(Debug)]
pub struct GovernedBuilder {
    session: SessionBuilder,
    grant: Option<(Grant, String)>,
    has_journal: bool,
    has_approver: bool,
    principal: Option<Principal>,
    policy: Option<Policy>,
    workspace: WorkspacePolicy,
    gates: GateChain,
    recorded: Option<Record>,
    /// Position whose gates are left out.
    #[cfg(test)]
    without: Option<GatePosition>,
}

/// Reason why a session did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GovernError {
    /// A required part is missing.
    #[error("a governed session needs {0}")]
    Missing(&'static str),
    /// The grant is not in force.
    #[error("the grant does not hold: {0}")]
    Grant(String),
    /// The policy could not be restored from the record.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The session could not be built, or its first record could not be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl GovernedSession {
    /// Creates a builder. `session` contains the parts of a session without governance: client, profile, environment,
    /// configuration, and an id or a record to resume. It contains no journal and no approver.
    #[must_use]
    pub fn builder(session: SessionBuilder) -> GovernedBuilder {
        GovernedBuilder {
            session,
            grant: None,
            has_journal: false,
            has_approver: false,
            principal: None,
            policy: None,
            workspace: WorkspacePolicy::new(),
            gates: GateChain::new(),
            recorded: None,
            #[cfg(test)]
            without: None,
        }
    }

    /// Returns rules and mode, which can change while the session runs.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the grant.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Revokes the grant: no further call runs, and the current turn is stopped with its running calls.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`] if the turn cannot be stopped. The grant is revoked
    /// nevertheless.
    pub fn revoke(&self) -> Result<(), SessionError> {
        self.revocations.revoke(self.grant.id.clone());
        self.session.handle().interrupt()
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

    /// Suspends the session to resume it later, like [`Session::suspend`].
    pub async fn suspend(self) {
        self.session.suspend().await;
    }
}

impl Deref for GovernedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl GovernedBuilder {
    /// Sets the grant, and the name of the environment in the grant, such as `local` or `docker:IMAGE`.
    #[must_use]
    pub fn grant(mut self, grant: Grant, environment: impl Into<String>) -> Self {
        self.grant = Some((grant, environment.into()));
        self
    }

    /// Sets the store of the session: the journal that its record is written to.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.session = self.session.journal(journal);
        self.has_journal = true;
        self
    }

    /// Sets the approver, which decides on calls that require approval.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.session = self.session.approver(approver);
        self.has_approver = true;
        self
    }

    /// Sets the user of the session. The record names this principal for inputs.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
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
        self.gates = self.gates.with(position, gate);
        self
    }

    /// Sets the hooks.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.session = self.session.hooks(hooks);
        self
    }

    /// Sets the source of the session's budget, such as a [`SessionBudget`](crate::SessionBudget) that limits all
    /// sessions of a day. The limits of the grant apply as well.
    #[must_use]
    pub fn budget(mut self, source: Arc<dyn BudgetSource>) -> Self {
        self.session = self.session.budget_source(source);
        self
    }

    /// Resumes the session of this record, with its recorded changes of mode and rules.
    #[must_use]
    pub fn resume(mut self, record: Record) -> Self {
        self.recorded = Some(record);
        self
    }

    /// Starts the session.
    ///
    /// # Errors
    ///
    /// [`GovernError::Missing`] without a grant, a journal, an approver, a principal or a policy; otherwise the cause.
    pub async fn start(mut self) -> Result<GovernedSession, GovernError> {
        let (grant, environment) = self.grant.ok_or(GovernError::Missing("a grant"))?;
        if !self.has_journal {
            return Err(GovernError::Missing("a store: a journal"));
        }
        if !self.has_approver {
            return Err(GovernError::Missing("an approver"));
        }
        let principal = self.principal.ok_or(GovernError::Missing("a principal, who uses it"))?;
        let policy = self.policy.ok_or(GovernError::Missing("a policy: mode and rules"))?;
        if let Some(record) = self.recorded {
            restore(&policy, &record)?;
            self.session = self.session.resume(record);
        }

        let id = self.session.session_id().cloned().unwrap_or_else(SessionId::generate);
        let env = Arc::clone(self.session.environment());
        let clock = Arc::clone(self.session.session_clock());
        let grant = Arc::new(grant);
        let workspace = self.workspace;
        let gate = workspace.grant_gate(Arc::clone(&grant), id.clone(), &env, &environment, clock);
        if let Some(reason) = gate.standing() {
            return Err(GovernError::Grant(reason));
        }
        let mut config = self.session.session_config().clone();
        grant.limit(&mut config);
        let limits = config.limits.clone();

        let gates = self
            .gates
            .and(workspace.gates(&env, &policy))
            .with(GatePosition::Grant, gate)
            .with(GatePosition::Watch, workspace.watch(&env));
        #[cfg(test)]
        let gates = self.without.into_iter().fold(gates, GateChain::without);
        let session = self
            .session
            .id(id)
            .config(config)
            .principal(Some(principal.clone()))
            .gates(gates.in_order())
            .build()?;
        policy.attach(session.handle());
        // A resumed session has the limits of its record.
        session.handle().set_limits(limits)?;
        let mut beginning: PolicyChange = policy.on_record().by(Some(principal));
        beginning.grant = serde_json::to_value(grant.as_ref()).ok();
        session.handle().record_policy(beginning).await?;
        Ok(GovernedSession { session, policy, revocations: workspace.revocations, grant })
    }
}

/// Applies the recorded changes of mode and rules, except the policy with which each process started.
fn restore(policy: &Policy, record: &Record) -> Result<(), GovernError> {
    for entry in &record.entries {
        let InputKind::PolicyChanged { change } = &entry.input.kind else { continue };
        // A change with a grant is the start of a process, whose rules the caller supplies again.
        if change.grant.is_none() {
            policy.apply_recorded(change)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
