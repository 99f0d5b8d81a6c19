//! What a call would change, found out by making it where nothing is kept.

mod overlay;

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;

use self::overlay::Overlay;
use crate::context::ToolContext;
use crate::pipeline::{PreparedCall, execute};
use crate::tool::FileChange;
use crate::truncate::TruncationLimits;

/// What came of a call that was made for show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rehearsal {
    /// The files that it would change, with their diffs.
    pub changes: Vec<FileChange>,
    /// What the model would read if it would fail as things are.
    pub failure: Option<String>,
}

impl Rehearsal {
    /// One of a call that would make these changes.
    #[must_use]
    pub fn new(changes: Vec<FileChange>) -> Self {
        Self { changes, failure: None }
    }

    /// As one of a call that would fail like this.
    #[must_use]
    pub fn with_failure(mut self, failure: Option<String>) -> Self {
        self.failure = failure;
        self
    }
}

/// Makes the call against an environment that reads from `env` and keeps what is written to itself, so that a person
/// can see what they decide on. `None` if the tool does not say that this is safe
/// ([`Tool::rehearsable`](crate::Tool::rehearsable)).
pub async fn rehearse(call: &PreparedCall, env: Arc<dyn ExecutionEnvironment>) -> Option<Rehearsal> {
    if !call.tool().is_rehearsable() {
        return None;
    }
    let cx = ToolContext::new(Arc::new(Overlay::new(env)), call.call_id());
    let execution = execute(call, &cx, &TruncationLimits::new()).await;
    let failure = execution.error.map(|_kind| execution.result.text());
    Some(Rehearsal::new(execution.changes).with_failure(failure))
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;
    use serde_json::json;

    use super::*;
    use crate::builtin::{ApplyPatch, EditFile, Shell, WriteFile};
    use crate::gate::workbench::call_in;
    use crate::tool::{ChangeKind, DynTool};

    fn env() -> Arc<MemoryEnvironment> {
        Arc::new(MemoryEnvironment::new("/p").with_file("a", "one\ntwo\n").with_file("d/b", "b\n"))
    }

    async fn rehearsed(tool: impl DynTool, arguments: serde_json::Value) -> Option<Rehearsal> {
        let env = env();
        let before = env.files();
        let call = call_in(env.as_ref(), tool, arguments).await;
        let rehearsal = rehearse(&call, env.clone()).await;
        assert_eq!(env.files(), before, "nothing is kept");
        rehearsal
    }

    #[tokio::test]
    async fn every_editing_tool_shows_its_changes_and_makes_none() {
        let edit = json!({"file_path": "a", "old_string": "two", "new_string": "2"});
        let edited = rehearsed(EditFile::new(), edit).await.unwrap();
        assert_eq!((edited.changes.len(), edited.failure), (1, None));
        assert!(edited.changes[0].diff.contains("-two\n+2"), "{}", edited.changes[0].diff);

        let written =
            rehearsed(WriteFile::new(), json!({"file_path": "new/c", "content": "c\n"})).await.unwrap();
        assert_eq!((&written.changes[0].kind, written.failure), (&ChangeKind::Added, None));

        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: e/a\n@@\n-one\n+1\n*** Delete File: d/b\n*** Add File: d/c\n+c\n*** End Patch\n";
        let patched = rehearsed(ApplyPatch::new(), json!({"patch": patch})).await.unwrap();
        let mut kinds: Vec<String> =
            patched.changes.iter().map(|change| format!("{} {:?}", change.path, change.kind)).collect();
        kinds.sort();
        assert_eq!(kinds, ["d/b Deleted", "d/c Added", "e/a Renamed { from: \"a\" }"]);
        assert_eq!(patched.failure, None);
    }

    #[tokio::test]
    async fn a_call_that_would_fail_says_so_and_a_command_is_not_rehearsed() {
        let edit = json!({"file_path": "a", "old_string": "three", "new_string": "3"});
        let edited = rehearsed(EditFile::new(), edit).await.unwrap();
        assert!(edited.changes.is_empty());
        assert!(edited.failure.unwrap().starts_with("Tool error (edit_file)"));
        assert_eq!(rehearsed(Shell::new(), json!({"command": "rm a"})).await, None);
    }
}
