//! Builds an audit from the events of a replay and the inputs of its record.

use std::collections::BTreeMap;

use pintle_agent::protocol::{CallKind, EventKind, SubagentStatus, TurnKind};
use pintle_agent::{ImageSummary, Record, Replay, SessionEvent, SessionId};
use pintle_env::Output;
use pintle_tools::FileChange;

use super::Audit;
use super::call::{
    ApprovalDecision, ApprovalHistory, CallEvent, CallExecution, CallHistory, CallJudgement, CallRecovery,
    CallResult, FileEdit, LateDecision, OutputText, Proposal, RecoveryAction,
};
use super::inputs::{Inputs, ProposedCall};
use super::session::{
    CheckpointHistory, EventStamp, InputHistory, InputSource, LimitHistory, Notice, NoticeKind,
    PolicyHistory, ReachedLimit, RewindHistory, SubagentHistory,
};
use super::summary::Summary;

/// Maximum size in bytes of each end of a large output that the record contains only in part.
const END: usize = 8 << 10;

/// Builder of an audit from the events of a session.
pub(super) struct Events {
    audit: Audit,
    inputs: Inputs,
    /// Calls by id, each with its position among all.
    calls: BTreeMap<String, (usize, CallHistory)>,
    /// Texts that the model read, by the id of the call.
    results: BTreeMap<String, String>,
    /// Texts of results without notes about changed arguments, by the id of the call.
    plain_results: BTreeMap<String, String>,
    intent: Option<InputHistory>,
    /// Number of the run that is in progress.
    run: Option<u64>,
}

impl Events {
    /// Returns the audit of a replay of this record.
    pub(super) fn audit(audit: Audit, record: &Record, replay: &Replay) -> Audit {
        let mut inputs = Inputs::from_record(record);
        let mut results = BTreeMap::new();
        for turn in replay.history.iter().filter(|turn| turn.kind == TurnKind::ToolResults) {
            let texts = turn.item.results().map(|result| (result.tool_call_id.clone(), result.text()));
            results.extend(texts);
        }
        let mut audit = audit;
        audit.models = std::mem::take(&mut inputs.models);
        let mut events = Self {
            audit,
            inputs,
            calls: BTreeMap::new(),
            results,
            plain_results: BTreeMap::new(),
            intent: None,
            run: None,
        };
        for event in &replay.events {
            events.take(event);
        }
        events.finish(replay)
    }

    fn finish(mut self, replay: &Replay) -> Audit {
        for (run, outcome) in &replay.outcomes {
            let begun = self
                .audit
                .inputs
                .iter_mut()
                .find(|input| input.source == InputSource::Submitted && input.run == Some(run.0));
            if let Some(begun) = begun {
                begun.run_ended = Some(outcome.status);
            }
        }
        let mut calls: Vec<(usize, CallHistory)> = self.calls.into_values().collect();
        calls.sort_by_key(|(order, _)| *order);
        self.audit.calls = calls.into_iter().map(|(_, call)| call).collect();
        for call in &mut self.audit.calls {
            call.outcome = call.outcome_so_far();
        }
        self.audit.state = replay.state;
        self.audit.spending.set_total(&replay.spent);
        self.audit.summary = Summary::from_calls(&self.audit.calls);
        self.audit
    }

    fn take(&mut self, event: &SessionEvent) {
        let moment = EventStamp::new(event.seq, event.timestamp);
        self.audit.last = Some(moment);
        match &event.kind {
            EventKind::ModelResponse { response_id, model, .. } => {
                self.response(moment, response_id, model);
            }
            EventKind::ToolCallRepaired { call_id, tool_name, repairs } => {
                let call = self.call(call_id, tool_name, moment, "TOOL_CALL_REPAIRED");
                // A call that is prepared again is repaired again.
                call.proposal.repairs.clone_from(repairs);
            }
            EventKind::CallJudged { call_id, tool_name, permission, steps, changed } => {
                let call = self.call(call_id, tool_name, moment, "CALL_JUDGED");
                let (permission, steps, changed) = (*permission, steps.clone(), changed.clone());
                call.judgements.push(CallJudgement { moment, permission, steps, changed });
            }
            EventKind::ToolCallStart { call_id, tool_name, call_kind, arguments } => {
                let call = self.call(call_id, tool_name, moment, "TOOL_CALL_START");
                call.proposal.kind = *call_kind;
                if call.proposal.moment.is_none() {
                    call.proposal.arguments = (**arguments).clone();
                }
            }
            EventKind::ToolCallEnd { .. } => self.call_ended(moment, &event.kind),
            EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::ApprovalLate { .. } => self.approval(moment, &event.kind),
            EventKind::SessionStart { .. } | _ => self.session_event(moment, &event.kind),
        }
    }

    /// Handles a response: adds its cost and the calls that it proposes.
    fn response(&mut self, moment: EventStamp, response_id: &str, model: &str) {
        let Some(response) = self.inputs.response(moment.at, Some(response_id)) else { return };
        self.audit.spending.add(&response.provider, model, &response.cost);
        for proposed in response.calls {
            let ProposedCall { id, model_id, tool, arguments, as_written, recorded, .. } = proposed;
            let proposal = Proposal {
                moment: Some(moment),
                model: Some(model.to_owned()),
                response_id: (!response_id.is_empty()).then(|| response_id.to_owned()),
                tool,
                kind: CallKind::default(),
                effect: recorded.effect,
                arguments,
                as_written,
                renamed_from: (model_id != id).then_some(model_id),
                repairs: Vec::new(),
            };
            let call = self.known_call(&id, || proposal);
            call.events.push(CallEvent { moment, kind: "MODEL_RESPONSE".to_owned() });
            if !recorded.starts.is_empty() {
                call.execution = Some(CallExecution {
                    starts: recorded.starts,
                    declared: recorded.declared,
                    ..CallExecution::default()
                });
            }
            self.plain_results.extend(recorded.result.map(|text| (id, text)));
        }
    }

    /// Returns the call with this id. An unknown call is added with this proposal.
    fn known_call(&mut self, id: &str, proposal: impl FnOnce() -> Proposal) -> &mut CallHistory {
        let order = self.calls.len();
        let (header, intent) = (&self.audit.session, &self.intent);
        let (_, call) = self.calls.entry(id.to_owned()).or_insert_with(|| {
            let agent = header.spawned_by.as_ref().map(|origin| origin.agent_id.clone());
            let mut call = CallHistory::new(id.to_owned(), header.id.clone(), agent, proposal());
            call.intent.clone_from(intent);
            (order, call)
        });
        call
    }

    /// Adds an event to its call, and returns the call.
    fn call(&mut self, id: &str, tool: &str, moment: EventStamp, kind: &str) -> &mut CallHistory {
        let call = self.known_call(id, || Proposal { tool: tool.to_owned(), ..Proposal::default() });
        call.events.push(CallEvent { moment, kind: kind.to_owned() });
        call
    }

    fn call_ended(&mut self, moment: EventStamp, kind: &EventKind) {
        let EventKind::ToolCallEnd {
            call_id,
            tool_name,
            output,
            error,
            timeout_ms,
            exit_code,
            duration_ms,
            changes,
            images: _,
        } = kind
        else {
            return;
        };
        let output = output_text(output);
        let plain = self.plain_results.remove(call_id);
        let read = self.results.remove(call_id);
        let text = match (plain, read) {
            // A note about changed arguments precedes the text. A rewind replaces it.
            (Some(plain), Some(read)) if read.ends_with(&plain) => read,
            (Some(plain), Some(_) | None) => plain,
            (None, Some(_) | None) => output.text.clone(),
        };
        let call = self.call(call_id, tool_name, moment, "TOOL_CALL_END");
        call.result = Some(CallResult { moment, error: *error, text });
        if let Some(execution) = &mut call.execution {
            execution.ended_at = Some(moment.at);
            execution.duration_ms = Some(*duration_ms);
            execution.exit_code = *exit_code;
            execution.timeout_ms = *timeout_ms;
            execution.output = Some(output);
            let edit = |change: &FileChange| {
                FileEdit::new(change.path.clone(), change.kind.clone(), change.diff.clone())
            };
            execution.changes = changes.iter().map(edit).collect();
        }
    }

    fn approval(&mut self, moment: EventStamp, kind: &EventKind) {
        match kind {
            EventKind::ApprovalRequested {
                call_id,
                tool_name,
                arguments,
                reason,
                fingerprint,
                call_kind,
                // The arguments and the reason contain it.
                sandbox: _,
            } => {
                let call = self.call(call_id, tool_name, moment, "APPROVAL_REQUESTED");
                call.proposal.kind = *call_kind;
                let ticket = fingerprint.to_string();
                let is_open = |last: &ApprovalHistory| last.decision.is_none() && last.ticket == ticket;
                // A resumed session asks about the same call again.
                if !call.approvals.last().is_some_and(is_open) {
                    call.approvals.push(ApprovalHistory {
                        requested: moment,
                        reason: reason.clone(),
                        ticket,
                        arguments: arguments.clone(),
                        decision: None,
                    });
                }
            }
            EventKind::ApprovalDecided { call_id, approved, ending, reason, by } => {
                let call = self.call(call_id, "", moment, "APPROVAL_DECIDED");
                if let Some(last) = call.approvals.last_mut().filter(|last| last.decision.is_none()) {
                    last.decision = Some(ApprovalDecision {
                        moment,
                        approved: *approved,
                        ending: *ending,
                        by: by.clone(),
                        reason: reason.clone(),
                    });
                }
            }
            EventKind::ApprovalLate { call_id, approved, reason } if self.calls.contains_key(call_id) => {
                let (approved, reason) = (*approved, reason.clone());
                let call = self.call(call_id, "", moment, "APPROVAL_LATE");
                call.late_decisions.push(LateDecision { moment, approved, reason });
            }
            EventKind::ApprovalLate { call_id, reason, .. } => {
                self.notice(moment, NoticeKind::LateDecision, format!("{call_id}: {reason}"));
            }
            EventKind::SessionStart { .. } | _ => {}
        }
    }

    fn notice(&mut self, moment: EventStamp, kind: NoticeKind, message: String) {
        self.audit.notices.push(Notice { moment, kind, message });
    }

    /// Handles an event that is not about one call.
    fn session_event(&mut self, moment: EventStamp, kind: &EventKind) {
        match kind {
            EventKind::SessionStart { working_directory, forked_from, .. } => {
                let header = &mut self.audit.session;
                header.working_directory.clone_from(working_directory);
                header.forked_from.clone_from(forked_from);
                header.created_at = Some(moment.at);
            }
            EventKind::UserInput { content, images, .. } => self.input(moment, content, images, false),
            EventKind::SteeringInjected { content, images, .. } => self.input(moment, content, images, true),
            EventKind::PolicyChanged(change) => {
                self.audit.policy.push(PolicyHistory { moment, change: change.clone() });
            }
            EventKind::CheckpointTaken { reason, checkpoint, turns } => {
                let (reason, checkpoint, turns) = (*reason, checkpoint.clone(), *turns as u64);
                self.audit.checkpoints.push(CheckpointHistory { moment, reason, checkpoint, turns });
            }
            EventKind::Rewound { turns } => {
                self.audit.rewinds.push(RewindHistory { moment, turns: *turns as u64 });
            }
            EventKind::SessionResumed { interrupted, repeated, reconciled } => {
                self.resumed(moment, interrupted, RecoveryAction::Interrupted);
                self.resumed(moment, repeated, RecoveryAction::Repeated);
                self.resumed(moment, reconciled, RecoveryAction::Reconciled);
                let message = "the process that ran the session ended, and another one resumed it";
                self.notice(moment, NoticeKind::Resumed, message.to_owned());
            }
            EventKind::CompactionEnd { .. } => {
                if let Some(response) = self.inputs.response(moment.at, None) {
                    let model = self.audit.models.iter().rev().find(|change| change.at <= moment.at);
                    let model = model.map(|change| change.model.clone()).unwrap_or_default();
                    self.audit.spending.add(&response.provider, &model, &response.cost);
                }
            }
            EventKind::SubagentSpawned { agent_id, child, task } => {
                self.spawned(moment, agent_id, child, task)
            }
            EventKind::SubagentEnded { agent_id, child, status, turns_used } => {
                self.subagent_ended(moment, agent_id, child, *status, *turns_used);
            }
            EventKind::Warning { message } => self.notice(moment, NoticeKind::Warning, message.clone()),
            EventKind::Error { error } => self.notice(moment, NoticeKind::Error, error.to_string()),
            EventKind::LoopDetection { message } => self.notice(moment, NoticeKind::Loop, message.clone()),
            EventKind::HistoryRepaired { message } => {
                self.notice(moment, NoticeKind::Repair, message.clone());
            }
            EventKind::SessionEnd { .. } | _ => self.limit(moment, kind),
        }
    }

    fn limit(&mut self, moment: EventStamp, kind: &EventKind) {
        let limit = match kind {
            EventKind::TurnLimit { round: Some(rounds), .. } => ReachedLimit::Rounds { rounds: *rounds },
            EventKind::TurnLimit { total_turns: Some(turns), .. } => ReachedLimit::Turns { turns: *turns },
            EventKind::BudgetReached { budget, limit, spent, needed, scope } => {
                let (budget, limit, spent, scope) = (*budget, *limit, *spent, *scope);
                ReachedLimit::Budget { budget, limit, spent, needed: *needed, scope }
            }
            EventKind::ContextFull { least_tokens, context_window } => {
                let (least_tokens, context_window) = (*least_tokens, *context_window);
                ReachedLimit::ContextWindow { least_tokens, context_window }
            }
            EventKind::SessionEnd { .. } | _ => return,
        };
        self.audit.limits.push(LimitHistory { moment, limit });
    }

    fn input(&mut self, moment: EventStamp, text: &str, images: &[ImageSummary], is_steering: bool) {
        let recorded = self.inputs.message(moment.at, text, is_steering);
        let unknown = if is_steering { InputSource::Steering } else { InputSource::Unknown };
        let source = recorded.as_ref().map_or(unknown, |message| message.source);
        if source == InputSource::Submitted {
            self.run = recorded.as_ref().and_then(|message| message.run);
        }
        let input = InputHistory {
            moment,
            source,
            run: self.run,
            by: recorded.as_ref().and_then(|message| message.by.clone()),
            posted_as: recorded.and_then(|message| message.posted_as),
            text: text.to_owned(),
            images: images.to_vec(),
            run_ended: None,
        };
        if !is_steering {
            self.intent = Some(input.clone());
        }
        self.audit.inputs.push(input);
    }

    fn resumed(&mut self, moment: EventStamp, ids: &[String], action: RecoveryAction) {
        for id in ids {
            let call = self.call(id, "", moment, "SESSION_RESUMED");
            call.recoveries.push(CallRecovery { moment, action });
        }
    }

    fn spawned(&mut self, moment: EventStamp, agent_id: &str, child: &SessionId, task: &str) {
        let call_id = self.inputs.spawning_call(child);
        if let Some(call_id) = &call_id {
            let call = self.call(call_id, "", moment, "SUBAGENT_SPAWNED");
            call.spawned.push(child.clone());
        }
        self.audit.subagents.push(SubagentHistory {
            agent_id: agent_id.to_owned(),
            session_id: child.clone(),
            task: task.to_owned(),
            call_id,
            spawned: moment,
            closed: None,
            status: None,
            turns: None,
            report: None,
        });
    }

    fn subagent_ended(
        &mut self,
        moment: EventStamp,
        agent_id: &str,
        child: &SessionId,
        status: SubagentStatus,
        turns: u64,
    ) {
        let is_it = |known: &&mut SubagentHistory| known.session_id == *child && known.agent_id == agent_id;
        if let Some(subagent) = self.audit.subagents.iter_mut().find(is_it) {
            subagent.closed = Some(moment);
            subagent.status = Some(status);
            subagent.turns = Some(turns);
        }
    }
}

/// Returns the text of an output, or both ends of a large output that the record contains only in part.
fn output_text(output: &Output) -> OutputText {
    let bytes = output.len().saturating_add(output.dropped());
    if let Ok(text) = output.to_text_lossy() {
        return OutputText { bytes, text, is_shortened: output.dropped() > 0 };
    }
    let head = output.head_text_lossy(END).unwrap_or_default();
    let tail = output.tail_text_lossy(END).unwrap_or_default();
    OutputText { bytes, text: format!("{head}\n[…]\n{tail}"), is_shortened: true }
}
