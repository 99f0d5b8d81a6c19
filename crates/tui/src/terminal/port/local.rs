//! A session in this process.

mod outbox;
mod reports;
mod switching;

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _};
use pintle_agent::{
    EventKind, Run, Session, SessionError, SessionEvent, SessionHandle, SessionState, TreeEvents,
};
use pintle_env::{EntryKind, ExecRequest, ExecutionEnvironment, OutputLimits, WalkRequest};
use pintle_governance::{APPROVAL_SOURCE, Mode, Policy};
use pintle_host::cost::Costs;
use pintle_host::environment::GuardedWatch;
use pintle_host::explain;
use pintle_host::failure::Failure;
use pintle_host::model::{Model, ResolvedModel};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::sanitize;
use pintle_host::servers::SessionServers;
use pintle_host::user_commands::discover;
use pintle_llm::{ReasoningEffort, ToolList};
use pintle_tools::gate::Permission;
use pintle_tools::pipeline::plain_text;
use tokio::sync::mpsc;

use self::outbox::Outbox;
use super::{
    Capabilities, Operation, PortCommand, PortEvent, PortReply, PortResult, PortState, SessionPort,
    carried_out,
};
use crate::approve::Question;
use crate::render::{Face, StyledLine};
use crate::reports::labelled;
use crate::terminal::approvals::RequestDecision;
use crate::terminal::images::OutgoingMessage;
use crate::terminal::memory::{self, MemoryFile};
use crate::terminal::stored_session::StoredSession;

/// Operations of a session in this process. It ends with the conversation.
pub(super) const CAPABILITIES: Capabilities =
    Capabilities { supported: &Operation::ALL, refusal: "is not available", outlives_terminal: false };

/// Label of notices of this process.
const NOTICE: &str = "pintle";

/// Maximum number of files offered for completion.
const MAX_FILES: usize = 20_000;

/// Time limit of a command of the user.
const COMMAND_TIME: Duration = Duration::from_secs(600);

/// Maximum size of its output that is kept, in bytes from the end.
const COMMAND_OUTPUT: usize = 32 << 10;

/// Time limit for listing files.
const LIST_TIME: Duration = Duration::from_secs(2);

/// Function that returns the configuration for new sessions and its sources, as a table.
pub type ReportConfiguration = fn(ProcessEnv) -> BoxFuture<'static, Result<String, Failure>>;

/// Resources of a conversation besides its session.
#[derive(Debug)]
pub struct ConversationContext<'a> {
    /// Model of the session.
    pub model: &'a Model,
    /// Policy of the session.
    pub policy: &'a Policy,
    /// Working directory of the tools.
    pub directory: &'a Path,
    /// Environment and sandbox, as shown to the user.
    pub environment: String,
    /// Environment of the tools.
    pub tools: Arc<dyn ExecutionEnvironment>,
    /// Guard of repositories and protected files, for commands of the user.
    pub guard: GuardedWatch,
    /// Tools that are offered to the model.
    pub offered: ToolList,
    /// The session in the store, if it is kept.
    pub stored: Option<Arc<dyn StoredSession>>,
    /// Function that reports the configuration.
    pub report_configuration: ReportConfiguration,
    /// MCP servers.
    pub servers: SessionServers,
    /// Environment of the process.
    pub process_env: &'a ProcessEnv,
    /// Whether commands run in a sandbox.
    pub has_sandbox: bool,
    /// Notices of other parts of the process.
    pub notices: mpsc::UnboundedReceiver<String>,
    /// Questions that belong to no call.
    pub questions: mpsc::UnboundedReceiver<Question>,
}

/// Session in this process, and its resources.
pub(in crate::terminal) struct LocalPort<'a> {
    session: Session,
    handle: SessionHandle,
    resources: ConversationContext<'a>,
    outbox: Outbox,
    events: TreeEvents,
    /// Events to return before those of the session.
    unread: VecDeque<PortEvent>,
    cost: Costs,
    /// Model of the next request.
    model: String,
    effort: Option<String>,
    /// Whether the session can be resumed after this process exits.
    is_stored: bool,
    /// Whether the events of the record have been read, so that events of the session are new.
    is_caught_up: bool,
    /// Newest failure of the session.
    failure: Option<Failure>,
}

impl<'a> LocalPort<'a> {
    /// Creates the port of a session, which may have a turn that an earlier process left unfinished.
    pub(in crate::terminal) fn new(
        session: Session,
        resources: ConversationContext<'a>,
        unfinished: Option<Run>,
        effort: Option<String>,
        is_stored: bool,
    ) -> Self {
        let events = session.tree_events();
        // Events report its result.
        if let Some(run) = unfinished {
            run.detach();
        }
        let handle = session.handle();
        Self {
            outbox: Outbox::new(handle.clone(), Arc::clone(&resources.tools)),
            events,
            unread: VecDeque::new(),
            cost: Costs::new(resources.model.catalog_entry()),
            model: resources.model.route.model.clone(),
            effort,
            is_stored,
            is_caught_up: session.first_new_event() == 0,
            failure: None,
            session,
            handle,
            resources,
        }
    }

    /// Returns the model, if it is known to accept no images.
    fn blind_model(&self) -> Option<String> {
        let known = self.resources.model.find(&self.model)?;
        (!known.supports_vision).then(|| self.model.clone())
    }

    /// Processes an event of the session or of a subagent.
    fn receive(&mut self, event: SessionEvent) {
        let model = self.resources.model;
        self.cost.add(&event, model.find(&self.model), model.catalog());
        if event.depth == 0 {
            self.is_caught_up = event.seq >= self.session.first_new_event();
        }
        if !self.is_caught_up {
            self.unread.push_back(PortEvent::Earlier(Box::new(event)));
            return;
        }
        if let EventKind::Error { error } = &event.kind
            && event.depth == 0
        {
            let failure = explain::model_error(error, &model.route);
            self.unread.push_back(PortEvent::Failed(failure.message()));
            self.failure = Some(failure);
        }
        if event.depth == 0
            && let EventKind::ToolCallEnd { .. } | EventKind::ProcessingEnd { .. } = event.kind
        {
            // Received events are in the history or in the record.
            self.session.forget_events(event.seq);
        }
        self.unread.push_back(PortEvent::Session(Box::new(event)));
    }

    fn set_model(&mut self, name: &str) -> PortResult {
        let ResolvedModel { name, warning } = match self.resources.model.resolve(name) {
            Ok(resolved) => resolved,
            // A hint would be truncated at the end of its line.
            Err(problem) => return Ok(PortReply::Lines(vec![labelled("model", problem)])),
        };
        self.handle.set_model(&name).map_err(|error| error.to_string())?;
        let window = self.resources.model.find(&name).map(|known| known.context_window);
        let set = format!("{name}, from the next request on");
        let lines = [set].into_iter().chain(warning).map(|text| labelled("model", text)).collect();
        self.model = name;
        Ok(PortReply::ModelSet { window, lines })
    }

    fn set_effort(&mut self, effort: String) -> PortResult {
        let set = Some(ReasoningEffort::from(effort.clone()));
        self.handle.set_reasoning_effort(set).map_err(|error| error.to_string())?;
        let line = labelled("effort", format!("{effort}, from the next request on"));
        self.effort = Some(effort);
        Ok(PortReply::Lines(vec![line]))
    }

    fn set_mode(&self, mode: &str) -> BoxFuture<'static, PortResult> {
        let Ok(mode) = mode.parse::<Mode>() else {
            return carried_out(Err("expected plan, ask, edit or auto".to_owned()));
        };
        if mode == Mode::Auto && !self.resources.has_sandbox {
            let problem = "mode auto needs a sandbox, and no sandbox is available";
            return carried_out(Err(problem.to_owned()));
        }
        let policy = self.resources.policy.clone();
        Box::pin(async move {
            policy.set_mode(mode).await.map_err(|error| error.to_string())?;
            Ok(PortReply::Lines(vec![labelled("mode", mode.to_string())]))
        })
    }

    /// Requests a plan. Nothing changes until the user has accepted it.
    fn plan(&self, task: Option<OutgoingMessage>) -> BoxFuture<'static, PortResult> {
        let (policy, outbox, blind) =
            (self.resources.policy.clone(), self.outbox.clone(), self.blind_model());
        Box::pin(async move {
            policy.set_mode(Mode::Plan).await.map_err(|error| error.to_string())?;
            match task {
                Some(task) => outbox.say(task, blind).await,
                None => Ok(PortReply::Lines(vec![labelled("mode", "plan: say what to plan")])),
            }
        })
    }

    /// Runs a command of the user in the environment of the tools. It passes no gate, but has the guard of repositories.
    fn run_shell(&self, command: String) -> BoxFuture<'static, PortResult> {
        let (environment, guard) = (Arc::clone(&self.resources.tools), self.resources.guard.clone());
        Box::pin(async move {
            let request = ExecRequest::new(&command).with_timeout(COMMAND_TIME);
            let (result, report) = guard.run_user_command(environment.exec_command(request)).await;
            let (ended, output) = match result {
                Ok(result) => {
                    let output = plain_text(result.output, OutputLimits::default()).await;
                    let output = output.tail_text_lossy(COMMAND_OUTPUT).unwrap_or_default();
                    let ended = match (result.timed_out, result.exit_code) {
                        (true, _) => "timed out".to_owned(),
                        (false, code) => format!("exit {code}"),
                    };
                    (ended, output)
                }
                Err(error) => ("failed".to_owned(), error.to_string()),
            };
            Ok(PortReply::Ran { command, ended, output, report })
        })
    }

    /// Adds a line to a file of instructions.
    fn add_instruction(&self, file: MemoryFile, line: String) -> BoxFuture<'static, PortResult> {
        let environment = Arc::clone(&self.resources.tools);
        let process_env = self.resources.process_env.clone();
        Box::pin(async move {
            let name = memory::add(file, &line, environment.as_ref(), &process_env).await?;
            let added = format!("added to {}, for sessions to come", sanitize(&name));
            Ok(PortReply::Lines(vec![StyledLine::new("memory: ", Face::BOLD).and(added, Face::PLAIN)]))
        })
    }

    fn find_user_commands(&self) -> BoxFuture<'static, PortResult> {
        let environment = Arc::clone(&self.resources.tools);
        let process_env = self.resources.process_env.clone();
        Box::pin(
            async move { Ok(PortReply::UserCommands(discover(environment.as_ref(), &process_env).await)) },
        )
    }

    fn refresh_servers(&self) -> BoxFuture<'static, PortResult> {
        let (servers, handle) = (self.resources.servers.clone(), self.handle.clone());
        Box::pin(async move {
            servers.clone().refresh(handle).await;
            Ok(PortReply::Prompts(servers.prompts()))
        })
    }
}

#[async_trait]
impl SessionPort for LocalPort<'_> {
    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> PortState {
        let queued = self.handle.queued();
        PortState {
            approvals: self.handle.approvals(),
            queued: queued.steering.into_iter().chain(queued.follow_ups).collect(),
            cost: self.cost.total(),
            model: self.model.clone(),
            effort: self.effort.clone(),
            mode: self.resources.policy.mode().to_string(),
            is_processing: self.session.state() == SessionState::Processing,
        }
    }

    fn command(&mut self, command: PortCommand) -> BoxFuture<'static, PortResult> {
        match command {
            PortCommand::Submit(said) => Box::pin(self.outbox.clone().say(said, self.blind_model())),
            PortCommand::FollowUp(said) => Box::pin(self.outbox.clone().follow_up(said, self.blind_model())),
            PortCommand::Plan(task) => self.plan(task),
            PortCommand::Decide(decided) => {
                let (handle, policy) = (self.handle.clone(), self.resources.policy.clone());
                Box::pin(async move {
                    decide(&handle, &policy, decided).await?;
                    Ok(PortReply::Done)
                })
            }
            PortCommand::Interrupt => carried_out(into_port_result(self.handle.stop_turn())),
            PortCommand::Compact => carried_out(into_port_result(self.handle.compact())),
            PortCommand::SetModel(name) => carried_out(self.set_model(&name)),
            PortCommand::SetMode(mode) => self.set_mode(&mode),
            PortCommand::SetEffort(effort) => carried_out(self.set_effort(effort)),
            PortCommand::RunShell(command) => self.run_shell(command),
            PortCommand::ListFiles => {
                let environment = Arc::clone(&self.resources.tools);
                Box::pin(async move { Ok(PortReply::Files(list_files(environment.as_ref()).await)) })
            }
            PortCommand::AddInstruction(file, line) => self.add_instruction(file, line),
            PortCommand::FindUserCommands => self.find_user_commands(),
            PortCommand::ListPrompts => carried_out(Ok(PortReply::Prompts(self.resources.servers.prompts()))),
            PortCommand::RefreshServers => self.refresh_servers(),
            PortCommand::GetPrompt(called) => {
                let servers = self.resources.servers.clone();
                Box::pin(async move { servers.prompt(&called).await.map(PortReply::Prompt) })
            }
            PortCommand::ReadHistory => carried_out(Ok(PortReply::History(self.session.history()))),
            PortCommand::Report(report) => self.report(report),
            PortCommand::Export(name) => self.export(name),
            PortCommand::Switch(switch) => self.switch(switch),
        }
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { session, handle, resources, outbox, events, failure, is_stored, .. } = *self;
        // Later notices of the process are not for the conversation.
        drop((handle, resources, outbox, events));
        let failure = failure.filter(|_| session.state() == SessionState::Closed);
        if is_stored {
            // Fails only if the session has ended.
            let _ = session.handle().stop_turn();
            session.detach().await;
        } else {
            session.close().await;
        }
        // An event has reported the failure.
        failure.map_or(Ok(()), |failure| Err(Failure::silent(failure.kind())))
    }
}

impl Stream for LocalPort<'_> {
    type Item = PortEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PortEvent>> {
        let port = self.get_mut();
        if let Some(event) = port.unread.pop_front() {
            return Poll::Ready(Some(event));
        }
        if let Poll::Ready(Some(text)) = port.resources.notices.poll_recv(context) {
            return Poll::Ready(Some(PortEvent::Note { label: NOTICE, text }));
        }
        if let Poll::Ready(Some(question)) = port.resources.questions.poll_recv(context) {
            return Poll::Ready(Some(PortEvent::Question(question)));
        }
        let Some(event) = ready!(port.events.poll_next_unpin(context)) else { return Poll::Ready(None) };
        port.receive(event);
        Poll::Ready(port.unread.pop_front())
    }
}

fn into_port_result(result: Result<(), SessionError>) -> PortResult {
    result.map(|()| PortReply::Done).map_err(|error| error.to_string())
}

/// Adds the rules of a decision, and decides.
async fn decide(handle: &SessionHandle, policy: &Policy, decided: RequestDecision) -> Result<(), String> {
    let RequestDecision { request, decision, rules } = decided;
    for rule in &rules {
        let source = format!("{APPROVAL_SOURCE}{}", request.call_id);
        let added = policy.add_rule(Permission::Allow, rule, source).await;
        added.map_err(|error| error.to_string())?;
    }
    let of_call = match &request.origin {
        Some(origin) => handle.of_session(&origin.session_id),
        None => Some(handle.clone()),
    };
    let of_call = of_call.ok_or("the subagent that made the call has ended")?;
    of_call.decide(&request.call_id, decision).map_err(|error| error.to_string())
}

/// Lists the files for completion, as far as they are found in a short time.
async fn list_files(environment: &dyn ExecutionEnvironment) -> Vec<String> {
    let request = WalkRequest::new(".").with_max_entries(MAX_FILES).with_time_limit(LIST_TIME);
    // If files cannot be listed, none are offered.
    let Ok(found) = environment.walk(&request).await else { return Vec::new() };
    let files = found.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    files.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect()
}
