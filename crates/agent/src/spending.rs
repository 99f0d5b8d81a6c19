//! Spending of a session and its subagents.

use std::collections::BTreeMap;

use crate::protocol::BudgetUsage;
use crate::session::{Session, SessionHandle};

/// Spending of a session and its subagents so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSpending {
    /// All amounts, as a budget counts them. [`BudgetUsage::cost`] is `None` once a price was unknown.
    pub total: BudgetUsage,
    /// Tokens and cost of the model calls, by model. A resumed session counts subagents that ended before only in the total.
    pub models: BTreeMap<String, BudgetUsage>,
}

impl Session {
    /// Returns the spending of this session and its subagents so far, also while they work. A running model call counts once it
    /// has ended.
    #[must_use]
    pub fn spending(&self) -> SessionSpending {
        self.handle.spending()
    }
}

impl SessionHandle {
    /// Returns the spending of the session and its subagents so far, like [`Session::spending`].
    #[must_use]
    pub fn spending(&self) -> SessionSpending {
        let link = self.link();
        let (total, own) = {
            let shared = link.shared.borrow();
            (shared.spent, shared.models.clone())
        };
        let models = link.tree.models_of(&link.commands).unwrap_or(own);
        SessionSpending { total, models }
    }
}
