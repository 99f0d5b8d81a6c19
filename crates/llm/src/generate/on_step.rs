//! Who hears of the steps of a generation while it runs.

use std::fmt;
use std::sync::Arc;

use super::result::StepResult;

/// Is told of each step of a generation once it is over, before the next begins.
///
/// This is how the steps of a generation that fails later are kept: an error has nothing of them, and they were paid
/// for. A step whose tools are cut off, by the abort signal or a time limit, is told as well, with the results that
/// were there by then.
#[derive(Clone)]
pub struct OnStep(Arc<Listener>);

type Listener = dyn Fn(&StepResult) + Send + Sync;

impl OnStep {
    /// Tells this function, which must not block.
    pub fn new(listener: impl Fn(&StepResult) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(super) fn tell(&self, step: &StepResult) {
        (self.0)(step);
    }
}

impl fmt::Debug for OnStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStep(..)")
    }
}
