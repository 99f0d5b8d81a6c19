//! Position of a session in its tree.

use std::sync::Arc;

use super::grant::Grants;
use super::{ParentLink, Tree};
use crate::protocol::{SessionId, SubagentOrigin};

/// Relations of a session to the other sessions of its tree.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    /// All sessions of the tree.
    pub(crate) tree: Arc<Tree>,
    /// Set for a subagent.
    pub(crate) origin: Option<SubagentOrigin>,
    /// Reports the session's spending to its parent.
    pub(crate) parent_link: Option<ParentLink>,
    /// The parent's answers to requests for more budget.
    pub(crate) grants: Grants,
}

impl Lineage {
    /// Creates the lineage of a session that the embedding application builds.
    pub(crate) fn root() -> Self {
        Self { tree: Arc::default(), origin: None, parent_link: None, grants: Grants::default() }
    }

    /// Creates the lineage of a session that is resumed from a record. Its former parent is not reachable.
    pub(crate) fn of_record(origin: Option<SubagentOrigin>) -> Self {
        Self { origin, ..Self::root() }
    }

    /// Creates the lineage of a subagent of this session.
    pub(super) fn child(&self, origin: SubagentOrigin, parent_link: ParentLink, grants: Grants) -> Self {
        let tree = Arc::clone(&self.tree);
        Self { tree, origin: Some(origin), parent_link: Some(parent_link), grants }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.origin.as_ref().map_or(0, |origin| origin.depth)
    }

    pub(crate) fn parent(&self) -> Option<SessionId> {
        self.origin.as_ref().map(|origin| origin.parent.clone())
    }
}
