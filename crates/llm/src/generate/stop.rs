//! When a tool loop ends before the model is done (client specification, section 4.3).

use std::fmt;
use std::sync::Arc;

use super::result::StepResult;

/// Looks at the steps so far after each round of tools and says whether that is enough.
///
/// A condition only ends a loop early; the limit of rounds holds in any case.
#[derive(Clone)]
pub struct StopCondition {
    holds: Arc<Holds>,
}

type Holds = dyn Fn(&[StepResult]) -> bool + Send + Sync;

impl StopCondition {
    /// Ends the loop when this says so. The steps are never empty.
    pub fn new(holds: impl Fn(&[StepResult]) -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds) }
    }

    /// Ends the loop after the round in which this tool was called.
    pub fn called(tool: impl Into<String>) -> Self {
        let tool = tool.into();
        Self::new(move |steps| {
            steps.last().is_some_and(|step| step.tool_calls().any(|call| call.name == tool))
        })
    }

    /// Ends the loop once the steps have used this many tokens.
    pub fn spent(tokens: u64) -> Self {
        Self::new(move |steps| {
            let spent = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.usage().total_tokens));
            spent >= tokens
        })
    }

    /// Ends the loop when either says so.
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
