//! `pintle run`: a task, done in a directory with tools.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{Session, SessionConfig};
use pintle_llm::ReasoningEffort;

use crate::args::{EnvironmentName, OutputFormat, RunArgs, Toolset};
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;
use crate::follow::{Followed, follow};
use crate::host::Host;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::prompt_source;
use crate::render::{Closing, Detail, Opening, TextView, View};

/// Does the task and says how it ended.
///
/// # Errors
///
/// Everything but a run that ends well, with the sentence and the exit code for it.
pub(crate) async fn run(args: RunArgs, host: &Host) -> Result<Exit, Failure> {
    // Until here and while standard input is read, a signal simply ends the process.
    let directory = host.directory(args.dir.as_deref())?;
    let prompt = prompt_source::read(&args.prompt)?;
    let interrupts = Interrupts::listen()?;
    let model = Model::of(&args.model, host).await?;
    let session = session(&args, &model, &directory, host)?;
    let mut view = view(&args, host);
    let mut console = Console::new();

    let session_id = session.id().clone();
    let opening = Opening {
        session_id: &session_id,
        provider: model.route.provider.name(),
        model: &model.route.model,
        directory: &directory,
    };
    console.write(&view.opening(&opening)?).await?;
    let Followed { outcome, duration } =
        follow(session, prompt, &mut view, &mut console, &interrupts).await?;
    let closing = Closing {
        session_id: &session_id,
        outcome: &outcome,
        exit: Exit::of_outcome(&outcome),
        duration,
        cost: model.cost(&outcome.usage),
        demonstration: None,
    };
    console.write(&view.closing(&closing)?).await?;
    explain::outcome(&outcome, &model.route).map_or(Ok(Exit::Done), Err)
}

fn session(args: &RunArgs, model: &Model, directory: &Path, host: &Host) -> Result<Session, Failure> {
    let environment = match args.env {
        EnvironmentName::Local => host.environment(directory)?,
    };
    let profile = match args.toolset {
        Toolset::Spec => model.profile(),
    };
    let effort = args.model.reasoning_effort.clone().map(ReasoningEffort::from);
    let config = SessionConfig::default()
        .with_max_turns(args.max_turns)
        .with_max_tool_rounds(args.max_tool_rounds)
        .with_reasoning_effort(effort);
    Session::builder(model.client.clone(), profile, Arc::new(environment))
        .config(config)
        .build()
        .map_err(|error| Failure::failed("the session cannot begin").because(&error))
}

fn view(args: &RunArgs, host: &Host) -> View {
    let detail = match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    };
    match args.output {
        OutputFormat::Text => View::Text(TextView::new(console::style(host), detail)),
        OutputFormat::Json => View::Json,
        OutputFormat::StreamJson => View::StreamJson,
    }
}
