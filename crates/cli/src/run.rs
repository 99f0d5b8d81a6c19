//! `pintle run`: a task, done in a directory with tools.

use std::sync::Arc;

use pintle_agent::{Session, SessionConfig};
use pintle_env::ExecutionEnvironment;
use pintle_llm::ReasoningEffort;

use crate::approve::{self, Terminal};
use crate::args::RunArgs;
use crate::console::{self, Console};
use crate::environment::Site;
use crate::equipment;
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;
use crate::follow::{Task, follow};
use crate::host::Host;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::prompt_source;
use crate::render::{Detail, View};

/// Does the task and says how it ended.
///
/// # Errors
///
/// Everything but a run that ends well, with the sentence and the exit code for it.
pub(crate) async fn run(args: RunArgs, host: &Host) -> Result<Exit, Failure> {
    // Until here and while standard input is read, a signal simply ends the process.
    let site = Site::of(&args.place, host)?;
    let prompt = prompt_source::read(&args.prompt)?;
    let interrupts = Interrupts::listen()?;
    let model = Model::of(&args.model, host).await?;
    let workplace = interrupts.unless(site.reach()).await?;
    workplace.guard_by(&interrupts);
    let done = work(&args, prompt, &model, workplace.environment(), host, &interrupts).await;
    // A session leaves it by itself; there may have been none.
    let left = workplace.leave().await;
    done.and_then(|exit| left.map(|()| exit)).map_err(|failure| interrupts.judge(failure))
}

/// Does it there, from the first event to the last.
async fn work(
    args: &RunArgs,
    prompt: String,
    model: &Model,
    environment: Arc<dyn ExecutionEnvironment>,
    host: &Host,
    interrupts: &Interrupts,
) -> Result<Exit, Failure> {
    let directory = environment.working_directory().to_path_buf();
    let terminal = Terminal::of_process(console::style(host));
    let config = config(args);
    let limits = config.limits.clone();
    let session = session(args, config, model, environment, terminal.clone())?;
    let mut view = View::new(args.output, detail(args), console::style(host), model.drafts.clone());
    let mut console = Console::new();

    let task = Task { prompt, model, directory: &directory, terminal: Some(&terminal), limits };
    let followed = follow(session, task, &mut view, &mut console, interrupts).await?;
    // What else went wrong is more than a call that was denied.
    let failure = explain::outcome(&followed.outcome, &model.route)
        .or_else(|| followed.failure())
        .or_else(|| terminal.failure());
    let failure = failure.map(|failure| interrupts.judge(failure));
    console.write(&view.closing(&followed.closing(failure.as_ref()))?).await?;
    failure.map_or(Ok(Exit::Done), |failure| Err(failure.in_output()))
}

fn config(args: &RunArgs) -> SessionConfig {
    let effort = args.model.reasoning_effort.clone().map(ReasoningEffort::from);
    SessionConfig::default()
        .with_max_turns(args.max_turns)
        .with_max_tool_rounds(args.max_tool_rounds)
        .with_reasoning_effort(effort)
}

fn session(
    args: &RunArgs,
    config: SessionConfig,
    model: &Model,
    environment: Arc<dyn ExecutionEnvironment>,
    terminal: Terminal,
) -> Result<Session, Failure> {
    let profile = equipment::of_run(model, args.toolset.into(), args.approve, terminal.can_ask())?;
    Session::builder(model.client.clone(), profile, environment)
        .config(config)
        .gate(approve::gate(args.approve))
        .approver(terminal)
        .build()
        .map_err(|error| Failure::failed("the session cannot begin").because(&error))
}

fn detail(args: &RunArgs) -> Detail {
    match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    }
}
