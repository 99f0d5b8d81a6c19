//! Opens the session of a run with its model, tools, policy, hooks, budget and record.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_agent::protocol::{Change, InputKind};
use pintle_agent::{
    BudgetSource, Hooks, ProviderProfile, Record, Session, SessionConfig, SessionId, SubagentLimits,
    TurnLimits,
};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{
    ExternalHooks, GatePosition, GovernError, GovernedBuilder, GovernedSession, Grant, HookCommands, HookRun,
    Mode, Policy, PresentPlan, RecordedSettings, TrustedPrograms,
};
use pintle_llm::ToolList;
use pintle_tools::RegisteredTool;
use pintle_tools::gate::ReadBeforeWrite;

use crate::arguments::RunArgs;
use crate::attendant::{Attendant, AttendantApprover};
use crate::budget;
use crate::environment::{EnvSession, SANDBOX_HINT, SandboxState, UNUSABLE, without_network};
use crate::failure::{Failure, OrFailure as _};
use crate::gates;
use crate::instructions;
use crate::model::Model;
use crate::notice::{Notice, Notices};
use crate::policy::{self, LoadedPolicy, ServerFile};
use crate::process_env::ProcessEnv;
use crate::process_secrets;
use crate::servers::{self, ServerSpec, SessionServers};
use crate::session_limits::SessionLimits;
use crate::sessions::{Kept, Origin};
use crate::toolset;

/// Session to open.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) args: &'a RunArgs,
    /// Whether the mode is set now. A session remembers its last mode.
    pub(crate) is_mode_given: bool,
    /// Whether the reasoning effort is set now.
    pub(crate) is_effort_given: bool,
    /// Whether the session can switch to mode plan at any time, so that it has the plan tool from the start.
    pub(crate) can_turn_to_plan: bool,
    /// Id of a session that is not kept; a new one by default.
    pub(crate) id: Option<SessionId>,
    /// MCP servers that the client of the session declares.
    pub(crate) servers: Vec<ServerSpec>,
    /// Stored session; `None` if it is not kept.
    pub(crate) kept: Option<Kept>,
    pub(crate) model: &'a Model,
    pub(crate) beside: Beside,
}

/// Additions of the embedding application to a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Hooks that run after the user's hooks.
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    /// Names of the built-in tools that are offered; all by default. Subagent tools are not included.
    pub(crate) only: Option<Vec<String>>,
    /// More tools.
    pub(crate) tools: Vec<Arc<RegisteredTool>>,
    /// System prompt in place of the one of the model's family.
    pub(crate) base_instructions: Option<String>,
    /// Instructions after the user's instructions.
    pub(crate) instructions: Option<String>,
}

/// Open session, with the data that a surface needs besides it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) policy: Policy,
    pub(crate) servers: SessionServers,
    pub(crate) effort: Option<String>,
    /// Tools that the model is offered.
    pub(crate) offered: ToolList,
    pub(crate) limits: TurnLimits,
    pub(crate) is_kept: bool,
    /// Whether it started in an earlier process.
    pub(crate) is_resumed: bool,
}

/// Policy, hooks and grant of a session.
struct Ruled {
    policy: Policy,
    hooks: Option<ExternalHooks>,
    grant: Option<Grant>,
    effort: Option<String>,
    server_files: Vec<ServerFile>,
}

impl Opening<'_> {
    /// Opens the session in an environment. `attendant` answers for it.
    pub(crate) fn open<'f>(
        self,
        env_session: &'f EnvSession,
        attendant: &'f Arc<dyn Attendant>,
        process_env: &'f ProcessEnv,
    ) -> BoxFuture<'f, Result<Opened, Failure>>
    where
        Self: 'f,
    {
        // Boxed, so that rustc does not prove again for each caller that all of it is `Send`.
        Box::pin(self.open_session(env_session, attendant, process_env))
    }

    async fn open_session(
        mut self,
        env_session: &EnvSession,
        attendant: &Arc<dyn Attendant>,
        process_env: &ProcessEnv,
    ) -> Result<Opened, Failure> {
        let (args, model) = (self.args, self.model);
        let environment = env_session.environment();
        env_session.compare_with_earlier().await?;
        let mut budget = budget::load(&(&args.budget).into(), environment.as_ref(), process_env).await?;
        if model.is_scripted() {
            budget = budget::without_cost(budget);
        }
        let config = SessionLimits::from(args)
            .config(args.model.reasoning_effort.clone())
            .with_budget(budget::of_session(&budget))
            .with_redactions(process_secrets::redactions(process_env, model.route.secret()));
        let limits = config.limits.clone();
        let is_kept = self.kept.is_some();
        if let Some(kept) = self.kept.take() {
            self.kept = Some(in_place(kept, &args.policy.deny, env_session, process_env).await?);
        }
        let is_resumed = matches!(&self.kept, Some(Kept { origin: Origin::Resumed(_), .. }));
        let Ruled { policy, hooks, grant, effort, server_files } =
            self.rule(env_session, attendant, process_env).await?;
        let profile = self.profile(attendant, &policy, grant.is_some())?;
        let mut profile = instructions::with_skills(profile, &args.environment.env, process_env);
        if let Some(text) = self.beside.base_instructions.take() {
            profile = profile.with_base_instructions(text);
        }
        if let Some(only) = self.beside.only.take() {
            let names: Vec<String> = profile.tool_registry.names().map(str::to_owned).collect();
            for name in names.iter().filter(|name| !only.contains(name)) {
                profile.tool_registry.unregister(name);
            }
        }
        for tool in std::mem::take(&mut self.beside.tools) {
            profile.tool_registry.insert(tool);
        }
        let more = std::mem::take(&mut self.servers);
        let servers = servers::offer(
            &mut profile,
            (&server_files, more),
            &args.into(),
            env_session,
            grant.as_ref(),
            attendant,
            process_env,
        )?;
        let offered = profile.as_in_session(SubagentLimits::default()).tools();
        if let Some(hooks) = &hooks {
            process_env.notices().report_all(unknown_tools(hooks, &offered)?);
        }
        let budget = budget::source(budget, attendant, process_env).await?;
        let governed = Governed { policy: &policy, hooks, budget, grant };
        let builder =
            self.governed(config, profile, env_session, governed, Arc::clone(attendant), process_env)?;
        let session = builder.start().await.map_err(|error| start_failure(&error))?.into_session();
        Ok(Opened { session, policy, servers, effort, offered, limits, is_kept, is_resumed })
    }

    /// Loads the policy of the session. A resumed or forked session has its recorded policy.
    async fn rule(
        &self,
        env_session: &EnvSession,
        attendant: &Arc<dyn Attendant>,
        process_env: &ProcessEnv,
    ) -> Result<Ruled, Failure> {
        let args = self.args;
        let environment = env_session.environment();
        let name = args.environment.env.to_string();
        let loaded = policy::load(&(&args.policy).into(), environment.as_ref(), &name, process_env).await?;
        let LoadedPolicy { policy, user_hooks, project_hooks, server_files, untrusted } = loaded;
        if let Some(untrusted) = untrusted {
            process_env.notices().report(untrusted.notice());
        }
        let mut effort = args.model.reasoning_effort.clone();
        if let Some(kept) = &self.kept {
            let restored = kept.policy.restore(&policy, self.is_mode_given);
            restored.or_failed("the rules of the session cannot be restored")?;
            // A remembered flag is older than an effort set since.
            if let (Origin::Resumed(record), false) = (&kept.origin, self.is_effort_given) {
                effort = recorded_effort(record);
            }
        }
        if let Some(mode) =
            mode_in(env_session.sandbox(), policy.mode(), attendant.is_attended(), process_env.notices())?
        {
            policy.set_mode(mode).await.or_failed("cannot set the mode")?;
        }
        policy.drive(env_session.writes().clone());
        policy.set_after_plan(mode_after_plan(args.policy.after_plan, env_session.sandbox()));
        attendant.set_policy(policy.clone());
        if matches!(env_session.sandbox(), SandboxState::Unavailable { .. }) {
            attendant.refuse_auto();
        }
        let recorded = self.kept.as_ref().and_then(|kept| kept.grant.as_ref());
        let grant = policy::grant::load(args.grant_source(), recorded)?;
        if let Some(grant) = &grant {
            let has_project_hooks = !project_hooks.is_empty();
            gates::require_network_blocked(
                grant,
                env_session.sandbox(),
                &(&args.confinement).into(),
                has_project_hooks,
            )?;
        }
        let has_network = grant.as_ref().is_none_or(|grant| grant.network);
        let hooks = hooks(user_hooks, project_hooks, env_session, has_network, &policy, process_env).await?;
        Ok(Ruled { policy, hooks, grant, effort, server_files })
    }

    /// Returns the profile of the session with its tools.
    fn profile(
        &self,
        attendant: &Arc<dyn Attendant>,
        policy: &Policy,
        is_granted: bool,
    ) -> Result<ProviderProfile, Failure> {
        let profile = toolset::for_run(self.model, &self.args.into(), attendant.is_attended(), is_granted)?;
        let is_accepted_here = attendant.is_attended() || self.args.wait_approval;
        if !(self.can_turn_to_plan || policy.mode() == Mode::Plan && is_accepted_here) {
            return Ok(profile);
        }
        let tool = PresentPlan::new(policy.clone(), policy.after_plan());
        profile.with_tool(tool).or_failed("cannot offer the tool for plans")
    }

    /// Returns the builder of the session.
    fn governed(
        self,
        mut config: SessionConfig,
        profile: ProviderProfile,
        env_session: &EnvSession,
        governed: Governed<'_>,
        attendant: Arc<dyn Attendant>,
        process_env: &ProcessEnv,
    ) -> Result<GovernedBuilder, Failure> {
        let Self { args, model, kept, id, beside, is_effort_given, .. } = self;
        let Governed { policy, hooks, budget, grant } = governed;
        let mut settings = RecordedSettings::new();
        // Mode and rules are restored already, since the tools depend on them.
        (settings.mode, settings.rules) = (false, false);
        settings.effort = !is_effort_given;
        // A session keeps its limits unless others are given.
        settings.limits = config.limits == SessionLimits::default_turns();
        let of_mode =
            (policy.mode() == Mode::Plan).then(|| match attendant.is_attended() || args.wait_approval {
                true => PresentPlan::INSTRUCTIONS,
                false => PresentPlan::INSTRUCTIONS_WITHOUT_A_PERSON,
            });
        let others: Vec<&str> = of_mode.into_iter().chain(beside.instructions.as_deref()).collect();
        let others = (!others.is_empty()).then(|| others.join("\n\n"));
        config.user_instructions = instructions::of_user(&profile.provider, others.as_deref(), process_env);
        let environment = env_session.environment();
        let offered: Vec<String> = profile.tools().iter().map(|tool| tool.name.clone()).collect();
        let id = kept.as_ref().map(|kept| kept.id.clone()).or(id).unwrap_or_else(SessionId::generate);
        let session =
            Session::builder(model.client.clone(), profile, Arc::clone(&environment)).config(config).id(id);
        let mut builder = GovernedSession::builder(session)
            .workspace(gates::workspace_policy(env_session, grant.is_some(), process_env)?)
            .sandbox(env_session.sandbox().on_record())
            .policy(policy.clone())
            .watch(env_session.guarded_watch())
            .principal(attendant.user())
            .approver(AttendantApprover(attendant))
            .recorded(settings);
        if args.confinement.read_before_write {
            builder = builder.gate(GatePosition::ReadBeforeWrite, ReadBeforeWrite::new(environment));
        }
        if let Some(grant) = grant {
            process_env.notices().report_all(useless_grant(&grant, &offered));
            builder = builder.grant(grant, args.environment.env.to_string());
        }
        let of_user = hooks.map(|hooks| Arc::new(hooks) as Arc<dyn Hooks>);
        builder = of_user.into_iter().chain(beside.hooks).fold(builder, GovernedBuilder::hooks);
        if let Some(source) = budget {
            builder = builder.budget(source);
        }
        let Some(Kept { checkpoints, journal, origin, grant, .. }) = kept else {
            return Ok(builder.unkept());
        };
        builder = match origin {
            Origin::New => builder,
            Origin::Resumed(record) => builder.resume(*record),
            Origin::Forked(start) => builder.fork(*start, grant),
        };
        Ok(builder.journal(journal).checkpoints(checkpoints))
    }
}

/// Returns the failure of a session that did not start. A grant that is not valid here and now is a usage failure.
fn start_failure(error: &GovernError) -> Failure {
    if let GovernError::Grant(reason) = error {
        return Failure::usage(format!("the grant is not valid: {reason}"));
    }
    Failure::failed("cannot start the session").caused_by(error)
}

/// Checks that the tools reach the files of a session, and leaves hidden and denied files out of its checkpoints.
async fn in_place(
    kept: Kept,
    denials: &[String],
    env_session: &EnvSession,
    process_env: &ProcessEnv,
) -> Result<Kept, Failure> {
    let environment = env_session.environment();
    let rules = policy::denials(denials, environment.as_ref(), process_env).await?;
    let excluded = env_session.workspace().excluded_from_checkpoints(environment.as_ref(), &rules);
    kept.in_place(environment.as_ref(), excluded.await.or_failed(UNUSABLE)?, process_env.notices()).await
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

/// Policy, hooks, budget and grant that decide on the calls of a session.
struct Governed<'a> {
    policy: &'a Policy,
    hooks: Option<ExternalHooks>,
    budget: Option<Arc<dyn BudgetSource>>,
    grant: Option<Grant>,
}

/// Returns notices about hooks for tools that neither this session nor another toolset has. Tools of MCP servers may come later.
fn unknown_tools(hooks: &ExternalHooks, offered: &ToolList) -> Result<Vec<Notice>, Failure> {
    let is_offered = |name: &str| name.starts_with("mcp__") || offered.iter().any(|tool| tool.name == name);
    if hooks.unknown_tools(is_offered).is_empty() {
        return Ok(Vec::new());
    }
    let known = toolset::all_names()?;
    let unknown = hooks.unknown_tools(|name| is_offered(name) || known.contains(name));
    let notices = unknown.into_iter().map(|(tool, hook)| {
        let source = hook.source();
        let text = format!("the hook in {source} is for the tool `{tool}`, which this session does not have");
        Notice::from(text)
    });
    Ok(notices.collect())
}

/// Returns a notice about each tool of a grant that has another name here, and about a grant that allows none of the
/// offered tools: tool names depend on the provider.
fn useless_grant(grant: &Grant, offered: &[String]) -> Vec<Notice> {
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

/// Returns the hooks of a session; `None` without hooks. The user's hooks run on this machine with the user's rights,
/// but without network if the grant allows none. Hooks of the project run in the environment of its commands.
async fn hooks(
    of_user: HookCommands,
    of_projects: Vec<(HookCommands, TrustedPrograms)>,
    env_session: &EnvSession,
    has_network: bool,
    policy: &Policy,
    process_env: &ProcessEnv,
) -> Result<Option<ExternalHooks>, Failure> {
    if of_user.is_empty() && of_projects.is_empty() {
        return Ok(None);
    }
    let environment = env_session.environment();
    let directory = environment.working_directory();
    let here = if process_env.is_directory(directory) { directory } else { Path::new("/") };
    let host: Arc<dyn ExecutionEnvironment> = match has_network || of_user.is_empty() {
        true => Arc::new(process_env.local_environment(here)?),
        false => without_network(here, process_env).await?,
    };
    let hooks = ExternalHooks::new(of_user, host).with_working_directory(process_env.directory_outside());
    let hooks = of_projects.into_iter().fold(hooks, |hooks, (commands, programs)| {
        hooks.and_trusted(commands, Arc::clone(&environment), programs)
    });
    let notices = process_env.notices().clone();
    let hooks = hooks.with_policy(policy.clone()).with_observer(move |run| {
        let HookRun { hook, failure, message, .. } = run;
        match (failure, message) {
            (Some(failure), _) => {
                notices.report(format!("the hook {hook} did not answer: {}", failure.describe()))
            }
            (None, Some(message)) => notices.report(format!("the hook {hook}: {message}")),
            (None, None) => {}
        }
    });
    Ok(Some(hooks))
}

/// Returns the mode that replaces the requested one if no sandbox confines commands, and reports the missing sandbox.
///
/// Fails if no user is available to approve commands.
fn mode_in(
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
fn mode_after_plan(asked_for: Option<Mode>, sandbox: &SandboxState) -> Mode {
    match (asked_for.unwrap_or(Mode::Edit), sandbox) {
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
            assert_eq!(mode_in(sandbox, mode, true, &notices).unwrap(), expected, "{mode:?}");
            assert_eq!(notices.take(), Vec::from_iter(text.map(Notice::from)), "{mode:?}");
        }
        let notices = Notices::default();
        assert!(mode_in(&missing, Mode::Auto, false, &notices).is_err());
        assert!(notices.take().is_empty(), "it is a failure instead");
    }
}
