//! The conversation: messages of the host start runs, and its requests are served meanwhile.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use pintle_agent::{Outcome, OutcomeStatus, Run, RunError, SessionEvent};
use pintle_compat::claude::{
    ControlEvent, HostRequest, InitializeAnswer, InitializeRequest, McpServerStatus, RewindAnswer,
    RuleBehavior, StreamOptions, ToolRule, UserLine,
};
use pintle_governance::APPROVAL_SOURCE;
use pintle_host::answered_run::REPAIRS;
use pintle_host::attendant::ClientAttendant;
use pintle_host::environment::EnvSession;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::model::Model;
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sessions::SelectedSession;
use pintle_host::{Host, OpenRequest, OpenSession, ResolvedSession, SessionSpec, Surface, toolset};
use pintle_llm::{AnswerSchema, Verdict};
use pintle_tools::gate::Permission;
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::channel::HostChannel;
use super::hooks::HostHooks;
use super::live::OpenConversation;
use super::permissions::HostPermissions;
use super::rules::own_rules;
use super::servers;
use super::tools::HostTool;
use crate::arguments::command_line::own_mode;

/// State of the conversation.
pub(super) struct ClaudeConversation<'a> {
    options: StreamOptions,
    resolved: ResolvedSession,
    selected: Option<SelectedSession>,
    model: &'a Arc<Model>,
    channel: Arc<HostChannel>,
    events: UnboundedReceiver<ControlEvent>,
    interrupts: &'a Interrupts,
    process_env: &'a ProcessEnv,
    permissions: Arc<HostPermissions>,
    /// Handshake, once the host has sent it.
    initialize: Option<InitializeRequest>,
    /// Model that the host has set.
    chosen: Option<String>,
    /// Messages that arrived during a run.
    queue: VecDeque<UserLine>,
    /// Text that joins the next message.
    joined: Vec<String>,
    live: Option<OpenConversation<'a>>,
    is_input_at_end: bool,
}

impl<'a> ClaudeConversation<'a> {
    #[expect(clippy::too_many_arguments, reason = "each is a part of the state")]
    pub(super) fn new(
        options: StreamOptions,
        resolved: ResolvedSession,
        selected: Option<SelectedSession>,
        model: &'a Arc<Model>,
        channel: Arc<HostChannel>,
        events: UnboundedReceiver<ControlEvent>,
        interrupts: &'a Interrupts,
        process_env: &'a ProcessEnv,
    ) -> Self {
        let mode = options.permission_mode.or(options.settings.mode).unwrap_or_default();
        let permissions =
            HostPermissions::new(Arc::clone(&channel), mode, options.asks_host, options.may_bypass);
        Self {
            options,
            resolved,
            selected,
            model,
            channel,
            events,
            interrupts,
            process_env,
            permissions: Arc::new(permissions),
            initialize: None,
            chosen: None,
            queue: VecDeque::new(),
            joined: Vec::new(),
            live: None,
            is_input_at_end: false,
        }
    }

    /// Converses until the input ends.
    pub(super) async fn run(&mut self) -> Result<(), Failure> {
        loop {
            if let Some(message) = self.next_message() {
                self.turn(message).await?;
            } else if self.is_input_at_end {
                return Ok(());
            } else {
                let event = tokio::select! {
                    biased;
                    failure = wait_for_stop(self.interrupts, &self.channel) => return Err(failure),
                    event = self.events.recv() => event,
                };
                let mut live = self.live.take();
                let taken = self.take(event, live.as_mut()).await;
                self.live = live;
                taken?;
            }
        }
    }

    /// Closes the session. After a failure, its run is stopped first.
    pub(super) async fn close(&mut self, has_failed: bool) -> Result<(), Failure> {
        let Some(live) = self.live.take() else { return Ok(()) };
        if has_failed {
            // Fails only if the session has ended.
            let _ = live.session.handle().close();
        }
        live.close().await
    }

    fn next_message(&mut self) -> Option<UserLine> {
        if self.options.awaits_initialize && self.initialize.is_none() {
            return None;
        }
        while let Some(line) = self.queue.pop_front() {
            if line.asks_model {
                return Some(line);
            }
            self.joined.push(line.message.text);
        }
        None
    }

    async fn turn(&mut self, line: UserLine) -> Result<(), Failure> {
        let mut live = match self.live.take() {
            Some(live) => live,
            None => self.open().await?,
        };
        live.info.permission_mode = self.permissions.mode().to_string();
        self.channel.print(&live.formatter.init(&live.info));
        if self.options.replay_user_messages {
            self.channel.print(&live.formatter.replay(&line.content, line.uuid.as_deref()));
        }
        let followed = self.follow(&mut live, line).await;
        self.live = Some(live);
        followed
    }

    /// Runs a message, and the repairs of its answer.
    async fn follow(&mut self, live: &mut OpenConversation<'a>, line: UserLine) -> Result<(), Failure> {
        let mut message = line.message;
        let mut schema = self.schema()?;
        let mut texts: Vec<String> = std::mem::take(&mut self.joined);
        texts.push(message.text);
        texts.extend(schema.as_ref().map(AnswerSchema::instructions));
        message.text = texts.join("\n\n");
        let mut run = live.session.submit(message);
        let mut earlier: Option<Outcome> = None;
        loop {
            let ended = self.drive(live, run).await?;
            let ended = match &earlier {
                Some(earlier) => ended.continuing(earlier),
                None => ended,
            };
            let has_answer = matches!(ended.status, OutcomeStatus::Completed | OutcomeStatus::AwaitingInput);
            let verdict = schema.as_mut().filter(|_| has_answer).map(|schema| schema.check(&ended.text));
            let mut end = live.end(&ended);
            let failure;
            match &verdict {
                Some(Verdict::AskAgain(message)) => {
                    run = live.session.submit(message);
                    earlier = Some(ended);
                    continue;
                }
                Some(Verdict::Accept(value)) => end.structured_output = Some(value),
                Some(Verdict::Fail(unmatched)) => {
                    failure = unmatched.to_string();
                    end.structured_output_failure = Some(&failure);
                }
                None => {}
            }
            live.formatter.end(&end).iter().for_each(|line| self.channel.print(line));
            return Ok(());
        }
    }

    fn schema(&self) -> Result<Option<AnswerSchema>, Failure> {
        let of_handshake = || self.initialize.as_ref().and_then(|initialize| initialize.json_schema.clone());
        let schema = self.options.json_schema.clone().or_else(of_handshake);
        let schema = schema.map(|schema| AnswerSchema::new(schema, REPAIRS)).transpose();
        schema.or_usage("invalid answer schema")
    }

    /// Writes the events of a run and serves requests of the host meanwhile.
    async fn drive(&mut self, live: &mut OpenConversation<'a>, run: Run) -> Result<Outcome, Failure> {
        let channel = Arc::clone(&self.channel);
        let mut run = std::pin::pin!(IntoFuture::into_future(run));
        let outcome = loop {
            tokio::select! {
                biased;
                failure = wait_for_stop(self.interrupts, &channel) => return Err(failure),
                Some(event) = next_event(live, &channel) => live.show(&event, &channel),
                outcome = &mut run => break outcome,
                event = self.events.recv(), if !self.is_input_at_end => self.take(event, Some(live)).await?,
            }
        };
        live.show_all(&channel);
        outcome.or_else(RunError::into_outcome).or_failed("the session ended unexpectedly")
    }

    /// Handles an event of the host.
    ///
    /// A handshake that cannot be accepted is a failure: without it, hooks and rules would not apply.
    async fn take(
        &mut self,
        event: Option<ControlEvent>,
        live: Option<&mut OpenConversation<'a>>,
    ) -> Result<(), Failure> {
        match event {
            None => self.is_input_at_end = true,
            Some(ControlEvent::User(line)) => self.queue.push_back(*line),
            Some(ControlEvent::HandshakeRefused { reason }) => {
                return Err(Failure::usage(format!("the handshake is refused: {reason}")));
            }
            Some(ControlEvent::Request { id, request }) => {
                let is_handshake = matches!(request, HostRequest::Initialize(_));
                let answer = self.serve(request, live).await;
                let refused = answer.as_ref().err().filter(|_| is_handshake).cloned();
                self.channel.answer(&id, answer);
                if let Some(reason) = refused {
                    return Err(Failure::usage(format!("the handshake is refused: {reason}")));
                }
            }
            // Answers went to the requests, and a request that is cancelled was answered already.
            Some(_) => {}
        }
        Ok(())
    }

    async fn serve(
        &mut self,
        request: HostRequest,
        live: Option<&mut OpenConversation<'a>>,
    ) -> Result<Value, String> {
        match request {
            HostRequest::Initialize(initialize) => self.initialize(*initialize, live.is_some()),
            HostRequest::Interrupt => {
                if let Some(live) = live {
                    live.session.handle().stop_turn().map_err(|error| error.to_string())?;
                }
                Ok(json!({"still_queued": []}))
            }
            HostRequest::SetModel(model) => {
                let model = match model {
                    // The session warns of an unknown model when it uses it.
                    Some(model) => self.model.resolve(&model)?.name,
                    None => self.model.route.model.clone(),
                };
                if let Some(live) = live {
                    live.set_model(&model)?;
                }
                self.chosen = Some(model);
                Ok(json!({}))
            }
            HostRequest::SetPermissionMode(mode) => {
                self.permissions.set_mode(mode).await?;
                Ok(json!({"mode": mode.as_str()}))
            }
            HostRequest::GetContextUsage => {
                let usage = live.and_then(|live| live.usage.clone());
                usage.map(|usage| usage.to_value()).ok_or_else(|| "no request was made yet".to_owned())
            }
            HostRequest::RewindFiles { .. } => {
                let error = "not supported here: `pintle sessions rewind` restores files".to_owned();
                Ok(RewindAnswer { error: Some(error), ..RewindAnswer::default() }.to_value())
            }
            HostRequest::McpStatus => {
                let servers = live.map(|live| live.info.mcp_servers.clone()).unwrap_or_default();
                let status = |server: &McpServerStatus| json!({"name": server.name, "status": server.status});
                Ok(json!({"mcpServers": servers.iter().map(status).collect::<Vec<_>>()}))
            }
            // Notifications of a server; lists of tools are read once.
            HostRequest::McpMessage { .. } => Ok(json!({})),
            HostRequest::SetThinkingTokens(_) | _ => Err("this request is not supported".to_owned()),
        }
    }

    fn initialize(&mut self, initialize: InitializeRequest, is_open: bool) -> Result<Value, String> {
        if is_open {
            return Err("it came after the first message".to_owned());
        }
        initialize.warnings.iter().for_each(|warning| console::notice(warning));
        for rule in deny_rules(&self.options, Some(&initialize)) {
            translate_rule(rule, RuleBehavior::Deny).map_err(|failure| failure.message())?;
        }
        let provider = self.model.route.provider.name();
        let models = self.model.catalog().list(Some(provider));
        let answer = InitializeAnswer {
            models: models.map(|model| (model.id.clone(), model.id.clone())).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            applied_disallowed_tools: initialize.disallowed_tools.is_some(),
            applied_settings: initialize.settings.is_some(),
            ..InitializeAnswer::default()
        };
        self.initialize = Some(initialize);
        self.schema().map_err(|failure| failure.message())?;
        Ok(answer.to_value())
    }

    /// Opens the session.
    async fn open(&mut self) -> Result<OpenConversation<'a>, Failure> {
        let initialize = self.initialize.clone().unwrap_or_default();
        if let Some(settings) = &initialize.settings {
            if let Some(mode) = settings.mode {
                self.permissions.set_mode(mode).await.map_err(Failure::usage)?;
            }
            self.chosen = self.chosen.take().or_else(|| settings.model.clone());
        }
        let ResolvedSession { mut spec, remembered, .. } = self.resolved.clone();
        self.add_rules(&mut spec, &initialize)?;
        let servers = servers::read_declared(&self.options, &mut spec, self.process_env)?;
        spec.policy.mode = own_mode(self.permissions.mode());
        self.add_instructions(&mut spec, &initialize)?;
        let approver = Arc::clone(&self.permissions);
        let attendant = ClientAttendant::with_approver(Some(self.process_env.principal()), approver);
        let mut surface = Surface::new(Arc::new(attendant));
        let statuses = self.add_host_parts(&mut surface, &initialize, &servers.in_host).await;
        surface.can_switch_to_plan = true;
        surface.servers = servers.started;
        let interrupts = self.interrupts;
        surface.interrupted = Some(Box::pin(interrupts.first_signal()));
        surface.check_environment = Some(Box::new(|environment: &EnvSession| {
            interrupts.kill_commands_of(environment);
            Ok(())
        }));
        let request = OpenRequest {
            remembered,
            selected: self.selected.take(),
            model: Some(Arc::clone(self.model)),
            is_mode_given: true,
            is_effort_given: self.options.effort.is_some(),
            must_be_stored: false,
            ..OpenRequest::from(spec)
        };
        let opened = Host::new(self.process_env.clone()).open(request, surface).await?;
        self.finish_opening(opened, &initialize, statuses).await
    }

    async fn finish_opening(
        &mut self,
        opened: OpenSession,
        initialize: &InitializeRequest,
        statuses: Vec<McpServerStatus>,
    ) -> Result<OpenConversation<'a>, Failure> {
        let policy = opened.policy.clone();
        self.permissions.attach(&policy, opened.session.handle());
        let forwards_text = initialize.forward_subagent_text;
        let mut live = OpenConversation::new(opened, self.model, &self.options, forwards_text, statuses);
        let mut prepared = Ok(());
        let settings = initialize.settings.iter().chain([&self.options.settings]);
        for rule in settings.flat_map(|settings| &settings.ask) {
            for own in translate_rule(rule, RuleBehavior::Ask).unwrap_or_default() {
                let added =
                    policy.add_rule(Permission::Ask, &own, format!("{APPROVAL_SOURCE}settings")).await;
                prepared = prepared.and(added.or_failed("cannot add a rule of the settings"));
            }
        }
        if let Some(model) = self.chosen.clone() {
            prepared = prepared.and(live.set_model(&model).map_err(Failure::failed));
        }
        if let Err(failure) = prepared {
            let _ = live.close().await;
            return Err(failure);
        }
        Ok(live)
    }

    /// Adds the rules of the host to the rules of the command line.
    fn add_rules(&self, spec: &mut SessionSpec, initialize: &InitializeRequest) -> Result<(), Failure> {
        for rule in deny_rules(&self.options, Some(initialize)) {
            spec.policy.deny.extend(translate_rule(rule, RuleBehavior::Deny)?);
        }
        let settings = || initialize.settings.iter().chain([&self.options.settings]);
        for rule in settings().flat_map(|settings| &settings.ask) {
            translate_rule(rule, RuleBehavior::Ask)?;
        }
        let allowed =
            self.options.allowed_tools.iter().chain(settings().flat_map(|settings| &settings.allow));
        for rule in allowed {
            match translate_rule(rule, RuleBehavior::Allow) {
                Ok(rules) => spec.policy.allow.extend(rules),
                // Such calls require approval.
                Err(failure) => console::notice(&failure.message()),
            }
        }
        if let Some(listed) = self.chosen_tools() {
            let others = toolset::all_names()?.into_iter().filter(|name| !listed.contains(name));
            spec.policy.deny.extend(others);
        }
        Ok(())
    }

    /// Returns the built-in tools that the host has chosen; `None` for all.
    fn chosen_tools(&self) -> Option<Vec<String>> {
        let names = self.options.tools.as_ref()?;
        Some(names.iter().flat_map(|name| pintle_compat::claude::own_tool_names(name)).collect())
    }

    /// Adds the system prompt of the host, and its choice of tools.
    fn add_instructions(
        &self,
        spec: &mut SessionSpec,
        initialize: &InitializeRequest,
    ) -> Result<(), Failure> {
        let options = &self.options;
        let file = options.system_prompt_file.as_deref();
        let of_file = file.map(|file| process_env::read_text("system prompt", file)).transpose()?;
        let base = initialize.system_prompt.clone().or_else(|| options.system_prompt.clone()).or(of_file);
        let appended = initialize.append_system_prompt.iter().chain(&options.append_system_prompt).cloned();
        let extra = appended.collect::<Vec<_>>().join("\n\n");
        spec.instructions.base = base;
        spec.instructions.extra = Some(extra).filter(|text| !text.is_empty());
        spec.tools.only = self.chosen_tools().map(BTreeSet::from_iter);
        Ok(())
    }

    /// Adds the tools and hooks of the host, and returns the status of its servers: the servers of the handshake, then the
    /// declared ones.
    async fn add_host_parts(
        &self,
        surface: &mut Surface<'_>,
        initialize: &InitializeRequest,
        declared: &[String],
    ) -> Vec<McpServerStatus> {
        let (mut statuses, mut servers) = (Vec::new(), initialize.sdk_mcp_servers.clone());
        for name in declared {
            if !servers.contains(name) {
                servers.push(name.clone());
            }
        }
        for server in &servers {
            let status = match HostTool::list(&self.channel, server).await {
                Ok(tools) => {
                    surface.tools.extend(tools);
                    "connected"
                }
                Err(reason) => {
                    console::notice(&format!("server `{server}` of the host is left out: {reason}"));
                    "failed"
                }
            };
            statuses.push(McpServerStatus { name: server.clone(), status: status.to_owned() });
        }
        if !initialize.hooks.is_empty() {
            surface.hooks.push(Arc::new(HostHooks {
                channel: Arc::clone(&self.channel),
                permissions: Arc::clone(&self.permissions),
                registered: initialize.hooks.clone(),
            }));
        }
        statuses
    }
}

/// Returns the next event once the host has read enough of the earlier events.
async fn next_event(live: &mut OpenConversation<'_>, channel: &HostChannel) -> Option<SessionEvent> {
    channel.wait_for_room().await;
    live.events.next().await
}

/// Completes when a signal arrives or the host stops reading.
async fn wait_for_stop(interrupts: &Interrupts, channel: &HostChannel) -> Failure {
    tokio::select! {
        () = interrupts.first_signal() => Failure::new(FailureKind::Interrupted, "interrupted"),
        () = channel.wait_for_close() => Failure::silent(FailureKind::Interrupted),
    }
}

/// Returns all rules that deny.
fn deny_rules<'r>(
    options: &'r StreamOptions,
    initialize: Option<&'r InitializeRequest>,
) -> impl Iterator<Item = &'r ToolRule> {
    let of_handshake = initialize.into_iter().flat_map(|initialize| {
        let settings = initialize.settings.iter().flat_map(|settings| &settings.deny);
        initialize.disallowed_tools.iter().flatten().chain(settings)
    });
    options.disallowed_tools.iter().chain(&options.settings.deny).chain(of_handshake)
}

/// Returns our equivalents of a host rule.
fn translate_rule(rule: &ToolRule, behavior: RuleBehavior) -> Result<Vec<String>, Failure> {
    let known = toolset::all_names()?;
    own_rules(rule, behavior, |name| known.contains(name)).ok_or_else(|| {
        Failure::usage(format!(
            "the rule `{rule}` is not supported: only Bash can have a pattern in parentheses"
        ))
    })
}
