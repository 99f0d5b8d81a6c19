//! Start of a session: new, with a history, or from a record.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pintle_tools::builtin::BackgroundCommands;

use super::hooks::HookPoint;
use super::posted::PostedState;
use super::{Driver, Recording, SegmentBoundary, SharedEnvironment};
use crate::protocol::{Action, Change, InputKind, PolicyChange, RunId, SessionState, Start, TurnContext};
use crate::record::{Journal, Record, Recorder, ReplayError};
use crate::session::{RunOwner, Session, SessionBuilder};
use crate::subagent::RecordedSubagent;
use crate::turn::Machine;

impl Driver {
    /// Starts a new session, or one with a history.
    pub(crate) fn start(
        &mut self,
        mut start: Start,
        shared: Option<SharedEnvironment>,
        recording: Recording,
    ) {
        if let Some(shared) = shared {
            self.environment.join(shared);
        }
        start.context = start.context.filter(|context| self.matches_profile(context));
        self.tools = self.profile.tool_registry.clone();
        self.machine = Machine::starting(start);
        self.subagents.inherit_names(self.machine.subagents_named());
        self.recording = recording;
        self.first_inputs = vec![InputKind::Opened {
            provider: self.profile.provider.clone(),
            model: self.profile.model.clone(),
            working_directory: self.environment.working_directory().display().to_string(),
        }];
        self.first_inputs.extend(self.delegated_authority());
        self.publish();
    }

    /// Returns the input that records the authority of a subagent. For other sessions, the application records it.
    fn delegated_authority(&self) -> Option<InputKind> {
        self.lineage.origin.as_ref()?;
        let grant = self.gates.iter().find_map(|gate| gate.authority())?;
        let change = PolicyChange { grant: Some(grant), ..PolicyChange::default() };
        Some(InputKind::PolicyChanged { change })
    }

    /// Replays a record into the machine and the event log, without performing any action.
    pub(crate) fn catch_up(
        &mut self,
        record: &Record,
        journal: Option<Box<dyn Journal>>,
    ) -> Result<(), ReplayError> {
        let start = record.header.start.clone();
        self.machine = record.go_through(
            start,
            |_| {},
            |entry, actions| {
                let (at, boundary) = (entry.input.at, SegmentBoundary::from_input(&entry.input.kind));
                for action in actions {
                    if let Action::Emit(event) = action {
                        self.emit(at, *event, boundary);
                    }
                }
            },
        )?;
        if let Some(last) = record.entries.last() {
            self.clock.advance_to(last.input.at);
        }
        self.tools = self.profile.tool_registry.clone();
        self.segment_counter.store(record.next_segment(), Ordering::Relaxed);
        self.recording = Recording::new(Some(Arc::new(Recorder::from_record(record.clone()))), journal);
        self.first_inputs = self.inputs_to_resume(record);
        self.posted = PostedState::from_record(record);
        self.runs.set_next(record.next_run());
        self.subagents.inherit_names(record.header.start.subagents_named);
        let keep_open = self.recording.subagents().is_some() && self.machine.state() != SessionState::Closed;
        self.subagents.restore(RecordedSubagent::all_of(record), self.machine.subagents_named(), keep_open);
        self.is_resuming = true;
        self.report_account(None);
        self.publish();
        Ok(())
    }

    pub(crate) fn background(&self) -> BackgroundCommands {
        self.background.clone()
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

    /// Adds the owner of a run that is unfinished in the record.
    pub(crate) fn adopt(&mut self, run: RunId, owner: RunOwner) {
        owner.started(self.log.next_seq());
        self.runs.add(run, owner);
    }

    /// Handles the first inputs of a new or resumed session.
    pub(super) async fn begin(&mut self) {
        for kind in std::mem::take(&mut self.first_inputs) {
            self.step(kind).await;
        }
        self.has_begun = true;
        self.start_hooks();
        if self.is_resuming {
            let spec = self.subagent_spec();
            let attached = self.subagents.attach(spec).await;
            let asks = self.asks_for();
            self.step(InputKind::Resumed { attached, asks }).await;
            // The attached subagents start now.
            self.follow_subagents().await;
        }
        self.follow_posted();
    }

    /// Returns the counter for run ids.
    pub(crate) fn run_counter(&self) -> Arc<AtomicU64> {
        self.runs.counter()
    }

    /// Returns a builder of a fork after the first `turns` history entries; `None` if there are fewer.
    #[allow(clippy::disallowed_methods, reason = "a fork has the gates of its origin")]
    pub(super) fn fork(&self, turns: usize) -> Option<SessionBuilder> {
        let start = self.machine.fork(turns, self.log.session_id().clone())?;
        let mut builder = Session::builder(
            self.client.clone(),
            self.base_profile.clone(),
            self.environment.current().clone(),
        )
        .with_config(self.config.clone())
        .with_clock(self.clock.clone())
        .shared_environment()
        .record(self.recording.is_kept())
        .start(start);
        let hooks = self.hooks.as_ref().map(HookPoint::hooks);
        builder.share(self.gates.to_vec(), self.approver.clone(), hooks, self.environment.share());
        if let Some(source) = self.budget.source() {
            builder = builder.budget_source(source);
        }
        Some(builder)
    }

    /// Returns the inputs that a resumed machine needs before `Resumed`.
    fn inputs_to_resume(&self, record: &Record) -> Vec<InputKind> {
        let changed = self.machine.context().is_some_and(|context| !self.matches_profile(context));
        let change = changed.then_some(InputKind::Configure { change: Change::Context });
        let is_folded = record.newest_version().0 != Record::VERSION;
        let taken_up = is_folded.then_some(InputKind::TakenUp { version: Record::VERSION });
        taken_up.into_iter().chain(record.ends_of_open_segments()).chain(change).collect()
    }

    /// Returns whether a context matches the profile, except for the text of the prompt.
    fn matches_profile(&self, context: &TurnContext) -> bool {
        let profile = &self.profile;
        context.provider == profile.provider
            && context.model == profile.model
            && context.tools == profile.offered_tools(!context.project.skills.is_empty())
            && context.provider_options == profile.provider_options
            && context.max_tokens == profile.max_output_tokens
    }
}
