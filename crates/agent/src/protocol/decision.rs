//! Decisions on calls that need approval.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Decision of a user, or of an [`Approver`](crate::Approver), on one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// Let it run, once.
    Approve,
    /// Let it run, once, with these arguments, an object. They are validated and judged like a new call.
    Change {
        /// The arguments.
        arguments: Value,
    },
    /// Do not run it. The model gets the reason.
    Deny {
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}
