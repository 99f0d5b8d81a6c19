//! Rules and mode of a session, and the gate that applies them.

mod present_plan;
mod recorded;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use async_trait::async_trait;
use pintle_agent::{PolicyChange, PolicyRule, Principal, SessionError, SessionHandle};
use pintle_env::{ExecutionEnvironment, WriteSwitch};
use pintle_tools::gate::{self, Gate, Permission, Verdict};
use pintle_tools::pipeline::{Execution, PreparedCall};
use pintle_tools::{Effect, SandboxSide};

pub use self::present_plan::{PresentPlan, PresentPlanInput};
pub use self::recorded::{APPROVAL_SOURCE, RecordedPolicy};
use crate::mode::{CallTraits, Mode};
use crate::rules::{CallFacts, Rule, RuleError, RuleLinks, Rules, Ruling, are_below};

/// Rules and mode of a session. They can change while it runs, and all clones share them.
///
/// A change is on record before it applies, once the session is [attached](Self::attach).
#[derive(Clone)]
pub struct Policy(Arc<Shared>);

struct Shared {
    state: RwLock<PolicyState>,
    /// Base directory of relative paths in rules, with all links resolved.
    workspace: PathBuf,
    session: OnceLock<SessionHandle>,
    /// Off in mode plan.
    switch: OnceLock<WriteSwitch>,
}

#[derive(Clone)]
struct PolicyState {
    mode: Mode,
    /// Mode that follows an accepted plan.
    after_plan: Mode,
    rules: Arc<Rules>,
}

/// Reason why a policy was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The rule is wrong.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The change could not be put on record.
    #[error("the change is not on record, so it does not apply")]
    Record(#[source] SessionError),
}

impl Policy {
    /// Creates a policy. `workspace` is the base of relative paths in rules: an absolute path with all links resolved.
    #[must_use]
    pub fn new(mode: Mode, rules: Rules, workspace: impl Into<PathBuf>) -> Self {
        let state = RwLock::new(PolicyState { mode, after_plan: Mode::Edit, rules: Arc::new(rules) });
        Self(Arc::new(Shared {
            state,
            workspace: workspace.into(),
            session: OnceLock::new(),
            switch: OnceLock::new(),
        }))
    }

    /// Sets the session whose record contains the changes. Only the first call has an effect.
    pub fn attach(&self, session: SessionHandle) {
        // A second session would not be the session that is judged.
        let _ = self.0.session.set(session);
    }

    /// Makes a switch follow the mode: it is off in mode plan, and on in all others. An environment that reads the switch
    /// enforces the mode for commands and file tools. Only the first call has an effect.
    pub fn drive(&self, switch: WriteSwitch) {
        let state = self.write();
        // The tools do not work in a second environment.
        let _ = self.0.switch.set(switch);
        self.apply_mode(state, None);
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state().mode
    }

    /// Returns the mode that follows an accepted plan; default `edit`.
    #[must_use]
    pub fn after_plan(&self) -> Mode {
        self.state().after_plan
    }

    /// Sets the mode that follows an accepted plan. It is recorded once a plan is accepted.
    pub fn set_after_plan(&self, mode: Mode) {
        self.write().after_plan = mode;
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.state().rules
    }

    /// Changes the mode.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Record`]; the mode is unchanged.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), PolicyError> {
        self.set_mode_by(mode, None).await
    }

    /// Changes the mode on behalf of a principal; without one, the record names the user of the session.
    ///
    /// # Errors
    ///
    /// As for [`set_mode`](Self::set_mode).
    pub async fn set_mode_by(&self, mode: Mode, by: Option<Principal>) -> Result<(), PolicyError> {
        self.record(PolicyChange::mode(mode.as_str()).with_principal(by)).await?;
        self.apply_mode(self.write(), Some(mode));
        Ok(())
    }

    /// Adds a rule. `source` is its origin.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Rule`] or [`PolicyError::Record`]; the rules are unchanged.
    pub async fn add_rule(
        &self,
        permission: Permission,
        rule: &str,
        source: impl Into<String>,
    ) -> Result<(), PolicyError> {
        let (rule, source) = (Rule::parse(rule, &self.0.workspace)?, source.into());
        let on_record = PolicyRule { permission, rule: rule.to_string(), source: source.clone() };
        self.record(PolicyChange::rule(on_record)).await?;
        let mut state = self.write();
        Arc::make_mut(&mut state.rules).add(permission, rule, source);
        Ok(())
    }

    /// Applies a recorded change, such as the changes of a session that resumes. Invalid rules that allow something are
    /// left out, since that only narrows the policy.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Rule`] for an invalid rule that asks or denies.
    pub fn apply_recorded(&self, change: &PolicyChange) -> Result<(), PolicyError> {
        if let Some(mode) = change.mode.as_deref().and_then(|mode| mode.parse().ok()) {
            self.apply_mode(self.write(), Some(mode));
        }
        for PolicyRule { permission, rule, source } in &change.rules {
            match Rule::parse(rule, &self.0.workspace) {
                Ok(rule) => Arc::make_mut(&mut self.write().rules).add(*permission, rule, source.clone()),
                Err(_) if *permission == Permission::Allow => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the complete policy as a change, for the beginning of a record.
    #[must_use]
    pub fn on_record(&self) -> PolicyChange {
        let PolicyState { mode, rules, .. } = self.state();
        let mut change = PolicyChange::mode(mode.as_str());
        change.rules = rules.on_record().collect();
        change
    }

    async fn record(&self, change: PolicyChange) -> Result<(), PolicyError> {
        match self.0.session.get() {
            Some(session) => session.record_policy(change).await.map_err(PolicyError::Record),
            None => Ok(()),
        }
    }

    /// Sets a mode, or keeps the current mode, and updates the switch.
    fn apply_mode(&self, mut state: RwLockWriteGuard<'_, PolicyState>, mode: Option<Mode>) {
        state.mode = mode.unwrap_or(state.mode);
        if let Some(switch) = self.0.switch.get() {
            switch.set(state.mode != Mode::Plan);
        }
    }

    fn state(&self) -> PolicyState {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self) -> RwLockWriteGuard<'_, PolicyState> {
        self.0.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyState { mode, rules, .. } = self.state();
        f.debug_struct("Policy").field("mode", &mode).field("rules", &rules.len()).finish_non_exhaustive()
    }
}

/// Judges calls by rules, and by the mode if no rule names them.
///
/// Two kinds of calls require approval even if rules and mode allow them: commands outside of the sandbox, and plans that
/// are presented in mode plan.
#[derive(Clone, Debug)]
pub struct PolicyGate {
    policy: Policy,
    env: Arc<dyn ExecutionEnvironment>,
    roots: Vec<PathBuf>,
    holds_to_reading: bool,
    links: Arc<RuleLinks>,
}

impl PolicyGate {
    /// Creates the gate of a session whose tools work in `env`. The workspace is its working directory.
    #[must_use]
    pub fn new(policy: Policy, env: Arc<dyn ExecutionEnvironment>) -> Self {
        let roots = vec![env.working_directory().to_path_buf()];
        Self { policy, env, roots, holds_to_reading: false, links: Arc::default() }
    }

    /// Adds a directory to the workspace, such as a directory for temporary files. Calls may change files in it.
    #[must_use]
    pub fn with_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.roots.push(root.into());
        self
    }

    /// Declares that the environment confines commands to reading, so that mode [`Plan`](Mode::Plan) lets them run.
    #[must_use]
    pub fn holding_commands_to_reading(mut self) -> Self {
        self.holds_to_reading = true;
        self
    }

    /// Returns the verdict on a call with these properties.
    pub async fn verdict(&self, call: &CallFacts) -> Verdict {
        self.verdict_in(&self.env, call).await
    }

    async fn verdict_in(&self, env: &Arc<dyn ExecutionEnvironment>, call: &CallFacts) -> Verdict {
        let PolicyState { mode, rules, .. } = self.policy.state();
        if let Some(ruling) = self.ruling(&rules, call, env.as_ref()).await {
            return ruled(&ruling);
        }
        let mut traits = CallTraits::new(call.effect);
        if !self.stays_in_workspace(call).await {
            traits = traits.outside_workspace();
        }
        // The environment confines the processes that run in it. An MCP server may run anywhere.
        if self.holds_to_reading && !call.is_of_server() {
            traits = traits.held_to_reading();
        }
        let verdict = match mode.permission(traits) {
            Permission::Allow => Verdict::ALLOW,
            Permission::Ask => {
                Verdict::ask(asked_by_default(mode, call, traits, self.env.command_limits().is_some()))
                    .with_suggested_rules(call.suggested_rules(&self.policy.0.workspace))
            }
            Permission::Deny => Verdict::deny(denied_by_default(mode, call)),
        };
        verdict.with_rule(format!("mode {mode}")).by_default()
    }

    async fn ruling(
        &self,
        rules: &Rules,
        call: &CallFacts,
        env: &dyn ExecutionEnvironment,
    ) -> Option<Ruling> {
        let searched = rules.with_searched(call, &self.links, env).await;
        rules.judge(searched.as_ref().unwrap_or(call))
    }

    /// Returns the question about a call that always requires approval.
    fn question(&self, call: &PreparedCall) -> Option<Verdict> {
        if call.sandbox() == Some(SandboxSide::Outside) {
            return Some(gate::outside_sandbox());
        }
        let PolicyState { mode, after_plan, .. } = self.policy.state();
        (call.kind() == PresentPlan::NAME && mode == Mode::Plan).then(|| {
            let reason = format!("accepting the plan changes the mode from {mode} to {after_plan}");
            Verdict::ask(reason).with_rule("acceptance of the plan")
        })
    }

    async fn stays_in_workspace(&self, call: &CallFacts) -> bool {
        if call.effect != Effect::Write {
            return true;
        }
        if call.undecided.is_some() || call.writes.is_empty() {
            return false;
        }
        // Files are named both as given and resolved.
        let mut roots: Vec<PathBuf> = self.roots.iter().map(|root| self.env.resolve(root)).collect();
        for root in &self.roots {
            roots.extend(self.env.canonicalize(&self.env.resolve(root)).await.ok());
        }
        are_below(&call.writes, &roots)
    }
}

#[async_trait]
impl Gate for PolicyGate {
    fn name(&self) -> &'static str {
        "rules"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        let env = call.judged_in(&self.env);
        let facts = CallFacts::of_call(call, env.as_ref()).await;
        let Some(question) = self.question(call) else { return self.verdict_in(env, &facts).await };
        match self.ruling(&self.policy.rules(), &facts, env.as_ref()).await {
            Some(ruling) if ruling.permission == Permission::Deny => ruled(&ruling),
            Some(_) | None => question,
        }
    }

    async fn ran(&self, call: &PreparedCall, _execution: &Execution) {
        if call.effect() != Effect::Read {
            self.links.clear();
        }
    }
}

/// Returns the verdict of a rule.
fn ruled(ruling: &Ruling) -> Verdict {
    let explanation = || ruling.mention.as_ref().and_then(|mention| mention.explanation(ruling.permission));
    let reason = || match (&ruling.undecided, ruling.is_below_search) {
        (None, false) => match explanation() {
            Some(explanation) => {
                format!("the rule `{}` of {} may apply: {explanation}", ruling.rule, ruling.source)
            }
            None => format!("the rule `{}` of {} names it", ruling.rule, ruling.source),
        },
        // The name of the file may be secret as well.
        (None, true) => format!(
            "the rule `{}` of {} names a file that it would read; search other directories, or name files",
            ruling.rule, ruling.source
        ),
        (Some(reason), _) => {
            format!(
                "whether the rule `{}` of {} names it could not be decided: {reason}",
                ruling.rule, ruling.source
            )
        }
    };
    let verdict = match ruling.permission {
        Permission::Allow => Verdict::ALLOW,
        Permission::Ask => Verdict::ask(reason()),
        Permission::Deny => Verdict::deny(reason()),
    };
    verdict.with_rule(format!("{} {} ({})", ruling.permission, ruling.rule, ruling.source))
}

fn asked_by_default(mode: Mode, call: &CallFacts, traits: CallTraits, has_sandbox: bool) -> String {
    let what = match call.effect {
        Effect::Write if !traits.stays_in_workspace => "it changes files outside of the workspace",
        Effect::Write => "it changes files",
        Effect::Execute if call.is_of_server() => "it may do anything",
        Effect::Execute if has_sandbox => "it runs a command in the sandbox",
        Effect::Execute => "it runs a command",
        Effect::Network => "it reaches other machines",
        Effect::Read => "it reads",
    };
    format!("{what}, and mode {mode} asks about that")
}

fn denied_by_default(mode: Mode, call: &CallFacts) -> String {
    match call.effect {
        Effect::Write => format!("no files are changed in mode {mode}"),
        Effect::Execute if call.is_of_server() => {
            format!("it may change something, and mode {mode} only reads")
        }
        Effect::Execute | Effect::Network | Effect::Read => format!("no commands run in mode {mode}"),
    }
}

#[cfg(test)]
mod tests;
