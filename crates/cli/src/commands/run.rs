//! `pintle run`: runs a task in a directory, with tools.

mod start_settings;
mod trust_prompt;

use std::path::PathBuf;
use std::sync::Arc;

use pintle_agent::{OutcomeStatus, Run, Session, SessionId, TurnLimits, UserMessage};
use pintle_env::ExecutionEnvironment;
use pintle_governance::Policy;
use pintle_host::attendant::Attendant as _;
use pintle_host::boxed_future::box_future;
use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::environment::{Confinement, EnvSession, EnvTarget, SandboxState};
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::model::Model;
use pintle_host::process_env::ProcessEnv;
use pintle_host::servers::SessionServers;
use pintle_host::sessions::worktree::Worktree;
use pintle_host::sessions::{self, RememberedSettings, SelectedSession, SessionChoice, Sessions};
use pintle_host::{Host, OpenRequest, OpenSession, ResolvedSession, SessionSpec, Surface, explain};
use pintle_llm::{AnswerSchema, ToolList};
use pintle_tools::builtin::read_image;
use pintle_tui::approve::{Prompter, Question};
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;
use pintle_tui::render::{Detail, Style, View};
use pintle_tui::terminal::{
    self, ConversationContext, ConversationEnd, ConversationSettings, ConversationStart, Device, HistoryFile,
    PresentationChoice, StoredSession,
};
use tokio::sync::mpsc::UnboundedReceiver;

use self::start_settings::{StartDecision, StartSettings};
use crate::arguments::{OutputFormat, PromptArgs, RunArgs};
use crate::commands::sessions::stored_conversation::{self, StoredConversation};
use crate::exit::Exit;
use crate::exit::command_failure::CommandFailure;
use crate::input::output_schema;
use crate::input::prompt_source;
#[cfg(feature = "compat")]
use crate::output::codex::CodexOutput;
use crate::output::follow::{Task, User, follow};
#[cfg(feature = "compat")]
use crate::output::last_message;

/// Runs the task.
///
/// Every outcome other than success is a failure.
pub(crate) async fn run(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    args.conversation.refuse()?;
    let transcript = RunSurface::Transcript;
    box_future(|| on_surface(transcript, args, SurfaceStart::default(), process_env)).await?;
    Ok(Exit::Done)
}

/// Runs conversations in the terminal, one session after another.
pub(crate) async fn chat(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    terminal::require(process_env, (&args.conversation).into())?;
    let (mut args, mut beginning) = (args, SurfaceStart::default());
    loop {
        let conversation = RunSurface::Conversation;
        let end = box_future(|| on_surface(conversation, args.clone(), beginning, process_env)).await?;
        let (next, device) = match end {
            SurfaceEnd::NotStarted | SurfaceEnd::Task => return Ok(Exit::Done),
            SurfaceEnd::Conversation(left) => *left,
        };
        args.prompt = PromptArgs::default();
        beginning = SurfaceStart { device: Some(device), ..SurfaceStart::default() };
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
                let rewound = stored_conversation::rewind(&id, turns, forced, process_env).await;
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
struct SurfaceStart {
    /// Settings of the previous session.
    settings: Option<ConversationSettings>,
    /// Report of a rewind of the session.
    notes: Vec<String>,
    /// Input that the user may edit.
    draft: Option<String>,
    /// The terminal, in the modes of a conversation.
    device: Option<Device>,
}

impl SurfaceStart {
    /// Returns whether the command line is about this session, and not about an earlier one of the same conversation.
    fn is_first(&self) -> bool {
        self.device.is_none()
    }

    /// Applies the settings of the previous session. They are remembered like given flags.
    fn apply(&self, ResolvedSession { spec, remembered, .. }: &mut ResolvedSession) {
        let Some(ConversationSettings { model, effort, mode }) = &self.settings else { return };
        // A script answers for any model name.
        if spec.model.script.is_none() {
            spec.model.name = Some(model.clone());
        }
        spec.model.reasoning_effort.clone_from(effort);
        spec.policy.mode = *mode;
        let RememberedSettings { flags, spec, .. } = remembered;
        flags.insert("mode".to_owned(), vec![mode.to_string()]);
        spec.given.policy.mode = Some(*mode);
        if let Some(effort) = effort {
            flags.insert("reasoning-effort".to_owned(), vec![effort.clone()]);
            spec.given.model.reasoning_effort = Some(effort.clone());
        }
    }
}

/// How a session ended.
#[derive(Debug)]
enum SurfaceEnd {
    /// The user declined to start it in this directory.
    NotStarted,
    Task,
    Conversation(Box<(ConversationEnd, Device)>),
}

/// Presentation of a session to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunSurface {
    /// One task, with all its events.
    Transcript,
    Conversation,
}

async fn on_surface(
    surface: RunSurface,
    args: RunArgs,
    beginning: SurfaceStart,
    process_env: &ProcessEnv,
) -> Result<SurfaceEnd, CommandFailure> {
    let selected = box_future(|| select(&args, process_env)).await?;
    // A session remembers its initial mode, and the record contains the current one.
    let has_settings = beginning.settings.is_some();
    let is_mode_given = has_settings || beginning.is_first() && args.policy.mode.is_some();
    let is_effort_given =
        has_settings || beginning.is_first() && args.session.given.contains_key("reasoning-effort");
    let settings =
        StartSettings { surface, args: &args, start: &beginning, selected: selected.as_ref(), is_mode_given };
    let (resolved, notices) = box_future(|| settings.resolve(None, &[], process_env)).await?;
    let ResolvedSession { mut spec, mut remembered, presentation, mut origins } = resolved;
    let conversation = args.conversation.clone().with_configuration(&presentation, &args.typed);
    // A resumed session may use another directory than the current one.
    let process_env = &process_env.clone().with_workspace(spec.environment.dir.as_deref());
    // Until the handlers are installed, a signal terminates the process, also while it reads standard input.
    EnvTarget::new(EnvironmentChoice::try_from(&spec)?, Confinement::from(&spec), process_env)?;
    let may_go_without = args.session.is_continuation() || surface == RunSurface::Conversation;
    let answers = match (&args.output_schema, surface) {
        (Some(_), RunSurface::Conversation) => {
            return Err(Failure::usage(
                "--output-schema is for `pintle run`: a conversation has no final response",
            )
            .into());
        }
        (Some(path), RunSurface::Transcript) => Some(output_schema::read(path)?),
        (None, _) => None,
    };
    check_last_message(&args)?;
    let needs_no_prompt = may_go_without && args.prompt.is_absent();
    let prompt = if needs_no_prompt { None } else { Some(prompt_source::read(&args.prompt)?) };
    let interrupts = Interrupts::listen()?;
    let host = Host::new(process_env.clone());
    let mut model = box_future(|| interrupts.race(host.choose_model(&spec))).await?;
    // Last, so that no failure leaves a worktree behind.
    let worktree = box_future(|| create_worktree(&mut spec, process_env)).await?;
    // In a hook of git, commands in the worktree would work on the repository of the hook.
    let has_worktree = worktree.is_some() || selected.as_ref().is_some_and(SelectedSession::has_worktree);
    let of_worktree = has_worktree.then(|| process_env.clone().without_repository());
    let process_env = of_worktree.as_ref().unwrap_or(process_env);
    // Later, the terminal is in the modes of the conversation, and untrusted parts are left out without a question.
    if surface == RunSurface::Conversation && beginning.is_first() {
        let ask = || interrupts.race(settings.ask_about_trust(&spec, &notices, process_env));
        let decision = box_future(ask).await;
        match decision {
            Ok(StartDecision::Unchanged) => {}
            Ok(StartDecision::Changed(changed, chosen)) => {
                let ResolvedSession { spec: new, remembered: stored, origins: changed, .. } = *changed;
                (spec, remembered, origins, model) = (new, stored, changed, chosen);
            }
            Ok(StartDecision::Quit) => {
                remove_worktree(worktree.as_ref(), process_env).await?;
                return Ok(SurfaceEnd::NotStarted);
            }
            Err(failure) => {
                // The first failure is the one to report.
                let _ = remove_worktree(worktree.as_ref(), process_env).await;
                return Err(failure.into());
            }
        }
    }
    let style = console::style(process_env);
    let (prompter, questions) = match surface {
        RunSurface::Transcript => {
            let waits = spec.policy.wait_approval;
            (Prompter::from_process(style, Some(process_env.principal()), waits), None)
        }
        RunSurface::Conversation => {
            let (prompter, questions) = Prompter::in_conversation(Some(process_env.principal()));
            (prompter, Some(questions))
        }
    };
    let request = OpenRequest {
        remembered,
        selected,
        worktree,
        model: Some(model),
        is_mode_given,
        is_effort_given,
        must_be_stored: false,
        ..OpenRequest::from(spec)
    };
    let mut of_session = Surface::new(Arc::new(prompter.clone()));
    of_session.can_switch_to_plan = surface == RunSurface::Conversation;
    of_session.interrupted = Some(Box::pin(interrupts.first_signal()));
    of_session.check_environment = Some(Box::new(|environment: &EnvSession| {
        interrupts.kill_commands_of(environment);
        Ok(())
    }));
    let host = Host::new(process_env.clone());
    let opened = host.open(request, of_session).await;
    let opened = opened.map_err(|failure| interrupts.reclassify(failure))?;
    // A worktree is found through its session.
    let is_new = opened.is_stored && opened.is_new && !has_worktree;
    let new = is_new.then(|| opened.session.id().clone());
    let OpenSession { session, environment, policy, servers, model, spec, .. } = opened;
    let run = SessionRun {
        args: &args,
        presentation: (&conversation).into(),
        beginning,
        prompt,
        answers,
        prompter,
        questions,
        session: session.into_session(),
        policy: &policy,
        servers: servers.clone(),
        model: &model,
        spec: &spec,
        offered: opened.offered,
        effort: opened.effort,
        limits: opened.limits,
        limit_sources: opened.limit_sources.with_origins(origins),
        is_stored: opened.is_stored,
        is_resumed: opened.is_resumed,
    };
    let result = box_future(|| run.execute(&environment, process_env, &interrupts)).await;
    if result.is_err() {
        servers.close().await;
    }
    // The session closes the environment itself, except after some failures.
    let closed = environment.close().await;
    if is_unused(&result, new.as_ref()) {
        delete_unused(new.as_ref(), process_env).await;
    }
    let result = result.and_then(|ended| closed.map(|()| ended).map_err(CommandFailure::from));
    result.map_err(|failure| failure.map(|failure| interrupts.reclassify(failure)))
}

/// Returns the session that the flags name; `None` for a new one.
pub(crate) async fn select(
    args: &RunArgs,
    process_env: &ProcessEnv,
) -> Result<Option<SelectedSession>, Failure> {
    let choice = SessionChoice::from(&args.session);
    let environment = EnvironmentChoice::from(&args.environment);
    sessions::select(&choice, &environment, args.grant.is_some(), process_env).await
}

/// Returns whether a new session may have ended without a message, and the next session does not start from it.
fn is_unused(result: &Result<SurfaceEnd, CommandFailure>, session: Option<&SessionId>) -> bool {
    match result {
        Ok(SurfaceEnd::Task) => false,
        Ok(SurfaceEnd::Conversation(left)) => match &left.0 {
            ConversationEnd::Fork { id, .. } | ConversationEnd::Rewind { id, .. } => Some(id) != session,
            ConversationEnd::Leave | ConversationEnd::New(_) | ConversationEnd::Resume(_) => true,
        },
        Ok(SurfaceEnd::NotStarted) | Err(_) => true,
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
async fn create_worktree(
    spec: &mut SessionSpec,
    process_env: &ProcessEnv,
) -> Result<Option<Worktree>, Failure> {
    let Some(base) = spec.persistence.worktree else { return Ok(None) };
    let EnvironmentChoice { spec: environment, directory } = EnvironmentChoice::try_from(&*spec)?;
    if environment != EnvSpec::Local {
        return Err(Failure::usage("--worktree works only with --env local"));
    }
    let directory = process_env.directory(directory.as_deref())?;
    let state = Sessions::directory(process_env)?;
    let (worktree, inside) = Worktree::create(&directory, base, &state, process_env).await?;
    console::notice(&format!(
        "working in {}; `pintle worktree merge {}` merges the changes",
        inside.display(),
        worktree.session
    ));
    spec.environment.dir = Some(inside);
    Ok(Some(worktree))
}

/// Open session with its task or conversation.
struct SessionRun<'a> {
    args: &'a RunArgs,
    presentation: PresentationChoice,
    beginning: SurfaceStart,
    prompt: Option<String>,
    /// Schema of the final response.
    answers: Option<AnswerSchema>,
    prompter: Prompter,
    /// Questions of a conversation that belong to no call.
    questions: Option<UnboundedReceiver<Question>>,
    session: Session,
    policy: &'a Policy,
    servers: SessionServers,
    model: &'a Model,
    spec: &'a SessionSpec,
    offered: ToolList,
    effort: Option<String>,
    limits: TurnLimits,
    limit_sources: pintle_host::limit_sources::LimitSources,
    is_stored: bool,
    is_resumed: bool,
}

impl SessionRun<'_> {
    async fn execute(
        mut self,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
        interrupts: &Interrupts,
    ) -> Result<SurfaceEnd, CommandFailure> {
        let unfinished = self.session.resumed();
        match self.questions.take() {
            Some(questions) => {
                box_future(|| self.converse(questions, unfinished, env_session, process_env, interrupts))
                    .await
            }
            None => box_future(|| self.run_task(unfinished, env_session, process_env, interrupts)).await,
        }
    }

    async fn converse(
        self,
        questions: UnboundedReceiver<Question>,
        unfinished: Option<Run>,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
        interrupts: &Interrupts,
    ) -> Result<SurfaceEnd, CommandFailure> {
        let Self { presentation, beginning, prompt, session, policy, servers, model, .. } = self;
        let Self { spec, offered, effort, is_stored, .. } = self;
        let SurfaceStart { notes, draft, device, .. } = beginning;
        let environment = env_session.environment();
        let directory = environment.working_directory().to_path_buf();
        let name = EnvironmentChoice::try_from(spec)?.spec.to_string();
        let stored: Option<Arc<dyn StoredSession>> = match is_stored {
            true => Some(Arc::new(
                StoredConversation::open(session.id().clone(), env_session, process_env).await?,
            )),
            false => None,
        };
        let history = is_stored
            .then(|| HistoryFile::locate(&name, &directory.to_string_lossy(), process_env))
            .flatten();
        let begun = ConversationStart {
            presentation,
            session,
            prompt,
            unfinished,
            is_stored,
            effort,
            notes,
            draft,
            history,
            device,
        };
        let surroundings = ConversationContext {
            model,
            policy,
            directory: &directory,
            environment: format!("{name}, {}", env_session.sandbox().recorded_name()),
            tools: Arc::clone(&environment),
            guard: env_session.guarded_watch(),
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
        let left = box_future(|| terminal::converse(begun, surroundings, process_env, interrupts)).await?;
        servers.close().await;
        if interrupts.is_interrupted() {
            return Err(Failure::silent(FailureKind::Interrupted).into());
        }
        Ok(SurfaceEnd::Conversation(Box::new(left)))
    }

    async fn run_task(
        self,
        unfinished: Option<Run>,
        env_session: &EnvSession,
        process_env: &ProcessEnv,
        interrupts: &Interrupts,
    ) -> Result<SurfaceEnd, CommandFailure> {
        let Self { args, prompt, answers, prompter, session, servers, model, .. } = self;
        let Self { limits, limit_sources, is_stored, is_resumed, .. } = self;
        let style = console::style(process_env);
        let environment = env_session.environment();
        let directory = environment.working_directory().to_path_buf();
        let prompt = with_images(prompt, &args.image, environment.as_ref()).await?;
        if prompt.is_none() && unfinished.is_none() {
            let id = session.id().clone();
            session.detach().await;
            return Err(
                Failure::usage(format!("session {id} has no unfinished run: expected a prompt")).into()
            );
        }
        let mut view = view(args, style);
        let mut console = Console::new();

        let sees_text = view.is_text() && !args.quiet && style.terminal;
        if is_stored {
            prompter.keep_requests();
        }
        let user = prompter.is_attended().then_some(User { prompter: &prompter, sees_text });
        let task = Task {
            prompt,
            unfinished,
            is_stored,
            is_resumed,
            model,
            directory: &directory,
            user,
            approvals: Some(&prompter),
            limits,
            answers,
        };
        let report = box_future(|| follow(session, task, &mut view, &mut console, interrupts)).await?;
        servers.close().await;
        // Any other failure takes precedence over denied calls.
        let unwritten = write_last_message(args, &report.outcome.text, interrupts).await.err();
        // Without a user, the loss of the sandbox has interrupted the run.
        let lost = env_session.sandbox_failure().filter(|_| !prompter.is_attended());
        let failure = lost
            .or_else(|| explain::outcome(&report.outcome, &model.route, &limit_sources, report.reached))
            .or_else(|| report.failure())
            .or(unwritten)
            .or_else(|| prompter.failure().filter(|_| view.tells_denials()));
        let failure = failure.map(|failure| interrupts.reclassify(failure));
        console.write(&view.footer(&report.footer(failure.as_ref()))?).await?;
        if report.outcome.status == OutcomeStatus::AwaitingInput && !prompter.is_attended() {
            console::notice("the model asked a question, but no terminal is available to answer it");
        }
        failure.map_or(Ok(SurfaceEnd::Task), |failure| Err(CommandFailure::already_in_output(failure)))
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
