//! Settings of a session that an editor can change.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, EventKind, Money, Session, SessionEvent, SessionHandle, SessionId};
use pintle_governance::{APPROVAL_SOURCE, Mode, Policy};
use pintle_host::cost::Costs;
use pintle_host::environment::{EnvSession, SandboxState};
use pintle_host::model::{Model, ResolvedModel};
use pintle_host::notice::Notices;
use pintle_host::servers::SessionServers;
use pintle_host::sessions::OpenSessionFiles;
use pintle_host::user_commands::UserCommand;
use pintle_llm::{ReasoningEffort, ToolList};
use pintle_store::title_of;
use pintle_tools::gate::Permission;
use tokio::task::JoinSet;

use super::commands;
use crate::editor::TerminalSwitch;
use crate::error::HostError;
use crate::host::{CommandResult, SessionControls};
use crate::settings::{
    ConfigOption, NamedChoice, OptionCategory, OptionKind, OptionValue, SessionModes, SessionSettings,
};

const MODEL: &str = "model";
const EFFORT: &str = "reasoning_effort";

/// Efforts that most models support.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// Choice while no effort is set.
const DEFAULT_EFFORT: &str = "default";

/// Resources of a session that an editor shows.
#[derive(Debug)]
pub(super) struct EditorSessionContext {
    pub(super) id: SessionId,
    pub(super) handle: SessionHandle,
    pub(super) policy: Policy,
    pub(super) servers: SessionServers,
    pub(super) model: Arc<Model>,
    pub(super) env_session: EnvSession,
    pub(super) terminals: TerminalSwitch,
    /// Working directory of the tools.
    pub(super) directory: PathBuf,
    /// Tools that the model is offered.
    pub(super) offered: ToolList,
    /// Files of the session, if it is kept.
    pub(super) files: Option<OpenSessionFiles>,
    pub(super) user_commands: Vec<UserCommand>,
    /// Receives warnings.
    pub(super) notices: Notices,
}

/// Controls of one session.
#[derive(Debug)]
pub(super) struct EditorSessionControls {
    pub(super) context: EditorSessionContext,
    /// Model and effort, as last set.
    chosen: Mutex<(String, Option<String>)>,
    seen: Mutex<ObservedState>,
    /// Tasks that refresh lists of servers. They end with the session.
    refreshing: Mutex<JoinSet<()>>,
}

/// State collected from the events of the session so far.
#[derive(Debug)]
pub(super) struct ObservedState {
    pub(super) costs: Costs,
    /// Tokens of the conversation and of the window.
    pub(super) context: Option<(u64, u64)>,
    title: Option<String>,
}

impl EditorSessionControls {
    /// Creates controls for a session with this reasoning effort and title.
    pub(super) fn new(context: EditorSessionContext, effort: Option<String>, title: Option<String>) -> Self {
        let model = &context.model;
        let seen = ObservedState { costs: Costs::new(model.catalog_entry()), context: None, title };
        let chosen = Mutex::new((model.route.model.clone(), effort));
        let controls = Self { context, chosen, seen: Mutex::new(seen), refreshing: Mutex::default() };
        controls.switch_terminals();
        controls
    }

    pub(super) fn observed(&self) -> MutexGuard<'_, ObservedState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns model and effort, as last set.
    pub(super) fn model_and_effort(&self) -> (String, Option<String>) {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets one of the offered modes.
    pub(super) async fn set_mode_to(&self, mode: &str) -> Result<(), HostError> {
        let found = self.modes().available.iter().any(|choice| choice.id == mode);
        let mode: Mode = match mode.parse() {
            Ok(mode) if found => mode,
            Ok(_) | Err(_) => return Err(HostError::Invalid(format!("there is no mode `{mode}` here"))),
        };
        // On before a narrower mode, off before a wider one.
        self.context.terminals.set(false);
        let set = self.context.policy.set_mode(mode).await;
        self.switch_terminals();
        set.map_err(|error| HostError::failed("cannot set the mode", error))
    }

    /// Lets commands run in terminals of the editor if no sandbox confines them and each needs approval.
    fn switch_terminals(&self) {
        let is_free = *self.context.env_session.sandbox() == SandboxState::Off;
        self.context.terminals.set(is_free && matches!(self.context.policy.mode(), Mode::Ask | Mode::Edit));
    }

    fn modes(&self) -> SessionModes {
        let is_offered = |mode: &Mode| *mode != Mode::Auto || self.may_be_auto();
        let available = Mode::ALL.into_iter().filter(is_offered);
        let choice = |mode: Mode| {
            NamedChoice::new(mode.as_str(), name_of(mode)).with_description(description_of(mode))
        };
        SessionModes {
            current: self.context.policy.mode().to_string(),
            available: available.map(choice).collect(),
        }
    }

    /// As in a terminal, calls run without approval only if a sandbox confines them, or if the user has turned the
    /// sandbox off.
    fn may_be_auto(&self) -> bool {
        !matches!(self.context.env_session.sandbox(), SandboxState::Unavailable { .. })
    }

    fn options(&self) -> Vec<ConfigOption> {
        let (model, effort) = self.model_and_effort();
        let known = &self.context.model;
        let provider = known.route.provider.name();
        let mut models: Vec<NamedChoice> =
            known.catalog().list(Some(provider)).map(|info| NamedChoice::new(&info.id, &info.id)).collect();
        if !models.iter().any(|choice| choice.id == model) {
            models.insert(0, NamedChoice::new(&model, &model));
        }
        let effort = effort.unwrap_or_else(|| DEFAULT_EFFORT.to_owned());
        let mut efforts: Vec<NamedChoice> =
            [DEFAULT_EFFORT].into_iter().chain(EFFORTS).map(|name| NamedChoice::new(name, name)).collect();
        if !efforts.iter().any(|choice| choice.id == effort) {
            efforts.push(NamedChoice::new(&effort, &effort));
        }
        let select = |current: String, choices| OptionKind::Select { current, choices };
        vec![
            ConfigOption::new(MODEL, "Model", OptionCategory::Model, select(model, models)),
            ConfigOption::new(EFFORT, "Reasoning effort", OptionCategory::Reasoning, select(effort, efforts)),
        ]
    }
}

#[async_trait]
impl SessionControls for EditorSessionControls {
    fn settings(&self) -> SessionSettings {
        SessionSettings::default()
            .with_modes(self.modes())
            .with_options(self.options())
            .with_commands(commands::slash_commands(
                &self.context.user_commands,
                &self.context.servers.prompts(),
            ))
            .with_title(self.observed().title.clone())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "four kinds of events change the view of the editor")]
    fn observe(&self, event: &SessionEvent) {
        let EditorSessionContext { model, .. } = &self.context;
        let name = self.model_and_effort().0;
        let mut seen = self.observed();
        seen.costs.add(event, model.find(&name), model.catalog());
        match &event.kind {
            _ if event.depth > 0 => {}
            EventKind::UserInput { content, .. } => {
                seen.title.get_or_insert_with(|| title_of(content));
            }
            EventKind::ContextUsage { window, used, .. } => seen.context = Some((*used, *window)),
            EventKind::ModelResponse { usage, .. } => {
                let used = usage.input_tokens.saturating_add(usage.output_tokens);
                let window = self.context_window().or(seen.context.map(|(_, window)| window));
                seen.context = window.map(|window| (used, window));
            }
            // The next message announces the commands that servers have at that time.
            EventKind::ProcessingEnd { .. } => {
                let (servers, handle) = (self.context.servers.clone(), self.context.handle.clone());
                let mut refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
                while refreshing.try_join_next().is_some() {}
                refreshing.spawn(servers.refresh(handle));
            }
            _ => {}
        }
    }

    fn cost(&self) -> Option<Money> {
        self.observed().costs.total()
    }

    fn context_window(&self) -> Option<u64> {
        Some(self.context.model.find(&self.model_and_effort().0)?.context_window)
    }

    async fn set_mode(&self, mode: &str) -> Result<(), HostError> {
        self.set_mode_to(mode).await
    }

    async fn set_option(&self, id: &str, value: OptionValue) -> Result<(), HostError> {
        let OptionValue::Choice(value) = value else {
            return Err(HostError::Invalid(format!("option `{id}`: expected one of its choices")));
        };
        let failed = |error| HostError::failed("cannot set the option", error);
        match id {
            MODEL => {
                let resolved = self.context.model.resolve(&value);
                let ResolvedModel { name, warning } = resolved.map_err(HostError::Invalid)?;
                self.context.handle.set_model(&name).map_err(failed)?;
                if let Some(warning) = warning {
                    self.context.notices.report(warning);
                }
                self.chosen.lock().unwrap_or_else(PoisonError::into_inner).0 = name;
            }
            EFFORT => {
                let effort = Some(value).filter(|value| value != DEFAULT_EFFORT);
                self.context
                    .handle
                    .set_reasoning_effort(effort.clone().map(ReasoningEffort::from))
                    .map_err(failed)?;
                self.chosen.lock().unwrap_or_else(PoisonError::into_inner).1 = effort;
            }
            _ => return Err(HostError::Invalid(format!("there is no option `{id}`"))),
        }
        Ok(())
    }

    async fn run_command(
        &self,
        name: &str,
        input: &str,
        _session: &SessionHandle,
    ) -> Result<CommandResult, HostError> {
        self.call(name, input).await
    }

    async fn allow_always(&self, request: &ApprovalRequest) -> Result<(), HostError> {
        for rule in &request.suggested_rules {
            let source = format!("{APPROVAL_SOURCE}{}", request.call_id);
            let added = self.context.policy.add_rule(Permission::Allow, rule, source).await;
            added.map_err(|error| HostError::failed("cannot add the rule", error))?;
        }
        Ok(())
    }

    fn can_allow_always(&self) -> bool {
        true
    }

    async fn close(&self, session: Session) {
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
        self.context.servers.clone().close().await;
        self.context.env_session.close_with_notice().await;
    }
}

fn name_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "Plan",
        Mode::Ask => "Ask",
        Mode::Edit => "Edit",
        Mode::Auto => "Auto",
    }
}

fn description_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "Reads, and presents a plan",
        Mode::Ask => "Asks before it changes files or runs commands",
        Mode::Edit => "Changes files of the workspace, and asks before it runs commands",
        Mode::Auto => "Does everything, in the sandbox",
    }
}
