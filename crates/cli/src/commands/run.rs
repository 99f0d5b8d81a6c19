//! `pintle run`: runs a task in a directory, with tools.

mod first_start;

use std::path::PathBuf;
use std::sync::Arc;

use pintle_agent::{OutcomeStatus, SessionId, UserMessage};
use pintle_env::{ExecutionEnvironment, WriteSwitch};
use pintle_governance::Mode;
use pintle_llm::AnswerSchema;
use pintle_tools::builtin::read_image;

use crate::approve::Prompter;
use crate::arguments::{OutputFormat, PromptArgs, RunArgs, SessionArgs};
use crate::attendant::Attendant;
use crate::commands::sessions::conversed::{self, Conversed};
use crate::config::{self, SessionSources};
use crate::console::{self, Console};
use crate::env_spec::{EnvSpec, EnvironmentChoice};
use crate::environment::{EnvSession, EnvTarget, SandboxState, SandboxUse};
use crate::exit::Exit;
use crate::exit::command_failure::CommandFailure;
use crate::explain;
use crate::failure::{Failure, FailureKind, OrFailure as _};
use crate::input::output_schema;
use crate::input::prompt_source;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::opening::{Beside, Opened, Opening};
#[cfg(feature = "compat")]
use crate::output::codex::CodexOutput;
use crate::output::follow::{Task, User, follow};
#[cfg(feature = "compat")]
use crate::output::last_message;
use crate::process_env::ProcessEnv;
use crate::render::{Detail, Style, View};
use crate::sessions::worktree::Worktree;
use crate::sessions::{self, Kept, Place, Selected, SessionChoice, SessionDescription, Sessions};
use crate::terminal::{
    self, ConversationContext, ConversationEnd, ConversationSettings, ConversationStart, Device, HistoryFile,
    StoredSession,
};

/// Runs the task.
///
/// Every outcome other than success is a failure.
pub(crate) async fn run(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    args.conversation.refuse()?;
    on_surface(Surface::Transcript, args, Beginning::default(), process_env).await?;
    Ok(Exit::Done)
}

/// Runs conversations in the terminal, one session after another.
pub(crate) async fn chat(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    terminal::require(process_env, (&args.conversation).into())?;
    let (mut args, mut beginning) = (args, Beginning::default());
    loop {
        let (next, device) =
            match on_surface(Surface::Conversation, args.clone(), beginning, process_env).await? {
                Ended::NotStarted | Ended::Task => return Ok(Exit::Done),
                Ended::Conversation(left) => *left,
            };
        args.prompt = PromptArgs::default();
        beginning = Beginning { device: Some(device), ..Beginning::default() };
        let session = &mut args.session;
        (session.continues, session.resume, session.fork) = (false, None, None);
        if !matches!(next, ConversationEnd::New(_)) {
            // A worktree belongs to the session that it was created for.
            session.worktree = None;
        }
        match next {
            ConversationEnd::Leave => return Ok(Exit::Done),
            ConversationEnd::New(settings) => beginning.settings = Some(settings),
            ConversationEnd::Resume(id) => session.resume = Some(id),
            ConversationEnd::Fork { id, turns, settings } => {
                session.fork = Some(turns.map_or_else(|| id.to_string(), |turns| format!("{id}@{turns}")));
                beginning.settings = Some(settings);
            }
            ConversationEnd::Rewind { id, turns, forced, draft, settings } => {
                beginning.settings = Some(settings);
                let rewound = conversed::rewind(&id, turns, forced, process_env).await;
                beginning.draft = rewound.is_ok().then_some(draft);
                let said = rewound.unwrap_or_else(|failure| failure.message());
                beginning.notes = said.lines().map(str::to_owned).collect();
                session.resume = Some(id.to_string());
            }
        }
    }
}

/// Start of a session, besides its arguments.
#[derive(Debug, Default)]
struct Beginning {
    /// Settings of the previous session.
    settings: Option<ConversationSettings>,
    /// Report of a rewind of the session.
    notes: Vec<String>,
    /// Input that the user may edit.
    draft: Option<String>,
    /// The terminal, in the modes of a conversation.
    device: Option<Device>,
}

impl Beginning {
    /// Returns whether the command line is about this session, and not about an earlier one of the same conversation.
    fn is_first(&self) -> bool {
        self.device.is_none()
    }

    /// Returns the arguments with the settings of the previous session. They are remembered like given flags.
    fn apply(&self, mut args: RunArgs) -> RunArgs {
        let Some(ConversationSettings { model, effort, mode }) = &self.settings else { return args };
        // A script answers for any model name.
        if args.model.script.is_none() {
            args.model.model = Some(model.clone());
        }
        args.model.reasoning_effort.clone_from(effort);
        args.policy.mode = Some(*mode);
        let SessionArgs { given, spec, .. } = &mut args.session;
        given.insert("mode".to_owned(), vec![mode.to_string()]);
        spec.given.policy.mode = Some(*mode);
        if let Some(effort) = effort {
            given.insert("reasoning-effort".to_owned(), vec![effort.clone()]);
            spec.given.model.reasoning_effort = Some(effort.clone());
        }
        args
    }
}

/// How a session ended.
#[derive(Debug)]
enum Ended {
    /// The user declined to start it in this directory.
    NotStarted,
    Task,
    Conversation(Box<(ConversationEnd, Device)>),
}

/// Presentation of a session to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    /// One task, with all its events.
    Transcript,
    Conversation,
}

async fn on_surface(
    surface: Surface,
    args: RunArgs,
    beginning: Beginning,
    process_env: &ProcessEnv,
) -> Result<Ended, CommandFailure> {
    let selected = select(&args, process_env).await?;
    // A session remembers its initial mode, and the record contains the current one.
    let has_settings = beginning.settings.is_some();
    let is_mode_given = has_settings || beginning.is_first() && args.policy.mode.is_some();
    let is_effort_given =
        has_settings || beginning.is_first() && args.session.given.contains_key("reasoning-effort");
    let mut sources = SessionSources::of_selected(selected.as_ref())?;
    if is_mode_given {
        sources.remembered.recorded_mode = None;
    }
    let completed = config::resolve_run(&args, sources, process_env).await?;
    // The prompt and the session of the command line apply only to the first conversation.
    let SessionArgs { no_session, given, spec, .. } = completed.session;
    let session = SessionArgs { no_session, given, spec, ..args.session };
    let mut args = beginning.apply(RunArgs { prompt: args.prompt, session, ..completed });
    if let Some(selected) = selected.as_ref().filter(|_| !beginning.is_first()) {
        // The command line sets the environment of the first session, which may be a different one.
        args.environment = selected.environment()?.into();
    }
    // A resumed session may use another directory than the current one.
    let process_env = &process_env.clone().with_workspace(args.environment.dir.as_deref());
    if surface == Surface::Conversation {
        // The user can be asked.
        args.policy.mode.get_or_insert(Mode::Edit);
    }
    // Until the handlers are installed, a signal terminates the process, also while it reads standard input.
    EnvTarget::new((&args.environment).into(), (&args.confinement).into(), process_env)?;
    let may_go_without = args.session.goes_on() || surface == Surface::Conversation;
    let answers = match (&args.output_schema, surface) {
        (Some(_), Surface::Conversation) => {
            return Err(Failure::usage(
                "--output-schema is for `pintle run`: a conversation has no final response",
            )
            .into());
        }
        (Some(path), Surface::Transcript) => Some(output_schema::read(path)?),
        (None, _) => None,
    };
    check_last_message(&args)?;
    let needs_no_prompt = may_go_without && args.prompt.is_absent();
    let prompt = if needs_no_prompt { None } else { Some(prompt_source::read(&args.prompt)?) };
    let interrupts = Interrupts::listen()?;
    let model = interrupts.race(Model::choose(&(&args.model).into(), process_env)).await?;
    process_env.notices().report_all(model.unknown_model());
    // Last, so that no failure leaves a worktree behind.
    let (args, worktree) = in_worktree(args, process_env).await?;
    // In a hook of git, commands in the worktree would work on the repository of the hook.
    let has_worktree = worktree.is_some() || selected.as_ref().is_some_and(Selected::has_worktree);
    let of_worktree = has_worktree.then(|| process_env.clone().without_repository());
    let process_env = of_worktree.as_ref().unwrap_or(process_env);
    // Later, the terminal is in the modes of the conversation, and untrusted parts are left out without a question.
    if surface == Surface::Conversation && beginning.is_first() {
        let environment = EnvironmentChoice::from(&args.environment);
        match interrupts.race(first_start::decide_trust(&environment, process_env)).await {
            Ok(true) => {}
            Ok(false) => {
                remove_worktree(worktree.as_ref(), process_env).await?;
                return Ok(Ended::NotStarted);
            }
            Err(failure) => {
                remove_worktree(worktree.as_ref(), process_env).await?;
                return Err(failure.into());
            }
        }
    }
    let target = EnvTarget::new((&args.environment).into(), (&args.confinement).into(), process_env)?
        .with_denials(&args.policy.deny)
        .for_use(SandboxUse {
            writes: WriteSwitch::new(args.policy.mode != Some(Mode::Plan)),
            can_be_left: args.wait_approval || Prompter::has_terminal(),
            keeps_state: !args.session.no_session,
            ..SandboxUse::default()
        });
    let kept = keep(&args, selected, &model, worktree, process_env).await?;
    // A worktree is found through its session.
    let new = kept.as_ref().filter(|kept| kept.is_new() && !has_worktree).map(|kept| kept.id.clone());
    let environment = match interrupts.race(target.connect()).await {
        Ok(environment) => environment,
        Err(failure) => {
            drop(kept);
            delete_unused(new.as_ref(), process_env).await;
            return Err(failure.into());
        }
    };
    interrupts.kill_commands_of(&environment);
    let run = SessionRun {
        surface,
        args: &args,
        beginning,
        is_mode_given,
        is_effort_given,
        prompt,
        answers,
        kept,
        model: &model,
    };
    let result = run.execute(&environment, process_env, &interrupts).await;
    // The session closes the environment itself, but it may not have been created.
    let closed = environment.close().await;
    if is_unused(&result, new.as_ref()) {
        delete_unused(new.as_ref(), process_env).await;
    }
    let result = result.and_then(|ended| closed.map(|()| ended).map_err(CommandFailure::from));
    result.map_err(|failure| failure.map(|failure| interrupts.reclassify(failure)))
}

/// Returns the session that the flags name; `None` for a new one.
pub(crate) async fn select(args: &RunArgs, process_env: &ProcessEnv) -> Result<Option<Selected>, Failure> {
    let choice = SessionChoice::from(&args.session);
    let environment = EnvironmentChoice::from(&args.environment);
    sessions::select(&choice, &environment, args.grant.is_some(), process_env).await
}

/// Returns whether a new session may have ended without a message, and the next session does not start from it.
fn is_unused(result: &Result<Ended, CommandFailure>, session: Option<&SessionId>) -> bool {
    match result {
        Ok(Ended::Task) => false,
        Ok(Ended::Conversation(left)) => match &left.0 {
            ConversationEnd::Fork { id, .. } | ConversationEnd::Rewind { id, .. } => Some(id) != session,
            ConversationEnd::Leave | ConversationEnd::New(_) | ConversationEnd::Resume(_) => true,
        },
        Ok(Ended::NotStarted) | Err(_) => true,
    }
}

/// Deletes a new session that has no message.
async fn delete_unused(session: Option<&SessionId>, process_env: &ProcessEnv) {
    if let Some(id) = session {
        sessions::empty::delete_if_empty(id, process_env).await;
    }
}

/// Removes the worktree of a session that was not created: without its session, it could not be found again.
async fn remove_worktree(worktree: Option<&Worktree>, process_env: &ProcessEnv) -> Result<(), Failure> {
    match worktree {
        Some(worktree) => worktree.remove(process_env).await,
        None => Ok(()),
    }
}

/// Creates the worktree of the session, if requested, and directs the tools to it.
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
    beginning: Beginning,
    /// Whether this command line sets the mode.
    is_mode_given: bool,
    /// Whether this command line sets the reasoning effort.
    is_effort_given: bool,
    prompt: Option<String>,
    /// Schema of the final response.
    answers: Option<AnswerSchema>,
    kept: Option<Kept>,
    model: &'a Model,
}

/// Returns the session that the run is kept in; `None` if it is not kept. If a new session cannot be created, the run
/// continues without one.
pub(crate) async fn keep(
    args: &RunArgs,
    selected: Option<Selected>,
    model: &Model,
    worktree: Option<Worktree>,
    process_env: &ProcessEnv,
) -> Result<Option<Kept>, Failure> {
    if args.session.no_session {
        return Ok(None);
    }
    let must_be_kept = selected.is_some() || worktree.is_some();
    match keep_for_good(args, selected, model, worktree.as_ref(), process_env).await {
        Ok(kept) => Ok(Some(kept)),
        Err(failure) if must_be_kept => {
            remove_worktree(worktree.as_ref(), process_env).await?;
            Err(failure)
        }
        Err(failure) => {
            console::notice(&format!("this run is not kept: {}", failure.message()));
            Ok(None)
        }
    }
}

/// Returns the stored session of a run that must not continue without one.
pub(crate) async fn keep_for_good(
    args: &RunArgs,
    selected: Option<Selected>,
    model: &Model,
    worktree: Option<&Worktree>,
    process_env: &ProcessEnv,
) -> Result<Kept, Failure> {
    let place = Place::of_choice(&(&args.environment).into(), process_env)?;
    let description = SessionDescription::from(args);
    match selected {
        Some(selected) => selected.open(&description, model, &place, worktree).await,
        None => Sessions::open(process_env).await?.create(&description, model, &place, worktree).await,
    }
}

impl SessionRun<'_> {
    async fn execute(
        self,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
        interrupts: &Interrupts,
    ) -> Result<Ended, CommandFailure> {
        let Self { surface, args, beginning, is_mode_given, is_effort_given, prompt, answers, kept, model } =
            self;
        let Beginning { notes, draft, device, .. } = beginning;
        let style = console::style(process_env);
        let environment = env_session.environment();
        let directory = environment.working_directory().to_path_buf();
        let (prompter, questions) = match surface {
            Surface::Transcript => {
                (Prompter::from_process(style, Some(process_env.principal()), args.wait_approval), None)
            }
            Surface::Conversation => {
                let (prompter, questions) = Prompter::in_conversation(Some(process_env.principal()));
                (prompter, Some(questions))
            }
        };
        let name = args.environment.env.to_string();
        let opening = Opening {
            args,
            is_mode_given,
            is_effort_given,
            can_turn_to_plan: surface == Surface::Conversation,
            id: None,
            servers: Vec::new(),
            kept,
            model,
            beside: Beside::default(),
        };
        let attendant: Arc<dyn Attendant> = Arc::new(prompter.clone());
        let opened = opening.open(env_session, &attendant, process_env).await?;
        let Opened { session, policy, servers, effort, offered, limits, is_kept, is_resumed } = opened;
        let mut session = session;
        let unfinished = session.resumed();
        if let Some(questions) = questions {
            let stored: Option<Arc<dyn StoredSession>> = match is_kept {
                true => {
                    Some(Arc::new(Conversed::open(session.id().clone(), env_session, process_env).await?))
                }
                false => None,
            };
            let history = is_kept
                .then(|| HistoryFile::locate(&name, &directory.to_string_lossy(), process_env))
                .flatten();
            let begun = ConversationStart {
                presentation: (&args.conversation).into(),
                session,
                prompt,
                unfinished,
                is_kept,
                effort,
                notes,
                draft,
                history,
                device,
            };
            let surroundings = ConversationContext {
                model,
                policy: &policy,
                directory: &directory,
                environment: format!("{name}, {}", env_session.sandbox().on_record()),
                tools: Arc::clone(&environment),
                offered,
                stored,
                report_configuration: |process_env| {
                    Box::pin(async move { super::config::effective(&process_env).await })
                },
                servers: servers.clone(),
                process_env,
                has_sandbox: !matches!(env_session.sandbox(), SandboxState::Unavailable { .. }),
                notices: console::divert_notices(),
                questions,
            };
            let left = terminal::converse(begun, surroundings, process_env, interrupts).await?;
            servers.close().await;
            return if interrupts.is_interrupted() {
                Err(Failure::silent(FailureKind::Interrupted).into())
            } else {
                Ok(Ended::Conversation(Box::new(left)))
            };
        }
        let prompt = with_images(prompt, &args.image, environment.as_ref()).await?;
        if prompt.is_none() && unfinished.is_none() {
            let id = session.id().clone();
            session.suspend().await;
            return Err(
                Failure::usage(format!("session {id} has no unfinished run: expected a prompt")).into()
            );
        }
        let mut view = view(args, style);
        let mut console = Console::new();

        let sees_text = view.is_text() && !args.quiet && style.terminal;
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
            answers,
        };
        let report = follow(session, task, &mut view, &mut console, interrupts).await?;
        servers.close().await;
        // Any other failure takes precedence over denied calls.
        let unwritten = write_last_message(args, &report.outcome.text, interrupts).await.err();
        let failure = explain::outcome(&report.outcome, &model.route)
            .or_else(|| report.failure())
            .or(unwritten)
            .or_else(|| prompter.failure().filter(|_| view.tells_denials()));
        let failure = failure.map(|failure| interrupts.reclassify(failure));
        console.write(&view.footer(&report.footer(failure.as_ref()))?).await?;
        if report.outcome.status == OutcomeStatus::AwaitingInput && !prompter.is_attended() {
            console::notice("the model asked a question, but no terminal is available to answer it");
        }
        failure.map_or(Ok(Ended::Task), |failure| Err(CommandFailure::already_in_output(failure)))
    }
}

/// Checks that the final response can be written to the file that the command line names, if it names one.
#[cfg(feature = "compat")]
fn check_last_message(args: &RunArgs) -> Result<(), Failure> {
    args.output_last_message.as_ref().map_or(Ok(()), |path| last_message::check(path))
}

#[cfg(not(feature = "compat"))]
#[expect(clippy::unnecessary_wraps, reason = "a build with the flag can fail")]
fn check_last_message(_args: &RunArgs) -> Result<(), Failure> {
    Ok(())
}

/// Writes the final response to the file that the command line names, if it names one. A signal ends the wait for the reader
/// of a named pipe.
#[cfg(feature = "compat")]
async fn write_last_message(args: &RunArgs, text: &str, interrupts: &Interrupts) -> Result<(), Failure> {
    let Some(path) = &args.output_last_message else { return Ok(()) };
    // A file is written in any case.
    tokio::select! {
        biased;
        written = last_message::write(path, text) => written,
        () = interrupts.first_signal() => Err(Failure::new(FailureKind::Interrupted, "interrupted")),
    }
}

#[cfg(not(feature = "compat"))]
async fn write_last_message(_args: &RunArgs, _text: &str, _interrupts: &Interrupts) -> Result<(), Failure> {
    Ok(())
}

/// Returns the view for the output of a run.
fn view(args: &RunArgs, style: Style) -> View {
    #[cfg(feature = "compat")]
    if args.codex_stream {
        return View::Other(Box::new(CodexOutput::default()));
    }
    output_view(args.output, detail(args), style)
}

/// Returns the view for an output format. Detail and style only apply to text.
pub(crate) fn output_view(format: OutputFormat, detail: Detail, style: Style) -> View {
    match format {
        OutputFormat::Text => View::text(detail, style),
        OutputFormat::Json => View::Json,
        OutputFormat::StreamJson => View::StreamJson,
    }
}

/// Adds images to a prompt. They are files in the environment of the tools.
async fn with_images(
    prompt: Option<String>,
    images: &[PathBuf],
    environment: &dyn ExecutionEnvironment,
) -> Result<Option<UserMessage>, Failure> {
    let Some(prompt) = prompt else {
        return match images.first() {
            None => Ok(None),
            Some(_) => Err(Failure::usage("--image needs a prompt")),
        };
    };
    let mut message = UserMessage::from(prompt);
    for path in images {
        let image = read_image(environment, path).await;
        message = message.with_image(image.or_usage(&format!("--image {}", path.display()))?);
    }
    Ok(Some(message))
}

fn detail(args: &RunArgs) -> Detail {
    match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    }
}
