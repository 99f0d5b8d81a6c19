//! What a session begins with: nothing, a history, or the record of one whose host is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pintle_env::ExecutionEnvironment;
use tokio::sync::OnceCell;

use super::{Border, Driver, Recording};
use crate::id::RunId;
use crate::prompt::EnvironmentContext;
use crate::record::{Journal, Record, Recorder, ReplayError};
use crate::session::{Owner, Session, SessionBuilder};
use crate::subagent::RecordedSubagent;
use crate::turn::{Action, Change, InputKind, Machine, SessionState, Start, TurnContext};

/// What is known of the place where tools run, by a session and its forks together.
#[derive(Clone, Debug)]
pub(crate) struct SharedFacts {
    environment: Arc<OnceCell<EnvironmentContext>>,
    /// Whether the first of them that looks has to initialise their home.
    initialize: bool,
    /// Where the first of them began.
    home: Arc<dyn ExecutionEnvironment>,
    initialized: Arc<OnceCell<()>>,
}

impl Driver {
    /// Begins with what is given.
    pub(crate) fn begin(
        &mut self,
        mut start: Start,
        facts: Option<SharedFacts>,
        recorder: Option<Arc<Recorder>>,
    ) {
        if let Some(facts) = facts {
            self.environment = facts.environment;
            self.initialize = facts.initialize;
            self.home = facts.home;
            self.initialized = facts.initialized;
        }
        start.context = start.context.filter(|context| self.is_of_profile(context));
        self.tools = self.profile.tool_registry.clone();
        self.machine = Machine::starting(start);
        self.subagents.inherit_names(self.machine.subagents_named());
        self.recording = Recording::to(recorder);
        self.open();
        self.show();
    }

    /// Brings machine and events to where the record ends, and does nothing of what it tells.
    pub(crate) fn catch_up(&mut self, record: &Record, journal: Option<Journal>) -> Result<(), ReplayError> {
        self.machine = Machine::starting(record.header.start.clone());
        for (index, entry) in record.entries.iter().enumerate() {
            let input = entry.input.clone();
            let (at, border) = (input.at, Border::of(&input.kind));
            let actions = self.machine.step(input);
            record.compare(index, entry, &actions)?;
            for action in actions {
                if let Action::Emit(event) = action {
                    self.emit(at, *event, border);
                }
            }
        }
        if let Some(last) = record.entries.last() {
            self.clock.has_been(last.input.at);
        }
        self.tools = self.profile.tool_registry.clone();
        self.segments_drawn.store(record.next_segment(), Ordering::Relaxed);
        self.recording = Recording::to(Some(Arc::new(Recorder::of(record.clone(), journal))));
        self.to_resume = self.inputs_to_resume(record);
        self.subagents.inherit_names(record.header.start.subagents_named);
        self.subagents.restore(&RecordedSubagent::all_of(record), self.machine.subagents_named());
        self.show();
        Ok(())
    }

    /// The first input, which asks for nothing but events: the session has begun before anyone can submit to it.
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

    /// The run that is served.
    pub(crate) fn served_run(&self) -> Option<RunId> {
        self.machine.served()
    }

    /// Lets somebody wait for a run.
    pub(crate) fn adopt(&mut self, run: RunId, owner: Owner) {
        owner.begins(self.log.next_seq());
        self.runs.insert(run, owner);
    }

    /// The first thing that a resumed session does.
    pub(super) async fn resume(&mut self) {
        for kind in std::mem::take(&mut self.to_resume) {
            self.step(kind).await;
        }
    }

    /// A session that goes on from the first `turns` entries of this one's history; `None` if there are not so many.
    pub(super) fn fork(&self, turns: usize) -> Option<SessionBuilder> {
        let start = self.machine.fork(turns, self.log.session_id().clone())?;
        let mut builder = Session::builder(self.client.clone(), self.given.clone(), Arc::clone(&self.env))
            .config(self.config.clone())
            .clock(self.clock.clone())
            .shared_environment()
            .record(self.recording.recorder.as_ref().is_some_and(|recorder| recorder.keeps()))
            .start(start);
        builder.share(self.gates.to_vec(), self.approver.clone(), self.facts());
        Some(builder)
    }

    fn facts(&self) -> SharedFacts {
        SharedFacts {
            environment: Arc::clone(&self.environment),
            initialize: self.initialize,
            home: Arc::clone(&self.home),
            initialized: Arc::clone(&self.initialized),
        }
    }

    /// What the machine must know before it goes on.
    fn inputs_to_resume(&self, record: &Record) -> Vec<InputKind> {
        let ends = record.open_segments().into_iter().map(|(segment, kind)| InputKind::SegmentClosed {
            segment,
            kind,
            text: String::new(),
            interrupted: true,
        });
        let changed = self.machine.context().is_some_and(|context| !self.is_of_profile(context));
        let change = changed.then_some(InputKind::Configure { change: Change::Context });
        ends.chain(change).chain([InputKind::Resumed]).collect()
    }

    /// Whether requests of this context are what the profile asks for, the words of the prompt aside.
    fn is_of_profile(&self, context: &TurnContext) -> bool {
        let profile = &self.profile;
        context.provider == profile.provider
            && context.model == profile.model
            && context.tools == profile.tools()
            && context.provider_options == profile.provider_options
            && context.max_tokens == profile.max_output_tokens
    }
}
