//! Settings of a session that an editor can change.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use pintle_acp::{
    Choice, CommandResult, ConfigOption, HostError, Modes, OptionCategory, OptionKind, OptionValue,
    SessionControls, SessionSettings, SlashCommand, TerminalSwitch,
};
use pintle_agent::{ApprovalRequest, Session, SessionHandle};
use pintle_governance::{Mode, Policy};
use pintle_llm::ReasoningEffort;
use pintle_tools::gate::Permission;

use crate::environment::{EnvSession, SandboxState};
use crate::model::Model;
use crate::policy::APPROVAL_SOURCE;
use crate::servers::SessionServers;

const MODEL: &str = "model";
const EFFORT: &str = "reasoning_effort";
const COMPACT: &str = "compact";

/// Efforts that most models know.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// Choice while no effort is set.
const DEFAULT_EFFORT: &str = "default";

/// Controls of one session.
#[derive(Debug)]
pub(super) struct Controls {
    handle: SessionHandle,
    policy: Policy,
    servers: SessionServers,
    model: Model,
    env_session: EnvSession,
    terminals: TerminalSwitch,
    /// Model and effort, as they were set last.
    chosen: Mutex<(String, Option<String>)>,
}

impl Controls {
    pub(super) fn new(
        handle: SessionHandle,
        policy: Policy,
        servers: SessionServers,
        effort: Option<String>,
        model: Model,
        env_session: EnvSession,
        terminals: TerminalSwitch,
    ) -> Self {
        let chosen = Mutex::new((model.route.model.clone(), effort));
        let controls = Self { handle, policy, servers, model, env_session, terminals, chosen };
        controls.switch_terminals();
        controls
    }

    /// Lets commands run in terminals of the editor where nothing else holds them, and each is asked about.
    fn switch_terminals(&self) {
        let is_free = *self.env_session.sandbox() == SandboxState::Off;
        self.terminals.set(is_free && matches!(self.policy.mode(), Mode::Ask | Mode::Edit));
    }

    fn modes(&self) -> Modes {
        let is_offered = |mode: &Mode| *mode != Mode::Auto || self.may_be_auto();
        let available = Mode::ALL.into_iter().filter(is_offered);
        let choice =
            |mode: Mode| Choice::new(mode.as_str(), name_of(mode)).with_description(description_of(mode));
        Modes { current: self.policy.mode().to_string(), available: available.map(choice).collect() }
    }

    /// As in a terminal, everything runs unasked only where a sandbox holds it, or where nobody wants one.
    fn may_be_auto(&self) -> bool {
        !matches!(self.env_session.sandbox(), SandboxState::Unavailable { .. })
    }

    fn options(&self) -> Vec<ConfigOption> {
        let (model, effort) = self.chosen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let provider = self.model.route.provider.name();
        let mut models: Vec<Choice> =
            self.model.catalog().list(Some(provider)).map(|info| Choice::new(&info.id, &info.id)).collect();
        if !models.iter().any(|choice| choice.id == model) {
            models.insert(0, Choice::new(&model, &model));
        }
        let effort = effort.unwrap_or_else(|| DEFAULT_EFFORT.to_owned());
        let mut efforts: Vec<Choice> =
            [DEFAULT_EFFORT].into_iter().chain(EFFORTS).map(|name| Choice::new(name, name)).collect();
        if !efforts.iter().any(|choice| choice.id == effort) {
            efforts.push(Choice::new(&effort, &effort));
        }
        let select = |current: String, choices| OptionKind::Select { current, choices };
        vec![
            ConfigOption::new(MODEL, "Model", OptionCategory::Model, select(model, models)),
            ConfigOption::new(EFFORT, "Reasoning effort", OptionCategory::Reasoning, select(effort, efforts)),
        ]
    }
}

#[async_trait]
impl SessionControls for Controls {
    fn settings(&self) -> SessionSettings {
        let compact = SlashCommand::new(COMPACT, "Summarizes the older part of the conversation");
        SessionSettings::default()
            .with_modes(self.modes())
            .with_options(self.options())
            .with_commands([compact])
    }

    async fn set_mode(&self, mode: &str) -> Result<(), HostError> {
        let found = self.modes().available.iter().any(|choice| choice.id == mode);
        let mode: Mode = match mode.parse() {
            Ok(mode) if found => mode,
            Ok(_) | Err(_) => return Err(HostError::Invalid(format!("there is no mode `{mode}` here"))),
        };
        // On before a narrower mode, off before a wider one.
        self.terminals.set(false);
        let set = self.policy.set_mode(mode).await;
        self.switch_terminals();
        set.map_err(|error| HostError::failed("cannot set the mode", error))
    }

    async fn set_option(&self, id: &str, value: OptionValue) -> Result<(), HostError> {
        let OptionValue::Choice(value) = value else {
            return Err(HostError::Invalid(format!("option `{id}` is no switch")));
        };
        let failed = |error| HostError::failed("cannot set the option", error);
        match id {
            MODEL => {
                self.handle.set_model(&value).map_err(failed)?;
                self.chosen.lock().unwrap_or_else(PoisonError::into_inner).0 = value;
            }
            EFFORT => {
                let effort = Some(value).filter(|value| value != DEFAULT_EFFORT);
                self.handle
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
        _input: &str,
        session: &SessionHandle,
    ) -> Result<CommandResult, HostError> {
        if name != COMPACT {
            return Err(HostError::Invalid(format!("there is no command `{name}`")));
        }
        session.compact().map_err(|error| HostError::failed("cannot compact the conversation", error))?;
        Ok(CommandResult::Said("The older part of the conversation is a summary now.".to_owned()))
    }

    async fn allow_always(&self, request: &ApprovalRequest) -> Result<(), HostError> {
        for rule in &request.suggested_rules {
            let source = format!("{APPROVAL_SOURCE}{}", request.call_id);
            let added = self.policy.add_rule(Permission::Allow, rule, source).await;
            added.map_err(|error| HostError::failed("cannot add the rule", error))?;
        }
        Ok(())
    }

    fn can_allow_always(&self) -> bool {
        true
    }

    async fn close(&self, session: Session) {
        session.suspend().await;
        self.servers.clone().close().await;
        // The environment logs what it cannot end.
        let _ = self.env_session.close().await;
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
