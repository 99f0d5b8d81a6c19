//! Fixtures of unit tests.

use async_trait::async_trait;
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};

/// Denies changes of files outside of a directory.
#[derive(Debug)]
pub(crate) struct ChangesBelow(pub(crate) &'static str);

#[async_trait]
impl Gate for ChangesBelow {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.writes().iter().find(|path| !path.starts_with(self.0)) {
            Some(path) => Verdict::deny(format!("{} is outside of {}", path.display(), self.0)),
            None => Verdict::ALLOW,
        }
    }
}
