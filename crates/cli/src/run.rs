//! `pintle run`: runs a task in a directory, with tools.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{
    BudgetSource, CompactionPolicy, OutcomeStatus, Session, SessionConfig, SessionId, SystemClock, TurnLimits,
};
use pintle_env::{ExecutionEnvironment, WriteSwitch};
use pintle_governance::{
    ExternalHooks, Grant, GrantGate, HookCommands, HookRun, Mode, Policy, PresentPlan, ProtectedPathWatch,
    Revocations, TrustedPrograms,
};
use pintle_llm::ReasoningEffort;
use pintle_tools::gate::ReadBeforeWrite;

use crate::approve::Prompter;
use crate::args::{OutputFormat, RunArgs};
use crate::budget;
use crate::console::{self, Console};
use crate::env_spec::EnvSpec;
use crate::environment::{EnvSession, EnvTarget, SANDBOX_HINT, SandboxState, SandboxUse};
use crate::exit::Exit;
use crate::explain;
use crate::failure::{Failure, OrFailure as _};
use crate::follow::{Task, User, follow};
use crate::gates::Gates;
use crate::hardening;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::policy::{self, LoadedPolicy, PROJECT_DIRECTORY};
use crate::process_env::ProcessEnv;
use crate::prompt_source;
use crate::render::{Detail, View};
use crate::sessions::worktree::Worktree;
use crate::sessions::{self, Kept, Origin, Place, Selected, Sessions};
use crate::terminal::{self, Begun, HistoryFile, Surroundings};
use crate::timeout;
use crate::toolset;

/// How long a call waits for a decision.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the task.
///
/// # Errors
///
/// A failure for every outcome other than success.
pub(crate) async fn run(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    on_surface(Surface::Transcript, args, process_env).await
}

/// Converses in the terminal.
///
/// # Errors
///
/// A usage failure without a terminal, else a failure that keeps the conversation from beginning, or ends it.
pub(crate) async fn chat(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    terminal::require(process_env)?;
    on_surface(Surface::Conversation, args, process_env).await
}

/// Through what the user sees a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    /// One task, with everything that happens.
    Transcript,
    Conversation,
}

async fn on_surface(surface: Surface, args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let selected = sessions::select(&args, process_env).await?;
    // A session remembers the mode that it started with, and the record has the present one.
    let is_mode_given = args.policy.mode.is_some();
    let args = match &selected {
        Some(selected) => selected.arguments(&args)?,
        None => args,
    };
    // Until the handlers are installed, a signal terminates the process, also while it reads standard input.
    EnvTarget::from_args(&args.environment, args.confinement, process_env)?;
    let may_go_without = args.session.goes_on() || surface == Surface::Conversation;
    let needs_no_prompt = may_go_without && args.prompt.is_absent();
    let prompt = if needs_no_prompt { None } else { Some(prompt_source::read(&args.prompt)?) };
    let interrupts = Interrupts::listen()?;
    let model = Model::from_args(&args.model, process_env).await?;
    // Last, so that no failure leaves a worktree behind.
    let (args, worktree) = in_worktree(args, process_env).await?;
    let target =
        EnvTarget::from_args(&args.environment, args.confinement, process_env)?.for_use(SandboxUse {
            writes: WriteSwitch::new(args.policy.mode != Some(Mode::Plan)),
            can_be_left: args.wait_approval || Prompter::has_terminal(),
            keeps_state: !args.session.no_session,
        });
    let kept = keep(&args, selected, &model, worktree, process_env).await?;
    let environment = interrupts.race(target.connect()).await?;
    environment.kill_on_second_signal(&interrupts);
    let run = SessionRun { surface, args: &args, is_mode_given, prompt, kept, model: &model };
    let result = run.execute(&environment, process_env, &interrupts).await;
    // The session closes the environment itself, but it may not have been created.
    let closed = environment.close().await;
    result.and_then(|exit| closed.map(|()| exit)).map_err(|failure| interrupts.reclassify(failure))
}

/// Removes the worktree after a failure: without its session, nobody would find it again.
async fn or_remove<T>(
    result: Result<T, Failure>,
    worktree: Option<Worktree>,
    process_env: &ProcessEnv,
) -> Result<T, Failure> {
    if let (Err(_), Some(worktree)) = (&result, worktree) {
        worktree.remove(process_env).await?;
    }
    result
}

/// Makes the worktree of the session, if one is asked for, and sends the tools there.
///
/// # Errors
///
/// A usage failure elsewhere than in a local git repository, otherwise a failure with the cause.
async fn in_worktree(
    mut args: RunArgs,
    process_env: &ProcessEnv,
) -> Result<(RunArgs, Option<Worktree>), Failure> {
    let Some(base) = args.session.worktree else { return Ok((args, None)) };
    if args.environment.env != EnvSpec::Local {
        return Err(Failure::usage("--worktree works only with --env local"));
    }
    let directory = process_env.directory(args.environment.dir.as_deref())?;
    let state = Sessions::directory(process_env)?;
    let (worktree, inside) = Worktree::create(&directory, base, &state, process_env).await?;
    console::notice(&format!(
        "working in {}; `pintle worktree merge {}` takes the changes over",
        inside.display(),
        worktree.session
    ));
    args.environment.dir = Some(inside);
    Ok((args, Some(worktree)))
}

/// Session in which a run happens.
struct SessionRun<'a> {
    surface: Surface,
    args: &'a RunArgs,
    /// Whether this command line sets the mode.
    is_mode_given: bool,
    prompt: Option<String>,
    kept: Option<Kept>,
    model: &'a Model,
}

/// Returns the session that the run is kept in; `None` if it is not kept. A new session that cannot be created is no reason
/// not to run.
async fn keep(
    args: &RunArgs,
    selected: Option<Selected>,
    model: &Model,
    worktree: Option<Worktree>,
    process_env: &ProcessEnv,
) -> Result<Option<Kept>, Failure> {
    if args.session.no_session {
        return Ok(None);
    }
    let place = Place::of_args(&args.environment, process_env)?;
    if let Some(selected) = selected {
        let opened = selected.open(args, model, &place, worktree.as_ref()).await.map(Some);
        return or_remove(opened, worktree, process_env).await;
    }
    let created = match Sessions::open(process_env) {
        Ok(sessions) => sessions.create(args, model, &place, worktree.as_ref()).await,
        Err(failure) => Err(failure),
    };
    match created {
        Ok(kept) => Ok(Some(kept)),
        Err(failure) if worktree.is_some() => or_remove(Err(failure), worktree, process_env).await,
        Err(failure) => {
            console::notice(&format!("this run is not kept: {}", failure.message()));
            Ok(None)
        }
    }
}

impl SessionRun<'_> {
    async fn execute(
        self,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
        interrupts: &Interrupts,
    ) -> Result<Exit, Failure> {
        let Self { surface, args, is_mode_given, prompt, kept, model } = self;
        let style = console::style(process_env);
        let environment = env_session.environment();
        let directory = environment.working_directory().to_path_buf();
        let prompter = match surface {
            Surface::Transcript => Prompter::from_process(style, process_env.principal(), args.wait_approval),
            Surface::Conversation => Prompter::in_conversation(process_env.principal()),
        };
        let budget = budget::load(&args.budget, environment.as_ref(), process_env).await?;
        let config = config(args)
            .with_budget(budget::of_session(&budget))
            .with_redactions(hardening::secrets(process_env));
        let limits = config.limits.clone();
        let is_kept = kept.is_some();
        let is_resumed = kept.as_ref().is_some_and(|kept| matches!(kept.origin, Origin::Resumed(_)));
        let kept = match kept {
            Some(kept) => Some(kept.in_place(environment.as_ref()).await?),
            None => None,
        };
        let name = args.environment.env.to_string();
        let loaded = policy::load(&args.policy, environment.as_ref(), &name, process_env).await?;
        let LoadedPolicy { policy, user_hooks, project_hooks, untrusted } = loaded;
        if let Some(untrusted) = untrusted {
            untrusted.notice();
        }
        if let Some(Kept { origin: Origin::Resumed(record), .. }) = &kept {
            policy::restore(&policy, record, is_mode_given)?;
        }
        if let Some(mode) = mode_in(env_session.sandbox(), policy.mode(), prompter.is_attended())? {
            policy.set_mode(mode).await.or_failed("cannot set the mode")?;
        }
        policy.drive(env_session.writes().clone());
        policy.set_after_plan(mode_after_plan(args.policy.after_plan, env_session.sandbox()));
        prompter.set_policy(policy.clone());
        if matches!(env_session.sandbox(), SandboxState::Unavailable { .. }) {
            prompter.refuse_auto();
        }
        let hooks = hooks(user_hooks, project_hooks, env_session, &policy, process_env)?;
        let budget = budget::source(budget, &prompter, process_env)?;
        let recorded = kept.as_ref().and_then(|kept| kept.grant.as_ref());
        let grant = policy::grant::load(args.grant.as_deref(), recorded)?;
        let held_to = grant.as_ref().and_then(|grant| serde_json::to_value(grant).ok());
        let governed = Governed { policy: &policy, hooks, budget, grant };
        let mut session = session(args, config, model, env_session, governed, prompter.clone(), kept)?;
        policy.attach(session.handle());
        let mut beginning = policy.on_record();
        beginning.grant = held_to;
        beginning.sandbox = Some(env_session.sandbox().on_record().to_owned());
        session.handle().record_policy(beginning).await.or_failed("cannot start the session")?;
        let unfinished = session.resumed();
        if surface == Surface::Conversation {
            let begun =
                Begun { session, prompt, unfinished, is_kept, effort: args.model.reasoning_effort.clone() };
            let surroundings = Surroundings {
                model,
                policy: &policy,
                directory: &directory,
                environment: format!("{name}, {}", env_session.sandbox().on_record()),
                tools: Arc::clone(&environment),
                history: is_kept
                    .then(|| HistoryFile::of(&name, &directory.to_string_lossy(), process_env))
                    .flatten(),
                has_sandbox: !matches!(env_session.sandbox(), SandboxState::Unavailable { .. }),
                notices: console::divert_notices(),
            };
            terminal::converse(begun, surroundings, process_env, interrupts).await?;
            return if interrupts.is_interrupted() {
                Err(Failure::silent(Exit::Interrupted))
            } else {
                Ok(Exit::Done)
            };
        }
        if prompt.is_none() && unfinished.is_none() {
            let id = session.id().clone();
            session.suspend().await;
            return Err(Failure::usage(format!("session {id} has nothing under way: expected a prompt")));
        }
        let mut view = View::new(args.output, detail(args), style);
        let mut console = Console::new();

        let sees_text = args.output == OutputFormat::Text && !args.quiet && style.terminal;
        if is_kept {
            prompter.keep_requests();
        }
        let user = prompter.is_attended().then_some(User { prompter: &prompter, sees_text });
        let task = Task {
            prompt,
            unfinished,
            is_kept,
            is_resumed,
            model,
            directory: &directory,
            user,
            approvals: Some(&prompter),
            limits,
        };
        let report = follow(session, task, &mut view, &mut console, interrupts).await?;
        // Any other failure takes precedence over denied calls.
        let failure = explain::outcome(&report.outcome, &model.route)
            .or_else(|| report.failure())
            .or_else(|| prompter.failure());
        let failure = failure.map(|failure| interrupts.reclassify(failure));
        console.write(&view.footer(&report.footer(failure.as_ref()))?).await?;
        if report.outcome.status == OutcomeStatus::AwaitingInput && !prompter.is_attended() {
            console::notice("the model asked a question, but no terminal is available to answer it");
        }
        failure.map_or(Ok(Exit::Done), |failure| Err(failure.already_in_output()))
    }
}

/// Returns the policy for `--compact-at`.
fn compaction(percent: u8) -> CompactionPolicy {
    match percent {
        0 => CompactionPolicy::default(),
        percent => CompactionPolicy::default().with_at_percent(percent),
    }
}

fn config(args: &RunArgs) -> SessionConfig {
    let effort = args.model.reasoning_effort.clone().map(ReasoningEffort::from);
    let mut config = SessionConfig::default()
        .with_max_turns(args.max_turns)
        .with_max_tool_rounds(args.max_tool_rounds)
        .with_compaction(compaction(args.compact_at))
        .with_model_timeout(timeout::limits(args.model.timeout))
        .with_reasoning_effort(effort);
    config.limits.approval_timeout = Some(APPROVAL_TIMEOUT);
    config
}

fn session(
    args: &RunArgs,
    mut config: SessionConfig,
    model: &Model,
    env_session: &EnvSession,
    governed: Governed<'_>,
    prompter: Prompter,
    kept: Option<Kept>,
) -> Result<Session, Failure> {
    let Governed { policy, hooks, budget, grant } = governed;
    if let Some(grant) = &grant {
        grant.limit(&mut config);
    }
    let limits = config.limits.clone();
    let mut profile = toolset::for_run(model, args, prompter.is_attended(), grant.is_some())?;
    if policy.mode() == Mode::Plan {
        let instructions = if prompter.is_attended() || args.wait_approval {
            let tool = PresentPlan::new(policy.clone(), policy.after_plan());
            profile = profile.with_tool(tool).or_failed("cannot offer the tool for plans")?;
            PresentPlan::INSTRUCTIONS
        } else {
            PresentPlan::INSTRUCTIONS_WITHOUT_A_PERSON
        };
        config.user_instructions = Some(instructions.to_owned());
    }
    let environment = env_session.environment();
    let id = kept.as_ref().map_or_else(SessionId::generate, |kept| kept.id.clone());
    let mut builder = Session::builder(model.client.clone(), profile, Arc::clone(&environment))
        .config(config)
        .id(id.clone())
        .principal(prompter.user());
    if let Some(grant) = grant {
        builder = builder.gate(grant_gate(args, grant, id, &environment)?);
    }
    let is_held = matches!(env_session.sandbox(), SandboxState::Level(_));
    let gates = Gates::new(&environment, env_session.hidden(), policy, is_held, env_session.temporary());
    let mut builder = builder
        .gate(gates.protected)
        .gate(gates.hidden)
        .gate(gates.policy)
        .gate(watch(args, env_session))
        .approver(prompter);
    if let Some(hooks) = hooks {
        builder = builder.hooks(hooks);
    }
    if let Some(source) = budget {
        builder = builder.budget_source(source);
    }
    if args.confinement.read_before_write {
        builder = builder.gate(ReadBeforeWrite::new(environment));
    }
    let goes_on = kept.as_ref().is_some_and(|kept| !matches!(kept.origin, Origin::New));
    if let Some(Kept { checkpoints, journal, origin, .. }) = kept {
        builder = match origin {
            Origin::New => builder,
            Origin::Resumed(record) => builder.resume(*record),
            Origin::Forked(start) => builder.start(*start),
        };
        builder = builder.journal(journal).checkpoints(checkpoints);
    }
    let session = builder.build().or_failed("cannot start the session")?;
    // A session keeps its limits, unless others are given.
    if goes_on && limits != default_limits() {
        session.handle().set_limits(limits).or_failed("cannot set the limits of the session")?;
    }
    Ok(session)
}

/// Returns what looks at protected files after each command. Elsewhere than on this machine, a walk of the workspace takes
/// too long for that.
fn watch(args: &RunArgs, env_session: &EnvSession) -> ProtectedPathWatch {
    let watch = ProtectedPathWatch::new(env_session.environment(), [PROJECT_DIRECTORY]);
    let watch = watch.held(env_session.protected().to_vec());
    if args.environment.env == EnvSpec::Local { watch } else { watch.without_search() }
}

/// What judges the calls of a session.
struct Governed<'a> {
    policy: &'a Policy,
    hooks: Option<ExternalHooks>,
    budget: Option<Arc<dyn BudgetSource>>,
    grant: Option<Grant>,
}

/// Returns the gate that holds a session to its grant.
///
/// # Errors
///
/// A usage failure for a grant that does not hold here and now: the model is not asked then.
fn grant_gate(
    args: &RunArgs,
    grant: Grant,
    session: SessionId,
    environment: &Arc<dyn ExecutionEnvironment>,
) -> Result<GrantGate, Failure> {
    let name = args.environment.env.to_string();
    let (grant, environment) = (Arc::new(grant), Arc::clone(environment));
    let gate = GrantGate::new(grant, session, environment, name, Arc::new(SystemClock), Revocations::new());
    match gate.standing() {
        None => Ok(gate),
        Some(reason) => Err(Failure::usage(format!("the grant does not hold: {reason}"))),
    }
}

/// Returns the hooks of a session; `None` if there are none. Those of the user run on this machine, as the user would run
/// them; those of the project run where its commands do.
///
/// # Errors
///
/// A failure if nothing can run on this machine.
fn hooks(
    of_user: HookCommands,
    of_projects: Vec<(HookCommands, TrustedPrograms)>,
    env_session: &EnvSession,
    policy: &Policy,
    process_env: &ProcessEnv,
) -> Result<Option<ExternalHooks>, Failure> {
    if of_user.is_empty() && of_projects.is_empty() {
        return Ok(None);
    }
    let environment = env_session.environment();
    let directory = environment.working_directory();
    let here = if process_env.is_directory(directory) { directory } else { Path::new("/") };
    let host = Arc::new(process_env.local_environment(here)?);
    let hooks = ExternalHooks::new(of_user, host);
    let hooks = of_projects.into_iter().fold(hooks, |hooks, (commands, programs)| {
        hooks.and_trusted(commands, Arc::clone(&environment), programs)
    });
    let hooks = hooks.with_policy(policy.clone()).with_observer(|run| {
        let HookRun { hook, failure, message, .. } = run;
        match (failure, message) {
            (Some(failure), _) => {
                console::notice(&format!("the hook {hook} did not answer: {}", failure.describe()))
            }
            (None, Some(message)) => console::notice(&format!("the hook {hook}: {message}")),
            (None, None) => {}
        }
    });
    Ok(Some(hooks))
}

/// Returns the mode to use instead of the one that was asked for, where no sandbox holds commands.
///
/// # Errors
///
/// A usage failure if nobody could be asked about commands instead.
fn mode_in(sandbox: &SandboxState, mode: Mode, is_attended: bool) -> Result<Option<Mode>, Failure> {
    let SandboxState::Unavailable { reasons } = sandbox else { return Ok(None) };
    match mode {
        Mode::Plan | Mode::Ask | Mode::Edit => {
            console::notice(&format!("commands run without a sandbox: {reasons}"));
            Ok(None)
        }
        Mode::Auto if is_attended => {
            console::notice(&format!(
                "commands run without a sandbox, so you are asked about calls: {reasons}"
            ));
            Ok(Some(Mode::Ask))
        }
        Mode::Auto => {
            Err(Failure::usage(format!("mode auto needs a sandbox: {reasons}")).with_hint(SANDBOX_HINT))
        }
    }
}

/// Returns the mode that follows an accepted plan: the one that was asked for, unless it needs a sandbox that is missing.
fn mode_after_plan(asked_for: Option<Mode>, sandbox: &SandboxState) -> Mode {
    match (asked_for.unwrap_or(Mode::Edit), sandbox) {
        (Mode::Auto, SandboxState::Unavailable { .. }) => Mode::Ask,
        (mode, _) => mode,
    }
}

/// Returns the limits of a run without flags about them.
fn default_limits() -> TurnLimits {
    let mut limits = SessionConfig::default().with_compaction(CompactionPolicy::automatic()).limits;
    limits.approval_timeout = Some(APPROVAL_TIMEOUT);
    limits
}

fn detail(args: &RunArgs) -> Detail {
    match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    }
}
