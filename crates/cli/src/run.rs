//! `pintle run`: runs a task in a directory, with tools.

use std::sync::Arc;

use pintle_agent::{OutcomeStatus, Session, SessionConfig};
use pintle_llm::ReasoningEffort;
use pintle_tools::gate::{PathGate, ProtectedDirectoryGate, ReadBeforeWrite};

use crate::approve::{self, Prompter};
use crate::args::{ApproveName, OutputFormat, RunArgs, SandboxName};
use crate::console::{self, Console};
use crate::environment::{EnvSession, EnvTarget};
use crate::exit::Exit;
use crate::explain;
use crate::failure::{Failure, OrFailure as _};
use crate::follow::{Task, User, follow};
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::process_env::ProcessEnv;
use crate::prompt_source;
use crate::render::{Detail, View};
use crate::timeout;
use crate::toolset;

/// Runs the task.
///
/// # Errors
///
/// A failure for every outcome other than success.
pub(crate) async fn run(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    // Until the handlers are installed, a signal terminates the process, also while it reads standard input.
    let target = EnvTarget::from_args(&args.environment, args.confinement, process_env)?;
    let prompt = prompt_source::read(&args.prompt)?;
    let interrupts = Interrupts::listen()?;
    let model = Model::from_args(&args.model, process_env).await?;
    let environment = interrupts.race(target.connect()).await?;
    environment.kill_on_second_signal(&interrupts);
    let result = run_session(&args, prompt, &model, &environment, process_env, &interrupts).await;
    // The session closes the environment itself, but it may not have been created.
    let closed = environment.close().await;
    result.and_then(|exit| closed.map(|()| exit)).map_err(|failure| interrupts.reclassify(failure))
}

async fn run_session(
    args: &RunArgs,
    prompt: String,
    model: &Model,
    env_session: &EnvSession,
    process_env: &ProcessEnv,
    interrupts: &Interrupts,
) -> Result<Exit, Failure> {
    let style = console::style(process_env);
    let environment = env_session.environment();
    let directory = environment.working_directory().to_path_buf();
    let prompter = Prompter::from_process(style);
    let config = config(args);
    let limits = config.limits.clone();
    let session = session(args, config, model, env_session, prompter.clone())?;
    let mut view = View::new(args.output, detail(args), style);
    let mut console = Console::new();

    let sees_text = args.output == OutputFormat::Text && !args.quiet && style.terminal;
    let user = prompter.is_attended().then_some(User { prompter: &prompter, sees_text });
    let task = Task { prompt, model, directory: &directory, user, limits };
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

fn config(args: &RunArgs) -> SessionConfig {
    let effort = args.model.reasoning_effort.clone().map(ReasoningEffort::from);
    SessionConfig::default()
        .with_max_turns(args.max_turns)
        .with_max_tool_rounds(args.max_tool_rounds)
        .with_budget(args.budget.into())
        .with_model_timeout(timeout::limits(args.model.timeout))
        .with_reasoning_effort(effort)
}

fn session(
    args: &RunArgs,
    config: SessionConfig,
    model: &Model,
    env_session: &EnvSession,
    prompter: Prompter,
) -> Result<Session, Failure> {
    let profile = toolset::for_run(model, args, prompter.is_attended())?;
    let environment = env_session.environment();
    let mut builder = Session::builder(model.client.clone(), profile, Arc::clone(&environment))
        .config(config)
        .gate(approve::gate(args.approve))
        .approver(prompter);
    if args.approve != ApproveName::Never {
        builder = builder.gate(ProtectedDirectoryGate::new(Arc::clone(&environment), [".git"]));
    }
    // The sandbox only covers commands; this gate holds file tools to the same write limits.
    if args.confinement.sandbox == SandboxName::Workspace {
        let gate = PathGate::new(Arc::clone(&environment)).writes_only();
        builder = builder.gate(env_session.temporary().into_iter().fold(gate, PathGate::with_root));
    }
    if args.confinement.read_before_write {
        builder = builder.gate(ReadBeforeWrite::new(environment));
    }
    builder.build().or_failed("cannot start the session")
}

fn detail(args: &RunArgs) -> Detail {
    match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    }
}
