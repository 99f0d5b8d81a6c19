//! Starts a session in its environment.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_agent::protocol::{Change, InputKind};
use pintle_agent::{
    BudgetSource, EventKind, Hooks, Limits, ProviderProfile, Record, Session, SessionConfig, SessionId,
    SubagentLimits, TurnLimits,
};
use pintle_env::{ExecutionEnvironment, WriteSwitch};
use pintle_governance::{
    ExternalHooks, GatePosition, GovernError, GovernedBuilder, GovernedSession, Grant, Mode, Policy,
    PresentPlan, RecordedSettings,
};
use pintle_llm::ToolList;
use pintle_tools::RegisteredTool;
use pintle_tools::gate::ReadBeforeWrite;

use super::{Surface, hooks, manifest_tools};
use crate::attendant::{Attendant, AttendantApprover};
use crate::boxed_future::box_future;
use crate::budget;
use crate::env_spec::EnvironmentChoice;
use crate::environment::{
    Confinement, ENVIRONMENT_UNUSABLE, EnvSession, EnvTarget, SANDBOX_HINT, SandboxRequirements, SandboxState,
};
use crate::failure::{Failure, FailureKind, OrFailure as _};
use crate::grant_workspace;
use crate::instructions;
use crate::limit_sources::LimitSources;
use crate::model::Model;
use crate::notice::{Notice, Notices};
use crate::policy::{self, LoadedPolicy, ProjectServerFile};
use crate::process_env::ProcessEnv;
use crate::process_secrets;
use crate::servers::{self, ServerOptions, ServerSpec, SessionServers};
use crate::session_limits::SessionLimits;
use crate::sessions::{SessionOrigin, SessionStorage};
use crate::spec::SessionSpec;
use crate::tool_manifests::{self, ToolDirectory};
use crate::toolset;

/// Opens one session.
pub(super) struct SessionOpener<'a> {
    pub(super) spec: &'a SessionSpec,
    pub(super) environment: &'a EnvironmentChoice,
    pub(super) model: &'a Model,
    pub(super) attendant: Arc<dyn Attendant>,
    pub(super) is_mode_given: bool,
    pub(super) is_effort_given: bool,
    pub(super) run_limit: &'a Limits,
    pub(super) can_switch_to_plan: bool,
    pub(super) process_env: &'a ProcessEnv,
}

/// Session that was started in an environment.
pub(super) struct StartedSession {
    pub(super) session: GovernedSession,
    pub(super) policy: Policy,
    pub(super) servers: SessionServers,
    pub(super) effort: Option<String>,
    pub(super) offered: ToolList,
    pub(super) limits: TurnLimits,
    pub(super) limit_sources: LimitSources,
    pub(super) is_stored: bool,
    pub(super) is_new: bool,
    pub(super) is_resumed: bool,
}

/// Additions of the surface to a session.
struct SurfaceExtensions {
    hooks: Vec<Arc<dyn Hooks>>,
    tools: Vec<Arc<RegisteredTool>>,
    servers: Vec<ServerSpec>,
    is_disposable: bool,
}

/// Policy, hooks and grant of a session.
struct SessionPolicy {
    policy: Policy,
    hooks: Option<ExternalHooks>,
    grant: Option<Grant>,
    effort: Option<String>,
    server_files: Vec<ProjectServerFile>,
    tools: Vec<ToolDirectory>,
}

/// Parts that the builder of a session receives.
struct SessionParts {
    policy: Policy,
    hooks: Option<ExternalHooks>,
    further_hooks: Vec<Arc<dyn Hooks>>,
    budget: Option<Arc<dyn BudgetSource>>,
    grant: Option<Grant>,
}

impl SessionOpener<'_> {
    /// Connects the environment and starts the session in it. A failure closes the environment.
    pub(super) async fn open(
        &self,
        stored: Option<SessionStorage>,
        surface: Surface<'_>,
    ) -> Result<(StartedSession, EnvSession), Failure> {
        let Surface { hooks, tools, servers, is_disposable, mut readable, is_contained, .. } = surface;
        let workspace = self.process_env.directory(self.environment.directory.as_deref()).ok();
        readable.extend(tool_manifests::readable_directories(workspace.as_deref(), self.process_env));
        let (wrap_environment, check_environment) = (surface.wrap_environment, surface.check_environment);
        let id = match &stored {
            Some(stored) => stored.id.clone(),
            None => self.spec.persistence.id.as_ref().map_or_else(SessionId::generate, SessionId::new),
        };
        let required = SandboxRequirements {
            is_disposable,
            readable,
            is_contained,
            keeps_state: self.spec.persistence.keep && !is_disposable,
            ..SandboxRequirements::default()
        };
        let connected = self.connect(required, surface.interrupted).await?;
        let env_session = match wrap_environment {
            Some(wrap) => connected
                .wrap_tool_environment(|environment| wrap(environment, &id), Confinement::from(self.spec)),
            None => connected,
        };
        let additions = SurfaceExtensions { hooks, tools, servers, is_disposable };
        let started = match check_environment.map_or(Ok(()), |check| check(&env_session)) {
            Ok(()) => box_future(|| self.start(&env_session, id, stored, additions)).await,
            Err(failure) => Err(failure),
        };
        match started {
            Ok(started) => Ok((started, env_session)),
            Err(failure) => {
                // The first failure is the one to report.
                env_session.close_with_notice().await;
                Err(failure)
            }
        }
    }

    async fn connect(
        &self,
        required: SandboxRequirements,
        interrupted: Option<BoxFuture<'_, ()>>,
    ) -> Result<EnvSession, Failure> {
        let spec = self.spec;
        let target = EnvTarget::new(self.environment.clone(), Confinement::from(spec), self.process_env)?
            .with_denials(&spec.policy.deny)
            .with_hidden(&spec.policy.hidden)
            .with_hosts(spec.environment.hosts())
            .with_requirements(SandboxRequirements {
                writes: WriteSwitch::new(spec.policy.mode != Mode::Plan),
                can_run_outside: self.attendant.is_attended() || spec.policy.wait_approval,
                ..required
            });
        let Some(interrupted) = interrupted else { return target.connect().await };
        tokio::select! {
            biased;
            () = interrupted => Err(Failure::new(FailureKind::Interrupted, "interrupted")),
            connected = target.connect() => connected,
        }
    }

    /// Starts the session in an environment.
    async fn start(
        &self,
        env_session: &EnvSession,
        id: SessionId,
        stored: Option<SessionStorage>,
        additions: SurfaceExtensions,
    ) -> Result<StartedSession, Failure> {
        let Self { spec, model, attendant, process_env, .. } = self;
        let environment = env_session.environment();
        require_root(spec, environment.as_ref()).await?;
        env_session.compare_with_earlier().await?;
        let projects = env_session.projects().await?;
        let (mut budget, mut limit_sources) =
            budget::load(&(*spec).into(), self.run_limit, projects, process_env)?;
        if model.is_scripted() {
            budget = budget::without_cost_limits(budget);
        }
        let config = SessionLimits::from(*spec)
            .config(spec.model.reasoning_effort.clone())
            .with_budget(budget::session_budget(&budget))
            .with_redactions(process_secrets::redactions(process_env, model.route.secret()));
        let limits = config.limits.clone();
        let stored = match stored {
            Some(stored) => {
                let deny = &spec.policy.deny;
                // The program that opens the session creates the files of a disposable workspace.
                let notices = (!additions.is_disposable).then(|| process_env.notices());
                let bound = box_future(|| bind_workspace(stored, deny, env_session, process_env, notices));
                Some(bound.await?)
            }
            None => None,
        };
        let is_stored = stored.is_some();
        let is_new = stored.as_ref().is_none_or(SessionStorage::is_new);
        let is_resumed = matches!(&stored, Some(SessionStorage { origin: SessionOrigin::Resumed(_), .. }));
        let SessionPolicy { policy, hooks, grant, effort, server_files, tools } =
            box_future(|| self.load_policy(env_session, stored.as_ref())).await?;
        limit_sources.grant = grant.as_ref().map(|grant| grant.budget);
        let mut profile =
            self.profile(&policy, grant.is_some(), (tools.as_slice(), env_session), additions.tools)?;
        let mut more = servers::parse_declarations(spec, process_env)?;
        more.extend(additions.servers);
        let servers = servers::add_to_profile(
            &mut profile,
            (&server_files, more),
            &ServerOptions::new(spec, &self.environment.spec),
            env_session,
            grant.as_ref(),
            attendant,
            process_env,
        )?;
        let offered = profile.as_in_session(SubagentLimits::default()).tools();
        let started = box_future(|| async {
            if let Some(hooks) = &hooks {
                process_env.notices().report_all(hooks::unknown_tools(hooks, &offered)?);
            }
            let budget = budget::create_source(budget, attendant, process_env).await?;
            let parts =
                SessionParts { policy: policy.clone(), hooks, further_hooks: additions.hooks, budget, grant };
            let builder = self.create_builder((config, id), profile, env_session, parts, stored)?;
            box_future(|| builder.start()).await.map_err(|error| start_failure(&error))
        });
        match started.await {
            Ok(session) => {
                env_session.fill_caches_once(wait_for_request(&session));
                self.watch_sandbox(&session, &policy, env_session);
                Ok(StartedSession {
                    session,
                    policy,
                    servers,
                    effort,
                    offered,
                    limits,
                    limit_sources,
                    is_stored,
                    is_new,
                    is_resumed,
                })
            }
            Err(failure) => {
                servers.close().await;
                Err(failure)
            }
        }
    }

    /// Loads the policy of the session. A resumed or forked session has its recorded policy.
    async fn load_policy(
        &self,
        env_session: &EnvSession,
        stored: Option<&SessionStorage>,
    ) -> Result<SessionPolicy, Failure> {
        let Self { spec, attendant, process_env, .. } = self;
        let environment = env_session.environment();
        let name = self.environment.spec.to_string();
        let projects = env_session.projects().await?;
        let loaded =
            policy::load(&(*spec).into(), environment.as_ref(), &name, projects, process_env).await?;
        let LoadedPolicy { policy, user_hooks, project_hooks, server_files, tools, untrusted } = loaded;
        if let Some(untrusted) = untrusted {
            process_env.notices().report(untrusted.notice());
        }
        let mut effort = spec.model.reasoning_effort.clone();
        if let Some(stored) = stored {
            let restored = stored.policy.restore(&policy, self.is_mode_given);
            restored.or_failed("the rules of the session cannot be restored")?;
            // A remembered flag is older than an effort set since.
            if let (SessionOrigin::Resumed(record), false) = (&stored.origin, self.is_effort_given) {
                effort = recorded_effort(record);
            }
        }
        let is_attended = attendant.is_attended();
        if let Some(mode) =
            replacement_mode(env_session.sandbox(), policy.mode(), is_attended, process_env.notices())?
        {
            policy.set_mode(mode).await.or_failed("cannot set the mode")?;
        }
        policy.drive(env_session.writes().clone());
        policy.set_after_plan(mode_after_plan(spec.policy.after_plan, env_session.sandbox()));
        attendant.set_policy(policy.clone());
        if matches!(env_session.sandbox(), SandboxState::Unavailable { .. }) {
            attendant.refuse_auto();
        }
        let recorded = stored.and_then(|stored| stored.grant.as_ref());
        let grant = policy::grant::load(spec.policy.grant.as_ref(), recorded)?;
        if let Some(grant) = &grant {
            grant_workspace::require_hosts_within(grant, spec)?;
            grant_workspace::require_network_blocked(
                grant,
                env_session.sandbox(),
                &Confinement::from(*spec),
                !project_hooks.is_empty(),
            )?;
        }
        let has_network = grant.as_ref().is_none_or(|grant| grant.network.is_all());
        let hooks =
            hooks::load(user_hooks, project_hooks, env_session, has_network, &policy, process_env).await?;
        Ok(SessionPolicy { policy, hooks, grant, effort, server_files, tools })
    }

    /// Narrows the session once the machine has lost the sandbox: users are asked about each call, and a run without a user is
    /// interrupted. No command starts in any case.
    fn watch_sandbox(&self, session: &Session, policy: &Policy, env_session: &EnvSession) {
        let (attendant, policy, session) = (Arc::clone(&self.attendant), policy.clone(), session.handle());
        let notices = self.process_env.notices().clone();
        env_session.watch_sandbox(move |reason| {
            Box::pin(async move {
                if !attendant.is_attended() {
                    // A session that has ended needs no interrupt.
                    let _ = session.stop_turn();
                }
                attendant.refuse_auto();
                policy.set_after_plan(Mode::Ask);
                if policy.mode() != Mode::Plan
                    && let Err(error) = policy.set_mode(Mode::Ask).await
                {
                    notices.report(format!("cannot set the mode: {error}"));
                }
                notices.report(format!("the sandbox is lost, so no command starts in it any more: {reason}"));
            })
        });
    }

    /// Returns the profile of the session with its tools, except the tools of MCP servers.
    fn profile(
        &self,
        policy: &Policy,
        is_granted: bool,
        (manifests, env_session): (&[ToolDirectory], &EnvSession),
        tools: Vec<Arc<RegisteredTool>>,
    ) -> Result<ProviderProfile, Failure> {
        let Self { spec, model, process_env, .. } = self;
        let mut profile = toolset::build_run_profile(
            model,
            &(*spec).into(),
            env_session.hosts(),
            self.attendant.is_attended(),
            is_granted,
        )?;
        if self.can_switch_to_plan || policy.mode() == Mode::Plan && self.can_accept_plan() {
            let tool = PresentPlan::new(policy.clone(), policy.after_plan());
            profile = profile.with_tool(tool).or_failed("cannot offer the tool for plans")?;
        }
        manifest_tools::add_to_profile(&mut profile, manifests, env_session, is_granted, process_env)?;
        profile = instructions::add_user_skills(profile, &self.environment.spec, process_env);
        if let Some(text) = spec.instructions.base.clone() {
            profile = profile.with_base_instructions(text);
        }
        if let Some(only) = &spec.tools.only {
            let names: Vec<String> = profile.tool_registry.names().map(str::to_owned).collect();
            for name in names.iter().filter(|name| !only.contains(*name)) {
                profile.tool_registry.unregister(name);
            }
        }
        for tool in tools {
            profile.tool_registry.insert(tool);
        }
        Ok(profile)
    }

    /// Returns whether a user can accept a plan.
    fn can_accept_plan(&self) -> bool {
        self.attendant.is_attended() || self.spec.policy.wait_approval
    }

    /// Returns the builder of the session.
    #[expect(clippy::disallowed_methods, reason = "this is the place that builds sessions")]
    fn create_builder(
        &self,
        (mut config, id): (SessionConfig, SessionId),
        profile: ProviderProfile,
        env_session: &EnvSession,
        parts: SessionParts,
        stored: Option<SessionStorage>,
    ) -> Result<GovernedBuilder, Failure> {
        let Self { spec, model, attendant, process_env, .. } = self;
        let SessionParts { policy, hooks, further_hooks, budget, grant } = parts;
        let mut settings = RecordedSettings::new();
        // Mode and rules are restored already, since the tools depend on them.
        (settings.mode, settings.rules) = (false, false);
        settings.effort = !self.is_effort_given;
        // A session keeps its limits unless others are given.
        settings.limits = config.limits == SessionLimits::default_turns();
        let of_mode = (policy.mode() == Mode::Plan).then(|| match self.can_accept_plan() {
            true => PresentPlan::INSTRUCTIONS,
            false => PresentPlan::INSTRUCTIONS_WITHOUT_A_PERSON,
        });
        let others: Vec<&str> = of_mode.into_iter().chain(spec.instructions.extra.as_deref()).collect();
        let others = (!others.is_empty()).then(|| others.join("\n\n"));
        config.user_instructions =
            instructions::load_user_instructions(&profile.provider, others.as_deref(), process_env);
        let environment = env_session.environment();
        let offered: Vec<String> = profile.tools().iter().map(|tool| tool.name.clone()).collect();
        // `connect` has initialised it.
        let session = Session::builder(model.client.clone(), profile, Arc::clone(&environment))
            .with_config(config)
            .with_id(id)
            .initialized_environment();
        let mut builder = GovernedSession::builder(session)
            .workspace(grant_workspace::workspace_policy(env_session, grant.is_some(), process_env)?)
            .sandbox(env_session.sandbox().recorded_name())
            .policy(policy)
            .watch(env_session.guarded_watch())
            .principal(attendant.user())
            .approver(AttendantApprover(Arc::clone(attendant)))
            .recorded(settings);
        if spec.policy.read_before_write {
            builder = builder.gate(GatePosition::ReadBeforeWrite, ReadBeforeWrite::new(environment));
        }
        if let Some(grant) = grant {
            process_env.notices().report_all(unmatched_grant_notices(&grant, &offered));
            builder = builder.grant(grant, self.environment.spec.to_string());
        }
        let of_user = hooks.map(|hooks| Arc::new(hooks) as Arc<dyn Hooks>);
        builder = of_user.into_iter().chain(further_hooks).fold(builder, GovernedBuilder::hooks);
        if let Some(source) = budget {
            builder = builder.budget(source);
        }
        let Some(SessionStorage { checkpoints, journal, origin, grant: recorded_grant, .. }) = stored else {
            return Ok(builder.unkept());
        };
        builder = match origin {
            SessionOrigin::New => builder,
            SessionOrigin::Resumed(record) => builder.resume(*record),
            SessionOrigin::Forked(start) => builder.fork(*start, recorded_grant),
        };
        Ok(builder.journal(journal).checkpoints(checkpoints))
    }
}

/// Waits until a session sends its next request. Returns false if it ends before.
fn wait_for_request(session: &Session) -> impl Future<Output = bool> + Send + use<> {
    let mut events = session.events_from(session.first_new_event());
    async move {
        while let Some(event) = events.next().await {
            if matches!(event.kind, EventKind::RequestPrepared { .. }) {
                return true;
            }
        }
        false
    }
}

/// Checks that the working directory is in one of the roots of the settings.
async fn require_root(spec: &SessionSpec, environment: &dyn ExecutionEnvironment) -> Result<(), Failure> {
    let Some(roots) = &spec.environment.roots else { return Ok(()) };
    let directory = environment.working_directory();
    let real = environment.canonicalize(directory).await.or_failed(ENVIRONMENT_UNUSABLE)?;
    match roots.iter().any(|root| real.starts_with(root)) {
        true => Ok(()),
        false => Err(Failure::usage(format!("{} is outside the allowed roots", directory.display()))),
    }
}

/// Returns the failure of a session that did not start. A grant that is not valid here and now is a usage failure.
fn start_failure(error: &GovernError) -> Failure {
    if let GovernError::Grant(reason) = error {
        return Failure::usage(format!("invalid grant: {reason}"));
    }
    Failure::failed("cannot start the session").caused_by(error)
}

/// Checks that the tools reach the files of a session, and leaves hidden and denied files out of its checkpoints.
async fn bind_workspace(
    stored: SessionStorage,
    denials: &[String],
    env_session: &EnvSession,
    process_env: &ProcessEnv,
    notices: Option<&Notices>,
) -> Result<SessionStorage, Failure> {
    let environment = env_session.environment();
    let rules =
        policy::load_denials(denials, environment.as_ref(), env_session.projects().await?, process_env)
            .await?;
    let excluded = env_session.workspace().excluded_from_checkpoints(environment.as_ref(), &rules);
    stored
        .bind_workspace(environment.as_ref(), excluded.await.or_failed(ENVIRONMENT_UNUSABLE)?, notices)
        .await
}

/// Returns the reasoning effort at the end of a record.
fn recorded_effort(record: &Record) -> Option<String> {
    let changed = record.entries.iter().rev().find_map(|entry| {
        let InputKind::Configure { change: Change::ReasoningEffort(effort) } = &entry.input.kind else {
            return None;
        };
        Some(effort.clone())
    });
    changed
        .unwrap_or_else(|| record.header.start.reasoning_effort.clone())
        .map(|effort| effort.as_str().to_owned())
}

/// Returns a notice about each tool of a grant that has another name here, and about a grant that allows none of the
/// offered tools: tool names depend on the provider.
fn unmatched_grant_notices(grant: &Grant, offered: &[String]) -> Vec<Notice> {
    let misnamed = grant.misnamed_tools(offered);
    let texts = misnamed
        .map(|(name, own)| format!("`tools` of the grant has `{name}`; the tool of this session is `{own}`"));
    let mut notices: Vec<Notice> = texts.map(Notice::from).collect();
    if !offered.is_empty() && !offered.iter().any(|name| grant.allows_tool(name)) {
        let offered = offered.join(", ");
        let text = format!("`tools` of the grant allows no tool of this session, which has {offered}");
        notices.push(Notice::from(text));
    }
    notices
}

/// Returns the mode that replaces the requested one if no sandbox confines commands, and reports the missing sandbox.
///
/// Fails if no user is available to approve commands.
fn replacement_mode(
    sandbox: &SandboxState,
    mode: Mode,
    is_attended: bool,
    notices: &Notices,
) -> Result<Option<Mode>, Failure> {
    let SandboxState::Unavailable { reasons } = sandbox else { return Ok(None) };
    match mode {
        Mode::Plan | Mode::Ask | Mode::Edit => {
            notices.report(format!("commands run without a sandbox: {reasons}"));
            Ok(None)
        }
        Mode::Auto if is_attended => {
            notices
                .report(format!("commands run without a sandbox, so you are asked about calls: {reasons}"));
            Ok(Some(Mode::Ask))
        }
        Mode::Auto => {
            Err(Failure::usage(format!("mode auto needs a sandbox: {reasons}")).with_hint(SANDBOX_HINT))
        }
    }
}

/// Returns the mode that follows an accepted plan: the requested mode, unless it needs a missing sandbox.
fn mode_after_plan(requested: Mode, sandbox: &SandboxState) -> Mode {
    match (requested, sandbox) {
        (Mode::Auto, SandboxState::Unavailable { .. }) => Mode::Ask,
        (mode, _) => mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_sandbox_is_a_notice_and_users_are_asked_in_mode_auto() {
        let missing = SandboxState::Unavailable { reasons: "no kernel".to_owned() };
        let edit = "commands run without a sandbox: no kernel";
        let auto = "commands run without a sandbox, so you are asked about calls: no kernel";
        for (sandbox, mode, expected, text) in [
            (&missing, Mode::Edit, None, Some(edit)),
            (&missing, Mode::Auto, Some(Mode::Ask), Some(auto)),
            (&SandboxState::Off, Mode::Auto, None, None),
        ] {
            let notices = Notices::default();
            assert_eq!(replacement_mode(sandbox, mode, true, &notices).unwrap(), expected, "{mode:?}");
            assert_eq!(notices.take(), Vec::from_iter(text.map(Notice::from)), "{mode:?}");
        }
        let notices = Notices::default();
        assert!(replacement_mode(&missing, Mode::Auto, false, &notices).is_err());
        assert!(notices.take().is_empty(), "it is a failure instead");
    }
}
