//! Builder of sessions.

use std::sync::{Arc, Mutex};

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use pintle_tools::pipeline::Gate;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::handle::{PublishedState, SessionLink};
use super::start::StartOptions;
use super::{MAX_COMMANDS, Session, SessionHandle};
use crate::approval::Approver;
use crate::budget::BudgetSource;
use crate::checkpoints::Checkpoints;
use crate::clock::{Clock, SystemClock};
use crate::config::SessionConfig;
use crate::driver::{Driver, EnvironmentLifecycle, Parts, SentCommand, SharedEnvironment};
use crate::error::SessionError;
use crate::event_log::{EventLog, Identity};
use crate::hooks::Hooks;
use crate::profile::ProviderProfile;
use crate::protocol::{Limits, Principal, SessionId, Start};
use crate::record::{Journal, Record};
use crate::subagent::{Lineage, Member, SubagentSpec, SubagentType};

/// Builder of a [`Session`].
///
/// ```
/// use pintle_agent::{ApprovalRequest, Decision, ProviderProfile, Session, SessionConfig, approver_fn};
/// use pintle_tools::{Effect, gate::{EffectGate, Permission}};
/// # use pintle_llm::{Client, Message, Role, ToolCall, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let call = ToolCall::from_raw("c1", "write_file", r#"{"file_path": "/project/notes.txt", "content": "milk"}"#);
/// # let call = Message::new(Role::Assistant, vec![call.into()]);
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic").message(call).answer("Saved.")).build()?;
/// # let profile = ProviderProfile::anthropic("claude-opus-4-6");
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// let session = Session::builder(client, profile, env.clone())
///     .with_config(SessionConfig::default().with_max_tool_rounds(20).with_user_instructions("Answer briefly."))
///     // Calls that change files wait for the decision of the approver.
///     .gate(EffectGate::new().with_permission(Effect::Write, Permission::Ask))
///     .approver(approver_fn(|request: ApprovalRequest| async move {
///         println!("{}: {}", request.tool_name, request.reason);
///         Decision::Approve
///     }))
///     .build()?;
/// assert_eq!(session.submit("Note: milk.").await?.text, "Saved.");
/// assert!(env.files().contains_key(std::path::Path::new("/project/notes.txt")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SessionBuilder {
    parts: Parts,
    lineage: Lineage,
    lifecycle: EnvironmentLifecycle,
    id: Option<SessionId>,
    principal: Option<Principal>,
    options: StartOptions,
}

impl SessionBuilder {
    pub(super) fn new(client: Client, profile: ProviderProfile, env: Arc<dyn ExecutionEnvironment>) -> Self {
        let parts = Parts {
            client,
            profile,
            env,
            config: SessionConfig::default(),
            gates: Vec::new(),
            approver: None,
            hooks: None,
            clock: Arc::new(SystemClock),
            checkpoints: None,
            budget: None,
            subagent_types: Arc::from([]),
        };
        let lifecycle = EnvironmentLifecycle::Owned;
        let options = StartOptions::default();
        Self { parts, lineage: Lineage::root(), lifecycle, id: None, principal: None, options }
    }

    /// Sets the configuration.
    #[must_use]
    pub fn with_config(mut self, config: SessionConfig) -> Self {
        self.parts.config = config;
        self
    }

    /// Sets the model of the profile.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.parts.profile = self.parts.profile.with_model(model);
        self
    }

    /// Sets the approver, which decides on calls that a gate asks about. Without an approver, only
    /// [`SessionHandle::decide`] does.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.parts.approver = Some(Arc::new(approver));
        self
    }

    /// Adds a gate, which judges calls after the gates that were added earlier.
    #[must_use]
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.parts.gates.push(Arc::new(gate));
        self
    }

    /// Adds the gates of a chain, which judge calls in this order after the gates that were added earlier.
    #[must_use]
    pub fn gates(mut self, gates: impl IntoIterator<Item = Arc<dyn Gate>>) -> Self {
        self.parts.gates.extend(gates);
        self
    }

    /// Sets the hooks of the session and of its subagents.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.parts.hooks = Some(Arc::new(hooks));
        self
    }

    /// Sets the source of additional budget. Without it, a session stops at its limits.
    #[must_use]
    pub fn budget_source(mut self, source: Arc<dyn BudgetSource>) -> Self {
        self.parts.budget = Some(source);
        self
    }

    /// Adds a type of subagents, which the session offers to its model. A type with the same name is replaced.
    #[must_use]
    pub fn subagent_type(mut self, subagent_type: SubagentType) -> Self {
        let mut types = self.parts.subagent_types.to_vec();
        types.retain(|known| known.name != subagent_type.name);
        types.push(subagent_type);
        self.parts.subagent_types = types.into();
        self
    }

    /// Takes checkpoints of the workspace around the calls that change it, including calls of subagents. By default, no
    /// checkpoints are taken.
    #[must_use]
    pub fn checkpoints(mut self, checkpoints: impl Checkpoints) -> Self {
        self.parts.checkpoints = Some(Arc::new(checkpoints));
        self
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<SessionId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the principal of the session: inputs and decisions are recorded under its name, unless they come through a
    /// handle of [another principal](SessionHandle::acting_as).
    #[must_use]
    pub fn principal(mut self, principal: Option<Principal>) -> Self {
        self.principal = principal;
        self
    }

    /// Returns the id, if it is known before the session is built: the id that was set, or the id of the record to resume.
    #[must_use]
    pub fn id(&self) -> Option<&SessionId> {
        let resumed = self.options.resume.as_ref().map(|record| &record.header.session_id);
        resumed.or(self.id.as_ref())
    }

    /// Returns the execution environment of the tools.
    #[must_use]
    pub fn environment(&self) -> &Arc<dyn ExecutionEnvironment> {
        &self.parts.env
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &SessionConfig {
        &self.parts.config
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.parts.clock = clock;
        self
    }

    /// Leaves `initialize` and `cleanup` of the environment to the embedding application, which shares it between sessions.
    /// A run still fails if the working directory does not exist.
    #[must_use]
    pub fn shared_environment(mut self) -> Self {
        self.lifecycle = EnvironmentLifecycle::Shared;
        self
    }

    /// Declares that the embedding application has initialised the environment. The session does not call `initialize` again, and
    /// still calls `cleanup` at its end. A run fails if the working directory does not exist. Has no effect on a
    /// [shared](Self::shared_environment) environment.
    #[must_use]
    pub fn initialized_environment(mut self) -> Self {
        if self.lifecycle == EnvironmentLifecycle::Owned {
            self.lifecycle = EnvironmentLifecycle::Initialized;
        }
        self
    }

    /// Keeps [records](Session::record) of the session and of each of its [subagents](Session::tree_records) in memory.
    /// Default false: a record holds a second copy of each response, of the truncated results, and of the prompt whenever it
    /// is loaded. Complete outputs are shared.
    #[must_use]
    pub fn record(mut self, record: bool) -> Self {
        self.options.record = record;
        self
    }

    /// Writes the [record](Session::record) to `journal`, each entry before its input has any effect, so that another
    /// process can [resume](SessionBuilder::resume) the session if this process dies. A resumed session writes only new
    /// inputs. [`JsonLines`](crate::JsonLines) is a journal in a file.
    ///
    /// After an error of the journal, the session makes no model call and starts no tool, acknowledges nothing, and ends
    /// as failed.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.options.journal = Some(Box::new(journal));
        self
    }

    /// Starts with a history. Limits and effort are taken from `start`. Its prompt is kept if its model and tools match the
    /// profile, so that the provider's cache stays valid.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.parts.config.limits.clone_from(&start.limits);
        self.parts.config.reasoning_effort.clone_from(&start.reasoning_effort);
        self.options.start = start;
        self
    }

    /// Resumes the session of this record, whose process has ended, with its id and its limits. The resumed session is
    /// recorded. An unfinished run continues at once; see [`Session::resumed`].
    ///
    /// Calls that ended are not repeated. A call that was changing files is compared with the files. Any other call that had
    /// started is answered as interrupted, or repeated if its tool is
    /// [repeatable](pintle_tools::Tool::repeatable). A call that had not started runs under its recorded decision, if any. A
    /// model response that was cut off is requested again.
    #[must_use]
    pub fn resume(mut self, record: Record) -> Self {
        self.options.resume = Some(record);
        self
    }

    /// Creates a builder of a subagent's session, in the environment of its parent.
    pub(crate) fn subagent(spec: SubagentSpec, lineage: Lineage) -> Self {
        let SubagentSpec { parts, record, journals: _, span: _ } = spec;
        let id = lineage.origin.as_ref().map(|origin| origin.session_id.clone());
        let options = StartOptions { record, ..StartOptions::default() };
        let lifecycle = EnvironmentLifecycle::Shared;
        Self { parts, lineage, lifecycle, id, principal: None, options }
    }

    /// Sets the record that a subagent is resumed from, and its journal.
    pub(crate) fn recorded_in(mut self, record: Option<Record>, journal: Option<Box<dyn Journal>>) -> Self {
        (self.options.resume, self.options.journal) = (record, journal);
        self
    }

    pub(crate) fn share(
        &mut self,
        gates: Vec<Arc<dyn Gate>>,
        approver: Option<Arc<dyn Approver>>,
        hooks: Option<Arc<dyn Hooks>>,
        shared: SharedEnvironment,
    ) {
        self.parts.gates = gates;
        self.parts.approver = approver;
        self.parts.hooks = hooks;
        self.options.shared = Some(shared);
    }

    /// Builds the session, which the current tokio runtime drives.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoRuntime`] outside a tokio runtime, [`SessionError::Build`] if the client has no provider with the
    /// profile's name, [`SessionError::Resume`] or [`SessionError::Ended`] if the record cannot be resumed,
    /// [`SessionError::Journal`] if its first line cannot be written.
    pub fn build(self) -> Result<Session, SessionError> {
        let runtime = Handle::try_current().map_err(|_| SessionError::NoRuntime)?;
        let (mut session, driver, commands) = self.assemble()?;
        session.driver.spawn_on(Box::new(driver).run(commands), &runtime);
        Ok(session)
    }

    /// Builds the session, its driver and the driver's command receiver.
    pub(super) fn assemble(self) -> Result<(Session, Driver, mpsc::Receiver<SentCommand>), SessionError> {
        let Self { parts, mut lineage, lifecycle, id, principal, mut options } = self;
        parts.client.adapter(Some(&parts.profile.provider)).map_err(SessionError::Build)?;
        let resumed_id = options.resume.as_ref().map(|record| record.header.session_id.clone());
        let id = resumed_id.or(id).unwrap_or_else(SessionId::generate);
        // A subagent that is resumed with its parent already has a position in the tree.
        if let Some(record) = &options.resume
            && lineage.parent_link.is_none()
        {
            lineage = Lineage::of_record(record.header.subagent.clone());
        }
        let identity = Identity { session_id: id.clone(), depth: lineage.depth(), parent: lineage.parent() };
        let log = Arc::new(EventLog::new(identity));
        let (sender, commands) = mpsc::channel(MAX_COMMANDS);
        let (shared, shared_receiver) = watch::channel(PublishedState::default());
        options.start.limits.clone_from(&parts.config.limits);
        options.start.reasoning_effort.clone_from(&parts.config.reasoning_effort);
        options.start.asks = match &parts.budget {
            Some(source) => Some(source.limited()),
            None => lineage.parent_link.is_some().then(Limits::default),
        };
        let (client, tree) = (parts.client.clone(), Arc::clone(&lineage.tree));
        let origin = lineage.origin.clone();
        let mut driver = Driver::new(parts, lineage, lifecycle, Arc::clone(&log), shared);
        let unfinished = options.apply(&mut driver, &log, origin)?;
        let replayed = log.next_seq();
        let (recorder, background) = (driver.recorder(), driver.background());
        let link = SessionLink { commands: sender, shared: shared_receiver, client, recorder, tree };
        link.tree.join(Member::new(Arc::clone(&log), &link));
        let handle = SessionHandle::new(link, principal);
        let (runs, resumed) = (driver.run_counter(), Mutex::new(unfinished));
        let session =
            Session { id, handle, runs, log, background, replayed, resumed, driver: JoinSet::new() };
        Ok((session, driver, commands))
    }
}
