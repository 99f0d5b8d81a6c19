//! Conditions that end a tool loop early (client specification, section 4.3).

use std::fmt;
use std::sync::Arc;

use super::result::StepResult;

/// Condition that ends a tool loop, checked after each round of tools.
///
/// The limit on rounds applies in any case.
#[derive(Clone)]
pub struct StopCondition {
    holds: Arc<Holds>,
}

type Holds = dyn Fn(&[StepResult]) -> bool + Send + Sync;

impl StopCondition {
    /// Ends the loop when the predicate returns `true`. The list of steps is never empty.
    pub fn new(holds: impl Fn(&[StepResult]) -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds) }
    }

    /// Ends the loop after a round with a call of this tool.
    pub fn called(tool: impl Into<String>) -> Self {
        let tool = tool.into();
        Self::new(move |steps| {
            steps.last().is_some_and(|step| step.tool_calls().any(|call| call.name == tool))
        })
    }

    /// Ends the loop when all steps together have used at least this many tokens.
    pub fn spent(tokens: u64) -> Self {
        Self::new(move |steps| {
            let spent = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.usage().total_tokens));
            spent >= tokens
        })
    }

    /// Ends the loop when either condition holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |steps| self.holds(steps) || other.holds(steps))
    }

    pub(super) fn holds(&self, steps: &[StepResult]) -> bool {
        (self.holds)(steps)
    }
}

impl fmt::Debug for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopCondition(..)")
    }
}
