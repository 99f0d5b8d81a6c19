//! Audit of a recorded session: requests, approvals, executions, changes and cost.
//!
//! [`Audit::of_record`] is a function of the record. It does not verify the record: the store does. An [`AuditReport`]
//! contains both the audit and the verification.
//!
//! ```
//! use pintle_agent::Record;
//! use pintle_governance::audit::{Audit, AuditError};
//!
//! fn refused(record: &Record) -> Result<Vec<String>, AuditError> {
//!     let audit = Audit::of_record(record)?;
//!     let refused = audit.calls.iter().filter(|call| call.outcome.is_refused());
//!     Ok(refused.map(|call| format!("{} {}", call.call_id, call.outcome.as_str())).collect())
//! }
//! ```

mod call;
mod chain;
mod events;
mod inputs;
mod redact;
mod session;
mod spending;
mod summary;
#[cfg(test)]
mod tests;

use pintle_agent::{Record, ReplayError, SessionId, SessionState};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::call::{
    ApprovalDecision, ApprovalHistory, CallEvent, CallExecution, CallHistory, CallJudgement, CallOutcome,
    CallRecovery, CallResult, FileEdit, LateDecision, OutputText, Proposal, RecoveryAction,
};
pub use self::chain::{ChainProblem, ChainReport};
use self::events::Events;
pub use self::session::{
    CheckpointHistory, EventStamp, InputHistory, InputSource, LimitHistory, ModelChange, Notice, NoticeKind,
    PolicyHistory, ReachedLimit, RewindHistory, SessionHeader, SpawnedBy, SubagentHistory, UnreadInputs,
};
pub use self::spending::{ModelSpending, Spending, TotalSpending};
pub use self::summary::{FileCount, HostCount, RefusedCall, Summary, ToolCount};

/// Audit of a session with the verification of its record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AuditReport {
    /// Session.
    pub session_id: SessionId,
    /// Verification of the record; `None` if it was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainReport>,
    /// The audit; `None` if the record is unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// Why there is no audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Activity of a session, according to its record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Audit {
    /// Identity of the session.
    pub session: SessionHeader,
    /// State at the end of the record.
    pub state: SessionState,
    /// Last event; `None` if the record has no event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<EventStamp>,
    /// Models, the oldest first.
    pub models: Vec<ModelChange>,
    /// Permissions of the session at its start, and their changes.
    pub policy: Vec<PolicyHistory>,
    /// Inputs and injected messages.
    pub inputs: Vec<InputHistory>,
    /// Calls, in the model's order.
    pub calls: Vec<CallHistory>,
    /// Subagents.
    pub subagents: Vec<SubagentHistory>,
    /// Tokens and cost.
    pub spending: Spending,
    /// Limits that stopped the loop.
    pub limits: Vec<LimitHistory>,
    /// Checkpoints of the workspace.
    pub checkpoints: Vec<CheckpointHistory>,
    /// Rewinds of the conversation.
    pub rewinds: Vec<RewindHistory>,
    /// Errors, warnings and other notes.
    pub notices: Vec<Notice>,
    /// Counts over the calls.
    pub summary: Summary,
    /// End of the record that this version cannot read; `None` if it reads the whole record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<UnreadInputs>,
}

/// Reason why there is no audit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The record cannot be replayed.
    #[error("the record cannot be replayed")]
    Replay(#[source] ReplayError),
    /// A secret is a word that the audit itself uses.
    #[error("a secret cannot be distinguished from a word of the audit")]
    Redaction(#[source] serde_json::Error),
}

/// Returns the JSON Schema (draft 2020-12) of a serialised [`AuditReport`]. Objects may have more fields than it names.
#[must_use]
pub fn report_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<AuditReport>().to_value()
}

impl AuditReport {
    /// Creates the report of a session from its audit.
    #[must_use]
    pub fn new(audit: Audit) -> Self {
        Self { session_id: audit.session.id.clone(), chain: None, audit: Some(audit), problem: None }
    }

    /// Creates the report of a session whose record is unreadable.
    #[must_use]
    pub fn unreadable(session_id: SessionId, problem: impl Into<String>) -> Self {
        Self { session_id, chain: None, audit: None, problem: Some(problem.into()) }
    }

    /// Sets the verification of the record.
    #[must_use]
    pub fn with_chain(mut self, chain: ChainReport) -> Self {
        self.chain = Some(chain);
        self
    }

    /// Returns whether the record of the session, and each record of a subagent that was read, is verified, intact and
    /// read to its end.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let is_read = match &self.audit {
            Some(audit) => {
                let mut reports = audit.subagents.iter().filter_map(|subagent| subagent.report.as_ref());
                audit.unread.is_none() && reports.all(|report| report.is_intact())
            }
            None => false,
        };
        is_read && self.chain.as_ref().is_some_and(ChainReport::is_intact)
    }

    /// Returns the reports of the session and of its subagents, at any depth.
    #[must_use]
    pub fn tree(&self) -> Vec<&Self> {
        let mut tree = vec![self];
        let subagents = self.audit.iter().flat_map(|audit| &audit.subagents);
        tree.extend(subagents.filter_map(|subagent| subagent.report.as_deref()).flat_map(Self::tree));
        tree
    }

    /// Returns all calls of the session and of its subagents.
    pub fn calls(&self) -> impl Iterator<Item = &CallHistory> {
        self.tree().into_iter().filter_map(|report| report.audit.as_ref()).flat_map(|audit| &audit.calls)
    }
}

impl Audit {
    /// Returns the audit of a recorded session. It sends no request and runs no tool.
    ///
    /// If a replay by this version diverges from the record, the audit ends there, and [`unread`](Self::unread) contains
    /// the reason. The caller adds the audits of subagents.
    ///
    /// # Errors
    ///
    /// [`AuditError::Replay`] if a newer version wrote the end of the record.
    pub fn of_record(record: &Record) -> Result<Self, AuditError> {
        let at = match record.replay() {
            Ok(replay) => return Ok(Events::audit(Self::empty(record), record, &replay)),
            Err(ReplayError::Diverged(at)) => at,
            Err(error @ (ReplayError::Version { .. } | _)) => return Err(AuditError::Replay(error)),
        };
        let readable = record.before(at.input);
        let replay = readable.replay().map_err(AuditError::Replay)?;
        let mut audit = Self::empty(record);
        audit.unread = Some(UnreadInputs {
            input: at.input as u64,
            inputs: record.entries.len().saturating_sub(at.input) as u64,
            reason: at.to_string(),
        });
        Ok(Events::audit(audit, &readable, &replay))
    }

    /// Returns the call with this id.
    #[must_use]
    pub fn call(&self, call_id: &str) -> Option<&CallHistory> {
        self.calls.iter().find(|call| call.call_id == call_id)
    }

    fn empty(record: &Record) -> Self {
        let header = &record.header;
        let spawned_by = header.subagent.as_ref().map(|origin| SpawnedBy {
            agent_id: origin.agent_id.clone(),
            parent: origin.parent.clone(),
            depth: origin.depth,
        });
        Self {
            session: SessionHeader {
                id: header.session_id.clone(),
                spawned_by,
                forked_from: header.start.forked_from.clone(),
                working_directory: String::new(),
                created_at: None,
                record_version: header.version,
                made_by: header.made_by.clone(),
            },
            state: SessionState::Idle,
            last: None,
            models: Vec::new(),
            policy: Vec::new(),
            inputs: Vec::new(),
            calls: Vec::new(),
            subagents: Vec::new(),
            spending: Spending::default(),
            limits: Vec::new(),
            checkpoints: Vec::new(),
            rewinds: Vec::new(),
            notices: Vec::new(),
            summary: Summary::default(),
            unread: None,
        }
    }
}
