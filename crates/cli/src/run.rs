//! `pintle run`: a task, done in a directory with tools.

use std::sync::Arc;

use pintle_agent::{OutcomeStatus, Session, SessionConfig};
use pintle_llm::ReasoningEffort;
use pintle_tools::gate::{PathGate, ProtectedDirectoryGate, ReadBeforeWrite};

use crate::approve::{self, Terminal};
use crate::args::{ApproveName, OutputFormat, RunArgs, SandboxName};
use crate::console::{self, Console};
use crate::environment::{Site, Workplace};
use crate::equipment;
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;
use crate::follow::{Person, Task, follow};
use crate::host::Host;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::prompt_source;
use crate::render::{Detail, View};
use crate::timeout;

/// Does the task and says how it ended.
///
/// # Errors
///
/// Everything but a run that ends well, with the sentence and the exit code for it.
pub(crate) async fn run(args: RunArgs, host: &Host) -> Result<Exit, Failure> {
    // Until here and while standard input is read, a signal simply ends the process.
    let site = Site::of(&args.place, args.confinement, host)?;
    let prompt = prompt_source::read(&args.prompt)?;
    let interrupts = Interrupts::listen()?;
    let model = Model::of(&args.model, host).await?;
    let workplace = interrupts.unless(site.reach()).await?;
    workplace.guard_by(&interrupts);
    let done = work(&args, prompt, &model, &workplace, host, &interrupts).await;
    // A session leaves it by itself; there may have been none.
    let left = workplace.leave().await;
    done.and_then(|exit| left.map(|()| exit)).map_err(|failure| interrupts.judge(failure))
}

/// Does it there, from the first event to the last.
async fn work(
    args: &RunArgs,
    prompt: String,
    model: &Model,
    workplace: &Workplace,
    host: &Host,
    interrupts: &Interrupts,
) -> Result<Exit, Failure> {
    let environment = workplace.environment();
    let directory = environment.working_directory().to_path_buf();
    let terminal = Terminal::of_process(console::style(host));
    let config = config(args);
    let limits = config.limits.clone();
    let session = session(args, config, model, workplace, terminal.clone())?;
    let mut view = View::new(args.output, detail(args), console::style(host), model.drafts.clone());
    let mut console = Console::new();

    let reads_along = args.output == OutputFormat::Text && !args.quiet && console::style(host).terminal;
    let person = terminal.can_ask().then_some(Person { terminal: &terminal, reads_along });
    let task = Task { prompt, model, directory: &directory, person, limits };
    let followed = follow(session, task, &mut view, &mut console, interrupts).await?;
    // What else went wrong is more than a call that was denied.
    let failure = explain::outcome(&followed.outcome, &model.route)
        .or_else(|| followed.failure())
        .or_else(|| terminal.failure());
    let failure = failure.map(|failure| interrupts.judge(failure));
    console.write(&view.closing(&followed.closing(failure.as_ref()))?).await?;
    if followed.outcome.status == OutcomeStatus::AwaitingInput && !terminal.can_ask() {
        console::notice("the model asks something, and nobody at a terminal can answer");
    }
    failure.map_or(Ok(Exit::Done), |failure| Err(failure.in_output()))
}

fn config(args: &RunArgs) -> SessionConfig {
    let effort = args.model.reasoning_effort.clone().map(ReasoningEffort::from);
    SessionConfig::default()
        .with_max_turns(args.max_turns)
        .with_max_tool_rounds(args.max_tool_rounds)
        .with_budget(args.spending.into())
        .with_model_timeout(timeout::limits(args.model.timeout))
        .with_reasoning_effort(effort)
}

fn session(
    args: &RunArgs,
    config: SessionConfig,
    model: &Model,
    workplace: &Workplace,
    terminal: Terminal,
) -> Result<Session, Failure> {
    let profile = equipment::of_run(model, args, terminal.can_ask())?;
    let environment = workplace.environment();
    let mut builder = Session::builder(model.client.clone(), profile, Arc::clone(&environment))
        .config(config)
        .gate(approve::gate(args.approve))
        .approver(terminal);
    if args.approve != ApproveName::Never {
        builder = builder.gate(ProtectedDirectoryGate::new(Arc::clone(&environment), [".git"]));
    }
    // The sandbox holds commands; file tools write within the same limits.
    if args.confinement.sandbox == SandboxName::Workspace {
        let gate = PathGate::new(Arc::clone(&environment)).writes_only();
        builder = builder.gate(workplace.temporary().into_iter().fold(gate, PathGate::with_root));
    }
    if args.confinement.read_before_write {
        builder = builder.gate(ReadBeforeWrite::new(environment));
    }
    builder.build().map_err(|error| Failure::failed("the session cannot begin").because(&error))
}

fn detail(args: &RunArgs) -> Detail {
    match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    }
}
