//! Where in a tree of sessions a session stands.

use std::sync::Arc;

use super::{Above, Tree};
use crate::protocol::{SessionId, SubagentOrigin};

/// What a session knows of those around it.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    /// Every session of the tree.
    pub(crate) tree: Arc<Tree>,
    /// Set for a subagent.
    pub(crate) origin: Option<SubagentOrigin>,
    /// Takes what the session spends to the one that spawned it.
    pub(crate) above: Option<Above>,
}

impl Lineage {
    /// That of a session that a host makes.
    pub(crate) fn root() -> Self {
        Self { tree: Arc::default(), origin: None, above: None }
    }

    /// That of a session that goes on from a record, with nobody above it any more.
    pub(crate) fn of_record(origin: Option<SubagentOrigin>) -> Self {
        Self { origin, ..Self::root() }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.origin.as_ref().map_or(0, |origin| origin.depth)
    }

    pub(crate) fn parent(&self) -> Option<SessionId> {
        self.origin.as_ref().map(|origin| origin.parent.clone())
    }
}
