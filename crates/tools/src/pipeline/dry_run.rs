//! Previews of the changes of a call, made by running it in an environment that keeps nothing.

mod overlay;

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;

use self::overlay::Overlay;
use super::{PreparedCall, execute};
use crate::context::ToolContext;
use crate::tool::FileChange;
use crate::truncate::TruncationLimits;

/// The outcome of a [`dry_run`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DryRun {
    /// The files that the call would change, with their diffs.
    pub changes: Vec<FileChange>,
    /// The text that the model would read, if the call would fail in the present state.
    pub failure: Option<String>,
}

impl DryRun {
    /// Creates the dry run of a call that would make these changes.
    #[must_use]
    pub fn new(changes: Vec<FileChange>) -> Self {
        Self { changes, failure: None }
    }

    /// Sets the failure of the call, if it would fail.
    #[must_use]
    pub fn with_failure(mut self, failure: Option<String>) -> Self {
        self.failure = failure;
        self
    }
}

/// Runs the call in an environment that reads from `env` and keeps writes in memory, so that a user can see the changes
/// before deciding. Returns `None` if the tool does not [support](crate::Tool::supports_dry_run) dry runs.
pub async fn dry_run(call: &PreparedCall, env: Arc<dyn ExecutionEnvironment>) -> Option<DryRun> {
    if !call.tool().can_dry_run() {
        return None;
    }
    // The real execution needs the parsed input.
    let call = call.without_input();
    let env = Arc::clone(call.judged_in(&env));
    let cx = ToolContext::new(Arc::new(Overlay::new(env)), call.call_id());
    let execution = execute(&call, &cx, &TruncationLimits::new()).await;
    let failure = execution.error.map(|_kind| execution.result.text());
    Some(DryRun::new(execution.changes).with_failure(failure))
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;
    use serde_json::json;

    use super::*;
    use crate::builtin::{ApplyPatch, EditFile, Shell, WriteFile};
    use crate::tests::probe::{call_in, execute_in};
    use crate::tool::{ChangeKind, DynTool};

    fn env() -> Arc<MemoryEnvironment> {
        Arc::new(MemoryEnvironment::new("/p").with_file("a", "one\ntwo\n").with_file("d/b", "b\n"))
    }

    async fn dry_run_of(tool: impl DynTool, arguments: serde_json::Value) -> Option<DryRun> {
        let env = env();
        let before = env.files();
        let call = call_in(env.as_ref(), tool, arguments).await;
        let dry_run = dry_run(&call, env.clone()).await;
        assert_eq!(env.files(), before, "nothing is kept");
        dry_run
    }

    #[tokio::test]
    async fn editing_tools_show_their_changes_and_make_none() {
        let edit = json!({"file_path": "a", "old_string": "two", "new_string": "2"});
        let edited = dry_run_of(EditFile::new(), edit).await.unwrap();
        assert_eq!((edited.changes.len(), edited.failure), (1, None));
        assert!(edited.changes[0].diff.contains("-two\n+2"), "{}", edited.changes[0].diff);

        let written =
            dry_run_of(WriteFile::new(), json!({"file_path": "new/c", "content": "c\n"})).await.unwrap();
        assert_eq!((&written.changes[0].kind, written.failure), (&ChangeKind::Added, None));

        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: e/a\n@@\n-one\n+1\n*** Delete File: d/b\n*** Add File: d/c\n+c\n*** End Patch\n";
        let patched = dry_run_of(ApplyPatch::new(), json!({"patch": patch})).await.unwrap();
        let mut kinds: Vec<String> =
            patched.changes.iter().map(|change| format!("{} {:?}", change.path, change.kind)).collect();
        kinds.sort();
        assert_eq!(kinds, ["d/b Deleted", "d/c Added", "e/a Renamed { from: \"a\" }"]);
        assert_eq!(patched.failure, None);
    }

    #[tokio::test]
    async fn a_failure_is_reported_and_a_command_is_not_tried() {
        let edit = json!({"file_path": "a", "old_string": "three", "new_string": "3"});
        let edited = dry_run_of(EditFile::new(), edit).await.unwrap();
        assert!(edited.changes.is_empty());
        assert!(edited.failure.unwrap().starts_with("Tool error (edit_file)"));
        assert_eq!(dry_run_of(Shell::new(), json!({"command": "rm a"})).await, None);
    }

    #[tokio::test]
    async fn a_call_can_run_after_any_number_of_dry_runs() {
        let env = env();
        let edit = json!({"file_path": "a", "old_string": "two", "new_string": "2"});
        let call = call_in(env.as_ref(), EditFile::new(), edit).await;
        for _ in 0..2 {
            assert_eq!(dry_run(&call, env.clone()).await.unwrap().changes.len(), 1);
        }
        let execution = execute_in(&env, &call).await;
        assert_eq!((execution.error, execution.changes.len()), (None, 1));
        let again = dry_run(&call, env).await.unwrap();
        assert!(again.failure.unwrap().contains("old_string does not occur"), "the arguments are kept");
    }
}
