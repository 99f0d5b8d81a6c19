//! Start of a session: new, with a history, or from a record.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pintle_env::ExecutionEnvironment;
use tokio::sync::OnceCell;

use super::{Driver, Recording, SegmentBoundary};
use crate::prompt::EnvironmentContext;
use crate::protocol::{Action, Change, InputKind, RunId, SessionState, Start, TurnContext};
use crate::record::{Journal, Record, Recorder, ReplayError};
use crate::session::{RunOwner, Session, SessionBuilder};
use crate::subagent::RecordedSubagent;
use crate::turn::Machine;

/// State of the execution environment that a session and its forks share.
#[derive(Clone, Debug)]
pub(crate) struct SharedEnvironment {
    /// Description in the prompt.
    description: Arc<OnceCell<EnvironmentContext>>,
    /// Whether the first of them that uses the environment has to initialise it.
    initialize: bool,
    /// Environment of the first of them.
    owned: Arc<dyn ExecutionEnvironment>,
    initialized: Arc<OnceCell<()>>,
}

impl Driver {
    /// Starts a new session, or one with a history.
    pub(crate) fn start(
        &mut self,
        mut start: Start,
        shared: Option<SharedEnvironment>,
        recorder: Option<Arc<Recorder>>,
    ) {
        if let Some(shared) = shared {
            self.environment = shared.description;
            self.initialize = shared.initialize;
            self.owned_env = shared.owned;
            self.initialized = shared.initialized;
        }
        start.context = start.context.filter(|context| self.matches_profile(context));
        self.tools = self.profile.tool_registry.clone();
        self.machine = Machine::starting(start);
        self.subagents.inherit_names(self.machine.subagents_named());
        self.recording = Recording::to(recorder);
        self.open();
        self.publish();
    }

    /// Brings machine and events to the end of a record, without performing any action.
    pub(crate) fn catch_up(&mut self, record: &Record, journal: Option<Journal>) -> Result<(), ReplayError> {
        self.machine = Machine::starting(record.header.start.clone());
        for (index, entry) in record.entries.iter().enumerate() {
            let input = entry.input.clone();
            let (at, boundary) = (input.at, SegmentBoundary::of(&input.kind));
            let actions = self.machine.step(input);
            record.compare(index, entry, &actions)?;
            for action in actions {
                if let Action::Emit(event) = action {
                    self.emit(at, *event, boundary);
                }
            }
        }
        if let Some(last) = record.entries.last() {
            self.clock.advance_to(last.input.at);
        }
        self.tools = self.profile.tool_registry.clone();
        self.segment_counter.store(record.next_segment(), Ordering::Relaxed);
        self.recording = Recording::to(Some(Arc::new(Recorder::of(record.clone(), journal))));
        self.to_resume = self.inputs_to_resume(record);
        self.subagents.inherit_names(record.header.start.subagents_named);
        self.subagents.restore(&RecordedSubagent::all_of(record), self.machine.subagents_named());
        self.publish();
        Ok(())
    }

    /// Steps the machine with its first input, which only leads to events, so that it precedes any command.
    fn open(&mut self) {
        let at = self.clock.now();
        let kind = InputKind::Opened {
            provider: self.profile.provider.clone(),
            model: self.profile.model.clone(),
            working_directory: self.env.working_directory().display().to_string(),
        };
        for action in self.advance(at, kind) {
            if let Action::Emit(event) = action {
                self.emit(at, *event, None);
            }
        }
    }

    pub(crate) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.recording.recorder.clone()
    }

    pub(crate) fn state(&self) -> SessionState {
        self.machine.state()
    }

    pub(crate) fn current_run(&self) -> Option<RunId> {
        self.machine.current_run()
    }

    /// Adds the owner of a run that a record left unfinished.
    pub(crate) fn adopt(&mut self, run: RunId, owner: RunOwner) {
        owner.started(self.log.next_seq());
        self.runs.insert(run, owner);
    }

    /// Performs the first steps of a resumed session.
    pub(super) async fn resume(&mut self) {
        for kind in std::mem::take(&mut self.to_resume) {
            self.step(kind).await;
        }
    }

    /// Returns a builder of a fork after the first `turns` history entries; `None` if there are fewer.
    pub(super) fn fork(&self, turns: usize) -> Option<SessionBuilder> {
        let start = self.machine.fork(turns, self.log.session_id().clone())?;
        let mut builder =
            Session::builder(self.client.clone(), self.base_profile.clone(), Arc::clone(&self.env))
                .config(self.config.clone())
                .clock(self.clock.clone())
                .shared_environment()
                .record(self.recording.is_kept())
                .start(start);
        builder.share(self.gates.to_vec(), self.approver.clone(), self.shared_environment());
        Some(builder)
    }

    fn shared_environment(&self) -> SharedEnvironment {
        SharedEnvironment {
            description: Arc::clone(&self.environment),
            initialize: self.initialize,
            owned: Arc::clone(&self.owned_env),
            initialized: Arc::clone(&self.initialized),
        }
    }

    /// Returns the inputs that a resumed machine needs first.
    fn inputs_to_resume(&self, record: &Record) -> Vec<InputKind> {
        let changed = self.machine.context().is_some_and(|context| !self.matches_profile(context));
        let change = changed.then_some(InputKind::Configure { change: Change::Context });
        record.ends_of_open_segments().into_iter().chain(change).chain([InputKind::Resumed]).collect()
    }

    /// Returns whether a context matches the profile, the text of the prompt aside.
    fn matches_profile(&self, context: &TurnContext) -> bool {
        let profile = &self.profile;
        context.provider == profile.provider
            && context.model == profile.model
            && context.tools == profile.tools()
            && context.provider_options == profile.provider_options
            && context.max_tokens == profile.max_output_tokens
    }
}
