//! A host that `@anthropic-ai/claude-agent-sdk` can drive, with a scripted model.
//!
//! `tests/compat` runs it. The process ends with its input.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a host reads files and variables, and prints"
)]

#[path = "support/channel.rs"]
mod channel;
#[path = "support/host.rs"]
mod host;

use std::collections::VecDeque;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use pintle_agent::{Outcome, OutcomeStatus, Run, RunError, Session, SessionConfig, SessionId, UserMessage};
use pintle_compat::claude::{
    ControlEvent, Formatter, FormatterSettings, HostRequest, InitInfo, InitializeAnswer, InitializeRequest,
    InputLines, MAX_LINE, McpServerStatus, RewindAnswer, RuleBehavior, RunEnd, StreamOptions, ToolRule,
    UserLine,
};
use pintle_env::LocalEnvironment;
use pintle_llm::{AnswerSchema, Verdict};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use channel::{Channel, HostApprover, HostHooks, HostTool, Permissions, lock, print};
use host::{Host, MODEL};

/// How often a model may repair an answer that does not match the schema.
const REPAIRS: u32 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match StreamOptions::parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    for warning in &parsed.warnings {
        eprintln!("warning: {warning}");
    }
    let ended = tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| {
        let ended = runtime.block_on(converse(&parsed.options));
        // A read of standard input cannot be cancelled, and must not keep the process.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn converse(options: &StreamOptions) -> Result<(), Box<dyn Error>> {
    let channel = Arc::new(Channel::new());
    let (sender, events) = unbounded_channel();
    let mut reader = JoinSet::new();
    reader.spawn(read(Arc::clone(&channel), sender));
    let host = Host::start().await?;
    let mut conversation = Conversation::new(options, channel, events);
    conversation.run(&host).await?;
    host.server.shutdown().await;
    Ok(())
}

/// Reads lines until the input ends.
async fn read(channel: Arc<Channel>, events: UnboundedSender<ControlEvent>) {
    let mut input = tokio::io::stdin();
    let mut lines = InputLines::new(MAX_LINE);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = input.read(&mut buffer).await {
        for line in lines.feed(buffer.get(..count).unwrap_or_default()) {
            match channel.take(line) {
                Ok(Some(event)) => {
                    let _ = events.send(event);
                }
                Ok(None) => {}
                Err(error) => eprintln!("warning: {error}"),
            }
        }
    }
    if let Some(error) = lines.finish() {
        eprintln!("warning: {error}");
    }
    channel.close();
}

/// A conversation with the host.
struct Conversation<'a> {
    options: &'a StreamOptions,
    channel: Arc<Channel>,
    events: UnboundedReceiver<ControlEvent>,
    initialize: InitializeRequest,
    permissions: Permissions,
    model: String,
    /// Messages that arrived during a run.
    queue: VecDeque<UserLine>,
    schema: Option<AnswerSchema>,
}

impl<'a> Conversation<'a> {
    fn new(
        options: &'a StreamOptions,
        channel: Arc<Channel>,
        events: UnboundedReceiver<ControlEvent>,
    ) -> Self {
        // Rules on some calls of a tool are left to the command; here, all calls are asked about.
        let names = |rules: &[ToolRule], behavior| {
            let whole = rules.iter().filter(|rule| rule.scope.is_none());
            whole.flat_map(|rule| rule.own_tool_names(behavior)).collect()
        };
        let permissions = Permissions {
            mode: Arc::new(Mutex::new(options.permission_mode.unwrap_or_default())),
            allowed: names(&options.allowed_tools, RuleBehavior::Allow),
            disallowed: names(&options.disallowed_tools, RuleBehavior::Deny),
        };
        Self {
            options,
            channel,
            events,
            initialize: InitializeRequest::default(),
            permissions,
            model: options.model.clone().unwrap_or_else(|| MODEL.to_owned()),
            queue: VecDeque::new(),
            schema: None,
        }
    }

    async fn run(&mut self, host: &Host) -> Result<(), Box<dyn Error>> {
        let mut opened: Option<(Session, Formatter, InitInfo)> = None;
        loop {
            let message = match self.queue.pop_front() {
                Some(message) => message,
                None => match self.events.recv().await {
                    None => break,
                    Some(ControlEvent::User(message)) => *message,
                    Some(ControlEvent::HandshakeRefused { reason }) => return Err(reason.into()),
                    Some(event) => {
                        self.handle(
                            event,
                            opened.as_mut().map(|(session, formatter, _)| (&*session, formatter)),
                        );
                        continue;
                    }
                },
            };
            if opened.is_none() {
                opened = Some(self.open(host).await?);
            }
            if let Some((session, formatter, info)) = &mut opened {
                info.model.clone_from(&self.model);
                info.permission_mode = lock(&self.permissions.mode).to_string();
                print(&formatter.init(info));
                if self.options.replay_user_messages {
                    print(&formatter.replay(&message.content, message.uuid.as_deref()));
                }
                self.follow(session, formatter, message.message).await?;
            }
        }
        if let Some((session, ..)) = opened {
            // Fails only if the session has ended.
            let _ = session.handle().stop_turn();
            session.detach().await;
        }
        Ok(())
    }

    async fn open(&mut self, host: &Host) -> Result<(Session, Formatter, InitInfo), Box<dyn Error>> {
        let mut profile = Host::profile(Some(&self.model));
        let mut servers = Vec::new();
        for server in &self.initialize.sdk_mcp_servers {
            for tool in HostTool::list(&self.channel, server).await? {
                profile = profile.with_tool(tool)?;
            }
            servers.push(McpServerStatus { name: server.clone(), status: "connected".to_owned() });
        }
        let mut config = SessionConfig::default();
        let schema = self.options.json_schema.clone().or_else(|| self.initialize.json_schema.clone());
        if let Some(schema) = schema {
            let schema = AnswerSchema::new(schema, REPAIRS)?;
            config = config.with_user_instructions(schema.instructions());
            self.schema = Some(schema);
        }
        let directory = std::env::current_dir()?;
        let info = InitInfo {
            directory: directory.display().to_string(),
            tools: profile.tool_registry.names().map(str::to_owned).collect(),
            mcp_servers: servers,
            model: self.model.clone(),
            permission_mode: String::new(),
            api_key_source: "none".to_owned(),
            slash_commands: Vec::new(),
            skills: Vec::new(),
            agents: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let env = LocalEnvironment::with_host_env(directory, std::env::vars_os())?;
        let channel = || Arc::clone(&self.channel);
        let builder = Session::builder(host.client()?, profile, env)
            .with_config(config)
            .gate(self.permissions.clone())
            .approver(HostApprover {
                channel: channel(),
                permissions: self.permissions.clone(),
                asks: self.options.asks_host,
            })
            .hooks(HostHooks { channel: channel(), registered: self.initialize.hooks.clone() });
        let resume = if self.options.continues { Some(host.newest()?) } else { self.options.resume.clone() };
        let id = self.options.session_id.clone().map_or_else(SessionId::generate, SessionId::new);
        let session = host.keep(builder, resume.as_deref(), &id)?.build()?;
        let mut settings = FormatterSettings::default();
        settings.partial_messages = self.options.partial_messages;
        settings.epoch = session.first_new_event();
        let formatter = Formatter::new(session.id().clone(), &self.model, settings);
        Ok((session, formatter, info))
    }

    /// Runs a message, and the repairs of its answer.
    async fn follow(
        &mut self,
        session: &Session,
        formatter: &mut Formatter,
        message: UserMessage,
    ) -> Result<(), Box<dyn Error>> {
        let mut run = session.submit(message);
        let mut earlier: Option<Outcome> = None;
        loop {
            self.drive(session, formatter, &mut run).await;
            let ended = run.await.or_else(RunError::into_outcome)?;
            let ended = match &earlier {
                Some(earlier) => ended.continuing(earlier),
                None => ended,
            };
            let is_complete = ended.status == OutcomeStatus::Completed;
            let verdict =
                self.schema.as_mut().filter(|_| is_complete).map(|schema| schema.check(&ended.text));
            let mut end = RunEnd::new(&ended);
            let failure;
            match &verdict {
                Some(Verdict::AskAgain(message)) => {
                    run = session.submit(message);
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
            formatter.end(&end).iter().for_each(print);
            return Ok(());
        }
    }

    /// Writes the events of a run and handles what the host sends meanwhile.
    async fn drive(&mut self, session: &Session, formatter: &mut Formatter, run: &mut Run) {
        let mut host_is_there = true;
        loop {
            tokio::select! {
                event = run.next() => match event {
                    Some(event) => formatter.event(&event).iter().for_each(print),
                    None => return,
                },
                event = self.events.recv(), if host_is_there => match event {
                    Some(ControlEvent::User(message)) => self.queue.push_back(*message),
                    Some(event) => self.handle(event, Some((session, formatter))),
                    None => host_is_there = false,
                },
            }
        }
    }

    fn handle(&mut self, event: ControlEvent, opened: Option<(&Session, &mut Formatter)>) {
        let ControlEvent::Request { id, request } = event else { return };
        let answer = self.serve(request, opened).map_err(|error| error.to_string());
        self.channel.answer(&id, answer);
    }

    fn serve(
        &mut self,
        request: HostRequest,
        opened: Option<(&Session, &mut Formatter)>,
    ) -> Result<Value, Box<dyn Error>> {
        match request {
            HostRequest::Initialize(initialize) => {
                for warning in &initialize.warnings {
                    eprintln!("warning: {warning}");
                }
                self.initialize = *initialize;
                let models = vec![(MODEL.to_owned(), "Scripted".to_owned())];
                Ok(InitializeAnswer { models, ..InitializeAnswer::default() }.to_value())
            }
            HostRequest::Interrupt => {
                if let Some((session, _)) = opened {
                    session.handle().stop_turn()?;
                }
                Ok(json!({"still_queued": []}))
            }
            HostRequest::SetModel(model) => {
                self.model = model.unwrap_or_else(|| MODEL.to_owned());
                if let Some((session, formatter)) = opened {
                    session.handle().set_model(&self.model)?;
                    formatter.set_model(&self.model);
                }
                Ok(json!({}))
            }
            HostRequest::SetPermissionMode(mode) => {
                *lock(&self.permissions.mode) = mode;
                Ok(json!({"mode": mode.as_str()}))
            }
            HostRequest::RewindFiles { .. } => {
                let error = Some("this example takes no checkpoints".to_owned());
                Ok(RewindAnswer { error, ..RewindAnswer::default() }.to_value())
            }
            HostRequest::McpMessage { .. } => Ok(json!({})),
            HostRequest::McpStatus => Ok(json!({"mcpServers": []})),
            HostRequest::SetThinkingTokens(_) | HostRequest::GetContextUsage | _ => {
                Err("this example does not support it".into())
            }
        }
    }
}
