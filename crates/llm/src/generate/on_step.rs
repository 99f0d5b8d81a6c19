//! Callback for steps of a running generation.

use std::fmt;
use std::sync::Arc;

use super::result::StepResult;

/// Callback after each step of a generation, before the next step starts.
///
/// An error does not carry the steps before it, although they were paid for: this callback is how to keep them. It is also
/// called for a step whose tools are interrupted by the abort signal or a time limit, with the results available by
/// then.
#[derive(Clone)]
pub struct OnStep(Arc<Callback>);

type Callback = dyn Fn(&StepResult) + Send + Sync;

impl OnStep {
    /// Wraps a function, which must not block.
    pub fn new(callback: impl Fn(&StepResult) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    pub(super) fn call(&self, step: &StepResult) {
        (self.0)(step);
    }
}

impl fmt::Debug for OnStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStep(..)")
    }
}
