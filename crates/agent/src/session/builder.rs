//! Making a session.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use pintle_tools::pipeline::Gate;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::beginning::{Beginning, Resumed};
use super::handle::Shared;
use super::{MAX_COMMANDS, Session, SessionHandle};
use crate::approval::Approver;
use crate::config::SessionConfig;
use crate::driver::{Command, Driver, Parts, SharedFacts};
use crate::error::SessionError;
use crate::event_log::{EventLog, Identity};
use crate::id::SessionId;
use crate::profile::ProviderProfile;
use crate::record::{Journal, Record};
use crate::subagent::{Lineage, Member, SubagentSpec};
use crate::timestamp::{Clock, SystemClock};
use crate::turn::Start;

/// Collects what a [`Session`] is made of.
#[derive(Debug)]
pub struct SessionBuilder {
    parts: Parts,
    id: Option<SessionId>,
    beginning: Beginning,
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
            clock: Arc::new(SystemClock),
            keep_environment: false,
            lineage: Lineage::root(),
        };
        Self { parts, id: None, beginning: Beginning::default() }
    }

    /// With this configuration.
    #[must_use]
    pub fn config(mut self, config: SessionConfig) -> Self {
        self.parts.config = config;
        self
    }

    /// With someone who decides on the calls that a gate asks about. Without one, [`SessionHandle::decide`] is the
    /// only way to decide.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.parts.approver = Some(Arc::new(approver));
        self
    }

    /// With one more gate, asked after those added before.
    #[must_use]
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.parts.gates.push(Arc::new(gate));
        self
    }

    /// With an id that the host chose.
    #[must_use]
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// With another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.parts.clock = clock;
        self
    }

    /// Leaves `initialize` and `cleanup` of the environment to the host, which shares it with others.
    #[must_use]
    pub fn shared_environment(mut self) -> Self {
        self.parts.keep_environment = true;
        self
    }

    /// Keeps a [record](Session::record) of the session, and one of each of its
    /// [subagents](Session::tree_records). Default false: it holds a second copy of each answer, of what the model reads
    /// of each result, and of the prompt whenever it is loaded; whole outputs are shared.
    #[must_use]
    pub fn record(mut self, record: bool) -> Self {
        self.beginning.record = record;
        self
    }

    /// Writes the [record](Session::record) to `journal`, each line before anything follows from its input, so that
    /// another host can [go on](SessionBuilder::resume) from it when this one dies. A session that goes on from a record
    /// writes what is new.
    ///
    /// Lines are written on the task that drives the session, and flushed; they should not be waited for long. When one
    /// cannot be written, the session ends as failed, and no tool runs of which the journal does not know.
    #[must_use]
    pub fn journal(mut self, journal: impl std::io::Write + Send + 'static) -> Self {
        self.beginning.journal = Some(Journal(Box::new(journal)));
        self
    }

    /// Begins with a history. Limits and effort become those of `start`; its prompt is kept if its model and tools are
    /// the profile's, so that the provider's cache is.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.parts.config.limits.clone_from(&start.limits);
        self.parts.config.reasoning_effort.clone_from(&start.reasoning_effort);
        self.beginning.start = start;
        self
    }

    /// Goes on with the session of this record, whose host is gone: under its id, with its limits, and recorded. What it
    /// was in the middle of is taken up at once, see [`Session::resumed`].
    ///
    /// A call that has ended is not made again. One that had begun is answered as interrupted, or made again if its tool
    /// is [repeatable](pintle_tools::Tool::repeatable). One that had not begun is made, and one that waited for a
    /// decision, or had it, is asked about again. The model is asked again for an answer that was cut off.
    #[must_use]
    pub fn resume(mut self, record: Record) -> Self {
        self.beginning.resume = Some(record);
        self
    }

    /// A session below another one, in the environment of that one.
    pub(crate) fn subagent(spec: SubagentSpec, lineage: Lineage) -> Self {
        let SubagentSpec { client, profile, env, config, gates, approver, clock, record, span: _ } = spec;
        let id = lineage.origin.as_ref().map(|origin| origin.session_id.clone());
        let keep_environment = true;
        let parts = Parts { client, profile, env, config, gates, approver, clock, keep_environment, lineage };
        let beginning = Beginning { record, ..Beginning::default() };
        Self { parts, id, beginning }
    }

    pub(crate) fn share(
        &mut self,
        gates: Vec<Arc<dyn Gate>>,
        approver: Option<Arc<dyn Approver>>,
        facts: SharedFacts,
    ) {
        self.parts.gates = gates;
        self.parts.approver = approver;
        self.beginning.facts = Some(facts);
    }

    /// The session. Call it from within a tokio runtime, which will drive it.
    ///
    /// # Errors
    ///
    /// [`SessionError::Build`] if the client has no provider of the profile's name; [`SessionError::Resume`] or
    /// [`SessionError::Ended`] if the record cannot be gone on with; [`SessionError::Journal`] if its first line cannot be
    /// written.
    pub fn build(self) -> Result<Session, SessionError> {
        let (mut session, driver, commands) = self.assemble()?;
        session.driver.spawn(Box::new(driver).run(commands));
        Ok(session)
    }

    /// The session, and what is to drive it with these commands.
    pub(super) fn assemble(self) -> Result<(Session, Driver, mpsc::Receiver<Command>), SessionError> {
        let Self { mut parts, id, mut beginning } = self;
        parts.client.adapter(Some(&parts.profile.provider)).map_err(SessionError::Build)?;
        let resumed_id = beginning.resume.as_ref().map(|record| record.header.session_id.clone());
        let id = resumed_id.or(id).unwrap_or_else(SessionId::generate);
        if let Some(record) = &beginning.resume {
            parts.lineage = Lineage::of_record(record.header.subagent.clone());
        }
        let lineage = &parts.lineage;
        let identity = Identity { session_id: id.clone(), depth: lineage.depth(), parent: lineage.parent() };
        let log = Arc::new(EventLog::new(identity));
        let (sender, commands) = mpsc::channel(MAX_COMMANDS);
        let (shared, shown) = watch::channel(Shared::default());
        beginning.start.limits.clone_from(&parts.config.limits);
        beginning.start.reasoning_effort.clone_from(&parts.config.reasoning_effort);
        let (client, tree) = (parts.client.clone(), Arc::clone(&lineage.tree));
        let origin = lineage.origin.clone();
        let mut driver = Driver::new(parts, Arc::clone(&log), shared);
        let Resumed { runs, run } = beginning.of(&mut driver, &log, origin)?;
        let recorder = driver.recorder();
        let handle = SessionHandle { commands: sender, shared: shown, client, recorder, tree };
        handle.tree.join(Member::new(Arc::clone(&log), &handle));
        let (runs, resumed) = (AtomicU64::new(runs), Mutex::new(run));
        Ok((Session { id, handle, runs, log, resumed, driver: JoinSet::new() }, driver, commands))
    }
}
