//! Inputs that are posted to a session from outside its host.

use pintle_llm::Fingerprint;
use serde::{Deserialize, Serialize};

use super::{Decision, Principal, UserMessage};

/// Input that was posted to a session, with the id that its sender chose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostedItem {
    /// Id, unique within the session. An input is taken once, however often it is posted.
    pub input_id: String,
    /// The input.
    pub input: PostedInput,
}

/// Input that a process can send to a session that it does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PostedInput {
    /// The next input: it starts a run if the session is idle, and is a follow-up otherwise.
    Message {
        /// The input.
        #[serde(flatten)]
        message: UserMessage,
        /// Author of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A message for the current run, to inject between two rounds; it starts a run if the session is idle.
    Say {
        /// The message.
        #[serde(flatten)]
        message: UserMessage,
        /// Author of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A message to inject between two rounds, or with the next input.
    Steer {
        /// The message.
        #[serde(flatten)]
        message: UserMessage,
        /// Author of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Stop the current turn and keep the session.
    Interrupt {
        /// Principal that interrupts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Stop all work and end the session permanently.
    Abort {
        /// Principal that ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Summarise the older part of the conversation.
    Compact {
        /// Principal that requested it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Rewind the conversation. Refused, with an event, during a run and for more entries than the history has.
    Rewind {
        /// Number of entries of the history that stay.
        turns: usize,
        /// Principal that rewinds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A decision on a call, with exactly these arguments.
    Decision {
        /// The model's id of the call.
        call_id: String,
        /// Fingerprint of the call, as in the request for approval.
        fingerprint: Fingerprint,
        /// The decision.
        decision: Decision,
        /// Principal that decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
}

impl PostedItem {
    /// Creates a posted input.
    #[must_use]
    pub fn new(input_id: impl Into<String>, input: PostedInput) -> Self {
        Self { input_id: input_id.into(), input }
    }
}
