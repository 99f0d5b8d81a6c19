//! Files below the directories that a call reads.

use std::path::Path;

use pintle_env::{EnvError, ExecutionEnvironment, WalkRequest};
use pintle_tools::gate::Permission;
use pintle_tools::{Effect, ToolKind};

use super::{CallFacts, Rules};

impl Rules {
    /// Returns the facts about a call that reads a directory, with the files below that rules name which deny or ask: a search
    /// reads them, too. `None` if no rule can name any.
    ///
    /// Ignored files are left out, as searches leave them out.
    pub(crate) async fn with_searched(
        &self,
        call: &CallFacts,
        env: &dyn ExecutionEnvironment,
    ) -> Option<CallFacts> {
        if call.effect != Effect::Read || ToolKind::from_name(&call.kind) == Some(ToolKind::ListDir) {
            return None;
        }
        let mut facts = None;
        for directory in call.paths.iter().filter(|path| self.may_restrict_below(call, path)) {
            let facts = facts.get_or_insert_with(|| call.clone());
            match env.walk(&WalkRequest::new(directory)).await {
                Ok(found) => {
                    let files = found.entries.iter().map(|entry| directory.join(&entry.path));
                    facts.paths.extend(files.filter(|path| self.restricts(call, path)));
                    facts.has_unresolved_paths |= found.reached.is_some();
                }
                // A file is judged by its own path.
                Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => {}
                Err(_) => facts.has_unresolved_paths = true,
            }
        }
        facts
    }

    fn may_restrict_below(&self, call: &CallFacts, directory: &Path) -> bool {
        self.restricting().any(|rule| rule.may_name_below(call, directory))
    }

    fn restricts(&self, call: &CallFacts, path: &Path) -> bool {
        self.restricting().any(|rule| rule.names_path(call, path))
    }

    fn restricting(&self) -> impl Iterator<Item = &super::Rule> {
        let restricts = |permission| matches!(permission, Permission::Deny | Permission::Ask);
        self.0.iter().filter(move |entry| restricts(entry.permission)).map(|entry| &entry.rule)
    }
}
