//! Decisions on calls that need approval.

/// Decision of a person, or of an [`Approver`](crate::Approver), on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Let it run, once.
    Approve,
    /// Do not run it. The model gets the reason.
    Deny {
        /// Reason.
        reason: Option<String>,
    },
}
