//! Subagents of which a record tells, and which the program that ran them took along when it ended.

use std::sync::Arc;

use tokio::sync::watch;

use super::report::Report;
use super::worker::Desk;
use crate::protocol::{InputKind, SubagentStatus};
use crate::record::Record;

/// Why an agent failed whose program ended.
const LOST: &str = "the program that ran it ended, and the agent with it; what it had changed is still there";

/// What is left of the last message of an agent that had ended before its program did.
const NOT_KEPT: &str =
    "(The program that ran this agent has ended since, and its last message was not kept.)";

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PastSubagent {
    pub(super) name: String,
    /// How it had ended, and after how many answers; `None` if it was open when the program ended.
    ended: Option<(SubagentStatus, u64)>,
}

impl PastSubagent {
    /// Those of a record, in the order in which they were spawned.
    pub(crate) fn of(record: &Record) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for entry in &record.entries {
            if let InputKind::ChildSpawned { agent, .. } = &entry.input.kind {
                all.push(Self { name: agent.clone(), ended: None });
            } else if let InputKind::ChildEnded { agent, status, turns_used } = &entry.input.kind
                && let Some(known) = all.iter_mut().find(|known| known.name == *agent)
            {
                known.ended = Some((*status, *turns_used));
            }
        }
        all
    }

    /// What the tools find of it: it is closed, and this is known of it.
    pub(super) fn desk(&self) -> Arc<watch::Sender<Desk>> {
        let report = match self.ended {
            None => Report::failed(LOST, String::new(), 0),
            Some((SubagentStatus::Completed, turns_used)) => {
                let status = SubagentStatus::Completed;
                Report { status, output: NOT_KEPT.to_owned(), reason: None, turns_used }
            }
            Some((SubagentStatus::Failed | SubagentStatus::Running, turns_used)) => {
                Report::failed("it failed", NOT_KEPT.to_owned(), turns_used)
            }
        };
        Arc::new(watch::Sender::new(Desk::closed(report)))
    }
}
