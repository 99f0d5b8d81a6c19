//! An open session with the formatter of its lines.

use futures_util::FutureExt as _;
use pintle_agent::{EventKind, Outcome, Session, SessionEvent, TreeEvents};
use pintle_compat::claude::{
    ContextUsage, Formatter, FormatterSettings, InitInfo, McpServerStatus, RunEnd, StreamOptions,
};
use pintle_host::OpenSession;
use pintle_host::cost::Costs;
use pintle_host::environment::EnvSession;
use pintle_host::failure::Failure;
use pintle_host::model::{Model, ResolvedModel};
use pintle_host::servers::SessionServers;
use pintle_tui::console;

use super::channel::HostChannel;

/// An open session.
pub(super) struct OpenConversation<'a> {
    pub(super) session: Session,
    pub(super) formatter: Formatter,
    pub(super) info: InitInfo,
    pub(super) events: TreeEvents,
    pub(super) usage: Option<ContextUsage>,
    model: &'a Model,
    cost: Costs,
    servers: SessionServers,
    environment: EnvSession,
    is_stored: bool,
    /// Number of the first event of this process.
    first_new: u64,
    /// Whether the events still come from an earlier process.
    is_in_past: bool,
}

impl<'a> OpenConversation<'a> {
    pub(super) fn new(
        opened: OpenSession,
        model: &'a Model,
        options: &StreamOptions,
        forwards_text: bool,
        mcp_servers: Vec<McpServerStatus>,
    ) -> Self {
        let OpenSession { session, environment, servers, offered, is_stored, is_resumed, .. } = opened;
        let mut session = session.into_session();
        // The host sends a message, so an unfinished run is dropped.
        drop(session.resumed());
        let mut settings = FormatterSettings::default();
        settings.partial_messages = options.partial_messages;
        settings.subagent_text = forwards_text;
        settings.epoch = session.first_new_event();
        let name = &model.route.model;
        let info = InitInfo {
            directory: environment.environment().working_directory().display().to_string(),
            tools: offered.iter().map(|tool| tool.name.clone()).collect(),
            mcp_servers,
            model: name.clone(),
            permission_mode: String::new(),
            api_key_source: if model.route.secret().is_some() { "user" } else { "none" }.to_owned(),
            slash_commands: Vec::new(),
            skills: Vec::new(),
            agents: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Self {
            formatter: Formatter::new(session.id().clone(), name, settings),
            info,
            events: session.tree_events(),
            usage: None,
            model,
            cost: Costs::new(model.catalog_entry()),
            servers,
            environment,
            is_stored,
            first_new: session.first_new_event(),
            is_in_past: is_resumed,
            session,
        }
    }

    /// Uses another model from the next request on.
    pub(super) fn set_model(&mut self, name: &str) -> Result<(), String> {
        let ResolvedModel { name, warning } = self.model.resolve(name)?;
        self.session.handle().set_model(&name).map_err(|error| error.to_string())?;
        if let Some(warning) = warning {
            console::notice(&warning);
        }
        self.formatter.set_model(&name);
        self.info.model = name;
        Ok(())
    }

    /// Writes the lines of an event.
    pub(super) fn show(&mut self, event: &SessionEvent, channel: &HostChannel) {
        if self.is_in_past {
            self.is_in_past = event.depth > 0 || event.seq < self.first_new;
        }
        if self.is_in_past {
            return;
        }
        self.cost.add(event, self.model.find(&self.info.model), self.model.catalog());
        if let (0, EventKind::ContextUsage { window, used, system, tools, history }) =
            (event.depth, &event.kind)
        {
            self.usage = Some(ContextUsage {
                model: self.info.model.clone(),
                window: *window,
                used: *used,
                system: *system,
                tools: *tools,
                history: *history,
            });
        }
        self.formatter.event(event).iter().for_each(|line| channel.print(line));
    }

    /// Writes the lines of the events that are there.
    pub(super) fn show_all(&mut self, channel: &HostChannel) {
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.show(&event, channel);
        }
    }

    /// Returns the end of a run, with the cost of the session so far in this process.
    pub(super) fn end<'o>(&self, outcome: &'o Outcome) -> RunEnd<'o> {
        let mut end = RunEnd::new(outcome);
        end.cost = self.cost.total();
        if let Some(known) = self.model.find(&self.info.model) {
            end.context_window = Some(known.context_window);
            end.max_output_tokens = known.max_output;
        }
        end
    }

    /// Ends the session in this process, its servers and its environment.
    pub(super) async fn close(self) -> Result<(), Failure> {
        if self.is_stored {
            // Fails only if the session has ended.
            let _ = self.session.handle().stop_turn();
            self.session.detach().await;
        } else {
            self.session.close().await;
        }
        self.servers.close().await;
        self.environment.close().await
    }
}
